//! The Messages API as a [`Wire`], and the fields of its requests around the messages.
//!
//! Constant fields of a conversation (model, limits, tools, system prompt) come first, then the messages, and after
//! them the fields that may differ between two requests.

use serde::Serialize;
use serde_json::Value;

use super::event::{Blocks, Document, Event};
use super::history::Elements;
use super::thinking::{Reasoning, Thinking, reasoning};
use crate::effort::Effort;
use crate::endpoint::{self, ApiPath};
use crate::http_provider::error_mapping::{Failure, Target};
use crate::http_provider::models::ModelsApi;
use crate::http_provider::response_builder::ResponseBuilder;
use crate::http_provider::stream_reader::no_piece;
use crate::http_provider::window::WindowSource;
use crate::http_provider::wire::{Framing, Wire};
use crate::provider::{ChatRequest, StreamSink};
use crate::tool::ToolChoice;

/// The wire of the Messages API.
#[derive(Debug, Clone)]
pub(crate) struct Messages {
    /// The model's name.
    pub(super) model: String,
    /// The maximum number of tokens of the response.
    pub(super) max_output_tokens: u32,
    /// Whether this is Anthropic itself. Compatible servers may refuse its newer fields: they get
    /// no `output_config`.
    pub(super) anthropic: bool,
    /// Whether the model takes images; otherwise a text replaces them.
    pub(super) images: bool,
    /// How much the model reasons.
    pub(super) effort: Option<Effort>,
}

/// Marks the end of a prefix that the provider caches.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    r#type: &'static str,
}

pub(super) const EPHEMERAL: CacheControl = CacheControl {
    r#type: "ephemeral",
};

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[System<'r>; 1]>,
    messages: Elements<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'r>>,
}

#[derive(Serialize)]
struct Tool<'r> {
    name: &'r str,
    description: &'r str,
    input_schema: &'r Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct System<'r> {
    r#type: &'static str,
    text: &'r str,
    cache_control: CacheControl,
}

#[derive(Serialize)]
struct Choice {
    r#type: &'static str,
}

#[derive(Serialize)]
struct OutputConfig<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'r>>,
}

#[derive(Serialize)]
struct OutputFormat<'r> {
    r#type: &'static str,
    schema: &'r Value,
}

impl Wire for Messages {
    type StreamState = Blocks;

    const NAME: &'static str = "the Messages API";
    const PLACE: ApiPath = endpoint::ANTHROPIC_MESSAGES;
    const MODELS: ModelsApi = ModelsApi {
        path: "models",
        query: Some("limit=1000"),
        window: WindowSource::List,
    };
    const FRAMING: Framing = Framing::Events;
    const KEY_HEADER: (&'static str, &'static str) = ("x-api-key", "");
    const HEADERS: &'static [(&'static str, &'static str)] = &[("anthropic-version", "2023-06-01")];

    fn body<'r>(&'r self, request: &'r ChatRequest<'r>, shown: Option<&'r str>) -> impl Serialize {
        let last = request.tools.len().saturating_sub(1);
        let asked = request.max_output_tokens.unwrap_or(u32::MAX);
        let max_tokens = self.max_output_tokens.min(asked);
        let reasoning = reasoning(&self.model);
        let thinking = self
            .effort
            .and_then(|effort| Thinking::new(effort, reasoning, max_tokens));
        let schema = request.response_schema.filter(|_| self.anthropic);
        let output = OutputConfig {
            effort: self
                .effort
                .filter(|effort| reasoning == Some(Reasoning::Effort) && *effort != Effort::None),
            format: schema.map(|schema| OutputFormat {
                r#type: "json_schema",
                schema,
            }),
        };
        Body {
            model: &self.model,
            max_tokens,
            stream: true,
            thinking,
            tools: request
                .tools
                .iter()
                .enumerate()
                .map(|(at, tool)| Tool {
                    name: &tool.name,
                    description: &tool.description,
                    input_schema: &tool.parameters,
                    cache_control: (at == last).then_some(EPHEMERAL),
                })
                .collect(),
            // An empty or blank text block is refused.
            system: (!request.system.trim().is_empty()).then_some([System {
                r#type: "text",
                text: request.system,
                cache_control: EPHEMERAL,
            }]),
            messages: Elements {
                messages: request.messages,
                shown,
                images: self.images,
            },
            tool_choice: (!request.tools.is_empty()).then_some(Choice {
                r#type: match request.tool_choice {
                    ToolChoice::Auto => "auto",
                    ToolChoice::None => "none",
                },
            }),
            output_config: (output.effort.is_some() || output.format.is_some()).then_some(output),
        }
    }

    fn piece(
        blocks: &mut Blocks,
        data: &str,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        match serde_json::from_str::<Event>(data) {
            Ok(event) => blocks.add(event, answer, target, sink),
            Err(error) => Err(no_piece(&error, data, target)),
        }
    }

    fn document(
        body: &[u8],
        answer: &mut ResponseBuilder,
        _target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<Option<()>, Failure> {
        let Ok(document) = serde_json::from_slice::<Document>(body) else {
            return Ok(None);
        };
        document.read(answer, sink);
        Ok(Some(()))
    }
}
