//! The port from the tool `task` to the conversation that can start sub-agents.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use zeph_tools::{CallContext, ToolCall, ToolResult};

/// A request of the model for a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubAgentRequest {
    /// The name of the agent; `None` for one without a definition.
    pub(crate) agent: Option<String>,
    /// The prompt.
    pub(crate) prompt: String,
}

/// Starts sub-agents of one conversation.
#[async_trait]
pub(crate) trait SubAgentStarter: Send + Sync {
    /// Runs a sub-agent to its end. `call` is the call of the tool.
    ///
    /// # Errors
    /// The sub-agent cannot be started, or its turn failed.
    async fn run(&self, request: SubAgentRequest, call: &ToolCall, cx: &CallContext) -> ToolResult;
}

/// The starter of a call, which the conversation sets. Calls of users and of sub-agents have none.
#[derive(Default)]
pub(crate) struct SubAgentSlot(OnceLock<Arc<dyn SubAgentStarter>>);

impl SubAgentSlot {
    /// Sets the starter, once.
    pub(crate) fn set(&self, starter: Arc<dyn SubAgentStarter>) {
        let _ = self.0.set(starter);
    }

    /// The starter.
    pub(crate) fn get(&self) -> Option<&Arc<dyn SubAgentStarter>> {
        self.0.get()
    }
}
