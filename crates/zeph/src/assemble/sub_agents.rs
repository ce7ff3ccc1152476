//! The sub-agents of a conversation, and the tool that starts them.

use std::sync::Arc;

use zeph_core::custom_commands::ModelSource;
use zeph_core::{SubAgents, Task};
use zeph_tools::ToolSet;

use super::definition_folders::{AGENTS, AgentFolders};
use super::executors::Executors;

/// The usable agents, and the notices about the others.
pub(super) fn usable_agents(
    folders: AgentFolders,
    models: Arc<dyn ModelSource>,
) -> (SubAgents, Vec<String>) {
    let (user, project, notice) = folders.usable();
    let (agents, refused) = SubAgents::new(user, project, models);
    let refused = refused.iter().map(|refused| AGENTS.refusal(refused));
    let notices = notice.into_iter().chain(refused).collect();
    (agents, notices)
}

/// Adds the tool that starts sub-agents.
pub(super) fn with_sub_agents(executors: &mut Executors, agents: &SubAgents) {
    let agents = agents
        .iter()
        .map(|agent| (agent.name.as_str(), agent.description.as_str()));
    let tool = Task::new(agents);
    executors.push(("task", Arc::new(ToolSet::new(vec![Arc::new(tool)]))));
}
