//! The turn of a custom command, which may have another model and a more restrictive mode.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_llm::LlmProvider;
use zeph_tools::Mode;

use super::slash_commands::{Input, parse, starts_with_path};
use super::{Agent, Reply};
use crate::channel::LoopbackEvent;
use crate::custom_commands::{CustomCommand, CustomCommands};

/// The settings of the session that the turn of a command replaces.
struct Replaced {
    provider: Option<Arc<dyn LlmProvider>>,
    /// The mode of the session, and that of the turn.
    mode: Option<(Mode, Mode)>,
}

impl Agent {
    /// Sets the custom commands.
    #[must_use]
    pub fn with_custom_commands(mut self, commands: CustomCommands) -> Self {
        self.commands = commands;
        self
    }

    /// Omits commands from `/help` that this agent's user cannot use.
    #[must_use]
    pub fn without_commands(mut self, names: &'static [&'static str]) -> Self {
        self.unavailable = names;
        self
    }

    /// The slash commands that are not built in, with their descriptions: custom commands and prompts of MCP servers.
    #[must_use]
    pub fn more_commands(&self) -> Vec<(String, String)> {
        let commands = self.commands.list();
        let custom = commands
            .iter()
            .map(|command| (command.slashed(), command.description.clone()));
        let servers = self.tools.servers.iter();
        custom
            .chain(servers.flat_map(|servers| servers.prompts()))
            .collect()
    }

    /// Returns the prompt of an input, with a custom command expanded. The model and the mode of the
    /// command apply to all further turns of this agent. `None` if the input is a command without a
    /// prompt.
    ///
    /// # Errors
    /// The model of the command cannot be used.
    pub fn begin_prompt(&mut self, text: &str) -> Result<Option<String>, String> {
        if let Some((command, arguments)) = self.commands.invoked(text) {
            self.replace_settings(&command)?;
            return Ok(Some(command.expand(arguments)));
        }
        Ok(match parse(text) {
            Input::Prompt(_) | Input::Empty => Some(text.to_owned()),
            Input::Unknown { .. } if starts_with_path(text) => Some(text.to_owned()),
            _ => None,
        })
    }

    /// Runs the turn of a custom command with these arguments.
    pub(super) async fn run_custom_command(
        &mut self,
        command: &CustomCommand,
        arguments: &str,
        cancel: &CancellationToken,
    ) -> Reply {
        let replaced = match self.replace_settings(command) {
            Ok(replaced) => replaced,
            Err(reason) => return Reply::Failed(reason),
        };
        let reply = self.prompt(&command.expand(arguments), cancel).await;
        self.restore_settings(replaced);
        reply
    }

    /// Applies the model and the mode of a command.
    fn replace_settings(&mut self, command: &CustomCommand) -> Result<Replaced, String> {
        let provider = self.provider_for(command);
        let provider = provider.map_err(|reason| format!("/{}: {reason}", command.name))?;
        let provider = provider.map(|provider| self.replace_provider(provider));
        let current = self.tools.permissions.mode.get();
        // A command can restrict the mode, and never extend it.
        let mode = command.mode.filter(|mode| *mode < current);
        if let Some(mode) = mode {
            self.set_mode_for_turn(mode);
        }
        Ok(Replaced {
            provider,
            mode: mode.map(|mode| (current, mode)),
        })
    }

    /// The provider with the model of a command, if it names one.
    fn provider_for(
        &self,
        command: &CustomCommand,
    ) -> Result<Option<Arc<dyn LlmProvider>>, String> {
        let Some(name) = &command.model else {
            return Ok(None);
        };
        let models = self.commands.models.as_ref();
        let models = models.ok_or("this program cannot change the model for one turn")?;
        models.provider(name).map(Some)
    }

    fn restore_settings(&mut self, replaced: Replaced) {
        if let Some(provider) = replaced.provider {
            self.replace_provider(provider);
        }
        // The user may have changed the mode during the turn.
        if let Some((before, during)) = replaced.mode
            && self.tools.permissions.mode.get() == during
        {
            self.set_mode_for_turn(before);
        }
    }

    fn replace_provider(&mut self, provider: Arc<dyn LlmProvider>) -> Arc<dyn LlmProvider> {
        let accepts_images = provider.supports_images();
        self.tools.dispatcher.set_image_support(accepts_images);
        std::mem::replace(&mut self.model.provider, provider)
    }

    fn set_mode_for_turn(&mut self, mode: Mode) {
        self.tools.permissions.mode.set(mode);
        self.channel.emit(LoopbackEvent::Mode(mode));
        self.tools.follow_mode();
    }
}
