//! When a call that failed is made again: a pure decision; the waiting is the layer's
//! ([`crate::layers::retry`]).
//!
//! Waits grow exponentially with full jitter ("Exponential Backoff And Jitter", AWS Architecture
//! Blog, 2015): a random time between nothing and a ceiling that doubles with every retry. A
//! server that says how long to wait is waited for at least so long.

mod after;
pub mod config;

use std::time::Duration;

use crate::category::ToolErrorCategory;

pub use after::parse_retry_after;
pub use config::ToolRetryConfig;

/// A failed execution, as the decision sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailedAttempt {
    /// How many executions there were, this one included.
    pub attempt: u32,
    /// What it failed with.
    pub category: ToolErrorCategory,
    /// What the other side asks to wait.
    pub retry_after: Option<Duration>,
    /// The time since the first execution began.
    pub elapsed: Duration,
    /// A random number in [0, 1).
    pub random: f64,
}

/// What to do after a failed execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Wait so long, then make the call again.
    Wait(Duration),
    /// Give up.
    Stop(GiveUp),
}

/// Why a call is not made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUp {
    /// It would fail again.
    NotRetryable,
    /// It was made as often as it may be.
    AttemptsUsed,
    /// The budget is used up, or the wait would pass it.
    BudgetUsed,
    /// The other side asks for a longer wait than what is left of the budget.
    AskedToWait(Duration),
}

/// Decides what follows a failed execution.
///
/// The budget decides whether another execution begins; it never cuts off one that is under way.
#[must_use]
pub fn decide(config: &ToolRetryConfig, failed: FailedAttempt) -> Decision {
    if config.max_attempts == 0 || !failed.category.traits().retryable {
        return Decision::Stop(GiveUp::NotRetryable);
    }
    let left = Duration::from_secs(config.budget_secs).saturating_sub(failed.elapsed);
    if let Some(wait) = failed.retry_after
        && wait > left
    {
        return Decision::Stop(GiveUp::AskedToWait(wait));
    }
    if failed.attempt > config.max_attempts {
        return Decision::Stop(GiveUp::AttemptsUsed);
    }
    // More doublings than bits would overflow.
    let doublings = failed.attempt.saturating_sub(1).min(32);
    let ceiling = config.base_ms.saturating_mul(1 << doublings);
    let ceiling = Duration::from_millis(ceiling.min(config.max_ms));
    let jittered = Duration::try_from_secs_f64(ceiling.as_secs_f64() * failed.random);
    let backoff = jittered.unwrap_or(ceiling).min(ceiling);
    let wait = backoff.max(failed.retry_after.unwrap_or_default());
    if left.is_zero() || wait > left {
        return Decision::Stop(GiveUp::BudgetUsed);
    }
    Decision::Wait(wait)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ToolErrorCategory as Category;

    const FAILED: FailedAttempt = FailedAttempt {
        attempt: 1,
        category: Category::ServerError,
        retry_after: None,
        elapsed: Duration::ZERO,
        random: 0.5,
    };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Proves ERR-20.
    #[test]
    fn the_defaults_are_those_of_the_requirements() {
        let ToolRetryConfig {
            max_attempts,
            base_ms,
            max_ms,
            budget_secs,
            parameter_reformat_provider,
        } = ToolRetryConfig::default();
        assert_eq!(
            (max_attempts, base_ms, max_ms, budget_secs),
            (2, 500, 5000, 30)
        );
        assert_eq!(parameter_reformat_provider, "");
    }

    /// Proves ERR-20, and ERR-22 for what is never retried.
    #[test]
    fn four_categories_are_retried() {
        for category in Category::ALL {
            let retried = matches!(
                category,
                Category::RateLimited
                    | Category::ServerError
                    | Category::NetworkError
                    | Category::Timeout
            );
            let decision = decide(
                &ToolRetryConfig::default(),
                FailedAttempt { category, ..FAILED },
            );
            let expect = if retried {
                Decision::Wait(ms(250))
            } else {
                Decision::Stop(GiveUp::NotRetryable)
            };
            assert_eq!(decision, expect, "{category:?}");
        }
    }

    /// Proves ERR-20.
    #[test]
    fn waits_double_up_to_their_ceiling_and_attempts_end() {
        let config = ToolRetryConfig {
            max_attempts: 6,
            ..ToolRetryConfig::default()
        };
        let check = |attempt, random, expect| {
            let failed = FailedAttempt {
                attempt,
                random,
                ..FAILED
            };
            assert_eq!(decide(&config, failed), expect, "{attempt} {random}");
        };
        check(1, 0.0, Decision::Wait(ms(0)));
        check(1, 1.0, Decision::Wait(ms(500)));
        check(2, 1.0, Decision::Wait(ms(1000)));
        check(3, 1.0, Decision::Wait(ms(2000)));
        check(4, 1.0, Decision::Wait(ms(4000)));
        check(5, 1.0, Decision::Wait(ms(5000)));
        check(6, 0.5, Decision::Wait(ms(2500)));
        check(7, 0.5, Decision::Stop(GiveUp::AttemptsUsed));
        check(u32::MAX, 0.5, Decision::Stop(GiveUp::AttemptsUsed));
    }

    /// Proves ERR-20: the wait that a server asks for is obeyed within the budget, and not beyond.
    #[test]
    fn what_a_server_asks_for_is_obeyed_within_the_budget() {
        let config = ToolRetryConfig::default();
        let check = |asked, elapsed, expect| {
            let failed = FailedAttempt {
                retry_after: Some(Duration::from_secs(asked)),
                elapsed: Duration::from_secs(elapsed),
                ..FAILED
            };
            assert_eq!(decide(&config, failed), expect, "{asked} {elapsed}");
        };
        let too_long = |wait| {
            let wait = Duration::from_secs(wait);
            Decision::Stop(GiveUp::AskedToWait(wait))
        };
        // No time at all is no reason to hurry.
        check(0, 0, Decision::Wait(ms(250)));
        check(1, 0, Decision::Wait(ms(1000)));
        check(20, 0, Decision::Wait(ms(20_000)));
        check(30, 0, Decision::Wait(ms(30_000)));
        check(31, 0, too_long(31));
        check(20, 11, too_long(20));
        check(1, 40, too_long(1));
        check(u64::MAX, 0, too_long(u64::MAX));
        // It says when, also where no attempt is left.
        let last = FailedAttempt {
            attempt: 3,
            retry_after: Some(Duration::from_secs(90)),
            ..FAILED
        };
        assert_eq!(decide(&config, last), too_long(90));
    }

    /// Proves ERR-20.
    #[test]
    fn nothing_begins_after_the_budget() {
        let check = |budget_secs, elapsed, expect| {
            let config = ToolRetryConfig {
                budget_secs,
                ..ToolRetryConfig::default()
            };
            let failed = FailedAttempt {
                elapsed: ms(elapsed),
                ..FAILED
            };
            assert_eq!(decide(&config, failed), expect, "{budget_secs} {elapsed}");
        };
        check(30, 29_750, Decision::Wait(ms(250)));
        check(30, 29_751, Decision::Stop(GiveUp::BudgetUsed));
        check(30, 60_000, Decision::Stop(GiveUp::BudgetUsed));
        check(0, 0, Decision::Stop(GiveUp::BudgetUsed));
    }

    #[test]
    fn no_attempts_means_never() {
        let config = ToolRetryConfig {
            max_attempts: 0,
            ..ToolRetryConfig::default()
        };
        assert_eq!(
            decide(&config, FAILED),
            Decision::Stop(GiveUp::NotRetryable)
        );
    }

    proptest! {
        #[test]
        fn a_wait_keeps_its_bounds(
            max_attempts in any::<u32>(), base_ms in any::<u64>(), max_ms in any::<u64>(),
            budget_secs in any::<u64>(), attempt in any::<u32>(), asked in any::<Option<u64>>(),
            elapsed in any::<u64>(), random in any::<f64>(),
        ) {
            let config = ToolRetryConfig {
                max_attempts, base_ms, max_ms, budget_secs, ..ToolRetryConfig::default()
            };
            let retry_after = asked.map(Duration::from_secs);
            let elapsed = ms(elapsed);
            let failed = FailedAttempt { attempt, retry_after, elapsed, random, ..FAILED };
            if let Decision::Wait(wait) = decide(&config, failed) {
                prop_assert!(attempt <= max_attempts);
                prop_assert!(wait >= retry_after.unwrap_or_default());
                prop_assert!(wait <= ms(max_ms).max(retry_after.unwrap_or_default()));
                prop_assert!(wait <= Duration::from_secs(budget_secs).saturating_sub(elapsed));
            }
        }
    }
}
