//! OpenAI's Responses API.

use serde_json::{Value, json};
use zeph_llm::LlmErrorKind;

use super::{Said, Stop};

/// An event with its name and its number in the stream.
fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}

#[derive(PartialEq)]
enum Open {
    No,
    Message,
    Reasoning,
    Call,
}

/// The writer of the current item.
struct Writer {
    events: Vec<String>,
    open: Open,
    index: usize,
    item: Value,
    output: Vec<Value>,
}

impl Writer {
    fn send(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.events.len());
        self.events.push(event(&data));
    }

    /// An event about the item.
    fn emit(&mut self, kind: &str, mut data: Value) {
        data["output_index"] = json!(self.index);
        data["item_id"] = self.item["id"].clone();
        self.send(kind, data);
    }

    fn begin(&mut self, open: Open, item: Value) {
        self.end();
        self.open = open;
        self.item = item.clone();
        let index = self.index;
        self.send(
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
        );
    }

    fn end(&mut self) {
        if self.open == Open::No {
            return;
        }
        let mut item = self.item.clone();
        match self.open {
            Open::Message => {
                let text = item["text"].take();
                item.as_object_mut().unwrap().remove("text");
                item["status"] = json!("completed");
                item["content"] = json!([{"type": "output_text", "text": text, "annotations": []}]);
                self.emit(
                    "response.output_text.done",
                    json!({"content_index": 0, "text": text}),
                );
            }
            Open::Call => {
                item["status"] = json!("completed");
                let arguments = item["arguments"].clone();
                self.emit(
                    "response.function_call_arguments.done",
                    json!({"arguments": arguments}),
                );
            }
            Open::Reasoning => item["encrypted_content"] = json!("gAAAAAB"),
            Open::No => {}
        }
        let index = self.index;
        self.output.push(item.clone());
        self.send(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
        self.index += 1;
        self.open = Open::No;
    }

    /// Appends to a text of the item.
    fn grow(&mut self, field: &str, more: &str) {
        let so_far = self.item[field].as_str().unwrap_or_default();
        self.item[field] = json!(format!("{so_far}{more}"));
    }
}

pub(super) fn events(said: &[Said<'_>]) -> Vec<String> {
    let mut writer = Writer {
        events: Vec::new(),
        open: Open::No,
        index: 0,
        item: Value::Null,
        output: Vec::new(),
    };
    let begun = json!({"id": "resp_1", "object": "response", "status": "in_progress", "error": null, "output": [], "usage": null});
    writer.send("response.created", json!({"response": begun}));
    writer.send("response.in_progress", json!({"response": begun}));
    for piece in said {
        match piece {
            Said::Text(text) => {
                if writer.open != Open::Message {
                    let item = json!({"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []});
                    writer.begin(Open::Message, item);
                    let part = json!({"type": "output_text", "text": "", "annotations": []});
                    writer.emit(
                        "response.content_part.added",
                        json!({"content_index": 0, "part": part}),
                    );
                }
                writer.grow("text", text);
                writer.emit(
                    "response.output_text.delta",
                    json!({"content_index": 0, "delta": text, "logprobs": []}),
                );
            }
            Said::Reasoning(text) => {
                if writer.open != Open::Reasoning {
                    let item = json!({"id": "rs_1", "type": "reasoning", "summary": []});
                    writer.begin(Open::Reasoning, item);
                    let part = json!({"type": "summary_text", "text": ""});
                    writer.emit(
                        "response.reasoning_summary_part.added",
                        json!({"summary_index": 0, "part": part}),
                    );
                }
                writer.emit(
                    "response.reasoning_summary_text.delta",
                    json!({"summary_index": 0, "delta": text}),
                );
            }
            Said::Call(id, name) => {
                let item = json!({"id": format!("fc_{id}"), "type": "function_call", "status": "in_progress", "arguments": "", "call_id": id, "name": name});
                writer.begin(Open::Call, item);
            }
            Said::Arguments(more) => {
                writer.grow("arguments", more);
                writer.emit(
                    "response.function_call_arguments.delta",
                    json!({"delta": more}),
                );
            }
            Said::End(stop) => {
                writer.end();
                let (kind, status, details) = match stop {
                    Stop::Length => (
                        "response.incomplete",
                        "incomplete",
                        json!({"reason": "max_output_tokens"}),
                    ),
                    Stop::Done | Stop::Calls => ("response.completed", "completed", Value::Null),
                };
                let usage = json!({"input_tokens": 7, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12});
                let output = writer.output.clone();
                let response = json!({"id": "resp_1", "object": "response", "status": status, "incomplete_details": details, "error": null, "output": output, "usage": usage});
                writer.send(kind, json!({"response": response}));
            }
        }
    }
    writer.events
}

pub(super) fn document(text: &str) -> String {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"id": "resp_1", "object": "response", "status": "completed", "error": null, "output": [{"id": "msg_1", "type": "message", "role": "assistant", "content": content}]})
        .to_string()
}

pub(super) fn error_event(kind: LlmErrorKind) -> String {
    match kind {
        LlmErrorKind::Server => event(
            &json!({"type": "error", "code": "server_error", "message": "m", "param": null, "sequence_number": 3}),
        ),
        LlmErrorKind::ContextOverflow => {
            let error = json!({"code": "context_length_exceeded", "message": "m"});
            let response = json!({"id": "resp_1", "object": "response", "status": "failed", "error": error, "output": []});
            event(&json!({"type": "response.failed", "response": response}))
        }
        other => panic!("no error for {other:?}"),
    }
}

pub(super) fn continued(body: &Value) -> (String, String) {
    let [.., shown, go_on] = body["input"].as_array().unwrap().as_slice() else {
        panic!("{body}")
    };
    assert_eq!(
        (&shown["role"], &go_on["role"]),
        (&json!("assistant"), &json!("user"))
    );
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&shown["content"]), text(&go_on["content"][0]["text"]))
}
