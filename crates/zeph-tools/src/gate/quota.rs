//! The number of calls that a session may make (`[tools] max_tool_calls_per_session`).
//!
//! A call is counted when it first reaches the gate; its retries and its confirmed path are free. The calls of one response
//! are admitted together or not at all: they share a [`BatchQuota`], and [`BatchState`] decides. [`CallCounter`] is the port to
//! the stored count.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::lock::Mutex;

use crate::error::ToolError;

/// What taking calls from a session's quota came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaResult {
    /// They fit, and are counted.
    Fits {
        /// Calls of the session, these included.
        used: u64,
    },
    /// They do not all fit; none is counted.
    Exceeds {
        /// Calls of the session without these.
        used: u64,
    },
}

/// The calls of a session cannot be counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CountError(pub String);

/// Counts the calls of conversations.
#[async_trait]
pub trait CallCounter: Send + Sync {
    /// Counts `calls` more of the conversation if then there are no more than `max`: in one step, so
    /// that two processes never take the same, and durable when it returns.
    ///
    /// # Errors
    /// [`CountError`]; then nothing is counted.
    async fn take(
        &self,
        conversation: &str,
        calls: u64,
        max: u64,
    ) -> Result<QuotaResult, CountError>;

    /// The calls of the conversation since it began or was cleared.
    ///
    /// # Errors
    /// [`CountError`].
    async fn used(&self, conversation: &str) -> Result<u64, CountError>;
}

/// A quota and who counts for it.
#[derive(Clone)]
pub struct Quota {
    /// The most calls of a session.
    pub max: u64,
    /// Counts them.
    pub counter: Arc<dyn CallCounter>,
}

/// What a call that was not counted yet has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaAction {
    /// Go on: it was counted with the others of its answer.
    Seated,
    /// Count so many first.
    Take(u64),
    /// Go no further.
    Blocked {
        /// Calls made.
        used: u64,
        /// Calls that its answer asks for.
        asked: u64,
    },
}

/// Where the calls of one answer stand with the quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchState {
    /// None has come yet; they are so many.
    Unasked(u64),
    /// They are counted, and so many of them did not come yet.
    Left(u64),
    /// They do not fit: none of them runs.
    Blocked {
        /// Calls made.
        used: u64,
        /// Calls that the answer asks for.
        asked: u64,
    },
}

impl BatchState {
    /// What the next call has to do. One that was not expected, as one whose arguments were mended
    /// on the way, is counted alone.
    #[must_use]
    pub fn claim(&mut self) -> QuotaAction {
        match self {
            Self::Unasked(calls) => QuotaAction::Take((*calls).max(1)),
            Self::Left(0) => QuotaAction::Take(1),
            Self::Left(left) => {
                *left -= 1;
                QuotaAction::Seated
            }
            Self::Blocked { used, asked } => QuotaAction::Blocked {
                used: *used,
                asked: *asked,
            },
        }
    }

    /// The result of [`QuotaAction::Take`] for `calls`, for the call that made the claim.
    pub fn took(&mut self, calls: u64, taken: QuotaResult) -> QuotaAction {
        match taken {
            QuotaResult::Fits { .. } => {
                *self = Self::Left(calls.saturating_sub(1));
                QuotaAction::Seated
            }
            QuotaResult::Exceeds { used } => {
                *self = Self::Blocked { used, asked: calls };
                QuotaAction::Blocked { used, asked: calls }
            }
        }
    }
}

/// What the calls of one answer share: whether the quota has room for all of them.
#[derive(Debug)]
pub struct BatchQuota(Mutex<BatchState>);

impl BatchQuota {
    /// The seats of an answer with so many calls that may run.
    #[must_use]
    pub fn of(calls: u64) -> Self {
        Self(Mutex::new(BatchState::Unasked(calls)))
    }

    /// Counts a call of the answer, with all others of it, unless that was done.
    ///
    /// # Errors
    /// [`ToolError::QuotaBlocked`] when they do not all fit, also for those that come later;
    /// [`ToolError::PolicyBlocked`] when they cannot be counted.
    pub async fn take(&self, quota: &Quota, conversation: &str) -> Result<(), ToolError> {
        // Held while the counter counts: the others of the answer wait for what it says.
        let mut seats = self.0.lock().await;
        let mut claim = seats.claim();
        if let QuotaAction::Take(calls) = claim {
            let taken = quota.counter.take(conversation, calls, quota.max).await;
            let taken = taken.map_err(|error| {
                ToolError::blocked(format!(
                    "the calls of this session cannot be counted, and \
                     `[tools] max_tool_calls_per_session` limits them: {error}"
                ))
            })?;
            claim = seats.took(calls, taken);
        }
        match claim {
            QuotaAction::Seated => Ok(()),
            QuotaAction::Blocked { used, asked } => Err(ToolError::QuotaBlocked {
                used,
                max: quota.max,
                asked,
            }),
            QuotaAction::Take(_) => Err(ToolError::blocked("the quota of calls could not decide")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A counter as it has to be.
    fn count(used: &mut u64, calls: u64, max: u64) -> QuotaResult {
        if used.saturating_add(calls) > max {
            return QuotaResult::Exceeds { used: *used };
        }
        *used += calls;
        QuotaResult::Fits { used: *used }
    }

    /// How many calls of an answer that announces `calls` and brings `come` run.
    fn run(used: &mut u64, calls: u64, come: u64, max: u64) -> u64 {
        let mut seats = BatchState::Unasked(calls);
        let mut ran = 0;
        for _ in 0..come {
            let mut claim = seats.claim();
            if let QuotaAction::Take(taking) = claim {
                claim = seats.took(taking, count(used, taking, max));
            }
            ran += u64::from(claim == QuotaAction::Seated);
        }
        ran
    }

    /// Proves D-11, PERM-40.
    #[test]
    fn the_calls_of_an_answer_run_together_or_not_at_all() {
        let check = |before: u64, calls: u64, come: u64, max: u64, ran: u64, after: u64| {
            let mut used = before;
            assert_eq!(run(&mut used, calls, come, max), ran);
            assert_eq!(used, after);
        };
        check(0, 3, 3, 3, 3, 3);
        check(1, 3, 3, 3, 0, 1);
        check(3, 1, 1, 3, 0, 3);
        check(0, 1, 1, 0, 0, 0);
        // One that was not expected is counted alone.
        check(0, 2, 3, 3, 3, 3);
        check(0, 2, 3, 2, 2, 2);
        check(0, 0, 1, 1, 1, 1);
        check(0, 0, 1, 0, 0, 0);
        // One that does not come stays counted.
        check(0, 3, 2, 3, 2, 3);
        check(0, u64::MAX, 1, 5, 0, 0);
    }

    proptest! {
        /// Proves PERM-40: never more calls run than are counted, nor more than the limit.
        #[test]
        fn no_more_run_than_the_limit(
            answers in proptest::collection::vec((0u64..6, 0u64..6), 0..12),
            max in 0u64..20,
        ) {
            let (mut used, mut ran) = (0, 0);
            for (calls, come) in answers {
                ran += run(&mut used, calls, come, max);
                prop_assert!(ran <= used && used <= max);
            }
        }
    }
}
