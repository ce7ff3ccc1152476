//! How long a call may go on.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// Why a call stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It was cancelled.
    Cancelled,
    /// Its time was up.
    Time,
}

/// The time that a call has, and the way to stop it.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    cancel: CancellationToken,
    deadline: Instant,
}

impl Budget {
    /// `limit` from now on, unless `cancel` comes first.
    pub(super) fn new(cancel: CancellationToken, limit: Duration) -> Self {
        Self {
            cancel,
            deadline: Instant::now() + limit,
        }
    }

    /// Why to stop, when it is time to.
    pub(super) fn spent(&self) -> Option<Stop> {
        if self.cancel.is_cancelled() {
            Some(Stop::Cancelled)
        } else if Instant::now() >= self.deadline {
            Some(Stop::Time)
        } else {
            None
        }
    }
}
