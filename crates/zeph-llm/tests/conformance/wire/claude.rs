//! Anthropic's Messages API.

use serde_json::{Value, json};
use zeph_llm::LlmErrorKind;

use super::{Said, Stop};

/// An event with its name.
pub(crate) fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}

/// The kind of the open block.
#[derive(PartialEq)]
enum Open {
    No,
    Text,
    Thinking,
    Call,
}

pub(super) fn events(said: &[Said<'_>]) -> Vec<String> {
    let usage = json!({"input_tokens": 7, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "test-model", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let mut events = vec![
        event(&json!({"type": "message_start", "message": message})),
        event(&json!({"type": "ping"})),
    ];
    let (mut open, mut index) = (Open::No, 0);
    for piece in said {
        let (block, begin, delta) = match piece {
            Said::Text(text) => (
                Open::Text,
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": text}),
            ),
            Said::Reasoning(text) => (
                Open::Thinking,
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                json!({"type": "thinking_delta", "thinking": text}),
            ),
            Said::Call(id, name) => (
                Open::Call,
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": ""}),
            ),
            Said::Arguments(more) => (
                Open::Call,
                Value::Null,
                json!({"type": "input_json_delta", "partial_json": more}),
            ),
            Said::End(_) => (Open::No, Value::Null, Value::Null),
        };
        let begins = open != block || matches!(piece, Said::Call(..));
        if begins && open != Open::No {
            if open == Open::Thinking {
                let delta = json!({"type": "signature_delta", "signature": "c2ln"});
                events.push(event(
                    &json!({"type": "content_block_delta", "index": index, "delta": delta}),
                ));
            }
            events.push(event(
                &json!({"type": "content_block_stop", "index": index}),
            ));
            index += 1;
        }
        if let Said::End(stop) = piece {
            let reason = match stop {
                Stop::Done => "end_turn",
                Stop::Calls => "tool_use",
                Stop::Length => "max_tokens",
            };
            events.push(event(
                &json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 5}}),
            ));
            events.push(event(&json!({"type": "message_stop"})));
            continue;
        }
        if begins {
            events.push(event(
                &json!({"type": "content_block_start", "index": index, "content_block": begin}),
            ));
        }
        events.push(event(
            &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        ));
        open = block;
    }
    events
}

pub(super) fn document(text: &str) -> String {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": {"input_tokens": 7, "output_tokens": 5}})
        .to_string()
}

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
}

pub(super) fn refusal(kind: LlmErrorKind) -> (u16, String) {
    let (status, name, message) = match kind {
        LlmErrorKind::RateLimited => (429, "rate_limit_error", "slow down"),
        LlmErrorKind::Server => (529, "overloaded_error", "Overloaded"),
        LlmErrorKind::Auth => (401, "authentication_error", "invalid x-api-key"),
        LlmErrorKind::NoCredit => (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
        ),
        LlmErrorKind::UnknownModel => (404, "not_found_error", "model: test-model"),
        LlmErrorKind::ContextOverflow => (
            400,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ),
        LlmErrorKind::BadRequest => (400, "invalid_request_error", "tools.0: bad schema"),
        other => panic!("no refusal for {other:?}"),
    };
    (status, error(name, message).to_string())
}

pub(super) fn error_event(kind: LlmErrorKind) -> String {
    event(&match kind {
        LlmErrorKind::Server => error("overloaded_error", "Overloaded"),
        LlmErrorKind::ContextOverflow => error("invalid_request_error", "prompt is too long"),
        other => panic!("no error for {other:?}"),
    })
}

pub(super) fn continued(body: &Value) -> (String, String) {
    let [.., shown, go_on] = body["messages"].as_array().unwrap().as_slice() else {
        panic!("{body}")
    };
    assert_eq!(
        (&shown["role"], &go_on["role"]),
        (&json!("assistant"), &json!("user"))
    );
    let text = |message: &Value| message["content"][0]["text"].as_str().unwrap().to_owned();
    (text(shown), text(go_on))
}
