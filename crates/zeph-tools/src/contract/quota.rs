//! The number of calls that a session may make (`[tools] max_tool_calls_per_session`).
//!
//! A call is counted when it first reaches the gate; its retries and its confirmed path are free. The calls of
//! one response are admitted together or not at all: they share a [`BatchQuota`], and [`BatchState`] decides.
//! [`CallCounter`] is the port to the stored count.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::lock::Mutex;

use crate::error::ToolError;

/// The result of a request to count calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaResult {
    /// The calls fit and are counted.
    Fits {
        /// The number of calls of the session, including these.
        used: u64,
    },
    /// The calls do not all fit; none is counted.
    Exceeds {
        /// The number of calls of the session without these.
        used: u64,
    },
}

/// An error of the counter of calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CountError(pub String);

/// A counter of the calls of conversations.
#[async_trait]
pub trait CallCounter: Send + Sync {
    /// Adds `calls` to the count of the conversation if the sum is at most `max`. The step is atomic across
    /// processes, and durable when it returns.
    ///
    /// # Errors
    /// [`CountError`]; then nothing is counted.
    async fn take(
        &self,
        conversation: &str,
        calls: u64,
        max: u64,
    ) -> Result<QuotaResult, CountError>;

    /// Returns the number of calls of the conversation since it began or was cleared.
    ///
    /// # Errors
    /// [`CountError`].
    async fn used(&self, conversation: &str) -> Result<u64, CountError>;
}

/// A quota with its counter.
#[derive(Clone)]
pub struct Quota {
    /// The maximum number of calls of a session.
    pub max: u64,
    /// The counter.
    pub counter: Arc<dyn CallCounter>,
}

/// The next step of a call that is not counted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaAction {
    /// Run: it was counted with the other calls of its response.
    Seated,
    /// Count this number of calls first.
    Take(u64),
    /// Refuse.
    Blocked {
        /// The number of calls made.
        used: u64,
        /// The number of calls that its response requests.
        asked: u64,
    },
}

/// The state of the calls of one response with respect to the quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchState {
    /// No call has arrived yet; the value is their number.
    Unasked(u64),
    /// The calls are counted; the value is the number of those that have not arrived yet.
    Left(u64),
    /// The calls do not fit: none of them runs.
    Blocked {
        /// The number of calls made.
        used: u64,
        /// The number of calls that the response requests.
        asked: u64,
    },
}

impl BatchState {
    /// Returns the next step of the next call. An unexpected call, such as one with repaired arguments, is
    /// counted alone.
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

    /// Applies the result of [`QuotaAction::Take`] for `calls`. Returns the next step of the call that made the
    /// claim.
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

/// The shared quota state of the calls of one response.
#[derive(Debug)]
pub struct BatchQuota(Mutex<BatchState>);

impl BatchQuota {
    /// Creates the state for a response with this number of calls.
    #[must_use]
    pub fn of(calls: u64) -> Self {
        Self(Mutex::new(BatchState::Unasked(calls)))
    }

    /// Counts a call of the response together with the other calls, if that was not done before.
    ///
    /// # Errors
    /// [`ToolError::QuotaBlocked`] if they do not all fit, also for later calls of the response;
    /// [`ToolError::PolicyBlocked`] if they cannot be counted.
    pub async fn take(&self, quota: &Quota, conversation: &str) -> Result<(), ToolError> {
        // Locked during the count: the other calls of the response wait for the result.
        let mut seats = self.0.lock().await;
        let mut claim = seats.claim();
        if let QuotaAction::Take(calls) = claim {
            let taken = quota.counter.take(conversation, calls, quota.max).await;
            let taken = taken.map_err(|error| {
                ToolError::blocked(format!(
                    "the calls of this session cannot be counted for `[tools] \
                     max_tool_calls_per_session`: {error}"
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

    /// A reference implementation of a counter.
    fn count(used: &mut u64, calls: u64, max: u64) -> QuotaResult {
        if used.saturating_add(calls) > max {
            return QuotaResult::Exceeds { used: *used };
        }
        *used += calls;
        QuotaResult::Fits { used: *used }
    }

    /// Returns how many calls run if a response announces `calls` and `come` calls arrive.
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
    fn calls_of_a_response_run_together_or_not_at_all() {
        let check = |before: u64, calls: u64, come: u64, max: u64, ran: u64, after: u64| {
            let mut used = before;
            assert_eq!(run(&mut used, calls, come, max), ran);
            assert_eq!(used, after);
        };
        check(0, 3, 3, 3, 3, 3);
        check(1, 3, 3, 3, 0, 1);
        check(3, 1, 1, 3, 0, 3);
        check(0, 1, 1, 0, 0, 0);
        // An unexpected call is counted alone.
        check(0, 2, 3, 3, 3, 3);
        check(0, 2, 3, 2, 2, 2);
        check(0, 0, 1, 1, 1, 1);
        check(0, 0, 1, 0, 0, 0);
        // A call that does not arrive stays counted.
        check(0, 3, 2, 3, 2, 3);
        check(0, u64::MAX, 1, 5, 0, 0);
    }

    proptest! {
        /// Proves PERM-40: never more calls run than are counted, nor more than the limit.
        #[test]
        fn executed_calls_never_exceed_the_limit(
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
