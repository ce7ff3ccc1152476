//! Detection of model servers on this machine: Ollama, llama.cpp, LM Studio, vLLM (`[llm] local_servers`).

use std::time::Duration;

use futures_util::future::join_all;
use zeph_llm::{LlmErrorKind, ProviderConfig, ProviderKind};
use zeph_tools::plural::pluralize;

use super::key_test::without_model;
use super::target::{free_name, name_of};
use crate::assemble::{is_ollama, ollama_with_model, with_key};
use crate::config::{Environment, Loaded};
use crate::output::sanitize::visible;

/// How long a server may take.
const TIME_LIMIT: Duration = Duration::from_millis(1500);

/// The programs by their usual port.
const PROGRAMS: [(&str, &str, &str); 4] = [
    (":11434", "Ollama", "ollama"),
    (":8080", "llama.cpp", "llama"),
    (":1234", "LM Studio", "lmstudio"),
    (":8000", "vLLM", "vllm"),
];

/// A server that responds.
#[derive(Debug)]
pub(super) struct LocalServer {
    /// The provider for it, with its first suitable model; the model is empty if the server has no model.
    pub(super) config: ProviderConfig,
    /// The number of its models.
    models: usize,
    /// Whether it refuses requests without a key.
    pub(super) needs_key: bool,
    /// The program.
    program: &'static str,
}

impl LocalServer {
    /// Whether it can be used without a key.
    pub(super) fn is_usable(&self) -> bool {
        !self.needs_key && !self.config.model.is_empty()
    }

    /// One line about it.
    pub(super) fn label(&self) -> String {
        let url = self.config.base_url.as_deref().unwrap_or_default();
        let state = match (self.needs_key, self.models) {
            (true, _) => "a key is needed".to_owned(),
            (false, 0) => "no model".to_owned(),
            (false, 1) => self.config.model.clone(),
            (false, count) => format!("{}, {}", self.config.model, pluralize(count, "model")),
        };
        visible(&format!("{} at {url} ({state})", self.program))
    }
}

/// The servers that respond, in the order of the configuration. All are asked at the same time.
pub(super) async fn detect(loaded: &Loaded, env: &Environment) -> Vec<LocalServer> {
    let servers = loaded.config.llm.local_servers.iter();
    let found = join_all(servers.map(|url| find(url, loaded, env))).await;
    found.into_iter().flatten().collect()
}

async fn find(url: &str, loaded: &Loaded, _env: &Environment) -> Option<LocalServer> {
    let url = url.trim().trim_end_matches('/');
    let address = url.to_owned();
    let ollama = tokio::task::spawn_blocking(move || is_ollama(&address));
    let (ollama, compatible) = tokio::join!(ollama, openai(url, loaded));
    if ollama.unwrap_or(false) {
        let config = provider(url, ProviderKind::Ollama, loaded);
        let models = models(&config, loaded).await.ok()?;
        let of_server = config.clone();
        let chosen = tokio::task::spawn_blocking(move || ollama_with_model(&of_server));
        return Some(LocalServer {
            config: chosen.await.ok().flatten().unwrap_or(config),
            models: models.len(),
            needs_key: false,
            program: "Ollama",
        });
    }
    compatible
}

/// A server with OpenAI's API.
async fn openai(url: &str, loaded: &Loaded) -> Option<LocalServer> {
    let mut config = provider(url, ProviderKind::Openai, loaded);
    let program = PROGRAMS.iter().find(|(port, ..)| url.ends_with(port));
    let program = program.map_or("Server with OpenAI's API", |(_, program, _)| program);
    let server = |config, models, needs_key| LocalServer {
        config,
        models,
        needs_key,
        program,
    };
    match models(&config, loaded).await {
        Ok(names) => {
            config.model = names.first().cloned().unwrap_or_default();
            Some(server(config, names.len(), false))
        }
        Err(Some(LlmErrorKind::Auth)) => Some(server(config, 0, true)),
        Err(_) => None,
    }
}

/// The models of a server, or the kind of the error; `None` if the server took too long.
async fn models(
    config: &ProviderConfig,
    loaded: &Loaded,
) -> Result<Vec<String>, Option<LlmErrorKind>> {
    let provider = with_key(&without_model(config), loaded, None).map_err(|_| None)?;
    match tokio::time::timeout(TIME_LIMIT, provider.models()).await {
        Ok(Ok(models)) => Ok(models.into_iter().map(|model| model.name).collect()),
        Ok(Err(error)) => Err(Some(error.kind)),
        Err(_) => Err(None),
    }
}

fn provider(url: &str, kind: ProviderKind, loaded: &Loaded) -> ProviderConfig {
    let known = PROGRAMS.iter().find(|(port, ..)| url.ends_with(port));
    let name = match (kind, known) {
        (ProviderKind::Ollama, _) => "ollama".to_owned(),
        (_, Some((_, _, name))) => (*name).to_owned(),
        (_, None) => name_of(url),
    };
    ProviderConfig {
        base_url: Some(url.to_owned()),
        ..ProviderConfig::new(free_name(&name, loaded), kind)
    }
}
