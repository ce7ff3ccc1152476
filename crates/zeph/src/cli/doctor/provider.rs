//! Checks of providers and of the connections to their servers. No model gets a request.

use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::time::Duration;

use zeph_llm::http::proxy_for;
use zeph_llm::{LlmProvider, ProviderConfig, ProviderKind};

use super::super::args::GlobalArgs;
use super::super::with_causes;
use super::{Check, Verdict, check};
use crate::assemble::{
    KeySource, chosen_config, embedding_provider, key_source, missing_key, ollama_lacks,
    reformatter, substitutes, with_substitutes,
};
use crate::config::{Environment, Loaded};

/// How long a connection to a provider may take.
const CONNECT: Duration = Duration::from_secs(3);

/// Checks the chosen provider and its fallbacks.
pub(super) async fn checks(loaded: &Loaded, env: &Environment, global: &GlobalArgs) -> Vec<Check> {
    let model = global.model.as_deref();
    let built = chosen_config(loaded, env, model).and_then(|config| {
        let provider = with_substitutes(&config, loaded, env)?;
        reformatter(loaded, env, &provider, &Arc::default())?;
        let embeds = embedding_provider(loaded, env, &provider)?;
        Ok((config, embeds))
    });
    let (config, embeds) = match built {
        Ok(built) => built,
        Err(error) => return vec![check("provider", Verdict::Failed, with_causes(&error))],
    };
    let mut checks = vec![one("provider", &config, &key_note(&config, loaded, env)).await];
    for config in substitutes(loaded) {
        checks.push(match missing_key(config, loaded, env) {
            Some(missing) => {
                let detail = format!("{} is skipped: {missing}", named(config));
                check("fallback", Verdict::Warning, detail)
            }
            None => one("fallback", config, &key_note(config, loaded, env)).await,
        });
    }
    checks.extend(match embeds {
        Some(provider) => embeddings(provider.as_ref(), loaded).await,
        None => None,
    });
    checks
}

/// Checks the provider of embeddings.
async fn embeddings(provider: &dyn LlmProvider, loaded: &Loaded) -> Option<Check> {
    let mut providers = loaded.config.llm.providers.iter();
    let config = providers.find(|config| config.name == provider.name())?;
    let model = provider.embedding_model()?.name.clone();
    if config.kind == ProviderKind::Candle {
        let detail = format!("{} ({model}), in this process", config.name);
        return Some(check("embeddings", Verdict::Ok, detail));
    }
    let config = ProviderConfig {
        model,
        tool_use: None,
        ..config.clone()
    };
    Some(one("embeddings", &config, "").await)
}

/// A provider and its model as text, with a note if it calls tools by text.
fn named(config: &ProviderConfig) -> String {
    let model = match config.kind {
        ProviderKind::Scripted => config.kind.as_str(),
        _ => config.model.as_str(),
    };
    let tools = match (config.kind, config.tool_use) {
        (ProviderKind::Candle, _) | (_, Some(false)) => ", tools by text",
        _ => "",
    };
    format!("{} ({model}{tools})", config.name)
}

/// The origin of the key as text; the key itself is not shown.
fn key_note(config: &ProviderConfig, loaded: &Loaded, env: &Environment) -> String {
    match key_source(config, loaded, env) {
        KeySource::Environment(name) => format!("; the key is from {name}"),
        KeySource::Stored(place) => format!("; the key is in {place}"),
        KeySource::Unreadable(_) | KeySource::Missing | KeySource::NotNeeded => String::new(),
    }
}

/// Checks a provider; `note` is added to its description.
async fn one(name: &'static str, config: &ProviderConfig, note: &str) -> Check {
    let named = named(config);
    if config.kind == ProviderKind::Candle {
        return check(name, Verdict::Ok, format!("{named}, in this process"));
    }
    let Some(url) = server(config) else {
        return check(name, Verdict::Ok, named + note);
    };
    if let Err(error) = reach(&url).await {
        let detail = format!(
            "{named}: {url} cannot be reached: {error}; check that the server is \
            running"
        );
        return check(name, Verdict::Failed, detail);
    }
    if config.kind == ProviderKind::Ollama && ollama_lacks(&url, &config.model) {
        let detail = format!(
            "{named} is not on the server at {url}: run ollama pull {}",
            config.model
        );
        return check(name, Verdict::Failed, detail);
    }
    check(name, Verdict::Ok, format!("{named} at {url}{note}"))
}

/// The URL of the server to check; `None` for the default server of a vendor, and for a provider without a server.
pub(super) fn server(config: &ProviderConfig) -> Option<String> {
    let own = || match config.kind {
        ProviderKind::Ollama => Some("http://127.0.0.1:11434".to_owned()),
        _ => None,
    };
    config.base_url.clone().or_else(own)
}

/// Connects to the host and port of a URL, or to the proxy that a request to it uses.
pub(super) async fn reach(url: &str) -> Result<(), String> {
    let (rest, default_port) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (rest, 80),
        (_, Some(rest)) => (rest, 443),
        _ => return Err("it is not an http(s) URL".to_owned()),
    };
    if let Some(proxy) = proxy_for(url) {
        let connected = connect(proxy.clone()).await;
        return connected.map_err(|error| format!("the proxy {proxy} does not respond: {error}"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let authority = authority.rsplit('@').next().unwrap_or(authority).to_owned();
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let target = if has_port {
        authority
    } else {
        format!("{authority}:{default_port}")
    };
    connect(target).await
}

/// Connects to `HOST:PORT`.
async fn connect(target: String) -> Result<(), String> {
    let connect = tokio::task::spawn_blocking(move || {
        let addresses: Vec<_> = target
            .to_socket_addrs()
            .map_err(|error| error.to_string())?
            .collect();
        let mut last = "the name has no address".to_owned();
        for address in addresses {
            match std::net::TcpStream::connect_timeout(&address, CONNECT) {
                Ok(_) => return Ok(()),
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    });
    match tokio::time::timeout(CONNECT * 2, connect).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it took too long".to_owned()),
    }
}
