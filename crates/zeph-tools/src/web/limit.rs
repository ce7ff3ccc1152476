//! How long work on a page may take.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::error::ToolError;

/// The end of the time, and the way to stop before.
#[derive(Debug, Clone)]
pub(super) struct Limit {
    cancel: CancellationToken,
    time: Duration,
    until: Instant,
}

impl Limit {
    /// A limit that begins now.
    pub(super) fn new(cancel: CancellationToken, time: Duration) -> Self {
        Self {
            cancel,
            time,
            until: Instant::now() + time,
        }
    }

    /// Whether work may go on. Cheap: called between any two steps.
    ///
    /// # Errors
    /// It was cancelled, or the time is up.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        if Instant::now() >= self.until {
            return Err(ToolError::Timeout {
                what: "working through the page".to_owned(),
                limit: self.time,
            });
        }
        Ok(())
    }
}
