//! The provider that the argument of `zeph login` or `zeph logout` names.

use zeph_llm::{ProviderConfig, ProviderKind};

use crate::assemble::vendor;
use crate::cli::usage;
use crate::config::{Environment, Loaded};

/// A provider for a key.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) config: ProviderConfig,
    /// Whether the configuration has it already.
    pub(super) is_configured: bool,
}

impl Target {
    /// A provider that is not configured yet.
    pub(super) fn new(config: ProviderConfig) -> Self {
        Self {
            config,
            is_configured: false,
        }
    }
}

/// Whether a provider of this name is configured.
pub(super) fn is_configured(loaded: &Loaded, name: &str) -> bool {
    let mut providers = loaded.config.llm.providers.iter();
    providers.any(|config| config.name == name)
}

/// The provider for `wanted`: a configured name, a vendor, or the URL of a server. A configured provider with the same
/// server and API is that provider.
///
/// # Errors
/// The name is unknown.
pub(super) fn target(
    wanted: &str,
    loaded: &Loaded,
    env: &Environment,
    model: Option<&str>,
) -> anyhow::Result<Target> {
    let providers = &loaded.config.llm.providers;
    let configured = |config: &ProviderConfig| Target {
        config: config.clone(),
        is_configured: true,
    };
    if let Some(config) = providers.iter().find(|config| config.name == wanted) {
        return Ok(configured(config));
    }
    let new = match wanted {
        "anthropic" | "claude" => vendor(ProviderKind::Claude, env, model),
        "openai" => vendor(ProviderKind::Openai, env, model),
        url if url.starts_with("http://") || url.starts_with("https://") => Some(ProviderConfig {
            base_url: Some(url.to_owned()),
            ..ProviderConfig::new(name_of(url), ProviderKind::Openai)
        }),
        _ => None,
    };
    let Some(mut new) = new else {
        let names = providers.iter().map(|config| config.name.as_str());
        let known: Vec<&str> = ["anthropic", "openai", "local"]
            .into_iter()
            .chain(names)
            .collect();
        return Err(usage(format!(
            "there is no provider {wanted:?}; name one of {}, or the URL of a server with OpenAI's API",
            known.join(", ")
        )));
    };
    if new.key_server().is_none() {
        return Err(usage(format!("{wanted:?} is not the URL of a server")));
    }
    let mut same = providers.iter();
    let same =
        same.find(|config| config.kind == new.kind && config.key_server() == new.key_server());
    if let Some(config) = same {
        return Ok(configured(config));
    }
    // The variable is not needed in the configuration: the key is found by its server.
    new.api_key_env = None;
    new.name = free_name(&new.name, loaded);
    Ok(Target::new(new))
}

/// A name that no configured provider has: `NAME`, `NAME-2`, …
pub(super) fn free_name(name: &str, loaded: &Loaded) -> String {
    let later = (2_u32..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(later);
    names
        .find(|name| !is_configured(loaded, name))
        .unwrap_or_else(|| name.to_owned())
}

/// The name for a server: the last part of its host before the ending, such as `openrouter`; `local` on this machine.
pub(super) fn name_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => host,
        _ => host,
    };
    if host == "localhost" || host.starts_with("127.") || host.starts_with('[') {
        return "local".to_owned();
    }
    let is_address = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    let mut labels = host.rsplit('.');
    let (ending, name) = (labels.next(), labels.next());
    match (is_address, name.or(ending)) {
        (false, Some(name)) if !name.is_empty() => name.to_lowercase(),
        _ => "server".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-9.
    #[test]
    fn name_of_a_server_is_part_of_its_host() {
        for (url, expect) in [
            ("https://openrouter.ai/api/v1", "openrouter"),
            ("https://api.mistral.ai", "mistral"),
            ("https://gateway:8443/v1", "gateway"),
            ("http://127.0.0.1:8080", "local"),
            ("http://localhost:1234/v1", "local"),
            ("http://[::1]:8000", "local"),
            ("http://192.168.0.7:8000", "server"),
            ("http://", "server"),
        ] {
            assert_eq!(name_of(url), expect, "{url}");
        }
    }
}
