//! The decision whether a failed call is repeated. It has no side effects: [`crate::layers::retry`] waits, and
//! `zeph-backoff` computes the waits.

pub mod config;

use std::time::Duration;

use zeph_backoff::{Decision, FailedAttempt, GiveUp, Policy};

use crate::category::ToolErrorCategory;

pub use config::ToolRetryConfig;

/// Decides whether a call that failed with `category` is repeated.
#[must_use]
pub fn decide(
    config: &ToolRetryConfig,
    category: ToolErrorCategory,
    failed: FailedAttempt,
) -> Decision {
    if config.max_attempts == 0 || !category.traits().retryable {
        return Decision::Stop(GiveUp::NotRetryable);
    }
    let policy = Policy {
        max_attempts: config.max_attempts.saturating_add(1),
        first_ceiling: Duration::from_millis(config.base_ms),
        last_ceiling: Duration::from_millis(config.max_ms),
        budget: Duration::from_secs(config.budget_secs),
    };
    policy.decide(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ToolErrorCategory as Category;

    const FAILED: FailedAttempt = FailedAttempt {
        attempt: 1,
        retry_after: None,
        elapsed: Duration::ZERO,
        random: 0.5,
    };

    /// Proves ERR-20.
    #[test]
    fn retry_defaults_match_the_requirements() {
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

    /// Proves ERR-20, and ERR-22 for the categories that are never retried.
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
            let decision = decide(&ToolRetryConfig::default(), category, FAILED);
            let expect = if retried {
                Decision::Wait(Duration::from_millis(250))
            } else {
                Decision::Stop(GiveUp::NotRetryable)
            };
            assert_eq!(decision, expect, "{category:?}");
        }
    }

    /// Proves ERR-20: `max_attempts` counts only the retries.
    #[test]
    fn number_of_retries_is_configurable() {
        let check = |max_attempts, attempt, expect| {
            let config = ToolRetryConfig {
                max_attempts,
                ..ToolRetryConfig::default()
            };
            let failed = FailedAttempt { attempt, ..FAILED };
            assert_eq!(decide(&config, Category::ServerError, failed), expect);
        };
        check(0, 1, Decision::Stop(GiveUp::NotRetryable));
        check(2, 2, Decision::Wait(Duration::from_millis(500)));
        check(2, 3, Decision::Stop(GiveUp::AttemptsUsed));
    }
}
