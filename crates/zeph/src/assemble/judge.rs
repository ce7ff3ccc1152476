//! Models that read calls and output next to the conversation: the judge of calls, and the summarizer.

use std::sync::Arc;

use anyhow::Context as _;
use zeph_core::{AuxiliaryUsage, ModelJudge, ModelSummarizer};
use zeph_llm::LlmProvider;
use zeph_tools::gate::llm_judge::{AdversarialGate, PolicyJudge};
use zeph_tools::overflow::summary::OutputSummarizer;

use super::provider::{chosen_config, named_provider, with_substitutes};
use crate::config::{Environment, Loaded};

/// The adversarial gate, if it is enabled. The judge uses the provider of the `conversation`, if the configuration
/// means that one. If no judge is available, the gate still exists and has the reason.
pub(super) fn gate(
    loaded: &Loaded,
    env: &Environment,
    model: Option<&str>,
    conversation: Option<&Arc<dyn LlmProvider>>,
    usage: &Arc<AuxiliaryUsage>,
) -> Option<AdversarialGate> {
    let adversarial_policy = &loaded.config.tools.adversarial_policy;
    if !adversarial_policy.enabled {
        return None;
    }
    let named = |provider: &&Arc<dyn LlmProvider>| {
        adversarial_policy.provider.is_empty() || provider.name() == adversarial_policy.provider
    };
    let provider = match conversation.filter(named) {
        Some(provider) => Ok(Arc::clone(provider)),
        None => judge(loaded, env, model),
    };
    let judge =
        |provider| Arc::new(ModelJudge::new(provider, Arc::clone(usage))) as Arc<dyn PolicyJudge>;
    // Each list is judged alone, so that no text of a project can weaken the user's policies.
    let (own, added) = adversarial_policy
        .policies
        .split_at(loaded.own_policies.min(adversarial_policy.policies.len()));
    let groups = [own, added].into_iter().filter(|group| !group.is_empty());
    Some(AdversarialGate {
        config: adversarial_policy.clone(),
        groups: groups.map(<[String]>::to_vec).collect(),
        directory: env.cwd.display().to_string(),
        judge: provider.map(judge),
    })
}

/// The provider of the judge without a conversation.
///
/// # Errors
/// The text of the error states the missing part.
pub(crate) fn judge(
    loaded: &Loaded,
    env: &Environment,
    model: Option<&str>,
) -> Result<Arc<dyn LlmProvider>, String> {
    let provider = match loaded.config.tools.adversarial_policy.provider.as_str() {
        "" => {
            let config = chosen_config(loaded, env, model);
            let config = config.map_err(|_| "no provider is configured".to_owned())?;
            with_substitutes(&config, loaded, env)
        }
        name => named_provider(loaded, env, name),
    };
    provider.map_err(|error| format!("{error:#}"))
}

/// The summarizer of over-long output; `None` if `[tools.overflow] summarize` is off, and outside a
/// conversation if no provider can be asked.
///
/// # Errors
/// The provider that `summary_provider` names cannot be built.
pub(super) fn summarizer(
    loaded: &Loaded,
    env: &Environment,
    model: Option<&str>,
    conversation: Option<&Arc<dyn LlmProvider>>,
    usage: &Arc<AuxiliaryUsage>,
) -> anyhow::Result<Option<Arc<dyn OutputSummarizer>>> {
    let overflow = &loaded.config.tools.overflow;
    if !overflow.summarize {
        return Ok(None);
    }
    let name = overflow.summary_provider.as_str();
    let named = |provider: &&Arc<dyn LlmProvider>| name.is_empty() || provider.name() == name;
    let provider = match (conversation.filter(named), name) {
        (Some(provider), _) => Some(Arc::clone(provider)),
        (None, "") => chosen_config(loaded, env, model)
            .and_then(|config| with_substitutes(&config, loaded, env))
            .ok(),
        (None, name) => {
            let provider = named_provider(loaded, env, name);
            Some(provider.context("`[tools.overflow] summary_provider`")?)
        }
    };
    let summarizer = |provider| Arc::new(ModelSummarizer::new(provider, Arc::clone(usage))) as _;
    Ok(provider.map(summarizer))
}
