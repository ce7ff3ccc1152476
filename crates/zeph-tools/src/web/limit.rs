//! The limit on the time to process a page.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::error::ToolError;

/// A time limit with cancellation.
#[derive(Debug, Clone)]
pub(super) struct Limit {
    cancel: CancellationToken,
    time: Duration,
    until: Instant,
}

impl Limit {
    /// Creates a limit that begins now.
    pub(super) fn new(cancel: CancellationToken, time: Duration) -> Self {
        Self {
            cancel,
            time,
            until: Instant::now() + time,
        }
    }

    /// Checks whether work may continue. It is cheap, so callers check between any two steps.
    ///
    /// # Errors
    /// An error if the work was cancelled or the time limit is reached.
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
