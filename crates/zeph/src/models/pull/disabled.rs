//! Replacement of `zeph models pull` in a build that cannot run models: an error with the remedy.

use anyhow::bail;
use zeph_llm::RetryConfig;

use super::{Manifest, ModelStore};
use crate::config::Environment;

/// The model that the user requests.
#[derive(Debug, Default)]
#[allow(
    dead_code,
    reason = "only a build that fetches models reads all fields"
)]
pub(crate) struct Wanted {
    /// OWNER/REPO/FILE.gguf of a hub, a URL, or a path.
    pub(crate) model: String,
    /// The name of the model in the store.
    pub(crate) name: Option<String>,
    /// The expected SHA-256.
    pub(crate) sha256: Option<String>,
}

/// Returns an error that explains how to get a build that fetches models.
///
/// # Errors
/// Always.
#[allow(clippy::unused_async)]
pub(crate) async fn pull(
    _: &ModelStore,
    _: &Environment,
    _: &RetryConfig,
    wanted: Wanted,
    _: bool,
) -> anyhow::Result<Manifest> {
    let Wanted { model, .. } = wanted;
    bail!(
        "this build cannot fetch the model {model:?}, because it cannot run models in its own process: build Zeph with \
         `cargo build --release --features candle`"
    )
}
