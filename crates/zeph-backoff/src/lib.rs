#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
//! # Structure
//! - `lib.rs`: [`Policy::decide`] and the random numbers.
//! - `retry_after`: the header `Retry-After`.

mod retry_after;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

pub use retry_after::parse_retry_after;

/// The limits of the attempts of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The maximum number of attempts, the first one included.
    pub max_attempts: u32,
    /// The ceiling of the first wait. It doubles with each attempt.
    pub first_ceiling: Duration,
    /// The ceiling of every wait, unless a server asks for a longer one.
    pub last_ceiling: Duration,
    /// The time after which no further attempt begins. It never cuts off an attempt that is running.
    pub budget: Duration,
}

/// A failed attempt that may succeed if it is made again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailedAttempt {
    /// The number of attempts so far, this one included.
    pub attempt: u32,
    /// The wait that the server asks for.
    pub retry_after: Option<Duration>,
    /// The time since the first attempt began.
    pub elapsed: Duration,
    /// A random number in [0, 1), as of [`random_unit`].
    pub random: f64,
}

/// The action after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Wait, then make the next attempt.
    Wait(Duration),
    /// Give up.
    Stop(GiveUp),
}

/// The reason why no further attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUp {
    /// The same attempt would fail again. Callers decide this; [`Policy::decide`] never does.
    NotRetryable,
    /// All attempts are made.
    AttemptsUsed,
    /// The budget is over.
    BudgetUsed,
    /// The server asks for a longer wait than the rest of the budget.
    ServerWaitTooLong {
        /// The wait that the server asks for.
        wait: Duration,
        /// The rest of the budget.
        left: Duration,
    },
}

impl Policy {
    /// Decides about the next attempt. A server that asks for a wait gets at least that wait.
    #[must_use]
    pub fn decide(&self, failed: FailedAttempt) -> Decision {
        let left = self.budget.saturating_sub(failed.elapsed);
        let asked = failed.retry_after.unwrap_or_default();
        if asked > left {
            return Decision::Stop(GiveUp::ServerWaitTooLong { wait: asked, left });
        }
        if failed.attempt >= self.max_attempts {
            return Decision::Stop(GiveUp::AttemptsUsed);
        }
        let doublings = failed.attempt.saturating_sub(1).min(31);
        let ceiling = self.first_ceiling.saturating_mul(1 << doublings);
        let ceiling = ceiling.min(self.last_ceiling);
        let jittered = Duration::try_from_secs_f64(ceiling.as_secs_f64() * failed.random);
        if left.is_zero() {
            return Decision::Stop(GiveUp::BudgetUsed);
        }
        // The last attempt begins at the end of the budget.
        let wait = jittered.unwrap_or(ceiling).min(ceiling).min(left);
        Decision::Wait(wait.max(asked))
    }
}

/// Draws a random number in [0, 1) from the seed that the standard library draws for its hash maps.
#[must_use]
pub fn random_unit() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}
