//! Tests of parsed events and of request bodies, without a network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::wire::Responses;
use crate::error::LlmErrorKind;
use crate::http_provider::request_body::request_body;
use crate::http_provider::test_support::read;
use crate::http_provider::testing::{
    any_history, any_message, body_of, call, check_chunks, check_no_prefix_yields_a_call,
    check_prefix, image, model, reasoning, request, result, text, tools, user,
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

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn say(more: &str) -> Value {
    json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": more})
}

fn function(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "bash", "arguments": arguments})
}

fn arguments(index: u64, more: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": index, "delta": more})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": []}})
}

fn answer_to(body: &str) -> ChatResponse {
    let outcome = read::<Responses>([body.as_bytes()]).0;
    outcome.unwrap_or_else(|failure| panic!("{}: {body}", failure.message))
}

fn parts(events: &[Value]) -> Vec<MessagePart> {
    answer_to(&stream(events)).into_message().parts
}

/// Proves LLM-3, LLM-4: the forms in which servers send a call.
#[test]
fn calls_of_all_dialects_are_parsed() {
    let ls = "{\"command\":\"ls\"}";
    let without_index = |mut event: Value| {
        event.as_object_mut().unwrap().remove("output_index");
        event
    };
    let anonymous = |event: Value| {
        let mut event = without_index(event);
        event.as_object_mut().unwrap().remove("item_id");
        event
    };
    let arguments_done = json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 0, "arguments": ls});
    for (what, events) in [
        (
            "in pieces, and again whole",
            vec![
                added(0, function("")),
                arguments(0, "{\"command\":"),
                arguments(0, "\"ls\"}"),
                arguments_done.clone(),
                done(0, function(ls)),
                completed(),
            ],
        ),
        (
            "another id in each event",
            vec![
                added(0, function("")),
                json!({"type": "response.function_call_arguments.delta", "item_id": "other", "output_index": 0, "delta": ls}),
                completed(),
            ],
        ),
        (
            "told apart by ids, as llama.cpp does it",
            vec![
                without_index(added(0, function(""))),
                without_index(arguments(0, ls)),
                without_index(done(0, function(ls))),
                completed(),
            ],
        ),
        (
            "told apart by nothing",
            vec![
                anonymous(added(0, function(""))),
                anonymous(arguments(0, ls)),
                completed(),
            ],
        ),
        (
            "whole in the event that ends the arguments",
            vec![added(0, function("")), arguments_done, completed()],
        ),
        (
            "whole in the item",
            vec![added(0, function("")), done(0, function(ls)), completed()],
        ),
        (
            "without a beginning",
            vec![done(0, function(ls)), completed()],
        ),
        (
            "in the end alone",
            vec![
                json!({"type": "response.completed", "response": {"status": "completed", "output": [function(ls)]}}),
            ],
        ),
        (
            "arguments as an object",
            vec![
                done(
                    0,
                    json!({"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": {"command": "ls"}}),
                ),
                completed(),
            ],
        ),
    ] {
        let expect = [call("call_1", "bash", json!({"command": "ls"}))];
        assert_eq!(parts(&events), expect, "{what}");
    }
    let document = json!({"status": "completed", "output": [function(ls)]}).to_string();
    let expect = [call("call_1", "bash", json!({"command": "ls"}))];
    assert_eq!(answer_to(&document).into_message().parts, expect);
}

/// Calls with interleaved pieces are distinguished. Proves LLM-4.
#[test]
fn interleaved_calls_are_assembled() {
    let item = |id: &str, name: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": ""});
    let events = [
        added(0, item("a", "read")),
        added(1, item("a", "bash")),
        arguments(0, "{\"path\":"),
        arguments(1, "{\"n\":1}"),
        arguments(0, "\"x\"}"),
        completed(),
    ];
    let answer = answer_to(&stream(&events));
    let calls: Vec<_> = answer.tool_uses().collect();
    assert_eq!(
        (&*calls[0].id, &calls[0].input),
        ("a", &json!({"path": "x"}))
    );
    assert_eq!(calls[1].input, json!({"n": 1}));
    assert!(calls[1].id.starts_with("call_"), "an id used twice");
}

/// A reasoning item is sent back byte by byte, with any content. Proves LLM-3.
#[test]
fn reasoning_is_returned_unchanged() {
    let item = r#"{"id":"rs_1", "type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gAAA\u0042","n":1.50e+2,"z":1,"a":null}"#;
    let body = [
        event(&added(0, json!({"type": "reasoning", "id": "rs_1"}))),
        event(&json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Hm."})),
        format!("data: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{item}}}\n\n"),
        event(&done(1, function("{}"))),
        event(&completed()),
    ]
    .concat();
    let parts = answer_to(&body).into_message().parts;
    assert_eq!(
        parts[0],
        reasoning("Hm.", Some(&format!("openai-item:{item}")))
    );
    let messages = [Message::user("Hi"), model(parts)];
    let sent = request_body(&wire(true), request(&messages, &[]), None).unwrap();
    let sent = String::from_utf8(sent.to_vec()).unwrap();
    assert!(
        sent.contains(&format!(",{item},{{\"type\":\"function_call\"")),
        "{sent}"
    );
}

/// Proves LLM-3: summaries are shown; content that no model can read is not sent back.
#[test]
fn reasoning_without_content_is_stored_but_not_sent() {
    let part = |index: u64| json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": index});
    let summary = |more: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": more});
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "One."}], "encrypted_content": null});
    let events = [
        added(0, json!({"type": "reasoning", "id": "rs_1"})),
        part(0),
        summary("One."),
        part(1),
        summary("Two."),
        done(0, item.clone()),
        done(1, function("{}")),
        completed(),
    ];
    let said = parts(&events);
    assert_eq!(said[0], reasoning("One.\n\nTwo.", None));
    // Not streamed, it is read from the item.
    assert_eq!(
        parts(&[done(0, item), completed()]),
        [reasoning("One.", None)]
    );
    // Sealed, but nothing follows it: the API would refuse that.
    let sealed = "openai-item:{\"type\":\"reasoning\",\"encrypted_content\":\"g\"}";
    let messages = [
        Message::user("Hi"),
        model(vec![text("I look."), reasoning("", Some(sealed))]),
        model(vec![reasoning("", Some(sealed)), text("")]),
    ];
    let body = body_of(&wire(true), request(&messages, &[]));
    assert_eq!(body["input"].as_array().unwrap().len(), 2, "{body}");
}

/// Proves LLM-3, LLM-6 (cached tokens are counted).
#[test]
fn stop_reasons_and_usage_are_parsed() {
    let end = |kind: &str, response: Value| {
        stream(&[say("a"), json!({"type": kind, "response": response})])
    };
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 1}, "output_tokens": 3});
    let counted = Usage {
        input_tokens: 9,
        output_tokens: 3,
        cached_tokens: 8,
        cache_write_tokens: 1,
    };
    for (body, expect) in [
        (
            end(
                "response.completed",
                json!({"status": "completed", "usage": usage}),
            ),
            StopReason::EndTurn,
        ),
        (
            end(
                "response.incomplete",
                json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": usage}),
            ),
            StopReason::MaxTokens,
        ),
        (
            end(
                "response.incomplete",
                json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "usage": usage}),
            ),
            StopReason::Refusal,
        ),
    ] {
        let ChatResponse::Text { parts, stop, usage } = answer_to(&body) else {
            panic!("{body}");
        };
        assert_eq!((parts, stop, usage), (vec![text("a")], expect, counted));
    }
    let refused = stream(&[
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "no"}),
        completed(),
    ]);
    let ChatResponse::Text { parts, stop, .. } = answer_to(&refused) else {
        panic!("{refused}");
    };
    assert_eq!((parts, stop), (vec![text("no")], StopReason::Refusal));
}

/// Unknown items are skipped, with any content. Proves LLM-3.
#[test]
fn unknown_events_and_items_are_skipped() {
    let events = [
        json!({"type": "response.web_search_call.searching", "output_index": 0, "delta": {"x": 1}, "item": 7}),
        added(0, json!({"type": "web_search_call", "id": "ws_1"})),
        done(0, json!({"type": "web_search_call", "id": "ws_1"})),
        added(1, json!({"type": "message", "id": "m", "content": []})),
        json!({"type": "response.content_part.added", "output_index": 1, "part": {}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "shown"}),
        json!({"type": "response.output_text.annotation.added", "output_index": 1}),
        done(
            1,
            json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "shown"}]}),
        ),
        json!({"type": "keepalive"}),
        completed(),
    ];
    assert_eq!(parts(&events), [text("shown")]);
}

/// Proves LLM-5.
#[test]
fn invalid_response_is_reported() {
    use LlmErrorKind as Kind;
    let failed = |code: &str, message: &str| {
        event(
            &json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": message}}}),
        )
    };
    let error = |code: Value, message: &str| {
        event(&json!({"type": "error", "code": code, "message": message, "param": null}))
    };
    for (body, kind, contains) in [
        (String::new(), Kind::StreamCut, "ended before"),
        (event(&say("a")), Kind::StreamCut, "ended before"),
        (
            "data: [DONE]\n\n".to_owned(),
            Kind::StreamCut,
            "ended before",
        ),
        (
            stream(&[done(0, function("{}"))]) + "data: [DONE]\n\n",
            Kind::StreamCut,
            "ended before",
        ),
        (failed("server_error", "oops"), Kind::Server, "oops"),
        (
            failed("rate_limit_exceeded", "slow"),
            Kind::RateLimited,
            "slow",
        ),
        (error(Value::Null, "boom"), Kind::Server, "boom"),
        (error(json!("invalid_api_key"), "bad"), Kind::Auth, "bad"),
        (
            error(json!("insufficient_quota"), "pay"),
            Kind::NoCredit,
            "credit",
        ),
        (
            event(
                &json!({"type": "error", "error": {"code": "context_length_exceeded", "message": "long"}}),
            ),
            Kind::ContextOverflow,
            "compact",
        ),
        ("data: hello\n\n".to_owned(), Kind::Protocol, "hello"),
        (event(&arguments(3, "{}")), Kind::Protocol, "never began"),
        (
            event(&json!({"type": "response.completed"})),
            Kind::Protocol,
            "without a reason",
        ),
        (
            stream(&[
                added(0, json!({"type": "function_call", "call_id": "a"})),
                completed(),
            ]),
            Kind::Protocol,
            "without the name of a tool",
        ),
        ("{\"hello\":1}".to_owned(), Kind::Protocol, "{\"hello\":1}"),
        (
            "{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"oops\"}}"
                .to_owned(),
            Kind::Server,
            "oops",
        ),
        (
            "{\"output\":[{\"ty".to_owned(),
            Kind::StreamCut,
            "ended before",
        ),
    ] {
        let failure = read::<Responses>([body.as_bytes()]).0.expect_err(&body);
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
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        say("I löök. 😀"),
        added(1, function("")),
        arguments(1, "{\"command\":"),
        arguments(1, "\"ls 😀\"}"),
        done(1, function("{\"command\":\"ls 😀\"}")),
    ]);
    let last = event(&completed());
    let complete = before.len() + last.len() - 2;
    check_no_prefix_yields_a_call::<Responses>(&(before + &last), complete);
}

/// A call that the limit cut off is dropped with a notice. Proves LLM-4.
#[test]
fn call_cut_off_by_the_limit_is_dropped() {
    let body = stream(&[
        added(0, function("")),
        arguments(0, "{\"command\":\"l"),
        json!({"type": "response.incomplete", "response": {"status": "incomplete"}}),
    ]);
    let (answer, events) = read::<Responses>([body.as_bytes()]);
    assert_eq!(answer.unwrap().tool_uses().count(), 0);
    let last = events.last();
    assert!(
        matches!(last, Some(StreamEvent::Notice(text)) if text.contains("`bash`")),
        "{last:?}"
    );
}

fn wire(openai: bool) -> Responses {
    Responses {
        model: "m".to_owned(),
        max_output_tokens: Some(100),
        openai,
        images: true,
        effort: None,
    }
}

/// Proves LLM-3, LLM-6, ERR-21 on the wire: the fields around the input, for OpenAI and for
/// servers that may refuse some of them.
#[test]
fn request_has_the_fields_around_the_input() {
    let (messages, tools) = ([Message::user("Hi")], tools());
    let schema = json!({"type": "object"});
    let asked = ChatRequest {
        response_schema: Some(&schema),
        max_output_tokens: Some(50),
        tool_choice: ToolChoice::None,
        ..request(&messages, &tools)
    };
    let mut body = body_of(&wire(true), asked);
    let parameters = body["tools"][0]["parameters"].take();
    assert_eq!(parameters["required"], json!(["command"]));
    let content = json!([{"type": "input_text", "text": "Hi"}]);
    assert_eq!(
        body,
        json!({
            "model": "m",
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 50,
            "prompt_cache_key": "session-1",
            "instructions": "You are Zeph.",
            "tools": [{"type": "function", "name": "bash", "description": "Runs a command.", "parameters": null, "strict": false}],
            "input": [{"type": "message", "role": "user", "content": content}],
            "tool_choice": "none",
            "text": {"format": {"type": "json_schema", "name": "answer", "strict": true, "schema": schema}},
        })
    );
    let plain = ChatRequest {
        json_object: true,
        system: "",
        ..request(&messages, &[])
    };
    let body = body_of(&wire(true), plain);
    assert_eq!(body["text"], json!({"format": {"type": "json_object"}}));
    let mut body = body_of(&wire(false), plain);
    body.as_object_mut().unwrap().remove("input");
    let expect = json!({"model": "m", "stream": true, "store": false, "max_output_tokens": 100});
    assert_eq!(body, expect);
}

/// Proves LLM-3: OpenAI refuses `include` for a model that does not reason.
#[test]
fn sealed_reasoning_is_requested_only_from_models_that_reason() {
    let messages = [Message::user("Hi")];
    for (name, is_requested) in [
        ("gpt-5", true),
        ("gpt-5-mini", true),
        ("o3", true),
        ("gpt-3.5-turbo", false),
        ("gpt-4.1", false),
        ("gpt-4o-mini", false),
        ("gpt-5-chat-latest", false),
        ("chatgpt-4o-latest", false),
        ("ft:gpt-4.1-2025-04-14:org::id", false),
        ("ft:o4-mini-2025-04-16:org::id", true),
    ] {
        let wire = Responses {
            model: name.to_owned(),
            ..wire(true)
        };
        let body = body_of(&wire, request(&messages, &[]));
        assert_eq!(body.get("include").is_some(), is_requested, "{name}");
    }
}

/// Proves FILE-11, LLM-3: images of results follow the results; a text replaces them for a model without images;
/// content of another provider is repaired.
#[test]
fn histories_of_other_providers_are_converted() {
    let messages = [
        user(vec![text("")]),
        model(vec![
            reasoning("of Claude", Some("anthropic-signature:x")),
            reasoning("broken", Some("openai-item:{broken")),
            call("call.1", "what is.this", json!("{broken")),
        ]),
        user(vec![
            result("call.1", "PNG image"),
            image("AAAA"),
            text("And:"),
            image("BBBB"),
        ]),
    ];
    let body = body_of(&wire(true), request(&messages, &[]));
    let image = |data: &str| json!({"type": "input_image", "detail": "auto", "image_url": format!("data:image/png;base64,{data}")});
    let said = |text: &str| json!({"type": "input_text", "text": text});
    assert_eq!(
        body["input"],
        json!([
            {"type": "function_call", "call_id": "call_1", "name": "what_is_this", "arguments": "{\"invalid_arguments\":\"{broken\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "PNG image"},
            {"type": "message", "role": "user", "content": [
                said("The image of the result of call_1:"), image("AAAA"), said("And:"), image("BBBB"),
            ]},
        ])
    );
    let blind = Responses {
        images: false,
        ..wire(false)
    };
    let body = body_of(&blind, request(&messages, &[])).to_string();
    assert_eq!(body.matches("does not accept images").count(), 2);
    assert!(!body.contains("AAAA") && !body.contains("BBBB"), "{body}");
}

/// Whether an element of `input` has exactly the fields of one of the vendor's types.
fn is_of_a_type(element: &Value) -> bool {
    let fields = |value: &Value, names: &[&str]| {
        let object = value.as_object().unwrap();
        object
            .keys()
            .all(|key| key == "type" || names.contains(&key.as_str()))
            && names.iter().all(|name| object.contains_key(*name))
    };
    let texts = |value: &Value, names: &[&str]| {
        fields(value, names) && names.iter().all(|name| value[name].is_string())
    };
    match (element["type"].as_str(), element["role"].as_str()) {
        (Some("message"), Some("assistant")) => texts(element, &["role", "content"]),
        (Some("message"), Some("user")) => {
            let parts = element["content"].as_array().unwrap();
            let is_part = |part: &Value| match part["type"].as_str() {
                Some("input_text") => texts(part, &["text"]),
                Some("input_image") => texts(part, &["detail", "image_url"]),
                _ => false,
            };
            fields(element, &["role", "content"]) && !parts.is_empty() && parts.iter().all(is_part)
        }
        (Some("function_call"), None) => texts(element, &["call_id", "name", "arguments"]),
        (Some("function_call_output"), None) => texts(element, &["call_id", "output"]),
        // An unchanged item.
        (Some("reasoning"), None) => true,
        _ => false,
    }
}

proptest! {
    /// Proves LLM-3: reasoning precedes the text that followed it, and every element has a type that the API knows.
    #[test]
    fn elements_have_the_types_of_the_api(messages in proptest::collection::vec(any_message(), 0..8), images: bool) {
        let wire = Responses { images, ..wire(true) };
        let body = body_of(&wire, request(&messages, &[]));
        let input = body["input"].as_array().unwrap();
        for (at, element) in input.iter().enumerate() {
            prop_assert!(is_of_a_type(element), "{element}");
            if element["type"] == "reasoning" {
                let next = &input[at + 1];
                let follows = next["role"] == "assistant"
                    || next["type"] == "function_call"
                    || next["type"] == "reasoning";
                prop_assert!(follows, "{next} follows reasoning");
            }
        }
    }

    /// Proves LLM-6.
    #[test]
    fn longer_history_begins_with_the_same_bytes(messages in any_history()) {
        check_prefix(&wire(true), &messages, "")?;
    }

    /// No input makes the reader panic, and the chunking of the network changes nothing.
    #[test]
    fn chunking_of_any_bytes_has_no_effect(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..40) {
        check_chunks::<Responses>(&bytes, size)?;
        let valid = stream(&[say(&String::from_utf8_lossy(&bytes)), completed()]);
        check_chunks::<Responses>(valid.as_bytes(), size)?;
        prop_assert!(read::<Responses>([valid.as_bytes()]).0.is_ok());
    }
}
