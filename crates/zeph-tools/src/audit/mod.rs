//! The audit trail: one entry a call, and the port through which it becomes durable.
//!
//! [`chain`] is the form in which entries are chained by hash, [`trail`] the sinks of a process.

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

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditResult {
    /// It succeeded.
    Success,
    /// It failed.
    Error,
    /// A gate refused; it did not run.
    Blocked,
    /// It was stopped.
    Cancelled,
    /// It took too long.
    Timeout,
    /// It failed, and what it had done was taken back.
    Rollback,
}

impl AuditResult {
    /// The name in entries.
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

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditEntry {
    /// When the call ended: milliseconds since the Unix epoch.
    pub ts: i64,
    /// The conversation.
    pub session: String,
    /// The id of the call.
    pub call_id: String,
    /// The tool; as called where it is unknown.
    pub tool: String,
    /// The arguments, contents of files left out.
    pub call: Value,
    /// How it ended.
    pub result: AuditResult,
    /// SHA-256 of what the model read, in lower-case hex.
    pub result_digest: String,
    /// Bytes of what the model read.
    pub result_size: u64,
    /// The trust that held.
    pub trust: TrustLevel,
    /// Who let it run.
    pub approved_by: ApprovedBy,
    /// The phase of the work.
    pub phase: Phase,
    /// How long it took.
    pub duration_ms: u64,
    /// Exit code of a shell call: of its command, or what a shell says of one that it did not run
    /// to its end. Null for a call of another kind.
    pub exit_code: Option<i32>,
    /// Whether a shell call's output was cut. Null for a call of another kind.
    pub truncated: Option<bool>,
    /// The category of a failure.
    pub error_category: Option<&'static str>,
    /// How often it was executed.
    pub attempts: u32,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// What the adversarial gate decided: `allow`, `deny`, or where the judge gave no verdict
    /// `allow (fail_open: WHY)`, `deny (fail_closed: WHY)`. Null where it did not look.
    pub adversarial_policy_decision: Option<String>,
    /// Where what the call read comes from: `web:HOST` for a page, HOST being the last one asked;
    /// `shell:PATH,PATH,…` for a command, the paths that its text names. A call that the
    /// adversarial gate judged has what the judge was told: also `file:PATH,PATH,…`, the paths that
    /// other arguments name. Null for other calls of other kinds, for what names no host or path,
    /// and for what was refused before anything looked at it.
    pub claim_source: Option<String>,
    /// What was repaired in the arguments; before that, what may be made up in them (`HallucinationSuspect: …`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    /// Who called; left out for the command line's own user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<String>,
    /// The rule that decided; left out where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_match: Option<String>,
}

impl AuditEntry {
    /// An entry about the trail itself: `what` happened to it. It stands in the chain like any
    /// other, as tool `audit`.
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

/// An entry could not be made durable: what, where, and how to mend it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the audit log cannot be written: {0}")]
pub struct AuditError(pub String);

/// A call that is about to run.
#[derive(Debug, Clone, Copy)]
pub struct Intent<'a> {
    /// The conversation.
    pub session: &'a str,
    /// The id of the call.
    pub call_id: &'a str,
    /// The tool as called.
    pub tool: &'a str,
    /// Bytes that its entry may take, about.
    pub bytes: usize,
}

/// Keeps entries. Appending returns when the entry survives the death of the process.
#[async_trait]
pub trait AuditSink: Send + Sync {
    /// Makes sure, before a call runs, that an entry of it can be written: by writing.
    ///
    /// # Errors
    /// [`AuditError`] when it could not.
    async fn reserve(&self, intent: Intent<'_>) -> Result<(), AuditError>;

    /// Appends one entry.
    ///
    /// # Errors
    /// [`AuditError`] when the entry is not durable.
    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError>;
}
