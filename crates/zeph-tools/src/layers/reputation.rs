//! The `reputation` layer: records the outcome of each call with the arguments of the model.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::feedback::ToolResult;
use crate::gate::reputation::Reputations;

/// The layer that records reputations.
pub struct ReputationLayer {
    reputations: Arc<Reputations>,
}

impl ReputationLayer {
    /// Creates a layer that records in `reputations`.
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

    fn is_gate(&self) -> bool {
        false
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let result = next.run(call, cx).await;
        let trace = cx.trace();
        // The id of the tool, if the name resolved to a tool.
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
