//! The history as the `messages` array of the Messages API. Texts are borrowed during serialization.
//!
//! The API refuses blank texts, calls with other characters in their ids or names than it allows, and inputs that are
//! not objects. Such content of another provider or a model is repaired here, in the same way each time.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use super::wire::{CacheControl, EPHEMERAL};
use crate::http_provider::wire::{GO_ON, IMAGE_LEFT_OUT, plain_name};
use crate::message::{Message, MessagePart, Role};

/// The prefix of the signature of visible thinking.
pub(super) const SIGNED: &str = "anthropic-signature:";
/// The prefix of thinking that is completely encrypted.
pub(super) const REDACTED: &str = "anthropic-redacted:";
/// The longest tool name that the API takes.
const MAX_NAME: usize = 128;
/// The longest id of a call that is sent.
const MAX_ID: usize = 128;
/// The replacement for a message without content that the API accepts.
const NOTHING: &str = "[nothing]";

/// The messages with a cache breakpoint: the last two of the user.
fn breakpoints(all: &[Message]) -> [Option<usize>; 2] {
    let mut found = all
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, message)| message.role == Role::User)
        .map(|(at, _)| at);
    [found.next(), found.next()]
}

/// The elements of the `messages` array.
pub(super) struct Elements<'a> {
    pub(super) messages: &'a [Message],
    /// The response that a broken stream had already delivered. An instruction to continue follows it.
    pub(super) shown: Option<&'a str>,
    /// Whether images are sent; otherwise a text replaces them.
    pub(super) images: bool,
}

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let marked = breakpoints(self.messages);
        let mut seq = serializer.serialize_seq(None)?;
        for (at, message) in self.messages.iter().enumerate() {
            seq.serialize_element(&Element {
                role: message.role,
                content: Content {
                    parts: &message.parts,
                    images: self.images,
                    breakpoint: marked.contains(&Some(at)),
                },
            })?;
        }
        if let Some(shown) = self.shown {
            for (role, text) in [(Role::Assistant, shown), (Role::User, GO_ON)] {
                let content = [Block::text(text)];
                seq.serialize_element(&Element { role, content })?;
            }
        }
        seq.end()
    }
}

#[derive(serde::Serialize)]
struct Element<C> {
    role: Role,
    content: C,
}

struct Content<'a> {
    parts: &'a [MessagePart],
    images: bool,
    breakpoint: bool,
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut blocks = blocks(self.parts, self.images);
        if blocks.is_empty() {
            blocks.push(Block::Text {
                text: NOTHING,
                cache_control: None,
            });
        }
        if self.breakpoint
            && let Some(
                Block::Text { cache_control, .. }
                | Block::Image { cache_control, .. }
                | Block::ToolResult { cache_control, .. },
            ) = blocks.last_mut()
        {
            *cache_control = Some(EPHEMERAL);
        }
        blocks.serialize(serializer)
    }
}

/// The blocks of a message. Results come first, as the API requires. The images that follow a result become a part of
/// it, unless it is an error: errors may contain only text.
///
/// Thinking at the end is left out: the API refuses a message that ends with it, and the output limit
/// may cut off the call after it.
fn blocks(parts: &[MessagePart], images: bool) -> Vec<Block<'_>> {
    let mut results = Vec::new();
    let mut others = Vec::new();
    let mut in_result = false;
    for part in parts {
        match part {
            MessagePart::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => {
                in_result = true;
                results.push(Block::ToolResult {
                    tool_use_id: plain_name(tool_use_id, MAX_ID),
                    content: ResultContent {
                        text: content,
                        images: Vec::new(),
                    },
                    is_error: *is_error,
                    cache_control: None,
                });
            }
            MessagePart::Image { media_type, data } if images => {
                let source = Source {
                    r#type: "base64",
                    media_type,
                    data,
                };
                match results.last_mut() {
                    Some(Block::ToolResult {
                        content,
                        is_error: false,
                        ..
                    }) if in_result => {
                        content.images.push(source);
                    }
                    _ => others.push(Block::Image {
                        source,
                        cache_control: None,
                    }),
                }
            }
            MessagePart::Image { .. } => others.push(Block::text(IMAGE_LEFT_OUT)),
            MessagePart::Text { text } => {
                in_result = false;
                if !text.trim().is_empty() {
                    others.push(Block::text(text));
                }
            }
            MessagePart::ToolUse(call) => others.push(Block::ToolUse {
                id: plain_name(&call.id, MAX_ID),
                name: plain_name(&call.name, MAX_NAME),
                input: Input(&call.input),
            }),
            MessagePart::Reasoning { text, signature } => {
                let Some(signature) = signature else {
                    continue;
                };
                if let Some(signature) = signature.strip_prefix(SIGNED) {
                    others.push(Block::Thinking {
                        thinking: text,
                        signature,
                    });
                } else if let Some(data) = signature.strip_prefix(REDACTED) {
                    others.push(Block::RedactedThinking { data });
                }
            }
        }
    }
    while matches!(
        others.last(),
        Some(Block::Thinking { .. } | Block::RedactedThinking { .. })
    ) {
        others.pop();
    }
    results.append(&mut others);
    results
}

#[derive(serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: ResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
}

impl<'a> Block<'a> {
    fn text(text: &'a str) -> Self {
        Self::Text {
            text,
            cache_control: None,
        }
    }
}

#[derive(serde::Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// The result of a call: a text alone as a string, with images as an array.
struct ResultContent<'a> {
    text: &'a str,
    images: Vec<Source<'a>>,
}

impl Serialize for ResultContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.images.is_empty() {
            return serializer.serialize_str(self.text);
        }
        let mut seq = serializer.serialize_seq(None)?;
        if !self.text.trim().is_empty() {
            seq.serialize_element(&Block::text(self.text))?;
        }
        for source in &self.images {
            seq.serialize_element(&ResultImage {
                r#type: "image",
                source,
            })?;
        }
        seq.end()
    }
}

#[derive(serde::Serialize)]
struct ResultImage<'a> {
    r#type: &'static str,
    source: &'a Source<'a>,
}

/// The input of a call: an object; any other value is wrapped into one.
struct Input<'a>(&'a Value);

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(object) => object.serialize(serializer),
            Value::Null => Map::new().serialize(serializer),
            other => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("invalid_arguments", other)?;
                map.end()
            }
        }
    }
}
