//! Ollama's chat as a [`Wire`], and the fields of its requests around the messages.

use serde::Serialize;
use serde_json::Value;

use super::history::Elements;
use super::line::{Line, Thread};
use crate::effort::Effort;
use crate::endpoint::{self, ApiPath};
use crate::error::LlmErrorKind;
use crate::http_provider::embeddings::EmbeddingsApi;
use crate::http_provider::error_mapping::{Failure, Target};
use crate::http_provider::models::ModelsApi;
use crate::http_provider::response_builder::ResponseBuilder;
use crate::http_provider::stream_reader::no_piece;
use crate::http_provider::window::{Window, WindowSource};
use crate::http_provider::wire::{Framing, Wire, output_limit};
use crate::openai::wire::WireTool;
use crate::provider::{ChatRequest, StreamSink};
use crate::tool::ToolChoice;

/// The wire of Ollama's chat.
#[derive(Debug, Clone)]
pub(crate) struct OllamaChat {
    /// The model's name.
    pub(super) model: String,
    /// The window that the server gives the model.
    pub(super) window: Window,
    /// The maximum number of tokens of the response.
    pub(super) max_output_tokens: Option<u32>,
    /// Whether the model takes images; otherwise a text replaces them.
    pub(super) images: bool,
    /// How much the model reasons.
    pub(super) effort: Option<Effort>,
}

/// The field `think`: a level for the models that have levels, otherwise a switch. The server refuses a level for
/// any other model.
#[derive(Serialize)]
#[serde(untagged)]
enum Think {
    Switch(bool),
    Level(Effort),
}

impl Think {
    fn new(effort: Effort, model: &str) -> Self {
        match effort {
            Effort::None => Self::Switch(false),
            level if model.contains("gpt-oss") => Self::Level(level),
            _ => Self::Switch(true),
        }
    }
}

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
    options: Options,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'r>>,
    messages: Elements<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'r>>,
}

#[derive(Serialize)]
struct Options {
    num_ctx: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Format<'r> {
    Schema(&'r Value),
    Json(&'static str),
}

impl Wire for OllamaChat {
    type StreamState = Thread;

    const NAME: &'static str = "Ollama's API";
    const PLACE: ApiPath = endpoint::OLLAMA_CHAT;
    const MODELS: ModelsApi = ModelsApi {
        path: "tags",
        query: None,
        window: WindowSource::Show,
    };
    const FRAMING: Framing = Framing::Lines;
    const KEY_HEADER: (&'static str, &'static str) = ("authorization", "Bearer ");
    const EMBEDDINGS: Option<EmbeddingsApi> = Some(super::embeddings::EMBEDDINGS);

    /// The API has no option for tools that must not be called: if calls are forbidden, the request has no tools.
    fn body<'r>(&'r self, request: &'r ChatRequest<'r>, shown: Option<&'r str>) -> impl Serialize {
        let tools = match request.tool_choice {
            ToolChoice::Auto => request.tools,
            ToolChoice::None => &[],
        };
        let schema = request.response_schema.map(Format::Schema);
        Body {
            model: &self.model,
            stream: true,
            think: self.effort.map(|effort| Think::new(effort, &self.model)),
            options: Options {
                num_ctx: self.window.tokens(),
                num_predict: output_limit(self.max_output_tokens, request),
            },
            tools: tools.iter().map(WireTool::from).collect(),
            messages: Elements {
                system: request.system,
                messages: request.messages,
                shown,
                images: self.images,
            },
            format: schema.or(request.json_object.then_some(Format::Json("json"))),
        }
    }

    fn piece(
        thread: &mut Thread,
        data: &str,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        match serde_json::from_str::<Line>(data) {
            Ok(line) => thread.add(line, data, answer, target, sink),
            Err(error) => Err(no_piece(&error, data, target)),
        }
    }

    /// A complete response is a line like any other, so the reader never calls this.
    fn document(
        _body: &[u8],
        _answer: &mut ResponseBuilder,
        target: Target<'_>,
        _sink: StreamSink<'_>,
    ) -> Result<Option<()>, Failure> {
        let message = format!("{} did not respond with lines", target.url);
        Err(Failure::new(LlmErrorKind::Protocol, message))
    }
}
