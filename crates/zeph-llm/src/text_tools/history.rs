//! The history as text, for a model without calls and results.
//!
//! A response is unchanged. A call of a provider with native calls, which is not part of a text, is written out.
//! Results are messages of the user. Consecutive messages of one role are merged, since the templates of many models
//! require alternating roles.

use serde_json::{Value, json};

use super::{BASH, ID, RESULT, SCRAPE};
use crate::http_provider::wire::IMAGE_LEFT_OUT;
use crate::message::{Message, MessagePart, Role};
use crate::tool::ToolUseRequest;

/// Converts a history to texts. Without `images`, a note replaces each image.
pub(super) fn to_texts(all: &[Message], images: bool) -> Vec<Message> {
    let mut texts: Vec<Message> = Vec::new();
    for (at, message) in all.iter().enumerate() {
        let parts = match message.role {
            Role::User => of_user(&message.parts, &all[..at], images),
            Role::Assistant => of_model(&message.parts),
        };
        match texts.last_mut() {
            _ if parts.is_empty() => {}
            Some(last) if last.role == message.role => {
                parts
                    .into_iter()
                    .for_each(|part| add(&mut last.parts, part));
            }
            _ => texts.push(Message {
                role: message.role,
                parts,
            }),
        }
    }
    texts
}

/// Appends a part; texts in a row become one.
fn add(parts: &mut Vec<MessagePart>, part: MessagePart) {
    match (parts.last_mut(), part) {
        (_, MessagePart::Text { text }) if text.is_empty() => {}
        (Some(MessagePart::Text { text }), MessagePart::Text { text: more }) => {
            text.push_str("\n\n");
            text.push_str(&more);
        }
        (_, part) => parts.push(part),
    }
}

fn text(text: String) -> MessagePart {
    MessagePart::Text { text }
}

fn of_user(parts: &[MessagePart], before: &[Message], images: bool) -> Vec<MessagePart> {
    let mut texts = Vec::new();
    let mut pictures = 0;
    let mut result = None;
    for part in parts {
        match part {
            MessagePart::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => {
                let name = tool_name(before, tool_use_id).unwrap_or(tool_use_id);
                let failed = if *is_error { ", failed" } else { "" };
                result = Some(name);
                add(
                    &mut texts,
                    text(format!("{RESULT}{name}{failed}]\n{content}")),
                );
            }
            MessagePart::Image { .. } if images => {
                pictures += 1;
                if let Some(name) = result {
                    let words = format!("Image {pictures} belongs to the result of {name}.");
                    add(&mut texts, text(words));
                }
                texts.push(part.clone());
            }
            MessagePart::Image { .. } => add(&mut texts, text(IMAGE_LEFT_OUT.to_owned())),
            MessagePart::Text { .. } => {
                result = None;
                add(&mut texts, part.clone());
            }
            MessagePart::ToolUse(_) | MessagePart::Reasoning { .. } => {}
        }
    }
    texts
}

fn of_model(parts: &[MessagePart]) -> Vec<MessagePart> {
    let mut texts = Vec::new();
    for part in parts {
        match part {
            // The call is part of the text.
            MessagePart::ToolUse(call) if call.id.starts_with(ID) => {}
            MessagePart::ToolUse(call) => add(&mut texts, text(written(call))),
            part => add(&mut texts, part.clone()),
        }
    }
    texts
}

/// The name of the tool in the newest call of this id.
fn tool_name<'a>(before: &'a [Message], id: &str) -> Option<&'a str> {
    let mut calls = before.iter().rev().flat_map(Message::tool_uses);
    calls.find(|call| call.id == id).map(|call| &*call.name)
}

/// A call as the model would have written it.
fn written(call: &ToolUseRequest) -> String {
    let command = match &call.input {
        Value::Object(input) if call.name == BASH && input.len() == 1 => input.get("command"),
        _ => None,
    };
    match (command.and_then(Value::as_str), &call.input) {
        (Some(command), _) => fenced("bash", command),
        (None, input @ Value::Object(_)) if call.name == SCRAPE => {
            fenced("scrape", &input.to_string())
        }
        (None, input) => {
            let call = json!({ "tool_id": call.name, "params": input });
            fenced("json", &call.to_string())
        }
    }
}

/// A block with a fence that is longer than any in its body.
fn fenced(tag: &str, body: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for byte in body.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}{tag}\n{body}\n{fence}")
}
