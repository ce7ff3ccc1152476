//! The chat API of Ollama.

use serde_json::{Value, json};
use zeph_llm::LlmErrorKind;

use super::{Said, Stop};

fn line(message: &Value) -> String {
    let line = json!({"model": "test-model", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false});
    format!("{line}\n")
}

/// A call is buffered until its arguments are complete, because this wire has only complete calls.
pub(super) fn events(said: &[Said<'_>]) -> Vec<String> {
    let mut events = Vec::new();
    let mut held: Option<(&str, String)> = None;
    for piece in said {
        if let (Some((_, arguments)), Said::Arguments(more)) = (&mut held, piece) {
            arguments.push_str(more);
            continue;
        }
        if let Some((name, arguments)) = held.take() {
            events.push(call(name, &arguments));
        }
        match piece {
            Said::Text(text) => events.push(line(&json!({"role": "assistant", "content": text}))),
            Said::Reasoning(text) => events.push(line(
                &json!({"role": "assistant", "content": "", "thinking": text}),
            )),
            Said::Call(_, name) => held = Some((name, String::new())),
            Said::Arguments(_) => panic!("arguments without a call"),
            Said::End(stop) => {
                let reason = match stop {
                    Stop::Done | Stop::Calls => "stop",
                    Stop::Length => "length",
                };
                let end = json!({"model": "test-model", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason, "total_duration": 5, "prompt_eval_count": 7, "eval_count": 5});
                events.push(format!("{end}\n"));
            }
        }
    }
    // A call with incomplete arguments is a partial line.
    if let Some((name, arguments)) = held {
        let whole = call(name, "{}");
        let until = whole.find("{}").unwrap();
        events.push(format!("{}{arguments}", &whole[..until]));
    }
    events
}

fn call(name: &str, arguments: &str) -> String {
    let arguments: Value = match arguments {
        "" => json!({}),
        text => serde_json::from_str(text).unwrap(),
    };
    let function = json!({"name": name, "arguments": arguments});
    line(&json!({"role": "assistant", "content": "", "tool_calls": [{"function": function}]}))
}

pub(super) fn document(text: &str) -> String {
    json!({"model": "test-model", "message": {"role": "assistant", "content": text}, "done": true, "done_reason": "stop"})
        .to_string()
}

fn error(message: &str) -> String {
    json!({ "error": message }).to_string()
}

pub(super) fn refusal(kind: LlmErrorKind) -> (u16, String) {
    let (status, message) = match kind {
        LlmErrorKind::RateLimited => (429, "too many requests"),
        LlmErrorKind::Server => (
            503,
            "server busy, please try again. maximum pending requests exceeded",
        ),
        LlmErrorKind::Auth => (401, "unauthorized"),
        LlmErrorKind::NoCredit => (402, "no credit left, upgrade for more"),
        LlmErrorKind::UnknownModel => (404, "model \"test-model\" not found, try pulling it first"),
        LlmErrorKind::ContextOverflow => (400, "the input length exceeds the context length"),
        LlmErrorKind::BadRequest => (400, "bad schema"),
        other => panic!("no refusal for {other:?}"),
    };
    (status, error(message))
}

pub(super) fn error_event(kind: LlmErrorKind) -> String {
    let message = match kind {
        LlmErrorKind::Server => "an error was encountered while running the model: unexpected EOF",
        LlmErrorKind::ContextOverflow => "the input length exceeds the context length",
        other => panic!("no error for {other:?}"),
    };
    error(message) + "\n"
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
