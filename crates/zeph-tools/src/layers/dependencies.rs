//! The `dependencies` layer: a tool whose requirements are not met does not run, and what succeeds is noted.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, SharedRegistry, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::event::ToolEvent;
use crate::feedback::ToolResult;
use crate::gate::dependencies::Dependencies;

/// See the module.
pub struct DependencyLayer {
    dependencies: Arc<Dependencies>,
    registry: SharedRegistry,
}

impl DependencyLayer {
    /// A layer that holds calls to `dependencies` among the tools of `registry`.
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

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let (session, tool) = (&call.conversation, &call.tool);
        let registry = self.registry.load_full();
        let tools = registry.tools().iter().map(|def| def.id.as_ref());
        self.dependencies.check(session, tool, tools).await?;
        let result = next.run(call, cx).await;
        if result.is_ok()
            && let Err(error) = self.dependencies.succeeded(session, tool).await
        {
            tracing::warn!(%tool, %error, "a success could not be kept");
            cx.emit(ToolEvent::Warning {
                call_id: call.id.clone(),
                text: format!("that {tool} succeeded could not be kept, so that what requires it stays refused: {error}"),
            });
        }
        result
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
