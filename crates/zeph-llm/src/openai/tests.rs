//! Tests of the dialects of compatible servers and of request bodies, without a network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::wire::ChatCompletions;
use crate::config::{ProviderConfig, ProviderKind};
use crate::error::LlmErrorKind;
use crate::http_provider::error_mapping::{Failure, RequestKind, Target};
use crate::http_provider::request_body;
use crate::http_provider::response_builder::ResponseBuilder;
use crate::http_provider::stream_reader::AnswerReader;
use crate::http_provider::testing::{any_history, check_prefix, model, reasoning, user};
use crate::message::{Message, MessagePart, Role};
use crate::provider::{ChatRequest, ChatResponse, StopReason, StreamEvent};
use crate::tool::{ToolChoice, ToolDefinition, ToolUseRequest};
use crate::usage::Usage;

const TARGET: Target<'_> = Target {
    url: "http://h/v1/chat/completions",
    model: "m",
    api: "Chat Completions",
    key_env: None,
    purpose: RequestKind::Answer,
};

fn read<'a>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Result<ChatResponse, Failure>, Vec<StreamEvent>) {
    let mut events = Vec::new();
    let mut sink = |event| events.push(event);
    let mut answer = ResponseBuilder::default();
    let mut reader = AnswerReader::<ChatCompletions>::new(&mut answer, TARGET);
    let outcome = chunks
        .into_iter()
        .try_for_each(|chunk| reader.push(chunk, &mut sink))
        .and_then(|()| reader.end(&mut sink))
        .and_then(|()| answer.finish(|id| id == "taken", &mut sink));
    (outcome, events)
}

/// A stream of chunks with one choice each; `[DONE]` is not added.
fn stream(choices: &[Value]) -> String {
    choices
        .iter()
        .map(|choice| {
            format!(
                "data: {}\n\n",
                json!({"id": "x", "object": "chat.completion.chunk", "choices": [choice]})
            )
        })
        .collect()
}

fn calls_of(body: &str) -> Vec<(String, String, Value)> {
    let (outcome, _) = read([body.as_bytes()]);
    outcome
        .unwrap_or_else(|failure| panic!("{}: {body}", failure.message))
        .tool_uses()
        .map(|call| (call.id.clone(), call.name.clone(), call.input.clone()))
        .collect()
}

fn delta(calls: Value) -> Value {
    json!({"index": 0, "delta": {"tool_calls": calls}})
}

fn finish(reason: &str) -> Value {
    json!({"index": 0, "delta": {}, "finish_reason": reason})
}

/// Proves LLM-4.
#[test]
fn interleaved_calls_are_assembled_by_index() {
    let body = stream(&[
        delta(json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}}])),
        delta(json!([{"index": 1, "id": "b", "function": {"name": "bash", "arguments": "{\"c"}}])),
        delta(json!([{"index": 0, "function": {"arguments": "{\"path\":"}}])),
        delta(
            json!([{"index": 1, "function": {"arguments": "md\":1}"}}, {"index": 0, "function": {"arguments": "\"x\"}"}}]),
        ),
        finish("tool_calls"),
    ]);
    let expect = [
        ("a".to_owned(), "read".to_owned(), json!({"path": "x"})),
        ("b".to_owned(), "bash".to_owned(), json!({"cmd": 1})),
    ];
    assert_eq!(calls_of(&body), expect);
    let (_, events) = read([body.as_bytes()]);
    let started = |name: &str| StreamEvent::ToolUseStarted {
        name: name.to_owned(),
    };
    let input = |text: &str| StreamEvent::ToolInputDelta(text.to_owned());
    assert_eq!(
        events,
        [
            started("read"),
            started("bash"),
            input("{\"c"),
            input("md\":1}")
        ]
    );
}

/// Proves LLM-3: the forms of calls that compatible servers send instead of the standard form.
#[test]
fn calls_of_all_dialects_are_parsed() {
    let one = |name: &str, input: Value| vec![(name.to_owned(), input)];
    let two = || {
        vec![
            ("a".to_owned(), json!({"n": 1})),
            ("b".to_owned(), json!({"n": 2})),
        ]
    };
    for (what, body, expect) in [
        (
            "no index, no id, whole calls in one chunk",
            stream(&[delta(json!([{"function": {"name": "a", "arguments": "{\"n\":1}"}}, {"function": {"name": "b", "arguments": "{\"n\":2}"}}])), finish("tool_calls")]),
            two(),
        ),
        (
            "index 0 for all, told apart by ids",
            stream(&[delta(json!([{"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"n\":1}"}}])), delta(json!([{"index": 0, "id": "2", "function": {"name": "b", "arguments": "{\"n\":2}"}}])), finish("stop")]),
            two(),
        ),
        (
            "index 0 for all, no ids",
            stream(&[delta(json!([{"index": 0, "function": {"name": "a", "arguments": "{\"n\":1}"}}])), delta(json!([{"index": 0, "function": {"name": "b", "arguments": "{\"n\":2}"}}])), finish("stop")]),
            two(),
        ),
        (
            "the same tool twice, whole, index 0, no ids",
            stream(&[delta(json!([{"index": 0, "function": {"name": "a", "arguments": "{}"}}])), delta(json!([{"index": 0, "function": {"name": "a", "arguments": "{}"}}])), finish("stop")]),
            vec![("a".to_owned(), json!({})), ("a".to_owned(), json!({}))],
        ),
        (
            "a new id with every delta",
            stream(&[delta(json!([{"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"n\""}}])), delta(json!([{"index": 0, "id": "2", "function": {"arguments": ":1}"}}])), finish("tool_calls")]),
            one("a", json!({"n": 1})),
        ),
        (
            "name repeated with every delta",
            stream(&[delta(json!([{"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"n\""}}])), delta(json!([{"index": 0, "function": {"name": "a", "arguments": ":1}"}}])), finish("tool_calls")]),
            one("a", json!({"n": 1})),
        ),
        (
            "no index, deltas without id",
            stream(&[delta(json!([{"id": "1", "function": {"name": "a", "arguments": "{\"n\""}}])), delta(json!([{"function": {"arguments": ":1}"}}])), finish("tool_calls")]),
            one("a", json!({"n": 1})),
        ),
        (
            "nulls",
            stream(&[json!({"index": null, "delta": {"content": null, "tool_calls": [{"index": null, "id": null, "function": {"name": "a", "arguments": null}}]}, "finish_reason": null}), finish("stop")]),
            one("a", json!({})),
        ),
        (
            "arguments as an object",
            stream(&[delta(json!([{"index": 0, "function": {"name": "a", "arguments": {"n": [1, {"m": "ä"}]}}}])), finish("stop")]),
            one("a", json!({"n": [1, {"m": "ä"}]})),
        ),
        (
            "arguments encoded twice",
            stream(&[delta(json!([{"index": 0, "function": {"name": "a", "arguments": "\"{\\\"n\\\":1}\""}}])), finish("stop")]),
            one("a", json!({"n": 1})),
        ),
        (
            "arguments as a number",
            stream(&[delta(json!([{"index": 0, "function": {"name": "a", "arguments": 5}}])), finish("stop")]),
            one("a", json!(5)),
        ),
        (
            "arguments that are no JSON",
            stream(&[delta(json!([{"index": 0, "function": {"name": "a", "arguments": "{n: 1"}}])), finish("tool_calls")]),
            one("a", json!("{n: 1")),
        ),
        (
            "no [DONE], no blank line after the last event",
            stream(&[delta(json!([{"index": 0, "function": {"name": "a", "arguments": ""}}])), finish("tool_calls")]).trim_end().to_owned(),
            one("a", json!({})),
        ),
        (
            "one JSON document in place of a stream",
            json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [{"id": "q", "type": "function", "function": {"name": "a", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]}).to_string(),
            one("a", json!({})),
        ),
        (
            "one JSON document without finish_reason",
            format!("\u{feff} {}\n", json!({"choices": [{"message": {"tool_calls": [{"function": {"name": "a", "arguments": {}}}]}}]})),
            one("a", json!({})),
        ),
    ] {
        let calls = calls_of(&body);
        let got: Vec<(String, Value)> = calls.iter().map(|(_, name, input)| (name.clone(), input.clone())).collect();
        assert_eq!(got, expect, "{what}");
        let mut ids: Vec<&String> = calls.iter().map(|(id, ..)| id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), calls.len(), "{what}: ids are unique");
        assert!(ids.iter().all(|id| !id.is_empty()), "{what}: every call has an id");
    }
}

#[test]
fn duplicate_ids_are_replaced() {
    let call = |id: &str, index: u64| json!({"index": index, "id": id, "function": {"name": "a", "arguments": "{}"}});
    let body = stream(&[
        delta(json!([call("x", 0), call("x", 1), call("taken", 2)])),
        finish("stop"),
    ]);
    let ids: Vec<String> = calls_of(&body).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids[0], "x");
    assert!(
        ids[1].starts_with("call_") && ids[2].starts_with("call_") && ids[1] != ids[2],
        "{ids:?}"
    );
}

fn text_answer(body: &str) -> (String, StopReason, Usage) {
    match read([body.as_bytes()])
        .0
        .unwrap_or_else(|failure| panic!("{}", failure.message))
    {
        ChatResponse::Text { parts, stop, usage } => {
            let message = Message {
                role: Role::Assistant,
                parts,
            };
            (message.text(), stop, usage)
        }
        other => panic!("{other:?}"),
    }
}

/// Proves LLM-3, LLM-6 (cached tokens are counted).
#[test]
fn texts_stop_reasons_and_usage_are_parsed() {
    let say = |text: &str| json!({"index": 0, "delta": {"content": text}});
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":8,\"cache_write_tokens\":1}}}\n\ndata: [DONE]\n\n";
    let body = stream(&[say("Hel"), say("lo"), finish("stop")]) + usage;
    let counted = Usage {
        input_tokens: 9,
        output_tokens: 3,
        cached_tokens: 8,
        cache_write_tokens: 1,
    };
    assert_eq!(
        text_answer(&body),
        ("Hello".to_owned(), StopReason::EndTurn, counted)
    );
    for (what, body, text, stop) in [
        (
            "length",
            stream(&[say("a"), finish("length")]),
            "a",
            StopReason::MaxTokens,
        ),
        (
            "filter",
            stream(&[say("a"), finish("content_filter")]),
            "a",
            StopReason::Refusal,
        ),
        (
            "refusal",
            stream(&[json!({"delta": {"refusal": "no"}}), finish("stop")]),
            "no",
            StopReason::Refusal,
        ),
        (
            "[DONE] alone",
            stream(&[say("a")]) + "data: [DONE]\n\n",
            "a",
            StopReason::EndTurn,
        ),
        (
            "an unknown reason",
            stream(&[say("a"), finish("eos")]),
            "a",
            StopReason::EndTurn,
        ),
        (
            "nothing said",
            stream(&[finish("stop")]),
            "",
            StopReason::EndTurn,
        ),
        (
            "keep-alives",
            format!(": ping\n\n{}", stream(&[say("a"), finish("stop")])),
            "a",
            StopReason::EndTurn,
        ),
        (
            "content in parts",
            stream(&[
                json!({"delta": {"content": [{"type": "text", "text": "a"}, {"type": "thinking"}]}}),
                finish("stop"),
            ]),
            "a",
            StopReason::EndTurn,
        ),
        (
            "a second choice",
            stream(&[
                say("a"),
                json!({"index": 1, "delta": {"content": "b"}}),
                finish("stop"),
            ]),
            "a",
            StopReason::EndTurn,
        ),
        (
            "a JSON document",
            json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]})
                .to_string(),
            "a",
            StopReason::EndTurn,
        ),
    ] {
        assert_eq!(
            text_answer(&body),
            (text.to_owned(), stop, Usage::default()),
            "{what}"
        );
    }
}

#[test]
fn reasoning_is_shown_and_separate_from_the_text() {
    for (key, seal) in [
        ("reasoning_content", Some("chat-reasoning:h")),
        ("reasoning", None),
    ] {
        let body = stream(&[
            json!({"delta": {key: "hm"}}),
            json!({"delta": {"content": "a"}}),
            finish("stop"),
        ]);
        let (outcome, events) = read([body.as_bytes()]);
        assert_eq!(
            events,
            [
                StreamEvent::ReasoningDelta("hm".to_owned()),
                StreamEvent::TextDelta("a".to_owned())
            ]
        );
        let parts = outcome.unwrap().into_message().parts;
        assert_eq!(
            parts[0],
            MessagePart::Reasoning {
                text: "hm".to_owned(),
                signature: seal.map(str::to_owned)
            }
        );
        assert_eq!(
            parts[1],
            MessagePart::Text {
                text: "a".to_owned()
            }
        );
    }
}

/// A call that an output limit cut off is dropped with a notice; a complete one before it stays.
#[test]
fn call_cut_off_by_the_limit_is_dropped() {
    let body = stream(&[
        delta(json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}])),
        delta(
            json!([{"index": 1, "id": "b", "function": {"name": "write", "arguments": "{\"path\":\"x\",\"content\":\"12"}}]),
        ),
        finish("length"),
    ]);
    assert_eq!(
        calls_of(&body),
        [("a".to_owned(), "read".to_owned(), json!({}))]
    );
    let (_, events) = read([body.as_bytes()]);
    assert!(
        matches!(events.last(), Some(StreamEvent::Notice(text)) if text.contains("`write`")),
        "{events:?}"
    );
    let bare = stream(&[
        delta(json!([{"index": 0, "function": {"name": "clear"}}])),
        finish("length"),
    ]);
    assert_eq!(text_answer(&bare).1, StopReason::MaxTokens);
}

fn kind_of(body: &[u8]) -> (LlmErrorKind, String) {
    let failure = read([body]).0.expect_err("a failure");
    (failure.kind, failure.message)
}

/// Proves LLM-5.
#[test]
fn invalid_response_is_reported() {
    use LlmErrorKind as Kind;
    let cut_call = stream(&[delta(
        json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}]),
    )]);
    let done_call = format!("{cut_call}data: [DONE]\n\n");
    for (body, kind, contains) in [
        ("", Kind::StreamCut, "ended before"),
        ("\n\n", Kind::StreamCut, "ended before"),
        ("da", Kind::StreamCut, "ended before"),
        (": ping\n\n", Kind::StreamCut, "ended before"),
        ("data: [DONE]\n\n", Kind::StreamCut, "ended before"),
        (&cut_call, Kind::StreamCut, "ended before"),
        (&done_call, Kind::StreamCut, "ended before"),
        ("{\"choices\":[{\"mess", Kind::StreamCut, "ended before"),
        (
            "data: {\"choices\":[{\"del",
            Kind::StreamCut,
            "ended before",
        ),
        (
            "<html><body>Sign in</body></html>",
            Kind::Protocol,
            "<html><body>Sign in",
        ),
        ("{\"hello\":1}", Kind::Protocol, "{\"hello\":1}"),
        ("not an answer", Kind::Protocol, "not an answer"),
        ("data: hello\n\n", Kind::Protocol, "hello"),
        (
            "data: {\"choices\":7}\n\n",
            Kind::Protocol,
            "{\"choices\":7}",
        ),
        (
            "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n",
            Kind::Server,
            "overloaded",
        ),
        (
            "{\"error\":{\"message\":\"slow\",\"type\":\"rate_limit_error\"}}",
            Kind::RateLimited,
            "slow",
        ),
        (
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
            Kind::Server,
            "with an error",
        ),
        (
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0}]},\"finish_reason\":\"stop\"}]}\n\n",
            Kind::Protocol,
            "without the name of a tool",
        ),
    ] {
        let (got, message) = kind_of(body.as_bytes());
        assert_eq!(got, kind, "{body}: {message}");
        assert!(message.contains(contains), "{body}: {message}");
    }
    let endless = "x\n".repeat(4096);
    assert_eq!(kind_of(endless.as_bytes()).0, Kind::Protocol);
}

/// Every prefix of a recorded response gives either the complete response or an error, never a call from a part of
/// it. Proves LLM-4.
#[test]
fn no_prefix_of_a_stream_yields_a_call() {
    let whole = stream(&[
        json!({"delta": {"role": "assistant", "content": "I löök. 😀"}}),
        delta(json!([{"index": 0, "id": "a", "function": {"name": "bash", "arguments": ""}}])),
        delta(json!([{"index": 0, "function": {"arguments": "{\"command\":\"ls 😀\"}"}}])),
        finish("tool_calls"),
    ]);
    let bytes = whole.as_bytes();
    // The last event is whole before its blank line.
    let complete = bytes.len() - 2;
    for end in 0..=bytes.len() {
        let outcome = read([&bytes[..end]]).0;
        match outcome {
            Ok(response) => {
                assert!(
                    end >= complete,
                    "a call out of {end} of {} bytes",
                    bytes.len()
                );
                assert_eq!(
                    response.tool_uses().next().unwrap().input,
                    json!({"command": "ls 😀"})
                );
            }
            Err(failure) => {
                assert!(end < complete);
                assert_eq!(
                    failure.kind,
                    LlmErrorKind::StreamCut,
                    "{end}: {}",
                    failure.message
                );
            }
        }
    }
}

proptest! {
    /// The chunking of the network changes nothing, and no input makes the reader panic.
    #[test]
    fn chunking_of_any_bytes_has_no_effect(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..40, valid in any::<bool>()) {
        let body = if valid {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            stream(&[json!({"delta": {"content": text}}), finish("stop")]).into_bytes()
        } else {
            bytes
        };
        let whole = read([&body[..]]).0;
        let pieces = read(body.chunks(size)).0;
        prop_assert_eq!(whole.as_ref().ok(), pieces.as_ref().ok());
        prop_assert_eq!(whole.is_ok(), pieces.is_ok());
        prop_assert!(!valid || whole.is_ok());
    }
}

/// The first byte that is not blank decides the format of the body; the bytes before belong to it.
#[test]
fn byte_order_mark_in_pieces_is_skipped() {
    let events = [
        b"\xEF\xBB\xBF".as_slice(),
        stream(&[json!({"delta": {"content": "hi"}}), finish("stop")]).as_bytes(),
    ]
    .concat();
    let json = [
        b"\xEF\xBB\xBF ".as_slice(),
        br#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#,
    ]
    .concat();
    for body in [events, json] {
        for at in 0..6 {
            let (head, tail) = body.split_at(at);
            let answer = read([head, tail])
                .0
                .unwrap_or_else(|failure| panic!("at {at}: {}", failure.message));
            assert!(format!("{answer:?}").contains("hi"), "cut at {at}");
        }
    }
    // A blank before a field's name makes it another field, however it is cut.
    let odd =
        b" data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(read([&odd[..]]).0.is_ok(), read(odd.chunks(1)).0.is_ok());
}

/// The start of a body without a stream identifies it, for any size of its pieces.
#[test]
fn non_stream_body_is_refused_in_pieces_of_any_size() {
    let body = [
        "<html>\n".repeat(300),
        stream(&[json!({"delta": {"content": "hi"}}), finish("stop")]),
    ]
    .concat();
    for size in [1, 1000, 2000, body.len()] {
        let failure = read(body.as_bytes().chunks(size)).0.unwrap_err();
        assert!(failure.message.contains("did not respond"), "{size}");
    }
}

fn config(base_url: Option<&str>) -> ProviderConfig {
    ProviderConfig {
        model: "m".to_owned(),
        base_url: base_url.map(str::to_owned),
        max_output_tokens: Some(100),
        ..ProviderConfig::new("p", ProviderKind::Openai)
    }
}

fn settings(openai: bool) -> ChatCompletions {
    ChatCompletions::new(&config((!openai).then_some("http://h")), true)
}

fn tools() -> Vec<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    vec![ToolDefinition {
        name: "bash".to_owned(),
        description: "Runs a command.".to_owned(),
        parameters: Arc::new(schema),
    }]
}

fn request<'a>(messages: &'a [Message], tools: &'a [ToolDefinition]) -> ChatRequest<'a> {
    ChatRequest {
        system: "You are Zeph.",
        messages,
        tools,
        tool_choice: ToolChoice::Auto,
        cache_key: Some("session-1"),
        response_schema: None,
        json_object: false,
        max_output_tokens: None,
    }
}

fn call(id: &str, name: &str, input: Value) -> MessagePart {
    MessagePart::ToolUse(ToolUseRequest::new(id, name, input))
}

fn result(id: &str, content: &str) -> MessagePart {
    MessagePart::ToolResult {
        tool_use_id: id.to_owned(),
        content: content.to_owned(),
        is_error: false,
    }
}

fn text(text: &str) -> MessagePart {
    MessagePart::Text {
        text: text.to_owned(),
    }
}

fn request_body(
    settings: ChatCompletions,
    request: ChatRequest<'_>,
    shown: Option<&str>,
) -> Result<bytes::Bytes, Failure> {
    request_body::request_body(&settings, request, shown)
}

fn body_of(settings: ChatCompletions, request: ChatRequest<'_>, shown: Option<&str>) -> Value {
    serde_json::from_slice(&request_body(settings, request, shown).unwrap()).unwrap()
}

/// Proves ERR-21 on the wire: the request asks for an object, with at most the tokens that it allows.
#[test]
fn side_request_asks_for_an_object() {
    let messages = [Message::user("JSON, please.")];
    let asked = |most| ChatRequest {
        json_object: true,
        max_output_tokens: Some(most),
        tool_choice: ToolChoice::None,
        ..request(&messages, &[])
    };
    let body = body_of(settings(true), asked(50), None);
    assert_eq!(body["max_completion_tokens"], 50);
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert_eq!(body.get("tools"), None);
    // The configured limit of the provider applies; other servers may not know the format.
    let body = body_of(settings(false), asked(5000), None);
    assert_eq!(body["max_tokens"], 100);
    assert_eq!(body.get("response_format"), None);
}

/// Proves LLM-3: Azure OpenAI refuses `max_tokens` for a model that reasons. Other servers may not
/// know `max_completion_tokens`.
#[test]
fn output_limit_has_the_field_of_the_server() {
    let messages = [Message::user("Hi")];
    let asked = ChatRequest {
        max_output_tokens: Some(50),
        ..request(&messages, &[])
    };
    let (new, old) = ("max_completion_tokens", "max_tokens");
    for (base_url, field, other) in [
        (None, new, old),
        (Some("https://x.openai.azure.com/openai/v1"), new, old),
        (
            Some("https://x.cognitiveservices.azure.com/openai/v1"),
            new,
            old,
        ),
        (Some("http://localhost"), old, new),
        (Some("https://openai.azure.com.example.org"), old, new),
    ] {
        let body = body_of(ChatCompletions::new(&config(base_url), true), asked, None);
        assert_eq!(body[field], 50, "{base_url:?}");
        assert_eq!(body.get(other), None, "{base_url:?}");
        assert_eq!(body.get("prompt_cache_key").is_some(), base_url.is_none());
    }
}

fn history() -> Vec<Message> {
    let reasoning = MessagePart::Reasoning {
        text: "hm".to_owned(),
        signature: None,
    };
    vec![
        Message::user("List the files \"here\"."),
        Message {
            role: Role::Assistant,
            parts: vec![
                reasoning,
                text("I look."),
                call("a", "bash", json!({"command": "ls \"ä\""})),
                call("b", "what is.this", json!("{broken")),
            ],
        },
        Message {
            role: Role::User,
            parts: vec![
                text("Go on."),
                result("a", "Cargo.toml\n"),
                result("b", "[error] no JSON"),
                text("Quickly."),
            ],
        },
        Message {
            role: Role::Assistant,
            parts: vec![call("c", "bash", Value::Null)],
        },
        Message {
            role: Role::User,
            parts: vec![
                result("c", ""),
                text("See:"),
                MessagePart::Image {
                    media_type: "image/png".to_owned(),
                    data: "AAAA".to_owned(),
                },
            ],
        },
    ]
}

/// Proves LLM-3, LLM-6, LLM-10 (request bodies are matched).
#[test]
fn request_body_for_openai() {
    let (history, tools) = (history(), tools());
    insta::assert_json_snapshot!(body_of(settings(true), request(&history, &tools), None));
}

/// Two results with an image, as a batch of two calls leaves them.
fn with_images() -> [Message; 3] {
    let image = |data: &str| MessagePart::Image {
        media_type: "image/png".to_owned(),
        data: data.to_owned(),
    };
    let call = |id: &str| MessagePart::ToolUse(ToolUseRequest::new(id, "read", json!({})));
    let result = |id: &str| MessagePart::ToolResult {
        tool_use_id: id.to_owned(),
        content: format!("PNG image of {id}"),
        is_error: false,
    };
    [
        Message::user("look"),
        Message {
            role: Role::Assistant,
            parts: vec![call("a"), call("b")],
        },
        Message {
            role: Role::User,
            parts: vec![result("a"), image("AAAA"), result("b"), image("BBBB")],
        },
    ]
}

/// Proves FILE-11, LLM-6: tool messages are texts, so the images of results follow all of them in one message of the
/// user, each with a name; later requests do not change them.
#[test]
fn images_of_results_follow_the_results() {
    let messages = with_images();
    let body = body_of(settings(true), request(&messages, &[]), None);
    let sent = body["messages"].as_array().unwrap();
    let results = &sent[sent.len() - 3..];
    let url = |data: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        results,
        [
            json!({"role": "tool", "tool_call_id": "a", "content": "PNG image of a"}),
            json!({"role": "tool", "tool_call_id": "b", "content": "PNG image of b"}),
            json!({"role": "user", "content": [
                text("The image of the result of a:"), url("AAAA"),
                text("The image of the result of b:"), url("BBBB"),
            ]}),
        ]
    );
    let mut longer = messages.to_vec();
    longer.push(Message::assistant("I see."));
    longer.push(Message::user("And now?"));
    let build =
        |messages: &[Message]| request_body(settings(true), request(messages, &[]), None).unwrap();
    let (first, second) = (build(&messages), build(&longer));
    let shared = first
        .iter()
        .zip(&second)
        .take_while(|(a, b)| a == b)
        .count();
    assert!(
        first.len() - shared <= "]}".len() + 30,
        "{shared} of {}",
        first.len()
    );
}

/// Proves LLM-1, LLM-3: the server gets back its reasoning and the content of its calls. Another
/// server, which may refuse such fields, gets neither.
#[test]
fn content_of_a_response_is_returned_only_to_its_server() {
    let extra = json!({"google": {"thought_signature": "c2ln"}});
    let body = stream(&[
        json!({"delta": {"reasoning_content": "h", "reasoning": "h"}}),
        json!({"delta": {"reasoning_content": "m"}}),
        delta(
            json!([{"id": "a", "function": {"name": "bash", "arguments": "{}"}, "extra_content": extra}]),
        ),
        delta(
            json!([{"id": "b", "function": {"name": "bash", "arguments": "{}"}, "extra_content": null}]),
        ),
        finish("tool_calls"),
    ]);
    let received = read([body.as_bytes()]).0.unwrap().into_message();
    // As a session stores it.
    let mut answer: Message = serde_json::from_value(json!(received)).unwrap();
    assert_eq!(answer, received);
    for (text, seal) in [
        ("unsealed", None),
        ("of Ollama", Some("ollama-thinking:")),
        ("of another host", Some("chat-reasoning:other")),
    ] {
        answer.parts.insert(0, reasoning(text, seal));
    }
    let silent = model(vec![
        reasoning("hm", Some("chat-reasoning:h")),
        text("Done."),
    ]);
    let messages = [Message::user("Hi"), answer, silent];
    let sent = |wire| {
        let body = body_of(wire, request(&messages, &[]), None);
        (body["messages"][2].clone(), body["messages"][3].clone())
    };
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}});
    let mut with_extra = call("a");
    with_extra["extra_content"] = extra;
    let (own, done) = sent(settings(false));
    assert_eq!(
        own,
        json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [with_extra, call("b")]})
    );
    assert_eq!(done, json!({"role": "assistant", "content": "Done."}));
    let other = ChatCompletions::new(&config(Some("http://other-host")), true);
    for wire in [settings(true), other] {
        assert_eq!(
            sent(wire).0,
            json!({"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]})
        );
    }
}

/// Proves LLM-3: Mistral refuses a message of the user after results. This includes their images.
#[test]
fn mistral_speaks_between_results_and_text() {
    let with_results = |parts: &[MessagePart]| {
        let calls = vec![call("a", "bash", json!({})), call("b", "bash", json!({}))];
        let results = [result("a", ""), result("b", "")];
        [model(calls), user([results.as_slice(), parts].concat())]
    };
    let roles = |base_url: &str, name: &str, messages: &[Message]| {
        let config = config(Some(base_url)).with_model(name);
        let wire = ChatCompletions::new(&config, true);
        let body = body_of(wire, request(messages, &[]), None);
        let sent = body["messages"].as_array().unwrap().iter().skip(2);
        sent.map(|message| message["role"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let usual: &[&str] = &["tool", "tool", "user"];
    let separated: &[&str] = &["tool", "tool", "assistant", "user"];
    let image = MessagePart::Image {
        media_type: "image/png".to_owned(),
        data: "AAAA".to_owned(),
    };
    for next in [text("Go on."), image] {
        let messages = with_results(&[next]);
        for (base_url, name, expect) in [
            ("https://api.mistral.ai", "m", separated),
            ("http://h", "mistralai/Devstral-Small-2507", separated),
            ("http://h", "magistral:24b", separated),
            ("http://h", "m", usual),
            ("https://mistral.ai.example.org", "m", usual),
        ] {
            let found = roles(base_url, name, &messages);
            assert_eq!(found, expect, "{base_url} {name}");
        }
    }
    let results = with_results(&[]);
    assert_eq!(
        roles("https://api.mistral.ai", "m", &results),
        ["tool", "tool"]
    );
}

/// Proves FILE-11: a text replaces the images of the history for a model without images.
#[test]
fn images_are_omitted_if_not_accepted() {
    let messages = with_images();
    let blind = ChatCompletions {
        images: false,
        ..settings(false)
    };
    let body = body_of(blind, request(&messages, &[]), None);
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    let text = last["content"].as_str().unwrap();
    assert_eq!(text.matches("does not accept images").count(), 2);
    assert!(!body.to_string().contains("AAAA"));
}

/// Compatible servers get only fields that they accept. Proves LLM-3.
#[test]
fn request_body_for_a_compatible_server() {
    let messages = [Message::user("Hi")];
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let asked = ChatRequest {
        response_schema: Some(&schema),
        system: "",
        ..request(&messages, &[])
    };
    insta::assert_json_snapshot!(body_of(settings(false), asked, Some("What was sh")));
}

#[test]
fn strict_mode_is_used_only_for_suitable_schemas() {
    let messages = [Message::user("Hi")];
    let open = json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}, "required": ["a"], "additionalProperties": false});
    let asked = ChatRequest {
        response_schema: Some(&open),
        ..request(&messages, &[])
    };
    let body = body_of(settings(true), asked, None);
    assert_eq!(
        body["response_format"]["json_schema"]["strict"],
        json!(false)
    );
}

/// The same history has the same bytes, and a longer one begins with them, even if the last request forbids calls.
/// Proves LLM-6.
#[test]
fn consecutive_requests_share_their_prefix() {
    let (history, tools) = (history(), tools());
    let bytes = |messages: usize, choice| {
        let asked = ChatRequest {
            tool_choice: choice,
            ..request(&history[..messages], &tools)
        };
        request_body(settings(true), asked, None).unwrap()
    };
    let tail = b"],\"tool_choice\":\"auto\"}".len();
    for messages in 1..history.len() {
        let shorter = bytes(messages, ToolChoice::Auto);
        assert_eq!(shorter, bytes(messages, ToolChoice::Auto));
        let prefix = &shorter[..shorter.len() - tail];
        for choice in [ToolChoice::Auto, ToolChoice::None] {
            assert!(
                bytes(messages + 1, choice).starts_with(prefix),
                "{messages} messages"
            );
        }
    }
}

#[test]
fn misplaced_parts_are_refused_with_their_place() {
    for (role, part, expect) in [
        (
            Role::User,
            call("a", "x", json!({})),
            "message 1 has the role user but contains a call",
        ),
        (
            Role::Assistant,
            result("a", ""),
            "message 1 has the role assistant but contains a tool result",
        ),
    ] {
        let messages = [
            Message::user("Hi"),
            Message {
                role,
                parts: vec![part],
            },
        ];
        let failure = request_body(settings(true), request(&messages, &[]), None).unwrap_err();
        assert_eq!(
            (failure.kind, failure.message.as_str()),
            (LlmErrorKind::BadRequest, expect)
        );
    }
}

proptest! {
    /// Proves LLM-6.
    #[test]
    fn longer_history_begins_with_the_same_bytes(messages in any_history()) {
        check_prefix(&settings(true), &messages, "")?;
        check_prefix(&settings(false), &messages, "")?;
        let mistral = config(Some("https://api.mistral.ai"));
        check_prefix(&ChatCompletions::new(&mistral, true), &messages, "")?;
    }
}
