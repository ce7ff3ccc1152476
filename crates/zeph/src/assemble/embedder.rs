//! Choice of the provider of embeddings.

use std::sync::Arc;

use anyhow::bail;
use zeph_core::{AuxiliaryUsage, Embedder};
use zeph_llm::LlmProvider;
use zeph_memory::{SqliteVectors, Store};

use super::provider::named_provider;
use crate::config::{Environment, Loaded};
use crate::output::sanitize::clean;
use crate::output::stderr_line_unless;

/// The provider that computes embeddings: the one in `[llm] embed_provider`, otherwise that of the `conversation`.
/// `None` if keyword matching is used, because the provider has no embedding model.
///
/// # Errors
/// The named provider cannot be used, or a cost limit is set and its price is not known.
pub(crate) fn embedding_provider(
    loaded: &Loaded,
    env: &Environment,
    conversation: &Arc<dyn LlmProvider>,
) -> anyhow::Result<Option<Arc<dyn LlmProvider>>> {
    let config = &loaded.config;
    let name = config.llm.embed_provider.as_str();
    let provider = match name {
        "" => Arc::clone(conversation),
        name if name == conversation.name() => Arc::clone(conversation),
        name => named_provider(loaded, env, name)?,
    };
    let Some(model) = provider.embedding_model() else {
        if name.is_empty() {
            return Ok(None);
        }
        bail!(
            "`[llm] embed_provider` names {name:?}, whose model {} creates no embeddings",
            provider.model()
        );
    };
    if config.agent.max_cost_usd.is_some() && model.prices.is_none() {
        bail!(
            "`[agent] max_cost_usd` is set, and the cost of the embeddings of {} ({}) is unknown: \
             add prices = \
             {{ input = …, output = … }} (USD for a million tokens) to its [[llm.providers]] block",
            provider.name(),
            model.name
        );
    }
    Ok(Some(provider))
}

/// The embedding provider with the storage of embeddings and the count of their costs.
///
/// Calls without a `conversation` use the provider in `[llm] embed_provider`. If it cannot be used, a notice reports
/// that, and these calls use keyword matching.
///
/// # Errors
/// As [`embedding_provider`], in a conversation.
pub(super) fn embedder(
    loaded: &Loaded,
    env: &Environment,
    conversation: Option<&Arc<dyn LlmProvider>>,
    store: &Store,
    usage: &Arc<AuxiliaryUsage>,
    quiet: bool,
) -> anyhow::Result<Option<Embedder>> {
    let provider = match (conversation, loaded.config.llm.embed_provider.as_str()) {
        (Some(conversation), _) => embedding_provider(loaded, env, conversation)?,
        (None, "") => None,
        (None, name) => named_provider(loaded, env, name)
            .and_then(|provider| embedding_provider(loaded, env, &provider))
            .unwrap_or_else(|error| {
                let text = format!(
                    "warning: embeddings unavailable, falling back to keyword matching: {error:#}"
                );
                stderr_line_unless(quiet, &clean(&text));
                None
            }),
    };
    let kept = Arc::new(SqliteVectors::new(store.clone()));
    Ok(provider.and_then(|provider| Embedder::new(provider, kept, Arc::clone(usage))))
}
