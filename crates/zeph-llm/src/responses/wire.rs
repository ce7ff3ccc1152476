//! The Responses API as a [`Wire`], and the fields of its requests around the messages.
//!
//! Constant fields of a conversation (model, limits, system prompt, tools) come first, then the input, and after it
//! the fields that may differ between two requests.

use serde::Serialize;
use serde_json::Value;

use super::event::{Event, Items, Response};
use super::history::Elements;
use crate::effort::Effort;
use crate::endpoint::{self, ApiPath};
use crate::http_provider::embeddings::EmbeddingsApi;
use crate::http_provider::error_mapping::{Failure, Target};
use crate::http_provider::models::ModelsApi;
use crate::http_provider::response_builder::ResponseBuilder;
use crate::http_provider::stream_reader::no_piece;
use crate::http_provider::window::WindowSource;
use crate::http_provider::wire::{Framing, Wire, output_limit};
use crate::openai::can_reason;
use crate::openai::wire::allows_strict;
use crate::provider::{ChatRequest, StreamSink};
use crate::tool::ToolChoice;

/// The wire of the Responses API.
#[derive(Debug, Clone)]
pub(crate) struct Responses {
    /// The model's name.
    pub(super) model: String,
    /// The maximum number of tokens of the response.
    pub(super) max_output_tokens: Option<u32>,
    /// Whether this is OpenAI itself. Compatible servers may refuse unknown fields: they get neither `include` nor
    /// `prompt_cache_key`.
    pub(super) openai: bool,
    /// Whether the model takes images; otherwise a text replaces them.
    pub(super) images: bool,
    /// How much the model reasons.
    pub(super) effort: Option<Effort>,
}

/// How much the model reasons. A summary is shown to the user; `none` has none.
#[derive(Serialize)]
struct Reasoning {
    effort: Effort,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'r str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'r str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    input: Elements<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'r>>,
}

/// A tool; unlike in Chat Completions, its fields are next to its type. Without `strict: false` the API would make
/// every parameter a required one.
#[derive(Serialize)]
struct Tool<'r> {
    r#type: &'static str,
    name: &'r str,
    description: &'r str,
    parameters: &'r Value,
    strict: bool,
}

#[derive(Serialize)]
struct Text<'r> {
    format: Format<'r>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'r> {
    JsonSchema {
        name: &'static str,
        strict: bool,
        schema: &'r Value,
    },
    JsonObject,
}

impl Wire for Responses {
    type StreamState = Items;

    const NAME: &'static str = "the Responses API";
    const PLACE: ApiPath = endpoint::OPENAI_RESPONSES;
    const MODELS: ModelsApi = ModelsApi {
        path: "models",
        query: None,
        window: WindowSource::ListOrProps,
    };
    const FRAMING: Framing = Framing::Events;
    const KEY_HEADER: (&'static str, &'static str) = ("authorization", "Bearer ");
    const EMBEDDINGS: Option<EmbeddingsApi> = Some(crate::openai::embeddings::EMBEDDINGS);

    fn body<'r>(&'r self, request: &'r ChatRequest<'r>, shown: Option<&'r str>) -> impl Serialize {
        let tools = request.tools.iter().map(|tool| Tool {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
            strict: false,
        });
        let schema = request.response_schema.map(|schema| Format::JsonSchema {
            name: "answer",
            strict: allows_strict(schema),
            schema,
        });
        let object = (request.json_object && self.openai).then_some(Format::JsonObject);
        Body {
            model: &self.model,
            stream: true,
            store: false,
            // OpenAI refuses it for a model that does not reason.
            include: (self.openai && can_reason(&self.model))
                .then_some(["reasoning.encrypted_content"]),
            max_output_tokens: output_limit(self.max_output_tokens, request),
            reasoning: self.effort.map(|effort| Reasoning {
                effort,
                summary: (self.openai && effort != Effort::None).then_some("auto"),
            }),
            prompt_cache_key: request.cache_key.filter(|_| self.openai),
            instructions: request.system,
            tools: tools.collect(),
            input: Elements {
                messages: request.messages,
                shown,
                images: self.images,
            },
            tool_choice: (!request.tools.is_empty()).then_some(match request.tool_choice {
                ToolChoice::Auto => "auto",
                ToolChoice::None => "none",
            }),
            text: schema.or(object).map(|format| Text { format }),
        }
    }

    fn piece(
        items: &mut Items,
        data: &str,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        // Some servers end like Chat Completions. It has no new content.
        if data.trim_ascii() == "[DONE]" {
            answer.mark_done();
            return Ok(());
        }
        let refused = |error| no_piece(&error, data, target);
        let event: Event<'_> = serde_json::from_str(data).map_err(refused)?;
        items.add(&event, answer, target, sink)
    }

    fn document(
        body: &[u8],
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<Option<()>, Failure> {
        let response = match serde_json::from_slice::<Response<'_>>(body) {
            Ok(response) if response.is_answer() => response,
            _ => return Ok(None),
        };
        Items::default().end(&response, answer, target, sink)?;
        Ok(Some(()))
    }
}
