//! Single tools, and the executor that serves a group of them.

use std::sync::Arc;

use async_trait::async_trait;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::ToolDef;
use crate::error::ToolError;
use crate::executor::{ExecutorResult, SkillEnv, ToolExecutor};
use crate::output::ToolOutput;
use crate::trust::TrustLevel;

/// One tool: its definition and its work. One file each.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it is.
    fn definition(&self) -> &ToolDef;

    /// Does the work. Runs only behind the stack: the arguments fit the schema, and every gate
    /// let the call pass. Obeys `cx.cancel`.
    ///
    /// # Errors
    /// Whatever the call fails with.
    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError>;
}

/// An executor that consists of single tools. It uses no skill environment and asks no questions.
///
/// Every `ToolGroup` is a [`ToolExecutor`].
pub trait ToolGroup: Send + Sync {
    /// The tools, in the order of their definitions.
    fn tools(&self) -> &[Arc<dyn Tool>];

    /// The tool with this id.
    fn find(&self, id: &str) -> Option<&Arc<dyn Tool>> {
        self.tools().iter().find(|tool| tool.definition().id == id)
    }
}

impl<G: ToolGroup> ToolExecutor for G {
    async fn execute_tool_call(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        match self.find(&call.tool) {
            Some(tool) => tool.run(call, cx).await.map(Some),
            None => Ok(None),
        }
    }

    async fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        self.execute_tool_call(call, cx).await
    }

    fn tool_definitions(&self) -> Vec<ToolDef> {
        self.tools()
            .iter()
            .map(|tool| tool.definition().clone())
            .collect()
    }

    fn set_skill_env(&self, _env: Option<SkillEnv>) {}

    fn set_effective_trust(&self, _trust: TrustLevel) {}

    fn is_tool_retryable(&self, tool_id: &str) -> bool {
        self.find(tool_id)
            .is_some_and(|tool| tool.definition().annotations.read_only)
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}

/// An executor of any tools.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolSet {
    /// An executor of `tools`.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools }
    }
}

impl ToolGroup for ToolSet {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }
}
