//! Replacement of `zeph models pull` in a build that cannot run models: an error with the remedy.

use anyhow::bail;
use zeph_llm::RetryConfig;

use super::{Manifest, ModelStore, Wanted};
use crate::config::Environment;

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
        "this build cannot download the model {model:?}, because it cannot run models in its own \
         process: build Zeph with \
         `cargo build --release --features candle`"
    )
}
