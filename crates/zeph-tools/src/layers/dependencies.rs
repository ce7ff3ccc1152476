//! The `dependencies` layer: refuses a tool with unmet requirements, and records successes. A tool
//! that a skill declares counts under its own name, and under that of its command.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, SharedRegistry, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::event::ToolEvent;
use crate::feedback::ToolResult;
use crate::gate::dependencies::Dependencies;

/// The layer that applies the requirements of tools.
pub struct DependencyLayer {
    dependencies: Arc<Dependencies>,
    registry: SharedRegistry,
}

impl DependencyLayer {
    /// Creates a layer that applies `dependencies` to the tools of `registry`.
    #[must_use]
    pub fn new(dependencies: Arc<Dependencies>, registry: SharedRegistry) -> Self {
        Self {
            dependencies,
            registry,
        }
    }
}

#[async_trait]
impl ToolLayer for DependencyLayer {
    fn name(&self) -> &'static str {
        "dependencies"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let session = &call.conversation;
        let resolved = cx.trace().resolved.as_ref().map(|(tool, _)| tool.clone());
        let mut names = vec![call.tool.clone()];
        names.extend(resolved.filter(|tool| *tool != call.tool));
        let registry = self.registry.load_full();
        for tool in &names {
            let tools = registry.tools().iter().map(|def| def.id.as_ref());
            self.dependencies.check(session, tool, tools).await?;
        }
        let output = next.run(call, cx).await?;
        for tool in &names {
            if let Err(error) = self.dependencies.succeeded(session, tool).await {
                tracing::warn!(%tool, %error, "a successful call could not be recorded");
                cx.emit(ToolEvent::Warning {
                    call_id: call.id.clone(),
                    text: format!(
                        "the success of {tool} could not be recorded, so tools that require \
                        it stay blocked: {error}"
                    ),
                });
            }
        }
        Ok(output)
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
