//! The `anomaly` layer: reports a tool that fails too often, and blocks it until the user unblocks it.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::ToolResult;
use crate::gate::anomaly::{Anomaly, AnomalyDetector};

/// The layer that records outcomes and blocks failing tools.
pub struct AnomalyLayer {
    anomalies: Arc<AnomalyDetector>,
}

impl AnomalyLayer {
    /// Creates a layer that records outcomes in `anomalies`.
    #[must_use]
    pub fn new(anomalies: Arc<AnomalyDetector>) -> Self {
        Self { anomalies }
    }
}

#[async_trait]
impl ToolLayer for AnomalyLayer {
    fn name(&self) -> &'static str {
        "anomaly"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let (session, tool) = (&call.conversation, &call.tool);
        if let Some(rate) = self.anomalies.blocked(session, tool) {
            return Err(ToolError::blocked(format!(
                "{tool} is blocked in this session, because {rate}; the user can unblock it with \
                 `/tools unblock {tool}`, or start a new session"
            )));
        }
        let result = next.run(call, cx).await;
        if let Some(anomaly) = self.anomalies.record(session, tool, &result) {
            tell(call, cx, anomaly);
        }
        result
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}

fn tell(call: &ToolCall, cx: &CallContext, anomaly: Anomaly) {
    let Anomaly {
        severity,
        rate,
        blocked,
    } = anomaly;
    let tool = &call.tool;
    tracing::warn!(?severity, %tool, rate = rate.part(), blocked, "{rate}");
    let then = if blocked {
        format!("it is blocked in this session; `/tools unblock {tool}` lets it run again")
    } else {
        "it is not blocked ([tools.anomaly] auto_block)".to_owned()
    };
    cx.emit(ToolEvent::Warning {
        call_id: call.id.clone(),
        text: format!("{tool} fails too often, {rate}: {then}"),
    });
}
