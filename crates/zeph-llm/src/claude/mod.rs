//! Anthropic's Messages API, and servers compatible with it.
//!
//! Format: <https://docs.anthropic.com/en/api/messages> and its pages on streaming, tool use,
//! extended thinking and prompt caching.
//!
//! - A response consists of content blocks, and is stored in their order.
//! - Thinking is sent back unchanged, with its signature. Without a signature it is shown and stored, but not sent.
//!   Encrypted thinking is sent back too.
//! - Cache breakpoints are at the last tool, the system prompt and the last two messages of the user: the newest is
//!   written, the one before is read.

mod event;
mod history;
mod models;
#[cfg(test)]
mod tests;
mod thinking;
pub(crate) mod wire;

use secrecy::SecretString;

pub use models::{context_window, max_output_tokens};

use crate::config::{ProviderConfig, RetryConfig};
use crate::error::{LlmError, LlmErrorKind};
use crate::http_provider::{Limits, RemoteProvider};
use wire::Messages;

/// A provider for a server with the Messages API.
///
/// # Errors
/// As [`RemoteProvider::new`].
pub(crate) fn provider(
    config: &ProviderConfig,
    retry: RetryConfig,
    api_key: Option<SecretString>,
) -> Result<RemoteProvider<Messages>, LlmError> {
    if config.effort.is_some() && thinking::reasoning(&config.model).is_none() {
        let message = format!(
            "`effort` has no effect for the model `{}`, which does not reason: remove it",
            config.model
        );
        return Err(LlmError::new(LlmErrorKind::Config, &config.name, message));
    }
    let limits = Limits::of(config, context_window(&config.model));
    let wire = Messages {
        model: config.model.clone(),
        max_output_tokens: config
            .max_output_tokens
            .unwrap_or_else(|| max_output_tokens(&config.model)),
        anthropic: config.is_vendor(),
        images: limits.images,
        effort: config.effort,
    };
    RemoteProvider::new(config, retry, api_key, limits, wire)
}
