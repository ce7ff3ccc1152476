//! The audit trail: one entry per call, and the port to durable storage.
//!
//! [`chain`] is the format of the hash chain of entries, [`trail`] the sinks of a process.

pub mod chain;
pub mod config;
pub mod trail;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

pub use chain::{ChainCheck, Fields, Link, Sealed};
pub use config::AuditConfig;
pub use trail::AuditTrail;

use crate::call::Phase;
use crate::context::ApprovedBy;
use crate::trust::TrustLevel;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditResult {
    /// The call succeeded.
    Success,
    /// The call failed.
    Error,
    /// A gate refused the call; it did not run.
    Blocked,
    /// The call was stopped.
    Cancelled,
    /// The call exceeded its time limit.
    Timeout,
    /// The call failed, and its changes were rolled back.
    Rollback,
}

impl AuditResult {
    /// Returns the name in entries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Blocked => "blocked",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Rollback => "rollback",
        }
    }
}

/// An audit entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditEntry {
    /// The end of the call, in milliseconds since the Unix epoch.
    pub ts: i64,
    /// The conversation.
    pub session: String,
    /// The id of the call.
    pub call_id: String,
    /// The tool; the name in the call if the tool is unknown.
    pub tool: String,
    /// The arguments, without contents of files.
    pub call: Value,
    /// The outcome.
    pub result: AuditResult,
    /// The SHA-256 of the text that the model received, in lower-case hex.
    pub result_digest: String,
    /// The length of the text that the model received, in bytes.
    pub result_size: u64,
    /// The trust level.
    pub trust: TrustLevel,
    /// The origin of the approval.
    pub approved_by: ApprovedBy,
    /// The phase of the work.
    pub phase: Phase,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The exit code of a shell call: that of its command, or that of a shell for a command that did not run to
    /// its end. Null for other calls.
    pub exit_code: Option<i32>,
    /// Whether the output of a shell call was cut. Null for other calls.
    pub truncated: Option<bool>,
    /// The category of a failure.
    pub error_category: Option<&'static str>,
    /// The number of executions.
    pub attempts: u32,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// The decision of the adversarial gate: `allow`, `deny`, or, without a verdict, `allow (fail_open: WHY)`,
    /// `deny (fail_closed: WHY)`. Null if the gate did not judge the call.
    pub adversarial_policy_decision: Option<String>,
    /// The source of the data that the call read: `web:HOST` for a page, with the last requested host;
    /// `shell:PATH,PATH,…` for a command, with the paths in its text. A call that the adversarial gate judged has
    /// the source that the judge received, which includes `file:PATH,PATH,…`, the paths in other arguments. Null
    /// for other calls, for calls without a host or path, and for calls that were refused before the check.
    pub claim_source: Option<String>,
    /// The repairs of the arguments, after possibly invented arguments (`HallucinationSuspect: …`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    /// The caller; omitted for the user of the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<String>,
    /// The rule that decided, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_match: Option<String>,
}

impl AuditEntry {
    /// Creates an entry about the event `what` of the trail itself. It is a normal entry of the chain, with the
    /// tool `audit`.
    #[must_use]
    pub fn of_the_trail(ts: i64, what: Value) -> Self {
        let text = what.to_string();
        Self {
            ts,
            session: String::new(),
            call_id: String::new(),
            tool: "audit".to_owned(),
            call: what,
            result: AuditResult::Success,
            result_digest: chain::hex_digest(text.as_bytes()),
            result_size: text.len() as u64,
            trust: TrustLevel::default(),
            approved_by: ApprovedBy::default(),
            phase: Phase::default(),
            duration_ms: 0,
            exit_code: None,
            truncated: None,
            error_category: None,
            attempts: 0,
            cached: false,
            adversarial_policy_decision: None,
            claim_source: None,
            repairs: Vec::new(),
            caller_id: None,
            policy_match: None,
        }
    }
}

/// An error of an entry that is not durable: the failure, the place, and the correction.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the audit log cannot be written: {0}")]
pub struct AuditError(pub String);

/// A call that is about to run.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Intent<'a> {
    /// The conversation.
    pub session: &'a str,
    /// The id of the call.
    pub call_id: &'a str,
    /// The tool of the call.
    pub tool: &'a str,
    /// The approximate size of its entry in bytes.
    pub bytes: usize,
}

/// A sink of entries. An entry is durable when the append returns.
#[async_trait]
pub trait AuditSink: Send + Sync {
    /// Ensures by a write that an entry can be written, before the call runs.
    ///
    /// # Errors
    /// [`AuditError`] if the write failed.
    async fn reserve(&self, intent: Intent<'_>) -> Result<(), AuditError>;

    /// Appends one entry.
    ///
    /// # Errors
    /// [`AuditError`] if the entry is not durable.
    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError>;
}

/// Returns the SHA-256 in lower-case hex, and the length in bytes.
pub(crate) fn digest(text: &str) -> (String, u64) {
    (chain::hex_digest(text.as_bytes()), text.len() as u64)
}
