//! Tests of parsed lines and of request bodies, without a network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::wire::OllamaChat;
use crate::error::LlmErrorKind;
use crate::http_provider::test_support::read;
use crate::http_provider::testing::{
    any_history, body_of, call, check_chunks, check_no_prefix_yields_a_call, check_prefix, image,
    model, reasoning, request, result, text, tools, user,
};
use crate::message::{Message, MessagePart};
use crate::provider::{ChatRequest, ChatResponse, StopReason};
use crate::tool::ToolChoice;
use crate::usage::Usage;

fn line(message: &Value) -> String {
    format!(
        "{}\n",
        json!({"model": "m", "message": message, "done": false})
    )
}

fn end(reason: &str) -> String {
    let message = json!({"role": "assistant", "content": ""});
    format!(
        "{}\n",
        json!({"message": message, "done": true, "done_reason": reason, "prompt_eval_count": 9, "eval_count": 3})
    )
}

fn answer_to(body: &str) -> ChatResponse {
    let outcome = read::<OllamaChat>([body.as_bytes()]).0;
    outcome.unwrap_or_else(|failure| panic!("{}: {body}", failure.message))
}

/// Proves LLM-7: arguments as an object or as JSON text, ids and types that are missing.
#[test]
fn calls_of_every_form_are_parsed() {
    let one = |function: Value| json!([{"function": function}]);
    for (what, calls, expect) in [
        (
            "an object",
            one(json!({"name": "a", "arguments": {"n": 1}})),
            vec![("a", json!({"n": 1}))],
        ),
        (
            "JSON text",
            one(json!({"name": "a", "arguments": "{\"n\":1}"})),
            vec![("a", json!({"n": 1}))],
        ),
        (
            "JSON text, encoded twice",
            one(json!({"name": "a", "arguments": "\"{\\\"n\\\":1}\""})),
            vec![("a", json!({"n": 1}))],
        ),
        (
            "under another name",
            one(json!({"name": "a", "parameters": {"n": 1}})),
            vec![("a", json!({"n": 1}))],
        ),
        ("nothing", one(json!({"name": "a"})), vec![("a", json!({}))]),
        (
            "null",
            one(json!({"name": "a", "arguments": null})),
            vec![("a", json!({}))],
        ),
        (
            "an empty text",
            one(json!({"name": "a", "arguments": ""})),
            vec![("a", json!({}))],
        ),
        (
            "text that is no JSON",
            one(json!({"name": "a", "arguments": "{n: 1"})),
            vec![("a", json!("{n: 1"))],
        ),
        (
            "several, with ids, types and indices",
            json!([
                {"id": "call_x", "type": "function", "function": {"index": 0, "name": "a", "arguments": {}}},
                {"id": "call_x", "type": "function", "function": {"index": 1, "name": "b", "arguments": {}}},
            ]),
            vec![("a", json!({})), ("b", json!({}))],
        ),
    ] {
        let body =
            line(&json!({"role": "assistant", "content": "", "tool_calls": calls})) + &end("stop");
        let answer = answer_to(&body);
        let got: Vec<_> = answer
            .tool_uses()
            .map(|call| (&*call.name, call.input.clone()))
            .collect();
        assert_eq!(got, expect, "{what}");
        let mut ids: Vec<_> = answer.tool_uses().map(|call| &call.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), got.len(), "{what}: ids are unique");
        assert!(ids.iter().all(|id| !id.is_empty()), "{what}");
    }
}

/// Proves LLM-4, LLM-7: calls, texts and thinking over many lines, in their order.
#[test]
fn response_over_many_lines_is_joined() {
    let body = [
        line(&json!({"role": "assistant", "content": "", "thinking": "H"})),
        line(&json!({"role": "assistant", "content": "", "thinking": "m."})),
        line(&json!({"role": "assistant", "content": "I lo"})),
        line(&json!({"role": "assistant", "content": "ok.", "tool_calls": null})),
        line(&json!({"content": "", "tool_calls": [{"function": {"name": "a", "arguments": {}}}]})),
        line(&json!({"content": null, "thinking": "More.", "tool_calls": []})),
        line(&json!({"tool_calls": [{"function": {"name": "b", "arguments": {}}}]})),
        end("stop"),
    ]
    .concat();
    let answer = answer_to(&body);
    let counted = Usage {
        input_tokens: 9,
        output_tokens: 3,
        ..Usage::default()
    };
    assert_eq!(answer.usage(), counted);
    let parts = answer.into_message().parts;
    assert_eq!(parts[0], reasoning("Hm.", Some("ollama-thinking:")));
    assert_eq!(parts[1], text("I look."));
    assert!(matches!(&parts[2], MessagePart::ToolUse(call) if call.name == "a"));
    assert_eq!(parts[3], reasoning("More.", Some("ollama-thinking:")));
    assert!(matches!(&parts[4], MessagePart::ToolUse(call) if call.name == "b"));
    // Thinking is sent back as thinking.
    let messages = [Message::user("Hi"), model(parts)];
    let sent = body_of(&wire(), request(&messages, &[]));
    assert_eq!(sent["messages"][2]["thinking"], "Hm.\n\nMore.");
    assert_eq!(sent["messages"][2]["content"], "I look.");
}

/// Proves LLM-7.
#[test]
fn stop_reasons_are_mapped() {
    for (reason, expect) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("load", StopReason::EndTurn),
        ("new", StopReason::EndTurn),
    ] {
        let ChatResponse::Text { stop, .. } = answer_to(&end(reason)) else {
            panic!("{reason}");
        };
        assert_eq!(stop, expect, "{reason}");
    }
    // A complete response, with and without a line feed, and after a byte order mark.
    let whole = r#"{"message":{"role":"assistant","content":"hi"},"done":true}"#;
    for body in [
        whole.to_owned(),
        format!("{whole}\r\n"),
        format!("\u{feff}{whole}"),
    ] {
        assert_eq!(answer_to(&body).into_message().text(), "hi", "{body:?}");
    }
}

/// Proves LLM-5, LLM-7: errors, also in the middle of a response.
#[test]
fn reports_malformed_response() {
    use LlmErrorKind as Kind;
    let said = line(&json!({"role": "assistant", "content": ""}));
    let error = |message: &str| format!("{said}{}\n", json!({ "error": message }));
    let call = line(&json!({"tool_calls": [{"function": {"name": "a", "arguments": {}}}]}));
    for (body, kind, contains) in [
        (String::new(), Kind::StreamCut, "ended before"),
        (said.clone(), Kind::StreamCut, "ended before"),
        (call, Kind::StreamCut, "ended before"),
        (error("unexpected EOF"), Kind::Server, "unexpected EOF"),
        (
            error("input exceeds the context length"),
            Kind::ContextOverflow,
            "compact",
        ),
        ("hello\n".to_owned(), Kind::Protocol, "hello"),
        ("hello".to_owned(), Kind::Protocol, "hello"),
        ("<html>".to_owned(), Kind::Protocol, "<html>"),
        ("{\"hello\":1}".to_owned(), Kind::Protocol, "{\"hello\":1}"),
        (
            "{\"message\":{\"con".to_owned(),
            Kind::StreamCut,
            "ended before",
        ),
        ("{\"message\":7}\n".to_owned(), Kind::Protocol, "7"),
        (
            line(&json!({"tool_calls": [{"function": {"arguments": {}}}]})) + &end("stop"),
            Kind::Protocol,
            "without the name of a tool",
        ),
    ] {
        let failure = read::<OllamaChat>([body.as_bytes()]).0.expect_err(&body);
        assert_eq!(failure.kind, kind, "{body}: {}", failure.message);
        assert!(
            failure.message.contains(contains),
            "{body}: {}",
            failure.message
        );
    }
}

/// Proves LLM-4.
#[test]
fn no_prefix_of_a_stream_yields_a_call() {
    let calls = json!([{"function": {"name": "bash", "arguments": {"command": "ls 😀"}}}]);
    let before = line(&json!({"role": "assistant", "content": "I löök. 😀"}))
        + &line(&json!({"role": "assistant", "content": "", "tool_calls": calls}));
    let last = end("stop");
    let complete = before.len() + last.len() - 1;
    check_no_prefix_yields_a_call::<OllamaChat>(&(before + &last), complete);
}

fn wire() -> OllamaChat {
    OllamaChat {
        model: "m".to_owned(),
        window: crate::http_provider::window::Window::fixed(4096),
        max_output_tokens: Some(100),
        images: true,
        effort: None,
    }
}

/// Proves LLM-7: the window and the limit of the response, schemas, and no tools if calls are forbidden.
#[test]
fn request_has_the_fields_around_the_messages() {
    let (messages, tools) = ([Message::user("Hi")], tools());
    let schema = json!({"type": "object"});
    let asked = ChatRequest {
        response_schema: Some(&schema),
        max_output_tokens: Some(50),
        ..request(&messages, &tools)
    };
    let parameters = &*tools[0].parameters;
    let function =
        json!({"name": "bash", "description": "Runs a command.", "parameters": parameters});
    assert_eq!(
        body_of(&wire(), asked),
        json!({
            "model": "m",
            "stream": true,
            "options": {"num_ctx": 4096, "num_predict": 50},
            "tools": [{"type": "function", "function": function}],
            "messages": [
                {"role": "system", "content": "You are Zeph."},
                {"role": "user", "content": "Hi"},
            ],
            "format": schema,
        })
    );
    let plain = ChatRequest {
        json_object: true,
        tool_choice: ToolChoice::None,
        system: "",
        ..request(&messages, &tools)
    };
    let unlimited = OllamaChat {
        max_output_tokens: None,
        ..wire()
    };
    assert_eq!(
        body_of(&unlimited, plain),
        json!({
            "model": "m",
            "stream": true,
            "options": {"num_ctx": 4096},
            "messages": [{"role": "user", "content": "Hi"}],
            "format": "json",
        })
    );
}

/// Proves LLM-7, FILE-11: results are sent as role `tool` under the name of their tool; images follow them; invalid
/// arguments of a model are wrapped into an object.
#[test]
fn history_is_converted_to_messages() {
    let messages = [
        user(vec![text("Look at"), text("these.")]),
        model(vec![
            reasoning("of Claude", Some("anthropic-signature:x")),
            call("1", "read", json!({"path": "a"})),
            call("2", "bash", json!("{broken")),
            call("3", "clock", Value::Null),
        ]),
        user(vec![
            result("2", "failed"),
            result("1", "PNG image"),
            image("AAAA"),
            result("3", "noon"),
            result("unknown", "?"),
            text("And:"),
            image("BBBB"),
        ]),
        // The same id again: the newest call counts.
        model(vec![call("1", "grep", json!({}))]),
        user(vec![result("1", "found")]),
    ];
    let mut body = body_of(&wire(), request(&messages, &[]));
    let calls =
        |name: &str, arguments: Value| json!({"function": {"name": name, "arguments": arguments}});
    assert_eq!(
        body["messages"].take(),
        json!([
            {"role": "system", "content": "You are Zeph."},
            {"role": "user", "content": "Look at\n\nthese."},
            {"role": "assistant", "content": "", "tool_calls": [
                calls("read", json!({"path": "a"})),
                calls("bash", json!({"invalid_arguments": "{broken"})),
                calls("clock", json!({})),
            ]},
            {"role": "tool", "content": "failed", "tool_name": "bash"},
            {"role": "tool", "content": "PNG image", "tool_name": "read"},
            {"role": "tool", "content": "noon", "tool_name": "clock"},
            {"role": "tool", "content": "?"},
            {"role": "user", "content": "Image 1 belongs to the result of read.\n\nAnd:", "images": ["AAAA", "BBBB"]},
            {"role": "assistant", "content": "", "tool_calls": [calls("grep", json!({}))]},
            {"role": "tool", "content": "found", "tool_name": "grep"},
        ])
    );
    let blind = OllamaChat {
        images: false,
        ..wire()
    };
    let body = body_of(&blind, request(&messages, &[])).to_string();
    assert_eq!(body.matches("does not accept images").count(), 2);
    assert!(!body.contains("AAAA") && !body.contains("BBBB"), "{body}");
}

proptest! {
    /// Proves LLM-6.
    #[test]
    fn longer_history_begins_with_the_same_bytes(messages in any_history()) {
        check_prefix(&wire(), &messages, "")?;
    }

    /// No input makes the reader panic, and the chunking of the network changes nothing.
    #[test]
    fn chunking_of_any_bytes_has_no_effect(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..40) {
        check_chunks::<OllamaChat>(&bytes, size)?;
        let valid = line(&json!({"content": String::from_utf8_lossy(&bytes)})) + &end("stop");
        check_chunks::<OllamaChat>(valid.as_bytes(), size)?;
        prop_assert!(read::<OllamaChat>([valid.as_bytes()]).0.is_ok());
    }
}
