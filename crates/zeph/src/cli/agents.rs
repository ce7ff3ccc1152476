//! `zeph agents …`: lists sub-agents, and manages the trust in those of a project.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use zeph_core::SubAgent;

use super::args::GlobalArgs;
use super::filter::trust::agrees;
use super::{Exit, load_config, print};
use crate::assemble::{AgentFolders, CommandPins, CommandTrust};
use crate::output::sanitize::visible;
use crate::output::stderr_line;

/// `zeph agents …`
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// All sub-agents with a file, a line each, and the refused files
    List,
    /// Show the agents of this project, and trust them after your approval (or with --yes), until one changes
    Trust,
    /// Trust the agents of this project no longer
    Untrust,
}

/// Runs one of the commands.
///
/// # Errors
/// Errors of reading and writing.
pub(crate) fn run(global: &GlobalArgs, command: AgentsCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let pins = CommandPins::for_agents(&loaded.paths.data_dir);
    let folders = AgentFolders::read(&loaded, &env);
    match command {
        AgentsCommand::List => print(&visible(&listing(&folders)))?,
        AgentsCommand::Trust => return trust(&pins, &folders, global.yes),
        AgentsCommand::Untrust => {
            let was_trusted = match &folders.project {
                Some((folder, _)) => pins.remove(folder).context("trust could not be revoked")?,
                None => false,
            };
            print(match was_trusted {
                true => "the agents of this project are not trusted any more",
                false => "no agents of this project were trusted",
            })?;
        }
    }
    Ok(Exit::Done)
}

fn listing(folders: &AgentFolders) -> String {
    let trust = match folders.trust {
        CommandTrust::Trusted => "trusted",
        CommandTrust::New => "untrusted",
        CommandTrust::Changed => "changed",
    };
    let mut text = String::new();
    let project = folders.project.iter().flat_map(|(_, read)| &read.items);
    let user = folders.user.items.iter().map(|agent| (agent, "user"));
    for (agent, trust) in user.chain(project.map(|agent| (agent, trust))) {
        let SubAgent {
            name, description, ..
        } = agent;
        let _ = writeln!(text, "{name:<20} {trust:<9} {description}");
    }
    let project = folders.project.iter().flat_map(|(_, read)| &read.refused);
    for refused in folders.user.refused.iter().chain(project) {
        let file = refused.file.display();
        let _ = writeln!(text, "{file}: refused: {}", refused.reason);
    }
    if text.is_empty() {
        text.push_str(
            "no agents: a Markdown file in zeph/agents next to the user's configuration, or in .zeph/agents of the project, is one",
        );
    }
    text
}

/// The complete text of an agent for the user's decision. It hides nothing.
fn text_of(agent: &SubAgent) -> String {
    let mut text = String::new();
    let tools = agent.tools.as_ref().map(|tools| tools.join(", "));
    for (name, value) in [
        ("name", Some(agent.name.as_str())),
        ("description", Some(agent.description.as_str())),
        ("mode", agent.mode.map(zeph_tools::Mode::as_str)),
        ("model", agent.model.as_deref()),
        ("tools", tools.as_deref()),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "{name:<14} {}", visible(value));
        }
    }
    text.push('\n');
    for line in visible(&agent.instructions).lines() {
        let _ = writeln!(text, "    {line}");
    }
    text
}

fn trust(pins: &CommandPins, folders: &AgentFolders, yes: bool) -> anyhow::Result<Exit> {
    let Some((folder, read)) = &folders.project else {
        bail!("this project has no folder .zeph/agents");
    };
    if folders.trust == CommandTrust::Trusted {
        print("the agents of this project are trusted already")?;
        return Ok(Exit::Done);
    }
    let texts: Vec<String> = read.items.iter().map(text_of).collect();
    print(&texts.join("\n"))?;
    for refused in &read.refused {
        let file = refused.file.display();
        stderr_line(&visible(&format!("{file} is not used: {}", refused.reason)));
    }
    if !yes && !agrees("Trust the agents of this project? y/N")? {
        stderr_line("the agents of this project are not trusted");
        return Ok(Exit::Refused);
    }
    pins.put(folder, &read.sha256)
        .context("the trust in these agents cannot be stored")?;
    print("the agents of this project are trusted until a file of their folder changes")?;
    Ok(Exit::Done)
}
