//! The stack of the parent, limited to the tools and the mode of a sub-agent.

use std::sync::Arc;

use async_trait::async_trait;
use zeph_tools::executor::ExecutorResult;
use zeph_tools::skill::{INVOKE_SKILL, LOAD_SKILL};
use zeph_tools::{
    CallContext, ErasedToolExecutor, Mode, SkillEnv, ToolCall, ToolDef, ToolRegistry, TrustLevel,
    UserDecision,
};

use crate::native::task::TASK;
use crate::sub_agents::SubAgent;

/// Tools that no sub-agent has. A skill changes the trust of the calls of its session, and sub-agents share one stack.
const NEVER: [&str; 3] = [TASK, LOAD_SKILL, INVOKE_SKILL];

/// The tools of a sub-agent. Every call enters the stack, so that a refused one is audited.
pub(super) struct SubAgentTools {
    pub(super) stack: Arc<dyn ErasedToolExecutor>,
    pub(super) agent: SubAgent,
    /// The least restrictive mode.
    pub(super) mode: Mode,
    /// The trust in the calls of the parent.
    pub(super) trust: TrustLevel,
    /// The tools by id and alias.
    pub(super) registry: ToolRegistry,
}

impl SubAgentTools {
    fn has(&self, tool: &str) -> bool {
        !NEVER.contains(&tool) && self.agent.has_tool(tool)
    }

    /// The context of a call: with the mode of the sub-agent, or refused.
    fn limited(&self, call: &ToolCall, cx: &CallContext) -> CallContext {
        let id = self.registry.get(&call.tool).map(|def| &*def.id);
        let cx = cx.with_mode_cap(self.mode);
        // The stack reports an unknown tool.
        if self.has(id.unwrap_or(&call.tool)) {
            return cx;
        }
        let name = &self.agent.name;
        cx.with_answer(UserDecision::Refused(format!(
            "the sub-agent {name} does not have the tool {}",
            call.tool
        )))
    }
}

#[async_trait]
impl ErasedToolExecutor for SubAgentTools {
    async fn execute_tool_call_erased(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        let cx = self.limited(call, cx);
        self.stack.execute_tool_call_erased(call, &cx).await
    }

    async fn execute_tool_call_confirmed_erased(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        let cx = self.limited(call, cx);
        self.stack
            .execute_tool_call_confirmed_erased(call, &cx)
            .await
    }

    fn tool_definitions_erased(&self) -> Vec<ToolDef> {
        let mut definitions = self.stack.tool_definitions_erased();
        definitions.retain(|def| self.has(&def.id));
        definitions
    }

    fn set_skill_env_erased(&self, _env: Option<SkillEnv>) {}

    fn set_effective_trust_erased(&self, _trust: TrustLevel) {
        self.stack.set_effective_trust_erased(self.trust);
    }

    fn is_tool_retryable_erased(&self, tool_id: &str) -> bool {
        self.stack.is_tool_retryable_erased(tool_id)
    }

    fn requires_confirmation_erased(&self, call: &ToolCall) -> bool {
        self.stack.requires_confirmation_erased(call)
    }
}
