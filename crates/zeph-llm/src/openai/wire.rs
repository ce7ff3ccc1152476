//! The fields of a request of Chat Completions around its messages.
//!
//! They stand in an order that keeps the prefix stable: what never changes in a
//! conversation (model, limits, tools) comes first, then the messages, and after them what may
//! differ between two requests (`tool_choice`, `response_format`).

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::failure::Failure;
use crate::error::LlmErrorKind;
use crate::message::{Message, MessagePart, Role};
use crate::tool::{ToolChoice, ToolDefinition};

/// What the provider's configuration adds to every request.
#[derive(Debug, Clone, Copy)]
pub struct WireSettings<'a> {
    /// The model's name.
    pub model: &'a str,
    /// The most tokens of the answer.
    pub max_output_tokens: Option<u32>,
    /// Whether this is OpenAI itself. Compatible servers may refuse or ignore its newer fields:
    /// they get no `prompt_cache_key`, and `max_tokens` in place of `max_completion_tokens`.
    pub openai: bool,
    /// Whether the model takes images; else they are left out, which is said.
    pub images: bool,
}

/// Refuses a part in a message whose role cannot have it; `first` is the number of the first one.
///
/// # Errors
/// `BadRequest`, naming the message.
pub(super) fn check_roles(first: usize, messages: &[Message]) -> Result<(), Failure> {
    for (at, message) in (first..).zip(messages) {
        for part in &message.parts {
            let misplaced = match (message.role, part) {
                (Role::Assistant, MessagePart::ToolResult { .. }) => "a tool result",
                (Role::Assistant, MessagePart::Image { .. }) => "an image",
                (Role::User, MessagePart::ToolUse(_)) => "a call",
                _ => continue,
            };
            let role = message.role.as_str();
            return Err(Failure::new(
                LlmErrorKind::BadRequest,
                format!("message {at} has the role {role} but holds {misplaced}"),
            ));
        }
    }
    Ok(())
}

/// What stands before the messages: nothing of it changes in a conversation.
pub(super) struct Head<'a> {
    pub(super) settings: WireSettings<'a>,
    pub(super) cache_key: Option<&'a str>,
    pub(super) tools: &'a [ToolDefinition],
}

impl Serialize for Head<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { settings, .. } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", settings.model)?;
        map.serialize_entry("stream", &true)?;
        map.serialize_entry("stream_options", &StreamOptions)?;
        if let Some(limit) = settings.max_output_tokens {
            let name = if settings.openai {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            map.serialize_entry(name, &limit)?;
        }
        if let Some(key) = self.cache_key.filter(|_| settings.openai) {
            map.serialize_entry("prompt_cache_key", key)?;
        }
        if !self.tools.is_empty() {
            map.serialize_entry("tools", &Tools(self.tools))?;
        }
        map.end()
    }
}

/// What stands after the messages: it may differ between two requests.
pub(super) struct Tail<'a> {
    pub(super) has_tools: bool,
    pub(super) tool_choice: ToolChoice,
    pub(super) response_schema: Option<&'a Value>,
    pub(super) json_object: bool,
}

impl Serialize for Tail<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.has_tools {
            let choice = match self.tool_choice {
                ToolChoice::Auto => "auto",
                ToolChoice::None => "none",
            };
            map.serialize_entry("tool_choice", choice)?;
        }
        if let Some(schema) = self.response_schema {
            map.serialize_entry("response_format", &ResponseFormat::new(schema))?;
        } else if self.json_object {
            map.serialize_entry(
                "response_format",
                &serde_json::json!({ "type": "json_object" }),
            )?;
        }
        map.end()
    }
}

struct StreamOptions;

impl Serialize for StreamOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("include_usage", &true)?;
        map.end()
    }
}

#[derive(serde::Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(serde::Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

impl<'a> ResponseFormat<'a> {
    fn new(schema: &'a Value) -> Self {
        Self {
            r#type: "json_schema",
            json_schema: NamedSchema {
                name: "answer",
                strict: allows_strict(schema),
                schema,
            },
        }
    }
}

/// Whether a schema meets the rules of strict mode, which refuses others: every object names all
/// its properties as required and allows no more.
fn allows_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let object_fits = map.get("properties").is_none_or(|properties| {
                let required = map.get("required").and_then(Value::as_array);
                let all_required = properties.as_object().is_some_and(|properties| {
                    properties.keys().all(|name| {
                        required.is_some_and(|names| names.iter().any(|n| n == name.as_str()))
                    })
                });
                all_required && map.get("additionalProperties") == Some(&Value::Bool(false))
            });
            object_fits && map.values().all(allows_strict)
        }
        Value::Array(items) => items.iter().all(allows_strict),
        _ => true,
    }
}

struct Tools<'a>(&'a [ToolDefinition]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tool| WireTool {
            r#type: "function",
            function: WireFunction {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
            },
        }))
    }
}

#[derive(serde::Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(serde::Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}
