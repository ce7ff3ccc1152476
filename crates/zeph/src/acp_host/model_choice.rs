//! The choice of model and effort of a session. A choice applies from the next prompt on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zeph_acp::{Choice, ConfigOption, HostError, OptionKind};
use zeph_llm::{LlmProvider, ProviderConfig};
use zeph_memory::ChosenModel;

use crate::assemble::{meant, missing_key, with_substitutes};
use crate::config::{Environment, Loaded};

/// The value of the option `effort` that leaves the effort to the configuration.
const DEFAULT_EFFORT: &str = "default";

/// The models that a session can have, and the chosen one.
pub(super) struct ModelChoice {
    loaded: Loaded,
    env: Environment,
    chosen: Mutex<(ProviderConfig, Arc<dyn LlmProvider>)>,
}

impl ModelChoice {
    pub(super) fn new(
        loaded: Loaded,
        env: Environment,
        config: ProviderConfig,
        provider: Arc<dyn LlmProvider>,
    ) -> Self {
        Self {
            loaded,
            env,
            chosen: Mutex::new((config, provider)),
        }
    }

    /// The chosen provider.
    pub(super) fn provider(&self) -> Arc<dyn LlmProvider> {
        Arc::clone(&self.chosen().1)
    }

    /// The options for model and effort.
    pub(super) fn options(&self) -> Vec<ConfigOption> {
        let config = self.chosen().0.clone();
        let mut choices: Vec<Choice> = Vec::new();
        let mut current = None;
        for known in &self.loaded.config.llm.providers {
            if known.name == config.name && known.model == config.model {
                current = Some(known.name.clone());
            }
            choices.push(Choice {
                value: known.name.clone(),
                name: shown(known),
            });
        }
        let current = current.unwrap_or_else(|| {
            choices.push(Choice {
                value: config.model.clone(),
                name: shown(&config),
            });
            config.model.clone()
        });
        let mut options = vec![ConfigOption {
            kind: OptionKind::Model,
            current,
            choices,
        }];
        let efforts = config.kind.efforts();
        if !efforts.is_empty() {
            let named = efforts.iter().map(|effort| effort.as_str());
            let named = std::iter::once(DEFAULT_EFFORT).chain(named);
            options.push(ConfigOption {
                kind: OptionKind::Effort,
                current: config
                    .effort
                    .map_or(DEFAULT_EFFORT, |effort| effort.as_str())
                    .to_owned(),
                choices: named
                    .map(|name| Choice {
                        value: name.to_owned(),
                        name: name.to_owned(),
                    })
                    .collect(),
            });
        }
        options
    }

    /// Sets an option to one of its values.
    pub(super) fn set(&self, kind: OptionKind, value: &str) -> Result<(), HostError> {
        let options = self.options();
        let option = options.iter().find(|option| option.kind == kind);
        let is_offered =
            option.is_some_and(|option| option.choices.iter().any(|it| it.value == value));
        if !is_offered {
            return Err(HostError::Invalid(
                "the value is not one of the option's values".to_owned(),
            ));
        }
        match kind {
            OptionKind::Model => self.choose(value, None).map(drop),
            OptionKind::Effort => {
                let effort = (value != DEFAULT_EFFORT).then_some(value);
                let mut config = self.chosen().0.clone();
                config.effort = None;
                self.use_config(config, effort).map(drop)
            }
        }
    }

    /// Chooses the provider or the model with this name. Returns its description.
    pub(super) fn choose(&self, name: &str, effort: Option<&str>) -> Result<String, HostError> {
        let config = meant(&self.loaded, &self.chosen().0, name);
        self.use_config(config, effort)
    }

    /// Chooses a stored model.
    ///
    /// # Errors
    /// Its provider is not configured or lacks its key, or the effort is unknown.
    pub(super) fn restore(&self, stored: &ChosenModel) -> Result<(), HostError> {
        let mut configured = self.loaded.config.llm.providers.iter();
        let Some(provider) = configured.find(|config| config.name == stored.provider) else {
            return Err(HostError::Invalid(format!(
                "no provider {:?} is configured",
                stored.provider
            )));
        };
        if let Some(missing) = missing_key(provider, &self.loaded, &self.env) {
            return Err(HostError::Invalid(missing));
        }
        let mut config = match provider.model == stored.model {
            true => provider.clone(),
            false => meant(&self.loaded, provider, &stored.model),
        };
        config.effort = None;
        self.use_config(config, stored.effort.as_deref()).map(drop)
    }

    /// The chosen model in the form that is stored.
    pub(super) fn chosen_model(&self) -> ChosenModel {
        let config = &self.chosen().0;
        ChosenModel {
            provider: config.name.clone(),
            model: config.model.clone(),
            effort: config.effort.map(|effort| effort.as_str().to_owned()),
        }
    }

    /// A description of the chosen model.
    pub(super) fn description(&self) -> String {
        shown(&self.chosen().0)
    }

    fn use_config(
        &self,
        mut config: ProviderConfig,
        effort: Option<&str>,
    ) -> Result<String, HostError> {
        if let Some(effort) = effort {
            let parsed = config.kind.parse_effort(effort);
            config.effort = Some(parsed.map_err(HostError::Invalid)?);
        }
        let provider = with_substitutes(&config, &self.loaded, &self.env);
        let provider = provider.map_err(|error| super::failed(&error))?;
        let text = shown(&config);
        *self.chosen() = (config, provider);
        Ok(text)
    }

    fn chosen(&self) -> MutexGuard<'_, (ProviderConfig, Arc<dyn LlmProvider>)> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model for display: `MODEL (PROVIDER)`.
fn shown(config: &ProviderConfig) -> String {
    match config.model.is_empty() {
        true => config.name.clone(),
        false => format!("{} ({})", config.model, config.name),
    }
}
