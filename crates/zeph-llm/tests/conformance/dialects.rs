//! Whole exchanges in the dialects of servers, as files.
//!
//! The files in `tests/fixtures/` follow the documentation or the known behaviour of each server; their keys
//! and ids are invented.

use std::path::Path;

use serde_json::{Value, json};
use zeph_llm::{ChatResponse, RetryConfig};

use crate::ask;
use crate::server::{Reply, Server};
use crate::wire::{Wire, hi};

async fn answer_to(wire: Wire, reply: Reply) -> ChatResponse {
    let server = Server::start([reply]).await;
    let provider = wire.provider(&server.url, RetryConfig::default());
    ask(&*provider, &hi(), None).await.0.unwrap()
}

/// The response with generated ids replaced.
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

/// Reads each file in one piece and byte by byte.
async fn exchanges(wire: Wire, names: &[&str]) -> Vec<Value> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut seen = Vec::new();
    for name in names {
        let body = std::fs::read(fixtures.join(name)).unwrap();
        let response = answer_to(wire, wire.stream(body.clone())).await;
        let trickled = answer_to(wire, wire.stream(body).in_pieces(1)).await;
        let response = as_json(response);
        assert_eq!(as_json(trickled), response, "{name} byte by byte");
        seen.push(json!({"file": name, "answer": response}));
    }
    seen
}

/// Proves LLM-3, LLM-10.
#[tokio::test]
async fn exchanges_of_servers() {
    let names = [
        "openai.sse",
        "llama-cpp.sse",
        "ollama.sse",
        "vllm.sse",
        "whole.json",
    ];
    insta::assert_json_snapshot!(exchanges(Wire::Chat, &names).await);
}

/// Proves LLM-3, LLM-6 (cached tokens are counted), LLM-10.
#[tokio::test]
async fn exchanges_of_the_responses_api() {
    let names = [
        "responses-tools.sse",
        "responses-llama-cpp.sse",
        "responses-whole.json",
    ];
    insta::assert_json_snapshot!(exchanges(Wire::Responses, &names).await);
}

/// Proves LLM-7, LLM-10.
#[tokio::test]
async fn exchanges_of_ollama() {
    let names = [
        "ollama-tools.ndjson",
        "ollama-thinking.ndjson",
        "ollama-whole.json",
    ];
    insta::assert_json_snapshot!(exchanges(Wire::Ollama, &names).await);
}

/// Proves LLM-3, LLM-6 (cached tokens are counted), LLM-10.
#[tokio::test]
async fn exchanges_of_the_messages_api() {
    let names = [
        "claude-tools.sse",
        "claude-thinking.sse",
        "claude-llama-cpp.sse",
        "claude-whole.json",
    ];
    insta::assert_json_snapshot!(exchanges(Wire::Claude, &names).await);
}
