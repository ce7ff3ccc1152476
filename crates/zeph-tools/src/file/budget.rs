//! The time limit and cancellation of a call.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// The reason for an early stop of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The call was cancelled.
    Cancelled,
    /// The time limit was reached.
    Time,
}

/// The time limit of a call and its cancellation token.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    cancel: CancellationToken,
    deadline: Instant,
}

impl Budget {
    /// Creates a budget that ends after `limit`, or when `cancel` is triggered.
    pub(super) fn new(cancel: CancellationToken, limit: Duration) -> Self {
        Self {
            cancel,
            deadline: Instant::now() + limit,
        }
    }

    /// The token that cancels the call.
    pub(super) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The reason to stop, if the budget is spent.
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
