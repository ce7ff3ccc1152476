//! The `skill` layer: restricts calls to the tools that the active skills allow, and lowers the trust to that of
//! the loaded skills. A tool that a skill declares becomes its command here, before any gate judges it.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, SharedRegistry, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::ToolResult;
use crate::skill::{ActiveSkills, SkillRegistry};
use crate::trust::TrustLevel;

/// The layer that applies active skills.
pub struct SkillLayer {
    skills: Arc<SkillRegistry>,
    registry: SharedRegistry,
}

impl SkillLayer {
    /// Creates a layer for `skills` and the tools of `registry` that they may name.
    #[must_use]
    pub fn new(skills: Arc<SkillRegistry>, registry: SharedRegistry) -> Self {
        Self { skills, registry }
    }

    /// Returns the trust level of a call: the lower one of its session and of the skill that declares its tool.
    fn trust(&self, call: &ToolCall, held: &ActiveSkills) -> TrustLevel {
        let own = self.skills.tool(&call.tool);
        own.map_or(held.trust, |(skill, _)| held.trust.min(skill.trust))
    }
}

#[async_trait]
impl ToolLayer for SkillLayer {
    fn name(&self) -> &'static str {
        "skill"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let held = self.skills.held(&call.conversation);
        let registry = self.registry.load_full();
        let declared = self.skills.tool(&call.tool);
        cx.trace().is_skill_tool = declared.is_some();
        if let Some(skill) = held.refusing(&call.tool, &registry) {
            cx.trace()
                .record_rule_match(&format!("allowed-tools of the skill {}", skill.name));
            let allowed = skill.allowed_words().unwrap_or_default();
            return Err(ToolError::blocked(format!(
                "the skill {} runs until the end of this turn and allows only {allowed}, not {}",
                skill.name, call.tool
            )));
        }
        {
            let mut trace = cx.trace();
            trace.trust = trace.trust.min(self.trust(call, &held));
        }
        let mut env = held.env();
        let Some((skill, tool)) = declared else {
            if env.is_empty() {
                return next.run(call, cx).await;
            }
            return next.run(call, &cx.with_skill_env(env)).await;
        };
        let command = tool.as_command(call)?;
        env.extend(skill.env.clone());
        cx.emit(ToolEvent::Notice {
            call_id: call.id.clone(),
            text: format!(
                "{} of the skill {} runs: {}",
                call.tool,
                skill.name,
                command.str_param("command").unwrap_or_default()
            ),
        });
        next.run(&command, &cx.with_skill_env(env)).await
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        let held = self.skills.held(&call.conversation);
        let registry = self.registry.load();
        let reads = registry
            .get(&call.tool)
            .is_some_and(|def| def.annotations.read_only && !def.annotations.open_world);
        self.trust(call, &held) != TrustLevel::Trusted && !reads
    }
}
