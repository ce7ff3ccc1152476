//! `zeph commands …`: lists custom commands, and manages the trust in those of a project.

use std::fmt::Write as _;

use anyhow::bail;
use clap::Subcommand;
use serde_json::json;
use zeph_core::CustomCommand;
use zeph_tools::registry::nearest;

use super::args::GlobalArgs;
use super::folder_trust::{list_refused, trust, untrust};
use super::{Exit, load_config, print, print_as_is};
use crate::assemble::{CommandFolders, FolderPins};
use crate::output::json_lines;
use crate::output::sanitize::visible;

/// `zeph commands …`
#[derive(Debug, Subcommand)]
pub(crate) enum CommandsCommand {
    /// List the custom commands and the refused files
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the text of a command
    Show {
        /// Name of the command
        name: String,
    },
    /// Show the commands of this project, and trust them after your approval (or with --yes), until one changes
    Trust,
    /// Remove the trust in the commands of this project
    Untrust,
}

/// Runs one of the commands.
///
/// # Errors
/// A command does not exist; errors of reading and writing.
pub(crate) fn run(global: &GlobalArgs, command: CommandsCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let folders = CommandFolders::of_commands(&loaded, &env);
    let pins = FolderPins::new(folders.kind, &loaded.paths.data_dir);
    match command {
        CommandsCommand::List { json: true } => print_as_is(&as_json(&folders)?)?,
        CommandsCommand::List { json: false } => print(&visible(&listing(&folders)))?,
        CommandsCommand::Show { name } => print(&text_of(known(&folders, &name)?))?,
        CommandsCommand::Trust => return trust(&folders, &pins, text_of, global.yes),
        CommandsCommand::Untrust => untrust(&folders, &pins, &env)?,
    }
    Ok(Exit::Done)
}

/// The commands and their trust.
fn all(folders: &CommandFolders) -> impl Iterator<Item = (&CustomCommand, &'static str)> {
    let project = folders.project.iter().flat_map(|(_, read)| &read.items);
    let trust = folders.trust.as_str();
    let user = folders.user.items.iter();
    user.map(|command| (command, "user"))
        .chain(project.map(move |command| (command, trust)))
}

fn known<'f>(folders: &'f CommandFolders, name: &str) -> anyhow::Result<&'f CustomCommand> {
    let name = name.trim_start_matches('/');
    if let Some((command, _)) = all(folders).find(|(command, _)| command.name == name) {
        return Ok(command);
    }
    let names = all(folders).map(|(command, _)| command.name.as_str());
    match nearest(name, names, 1).pop() {
        Some(near) => bail!("there is no custom command {name:?}; did you mean {near}?"),
        None => bail!("there is no custom command {name:?}; `zeph commands list` lists them"),
    }
}

fn listing(folders: &CommandFolders) -> String {
    let mut text = String::new();
    for (command, trust) in all(folders) {
        let name = command.slashed();
        let _ = writeln!(text, "{name:<20} {trust:<9} {}", command.description);
    }
    list_refused(folders, &mut text);
    if text.is_empty() {
        text.push_str(
            "no custom commands: create a Markdown file in zeph/commands next to your \
             configuration, or in .zeph/commands of the project",
        );
    }
    text
}

/// The complete text of a command for the user's decision. It hides nothing.
fn text_of(command: &CustomCommand) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<14} {}", visible(value));
    };
    line("name", &command.slashed());
    line("description", &command.description);
    line("file", &command.file.display().to_string());
    for (name, value) in [
        ("argument-hint", command.argument_hint.as_deref()),
        ("model", command.model.as_deref()),
        ("mode", command.mode.map(zeph_tools::Mode::as_str)),
    ] {
        if let Some(value) = value {
            line(name, value);
        }
    }
    text.push('\n');
    for body in visible(&command.body).lines() {
        let _ = writeln!(text, "    {body}");
    }
    text
}

fn as_json(folders: &CommandFolders) -> anyhow::Result<String> {
    let commands = all(folders).map(|(command, trust)| {
        json!({
            "name": command.name,
            "description": command.description,
            "argument_hint": command.argument_hint,
            "model": command.model,
            "mode": command.mode,
            "file": command.file,
            "project": command.of_project,
            "trust": trust,
        })
    });
    let refused = folders.refused();
    let refused = refused.map(|refused| json!({ "file": refused.file, "reason": refused.reason }));
    Ok(json_lines(&json!({
        "commands": commands.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    }))?)
}
