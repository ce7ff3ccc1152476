//! The `audit` layer: one durable entry per call, written before the result is returned.
//!
//! It is the outermost layer, so it also records the refusals of all gates. A pending question is not a result:
//! the entry is written after the decision. If entries are required, a call that cannot be audited does not run.
//! Secrets in the result are replaced here, because this layer receives the texts of all other layers.
//! here, as this layer sees the texts of every other.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::Value;

use super::redact::withhold;
use super::{Next, ToolLayer, millis, now_ms};
use crate::audit::{AuditEntry, AuditError, AuditResult, AuditTrail, Intent, digest};
use crate::call::ToolCall;
use crate::category::ToolErrorCategory as Category;
use crate::context::{CallContext, UserDecision};
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::{ToolResult, format_for_llm};
use crate::secrets::SecurityPatterns;

/// The tool with an exit code for each call.
const BASH: &str = "bash";
/// The prefix of the tools that report on commands.
const JOBS: &str = "job_";
/// The exit code of a command that was found but could not be executed (POSIX, Shell Command Language, 2.8.2).
const NOT_RUN: i32 = 126;
/// The exit code of `timeout` of the GNU core utilities after a timeout.
const TIMED_OUT: i32 = 124;
/// The exit code of a command that SIGINT ended.
const CANCELLED: i32 = 130;
/// The approximate maximum size of an entry without its arguments, in bytes.
const ENTRY_BYTES: usize = 16 * 1024;

/// The layer that writes audit entries.
pub struct AuditLayer {
    trail: AuditTrail,
    secrets: Arc<SecurityPatterns>,
}

impl AuditLayer {
    /// Creates a layer that writes to `trail`, and redacts the matches of `secrets`.
    #[must_use]
    pub fn new(trail: AuditTrail, secrets: Arc<SecurityPatterns>) -> Self {
        Self { trail, secrets }
    }

    /// Removes the values of secrets from an entry.
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

    fn is_gate(&self) -> bool {
        false
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let start = Instant::now();
        let mut result = match self.admit(call).await {
            Ok(()) => next.run(call, cx).await,
            Err(error) => {
                warn(call, cx, format!("{} did not run: {error}", call.tool));
                Err(ToolError::blocked(format!(
                    "no audit entry can be written (`[tools.audit] required`), so the call did not \
                     run: {error}"
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
        tracing::error!(%error, tool = %entry.tool, "the audit entry of a call was not written");
        if entry.result == AuditResult::Blocked {
            // The call did not run, and the refusal has been reported.
            if self.trail.is_required() {
                return result;
            }
        }
        warn(
            call,
            cx,
            format!("the audit entry of {} was not written: {error}", entry.tool),
        );
        if self.trail.is_required() {
            return Err(ToolError::permanent(format!(
                "the call ran, but its audit entry could not be written; entries are required, so \
                 the result is withheld: {error}"
            )));
        }
        result
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}

/// Reports a warning to the user, even in quiet mode.
fn warn(call: &ToolCall, cx: &CallContext, text: String) {
    cx.emit(ToolEvent::Warning {
        call_id: call.id.clone(),
        text,
    });
}

/// Returns exit code and truncation of a shell call; `None` for other tools.
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
        // A background job: the start succeeded, and its exit code is known later.
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
    let executed = if trace.is_skill_tool {
        BASH
    } else {
        tool.as_str()
    };
    let (exit_code, truncated) = exit(executed, result);
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

/// Whether a command ran and the sandbox of the system denied it an access. Exit 126 means that a file cannot be
/// executed, regardless of the cause.
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
