//! Chat Completions as a [`Wire`], and the fields of its requests around the messages.
//!
//! The order preserves a constant prefix. Constant fields of a conversation (model, limits, tools) come first, then
//! the messages, and after them the fields that may differ between two requests (`tool_choice`, `response_format`).

use serde::Serialize;
use serde_json::Value;

use super::chunk::Chunk;
use super::delta::Deltas;
use super::history::Messages;
use crate::config::ProviderConfig;
use crate::effort::Effort;
use crate::endpoint::{self, ApiPath};
use crate::http_provider::embeddings::EmbeddingsApi;
use crate::http_provider::error_mapping::{Failure, Target};
use crate::http_provider::models::ModelsApi;
use crate::http_provider::response_builder::ResponseBuilder;
use crate::http_provider::stream_reader::no_piece;
use crate::http_provider::window::WindowSource;
use crate::http_provider::wire::{Framing, Wire, output_limit};
use crate::provider::{ChatRequest, StreamSink};
use crate::tool::{ToolChoice, ToolDefinition};

/// The ends of the hosts of Azure OpenAI.
const AZURE: [&str; 2] = [".openai.azure.com", ".cognitiveservices.azure.com"];

/// The wire of Chat Completions.
#[derive(Debug, Clone)]
pub(crate) struct ChatCompletions {
    /// The model's name.
    pub(super) model: String,
    /// The maximum number of tokens of the response.
    pub(super) max_output_tokens: Option<u32>,
    /// Whether this is OpenAI itself. Compatible servers may refuse or ignore its newer fields:
    /// they get no `prompt_cache_key`.
    pub(super) openai: bool,
    /// Whether the limit of the response is `max_completion_tokens`. OpenAI's models that reason
    /// refuse `max_tokens`, the field that all other servers know.
    pub(super) has_completion_limit: bool,
    /// Whether the model is one of Mistral, which refuses a message of the user after results.
    pub(super) is_mistral: bool,
    /// The host of the server. Content that a server requires back is sent only to its host.
    pub(super) host: String,
    /// Whether the model takes images; otherwise a text replaces them.
    pub(super) images: bool,
    /// How much the model reasons.
    pub(super) effort: Option<Effort>,
}

impl ChatCompletions {
    /// The wire of a provider. `images` is whether its model takes images.
    pub(super) fn new(config: &ProviderConfig, images: bool) -> Self {
        let openai = config.is_vendor();
        let host = config.host().unwrap_or_default();
        Self {
            model: config.model.clone(),
            max_output_tokens: config.max_output_tokens,
            openai,
            has_completion_limit: openai || AZURE.iter().any(|end| host.ends_with(end)),
            is_mistral: is_mistral(&host, &config.model),
            host,
            images,
            effort: config.effort,
        }
    }
}

/// Whether a model is one of Mistral, by its host or, on other servers, by its name.
fn is_mistral(host: &str, model: &str) -> bool {
    const FAMILIES: [&str; 6] = [
        "mistral",
        "ministral",
        "magistral",
        "devstral",
        "codestral",
        "pixtral",
    ];
    let model = model.to_lowercase();
    let is_own_host = host == "mistral.ai" || host.ends_with(".mistral.ai");
    is_own_host || FAMILIES.iter().any(|family| model.contains(family))
}

impl Wire for ChatCompletions {
    type StreamState = Deltas;

    const NAME: &'static str = "Chat Completions";
    const PLACE: ApiPath = endpoint::OPENAI_CHAT;
    const MODELS: ModelsApi = ModelsApi {
        path: "models",
        query: None,
        window: WindowSource::ListOrProps,
    };
    const FRAMING: Framing = Framing::Events;
    const KEY_HEADER: (&'static str, &'static str) = ("authorization", "Bearer ");
    const EMBEDDINGS: Option<EmbeddingsApi> = Some(super::embeddings::EMBEDDINGS);

    fn body<'r>(&'r self, request: &'r ChatRequest<'r>, shown: Option<&'r str>) -> impl Serialize {
        let limit = output_limit(self.max_output_tokens, request);
        let schema = request.response_schema.map(ResponseFormat::new);
        let object = (request.json_object && self.openai).then_some(ResponseFormat::JsonObject);
        Body {
            model: &self.model,
            stream: true,
            stream_options: StreamOptions {
                include_usage: true,
            },
            max_completion_tokens: limit.filter(|_| self.has_completion_limit),
            max_tokens: limit.filter(|_| !self.has_completion_limit),
            reasoning_effort: self.effort,
            prompt_cache_key: request.cache_key.filter(|_| self.openai),
            tools: request.tools.iter().map(WireTool::from).collect(),
            messages: Messages {
                system: request.system,
                messages: request.messages,
                shown,
                images: self.images,
                has_acknowledgment: self.is_mistral,
                host: &self.host,
            },
            tool_choice: (!request.tools.is_empty()).then_some(match request.tool_choice {
                ToolChoice::Auto => "auto",
                ToolChoice::None => "none",
            }),
            response_format: schema.or(object),
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

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonSchema { json_schema: NamedSchema<'a> },
    JsonObject,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

impl<'a> ResponseFormat<'a> {
    fn new(schema: &'a Value) -> Self {
        Self::JsonSchema {
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

/// A tool as Chat Completions and Ollama describe it.
#[derive(Serialize)]
pub(crate) struct WireTool<'a> {
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> From<&'a ToolDefinition> for WireTool<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        Self {
            r#type: "function",
            function: WireFunction {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
            },
        }
    }
}
