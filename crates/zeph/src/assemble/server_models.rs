//! The models of the configured providers' servers, cached for a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::runtime::Handle;
use zeph_llm::{LlmProvider, ProviderConfig, ProviderKind, ServerModel};

use super::provider::unpriced;
use crate::config::{Environment, Loaded};
use crate::output::sanitize::clean;
use crate::terminal::ModelWords;

/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a list is valid.
const FRESH: Duration = Duration::from_secs(300);

/// The models of one provider's server, or the reason why they are not known.
pub(crate) type Listing = Result<Vec<ServerModel>, String>;

/// A provider with the means to ask its server.
#[derive(Debug)]
struct Source {
    config: ProviderConfig,
    /// The provider, or the reason why it cannot be asked.
    provider: Result<Arc<dyn LlmProvider>, String>,
}

/// The lists of all providers with a server.
#[derive(Debug)]
pub(crate) struct ServerModels {
    sources: Vec<Source>,
    cache: Mutex<BTreeMap<String, (Instant, Listing)>>,
    current: Mutex<ProviderConfig>,
}

impl ServerModels {
    /// The lists of the configured providers and of `current`. No server is asked yet.
    pub(crate) fn new(loaded: &Loaded, env: &Environment, current: &ProviderConfig) -> Self {
        let mut configs: Vec<&ProviderConfig> = loaded.config.llm.providers.iter().collect();
        if !configs.iter().any(|config| config.name == current.name) {
            configs.push(current);
        }
        let sources = configs.into_iter().map(|config| Source {
            provider: match has_server(config) {
                true => unpriced(config, loaded, env).map_err(|error| format!("{error:#}")),
                false => Err("it has no server".to_owned()),
            },
            config: config.clone(),
        });
        Self {
            sources: sources.collect(),
            cache: Mutex::default(),
            current: Mutex::new(current.clone()),
        }
    }

    /// Sets the provider and the model that get requests.
    pub(crate) fn set_current(&self, config: &ProviderConfig) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = config.clone();
    }

    /// The provider and the model that get requests.
    pub(crate) fn current(&self) -> ProviderConfig {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// The models of each provider with a server, in the order of the configuration. All servers without a valid list
    /// are asked at the same time.
    pub(crate) async fn list(&self) -> Vec<(&ProviderConfig, Listing)> {
        let with_server = self
            .sources
            .iter()
            .filter(|source| has_server(&source.config));
        let all = with_server.map(async |source| (&source.config, self.listing(source).await));
        join_all(all).await
    }

    async fn listing(&self, source: &Source) -> Listing {
        let name = &source.config.name;
        if let Some(listing) = self.cached(name) {
            return listing;
        }
        let provider = source.provider.as_ref().map_err(String::clone)?;
        let listing = match tokio::time::timeout(PATIENCE, provider.models()).await {
            Ok(Ok(models)) => Ok(models),
            Ok(Err(error)) => Err(error.message),
            Err(_) => Err(format!(
                "the server did not answer in {} s",
                PATIENCE.as_secs()
            )),
        };
        self.cache()
            .insert(name.clone(), (Instant::now(), listing.clone()));
        listing
    }

    fn cached(&self, name: &str) -> Option<Listing> {
        let cache = self.cache();
        let (at, listing) = cache.get(name)?;
        (at.elapsed() < FRESH).then(|| listing.clone())
    }

    fn cache(&self) -> MutexGuard<'_, BTreeMap<String, (Instant, Listing)>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source of the provider that gets requests.
    fn current_source(&self) -> Option<&Source> {
        let name = self.current().name;
        let mut sources = self.sources.iter();
        sources.find(|source| source.config.name == name && has_server(&source.config))
    }
}

/// Whether the models of a provider are on a server.
fn has_server(config: &ProviderConfig) -> bool {
    !matches!(config.kind, ProviderKind::Candle | ProviderKind::Scripted)
}

/// One line for each model of a list: the current one is marked, and a known window is shown.
pub(crate) fn lines(listing: &Listing, current: Option<&str>, most: usize) -> Vec<String> {
    let models = match listing {
        Ok(models) if models.is_empty() => return vec!["  the server has no models".to_owned()],
        Ok(models) => models,
        Err(why) => return vec![format!("  its models are not known: {}", clean(why))],
    };
    let is_current = |model: &ServerModel| current == Some(model.name.as_str());
    let shown = models.iter().enumerate();
    let shown = shown.filter(|(at, model)| *at < most || is_current(model));
    let mut lines: Vec<String> = shown
        .map(|(_, model)| {
            let mark = if is_current(model) { '*' } else { ' ' };
            let window = model
                .context_window
                .map(|tokens| format!("{tokens} tokens"));
            let line = format!(
                "  {mark} {:<32} {}",
                clean(&model.name),
                window.unwrap_or_default()
            );
            line.trim_end().to_owned()
        })
        .collect();
    if models.len() > lines.len() {
        lines.push(format!("    … and {} more", models.len() - lines.len()));
    }
    lines
}

/// The words after `/model` for the line editor, which has a thread of its own.
#[derive(Debug)]
pub(crate) struct ModelCompletion {
    models: Arc<ServerModels>,
    runtime: Handle,
}

impl ModelCompletion {
    /// Asks servers on the current runtime.
    pub(crate) fn new(models: Arc<ServerModels>) -> Self {
        Self {
            models,
            runtime: Handle::current(),
        }
    }
}

impl ModelWords for ModelCompletion {
    /// The providers, and the models of the current provider's server. The first call waits for the server.
    fn names(&self) -> Vec<String> {
        let (send, receive) = mpsc::channel();
        let models = Arc::clone(&self.models);
        self.runtime.spawn(async move {
            let listing = match models.current_source() {
                Some(source) => models.listing(source).await,
                None => Ok(Vec::new()),
            };
            // The editor may have stopped waiting.
            let _ = send.send(listing);
        });
        let listing = receive.recv_timeout(PATIENCE + Duration::from_millis(200));
        let listed = listing.ok().and_then(Result::ok).unwrap_or_default();
        let providers = self
            .models
            .sources
            .iter()
            .map(|source| source.config.name.clone());
        let mut names: Vec<String> = providers.collect();
        for model in listed {
            if !names.contains(&model.name) {
                names.push(model.name);
            }
        }
        names
    }

    fn efforts(&self, name: &str) -> Vec<&'static str> {
        let source = self
            .models
            .sources
            .iter()
            .find(|source| source.config.name == name);
        let kind = source.map_or_else(|| self.models.current().kind, |source| source.config.kind);
        kind.efforts()
            .iter()
            .map(|effort| effort.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LLM-13 for the displayed list.
    #[test]
    fn list_marks_the_current_model() {
        let model = |name: &str, context_window| ServerModel {
            name: name.to_owned(),
            context_window,
        };
        let listing = Ok(vec![
            model("a", None),
            model("b", Some(8192)),
            model("c", None),
        ]);
        let expect = format!("  * {:<32} 8192 tokens", "b");
        assert_eq!(lines(&listing, Some("b"), 9), ["    a", &expect, "    c"]);
        assert_eq!(
            lines(&listing, Some("c"), 1),
            ["    a", "  * c", "    … and 1 more"]
        );
        assert_eq!(
            lines(&Ok(Vec::new()), None, 9),
            ["  the server has no models"]
        );
        let failed = lines(&Err("no\u{1b}[2J".to_owned()), None, 9);
        assert_eq!(failed, ["  its models are not known: no"]);
    }
}
