//! The custom commands of a conversation, and the providers of the models that they name.

use std::sync::Arc;

use zeph_core::{CommandSource, CustomCommands, ModelSource, is_built_in};
use zeph_llm::LlmProvider;

use super::definition_folders::{COMMANDS, CommandFolders};
use super::provider::{chosen_config, meant, with_substitutes};
use crate::config::{Environment, Loaded};

/// The usable commands, and the notices about the others. A session can read them again.
pub(super) fn usable_commands(
    source: CommandReader,
    models: Arc<dyn ModelSource>,
) -> (CustomCommands, Vec<String>) {
    let (commands, notices) = source.read();
    let commands = commands.with_models(models).with_source(Arc::new(source));
    (commands, notices)
}

/// Reads the folders of the user and of the project.
pub(super) struct CommandReader {
    loaded: Loaded,
    env: Environment,
}

impl CommandReader {
    pub(super) fn new(loaded: Loaded, env: Environment) -> Self {
        Self { loaded, env }
    }
}

impl CommandSource for CommandReader {
    fn read(&self) -> (CustomCommands, Vec<String>) {
        let folders = CommandFolders::of_commands(&self.loaded, &self.env);
        let (user, project, notice) = folders.usable();
        let (commands, refused) = CustomCommands::new(user, project, is_built_in);
        let refused = refused.iter().map(|refused| COMMANDS.refusal(refused));
        let notices = notice.into_iter().chain(refused).collect();
        (commands, notices)
    }
}

/// The providers for commands that name a model.
pub(super) struct CommandModels {
    loaded: Loaded,
    env: Environment,
    /// `--model`.
    model: Option<String>,
}

impl CommandModels {
    pub(super) fn new(loaded: Loaded, env: Environment, model: Option<String>) -> Self {
        Self { loaded, env, model }
    }
}

impl ModelSource for CommandModels {
    fn provider(&self, name: &str) -> Result<Arc<dyn LlmProvider>, String> {
        let current = chosen_config(&self.loaded, &self.env, self.model.as_deref());
        let current = current.map_err(|error| format!("{error:#}"))?;
        let config = meant(&self.loaded, &current, name);
        with_substitutes(&config, &self.loaded, &self.env).map_err(|error| format!("{error:#}"))
    }
}
