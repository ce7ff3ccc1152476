//! The test of a key: the server is asked for its models, which costs nothing.

use std::time::Duration;

use anyhow::bail;
use secrecy::SecretString;
use zeph_llm::{LlmErrorKind, ProviderConfig, ProviderKind, ServerModel};

use crate::assemble::with_key;
use crate::config::Loaded;
use crate::output::sanitize::visible;

/// How long the test may take.
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// The name of a model for a provider that is asked for its models only.
const NO_MODEL: &str = "-";

/// The result of a test that the key passed.
#[derive(Debug)]
pub(super) enum Tested {
    /// The server has these models.
    Models(Vec<ServerModel>),
    /// The server has no list of models, so that it checked no key.
    NoList,
}

impl Tested {
    /// Sets the model: the current one if the server has it, otherwise the first of the server. Returns false if there is
    /// none.
    pub(super) fn choose_model(&self, config: &mut ProviderConfig) -> bool {
        if let Self::Models(models) = self {
            let has_current = models.iter().any(|model| model.name == config.model);
            if let Some(first) = models
                .first()
                .filter(|_| config.model.is_empty() && !has_current)
            {
                config.model.clone_from(&first.name);
            }
        }
        !config.model.is_empty()
    }
}

/// A provider that can be built without a model.
pub(super) fn without_model(config: &ProviderConfig) -> ProviderConfig {
    match config.model.is_empty() && config.kind != ProviderKind::Ollama {
        true => ProviderConfig {
            model: NO_MODEL.to_owned(),
            ..config.clone()
        },
        false => config.clone(),
    }
}

/// Asks the server of a provider for its models.
///
/// # Errors
/// The server refuses the key or does not respond.
pub(super) async fn test(
    config: &ProviderConfig,
    loaded: &Loaded,
    key: Option<SecretString>,
) -> anyhow::Result<Tested> {
    let provider = with_key(&without_model(config), loaded, key)?;
    match tokio::time::timeout(TIME_LIMIT, provider.models()).await {
        Err(_) => bail!(
            "the key was not tested and not stored: the server did not respond in {} s",
            TIME_LIMIT.as_secs()
        ),
        Ok(Ok(models)) => Ok(Tested::Models(models)),
        Ok(Err(error)) => match error.kind {
            LlmErrorKind::UnknownModel | LlmErrorKind::BadRequest | LlmErrorKind::Protocol => {
                Ok(Tested::NoList)
            }
            LlmErrorKind::Auth => bail!(
                "the key was not stored, because the server refused it: {}",
                visible(&error.message)
            ),
            _ => bail!(
                "the key was not tested and not stored: {}",
                visible(&error.message)
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(names: &[&str]) -> Tested {
        let models = names.iter().map(|name| ServerModel {
            name: (*name).to_owned(),
            context_window: None,
        });
        Tested::Models(models.collect())
    }

    /// Proves CLI-9: a named model stays; without one, the first of the server is used.
    #[test]
    fn model_is_chosen_from_the_list() {
        for (tested, model, expect) in [
            (models(&["a", "b"]), "", Some("a")),
            (models(&["a", "b"]), "b", Some("b")),
            (models(&["a", "b"]), "c", Some("c")),
            (models(&[]), "", None),
            (Tested::NoList, "", None),
            (Tested::NoList, "c", Some("c")),
        ] {
            let mut config = ProviderConfig::new("p", ProviderKind::Openai);
            config.model = model.to_owned();
            let has_model = tested.choose_model(&mut config);
            assert_eq!(has_model.then_some(config.model.as_str()), expect);
        }
    }
}
