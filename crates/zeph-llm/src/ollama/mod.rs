//! Ollama's own API.
//!
//! Format: <https://docs.ollama.com/api/chat>. One JSON document per line. Calls are complete, with arguments as an
//! object or, from some versions and models, as JSON text, and often without an id.
//!
//! The window is part of each request (`options.num_ctx`). Without it, the server uses a small default, and silently
//! drops the start of a longer conversation.
//!
//! The types are our own and not those of the crate `ollama-rs` (0.3.6). Even without its features, that crate adds a
//! second, older HTTP client. Its types own their content, so that each request would copy the history.

mod embeddings;
mod history;
mod line;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use async_trait::async_trait;
use secrecy::SecretString;

use crate::config::{ProviderConfig, RetryConfig};
use crate::error::LlmError;
use crate::http_provider::{Limits, RemoteProvider};
use crate::provider::{
    ChatRequest, ChatResponse, EmbeddingModel, Embeddings, LlmProvider, ServerModel, StreamSink,
};
use crate::usage::Prices;
use wire::OllamaChat;

/// The default window in tokens: room for the definitions of the tools and a conversation, and small enough for a
/// small machine.
pub const DEFAULT_CONTEXT_WINDOW: usize = 16_384;

/// A provider that speaks Ollama's API.
#[derive(Debug)]
pub struct OllamaProvider {
    remote: RemoteProvider<OllamaChat>,
}

impl OllamaProvider {
    /// A provider for a checked configuration. Nothing is connected yet.
    ///
    /// # Errors
    /// `Config` for a `base_url` that cannot be used; `Auth` if the configuration names a key and
    /// `api_key` is absent or cannot be sent in a header.
    pub fn new(
        config: &ProviderConfig,
        retry: RetryConfig,
        api_key: Option<SecretString>,
    ) -> Result<Self, LlmError> {
        let limits = Limits::of(config, DEFAULT_CONTEXT_WINDOW);
        let wire = OllamaChat {
            model: config.model.clone(),
            window: limits.window.clone(),
            max_output_tokens: config.max_output_tokens,
            images: limits.images,
            effort: config.effort,
        };
        let remote = RemoteProvider::new(config, retry, api_key, limits, wire)?;
        Ok(Self { remote })
    }
}

#[async_trait]
impl LlmProvider for OllamaProvider {
    fn name(&self) -> &str {
        self.remote.name()
    }

    fn model(&self) -> &str {
        self.remote.model()
    }

    fn supports_tool_use(&self) -> bool {
        self.remote.supports_tool_use()
    }

    fn supports_images(&self) -> bool {
        self.remote.supports_images()
    }

    fn context_window(&self) -> usize {
        self.remote.context_window()
    }

    async fn learn_window(&self) {
        self.remote.learn_window().await;
    }

    fn prices(&self) -> Option<Prices> {
        self.remote.prices()
    }

    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        self.remote.chat_stream(request, sink).await
    }

    async fn models(&self) -> Result<Vec<ServerModel>, LlmError> {
        self.remote.models().await
    }

    fn embedding_model(&self) -> Option<&EmbeddingModel> {
        self.remote.embedding_model()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Option<Embeddings>, LlmError> {
        self.remote.embed(texts).await
    }
}
