//! Sub-agents: their definitions, which are Markdown files, and the built-in one.
//!
//! `definition` interprets one file. `agent/sub_agent/` runs a sub-agent.

mod definition;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_tools::Mode;
use zeph_tools::registry::nearest;

use crate::custom_commands::ModelSource;
use crate::markdown_folder::{MarkdownFolder, RefusedFile, read_markdown_folder};

/// The built-in agent, which only reads.
pub const EXPLORE: &str = "explore";
/// The tools of the built-in agent.
const EXPLORE_TOOLS: [&str; 11] = [
    "read",
    "grep",
    "find_path",
    "list_directory",
    "get_file_tree",
    "search_code",
    "bash",
    "fetch",
    "web_scrape",
    "diagnostics",
    "read_overflow",
];
/// The name of a sub-agent without a definition.
pub const GENERAL: &str = "general";

/// A kind of sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubAgent {
    /// The name, which is that of its file.
    pub name: String,
    /// The description for the model, in one line.
    pub description: String,
    /// The least restrictive mode; `None` for the mode of the parent.
    pub mode: Option<Mode>,
    /// The provider or model; `None` for that of the parent.
    pub model: Option<String>,
    /// The tools that it may call, with `*` at the end for a prefix; `None` for all.
    pub tools: Option<Vec<String>>,
    /// The maximum rounds of calls.
    pub max_iterations: Option<usize>,
    /// The additional system instructions.
    pub instructions: String,
    /// The file; `None` for a built-in agent.
    pub file: Option<PathBuf>,
}

impl SubAgent {
    /// The sub-agent without a definition: the tools and the mode of its parent.
    fn general() -> Self {
        Self {
            name: GENERAL.to_owned(),
            description: "any work".to_owned(),
            mode: None,
            model: None,
            tools: None,
            max_iterations: None,
            instructions: String::new(),
            file: None,
        }
    }

    fn explore() -> Self {
        Self {
            name: EXPLORE.to_owned(),
            description: "only reads; several calls run concurrently".to_owned(),
            mode: Some(Mode::Plan),
            tools: Some(EXPLORE_TOOLS.map(str::to_owned).to_vec()),
            instructions: "You only search and read. Name the files and lines of your findings."
                .to_owned(),
            ..Self::general()
        }
    }

    /// Whether the tools of the agent include `tool`.
    #[must_use]
    pub fn has_tool(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| {
            tools.iter().any(|known| match known.strip_suffix('*') {
                Some(prefix) => tool.starts_with(prefix),
                None => known == tool,
            })
        })
    }
}

/// The agents of a folder.
pub type SubAgentFolder = MarkdownFolder<SubAgent>;

/// Reads the agents of `folder`. A folder that does not exist has none.
#[must_use]
pub fn read_sub_agents(folder: &Path, of_project: bool) -> SubAgentFolder {
    read_markdown_folder(folder, of_project, definition::read)
}

/// The agents of a conversation. Clones share them.
#[derive(Clone)]
pub struct SubAgents {
    agents: Arc<Vec<SubAgent>>,
    pub(crate) models: Arc<dyn ModelSource>,
}

impl SubAgents {
    /// The built-in agents and those of the user and the project. The second value lists the refused ones: no agent may
    /// have the name of another one. An agent of a folder replaces a built-in one.
    #[must_use]
    pub fn new(
        user: SubAgentFolder,
        project: SubAgentFolder,
        models: Arc<dyn ModelSource>,
    ) -> (Self, Vec<RefusedFile>) {
        let mut refused = user.refused;
        refused.extend(project.refused);
        let mut agents: Vec<SubAgent> = Vec::new();
        for agent in user.items.into_iter().chain(project.items) {
            let other = agents.iter().find(|other| other.name == agent.name);
            match (other, agent.file.clone()) {
                (Some(_), Some(file)) => refused.push(RefusedFile {
                    file,
                    reason: format!("another agent is called {}; rename the file", agent.name),
                }),
                _ => agents.push(agent),
            }
        }
        for own in [SubAgent::explore(), SubAgent::general()] {
            if !agents.iter().any(|agent| agent.name == own.name) {
                agents.push(own);
            }
        }
        agents.sort_by(|one, other| one.name.cmp(&other.name));
        let agents = Arc::new(agents);
        (Self { agents, models }, refused)
    }

    /// Sets the source of providers for agents that name a model.
    #[must_use]
    pub fn with_models(self, models: Arc<dyn ModelSource>) -> Self {
        Self { models, ..self }
    }

    /// All agents, by name.
    pub fn iter(&self) -> impl Iterator<Item = &SubAgent> {
        self.agents.iter()
    }

    /// The agent with this name; without a name, the general one.
    ///
    /// # Errors
    /// No agent has this name.
    pub fn find(&self, name: Option<&str>) -> Result<&SubAgent, String> {
        let name = name.unwrap_or(GENERAL);
        if let Some(agent) = self.iter().find(|agent| agent.name == name) {
            return Ok(agent);
        }
        let names: Vec<&str> = self.iter().map(|agent| agent.name.as_str()).collect();
        Err(match nearest(name, names.iter().copied(), 1).pop() {
            Some(near) => format!("there is no agent {name:?}; did you mean {near}?"),
            None => format!(
                "there is no agent {name:?}; the agents are {}",
                names.join(", ")
            ),
        })
    }
}
