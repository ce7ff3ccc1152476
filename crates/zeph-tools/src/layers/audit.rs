//! The `audit` layer: one durable entry per call, written before the result is returned.
//!
//! It stands outermost, so it sees what every gate refused as well. A question that is still to
//! be answered is no result: the entry is written when the answer is there.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Next, ToolLayer, millis, now_ms};
use crate::audit::{AuditEntry, AuditResult, AuditSink};
use crate::call::ToolCall;
use crate::category::ToolErrorCategory as Category;
use crate::context::{Answer, CallContext};
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::{ToolResult, format_for_llm};
use crate::trust::TrustLevel;

/// See the module.
pub struct AuditLayer {
    sink: Arc<dyn AuditSink>,
}

impl AuditLayer {
    /// A layer that writes to `sink`.
    #[must_use]
    pub fn new(sink: Arc<dyn AuditSink>) -> Self {
        Self { sink }
    }
}

#[async_trait]
impl ToolLayer for AuditLayer {
    fn name(&self) -> &'static str {
        "audit"
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let start = Instant::now();
        let result = next.run(call, cx).await;
        let pending = matches!(result, Err(ToolError::ConfirmationRequired(_)))
            && cx.answer == Answer::CanAsk;
        if pending {
            return result;
        }
        let entry = entry(call, cx, &result, millis(start));
        if let Err(error) = self.sink.append(&entry).await {
            tracing::error!(%error, tool = %entry.tool, "a call left no audit entry");
            cx.emit(ToolEvent::Notice {
                call_id: call.id.clone(),
                text: error.to_string(),
            });
        }
        result
    }

    fn would_ask(&self, _call: &ToolCall) -> bool {
        false
    }
}

/// The entry of a call that ended in `result`.
fn entry(call: &ToolCall, cx: &CallContext, result: &ToolResult, duration_ms: u64) -> AuditEntry {
    let trace = cx.trace().clone();
    let output = match result {
        Ok(output) => Some(output),
        Err(error) => error.output(),
    };
    let (result_digest, result_size) = match result {
        Ok(output) => digest(&output.summary),
        Err(error) => digest(&format_for_llm(error)),
    };
    let envelope = output.and_then(|output| output.raw_response.as_ref());
    let (tool, params) = trace
        .resolved
        .unwrap_or_else(|| (call.tool.clone(), Value::Null));
    AuditEntry {
        ts: now_ms(),
        session: call.conversation.clone(),
        call_id: call.id.clone(),
        tool,
        call: params,
        result: if trace.rolled_back {
            AuditResult::Rollback
        } else {
            outcome(result)
        },
        result_digest,
        result_size,
        trust: TrustLevel::default(),
        approved_by: trace.approved_by,
        phase: call.phase,
        duration_ms,
        exit_code: envelope
            .and_then(|envelope| envelope.get("exit_code"))
            .and_then(Value::as_i64)
            .and_then(|code| i32::try_from(code).ok()),
        truncated: envelope
            .and_then(|envelope| envelope.get("truncated"))
            .and_then(Value::as_bool),
        error_category: result.as_ref().err().map(|error| error.category().label()),
        attempts: trace.attempts,
        cached: output.is_some_and(|output| output.cached_secs.is_some()),
        claim_source: trace.claim_source,
        repairs: trace.repairs,
        caller_id: call.caller_id.clone(),
    }
}

fn outcome(result: &ToolResult) -> AuditResult {
    match result.as_ref().map_err(ToolError::category) {
        Ok(_) => AuditResult::Success,
        Err(Category::PolicyBlocked | Category::ConfirmationRequired) => AuditResult::Blocked,
        Err(Category::Cancelled) => AuditResult::Cancelled,
        Err(Category::Timeout) => AuditResult::Timeout,
        Err(_) => AuditResult::Error,
    }
}

/// SHA-256 in lower-case hex, and the length in bytes.
pub(crate) fn digest(text: &str) -> (String, u64) {
    use std::fmt::Write as _;
    let hash = Sha256::digest(text.as_bytes());
    let mut hex = String::with_capacity(64);
    for byte in hash {
        let _ = write!(hex, "{byte:02x}");
    }
    (hex, text.len() as u64)
}
