//! Tool calls in the text of models without native calls.
//!
//! [`TextTools`] wraps a provider without tool calls. The system prompt lists the tools (`catalog`), the model reads
//! the history as texts (`history`), and the blocks of its response are the calls (`parse`, `markdown`). The caller
//! gets calls as from any other provider; the text is unchanged, blocks included.

pub mod catalog;
mod history;
mod markdown;
pub(crate) mod parse;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::error::{LlmError, LlmErrorKind};
use crate::http_provider::response_builder::new_id;
use crate::message::MessagePart;
use crate::provider::{
    ChatRequest, ChatResponse, EmbeddingModel, Embeddings, LlmProvider, ServerModel, StopReason,
    StreamEvent, StreamSink,
};
use crate::tool::{ToolChoice, ToolUseRequest};
use crate::usage::Prices;
use history::to_texts;
use parse::Call;

/// The tool of the blocks that are commands.
const BASH: &str = "bash";
/// The tool of the blocks tagged `scrape`.
const SCRAPE: &str = "web_scrape";
/// How a result begins, in front of the tool's name.
const RESULT: &str = "[tool result: ";
/// The prefix of the ids of calls in a text.
const ID: &str = "text_";
/// The maximum number of calls of one response.
const MAX_CALLS: usize = 1024;

/// A provider without native calls, with tools by text.
#[derive(Debug)]
pub struct TextTools {
    inner: Arc<dyn LlmProvider>,
}

impl TextTools {
    /// `provider` itself if it calls tools natively, otherwise with tools by text.
    #[must_use]
    pub fn wrap_if_needed(provider: Arc<dyn LlmProvider>) -> Arc<dyn LlmProvider> {
        if provider.supports_tool_use() {
            return provider;
        }
        Arc::new(Self { inner: provider })
    }

    /// The response with its calls.
    fn with_calls(
        &self,
        response: ChatResponse,
        request: &ChatRequest<'_>,
        seams: &Seams,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        let ChatResponse::Text {
            mut parts,
            stop,
            usage,
        } = response
        else {
            return Ok(response);
        };
        let text = joined(&parts);
        let found = parse::calls(&text, |name| {
            request.tools.iter().any(|tool| tool.name == name)
        });
        let was_cut = matches!(stop, StopReason::MaxTokens | StopReason::Refusal);
        let notice = |what: &str| StreamEvent::Notice(what.to_owned());
        if found.unclosed {
            sink(notice(
                "the block of a call was not closed; it does not run",
            ));
        }
        if found.calls.len() > MAX_CALLS {
            let message = format!("the response has more than {MAX_CALLS} calls");
            return Err(LlmError::new(LlmErrorKind::Protocol, self.name(), message));
        }
        for Call { name, input, span } in found.calls {
            // The end of the text may be missing.
            if was_cut && !input.is_object() && span.end == text.trim_end().len() {
                sink(notice(
                    "the output limit or a filter cut off a call; it is dropped",
                ));
                continue;
            }
            if seams.cut(&span, text.len()) {
                sink(notice(
                    "the connection broke inside a call; the call is dropped",
                ));
                continue;
            }
            sink(StreamEvent::ToolUseStarted { name: name.clone() });
            sink(StreamEvent::ToolInputDelta(match &input {
                Value::String(raw) => raw.clone(),
                input => input.to_string(),
            }));
            parts.push(MessagePart::ToolUse(ToolUseRequest::new(
                new_id(ID),
                name,
                input,
            )));
        }
        Ok(ChatResponse::from_parts(parts, stop, usage))
    }
}

/// The texts of a response. There is more than one only if thinking separates them.
fn joined(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The positions at which a stream broke off and was continued: a call never spans such a position.
#[derive(Debug, Default)]
struct Seams {
    shown: usize,
    places: Vec<usize>,
}

impl Seams {
    fn watch(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::TextDelta(text) => self.shown += text.len(),
            StreamEvent::Notice(_) | StreamEvent::Retry(_) => self.places.push(self.shown),
            _ => {}
        }
    }

    /// Whether the stream broke inside. If more text was shown than the response has, the response was restarted.
    fn cut(&self, span: &std::ops::Range<usize>, length: usize) -> bool {
        self.shown <= length
            && self
                .places
                .iter()
                .any(|at| span.start < *at && *at < span.end)
    }
}

#[async_trait]
impl LlmProvider for TextTools {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn model(&self) -> &str {
        self.inner.model()
    }

    fn supports_tool_use(&self) -> bool {
        false
    }

    fn supports_images(&self) -> bool {
        self.inner.supports_images()
    }

    fn context_window(&self) -> usize {
        self.inner.context_window()
    }

    async fn learn_window(&self) {
        self.inner.learn_window().await;
    }

    fn prices(&self) -> Option<Prices> {
        self.inner.prices()
    }

    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        let texts = to_texts(request.messages, self.supports_images());
        let system = catalog::with_tools(request.system, request.tools);
        let may_call = !request.tools.is_empty() && request.tool_choice == ToolChoice::Auto;
        let mut seams = Seams::default();
        let mut watch = |event: StreamEvent| {
            seams.watch(&event);
            sink(event);
        };
        let asked = ChatRequest {
            system: &system,
            messages: &texts,
            // A response with a schema cannot contain calls.
            response_schema: request.response_schema.filter(|_| !may_call),
            ..request
        };
        match self.inner.chat_stream(asked, &mut watch).await {
            Ok(response) if may_call => self.with_calls(response, &request, &seams, sink),
            response => response,
        }
    }

    async fn models(&self) -> Result<Vec<ServerModel>, LlmError> {
        self.inner.models().await
    }

    fn embedding_model(&self) -> Option<&EmbeddingModel> {
        self.inner.embedding_model()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Option<Embeddings>, LlmError> {
        self.inner.embed(texts).await
    }
}
