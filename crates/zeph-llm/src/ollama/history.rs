//! The history as the `messages` array of Ollama's chat. Texts are borrowed.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use crate::http_provider::wire::{GO_ON, IMAGE_LEFT_OUT};
use crate::message::{Message, MessagePart, Role};

/// The seal of thinking from Ollama, which is sent back as text.
pub(super) const THINKING: &str = "ollama-thinking:";

/// The elements of the `messages` array.
pub(super) struct Elements<'a> {
    /// The system prompt, the first element unless it is empty.
    pub(super) system: &'a str,
    pub(super) messages: &'a [Message],
    /// The response that a broken stream had already delivered. An instruction to continue follows it.
    pub(super) shown: Option<&'a str>,
    /// Whether images are sent; otherwise a text replaces them.
    pub(super) images: bool,
}

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        if !self.system.is_empty() {
            seq.serialize_element(&Element::new("system", self.system))?;
        }
        for (at, message) in self.messages.iter().enumerate() {
            match message.role {
                Role::User => {
                    let before = self.messages.get(..at).unwrap_or_default();
                    of_user(&mut seq, &message.parts, before, self.images)?;
                }
                Role::Assistant => seq.serialize_element(&of_model(&message.parts))?,
            }
        }
        if let Some(shown) = self.shown {
            seq.serialize_element(&Element::new("assistant", shown))?;
            seq.serialize_element(&Element::new("user", GO_ON))?;
        }
        seq.end()
    }
}

/// Results first, each under the name of its tool, as the API has no ids. Then the other parts of the message with
/// its images, and the images of results, which the text names.
fn of_user<S: SerializeSeq>(
    seq: &mut S,
    parts: &[MessagePart],
    before: &[Message],
    images: bool,
) -> Result<(), S::Error> {
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    let mut pictures = Vec::new();
    let mut result = None;
    for part in parts {
        match part {
            MessagePart::ToolResult {
                tool_use_id,
                content,
                ..
            } => {
                let name = tool_name(before, tool_use_id);
                result = Some(name.unwrap_or(tool_use_id));
                seq.serialize_element(&Element {
                    tool_name: name,
                    ..Element::new("tool", content)
                })?;
            }
            MessagePart::Image { data, .. } if images => {
                pictures.push(data.as_str());
                if let Some(name) = result {
                    let number = pictures.len();
                    words.push(format!("Image {number} belongs to the result of {name}.").into());
                }
            }
            MessagePart::Image { .. } => words.push(IMAGE_LEFT_OUT.into()),
            MessagePart::Text { text } => {
                result = None;
                if !text.is_empty() {
                    words.push(text.into());
                }
            }
            MessagePart::ToolUse(_) | MessagePart::Reasoning { .. } => {}
        }
    }
    if words.is_empty() && pictures.is_empty() {
        return Ok(());
    }
    seq.serialize_element(&Element {
        images: pictures,
        ..Element::new("user", joined(words))
    })
}

/// The name of the tool in the newest call of this id.
fn tool_name<'a>(before: &'a [Message], id: &str) -> Option<&'a str> {
    let mut calls = before.iter().rev().flat_map(Message::tool_uses);
    calls.find(|call| call.id == id).map(|call| &*call.name)
}

fn of_model(parts: &[MessagePart]) -> Element<'_> {
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    let mut thinking = Vec::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            MessagePart::Text { text } if !text.is_empty() => words.push(text.into()),
            MessagePart::Reasoning {
                text,
                signature: Some(signature),
            } if signature == THINKING => thinking.push(Cow::Borrowed(text.as_str())),
            MessagePart::ToolUse(call) => calls.push(Call {
                function: Function {
                    name: &call.name,
                    arguments: object(&call.input),
                },
            }),
            _ => {}
        }
    }
    Element {
        thinking: (!thinking.is_empty()).then(|| joined(thinking)),
        tool_calls: calls,
        ..Element::new("assistant", joined(words))
    }
}

fn joined(mut texts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    match texts.len() {
        0 | 1 => texts.pop().unwrap_or_default(),
        _ => texts.join("\n\n").into(),
    }
}

/// The arguments of a call. The server refuses a request with arguments that are not an object, so such values are
/// wrapped into one.
fn object(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        Value::Null => Cow::Owned(Value::Object(Map::new())),
        other => Cow::Owned(serde_json::json!({ "invalid_arguments": other })),
    }
}

#[derive(serde::Serialize)]
struct Element<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

impl<'a> Element<'a> {
    fn new(role: &'static str, content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role,
            content: content.into(),
            thinking: None,
            images: Vec::new(),
            tool_calls: Vec::new(),
            tool_name: None,
        }
    }
}

#[derive(serde::Serialize)]
struct Call<'a> {
    function: Function<'a>,
}

#[derive(serde::Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: Cow<'a, Value>,
}
