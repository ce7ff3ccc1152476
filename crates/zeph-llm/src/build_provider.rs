//! Construction of a provider from its configuration: the one place that names every provider.

use std::sync::Arc;

use secrecy::SecretString;

use crate::config::{OpenaiApi, ProviderConfig, ProviderKind, RetryConfig};
use crate::error::LlmError;
use crate::provider::LlmProvider;
use crate::scripted::ScriptedProvider;
use crate::text_tools::TextTools;
use crate::traced::{SpanContent, Traced};

/// Builds the provider of a configuration. A model without tool calls gets them by text ([`TextTools`]).
///
/// `api_key` is the value of the variable that [`ProviderConfig::key_env`] names; this crate reads no environment.
///
/// # Errors
/// `Config` or `Auth` with the necessary fix; `Scenario` for a scenario file that cannot be read.
pub fn build_provider(
    config: &ProviderConfig,
    retry: RetryConfig,
    api_key: Option<SecretString>,
) -> Result<Arc<dyn LlmProvider>, LlmError> {
    build_traced_provider(config, retry, api_key, SpanContent::Omitted)
}

/// Builds a provider as [`build_provider`] does. `content` determines whether the spans of its requests contain the
/// messages.
///
/// # Errors
/// As [`build_provider`].
pub fn build_traced_provider(
    config: &ProviderConfig,
    retry: RetryConfig,
    api_key: Option<SecretString>,
    content: SpanContent,
) -> Result<Arc<dyn LlmProvider>, LlmError> {
    config.validate()?;
    let provider: Arc<dyn LlmProvider> = match config.kind {
        ProviderKind::Claude => Arc::new(crate::claude::provider(config, retry, api_key)?),
        ProviderKind::Openai => match config.api {
            Some(OpenaiApi::Responses) => {
                Arc::new(crate::responses::provider(config, retry, api_key)?)
            }
            Some(OpenaiApi::Chat) | None => {
                Arc::new(crate::openai::provider(config, retry, api_key)?)
            }
        },
        ProviderKind::Ollama => {
            Arc::new(crate::ollama::OllamaProvider::new(config, retry, api_key)?)
        }
        ProviderKind::Candle => crate::candle::provider(config)?,
        ProviderKind::Scripted => Arc::new(ScriptedProvider::from_config(config)?),
    };
    let provider = TextTools::wrap_if_needed(provider);
    Ok(Arc::new(Traced::new(provider, config.kind, content)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::error::LlmErrorKind;

    fn parse(toml: &str) -> ProviderConfig {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn faults_name_the_field() {
        for (toml, expect) in [
            (
                r#"name = "a"
type = "openai""#,
                "`model` is missing",
            ),
            (
                r#"name = " "
type = "openai"
model = "m""#,
                "`name` is empty",
            ),
            (
                r#"name = "a"
type = "openai"
model = "m"
base_url = "localhost:1""#,
                "must begin with http://",
            ),
            (
                r#"name = "a"
type = "openai"
model = "m"
scenario = "x.toml""#,
                "`scenario` has no effect",
            ),
            (
                r#"name = "a"
type = "openai"
model = "m"
context_window = 0"#,
                "`context_window`",
            ),
            (
                r#"name = "a"
type = "claude"
api = "responses"
model = "m""#,
                "`api` has no effect for `type = \"claude\"`",
            ),
            (
                r#"name = "a"
type = "ollama"
model = "m"
base_url = "http://127.0.0.1:11434/v1/""#,
                "which is not the native API of Ollama",
            ),
            (
                r#"name = "a"
type = "candle""#,
                "a model that `zeph models pull` downloaded",
            ),
            (
                r#"name = "a"
type = "candle"
model = "m"
base_url = "http://h""#,
                "`base_url` has no effect for `type = \"candle\"`",
            ),
            (
                r#"name = "a"
type = "ollama"
model = "m"
all_cores = true"#,
                "`all_cores` has no effect",
            ),
            (
                r#"name = "a"
type = "claude"
model = "m"
effort = "minimal""#,
                "use one of none, low, medium, high, xhigh, max",
            ),
            (
                r#"name = "a"
type = "claude"
model = "claude-3-5-haiku-latest"
effort = "low""#,
                "does not reason",
            ),
            (
                r#"name = "a"
type = "scripted"
scenario = "x"
effort = "low""#,
                "`effort` has no effect",
            ),
            (
                r#"name = "a"
type = "scripted""#,
                "`scenario` is missing",
            ),
            (
                r#"name = "a"
type = "scripted"
scenario = "x"
model = "gpt""#,
                "`model` has no effect",
            ),
        ] {
            let error = build_provider(&parse(toml), RetryConfig::default(), None).unwrap_err();
            assert_eq!(error.kind, LlmErrorKind::Config);
            assert!(error.message.contains(expect), "{toml}: {error}");
        }
    }

    /// Proves FILE-11 for which providers take images.
    #[test]
    fn images_are_sent_to_openai_and_configured_servers() {
        let base = "name = \"a\"\ntype = \"openai\"\nmodel = \"m\"\n";
        let local = "base_url = \"http://localhost:1\"\n";
        for (rest, expect) in [
            (String::new(), true),
            ("images = false".to_owned(), false),
            (local.to_owned(), false),
            (format!("{local}images = true"), true),
        ] {
            let config = parse(&format!("{base}{rest}"));
            let key = Some(SecretString::from("sk-0123456789"));
            let provider = build_provider(&config, RetryConfig::default(), key).unwrap();
            assert_eq!(provider.supports_images(), expect, "{rest}");
        }
        let ollama = parse("name = \"a\"\ntype = \"ollama\"\nmodel = \"m\"");
        let provider = build_provider(&ollama, RetryConfig::default(), None).unwrap();
        assert!(!provider.supports_images());
        let config = parse("name = \"a\"\ntype = \"scripted\"\nscenario = \"x\"\nimages = true");
        let error = config.validate().unwrap_err();
        assert!(error.message.contains("`images` has no effect"), "{error}");
    }

    #[test]
    fn missing_or_unusable_key_is_reported_before_any_request() {
        let config = parse("name = \"a\"\ntype = \"openai\"\nmodel = \"m\"");
        for key in [None, Some(" "), Some("sk-\u{7}secret")] {
            let key = key.map(SecretString::from);
            let error = build_provider(&config, RetryConfig::default(), key).unwrap_err();
            assert_eq!(error.kind, LlmErrorKind::Auth);
            assert!(error.message.contains("OPENAI_API_KEY"), "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let config = parse("name = \"a\"\ntype = \"openai\"\nmodel = \"m\"");
        let key = Some(SecretString::from("sk-secret-value"));
        let provider = build_provider(&config, RetryConfig::default(), key).unwrap();
        assert!(!format!("{provider:?}").contains("secret"), "{provider:?}");
        assert_eq!(
            provider.context_window(),
            crate::openai::DEFAULT_CONTEXT_WINDOW
        );
    }
}
