//! Custom commands: Markdown files whose text is a prompt.
//!
//! `definition` interprets one file, and `expansion` inserts the arguments.

mod definition;
mod expansion;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use zeph_llm::LlmProvider;
use zeph_tools::Mode;
use zeph_tools::registry::nearest;

pub use crate::markdown_folder::RefusedFile;
use crate::markdown_folder::{MarkdownFolder, read_markdown_folder};

/// The commands of a folder.
pub type CommandFolder = MarkdownFolder<CustomCommand>;

/// Reads the commands of `folder`. A folder that does not exist has none.
#[must_use]
pub fn read_folder(folder: &Path, of_project: bool) -> CommandFolder {
    read_markdown_folder(folder, of_project, definition::read)
}

/// The width of names in `/help`.
const NAME_COLUMN: usize = 14;

/// A custom command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CustomCommand {
    /// The name without its slash: the path of the file, with `:` between folders.
    pub name: String,
    /// The description for lists.
    pub description: String,
    /// The arguments, for lists.
    pub argument_hint: Option<String>,
    /// The provider or model that the prompt is sent to; `None` for the current one.
    pub model: Option<String>,
    /// The permission mode of its turn, if it is more restrictive than the mode of the session.
    pub mode: Option<Mode>,
    /// The prompt, with places for the arguments.
    pub body: String,
    /// The file.
    pub file: PathBuf,
    /// Whether it belongs to the project.
    pub of_project: bool,
}

impl CustomCommand {
    /// The prompt with `arguments`, which follow the name of the command.
    #[must_use]
    pub fn expand(&self, arguments: &str) -> String {
        expansion::expand(&self.body, arguments)
    }

    /// The name with its slash.
    #[must_use]
    pub fn slashed(&self) -> String {
        format!("/{}", self.name)
    }
}

/// The source of providers for commands that name a model.
pub trait ModelSource: Send + Sync {
    /// The provider with this name, or else this model of the configured provider.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    fn provider(&self, name: &str) -> Result<Arc<dyn LlmProvider>, String>;
}

/// The folders of custom commands, which a session can read again.
pub trait CommandSource: Send + Sync {
    /// The usable commands, and the notices about the others.
    fn read(&self) -> (CustomCommands, Vec<String>);
}

/// The custom commands of a conversation. Clones share them.
#[derive(Clone, Default)]
pub struct CustomCommands {
    commands: Arc<RwLock<Arc<[CustomCommand]>>>,
    pub(crate) models: Option<Arc<dyn ModelSource>>,
    source: Option<Arc<dyn CommandSource>>,
}

impl CustomCommands {
    /// The commands of the user and of the project. The second value lists the refused ones: no command may have the name of
    /// another one, or a name that `is_built_in`.
    #[must_use]
    pub fn new(
        user: CommandFolder,
        project: CommandFolder,
        is_built_in: impl Fn(&str) -> bool,
    ) -> (Self, Vec<RefusedFile>) {
        let mut refused = user.refused;
        refused.extend(project.refused);
        let mut commands: Vec<CustomCommand> = Vec::new();
        for command in user.items.into_iter().chain(project.items) {
            let reason = if is_built_in(&command.name) {
                format!("/{} is a built-in command", command.name)
            } else if let Some(other) = commands.iter().find(|other| other.name == command.name) {
                let file = other.file.display();
                format!("/{} is the command of {file}", command.name)
            } else {
                commands.push(command);
                continue;
            };
            refused.push(RefusedFile {
                file: command.file,
                reason: format!("{reason}; rename the file"),
            });
        }
        let commands = Self {
            commands: Arc::new(RwLock::new(commands.into())),
            models: None,
            source: None,
        };
        (commands, refused)
    }

    /// Sets the source of providers for commands that name a model.
    #[must_use]
    pub fn with_models(mut self, models: Arc<dyn ModelSource>) -> Self {
        self.models = Some(models);
        self
    }

    /// Sets the source from which the commands can be read again.
    #[must_use]
    pub fn with_source(mut self, source: Arc<dyn CommandSource>) -> Self {
        self.source = Some(source);
        self
    }

    /// All commands, those of the user first.
    #[must_use]
    pub fn list(&self) -> Arc<[CustomCommand]> {
        let commands = self.commands.read();
        Arc::clone(&commands.unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the commands again, for all clones. Returns the differences and the notices.
    pub(crate) fn reload(&self) -> Vec<String> {
        let Some(source) = &self.source else {
            return Vec::new();
        };
        let (read, notices) = source.read();
        let (old, new) = (self.list(), read.list());
        let text = differences(&old, &new);
        *self
            .commands
            .write()
            .unwrap_or_else(PoisonError::into_inner) = new;
        text.into_iter().chain(notices).collect()
    }

    /// The command that an input runs, and its arguments.
    #[must_use]
    pub fn invoked<'i>(&self, input: &'i str) -> Option<(CustomCommand, &'i str)> {
        let input = input.trim().strip_prefix('/')?;
        let (name, arguments) = match input.split_once(char::is_whitespace) {
            Some((name, arguments)) => (name, arguments.trim()),
            None => (input, ""),
        };
        let commands = self.list();
        let command = commands.iter().find(|command| command.name == name)?;
        Some((command.clone(), arguments))
    }

    /// The most similar command, with its slash.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        let commands = self.list();
        let names: Vec<String> = commands.iter().map(CustomCommand::slashed).collect();
        nearest(name, names.iter().map(String::as_str), 1).pop()
    }

    /// The lines of `/help`.
    pub(crate) fn help(&self) -> String {
        let commands = self.list();
        let lines = commands.iter().map(|command| {
            let name = command.slashed();
            let hint = command.argument_hint.as_ref();
            let hint = hint.map_or_else(String::new, |hint| format!("{hint}: "));
            format!("{name:<NAME_COLUMN$} {hint}{}\n", command.description)
        });
        lines.collect()
    }
}

/// The added, changed and removed commands; `None` if there are none.
fn differences(old: &[CustomCommand], new: &[CustomCommand]) -> Option<String> {
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for command in new {
        match old.iter().find(|it| it.name == command.name) {
            None => added.push(command.slashed()),
            Some(before) if before != command => changed.push(command.slashed()),
            Some(_) => {}
        }
    }
    let is_gone = |it: &&CustomCommand| !new.iter().any(|command| command.name == it.name);
    let removed: Vec<String> = old
        .iter()
        .filter(is_gone)
        .map(CustomCommand::slashed)
        .collect();
    let parts = [("added", added), ("changed", changed), ("removed", removed)];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts
        .map(|(word, names)| format!("{word} {}", names.join(", ")))
        .collect();
    (!parts.is_empty()).then(|| format!("custom commands: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(name: &str, of_project: bool) -> CustomCommand {
        CustomCommand {
            name: name.to_owned(),
            description: "Does it.".to_owned(),
            argument_hint: None,
            model: None,
            mode: None,
            body: "Do it with $ARGUMENTS.".to_owned(),
            file: PathBuf::from(format!("{name}.md")),
            of_project,
        }
    }

    /// Proves CLI-8: a command shadows no other one.
    #[test]
    fn name_of_another_command_is_refused() {
        let folder = |names: &[&str], of_project| CommandFolder {
            items: names.iter().map(|name| command(name, of_project)).collect(),
            ..CommandFolder::default()
        };
        let user = folder(&["fix", "help"], false);
        let project = folder(&["fix", "ship"], true);
        let (commands, refused) = CustomCommands::new(user, project, |name| name == "help");
        let list = commands.list();
        let names: Vec<_> = list.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["fix", "ship"]);
        let reasons: Vec<_> = refused.iter().map(|it| it.reason.as_str()).collect();
        assert_eq!(
            reasons,
            [
                "/help is a built-in command; rename the file",
                "/fix is the command of fix.md; rename the file",
            ]
        );
        let (found, arguments) = commands.invoked(" /ship  now please ").unwrap();
        assert_eq!((found.name.as_str(), arguments), ("ship", "now please"));
        assert!(commands.invoked("/shipping").is_none() && commands.invoked("ship").is_none());
        assert_eq!(commands.nearest("/shpi").as_deref(), Some("/ship"));
    }
}
