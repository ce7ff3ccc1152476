//! The `utility` layer: skips useless read-only calls of the model.
//!
//! It is inside every gate that asks or refuses, so that it scores only calls that would run. It is outside the
//! cache, because a cached result also takes space in the context. Calls of the user always run.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;

use super::{Next, SharedRegistry, ToolLayer};
use crate::cache::CacheKey;
use crate::call::ToolCall;
use crate::context::{CallContext, Origin};
use crate::error::ToolError;
use crate::feedback::ToolResult;
use crate::gate::reputation::Reputations;
use crate::gate::utility::UtilityScorer;

/// The layer that skips useless calls.
pub struct UtilityLayer {
    utility: Arc<UtilityScorer>,
    reputations: Arc<Reputations>,
    registry: SharedRegistry,
}

impl UtilityLayer {
    /// Creates a layer that judges by `utility`.
    #[must_use]
    pub fn new(
        utility: Arc<UtilityScorer>,
        reputations: Arc<Reputations>,
        registry: SharedRegistry,
    ) -> Self {
        Self {
            utility,
            reputations,
            registry,
        }
    }

    fn judge(&self, call: &ToolCall, key: &CacheKey) -> Result<(), ToolError> {
        let registry = self.registry.load();
        let Some(def) = registry.get(&call.tool) else {
            return Err(ToolError::blocked(
                "the utility score could not be computed: its tool is unknown",
            ));
        };
        if self.utility.spares(&call.tool, &def.annotations) {
            return Ok(());
        }
        let reputation = self.reputations.of(&call.conversation, &call.tool);
        let (session, nature) = (&call.conversation, &def.annotations);
        let now = Instant::now();
        let known = self.utility.evidence(session, key, nature, reputation, now);
        self.utility.judge(&known)
    }
}

#[async_trait]
impl ToolLayer for UtilityLayer {
    fn name(&self) -> &'static str {
        "utility"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let key = CacheKey::new(&call.tool, &call.params);
        if cx.origin == Origin::Model {
            self.judge(call, &key)?;
        }
        let policy = self.registry.load().cache_policy(&call.tool);
        let start = Instant::now();
        let result = next.run(call, cx).await;
        let end = Instant::now();
        let took = end.duration_since(start);
        self.utility
            .note(&call.conversation, key, policy, &result, took, end);
        result
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
