//! The `audit` layer: one durable entry per call, written before the result is returned.
//!
//! It stands outermost, so it sees what every gate refused as well. A question that is still to
//! be answered is no result: the entry is written when the answer is there. Where entries are
//! required, a call that could not be audited goes no further. Secrets in the result are replaced
//! here, as this layer sees the texts of every other.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::Value;

use super::redact::withhold;
use super::{Next, ToolLayer, millis, now_ms};
use crate::audit::{AuditEntry, AuditError, AuditResult, AuditTrail, Intent, chain};
use crate::call::ToolCall;
use crate::category::ToolErrorCategory as Category;
use crate::context::{CallContext, UserDecision};
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::{ToolResult, format_for_llm};
use crate::secrets::SecurityPatterns;

/// The tool whose calls always have an exit code.
const BASH: &str = "bash";
/// Tools that report on commands begin so.
const JOBS: &str = "job_";
/// What a shell says of a command that it found and could not run (POSIX, Shell Command Language,
/// 2.8.2).
const NOT_RUN: i32 = 126;
/// What `timeout` of the GNU core utilities says of a command that ran out of time.
const TIMED_OUT: i32 = 124;
/// What a shell says of a command that SIGINT ended.
const CANCELLED: i32 = 130;
/// What an entry takes beside its arguments, at most, about.
const ENTRY_BYTES: usize = 16 * 1024;

/// See the module.
pub struct AuditLayer {
    trail: AuditTrail,
    secrets: Arc<SecurityPatterns>,
}

impl AuditLayer {
    /// A layer that writes to `trail`, without what `secrets` finds.
    #[must_use]
    pub fn new(trail: AuditTrail, secrets: Arc<SecurityPatterns>) -> Self {
        Self { trail, secrets }
    }

    /// Takes the values of secrets out of an entry.
    fn redact(&self, entry: &mut AuditEntry) {
        self.secrets.redact_json(&mut entry.call);
        let texts = entry.repairs.iter_mut().chain(&mut entry.claim_source);
        let texts = texts.chain(&mut entry.policy_match);
        for text in texts.chain([&mut entry.tool]) {
            if let Cow::Owned(redacted) = self.secrets.redact(text).text {
                *text = redacted;
            }
        }
    }

    async fn admit(&self, call: &ToolCall) -> Result<(), AuditError> {
        if !self.trail.is_required() {
            return Ok(());
        }
        let intent = Intent {
            session: &call.conversation,
            call_id: &call.id,
            tool: &call.tool,
            bytes: ENTRY_BYTES + call.params.to_string().len(),
        };
        self.trail.admit(intent).await
    }
}

#[async_trait]
impl ToolLayer for AuditLayer {
    fn name(&self) -> &'static str {
        "audit"
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let start = Instant::now();
        let mut result = match self.admit(call).await {
            Ok(()) => next.run(call, cx).await,
            Err(error) => {
                warn(call, cx, format!("{} did not run: {error}", call.tool));
                Err(ToolError::blocked(format!(
                    "no call runs that leaves no audit entry (`[tools.audit] required`): {error}"
                )))
            }
        };
        let pending = matches!(result, Err(ToolError::ConfirmationRequired(_)))
            && cx.answer == UserDecision::CanAsk;
        if pending {
            return result;
        }
        withhold(&self.secrets, &mut result);
        let mut entry = entry(call, cx, &result, millis(start));
        self.redact(&mut entry);
        let Err(error) = self.trail.append(&entry).await else {
            return result;
        };
        tracing::error!(%error, tool = %entry.tool, "a call left no audit entry");
        if entry.result == AuditResult::Blocked {
            // It did not run, and what kept it from running has been told.
            if self.trail.is_required() {
                return result;
            }
        }
        warn(
            call,
            cx,
            format!("{} left no audit entry: {error}", entry.tool),
        );
        if self.trail.is_required() {
            return Err(ToolError::permanent(format!(
                "the call ran, but it left no audit entry, which is required, so that its result is \
                 withheld: {error}"
            )));
        }
        result
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}

/// Tells a person, however quiet it is to be.
fn warn(call: &ToolCall, cx: &CallContext, text: String) {
    cx.emit(ToolEvent::Warning {
        call_id: call.id.clone(),
        text,
    });
}

/// Exit code and truncation of a shell call; neither for any other.
fn exit(tool: &str, result: &ToolResult) -> (Option<i32>, Option<bool>) {
    if tool != BASH && !tool.starts_with(JOBS) {
        return (None, None);
    }
    let output = match result {
        Ok(output) => Some(output),
        Err(error) => error.output(),
    };
    let field = |name: &str| output?.raw_response.as_ref()?.get(name).cloned();
    let code = field("exit_code")
        .and_then(|code| code.as_i64())
        .and_then(|code| i32::try_from(code).ok());
    let truncated = field("truncated").and_then(|truncated| truncated.as_bool());
    if tool != BASH {
        return (code, truncated);
    }
    let code = code.unwrap_or_else(|| match result.as_ref().map_err(ToolError::category) {
        // As `command &`: the start succeeded, and what the job exits with comes later.
        Ok(_) => 0,
        Err(Category::Timeout) => TIMED_OUT,
        Err(Category::Cancelled) => CANCELLED,
        Err(_) => NOT_RUN,
    });
    (Some(code), Some(truncated.unwrap_or(false)))
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
    let (tool, params) = trace
        .resolved
        .unwrap_or_else(|| (call.tool.clone(), Value::Null));
    let (exit_code, truncated) = exit(&tool, result);
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
        trust: trace.trust,
        approved_by: trace.approved_by,
        phase: call.phase,
        duration_ms,
        exit_code,
        truncated,
        error_category: result.as_ref().err().map(|error| error.category().label()),
        attempts: trace.attempts,
        cached: output.is_some_and(|output| output.cached_secs.is_some()),
        adversarial_policy_decision: trace.judged.map(|judged| judged.decision.to_string()),
        claim_source: trace.claim_source,
        repairs: trace.suspects.into_iter().chain(trace.repairs).collect(),
        caller_id: call.caller_id.clone(),
        policy_match: trace.policy_match,
    }
}

fn outcome(result: &ToolResult) -> AuditResult {
    match result {
        Ok(_) => AuditResult::Success,
        Err(error) if error.is_refusal() || was_confined(error) => AuditResult::Blocked,
        Err(error) => match error.category() {
            Category::Cancelled => AuditResult::Cancelled,
            Category::Timeout => AuditResult::Timeout,
            _ => AuditResult::Error,
        },
    }
}

/// Whether a command ran and the system's sandbox kept it from something. Exit 126 is a file that
/// cannot be executed, whoever says so.
fn was_confined(error: &ToolError) -> bool {
    match error {
        ToolError::Noted { error, .. } => was_confined(error),
        ToolError::Shell {
            exit_code: Some(code),
            category: Category::PolicyBlocked,
            ..
        } => *code != 126,
        _ => false,
    }
}

/// SHA-256 in lower-case hex, and the length in bytes.
pub(crate) fn digest(text: &str) -> (String, u64) {
    (chain::hex_digest(text.as_bytes()), text.len() as u64)
}
