//! Single tools, and the executor that serves a group of them.

use std::sync::Arc;

use async_trait::async_trait;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::contract::effective_trust::EffectiveTrust;
use crate::def::ToolDef;
use crate::error::ToolError;
use crate::executor::{ExecutorResult, SkillEnv, ToolExecutor};
use crate::output::ToolOutput;
use crate::trust::TrustLevel;

/// A tool: its definition and its implementation.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the definition.
    fn definition(&self) -> &ToolDef;

    /// Runs the tool. It only runs inside the stack: the arguments fit the schema, and every gate allowed the
    /// call. It obeys `cx.cancel`.
    ///
    /// # Errors
    /// The failure of the call.
    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError>;
}

/// A set of independent tools, with the trust level of the next calls.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn Tool>>,
    trust: EffectiveTrust,
}

impl ToolSet {
    /// Creates a set of `tools`.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            tools,
            trust: EffectiveTrust::default(),
        }
    }

    /// Adds a tool.
    pub fn push(&mut self, tool: impl Tool + 'static) {
        self.tools.push(Arc::new(tool));
    }

    /// Returns the tool with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.definition().id == id)
    }
}

/// An executor that consists of a [`ToolSet`]. It uses no skill environment.
///
/// Every `ToolGroup` is a [`ToolExecutor`].
pub trait ToolGroup: Send + Sync {
    /// Returns the tools.
    fn tools(&self) -> &ToolSet;
}

impl ToolGroup for ToolSet {
    fn tools(&self) -> &ToolSet {
        self
    }
}

impl<G: ToolGroup> ToolExecutor for G {
    async fn execute_tool_call(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        match self.tools().find(&call.tool) {
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
        let tools = self.tools().tools.iter();
        tools.map(|tool| tool.definition().clone()).collect()
    }

    fn set_skill_env(&self, _env: Option<SkillEnv>) {}

    fn set_effective_trust(&self, trust: TrustLevel) {
        self.tools().trust.set(trust);
    }

    fn is_tool_retryable(&self, tool_id: &str) -> bool {
        let tool = self.tools().find(tool_id);
        tool.is_some_and(|tool| tool.definition().annotations.read_only)
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        let tools = self.tools();
        let nature = |tool: &Arc<dyn Tool>| tool.definition().annotations;
        let tool = tools.find(&call.tool).map(nature);
        tool.is_some_and(|nature| tools.trust.requires_confirmation(&nature))
    }
}
