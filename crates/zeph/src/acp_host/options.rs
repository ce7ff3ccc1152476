//! The options of a session for model and effort, as an editor shows them.

use zeph_acp::{Choice, ConfigOption, HostError, OptionKind};
use zeph_llm::ProviderConfig;

use super::failed;
use crate::session_choices::ModelChoice;

/// The value of the option `effort` that leaves the effort to the configuration.
const DEFAULT_EFFORT: &str = "default";

/// The options for model and effort.
pub(super) fn options(models: &ModelChoice) -> Vec<ConfigOption> {
    let config = models.config();
    let mut choices: Vec<Choice> = Vec::new();
    let mut current = None;
    for known in models.configured() {
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
///
/// # Errors
/// The value is not one of them, or the provider cannot be used.
pub(super) fn set(models: &ModelChoice, kind: OptionKind, value: &str) -> Result<(), HostError> {
    let options = options(models);
    let option = options.iter().find(|option| option.kind == kind);
    let is_offered = option.is_some_and(|option| option.choices.iter().any(|it| it.value == value));
    if !is_offered {
        return Err(HostError::Invalid(
            "the value is not one of the option's values".to_owned(),
        ));
    }
    let chosen = match kind {
        OptionKind::Model => models.choose(value, None),
        OptionKind::Effort => models.choose_effort((value != DEFAULT_EFFORT).then_some(value)),
    };
    chosen.map_err(|error| failed(&error))
}

/// A model for display: `MODEL (PROVIDER)`.
fn shown(config: &ProviderConfig) -> String {
    match config.model.is_empty() {
        true => config.name.clone(),
        false => format!("{} ({})", config.model, config.name),
    }
}
