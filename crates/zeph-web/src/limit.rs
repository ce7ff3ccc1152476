//! The limit on the time to process a page.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::error::PageError;

/// A time limit with cancellation, for the parsing and rendering of a page.
#[derive(Debug, Clone)]
pub struct PageLimit {
    cancel: CancellationToken,
    time: Duration,
    until: Instant,
}

impl PageLimit {
    /// Creates a limit that begins now.
    #[must_use]
    pub fn new(cancel: CancellationToken, time: Duration) -> Self {
        Self {
            cancel,
            time,
            until: Instant::now() + time,
        }
    }

    /// Checks whether the limit is reached. The check is cheap enough for any two steps.
    ///
    /// # Errors
    /// [`PageError::Cancelled`] or [`PageError::Timeout`].
    pub fn check(&self) -> Result<(), PageError> {
        if self.cancel.is_cancelled() {
            return Err(PageError::Cancelled);
        }
        if Instant::now() >= self.until {
            return Err(PageError::Timeout(self.time));
        }
        Ok(())
    }
}
