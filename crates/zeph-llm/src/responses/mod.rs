//! OpenAI's Responses API, and servers compatible with it.
//!
//! Format: <https://platform.openai.com/docs/api-reference/responses> and its page on streaming.
//!
//! - Nothing is stored on the server (`store: false`): each request holds the whole history.
//! - Reasoning is sent back byte by byte if it has content that the model can read: its encrypted content, or its
//!   text. A summary alone is shown and stored, but not sent.
//! - The position in the response identifies an item. If a server omits it, the id does; without
//!   an id, it is the latest item.

mod event;
mod history;
mod item;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use secrecy::SecretString;

use crate::config::{ProviderConfig, RetryConfig};
use crate::error::LlmError;
use crate::http_provider::{Limits, RemoteProvider};
use crate::openai::context_window;
use wire::Responses;

/// A provider for a server with the Responses API.
///
/// # Errors
/// As [`RemoteProvider::new`].
pub(crate) fn provider(
    config: &ProviderConfig,
    retry: RetryConfig,
    api_key: Option<SecretString>,
) -> Result<RemoteProvider<Responses>, LlmError> {
    let limits = Limits::of(config, context_window(&config.model));
    let wire = Responses {
        model: config.model.clone(),
        max_output_tokens: config.max_output_tokens,
        openai: config.is_vendor(),
        images: limits.images,
        effort: config.effort,
    };
    RemoteProvider::new(config, retry, api_key, limits, wire)
}
