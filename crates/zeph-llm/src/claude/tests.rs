//! Tests of parsed events and of request bodies, without a network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::wire::Messages;
use crate::error::LlmErrorKind;
use crate::http_provider::test_support::read;
use crate::http_provider::testing::{
    any_history, body_of, call, check_chunks, check_no_prefix_yields_a_call, check_prefix, image,
    model, reasoning, request, result, text, tools, user,
};
use crate::message::{Message, MessagePart};
use crate::provider::{ChatRequest, ChatResponse, StopReason, StreamEvent};
use crate::tool::ToolChoice;
use crate::usage::Usage;

fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}

fn stream(events: &[Value]) -> String {
    events.iter().map(event).collect()
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}})
}

fn arguments(index: u64, more: &str) -> Value {
    delta(
        index,
        json!({"type": "input_json_delta", "partial_json": more}),
    )
}

fn answer(events: &[Value]) -> ChatResponse {
    let body = stream(events);
    let outcome = read::<Messages>([body.as_bytes()]).0;
    outcome.unwrap_or_else(|failure| panic!("{}: {body}", failure.message))
}

/// The names and inputs of the calls of a response.
fn calls(events: &[Value]) -> Vec<(String, Value)> {
    let answer = answer(events);
    let calls = answer.tool_uses();
    calls
        .map(|call| (call.name.clone(), call.input.clone()))
        .collect()
}

fn parts(events: &[Value]) -> Vec<MessagePart> {
    answer(events).into_message().parts
}

/// Proves LLM-3, LLM-4: the forms in which servers send a call.
#[test]
fn calls_of_all_dialects_are_parsed() {
    let block = |input: Value| {
        let mut block = json!({"type": "tool_use", "id": "toolu_1", "name": "bash"});
        if !input.is_null() {
            block["input"] = input;
        }
        start(0, block)
    };
    let ls = json!({"command": "ls"});
    for (what, events, expect) in [
        (
            "in pieces",
            vec![
                block(json!({})),
                arguments(0, ""),
                arguments(0, "{\"command\":"),
                arguments(0, "\"ls\"}"),
                stop(0),
                end("tool_use"),
            ],
            ls.clone(),
        ),
        (
            "no `input` at the beginning, as llama.cpp begins them",
            vec![
                block(Value::Null),
                arguments(0, "{\"command\":\"ls\"}"),
                stop(0),
                end("tool_use"),
            ],
            ls.clone(),
        ),
        (
            "whole at the beginning, no pieces",
            vec![block(ls.clone()), stop(0), end("tool_use")],
            ls.clone(),
        ),
        (
            "whole at the beginning, and again in pieces",
            vec![
                block(ls.clone()),
                arguments(0, "{\"command\":\"ls\"}"),
                end("tool_use"),
            ],
            ls.clone(),
        ),
        (
            "nothing at all",
            vec![block(json!({})), stop(0), end("tool_use")],
            json!({}),
        ),
        (
            "no stop of the block, another reason",
            vec![block(ls.clone()), end("end_turn")],
            ls.clone(),
        ),
        (
            "no message_delta",
            vec![block(ls.clone()), stop(0), json!({"type": "message_stop"})],
            ls.clone(),
        ),
    ] {
        let expect = [("bash".to_owned(), expect)];
        assert_eq!(calls(&events), expect, "{what}");
    }
}

/// The index distinguishes blocks, in any order of their pieces. Proves LLM-4.
#[test]
fn interleaved_blocks_are_assembled_by_index() {
    let events = [
        start(0, json!({"type": "text", "text": "I "})),
        start(1, json!({"type": "tool_use", "id": "a", "name": "read"})),
        delta(0, json!({"type": "text_delta", "text": "look."})),
        start(2, json!({"type": "tool_use", "id": "a", "name": "bash"})),
        arguments(1, "{\"path\":"),
        arguments(2, "{\"n\":1}"),
        arguments(1, "\"x\"}"),
        stop(2),
        stop(1),
        end("tool_use"),
    ];
    let expect = [
        ("read".to_owned(), json!({"path": "x"})),
        ("bash".to_owned(), json!({"n": 1})),
    ];
    assert_eq!(calls(&events), expect);
    let parts = parts(&events);
    assert_eq!(parts[0], text("I look."));
    let ids: Vec<_> = parts
        .iter()
        .filter_map(|part| match part {
            MessagePart::ToolUse(call) => Some(&*call.id),
            _ => None,
        })
        .collect();
    assert_eq!(ids[0], "a");
    assert!(ids[1].starts_with("call_"), "an id used twice: {ids:?}");
}

/// Unknown content is skipped. Proves LLM-3.
#[test]
fn unknown_events_blocks_and_deltas_are_skipped() {
    let events = [
        json!({"type": "from_the_future", "x": 1}),
        start(0, json!({"type": "future_block", "x": [1]})),
        delta(0, json!({"type": "future_delta"})),
        delta(0, json!({"type": "text_delta", "text": "not shown"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "citations_delta", "citation": {}})),
        delta(1, json!({"type": "text_delta", "text": "shown"})),
        json!({"type": "ping"}),
        end("end_turn"),
    ];
    assert_eq!(parts(&events), [text("shown")]);
}

/// Thinking is stored in its place, with the signature that the API requires. Proves LLM-3.
#[test]
fn thinking_is_stored_with_its_signature() {
    let events = [
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm"})),
        delta(0, json!({"type": "thinking_delta", "thinking": "."})),
        delta(0, json!({"type": "signature_delta", "signature": "c2"})),
        delta(0, json!({"type": "signature_delta", "signature": "ln"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "c2VhbGVk"})),
        stop(1),
        start(2, json!({"type": "thinking", "thinking": "unsigned"})),
        stop(2),
        start(3, json!({"type": "text", "text": "So."})),
        end("end_turn"),
    ];
    let expect = [
        reasoning("Hm.", Some("anthropic-signature:c2ln")),
        reasoning("", Some("anthropic-redacted:c2VhbGVk")),
        reasoning("unsigned", None),
        text("So."),
    ];
    assert_eq!(parts(&events), expect);
    // Thinking is sent back unchanged; without a signature it is not sent.
    let messages = [Message::user("Hi"), model(parts(&events))];
    let body = body_of(&wire(true), request(&messages, &[]));
    let blocks = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
        {"type": "text", "text": "So."},
    ]);
    assert_eq!(body["messages"][1]["content"], blocks);
}

/// The API refuses a message of the model that ends with thinking. Proves LLM-3.
#[test]
fn thinking_at_the_end_is_left_out() {
    let hm = || reasoning("Hm.", Some("anthropic-signature:c2ln"));
    let sealed = || reasoning("", Some("anthropic-redacted:c2VhbGVk"));
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
    let said = |text: &str| json!({"type": "text", "text": text});
    for (parts, expect) in [
        (vec![hm()], json!([said("[nothing]")])),
        (
            vec![hm(), sealed(), text(" \n")],
            json!([said("[nothing]")]),
        ),
        (
            vec![hm(), text("So."), hm(), sealed()],
            json!([thinking, said("So.")]),
        ),
        (
            vec![hm(), call("a", "bash", json!({}))],
            json!([thinking, {"type": "tool_use", "id": "a", "name": "bash", "input": {}}]),
        ),
    ] {
        let messages = [Message::user("Hi"), model(parts), Message::user("And?")];
        let body = body_of(&wire(true), request(&messages, &[]));
        assert_eq!(body["messages"][1]["content"], expect);
    }
}

/// Tokens that were read from the cache or written to it are part of the input. Proves LLM-6.
#[test]
fn usage_counts_cached_tokens() {
    let begin = |usage: Value| json!({"type": "message_start", "message": {"usage": usage}});
    let counted = |events: &[Value]| answer(events).usage();
    let both = [
        begin(
            json!({"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 1}),
        ),
        end("end_turn"),
    ];
    let expect = Usage {
        input_tokens: 330,
        output_tokens: 3,
        cached_tokens: 300,
        cache_write_tokens: 20,
    };
    assert_eq!(counted(&both), expect);
    // Totals that are repeated at the end count once.
    let again = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 3}});
    assert_eq!(counted(&[both[0].clone(), again]), expect);
    let nothing = [begin(json!({})), end("end_turn")];
    assert_eq!(counted(&nothing).input_tokens, 0);
    // An absurd count is ignored.
    let huge = begin(json!({"input_tokens": u64::MAX, "cache_read_input_tokens": u64::MAX}));
    assert_eq!(counted(&[huge, end("end_turn")]).input_tokens, 0);
}

/// Proves LLM-3.
#[test]
fn stop_reasons_are_mapped() {
    for (reason, expect) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("refusal", StopReason::Refusal),
        ("pause_turn", StopReason::EndTurn),
        ("tool_use", StopReason::EndTurn),
    ] {
        let events = [start(0, json!({"type": "text", "text": "a"})), end(reason)];
        let ChatResponse::Text { stop, .. } = answer(&events) else {
            panic!("{reason}");
        };
        assert_eq!(stop, expect, "{reason}");
    }
}

/// A call that the limit cut off is dropped with a notice. Proves LLM-4.
#[test]
fn call_cut_off_by_the_limit_is_dropped() {
    let body = stream(&[
        start(0, json!({"type": "tool_use", "id": "a", "name": "write"})),
        arguments(0, "{\"path\":\"x\",\"content\":\"12"),
        stop(0),
        end("max_tokens"),
    ]);
    let (answer, events) = read::<Messages>([body.as_bytes()]);
    assert_eq!(answer.unwrap().tool_uses().count(), 0);
    let last = events.last();
    assert!(
        matches!(last, Some(StreamEvent::Notice(text)) if text.contains("`write`")),
        "{last:?}"
    );
}

/// Proves LLM-5.
#[test]
fn invalid_response_is_reported() {
    use LlmErrorKind as Kind;
    let error = |kind: &str, message: &str| {
        event(&json!({"type": "error", "error": {"type": kind, "message": message}}))
    };
    for (body, kind, contains) in [
        (String::new(), Kind::StreamCut, "ended before"),
        (
            event(&json!({"type": "ping"})),
            Kind::StreamCut,
            "ended before",
        ),
        (
            error("overloaded_error", "Overloaded"),
            Kind::Server,
            "Overloaded",
        ),
        (error("api_error", "Internal"), Kind::Server, "Internal"),
        (error("rate_limit_error", "slow"), Kind::RateLimited, "slow"),
        (
            error("authentication_error", "invalid x-api-key"),
            Kind::Auth,
            "invalid",
        ),
        (
            error("permission_error", "no access"),
            Kind::Auth,
            "no access",
        ),
        (
            error("invalid_request_error", "prompt is too long: 9 > 8"),
            Kind::ContextOverflow,
            "compact",
        ),
        (
            error("invalid_request_error", "tools.0: bad"),
            Kind::BadRequest,
            "tools.0",
        ),
        (error("billing_error", "pay"), Kind::NoCredit, "credit"),
        ("data: hello\n\n".to_owned(), Kind::Protocol, "hello"),
        (
            event(&delta(0, json!({"type": "text_delta", "text": "a"}))),
            Kind::Protocol,
            "block 0",
        ),
        (
            stream(&[
                start(0, json!({"type": "tool_use", "id": "a"})),
                end("tool_use"),
            ]),
            Kind::Protocol,
            "without the name of a tool",
        ),
        (
            "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}"
                .to_owned(),
            Kind::Server,
            "busy",
        ),
        ("{\"hello\":1}".to_owned(), Kind::Protocol, "{\"hello\":1}"),
        (
            "{\"content\":[{\"ty".to_owned(),
            Kind::StreamCut,
            "ended before",
        ),
    ] {
        let failure = read::<Messages>([body.as_bytes()]).0.expect_err(&body);
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
    let before = stream(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}),
        start(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "I löök. 😀"})),
        stop(0),
        start(
            1,
            json!({"type": "tool_use", "id": "a", "name": "bash", "input": {}}),
        ),
        arguments(1, "{\"command\":"),
        arguments(1, "\"ls 😀\"}"),
        stop(1),
    ]);
    let last = event(&end("tool_use"));
    let complete = before.len() + last.len() - 2;
    let whole = before + &last + &event(&json!({"type": "message_stop"}));
    check_no_prefix_yields_a_call::<Messages>(&whole, complete);
}

fn wire(anthropic: bool) -> Messages {
    Messages {
        model: "m".to_owned(),
        max_output_tokens: 100,
        anthropic,
        images: true,
        effort: None,
    }
}

/// The places of breakpoints in a body.
fn breakpoints(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == "cache_control" {
                    assert_eq!(value, &json!({"type": "ephemeral"}));
                    found.push(path.to_owned());
                }
                breakpoints(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                breakpoints(item, &format!("{path}/{at}"), found);
            }
        }
        _ => {}
    }
}

/// Proves LLM-6: at most four, on the last tool, the system prompt and the last two messages of the user, with any
/// content.
#[test]
fn cache_breakpoints_are_at_most_four() {
    let mut tools = tools();
    tools.push(tools[0].clone());
    let messages = [
        Message::user("one"),
        model(vec![call("a", "bash", json!({}))]),
        user(vec![result("a", "x"), image("AAAA")]),
        model(vec![call("b", "bash", json!({}))]),
        user(vec![result("b", "y"), image("BBBB"), text("  ")]),
    ];
    let found = |count: usize, tools| {
        let mut found = Vec::new();
        let body = body_of(&wire(true), request(&messages[..count], tools));
        breakpoints(&body, "", &mut found);
        found
    };
    let expect = [
        "/tools/1",
        "/system/0",
        "/messages/2/content/0",
        "/messages/4/content/0",
    ];
    assert_eq!(found(5, &tools), expect);
    let expect = ["/tools/1", "/system/0", "/messages/0/content/0"];
    assert_eq!(found(1, &tools), expect);
    assert_eq!(found(0, &[]), ["/system/0"]);
}

/// Content that the API would refuse permanently is repaired before sending, each time in the same way. Proves LLM-3.
#[test]
fn histories_of_other_providers_are_repaired() {
    let long = "x".repeat(200);
    let messages = [
        user(vec![text(" \n")]),
        model(vec![
            text("\t"),
            reasoning("of Chat Completions", None),
            reasoning("of Responses", Some("openai-item:{}")),
            call("call.1:ä", "what is.this", json!("{broken")),
            call("", "bash", Value::Null),
            call(&long, "bash", json!([1])),
        ]),
        user(vec![
            text("words before"),
            result("call.1:ä", ""),
            result("", "y"),
            result(&long, "z"),
        ]),
        model(vec![]),
    ];
    let body = body_of(&wire(true), request(&messages, &[]));
    let cut = "x".repeat(128);
    let marked = json!({"type": "ephemeral"});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "[nothing]", "cache_control": marked}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "call_1__", "name": "what_is_this", "input": {"invalid_arguments": "{broken"}},
                {"type": "tool_use", "id": "_", "name": "bash", "input": {}},
                {"type": "tool_use", "id": cut, "name": "bash", "input": {"invalid_arguments": [1]}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1__", "content": ""},
                {"type": "tool_result", "tool_use_id": "_", "content": "y"},
                {"type": "tool_result", "tool_use_id": cut, "content": "z"},
                {"type": "text", "text": "words before", "cache_control": marked},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "[nothing]"}]},
        ])
    );
}

/// Proves FILE-11: the image of a result is inside it; another is a separate block; a text replaces it for a model
/// without images.
#[test]
fn images_are_sent_or_replaced_by_text() {
    let failed = MessagePart::ToolResult {
        tool_use_id: "b".to_owned(),
        content: "no such file".to_owned(),
        is_error: true,
    };
    let messages = [
        Message::user("Hi"),
        model(vec![
            call("a", "read", json!({})),
            call("b", "read", json!({})),
        ]),
        user(vec![
            result("a", "PNG image"),
            image("AAAA"),
            failed,
            image("CCCC"),
            text("And this:"),
            image("BBBB"),
        ]),
        model(vec![text("I see.")]),
    ];
    let source = |data: &str| json!({"type": "base64", "media_type": "image/png", "data": data});
    let body = body_of(&wire(true), request(&messages, &[]));
    assert_eq!(
        body["messages"][2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": [
                {"type": "text", "text": "PNG image"},
                {"type": "image", "source": source("AAAA")},
            ]},
            {"type": "tool_result", "tool_use_id": "b", "content": "no such file", "is_error": true},
            {"type": "image", "source": source("CCCC")},
            {"type": "text", "text": "And this:"},
            {"type": "image", "source": source("BBBB"), "cache_control": {"type": "ephemeral"}},
        ])
    );
    let blind = Messages {
        images: false,
        ..wire(true)
    };
    let body = body_of(&blind, request(&messages, &[])).to_string();
    assert_eq!(body.matches("does not accept images").count(), 3);
    assert!(!body.contains("AAAA") && !body.contains("BBBB"), "{body}");
}

/// Proves LLM-3, ERR-21 on the wire: fields around the messages, for Anthropic and for servers that may refuse new
/// ones.
#[test]
fn request_has_the_fields_around_the_messages() {
    let (messages, tools) = ([Message::user("Hi")], tools());
    let schema = json!({"type": "object"});
    let asked = ChatRequest {
        response_schema: Some(&schema),
        max_output_tokens: Some(50),
        tool_choice: ToolChoice::None,
        system: " ",
        ..request(&messages, &tools)
    };
    let body = body_of(&wire(true), asked);
    assert_eq!(body["max_tokens"], 50);
    assert_eq!(body["stream"], true);
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(
        body["output_config"],
        json!({"format": {"type": "json_schema", "schema": schema}})
    );
    assert_eq!(body.get("system"), None);
    let body = body_of(&wire(false), asked);
    assert_eq!(body.get("output_config"), None);
    // The configured limit of the provider applies.
    let many = ChatRequest {
        max_output_tokens: Some(5000),
        ..request(&messages, &[])
    };
    let body = body_of(&wire(true), many);
    assert_eq!(body["max_tokens"], 100);
    assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));
}

proptest! {
    /// Proves LLM-6.
    #[test]
    fn longer_history_begins_with_the_same_bytes(messages in any_history()) {
        check_prefix(&wire(true), &messages, r#","cache_control":{"type":"ephemeral"}"#)?;
    }

    /// No input makes the reader panic, and the chunking of the network changes nothing.
    #[test]
    fn chunking_of_any_bytes_has_no_effect(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..40) {
        check_chunks::<Messages>(&bytes, size)?;
        let text = String::from_utf8_lossy(&bytes);
        let valid = stream(&[start(0, json!({"type": "text", "text": text})), end("end_turn")]);
        check_chunks::<Messages>(valid.as_bytes(), size)?;
        prop_assert!(read::<Messages>([valid.as_bytes()]).0.is_ok());
    }
}
