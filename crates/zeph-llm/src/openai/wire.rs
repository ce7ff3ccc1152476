//! Chat Completions as a [`Wire`], and the fields of its requests around the messages.
//!
//! The order preserves a constant prefix. Constant fields of a conversation (model, limits, tools) come first, then
//! the messages, and after them the fields that may differ between two requests (`tool_choice`, `response_format`).

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::chunk::Chunk;
use super::delta::Deltas;
use super::history::{ContinuationPrompt, Messages, System};
use crate::http_provider::embeddings::EmbeddingsApi;
use crate::http_provider::endpoint::ApiPath;
use crate::http_provider::error_mapping::{Failure, Target};
use crate::http_provider::response_builder::ResponseBuilder;
use crate::http_provider::stream_reader::no_piece;
use crate::http_provider::wire::{Framing, Wire, output_limit};
use crate::message::Message;
use crate::provider::{ChatRequest, StreamSink};
use crate::tool::{ToolChoice, ToolDefinition};

/// The wire of Chat Completions.
#[derive(Debug, Clone)]
pub(crate) struct ChatCompletions {
    /// The model's name.
    pub(super) model: String,
    /// The maximum number of tokens of the response.
    pub(super) max_output_tokens: Option<u32>,
    /// Whether this is OpenAI itself. Compatible servers may refuse or ignore its newer fields:
    /// they get no `prompt_cache_key`, and `max_tokens` in place of `max_completion_tokens`.
    pub(super) openai: bool,
    /// Whether the model takes images; otherwise a text replaces them.
    pub(super) images: bool,
}

impl Wire for ChatCompletions {
    type StreamState = Deltas;

    const NAME: &'static str = "Chat Completions";
    const PLACE: ApiPath = super::PLACE;
    const FRAMING: Framing = Framing::Events;
    const KEY_HEADER: (&'static str, &'static str) = ("authorization", "Bearer ");
    const EMBEDDINGS: Option<EmbeddingsApi> = Some(super::embeddings::EMBEDDINGS);

    fn head(&self, request: &ChatRequest<'_>) -> impl Serialize {
        Head {
            wire: self,
            max_output_tokens: output_limit(self.max_output_tokens, request),
            cache_key: request.cache_key,
            tools: request.tools,
        }
    }

    fn opening(&self, request: &ChatRequest<'_>) -> impl Serialize {
        System(request.system)
    }

    fn elements(&self, all: &[Message], from: usize, until: usize) -> impl Serialize {
        Messages {
            messages: all.get(from..until).unwrap_or_default(),
            images: self.images,
        }
    }

    fn go_on(&self, shown: &str) -> impl Serialize {
        ContinuationPrompt(shown)
    }

    fn tail(&self, request: &ChatRequest<'_>) -> impl Serialize {
        Tail {
            has_tools: !request.tools.is_empty(),
            tool_choice: request.tool_choice,
            response_schema: request.response_schema,
            json_object: request.json_object && self.openai,
        }
    }

    fn piece(
        deltas: &mut Deltas,
        data: &str,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        if data.trim_ascii() == "[DONE]" {
            // Without a reason it ends a text; a call may have lost its end.
            if answer.calls().is_empty() && !answer.is_empty() {
                deltas.end(answer);
            }
            answer.mark_done();
            return Ok(());
        }
        match serde_json::from_str::<Chunk>(data) {
            Ok(chunk) => deltas.add(chunk, answer, target, sink),
            Err(error) => Err(no_piece(&error, data, target)),
        }
    }

    fn document(
        body: &[u8],
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<Option<()>, Failure> {
        let chunk: Chunk = match serde_json::from_slice(body) {
            Ok(chunk) => chunk,
            Err(_) => return Ok(None),
        };
        if chunk.choices.is_none() {
            return Ok(None);
        }
        let mut deltas = Deltas::default();
        deltas.add(chunk, answer, target, sink)?;
        deltas.end(answer);
        Ok(Some(()))
    }
}

/// The fields before the messages, which are constant in a conversation.
struct Head<'w, 'r> {
    wire: &'w ChatCompletions,
    max_output_tokens: Option<u32>,
    cache_key: Option<&'r str>,
    tools: &'r [ToolDefinition],
}

impl Serialize for Head<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { wire, .. } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &wire.model)?;
        map.serialize_entry("stream", &true)?;
        map.serialize_entry("stream_options", &StreamOptions)?;
        if let Some(limit) = self.max_output_tokens {
            let name = if wire.openai {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            map.serialize_entry(name, &limit)?;
        }
        if let Some(key) = self.cache_key.filter(|_| wire.openai) {
            map.serialize_entry("prompt_cache_key", key)?;
        }
        if !self.tools.is_empty() {
            map.serialize_entry("tools", &Tools(self.tools))?;
        }
        map.end()
    }
}

/// The fields after the messages, which may differ between two requests.
struct Tail<'a> {
    has_tools: bool,
    tool_choice: ToolChoice,
    response_schema: Option<&'a Value>,
    json_object: bool,
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

/// Whether a schema meets the rules of strict mode, which refuses others: every object has all its properties as
/// required and allows no others.
pub(crate) fn allows_strict(schema: &Value) -> bool {
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
