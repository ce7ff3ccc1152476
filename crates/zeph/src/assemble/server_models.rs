//! The models of the configured providers' servers, cached for a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use zeph_llm::{LlmProvider, ProviderConfig, ServerModel};

use super::provider::unpriced;
use crate::config::{Environment, Loaded};

/// The time limit of one server.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(2);
/// How long a list is valid.
const MAX_AGE: Duration = Duration::from_secs(300);

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
            provider: match config.kind.has_server() {
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
        let sources = self.sources.iter();
        let with_server = sources.filter(|source| source.config.kind.has_server());
        let all = with_server.map(async |source| (&source.config, self.listing(source).await));
        join_all(all).await
    }

    async fn listing(&self, source: &Source) -> Listing {
        let name = &source.config.name;
        if let Some(listing) = self.cached(name) {
            return listing;
        }
        let provider = source.provider.as_ref().map_err(String::clone)?;
        let listing = match tokio::time::timeout(TIME_LIMIT, provider.models()).await {
            Ok(Ok(models)) => Ok(models),
            Ok(Err(error)) => Err(error.message),
            Err(_) => Err(format!(
                "the server did not respond within {} s",
                TIME_LIMIT.as_secs()
            )),
        };
        self.cache()
            .insert(name.clone(), (Instant::now(), listing.clone()));
        listing
    }

    fn cached(&self, name: &str) -> Option<Listing> {
        let cache = self.cache();
        let (at, listing) = cache.get(name)?;
        (at.elapsed() < MAX_AGE).then(|| listing.clone())
    }

    fn cache(&self) -> MutexGuard<'_, BTreeMap<String, (Instant, Listing)>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The models of the server of the provider that gets requests; empty without a server.
    pub(crate) async fn current_listing(&self) -> Listing {
        let name = self.current().name;
        let mut sources = self.sources.iter();
        let is_current = |source: &&Source| source.config.name == name;
        match sources.find(|source| is_current(source) && source.config.kind.has_server()) {
            Some(source) => self.listing(source).await,
            None => Ok(Vec::new()),
        }
    }

    /// The configurations of all providers.
    pub(super) fn configs(&self) -> impl Iterator<Item = &ProviderConfig> {
        self.sources.iter().map(|source| &source.config)
    }
}
