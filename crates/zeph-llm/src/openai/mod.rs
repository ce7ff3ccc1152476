//! OpenAI's Chat Completions, and every server compatible with it.
//!
//! Reasoning is shown and stored in the message. OpenAI has no field to send it back. Other servers
//! get back, with calls, the content that they may require and that came from their host:
//! `reasoning_content` (Kimi, DeepSeek) and `extra_content` of calls (Gemini).

mod chunk;
mod delta;
pub(crate) mod embeddings;
pub(crate) mod history;
mod models;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use secrecy::SecretString;

pub(crate) use models::can_reason;
pub use models::{DEFAULT_CONTEXT_WINDOW, context_window};

use crate::config::{ProviderConfig, RetryConfig};
use crate::error::LlmError;
use crate::http_provider::{Limits, RemoteProvider};
use wire::ChatCompletions;

/// A provider for a server with Chat Completions.
///
/// # Errors
/// As [`RemoteProvider::new`].
pub(crate) fn provider(
    config: &ProviderConfig,
    retry: RetryConfig,
    api_key: Option<SecretString>,
) -> Result<RemoteProvider<ChatCompletions>, LlmError> {
    let limits = Limits::of(config, context_window(&config.model));
    let wire = ChatCompletions::new(config, limits.images);
    RemoteProvider::new(config, retry, api_key, limits, wire)
}
