//! The sinks of a process, and what happens when one of them fails.

use std::sync::Arc;

use super::{AuditEntry, AuditError, AuditSink, Intent};

/// Where the entries of a process go: to several sinks, or to none.
#[derive(Clone, Default)]
pub struct AuditTrail {
    sinks: Arc<[Arc<dyn AuditSink>]>,
    required: bool,
}

impl AuditTrail {
    /// A trail to `sinks`; with `required`, a call whose entry could not be written does not run.
    #[must_use]
    pub fn new(sinks: Vec<Arc<dyn AuditSink>>, required: bool) -> Self {
        Self {
            sinks: sinks.into(),
            required,
        }
    }

    /// Whether a call that leaves no entry is refused.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Whether a call may run: where entries are required, every sink has just proved, by writing,
    /// that it can take one. What fills up between this and the end of the call is not foreseen.
    ///
    /// # Errors
    /// [`AuditError`] of the sinks that cannot.
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

    /// Appends one entry to every sink; a sink that fails keeps it from no other.
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

/// What the sinks say, as one error.
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
