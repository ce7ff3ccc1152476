//! `zeph commands …`: lists custom commands, and manages the trust in those of a project.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::json;
use zeph_core::CustomCommand;
use zeph_core::custom_commands::CommandFolder;
use zeph_tools::registry::nearest;

use super::args::GlobalArgs;
use super::filter::trust::agrees;
use super::{Exit, load_config, print, print_as_is};
use crate::assemble::{CommandFolders, CommandPins, CommandTrust};
use crate::output::sanitize::visible;
use crate::output::{json_lines, stderr_line};

/// `zeph commands …`
#[derive(Debug, Subcommand)]
pub(crate) enum CommandsCommand {
    /// All custom commands, a line each, and the refused files
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The text of one command
    Show {
        /// Its name
        name: String,
    },
    /// Show the commands of this project, and trust them after your approval (or with --yes), until one changes
    Trust,
    /// Trust the commands of this project no longer
    Untrust,
}

/// Runs one of the commands.
///
/// # Errors
/// A command does not exist; errors of reading and writing.
pub(crate) fn run(global: &GlobalArgs, command: CommandsCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let pins = CommandPins::in_folder(&loaded.paths.data_dir);
    let folders = CommandFolders::read(&loaded, &env);
    match command {
        CommandsCommand::List { json: true } => print_as_is(&as_json(&folders)?)?,
        CommandsCommand::List { json: false } => print(&visible(&listing(&folders)))?,
        CommandsCommand::Show { name } => print(&text_of(known(&folders, &name)?))?,
        CommandsCommand::Trust => {
            let Some((folder, read)) = &folders.project else {
                bail!("this project has no folder .zeph/commands");
            };
            return trust(&pins, folder, read, folders.trust, global.yes);
        }
        CommandsCommand::Untrust => {
            let was_trusted = match &folders.project {
                Some((folder, _)) => pins.remove(folder).context("trust could not be revoked")?,
                None => false,
            };
            print(match was_trusted {
                true => "the commands of this project are not trusted any more",
                false => "no commands of this project were trusted",
            })?;
        }
    }
    Ok(Exit::Done)
}

/// The commands and their trust.
fn all(folders: &CommandFolders) -> impl Iterator<Item = (&CustomCommand, &'static str)> {
    let project = folders.project.iter().flat_map(|(_, read)| &read.items);
    let trust = name_of(folders.trust);
    let user = folders.user.items.iter();
    user.map(|command| (command, "user"))
        .chain(project.map(move |command| (command, trust)))
}

fn name_of(trust: CommandTrust) -> &'static str {
    match trust {
        CommandTrust::Trusted => "trusted",
        CommandTrust::New => "untrusted",
        CommandTrust::Changed => "changed",
    }
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
        let name = format!("/{}", command.name);
        let _ = writeln!(text, "{name:<20} {trust:<9} {}", command.description);
    }
    let project = folders.project.iter().flat_map(|(_, read)| &read.refused);
    for refused in folders.user.refused.iter().chain(project) {
        let file = refused.file.display();
        let _ = writeln!(text, "{file}: refused: {}", refused.reason);
    }
    if text.is_empty() {
        text.push_str(
            "no custom commands: a Markdown file in zeph/commands next to the user's configuration, or in .zeph/commands of the project, is one",
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
    line("name", &format!("/{}", command.name));
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

fn trust(
    pins: &CommandPins,
    folder: &Path,
    read: &CommandFolder,
    trust: CommandTrust,
    yes: bool,
) -> anyhow::Result<Exit> {
    if trust == CommandTrust::Trusted {
        print("the commands of this project are trusted already")?;
        return Ok(Exit::Done);
    }
    let texts: Vec<String> = read.items.iter().map(text_of).collect();
    print(&texts.join("\n"))?;
    for refused in &read.refused {
        stderr_line(&visible(&format!(
            "{} is not used: {}",
            refused.file.display(),
            refused.reason
        )));
    }
    if !yes && !agrees("Trust the commands of this project? y/N")? {
        stderr_line("the commands of this project are not trusted");
        return Ok(Exit::Refused);
    }
    pins.put(folder, &read.sha256)
        .context("the trust in these commands cannot be stored")?;
    print("the commands of this project are trusted until a file of their folder changes")?;
    Ok(Exit::Done)
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
    let project = folders.project.iter().flat_map(|(_, read)| &read.refused);
    let refused = folders.user.refused.iter().chain(project);
    let refused = refused.map(|refused| json!({ "file": refused.file, "reason": refused.reason }));
    Ok(json_lines(&json!({
        "commands": commands.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    }))?)
}
