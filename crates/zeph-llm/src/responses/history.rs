//! The history as the `input` array of the Responses API. Texts are borrowed.

use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use super::item::ITEM;
use crate::http_provider::wire::{GO_ON, IMAGE_LEFT_OUT, plain_name};
use crate::message::{Message, MessagePart, Role};
use crate::openai::history::{Arguments, AsText, DataUrl};

/// The longest name of a function, and the longest id of a call, that the API takes.
const MAX_NAME: usize = 64;

/// The elements of the `input` array.
pub(super) struct Elements<'a> {
    pub(super) messages: &'a [Message],
    /// The response that a broken stream had already delivered. An instruction to continue follows it.
    pub(super) shown: Option<&'a str>,
    /// Whether images are sent; otherwise a text replaces them.
    pub(super) images: bool,
}

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for message in self.messages {
            match message.role {
                Role::User => of_user(&mut seq, &message.parts, self.images)?,
                Role::Assistant => of_model(&mut seq, &message.parts)?,
            }
        }
        if let Some(shown) = self.shown {
            seq.serialize_element(&said(shown))?;
            seq.serialize_element(&asked(vec![Content::InputText { text: GO_ON }]))?;
        }
        seq.end()
    }
}

/// Results first: they must directly follow the calls, and contain only text. Then the other parts of the message,
/// including the images of results, each after the name of its result.
fn of_user<S: SerializeSeq>(
    seq: &mut S,
    parts: &[MessagePart],
    images: bool,
) -> Result<(), S::Error> {
    let mut content = Vec::new();
    let mut result = None;
    for part in parts {
        match part {
            MessagePart::ToolResult {
                tool_use_id,
                content: output,
                ..
            } => {
                let call_id = plain_name(tool_use_id, MAX_NAME);
                result = Some(call_id.clone());
                seq.serialize_element(&Element::FunctionCallOutput {
                    call_id: &call_id,
                    output,
                })?;
            }
            MessagePart::Image { media_type, data } if images => {
                if let Some(id) = &result {
                    content.push(Content::OfResult { id: id.clone() });
                }
                let image_url = DataUrl { media_type, data };
                content.push(Content::InputImage { image_url });
            }
            MessagePart::Image { .. } => content.push(Content::InputText {
                text: IMAGE_LEFT_OUT,
            }),
            MessagePart::Text { text } => {
                result = None;
                if !text.is_empty() {
                    content.push(Content::InputText { text });
                }
            }
            MessagePart::ToolUse(_) | MessagePart::Reasoning { .. } => {}
        }
    }
    if content.is_empty() {
        return Ok(());
    }
    seq.serialize_element(&asked(content))
}

/// The parts of the model's message, in order. The API refuses reasoning without a following part, which a broken or
/// limited response may have.
fn of_model<S: SerializeSeq>(seq: &mut S, parts: &[MessagePart]) -> Result<(), S::Error> {
    let is_said = |part: &MessagePart| match part {
        MessagePart::Text { text } => !text.is_empty(),
        MessagePart::ToolUse(_) => true,
        _ => false,
    };
    let last = parts.iter().rposition(is_said);
    let parts = last.and_then(|last| parts.get(..=last));
    for part in parts.unwrap_or_default() {
        match part {
            MessagePart::Text { text } if !text.is_empty() => seq.serialize_element(&said(text))?,
            MessagePart::ToolUse(call) => seq.serialize_element(&Element::FunctionCall {
                call_id: &plain_name(&call.id, MAX_NAME),
                name: &plain_name(&call.name, MAX_NAME),
                arguments: AsText(Arguments(call)),
            })?,
            MessagePart::Reasoning {
                signature: Some(signature),
                ..
            } => {
                let item = signature.strip_prefix(ITEM);
                let item = item.and_then(|item| serde_json::from_str::<&RawValue>(item).ok());
                if let Some(item) = item {
                    seq.serialize_element(item)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The model's text as a separate input. Parts of type `output_text` belong to the item of a response, and would need
/// its id and status.
fn said(text: &str) -> Element<'_> {
    Element::Message {
        role: Role::Assistant,
        content: Said::Text(text),
    }
}

fn asked(content: Vec<Content<'_>>) -> Element<'_> {
    Element::Message {
        role: Role::User,
        content: Said::Parts(content),
    }
}

#[derive(serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Element<'a> {
    Message {
        role: Role,
        content: Said<'a>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: AsText<Arguments<'a>>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a str,
    },
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(&'a str),
    Parts(Vec<Content<'a>>),
}

enum Content<'a> {
    InputText {
        text: &'a str,
    },
    /// Names the result of the next image.
    OfResult {
        id: std::borrow::Cow<'a, str>,
    },
    InputImage {
        image_url: DataUrl<'a>,
    },
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::InputText { text } => {
                map.serialize_entry("type", "input_text")?;
                map.serialize_entry("text", text)?;
            }
            Self::OfResult { id } => {
                map.serialize_entry("type", "input_text")?;
                let text = format!("The image of the result of {id}:");
                map.serialize_entry("text", &text)?;
            }
            Self::InputImage { image_url } => {
                map.serialize_entry("type", "input_image")?;
                map.serialize_entry("detail", "auto")?;
                map.serialize_entry("image_url", &AsText(image_url))?;
            }
        }
        map.end()
    }
}
