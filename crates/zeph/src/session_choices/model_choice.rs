//! The choice of model and effort of a session. A choice applies from the next prompt on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use zeph_core::ModelSource;
use zeph_llm::{LlmProvider, ProviderConfig};
use zeph_memory::ChosenModel;

use crate::assemble::{meant, missing_key, with_substitutes};
use crate::config::{Environment, Loaded};

/// The models that a session can have, and the chosen one.
pub(crate) struct ModelChoice {
    loaded: Loaded,
    env: Environment,
    /// The model at the start of the process.
    start: Chosen,
    chosen: Mutex<Chosen>,
}

/// A model with its configuration.
#[derive(Clone)]
pub(crate) struct Chosen {
    config: ProviderConfig,
    provider: Arc<dyn LlmProvider>,
}

impl ModelChoice {
    /// The choice of the configuration and the flags.
    pub(crate) fn new(
        loaded: Loaded,
        env: Environment,
        config: ProviderConfig,
        provider: Arc<dyn LlmProvider>,
    ) -> Self {
        let start = Chosen { config, provider };
        Self {
            loaded,
            env,
            chosen: Mutex::new(start.clone()),
            start,
        }
    }

    /// The chosen provider.
    pub(crate) fn provider(&self) -> Arc<dyn LlmProvider> {
        Arc::clone(&self.chosen().provider)
    }

    /// The configuration of the chosen provider, with the chosen model and effort.
    pub(crate) fn config(&self) -> ProviderConfig {
        self.chosen().config.clone()
    }

    /// The configured providers.
    pub(crate) fn configured(&self) -> &[ProviderConfig] {
        &self.loaded.config.llm.providers
    }

    /// Chooses the provider or the model with this name. Without an effort, it is the configured one.
    ///
    /// # Errors
    /// The provider cannot be used, or the effort is unknown.
    pub(crate) fn choose(&self, name: &str, effort: Option<&str>) -> anyhow::Result<()> {
        let config = meant(&self.loaded, &self.config(), name);
        self.use_config(config, effort)
    }

    /// Chooses how much the model reasons; `None` is the default of the model.
    ///
    /// # Errors
    /// The effort is unknown.
    pub(crate) fn choose_effort(&self, effort: Option<&str>) -> anyhow::Result<()> {
        let mut config = self.config();
        config.effort = None;
        self.use_config(config, effort)
    }

    /// Chooses a stored model.
    ///
    /// # Errors
    /// Its provider is not configured or lacks its key, or the effort is unknown.
    pub(super) fn restore(&self, stored: &ChosenModel) -> anyhow::Result<()> {
        let start = &self.start.config;
        let mut configured = self.configured().iter().chain([start]);
        let Some(provider) = configured.find(|config| config.name == stored.provider) else {
            bail!("no provider {:?} is configured", stored.provider);
        };
        if let Some(missing) = missing_key(provider, &self.loaded, &self.env) {
            bail!(missing);
        }
        let mut config = match provider.model == stored.model {
            true => provider.clone(),
            false => meant(&self.loaded, provider, &stored.model),
        };
        config.effort = None;
        self.use_config(config, stored.effort.as_deref())
    }

    /// Chooses the model of the start again.
    pub(super) fn reset(&self) {
        self.set_current(self.start.clone());
    }

    /// The chosen model, for [`Self::set_current`].
    pub(crate) fn current(&self) -> Chosen {
        self.chosen().clone()
    }

    /// Chooses a model again.
    pub(crate) fn set_current(&self, chosen: Chosen) {
        *self.chosen() = chosen;
    }

    /// The chosen model in the form that is stored.
    pub(crate) fn chosen_model(&self) -> ChosenModel {
        let config = &self.chosen().config;
        ChosenModel {
            provider: config.name.clone(),
            model: config.model.clone(),
            effort: config.effort.map(|effort| effort.as_str().to_owned()),
        }
    }

    /// A description of the chosen model: `MODEL (PROVIDER, effort high)`.
    pub(crate) fn description(&self) -> String {
        let Chosen { config, provider } = &*self.chosen();
        let effort = config
            .effort
            .map(|effort| format!(", effort {}", effort.as_str()));
        format!(
            "{} ({}{})",
            provider.model(),
            config.name,
            effort.unwrap_or_default()
        )
    }

    fn use_config(&self, mut config: ProviderConfig, effort: Option<&str>) -> anyhow::Result<()> {
        if let Some(effort) = effort {
            let parsed = config.kind.parse_effort(effort);
            config.effort = Some(parsed.map_err(anyhow::Error::msg)?);
        }
        let provider = with_substitutes(&config, &self.loaded, &self.env)?;
        *self.chosen() = Chosen { config, provider };
        Ok(())
    }

    fn chosen(&self) -> MutexGuard<'_, Chosen> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelSource for ModelChoice {
    fn provider(&self, name: &str) -> Result<Arc<dyn LlmProvider>, String> {
        let config = meant(&self.loaded, &self.config(), name);
        with_substitutes(&config, &self.loaded, &self.env).map_err(|error| format!("{error:#}"))
    }
}
