//! The `quota` layer: the limit of `[tools] max_tool_calls_per_session`.
//!
//! A call passes here twice if the user is asked about it; the first pass counts it.

use async_trait::async_trait;

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::feedback::ToolResult;
use crate::gate::quota::Quota;

/// The layer that counts calls.
pub struct QuotaLayer {
    quota: Quota,
}

impl QuotaLayer {
    /// Creates a layer that takes from `quota`.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self { quota }
    }
}

#[async_trait]
impl ToolLayer for QuotaLayer {
    fn name(&self) -> &'static str {
        "quota"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let counted = cx.trace().counted;
        if !counted {
            cx.seats().take(&self.quota, call.account()).await?;
            cx.trace().counted = true;
        }
        next.run(call, cx).await
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
