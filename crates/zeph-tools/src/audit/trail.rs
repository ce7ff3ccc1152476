//! The audit sinks of a process, and the handling of their failures.

use std::sync::Arc;

use super::{AuditEntry, AuditError, AuditSink, Intent};

/// The audit sinks of a process: several, or none.
#[derive(Clone, Default)]
pub struct AuditTrail {
    sinks: Arc<[Arc<dyn AuditSink>]>,
    required: bool,
}

impl AuditTrail {
    /// Creates a trail to `sinks`; with `required`, a call does not run if its entry cannot be written.
    #[must_use]
    pub fn new(sinks: Vec<Arc<dyn AuditSink>>, required: bool) -> Self {
        Self {
            sinks: sinks.into(),
            required,
        }
    }

    /// Whether a call without an entry is refused.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Checks whether a call may run: if entries are required, every sink must prove by a write that it accepts
    /// one. A sink can still become full before the end of the call.
    ///
    /// # Errors
    /// [`AuditError`] of the sinks that fail.
    pub async fn admit(&self, intent: Intent<'_>) -> Result<(), AuditError> {
        if !self.required {
            return Ok(());
        }
        let mut failed = Failures::default();
        for sink in self.sinks.iter() {
            failed.take(sink.reserve(intent).await);
        }
        failed.result()
    }

    /// Appends an entry to every sink; the failure of one sink does not affect the others.
    ///
    /// # Errors
    /// [`AuditError`] of the sinks in which it is not durable.
    pub async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        let mut failed = Failures::default();
        for sink in self.sinks.iter() {
            failed.take(sink.append(entry).await);
        }
        failed.result()
    }
}

/// The failures of the sinks, combined to one error.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    fn take(&mut self, result: Result<(), AuditError>) {
        if let Err(AuditError(reason)) = result {
            self.0.push(reason);
        }
    }

    fn result(self) -> Result<(), AuditError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(AuditError(self.0.join("; ")))
        }
    }
}
