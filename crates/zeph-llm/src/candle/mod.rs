//! Models that run in the process itself, on the CPU (feature `candle`).
//!
//! A provider of this kind responds with text and has no native tool calls ([`LlmProvider::supports_tool_use`] is
//! false). If a request has tools, a grammar restricts the text: a `json` fence is a call of one of them,
//! `{"tool_id": NAME, "params": {…}}`, with arguments that match its schema.

mod embedder;
mod engine;
mod gguf;
mod grammar;
mod model;
mod prompt;
pub mod quantize;
mod safetensors;
mod source;
mod template;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
mod text;
mod thread_pool;
mod vocabulary;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use async_trait::async_trait;
use serde_json::json;

use self::engine::{CompletionRequest, Failure};
use self::grammar::Form;
use self::source::Source;
use self::thread_pool::Cores;
use self::worker::{Job, Reply};
use crate::config::ProviderConfig;
use crate::error::{LlmError, LlmErrorKind};
use crate::message::MessagePart;
use crate::provider::{
    ChatRequest, ChatResponse, EmbeddingModel, Embeddings, LlmProvider, StreamEvent, StreamSink,
};
use crate::tool::ToolChoice;
use crate::usage::Prices;
use crate::usage::Usage;

/// The default maximum number of tokens of a response. Small models do not always stop on their own.
const DEFAULT_MAX_OUTPUT: u32 = 1024;

/// A model in this process.
#[derive(Debug)]
pub struct CandleProvider {
    name: String,
    model: String,
    window: usize,
    max_output: u32,
    /// The embedding model, if this provider makes embeddings instead of text.
    embeddings: Option<EmbeddingModel>,
    prices: Option<Prices>,
    jobs: Sender<Job>,
}

/// The provider of a configuration.
///
/// `model` is the path of a GGUF file, or of a directory with one called `model.gguf`, or with `config.json`,
/// `tokenizer.json` and `*.safetensors`. The files are inspected now, and loaded at the first request.
///
/// # Errors
/// `Config` if the model is missing or of an unknown kind.
pub fn provider(config: &ProviderConfig) -> Result<Arc<dyn LlmProvider>, LlmError> {
    let path = Path::new(&config.model);
    let fault = |error: String| {
        LlmError::new(
            LlmErrorKind::Config,
            &config.name,
            format!("the model at {} cannot be used: {error}", path.display()),
        )
    };
    let source = Source::look(path).map_err(fault)?;
    let configured = config.context_window.unwrap_or(source.context);
    let window = configured.min(source.context);
    let weights = source.weights();
    let cores = match config.all_cores {
        Some(true) => Cores::All,
        Some(false) | None => Cores::One,
    };
    let jobs = worker::start(source, window, cores).map_err(|error| fault(error.to_string()))?;
    let shown = match path.file_name().and_then(|name| name.to_str()) {
        Some("model.gguf") => path.parent().and_then(Path::file_name),
        _ => path.file_stem(),
    };
    let shown = shown.map(|name| name.to_string_lossy().into_owned());
    let shown = shown.unwrap_or_else(|| config.model.clone());
    let embeddings = weights.map(|weights| EmbeddingModel {
        name: shown.clone(),
        key: format!("candle {weights}"),
        prices: config.known_prices(),
    });
    Ok(Arc::new(CandleProvider {
        name: config.name.clone(),
        model: shown,
        window,
        max_output: config.max_output_tokens.unwrap_or(DEFAULT_MAX_OUTPUT),
        embeddings,
        prices: config.known_prices(),
        jobs,
    }))
}

/// The text of an error, without its position in the code.
fn words(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

impl CandleProvider {
    fn error(&self, failure: Failure) -> LlmError {
        let (kind, message) = match failure {
            Failure::Error(kind, message) => (kind, message),
            Failure::Cancelled => (
                LlmErrorKind::StreamCut,
                "the request was dropped".to_owned(),
            ),
        };
        LlmError::new(kind, &self.name, message)
    }

    fn ended(&self) -> LlmError {
        let message = "the thread of the local model has ended: restart Zeph";
        LlmError::new(LlmErrorKind::Protocol, &self.name, message)
    }
}

/// The form of the response to a request.
fn form(request: &ChatRequest<'_>) -> Form {
    match (request.response_schema, request.tool_choice) {
        (Some(schema), _) => Form::Document(schema.clone()),
        (None, _) if request.json_object => Form::Document(json!({ "type": "object" })),
        (None, _) if request.tools.is_empty() => Form::Free,
        (None, ToolChoice::Auto) => Form::Calls(request.tools.to_vec()),
        (None, ToolChoice::None) => Form::Calls(Vec::new()),
    }
}

#[async_trait]
impl LlmProvider for CandleProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn supports_tool_use(&self) -> bool {
        false
    }

    fn context_window(&self) -> usize {
        self.window
    }

    fn prices(&self) -> Option<Prices> {
        self.prices
    }

    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        if self.embeddings.is_some() {
            return Err(self.error(worker::no_answers()));
        }
        let most = request.max_output_tokens.unwrap_or(u32::MAX);
        let question = CompletionRequest {
            chat: prompt::conversation(request.system, request.messages),
            form: form(&request),
            most: most.min(self.max_output).max(1) as usize,
        };
        // If the caller drops the future, this channel closes, and the thread stops at the next token.
        let (sender, mut replies) = tokio::sync::mpsc::unbounded_channel();
        let job = Job::Answer(question, sender);
        self.jobs.send(job).map_err(|_| self.ended())?;
        let mut text = String::new();
        while let Some(reply) = replies.recv().await {
            match reply {
                Reply::Text(delta) => {
                    text.push_str(&delta);
                    sink(StreamEvent::TextDelta(delta));
                }
                Reply::Done(result) => {
                    let ended = result.map_err(|failure| self.error(failure))?;
                    let parts = vec![MessagePart::Text { text }];
                    return Ok(ChatResponse::from_parts(parts, ended.stop, ended.usage));
                }
            }
        }
        Err(self.ended())
    }

    fn embedding_model(&self) -> Option<&EmbeddingModel> {
        self.embeddings.as_ref()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Option<Embeddings>, LlmError> {
        if self.embeddings.is_none() {
            return Ok(None);
        }
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        let (sender, reply) = tokio::sync::oneshot::channel();
        let job = Job::Embed(texts, sender);
        self.jobs.send(job).map_err(|_| self.ended())?;
        let vectors = reply.await.map_err(|_| self.ended())?;
        let vectors = vectors.map_err(|failure| self.error(failure))?;
        Ok(Some(Embeddings {
            vectors,
            usage: Usage::default(),
        }))
    }
}
