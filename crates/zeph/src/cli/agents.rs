//! `zeph agents …`: lists sub-agents, and manages the trust in those of a project.

use std::fmt::Write as _;

use clap::Subcommand;
use zeph_core::SubAgent;

use super::args::GlobalArgs;
use super::folder_trust::{list_refused, trust, untrust};
use super::{Exit, load_config, print};
use crate::assemble::{AgentFolders, FolderPins};
use crate::output::sanitize::visible;

/// `zeph agents …`
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the sub-agents that have a file, and the refused files
    List,
    /// Show the agents of this project, and trust them after your approval (or with --yes), until one changes
    Trust,
    /// Remove the trust in the agents of this project
    Untrust,
}

/// Runs one of the commands.
///
/// # Errors
/// Errors of reading and writing.
pub(crate) fn run(global: &GlobalArgs, command: AgentsCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let folders = AgentFolders::of_agents(&loaded, &env);
    let pins = FolderPins::new(folders.kind, &loaded.paths.data_dir);
    match command {
        AgentsCommand::List => print(&visible(&listing(&folders)))?,
        AgentsCommand::Trust => return trust(&folders, &pins, text_of, global.yes),
        AgentsCommand::Untrust => untrust(&folders, &pins, &env)?,
    }
    Ok(Exit::Done)
}

fn listing(folders: &AgentFolders) -> String {
    let trust = folders.trust.as_str();
    let mut text = String::new();
    let project = folders.project.iter().flat_map(|(_, read)| &read.items);
    let user = folders.user.items.iter().map(|agent| (agent, "user"));
    for (agent, trust) in user.chain(project.map(|agent| (agent, trust))) {
        let SubAgent {
            name, description, ..
        } = agent;
        let _ = writeln!(text, "{name:<20} {trust:<9} {description}");
    }
    list_refused(folders, &mut text);
    if text.is_empty() {
        text.push_str(
            "no agents: create a Markdown file in zeph/agents next to your configuration, or in \
             .zeph/agents of the project",
        );
    }
    text
}

/// The complete text of an agent for the user's decision. It hides nothing.
fn text_of(agent: &SubAgent) -> String {
    let mut text = String::new();
    let tools = agent.tools.as_ref().map(|tools| tools.join(", "));
    let file = agent.file.as_ref().map(|file| file.display().to_string());
    let rounds = agent.max_iterations.map(|rounds| rounds.to_string());
    for (name, value) in [
        ("name", Some(agent.name.as_str())),
        ("description", Some(agent.description.as_str())),
        ("file", file.as_deref()),
        ("mode", agent.mode.map(zeph_tools::Mode::as_str)),
        ("model", agent.model.as_deref()),
        ("tools", tools.as_deref()),
        ("max_iterations", rounds.as_deref()),
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
