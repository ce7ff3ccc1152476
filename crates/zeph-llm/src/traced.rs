//! A `request` span around each chat and embedding request to a provider, with the names of the OpenTelemetry conventions for generative AI.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};

use crate::config::ProviderKind;
use crate::error::LlmError;
use crate::message::{Message, MessagePart};
use crate::provider::{
    ChatRequest, ChatResponse, EmbeddingModel, Embeddings, LlmProvider, ServerModel, StopReason,
    StreamSink,
};
use crate::usage::{Prices, Usage};

/// The maximum size of one text of a message in a span.
const MAX_TEXT: usize = 8 * 1024;
/// The size of the messages in a span: the last ones up to this size, and the last one in any case.
const MAX_MESSAGES: usize = 32 * 1024;

/// Whether spans hold the content of messages and calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpanContent {
    /// No span holds content.
    #[default]
    Omitted,
    /// Spans hold messages, arguments and results.
    Recorded,
}

impl SpanContent {
    /// Records the start of a text in a field of a span, if content is recorded.
    pub fn record<T: AsRef<str>>(self, span: &Span, field: &'static str, text: impl FnOnce() -> T) {
        if self == Self::Recorded {
            span.record(field, limited(text().as_ref()));
        }
    }
}

/// A provider whose requests have spans.
#[derive(Debug)]
pub(crate) struct Traced {
    inner: Arc<dyn LlmProvider>,
    kind: &'static str,
    content: SpanContent,
}

impl Traced {
    pub(crate) fn new(
        inner: Arc<dyn LlmProvider>,
        kind: ProviderKind,
        content: SpanContent,
    ) -> Self {
        let kind = match kind {
            ProviderKind::Claude => "anthropic",
            ProviderKind::Openai => "openai",
            ProviderKind::Ollama => "ollama",
            ProviderKind::Candle => "candle",
            ProviderKind::Scripted => "scripted",
        };
        Self {
            inner,
            kind,
            content,
        }
    }

    fn ending(&self, span: &Span) -> Ending {
        Ending {
            span: Some(span.clone()),
            content: self.content,
        }
    }

    fn span(&self, operation: &str, model: &str, conversation: Option<&str>) -> Span {
        info_span!(
            "request",
            otel.name = format_args!("{operation} {model}"),
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = operation,
            gen_ai.provider.name = self.kind,
            gen_ai.request.model = model,
            gen_ai.conversation.id = conversation,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.system_instructions = Empty,
            gen_ai.input.messages = Empty,
            gen_ai.output.messages = Empty,
            error.type = Empty,
        )
    }
}

/// Records the end of a request in its span. Without a result, the request was cancelled.
struct Ending {
    span: Option<Span>,
    content: SpanContent,
}

impl Ending {
    fn response(mut self, response: &ChatResponse) {
        let Some(span) = self.span.take() else { return };
        record_usage(&span, response.usage());
        let (reason, parts) = match response {
            ChatResponse::Text { stop, parts, .. } => (finish_reason(*stop), parts),
            ChatResponse::ToolUse { parts, .. } => (finish_reason(StopReason::ToolUse), parts),
        };
        span.record("gen_ai.response.finish_reasons", reason);
        if self.content == SpanContent::Recorded {
            let message =
                json!([{ "role": "assistant", "parts": shown(parts), "finish_reason": reason }]);
            span.record("gen_ai.output.messages", message.to_string());
        }
    }

    fn embeddings(mut self, embeddings: &Option<Embeddings>) {
        if let (Some(span), Some(embeddings)) = (self.span.take(), embeddings) {
            record_usage(&span, embeddings.usage);
        }
    }

    fn error(mut self, error: &LlmError) {
        if let Some(span) = self.span.take() {
            record_error(&span, error.kind.label());
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(span) = self.span.take() {
            record_error(&span, "cancelled");
        }
    }
}

/// Marks a span as failed, with the class of the failure.
pub fn record_error(span: &Span, class: &str) {
    span.record("error.type", class);
    span.record("otel.status_code", "ERROR");
}

fn record_usage(span: &Span, usage: Usage) {
    // Telemetry has signed integers only.
    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    span.record("gen_ai.usage.input_tokens", count(usage.input_tokens));
    span.record("gen_ai.usage.output_tokens", count(usage.output_tokens));
    let (read, written) = (usage.cached_tokens, usage.cache_write_tokens);
    if read > 0 {
        span.record("gen_ai.usage.cache_read.input_tokens", count(read));
    }
    if written > 0 {
        span.record("gen_ai.usage.cache_creation.input_tokens", count(written));
    }
}

fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn => "stop",
        StopReason::ToolUse => "tool_call",
        StopReason::MaxTokens => "length",
        StopReason::Refusal => "content_filter",
    }
}

/// The messages of a request as JSON. Those before the last ones are left out.
fn messages(messages: &[Message]) -> String {
    let mut last = Vec::new();
    let mut size = 0;
    for message in messages.iter().rev() {
        let message = json!({ "role": message.role.as_str(), "parts": shown(&message.parts) });
        size += message.to_string().len();
        if size > MAX_MESSAGES && !last.is_empty() {
            break;
        }
        last.push(message);
    }
    last.reverse();
    Value::Array(last).to_string()
}

fn shown(parts: &[MessagePart]) -> Value {
    let parts = parts.iter().map(|part| match part {
        MessagePart::Text { text } => json!({ "type": "text", "content": limited(text) }),
        MessagePart::Image { media_type, data } => {
            json!({ "type": "image", "mime_type": media_type, "bytes": data.len() / 4 * 3 })
        }
        MessagePart::ToolUse(request) => json!({
            "type": "tool_call",
            "id": request.id,
            "name": request.name,
            "arguments": limited(&request.input.to_string()),
        }),
        MessagePart::ToolResult {
            tool_use_id,
            content,
            ..
        } => json!({
            "type": "tool_call_response",
            "id": tool_use_id,
            "response": limited(content),
        }),
        MessagePart::Reasoning { text, .. } => {
            json!({ "type": "reasoning", "content": limited(text) })
        }
    });
    parts.collect()
}

/// The beginning of a text. It ends with a word, so that no secret is cut into a part that no pattern finds.
fn limited(text: &str) -> &str {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let start = &text[..text.floor_char_boundary(MAX_TEXT)];
    start[..start.rfind(char::is_whitespace).unwrap_or(0)].trim_end()
}

#[async_trait]
impl LlmProvider for Traced {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn model(&self) -> &str {
        self.inner.model()
    }

    fn supports_tool_use(&self) -> bool {
        self.inner.supports_tool_use()
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
        let span = self.span("chat", self.model(), request.cache_key);
        if self.content == SpanContent::Recorded {
            span.record("gen_ai.system_instructions", limited(request.system));
            span.record("gen_ai.input.messages", messages(request.messages));
        }
        let ending = self.ending(&span);
        let sent = self.inner.chat_stream(request, sink).instrument(span);
        let result = sent.await;
        match &result {
            Ok(response) => ending.response(response),
            Err(error) => ending.error(error),
        }
        result
    }

    async fn models(&self) -> Result<Vec<ServerModel>, LlmError> {
        self.inner.models().await
    }

    fn embedding_model(&self) -> Option<&EmbeddingModel> {
        self.inner.embedding_model()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Option<Embeddings>, LlmError> {
        let Some(model) = self.embedding_model() else {
            return self.inner.embed(texts).await;
        };
        let span = self.span("embeddings", &model.name, None);
        let ending = self.ending(&span);
        let result = self.inner.embed(texts).instrument(span).await;
        match &result {
            Ok(embeddings) => ending.embeddings(embeddings),
            Err(error) => ending.error(error),
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_text_ends_with_a_word() {
        let long = format!("{} secret", "word ".repeat(MAX_TEXT / 5));
        assert_eq!(limited("short"), "short");
        assert!(limited(&long).len() <= MAX_TEXT);
        assert!(limited(&long).ends_with("word"));
        assert_eq!(limited(&"x".repeat(MAX_TEXT + 1)), "");
    }

    #[test]
    fn messages_of_a_span_are_the_last_ones() {
        let all: Vec<Message> = (0..20)
            .map(|number| Message::user(format!("{number} {}", "word ".repeat(800))))
            .collect();
        let text = messages(&all);
        assert!(text.len() <= MAX_MESSAGES + 100, "{}", text.len());
        let value: Value = serde_json::from_str(&text).unwrap();
        let contents = value.as_array().unwrap();
        let last = contents.last().unwrap()["parts"][0]["content"].as_str();
        assert!(last.unwrap().starts_with("19 "));
        assert!(contents.len() < 20);
    }
}
