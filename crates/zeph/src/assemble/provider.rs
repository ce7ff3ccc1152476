//! Which model is asked.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use secrecy::SecretString;
use zeph_core::{Reformatter, SideUsage};
use zeph_llm::{LlmProvider, ProviderConfig, ProviderKind};
use zeph_tools::reformat::Reformat;

use crate::config::{Environment, Loaded};

/// The key that makes OpenAI the provider when none is configured.
pub(super) const OPENAI_KEY: &str = "OPENAI_API_KEY";
/// The model that is asked then, unless `--model` names another.
const OPENAI_MODEL: &str = "gpt-5-mini";

/// The three ways to go on without a provider.
const NO_PROVIDER: &str = "no model to ask: no provider is configured. Three ways to go on:\n\
  1. export OPENAI_API_KEY=…             (OpenAI is then asked; --model chooses the model)\n\
  2. zeph config init, then add a [[llm.providers]] block: any OpenAI-compatible server will do\n     \
     (Ollama, llama.cpp, vLLM: type = \"openai\", base_url = \"http://127.0.0.1:11434\", model = \"…\")\n\
  3. zeph demo                           (offline: see the tools work with scripted model lines)";

/// Builds the provider that the configuration chooses; without any, the one whose key is in the
/// environment.
///
/// # Errors
/// The three ways to go on when there is none; what is wrong with the one chosen.
pub(crate) fn choose_provider(
    loaded: &Loaded,
    env: &Environment,
    model: Option<&str>,
) -> anyhow::Result<Arc<dyn LlmProvider>> {
    let llm = &loaded.config.llm;
    let from_environment;
    let config = match llm.chosen() {
        Some(config) => config,
        None if env.var(OPENAI_KEY).is_some() => {
            from_environment = openai(env, model);
            &from_environment
        }
        None => bail!(NO_PROVIDER),
    };
    build(config, loaded, env)
}

/// Builds the provider of this name.
///
/// # Errors
/// What is wrong with it.
pub(super) fn named_provider(
    loaded: &Loaded,
    env: &Environment,
    name: &str,
) -> anyhow::Result<Arc<dyn LlmProvider>> {
    let providers = &loaded.config.llm.providers;
    let config = providers.iter().find(|config| config.name == name);
    let config = config.with_context(|| format!("there is no provider called {name:?}"))?;
    build(config, loaded, env)
}

/// Whether there is a provider to choose.
pub(super) fn has_provider(loaded: &Loaded, env: &Environment) -> bool {
    loaded.config.llm.chosen().is_some() || env.var(OPENAI_KEY).is_some()
}

/// Who puts arguments right that do not fit: the provider that `[tools.retry]` names, or `primary`. Its
/// tokens are added to `usage`.
///
/// # Errors
/// What is wrong with the one that is named.
pub(crate) fn reformatter(
    loaded: &Loaded,
    env: &Environment,
    primary: &Arc<dyn LlmProvider>,
    usage: &Arc<SideUsage>,
) -> anyhow::Result<Option<Arc<dyn Reformat>>> {
    let retry = &loaded.config.tools.retry;
    let name = retry.parameter_reformat_provider.as_str();
    let provider = if name.is_empty() || name == primary.name() {
        Arc::clone(primary)
    } else {
        named_provider(loaded, env, name)?
    };
    // Without time nobody is asked.
    let time = Duration::from_secs(retry.budget_secs);
    let reformatter = || Arc::new(Reformatter::new(provider, time, Arc::clone(usage))) as _;
    Ok((!time.is_zero()).then(reformatter))
}

/// Builds a configured provider with its key.
fn build(
    config: &ProviderConfig,
    loaded: &Loaded,
    env: &Environment,
) -> anyhow::Result<Arc<dyn LlmProvider>> {
    let key = match config.key_env() {
        None => None,
        Some(name) => match env.var(name) {
            Some(value) => Some(SecretString::from(
                value
                    .to_str()
                    .with_context(|| format!("the value of {name} is not valid UTF-8"))?
                    .trim()
                    .to_owned(),
            )),
            None => bail!(
                "provider {:?} needs a key: export {name}=…, or name another variable with api_key_env",
                config.name
            ),
        },
    };
    let retry = loaded.config.llm.retry;
    Ok(zeph_llm::config::build_provider(config, retry, key)?)
}

/// The server of the provider that is made from the environment; `None` is OpenAI itself.
pub(crate) fn openai_base_url(env: &Environment) -> Option<String> {
    let url = env.var("OPENAI_BASE_URL")?.to_str()?;
    Some(url.to_owned())
}

fn openai(env: &Environment, model: Option<&str>) -> ProviderConfig {
    ProviderConfig {
        name: "openai".to_owned(),
        kind: ProviderKind::Openai,
        model: model.unwrap_or(OPENAI_MODEL).to_owned(),
        base_url: openai_base_url(env),
        api_key_env: Some(OPENAI_KEY.to_owned()),
        context_window: None,
        max_output_tokens: None,
        images: None,
        scenario: None,
    }
}
