//! Repeats transactions that failed because of another transaction: a deadlock or a failed serialization.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use zeph_backoff::{Decision, FailedAttempt, Policy, random_unit};

use crate::error::StoreError;

/// The attempts of a transaction. A conflict ends soon, so that the waits are short.
const ATTEMPTS: Policy = Policy {
    max_attempts: 6,
    first_ceiling: Duration::from_millis(10),
    last_ceiling: Duration::from_millis(200),
    budget: Duration::from_secs(5),
};

/// Runs a transaction, and runs it again if it had no effect because of another one. Each attempt must begin its own
/// transaction, and do nothing else that lasts.
///
/// # Errors
/// The error of the last attempt.
pub(crate) async fn repeated<T, Attempt>(
    transaction: impl Fn() -> Attempt + Send,
) -> Result<T, StoreError>
where
    Attempt: Future<Output = Result<T, StoreError>> + Send,
{
    let mut failed = FailedAttempts::new(ATTEMPTS);
    loop {
        let error = match transaction().await {
            Err(error) if error.is_conflict() => error,
            ended => return ended,
        };
        if !failed.wait().await {
            return Err(error);
        }
    }
}

/// The failed attempts of one operation.
pub(super) struct FailedAttempts {
    policy: Policy,
    start: Instant,
    number: u32,
}

impl FailedAttempts {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            start: Instant::now(),
            number: 0,
        }
    }

    /// Counts a failed attempt, and waits until the next one. `false` if no attempt is left.
    pub(super) async fn wait(&mut self) -> bool {
        self.number += 1;
        let decision = self.policy.decide(FailedAttempt {
            attempt: self.number,
            retry_after: None,
            elapsed: self.start.elapsed(),
            random: random_unit(),
        });
        match decision {
            Decision::Wait(wait) => {
                tokio::time::sleep(wait).await;
                true
            }
            Decision::Stop(_) => false,
        }
    }
}
