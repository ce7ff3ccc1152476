//! The definitions of sub-agents of the user and of the project. Those of a project need the trust of the user.

use std::path::PathBuf;
use std::sync::Arc;

use zeph_core::custom_commands::ModelSource;
use zeph_core::sub_agents::{SubAgentFolder, read_sub_agents};
use zeph_core::{SubAgents, Task};
use zeph_tools::ToolSet;
use zeph_tools::plural::pluralize;

use super::commands::{CommandPins, CommandTrust};
use super::executors::Executors;
use crate::config::{Environment, Loaded, of_project};

/// A project's agents, from the project's directory.
const PROJECT_AGENTS: &str = ".zeph/agents";

/// The folders of agents, as they were read.
#[derive(Debug)]
pub(crate) struct AgentFolders {
    /// Those of the user.
    pub(crate) user: SubAgentFolder,
    /// The folder of the project and its agents; `None` if it does not exist.
    pub(crate) project: Option<(PathBuf, SubAgentFolder)>,
    /// The trust in the agents of the project.
    pub(crate) trust: CommandTrust,
}

impl AgentFolders {
    /// Reads the folders of the user and of the project.
    pub(crate) fn read(loaded: &Loaded, env: &Environment) -> Self {
        let own = match env.config_home() {
            Some(folder) => folder.join("zeph/agents"),
            None => loaded.paths.user_file.with_file_name("agents"),
        };
        let project = of_project(env, PROJECT_AGENTS).map(|folder| {
            let read = read_sub_agents(&folder, true);
            (folder, read)
        });
        let pins = CommandPins::for_agents(&loaded.paths.data_dir);
        let trust = match &project {
            Some((folder, read)) => pins.trust(folder, &read.sha256),
            None => CommandTrust::New,
        };
        Self {
            user: read_sub_agents(&own, false),
            project,
            trust,
        }
    }

    /// The usable agents, and the notices about the others.
    pub(crate) fn usable(self, models: Arc<dyn ModelSource>) -> (SubAgents, Vec<String>) {
        let mut notices = Vec::new();
        let project = match (self.project, self.trust) {
            (None, _) => SubAgentFolder::default(),
            (Some((_, read)), CommandTrust::Trusted) => read,
            (Some((folder, read)), trust) => {
                let count = read.items.len() + read.refused.len();
                let reason = match trust {
                    CommandTrust::Changed => "changed since you trusted them",
                    _ => "are not trusted",
                };
                if count > 0 {
                    notices.push(format!(
                        "the agents of this project {reason} and are not used ({} in {}): \
                         `zeph agents trust` shows and approves them",
                        pluralize(count, "file"),
                        folder.display()
                    ));
                }
                SubAgentFolder::default()
            }
        };
        let (agents, refused) = SubAgents::new(self.user, project, models);
        let refused = refused.iter().map(|refused| {
            let file = refused.file.display();
            format!("{file} is not used as an agent: {}", refused.reason)
        });
        notices.extend(refused);
        (agents, notices)
    }
}

/// Adds the tool that starts sub-agents.
pub(super) fn with_sub_agents(executors: &mut Executors, agents: &SubAgents) {
    let agents = agents
        .iter()
        .map(|agent| (agent.name.as_str(), agent.description.as_str()));
    let tool = Task::new(agents);
    executors.push(("task", Arc::new(ToolSet::new(vec![Arc::new(tool)]))));
}
