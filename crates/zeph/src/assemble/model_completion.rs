//! The words that follow commands in completions, with the models of the current server.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::runtime::Handle;
use zeph_tui::{CompletionLists, ModelWords};

use super::server_models::{ServerModels, TIME_LIMIT};

/// The words after commands for the line editor, which has a thread of its own.
#[derive(Debug)]
pub(crate) struct ModelCompletion {
    models: Arc<ServerModels>,
    runtime: Handle,
    lists: CompletionLists,
}

impl ModelCompletion {
    /// Asks servers on the current runtime.
    pub(crate) fn new(models: Arc<ServerModels>, lists: CompletionLists) -> Self {
        Self {
            models,
            runtime: Handle::current(),
            lists,
        }
    }
}

impl ModelWords for ModelCompletion {
    /// The providers, and the models of the current provider's server. The first call waits for the server.
    fn names(&self) -> Vec<String> {
        let (send, receive) = mpsc::channel();
        let models = Arc::clone(&self.models);
        self.runtime.spawn(async move {
            // The editor may have stopped waiting.
            let _ = send.send(models.current_listing().await);
        });
        let listing = receive.recv_timeout(TIME_LIMIT + Duration::from_millis(200));
        let listed = listing.ok().and_then(Result::ok).unwrap_or_default();
        let providers = self.models.configs().map(|config| config.name.clone());
        let mut names: Vec<String> = providers.collect();
        for model in listed {
            if !names.contains(&model.name) {
                names.push(model.name);
            }
        }
        names
    }

    fn efforts(&self, name: &str) -> Vec<&'static str> {
        let named = self.models.configs().find(|config| config.name == name);
        let kind = named.map_or_else(|| self.models.current().kind, |config| config.kind);
        kind.efforts()
            .iter()
            .map(|effort| effort.as_str())
            .collect()
    }

    fn lists(&self) -> &CompletionLists {
        &self.lists
    }
}
