//! Chat Completions.

use serde_json::{Value, json};
use zeph_llm::LlmErrorKind;

use super::{Said, Stop, error_body};

/// One event with one choice.
pub(crate) fn event(choice: &Value) -> String {
    let chunk = json!({"id": "c-1", "object": "chat.completion.chunk", "choices": [choice]});
    format!("data: {chunk}\n\n")
}

fn delta(delta: &Value) -> String {
    event(&json!({"index": 0, "delta": delta, "finish_reason": null}))
}

pub(super) fn events(said: &[Said<'_>]) -> Vec<String> {
    let mut events = vec![delta(&json!({"role": "assistant", "content": ""}))];
    let mut calls = 0;
    for piece in said {
        let next = match piece {
            Said::Text(text) => delta(&json!({"content": text})),
            Said::Reasoning(text) => delta(&json!({"reasoning_content": text})),
            Said::Call(id, name) => {
                calls += 1;
                let function = json!({"name": name, "arguments": ""});
                delta(
                    &json!({"tool_calls": [{"index": calls - 1, "id": id, "type": "function", "function": function}]}),
                )
            }
            Said::Arguments(more) => {
                let function = json!({"arguments": more});
                delta(&json!({"tool_calls": [{"index": calls - 1, "function": function}]}))
            }
            Said::End(stop) => {
                let reason = match stop {
                    Stop::Done => "stop",
                    Stop::Calls => "tool_calls",
                    Stop::Length => "length",
                };
                events.push(event(
                    &json!({"index": 0, "delta": {}, "finish_reason": reason}),
                ));
                let usage = json!({"prompt_tokens": 7, "completion_tokens": 5});
                let usage = json!({"choices": [], "usage": usage});
                events.push(format!("data: {usage}\n\n"));
                "data: [DONE]\n\n".to_owned()
            }
        };
        events.push(next);
    }
    events
}

pub(super) fn document(text: &str) -> String {
    json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).to_string()
}

pub(super) fn refusal(kind: LlmErrorKind) -> (u16, String) {
    match kind {
        LlmErrorKind::RateLimited => (429, error_body("slow down", "rate_limit_exceeded")),
        LlmErrorKind::Server => (503, error_body("overloaded", "server_error")),
        LlmErrorKind::Auth => (
            401,
            error_body("Incorrect API key provided", "invalid_api_key"),
        ),
        LlmErrorKind::NoCredit => (
            429,
            error_body("You exceeded your current quota", "insufficient_quota"),
        ),
        LlmErrorKind::UnknownModel => (
            404,
            error_body("The model `test-model` does not exist", "model_not_found"),
        ),
        LlmErrorKind::ContextOverflow => (
            400,
            error_body(
                "This model's maximum context length is 5 tokens",
                "context_length_exceeded",
            ),
        ),
        LlmErrorKind::BadRequest => (400, error_body("bad schema", "invalid_request_error")),
        other => panic!("no refusal for {other:?}"),
    }
}

pub(super) fn error_event(kind: LlmErrorKind) -> String {
    let code = match kind {
        LlmErrorKind::Server => json!(503),
        LlmErrorKind::ContextOverflow => json!("context_length_exceeded"),
        other => panic!("no error for {other:?}"),
    };
    let error = json!({"error": {"message": "m", "code": code}});
    format!("data: {error}\n\n")
}

pub(super) fn continued(body: &Value) -> (String, String) {
    let [.., shown, go_on] = body["messages"].as_array().unwrap().as_slice() else {
        panic!("{body}")
    };
    assert_eq!(
        (&shown["role"], &go_on["role"]),
        (&json!("assistant"), &json!("user"))
    );
    let text = |message: &Value| message["content"].as_str().unwrap().to_owned();
    (text(shown), text(go_on))
}
