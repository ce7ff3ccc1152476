//! Whole exchanges in the dialects of servers, as files, and the ways in which they are sent.
//!
//! The files in `tests/fixtures/` follow what each server documents or is known to send; keys
//! and ids in them are made up.

use std::path::Path;

use serde_json::{Value, json};
use zeph_llm::{ChatResponse, Message, RetryConfig};

use crate::server::{End, Reply, Server, finish, say};
use crate::{ask, provider, shown_text};

async fn answer_to(reply: Reply) -> (ChatResponse, String) {
    let server = Server::start([reply]).await;
    let (response, events) = ask(
        &*provider(&server.url, RetryConfig::default()),
        &[Message::user("Hi")],
        None,
    )
    .await;
    (response.unwrap(), shown_text(&events))
}

/// The answer with ids that were made up replaced.
fn as_json(response: ChatResponse) -> Value {
    let (usage, stop) = match &response {
        ChatResponse::Text { usage, stop, .. } => (*usage, json!(stop)),
        ChatResponse::ToolUse { usage, .. } => (*usage, json!("tool_use")),
    };
    let mut message = json!(response.into_message().parts);
    for part in message.as_array_mut().unwrap() {
        if let Some(id) = part.get_mut("id")
            && id.as_str().unwrap().len() == "call_".len() + 16
        {
            *id = json!("[made up]");
        }
    }
    json!({"parts": message, "stop": stop, "usage": usage})
}

/// Proves LLM-3, LLM-10.
#[tokio::test]
async fn exchanges_of_servers() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut seen = Vec::new();
    for name in [
        "openai.sse",
        "llama-cpp.sse",
        "ollama.sse",
        "vllm.sse",
        "whole.json",
    ] {
        let body = std::fs::read(fixtures.join(name)).unwrap();
        let (response, _) = answer_to(Reply::stream(body.clone())).await;
        let (trickled, _) = answer_to(Reply::stream(body).in_pieces(1)).await;
        let response = as_json(response);
        assert_eq!(as_json(trickled), response, "{name} byte by byte");
        seen.push(json!({"file": name, "answer": response}));
    }
    insta::assert_json_snapshot!(seen);
}

/// The first byte tells what a body is, not its header. Proves LLM-3.
#[tokio::test]
async fn the_content_type_does_not_matter() {
    let events = say("all") + &finish("stop");
    let document =
        json!({"choices": [{"message": {"content": "all"}, "finish_reason": "stop"}]}).to_string();
    for body in [events, document] {
        for reply in [
            Reply::stream(body.clone()),
            Reply::status(200, body.clone()),
            Reply::status(200, body.clone()).without_content_type(),
            Reply::status(200, body.clone())
                .without_content_type()
                .end(End::Eof),
            Reply::status(200, body.clone()).in_pieces(1),
        ] {
            let (response, shown) = answer_to(reply).await;
            assert_eq!(
                (response.into_message().text(), shown.as_str()),
                ("all".to_owned(), "all")
            );
        }
    }
}

/// A long answer in single bytes arrives whole.
#[tokio::test]
async fn a_slow_trickle_of_many_characters() {
    let text = "Zeph 🌬 weht über das Land. ".repeat(20);
    let body = text
        .chars()
        .map(|c| say(&c.to_string()))
        .collect::<String>()
        + &finish("stop");
    let (response, shown) = answer_to(Reply::stream(body).in_pieces(3)).await;
    assert_eq!(response.into_message().text(), text);
    assert_eq!(shown, text);
}
