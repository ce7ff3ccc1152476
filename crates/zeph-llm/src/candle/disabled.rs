//! Placeholder for local models in a build without them.

use crate::config::ProviderConfig;
use crate::error::{LlmError, LlmErrorKind};
use crate::provider::LlmProvider;

/// Returns an error that explains how to get a build with local models.
///
/// # Errors
/// Always.
pub(crate) fn provider(
    config: &ProviderConfig,
) -> Result<std::sync::Arc<dyn LlmProvider>, LlmError> {
    Err(LlmError::new(
        LlmErrorKind::Config,
        &config.name,
        "this build has no local models (`type = \"candle\"`): build one with \
         `cargo build --release --features candle`",
    ))
}
