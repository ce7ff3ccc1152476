//! Messages for the client that it has not read. Pure.
//!
//! A client may stop reading for a while, so the outbox holds as little as possible: consecutive chunks of a text become
//! one chunk, and the output of a running call replaces its earlier output.

use std::collections::VecDeque;
use std::mem;

use agent_client_protocol::schema::MaybeUndefined;
use agent_client_protocol::{
    RawJsonRpcError, RawJsonRpcMessage, RawJsonRpcNotification, RawJsonRpcParams,
    RawJsonRpcResponse, TransportFrame,
};
use serde_json::{Map, Value};

/// The method of updates.
const UPDATE: &str = "session/update";
/// Messages at the end of the outbox that a new one may be joined with. Several sessions may send at the same time.
const JOINED: usize = 8;
/// Bytes of a value in addition to its text, as an estimate.
const VALUE_BYTES: usize = 16;

/// The messages that wait, in order.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: VecDeque<TransportFrame>,
    bytes: usize,
}

impl Outbox {
    /// Adds a message, and returns whether it became a part of a waiting one.
    pub(super) fn push(&mut self, mut frame: TransportFrame) -> bool {
        if let Some(new) = update(&mut frame) {
            for waiting in self.waiting.iter_mut().rev().take(JOINED) {
                let Some(old) = update(waiting) else {
                    continue;
                };
                if old.get("sessionId") != new.get("sessionId") {
                    continue;
                }
                let before = size_of(old);
                if append(old, new) || replace(old, new) {
                    self.bytes = (self.bytes - before).saturating_add(size_of(old));
                    return true;
                }
                // An update keeps its place after others of its session.
                break;
            }
        }
        self.bytes = self.bytes.saturating_add(bytes(&frame));
        self.waiting.push_back(frame);
        false
    }

    /// Takes the first message.
    pub(super) fn pop(&mut self) -> Option<TransportFrame> {
        let frame = self.waiting.pop_front()?;
        self.bytes -= bytes(&frame);
        Some(frame)
    }

    /// The size of the messages, as an estimate.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Whether a message is an update of a session.
pub(super) fn is_update(frame: &TransportFrame) -> bool {
    matches!(
        frame,
        TransportFrame::Single(RawJsonRpcMessage::Notification(notification)) if &*notification.method == UPDATE
    )
}

/// The parameters of an update; `None` for other messages.
fn update(frame: &mut TransportFrame) -> Option<&mut Map<String, Value>> {
    match frame {
        TransportFrame::Single(RawJsonRpcMessage::Notification(RawJsonRpcNotification {
            method,
            params: Some(RawJsonRpcParams::Object(params)),
            ..
        })) if &**method == UPDATE => Some(params),
        _ => None,
    }
}

/// The text of an update that is a chunk of a message.
fn text(params: &mut Map<String, Value>) -> Option<&mut String> {
    let update = params.get_mut("update")?;
    let kind = update.get("sessionUpdate")?.as_str()?;
    if !kind.ends_with("_chunk") {
        return None;
    }
    let content = update.get_mut("content")?;
    if content.get("type")? != "text" {
        return None;
    }
    match content.get_mut("text")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Appends the text of `new` to that of `old`, if nothing else differs.
fn append(old: &mut Map<String, Value>, new: &mut Map<String, Value>) -> bool {
    let (Some(first), Some(second)) = (text(old), text(new)) else {
        return false;
    };
    let (mut first, second) = (mem::take(first), mem::take(second));
    let is_same = old == new;
    if is_same {
        first.push_str(&second);
    }
    if let (Some(old), Some(new)) = (text(old), text(new)) {
        *old = first;
        *new = second;
    }
    is_same
}

/// The id of the call whose output so far is in an update; `None` if the update holds anything else.
fn output(params: &Map<String, Value>) -> Option<&Value> {
    let update = params.get("update")?.as_object()?;
    let known = ["sessionUpdate", "toolCallId", "status", "content"];
    let is_output = update.keys().all(|key| known.contains(&key.as_str()))
        && update.get("sessionUpdate")? == "tool_call_update"
        && update.get("status")? == "in_progress"
        && update.contains_key("content");
    is_output.then(|| update.get("toolCallId"))?
}

/// Replaces the output of a running call by its later output.
fn replace(old: &mut Map<String, Value>, new: &mut Map<String, Value>) -> bool {
    let is_same = output(old).is_some_and(|call| output(new) == Some(call));
    if is_same {
        *old = mem::take(new);
    }
    is_same
}

/// The size of a message, as an estimate.
fn bytes(frame: &TransportFrame) -> usize {
    match frame {
        TransportFrame::Single(RawJsonRpcMessage::Notification(notification)) => {
            of_params(notification.params.as_ref())
        }
        TransportFrame::Single(RawJsonRpcMessage::Request(request)) => {
            of_params(request.params.as_ref())
        }
        TransportFrame::Single(RawJsonRpcMessage::Response(RawJsonRpcResponse::Result {
            result,
            ..
        })) => size(result),
        TransportFrame::Single(RawJsonRpcMessage::Response(RawJsonRpcResponse::Error {
            error,
            ..
        })) => of_error(error),
        TransportFrame::Malformed { raw, .. } => raw.len() + VALUE_BYTES,
        _ => VALUE_BYTES,
    }
}

fn of_error(error: &RawJsonRpcError) -> usize {
    let data = match &error.data {
        MaybeUndefined::Value(data) => size(data),
        MaybeUndefined::Null | MaybeUndefined::Undefined => 0,
    };
    error.message.len() + data + size_of(&error.extra)
}

fn of_params(params: Option<&RawJsonRpcParams>) -> usize {
    match params {
        Some(RawJsonRpcParams::Object(params)) => size_of(params),
        Some(RawJsonRpcParams::Array(values)) => values.iter().map(size).sum(),
        None => VALUE_BYTES,
    }
}

fn size_of(fields: &Map<String, Value>) -> usize {
    let fields = fields.iter();
    fields
        .map(|(name, value)| name.len() + size(value))
        .sum::<usize>()
        + VALUE_BYTES
}

fn size(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(size).sum(),
            Value::Object(fields) => size_of(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frame(message: &Value) -> TransportFrame {
        TransportFrame::parse_json(&message.to_string())
    }

    fn session_update(session: &str, update: &Value) -> TransportFrame {
        frame(&json!({
            "jsonrpc": "2.0",
            "method": UPDATE,
            "params": { "sessionId": session, "update": update },
        }))
    }

    fn chunk(session: &str, message: &str, text: &str) -> TransportFrame {
        let content = json!({ "type": "text", "text": text });
        let kind = "agent_message_chunk";
        session_update(
            session,
            &json!({ "sessionUpdate": kind, "messageId": message, "content": content }),
        )
    }

    fn call(id: &str, status: &str, text: &str) -> TransportFrame {
        let update = json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": id,
            "status": status,
            "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
        });
        session_update("s", &update)
    }

    /// The texts of the messages that remain after these.
    fn texts(frames: Vec<TransportFrame>) -> Vec<String> {
        let mut outbox = Outbox::default();
        for frame in frames {
            outbox.push(frame);
        }
        let mut texts = Vec::new();
        while let Some(frame) = outbox.pop() {
            let message: Value = serde_json::from_str(&frame.to_json().unwrap()).unwrap();
            let update = &message["params"]["update"];
            let text = update.pointer("/content/text");
            let text = text.or_else(|| update.pointer("/content/0/content/text"));
            texts.push(text.map_or_else(
                || message["id"].to_string(),
                |text| text.as_str().unwrap().to_owned(),
            ));
        }
        assert_eq!(outbox.bytes(), 0);
        texts
    }

    /// Proves ACP-7: chunks of one message become one chunk, and no text is lost or moved.
    #[test]
    fn chunks_of_a_message_are_joined() {
        let response = || frame(&json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
        let frames = vec![
            chunk("s", "1", "a"),
            chunk("s", "1", "b"),
            chunk("other", "1", "x"),
            chunk("s", "1", "c"),
            chunk("s", "2", "d"),
            response(),
            chunk("other", "1", "y"),
            call("c", "completed", "e"),
            chunk("s", "2", "f"),
        ];
        assert_eq!(texts(frames), ["abc", "xy", "d", "7", "e", "f"]);
    }

    /// Proves ACP-7: only the last output of a running call waits; its end and other calls are not affected.
    #[test]
    fn output_of_a_call_replaces_its_earlier_output() {
        let frames = vec![
            call("c", "in_progress", "1"),
            call("c", "in_progress", "1 2"),
            call("d", "in_progress", "3"),
            call("c", "completed", "1 2 3"),
            call("c", "in_progress", "4"),
        ];
        assert_eq!(texts(frames), ["1 2", "3", "1 2 3", "4"]);
    }

    /// Proves ACP-7: the size counts the texts that wait.
    #[test]
    fn size_counts_the_texts() {
        let mut outbox = Outbox::default();
        let text = "x".repeat(1000);
        for _ in 0..100 {
            outbox.push(chunk("s", "1", &text));
        }
        assert!(
            (100_000..101_000).contains(&outbox.bytes()),
            "{}",
            outbox.bytes()
        );
        outbox.push(frame(
            &json!({ "jsonrpc": "2.0", "id": 1, "result": { "text": text } }),
        ));
        assert!(outbox.bytes() > 101_000, "{}", outbox.bytes());
        let error = json!({ "code": -1, "message": text, "data": { "line": text } });
        outbox.push(frame(&json!({ "jsonrpc": "2.0", "id": 1, "error": error })));
        assert!(outbox.bytes() > 103_000, "{}", outbox.bytes());
    }
}
