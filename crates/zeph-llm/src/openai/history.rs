//! The history as the `messages` array of Chat Completions. Texts are borrowed.

use std::borrow::Cow;
use std::fmt;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use crate::http_provider::wire::{GO_ON, IMAGE_LEFT_OUT, plain_name};
use crate::message::{CHAT_REASONING, Message, MessagePart, Role};
use crate::tool::ToolUseRequest;

/// The longest function name that the API takes.
const MAX_NAME: usize = 64;

/// The model's message between results and a message of the user. It is constant, so that the
/// history of the next request begins with the same bytes.
const ACKNOWLEDGMENT: &str = "Understood.";

/// The elements of the `messages` array.
pub(super) struct Messages<'a> {
    /// The system prompt, the first element unless it is empty.
    pub(super) system: &'a str,
    pub(super) messages: &'a [Message],
    /// The response that a broken stream had already delivered. An instruction to continue follows it.
    pub(super) shown: Option<&'a str>,
    /// Whether images are sent; otherwise a text replaces them.
    pub(super) images: bool,
    /// Whether the model speaks between results and a message of the user.
    pub(super) has_acknowledgment: bool,
    /// The host of the server.
    pub(super) host: &'a str,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        if !self.system.is_empty() {
            let content = self.system;
            seq.serialize_element(&WireMessage::System { content })?;
        }
        for message in self.messages {
            match message.role {
                Role::User => self.user_messages(&mut seq, &message.parts)?,
                Role::Assistant => seq.serialize_element(&self.model_message(&message.parts))?,
            }
        }
        if let Some(shown) = self.shown {
            seq.serialize_element(&WireMessage::from_text(shown))?;
            let content = Content::Text(GO_ON);
            seq.serialize_element(&WireMessage::User { content })?;
        }
        seq.end()
    }
}

impl Messages<'_> {
    /// Results first, each as a separate message: they must directly follow the calls, and contain only text. Then the
    /// other parts of the message, including the images of results.
    fn user_messages<S: SerializeSeq>(
        &self,
        seq: &mut S,
        parts: &[MessagePart],
    ) -> Result<(), S::Error> {
        let mut has_result = false;
        for part in parts {
            if let MessagePart::ToolResult {
                tool_use_id,
                content,
                ..
            } = part
            {
                has_result = true;
                seq.serialize_element(&WireMessage::Tool {
                    tool_call_id: tool_use_id,
                    content,
                })?;
            }
        }
        let has_image = self.images
            && parts
                .iter()
                .any(|part| matches!(part, MessagePart::Image { .. }));
        let content = match (has_image, texts(parts).count()) {
            (true, _) => Content::Parts(parts),
            (false, 0) => return Ok(()),
            (false, _) => Content::Joined(parts),
        };
        if has_result && self.has_acknowledgment {
            seq.serialize_element(&WireMessage::from_text(ACKNOWLEDGMENT))?;
        }
        seq.serialize_element(&WireMessage::User { content })
    }

    fn model_message<'m>(&'m self, parts: &'m [MessagePart]) -> WireMessage<'m> {
        let host = self.host;
        let tool_calls = ToolCalls { parts, host };
        let reasoning = match tool_calls.is_empty() {
            true => None,
            false => own_reasoning(parts, host),
        };
        WireMessage::Assistant {
            content: assistant_text(parts),
            reasoning_content: reasoning,
            tool_calls,
        }
    }
}

/// The reasoning that came from the server.
fn own_reasoning<'a>(parts: &'a [MessagePart], host: &str) -> Option<Cow<'a, str>> {
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Reasoning {
            text,
            signature: Some(seal),
        } if seal.strip_prefix(CHAT_REASONING) == Some(host) => Some(text.as_str()),
        _ => None,
    });
    let texts: Vec<&'a str> = texts.collect();
    match texts.as_slice() {
        [] => None,
        [only] => Some(Cow::Borrowed(*only)),
        _ => Some(Cow::Owned(texts.join("\n\n"))),
    }
}

/// `None` for calls without text; the API wants `null` there, and a string elsewhere.
fn assistant_text(parts: &[MessagePart]) -> Option<Content<'_>> {
    let calls = parts
        .iter()
        .any(|part| matches!(part, MessagePart::ToolUse(_)));
    let silent = texts(parts).all(str::is_empty);
    (!calls || !silent).then_some(Content::Joined(parts))
}

/// The texts, with a note instead of each image.
fn texts(parts: &[MessagePart]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match part {
        MessagePart::Text { text } => Some(text.as_str()),
        MessagePart::Image { .. } => Some(IMAGE_LEFT_OUT),
        _ => None,
    })
}

#[derive(serde::Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "ToolCalls::is_empty")]
        tool_calls: ToolCalls<'a>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

impl<'a> WireMessage<'a> {
    /// A message of the model that is only a text.
    fn from_text(text: &'a str) -> Self {
        Self::Assistant {
            content: Some(Content::Text(text)),
            reasoning_content: None,
            tool_calls: ToolCalls {
                parts: &[],
                host: "",
            },
        }
    }
}

enum Content<'a> {
    Text(&'a str),
    /// The text parts as one string, with blank lines between them.
    Joined(&'a [MessagePart]),
    /// Texts and images as an array; a text before the image of a result names the result.
    Parts(&'a [MessagePart]),
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Joined(parts) => {
                let mut found = texts(parts);
                match (found.next(), found.next()) {
                    (None, _) => serializer.serialize_str(""),
                    (Some(text), None) => serializer.serialize_str(text),
                    _ => serializer.collect_str(&Joined(parts)),
                }
            }
            Self::Parts(parts) => {
                let mut seq = serializer.serialize_seq(None)?;
                let mut result = None;
                for part in *parts {
                    match part {
                        MessagePart::Text { text } => {
                            result = None;
                            seq.serialize_element(&ContentPart::Text { text: text.into() })?;
                        }
                        MessagePart::ToolResult { tool_use_id, .. } => result = Some(tool_use_id),
                        MessagePart::Image { media_type, data } => {
                            if let Some(id) = result {
                                let text = format!("The image of the result of {id}:").into();
                                seq.serialize_element(&ContentPart::Text { text })?;
                            }
                            let image_url = DataUrl { media_type, data };
                            seq.serialize_element(&ContentPart::ImageUrl { image_url })?;
                        }
                        _ => {}
                    }
                }
                seq.end()
            }
        }
    }
}

struct Joined<'a>(&'a [MessagePart]);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, text) in texts(self.0).enumerate() {
            f.write_str(if at == 0 { "" } else { "\n\n" })?;
            f.write_str(text)?;
        }
        Ok(())
    }
}

#[derive(serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: DataUrl<'a> },
}

/// An image as a data URL.
pub(crate) struct DataUrl<'a> {
    pub(crate) media_type: &'a str,
    pub(crate) data: &'a str,
}

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { media_type, data } = self;
        write!(f, "data:{media_type};base64,{data}")
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("url", &AsText(self))?;
        map.end()
    }
}

/// The calls among the parts of an assistant's message.
struct ToolCalls<'a> {
    parts: &'a [MessagePart],
    /// The host of the server.
    host: &'a str,
}

impl ToolCalls<'_> {
    fn is_empty(&self) -> bool {
        !self
            .parts
            .iter()
            .any(|part| matches!(part, MessagePart::ToolUse(_)))
    }
}

impl Serialize for ToolCalls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.parts.iter().filter_map(|part| {
            match part {
                MessagePart::ToolUse(call) => Some(WireCall {
                    id: &call.id,
                    r#type: "function",
                    function: WireCallFunction {
                        name: plain_name(&call.name, MAX_NAME),
                        arguments: AsText(Arguments(call)),
                    },
                    extra_content: call
                        .extra_content
                        .as_ref()
                        .and_then(|content| content.get(self.host)),
                }),
                _ => None,
            }
        }))
    }
}

#[derive(serde::Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireCallFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(serde::Serialize)]
struct WireCallFunction<'a> {
    name: Cow<'a, str>,
    arguments: AsText<Arguments<'a>>,
}

/// Serializes its display text as a string, without building that string.
pub(crate) struct AsText<T>(pub(crate) T);

impl<T: fmt::Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A call's arguments as JSON text. Servers refuse a request with arguments that are not an object, so such values
/// are wrapped into one.
pub(crate) struct Arguments<'a>(pub(crate) &'a ToolUseRequest);

impl fmt::Display for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.input {
            input @ Value::Object(_) => write!(f, "{input}"),
            Value::Null => f.write_str("{}"),
            other => write!(f, "{{\"invalid_arguments\":{other}}}"),
        }
    }
}
