//! The `reputation` layer: notes what came of each call, as the model made it.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::feedback::ToolResult;
use crate::gate::reputation::Reputations;

/// See the module.
pub struct ReputationLayer {
    reputations: Arc<Reputations>,
}

impl ReputationLayer {
    /// A layer that keeps `reputations`.
    #[must_use]
    pub fn new(reputations: Arc<Reputations>) -> Self {
        Self { reputations }
    }
}

#[async_trait]
impl ToolLayer for ReputationLayer {
    fn name(&self) -> &'static str {
        "reputation"
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let result = next.run(call, cx).await;
        let trace = cx.trace();
        // Under the tool's own id, where there is such a tool.
        let resolved = trace.resolved.as_ref();
        let tool = resolved.map_or(&call.tool, |(tool, _)| tool);
        self.reputations.record(&call.conversation, tool, &result);
        drop(trace);
        result
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
