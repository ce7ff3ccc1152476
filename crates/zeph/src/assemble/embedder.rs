//! Who makes vectors of texts.

use std::sync::Arc;

use anyhow::bail;
use zeph_core::{AuxiliaryUsage, Embedder};
use zeph_llm::LlmProvider;
use zeph_memory::{SqliteVectors, Store};

use super::provider::named_provider;
use crate::config::{Environment, Loaded};
use crate::output::stderr_line;
use crate::terminal::sanitize::clean;

/// The provider that makes vectors: the one that `[llm] embed_provider` names, else that of the
/// `conversation`, if it makes some. `None` where words are compared.
///
/// # Errors
/// What is wrong with the one that is named.
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
            "`[llm] embed_provider` names {name:?}, whose model makes no embeddings: {} answers in words",
            provider.model()
        );
    };
    if config.agent.max_cost_usd.is_some() && model.prices.is_none() {
        bail!(
            "`[agent] max_cost_usd` is set, and what the embeddings of {} ({}) cost is not known: add prices = \
             {{ input = …, output = … }} (USD for a million tokens) to its [[llm.providers]] block",
            provider.name(),
            model.name
        );
    }
    Ok(Some(provider))
}

/// The same with what keeps vectors and counts what they cost. Calls that no `conversation` makes
/// have the one that `[llm] embed_provider` names; where it cannot be had, a notice says so, and
/// they compare words.
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
                if !quiet {
                    let text =
                        format!("warning: embeddings unavailable, falling back to keyword matching: {error:#}");
                    stderr_line(&clean(&text));
                }
                None
            }),
    };
    let kept = Arc::new(SqliteVectors::new(store.clone()));
    Ok(provider.and_then(|provider| Embedder::new(provider, kept, Arc::clone(usage))))
}
