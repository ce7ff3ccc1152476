//! Choice and construction of the model provider.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use secrecy::SecretString;
use zeph_core::{AuxiliaryUsage, Compressor, Reformatter};
use zeph_llm::{Fallback, LlmProvider, ProviderConfig, ProviderKind};
use zeph_tools::argument_repair::ArgumentRepairer;
use zeph_tools::secrets::SecurityPatterns;

use super::ollama;
use crate::config::{Environment, Loaded};
use crate::keys::{KeyPlace, KeyStore, StoredKey};
#[cfg(feature = "candle")]
use crate::models::ModelStore;
use crate::output::stderr_line_unless;
use crate::telemetry;

/// The vendors that are used if no provider is configured and the variable of their key is set, in this order. Each
/// has a default model and a variable for another server.
const VENDORS: &[Vendor] = &[
    Vendor {
        key: "ANTHROPIC_API_KEY",
        base_url: "ANTHROPIC_BASE_URL",
        kind: ProviderKind::Claude,
        model: "claude-sonnet-4-5",
    },
    Vendor {
        key: "OPENAI_API_KEY",
        base_url: "OPENAI_BASE_URL",
        kind: ProviderKind::Openai,
        model: "gpt-5-mini",
    },
];

/// The variables that hold the keys of vendors.
pub(super) fn vendor_keys<'a>() -> impl Iterator<Item = &'a str> {
    VENDORS.iter().map(|vendor| vendor.key)
}

/// The error text with the ways to configure a provider.
const NO_PROVIDER: &str = "\
no provider is configured, so there is no model. Three ways to continue:
  1. zeph login                           (select a provider; zeph login stores its key), or
     export ANTHROPIC_API_KEY=… or OPENAI_API_KEY=…  (--model selects the model)
  2. start Ollama on this machine with a model (ollama pull qwen3:8b), or
     zeph login URL                       (a server with OpenAI's API)
  3. zeph demo                            (offline: the tools work on a sample project)";

/// An additional way, in builds with local models.
const NO_MODEL: &str =
    "\n  4. zeph models pull OWNER/REPO/FILE.gguf  (a model that runs in this process)";

struct Vendor {
    key: &'static str,
    base_url: &'static str,
    kind: ProviderKind,
    model: &'static str,
}

impl Vendor {
    /// The provider for its key, which may be missing.
    fn provider(&self, env: &Environment, model: Option<&str>) -> ProviderConfig {
        let base_url = env.var(self.base_url).and_then(|url| url.to_str());
        ProviderConfig {
            model: model.unwrap_or(self.model).to_owned(),
            base_url: base_url.map(str::to_owned),
            api_key_env: Some(self.key.to_owned()),
            ..ProviderConfig::new(self.kind.as_str(), self.kind)
        }
    }
}

/// The vendor of an API with its default model. The variable for another server of that API applies.
pub(crate) fn vendor(
    kind: ProviderKind,
    env: &Environment,
    model: Option<&str>,
) -> Option<ProviderConfig> {
    let vendor = VENDORS.iter().find(|vendor| vendor.kind == kind)?;
    Some(vendor.provider(env, model))
}

/// The first vendor with a key: in the environment, otherwise a stored one.
fn vendor_with_key(
    loaded: &Loaded,
    env: &Environment,
    model: Option<&str>,
) -> Option<ProviderConfig> {
    let in_environment = VENDORS.iter().find(|vendor| env.var(vendor.key).is_some());
    if let Some(vendor) = in_environment {
        return Some(vendor.provider(env, model));
    }
    let mut configs = VENDORS.iter().map(|vendor| vendor.provider(env, model));
    configs.find(|config| matches!(stored_key(config, loaded), Ok(Some(_))))
}

/// The key of the provider's server that `zeph login` stored.
fn stored_key(config: &ProviderConfig, loaded: &Loaded) -> std::io::Result<Option<StoredKey>> {
    match config.key_server() {
        Some(server) => KeyStore::in_folder(&loaded.paths.data_dir).load(&server),
        None => Ok(None),
    }
}

/// The provider of the configuration. Without one: the vendor with a key in the environment, an Ollama server on this
/// machine, or a downloaded model.
///
/// # Errors
/// Without any provider, the error lists the ways to configure one.
pub(crate) fn chosen_config<'a>(
    loaded: &'a Loaded,
    env: &Environment,
    model: Option<&str>,
) -> anyhow::Result<Cow<'a, ProviderConfig>> {
    if let Some(config) = loaded.config.llm.chosen() {
        return Ok(Cow::Borrowed(config));
    }
    found_config(loaded, env, model)
        .map(Cow::Owned)
        .with_context(|| match cfg!(feature = "candle") {
            true => NO_PROVIDER.replace("Three ways", "Four ways") + NO_MODEL,
            false => NO_PROVIDER.to_owned(),
        })
}

/// Whether no provider is configured and none can be found, so that [`chosen_config`] fails.
pub(crate) fn has_no_provider(loaded: &Loaded, env: &Environment, model: Option<&str>) -> bool {
    loaded.config.llm.providers.is_empty() && found_config(loaded, env, model).is_none()
}

/// The provider without a configured one.
fn found_config(loaded: &Loaded, env: &Environment, model: Option<&str>) -> Option<ProviderConfig> {
    vendor_with_key(loaded, env, model)
        .or_else(|| ollama::find(env, model))
        .or_else(|| fetched(loaded, model))
}

/// The first model that was fetched and chats, or the one that is named.
#[cfg(feature = "candle")]
fn fetched(loaded: &Loaded, model: Option<&str>) -> Option<ProviderConfig> {
    let store = ModelStore::of(&loaded.paths.data_dir);
    let name = match model {
        Some(name) => store.find(name).ok()?.1.name,
        None => store.that_chats()?.name,
    };
    Some(ProviderConfig {
        model: name,
        ..ProviderConfig::new("local", ProviderKind::Candle)
    })
}

/// This build has no local models.
#[cfg(not(feature = "candle"))]
fn fetched(_: &Loaded, _: Option<&str>) -> Option<ProviderConfig> {
    None
}

/// Builds the chosen provider with its fallbacks, and reports fallbacks that lack a key.
///
/// # Errors
/// Without any provider, the error lists the ways to configure one. If the chosen provider or a fallback is invalid,
/// the error states the problem.
pub(crate) fn choose_provider(
    loaded: &Loaded,
    env: &Environment,
    model: Option<&str>,
    quiet: bool,
) -> anyhow::Result<Arc<dyn LlmProvider>> {
    let config = chosen_config(loaded, env, model)?;
    let provider = with_substitutes(&config, loaded, env)?;
    for config in substitutes(loaded) {
        if let Some(missing) = missing_key(config, loaded, env) {
            let text = format!("warning: [llm] fallback skips {:?}: {missing}", config.name);
            stderr_line_unless(quiet, &text);
        }
    }
    Ok(provider)
}

/// The provider with the name `name`, otherwise the `current` provider with the model `name`. Settings of the current
/// model do not apply to another.
pub(crate) fn meant(loaded: &Loaded, current: &ProviderConfig, name: &str) -> ProviderConfig {
    let mut configured = loaded.config.llm.providers.iter();
    match configured.find(|config| config.name == name) {
        Some(config) => config.clone(),
        None if name == current.model => current.clone(),
        None => ProviderConfig {
            model: name.to_owned(),
            effort: None,
            context_window: None,
            max_output_tokens: None,
            images: None,
            prices: None,
            ..current.clone()
        },
    }
}

/// Builds the chosen provider with its fallbacks. A fallback without a key is skipped: the keys depend on the
/// machine, not on the configuration.
///
/// # Errors
/// The chosen provider or a fallback is invalid.
pub(crate) fn with_substitutes(
    config: &ProviderConfig,
    loaded: &Loaded,
    env: &Environment,
) -> anyhow::Result<Arc<dyn LlmProvider>> {
    let first = build(config, loaded, env)?;
    let others: Vec<_> = substitutes(loaded)
        .filter(|config| missing_key(config, loaded, env).is_none())
        .map(|config| build(config, loaded, env))
        .collect::<anyhow::Result<_>>()?;
    Ok(match others.is_empty() {
        true => first,
        false => Arc::new(Fallback::new(first, others)),
    })
}

/// The fallback providers, in their order.
pub(crate) fn substitutes(loaded: &Loaded) -> impl Iterator<Item = &ProviderConfig> {
    let llm = &loaded.config.llm;
    let first = llm.chosen().map(|config| &config.name);
    let names = llm.fallback.iter().filter(move |name| Some(*name) != first);
    names.filter_map(|name| llm.providers.iter().find(|config| config.name == *name))
}

/// How to get the key that a provider needs and is not there.
pub(crate) fn missing_key(
    config: &ProviderConfig,
    loaded: &Loaded,
    env: &Environment,
) -> Option<String> {
    let name = config.key_env()?;
    match key_source(config, loaded, env) {
        KeySource::Missing => Some(format!(
            "it needs a key: run zeph login {}, or export {name}=…, or name another variable with \
             api_key_env",
            config.name
        )),
        KeySource::Unreadable(why) => Some(format!("its stored key cannot be read: {why}")),
        _ => None,
    }
}

/// The origin of a provider's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// This variable of the environment.
    Environment(String),
    /// The place where `zeph login` stored it.
    Stored(KeyPlace),
    /// It is stored, and cannot be read for this reason.
    Unreadable(String),
    /// It is missing, and the provider needs one.
    Missing,
    /// The provider needs no key.
    NotNeeded,
}

/// The origin of a provider's key: a variable of the environment takes precedence.
pub(crate) fn key_source(config: &ProviderConfig, loaded: &Loaded, env: &Environment) -> KeySource {
    let name = config.key_env();
    if let Some(name) = name.filter(|name| env.var(name).is_some()) {
        return KeySource::Environment(name.to_owned());
    }
    match stored_key(config, loaded) {
        Ok(Some(stored)) => KeySource::Stored(stored.place),
        Err(error) => KeySource::Unreadable(error.to_string()),
        Ok(None) if name.is_some() => KeySource::Missing,
        Ok(None) => KeySource::NotNeeded,
    }
}

/// Builds the provider of this name.
///
/// # Errors
/// The provider does not exist or is invalid.
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

/// The model that repairs arguments that do not match their schema: the provider in `[tools.retry]`, or `primary`.
/// Its tokens are added to `usage`.
///
/// # Errors
/// The named provider is invalid.
pub(crate) fn reformatter(
    loaded: &Loaded,
    env: &Environment,
    primary: &Arc<dyn LlmProvider>,
    usage: &Arc<AuxiliaryUsage>,
) -> anyhow::Result<Option<Arc<dyn ArgumentRepairer>>> {
    let retry = &loaded.config.tools.retry;
    let name = retry.parameter_reformat_provider.as_str();
    let provider = if name.is_empty() || name == primary.name() {
        Arc::clone(primary)
    } else {
        named_provider(loaded, env, name)?
    };
    // With a budget of zero, no model is asked.
    let time = Duration::from_secs(retry.budget_secs);
    let reformatter = || Arc::new(Reformatter::new(provider, time, Arc::clone(usage))) as _;
    Ok((!time.is_zero()).then(reformatter))
}

/// The model that summarizes older messages of a conversation with `primary`: that provider, or the one in `[agent]`.
///
/// # Errors
/// The named provider is invalid.
pub(crate) fn compressor(
    loaded: &Loaded,
    env: &Environment,
    primary: Option<&Arc<dyn LlmProvider>>,
    secrets: &Arc<SecurityPatterns>,
) -> anyhow::Result<Compressor> {
    let name = loaded.config.agent.compress_provider.as_str();
    let primary = primary.filter(|_| !name.is_empty());
    let provider = primary.map(|primary| match name == primary.name() {
        true => Ok(Arc::clone(primary)),
        false => named_provider(loaded, env, name),
    });
    Ok(Compressor {
        provider: provider
            .transpose()
            .context("`[agent] compress_provider`")?,
        secrets: Arc::clone(secrets),
        ..Compressor::default()
    })
}

/// The configuration of a model in this process with the path of the model, which may be named as it
/// was fetched.
#[cfg(feature = "candle")]
fn local<'a>(
    config: &'a ProviderConfig,
    loaded: &Loaded,
    env: &Environment,
) -> anyhow::Result<Cow<'a, ProviderConfig>> {
    if config.kind != ProviderKind::Candle || config.model.trim().is_empty() {
        return Ok(Cow::Borrowed(config));
    }
    let store = ModelStore::of(&loaded.paths.data_dir);
    let path = store.resolve(&config.model, env)?;
    let model = path
        .to_str()
        .context("the model's path is not valid UTF-8")?;
    Ok(Cow::Owned(ProviderConfig {
        model: model.to_owned(),
        ..config.clone()
    }))
}

/// This build has no local models; the error of [`zeph_llm`] says so.
#[cfg(not(feature = "candle"))]
fn local<'a>(
    config: &'a ProviderConfig,
    _: &Loaded,
    _: &Environment,
) -> anyhow::Result<Cow<'a, ProviderConfig>> {
    Ok(Cow::Borrowed(config))
}

/// The key of a provider, if it has one.
fn key_of(
    config: &ProviderConfig,
    loaded: &Loaded,
    env: &Environment,
) -> anyhow::Result<Option<SecretString>> {
    let name = config.key_env();
    if let Some((name, value)) = name.and_then(|name| Some((name, env.var(name)?))) {
        let value = value.to_str();
        let value = value.with_context(|| format!("the value of {name} is not valid UTF-8"))?;
        return Ok(Some(SecretString::from(value.trim().to_owned())));
    }
    let stored = stored_key(config, loaded);
    let stored = stored.with_context(|| {
        format!(
            "the stored key of provider {:?} cannot be read",
            config.name
        )
    })?;
    match (stored, missing_key(config, loaded, env)) {
        (Some(stored), _) => Ok(Some(stored.key)),
        (None, Some(missing)) => {
            bail!("provider {:?} cannot be used: {missing}", config.name)
        }
        (None, None) => Ok(None),
    }
}

/// Builds a provider with a key that is not stored yet, to test it. A model and prices are not necessary.
///
/// # Errors
/// The provider or the key is invalid.
pub(crate) fn with_key(
    config: &ProviderConfig,
    loaded: &Loaded,
    key: Option<SecretString>,
) -> anyhow::Result<Arc<dyn LlmProvider>> {
    let retry = loaded.config.llm.retry;
    Ok(zeph_llm::build_provider(config, retry, key)?)
}

/// Builds a provider that is asked only for its models: a model and prices are not necessary.
///
/// # Errors
/// The provider has no key or is invalid.
pub(super) fn unpriced(
    config: &ProviderConfig,
    loaded: &Loaded,
    env: &Environment,
) -> anyhow::Result<Arc<dyn LlmProvider>> {
    with_key(config, loaded, key_of(config, loaded, env)?)
}

/// Builds a configured provider with its key.
fn build(
    config: &ProviderConfig,
    loaded: &Loaded,
    env: &Environment,
) -> anyhow::Result<Arc<dyn LlmProvider>> {
    let key = key_of(config, loaded, env)?;
    let retry = loaded.config.llm.retry;
    let config = local(config, loaded, env)?;
    let config = match config.kind == ProviderKind::Ollama && config.model.trim().is_empty() {
        false => config,
        true => Cow::Owned(ollama::with_model(&config).with_context(|| {
            format!(
                "provider {:?} has no `model`, and {}",
                config.name,
                ollama::why_no_model(&config)
            )
        })?),
    };
    let content = telemetry::span_content(loaded, env);
    let provider = zeph_llm::build_traced_provider(&config, retry, key, content)?;
    if loaded.config.agent.max_cost_usd.is_some() && provider.prices().is_none() {
        bail!(
            "`[agent] max_cost_usd` is set, and the cost of {} ({}) is unknown: add prices = {{ \
             input = …, output = … }} \
             (USD for a million tokens) to its [[llm.providers]] block, or use max_tokens_per_session instead",
            config.name,
            config.model
        );
    }
    Ok(provider)
}
