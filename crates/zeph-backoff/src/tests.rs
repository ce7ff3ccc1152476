//! Tests of decisions and random numbers.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

const POLICY: Policy = Policy {
    max_attempts: 3,
    first_ceiling: Duration::from_millis(500),
    last_ceiling: Duration::from_secs(5),
    budget: Duration::from_secs(30),
};

const FAILED: FailedAttempt = FailedAttempt {
    attempt: 1,
    retry_after: None,
    elapsed: Duration::ZERO,
    random: 0.5,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Proves ERR-20, LLM-5.
#[test]
fn waits_double_up_to_their_ceiling_and_attempts_end() {
    let policy = Policy {
        max_attempts: 7,
        ..POLICY
    };
    let check = |attempt, random, expect| {
        let failed = FailedAttempt {
            attempt,
            random,
            ..FAILED
        };
        assert_eq!(policy.decide(failed), expect, "{attempt} {random}");
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

/// Proves ERR-20, LLM-5a: the wait that a server asks for is obeyed within the budget, and not beyond.
#[test]
fn server_wait_is_obeyed_within_the_budget() {
    let check = |asked, elapsed, expect| {
        let failed = FailedAttempt {
            retry_after: Some(Duration::from_secs(asked)),
            elapsed: Duration::from_secs(elapsed),
            ..FAILED
        };
        assert_eq!(POLICY.decide(failed), expect, "{asked} {elapsed}");
    };
    let too_long = |wait, left| {
        let (wait, left) = (Duration::from_secs(wait), Duration::from_secs(left));
        Decision::Stop(GiveUp::ServerWaitTooLong { wait, left })
    };
    // A server that asks for no wait does not remove the jitter.
    check(0, 0, Decision::Wait(ms(250)));
    check(1, 0, Decision::Wait(ms(1000)));
    check(20, 0, Decision::Wait(ms(20_000)));
    check(30, 0, Decision::Wait(ms(30_000)));
    check(31, 0, too_long(31, 30));
    check(20, 11, too_long(20, 19));
    check(1, 40, too_long(1, 0));
    check(u64::MAX, 0, too_long(u64::MAX, 30));
    // The caller can report the time also if no attempt is left.
    let last = FailedAttempt {
        attempt: 3,
        retry_after: Some(Duration::from_secs(90)),
        ..FAILED
    };
    assert_eq!(POLICY.decide(last), too_long(90, 30));
}

/// Proves ERR-20, LLM-5a.
#[test]
fn nothing_begins_after_the_budget() {
    let check = |budget, elapsed, expect| {
        let policy = Policy {
            budget: Duration::from_secs(budget),
            ..POLICY
        };
        let failed = FailedAttempt {
            elapsed: ms(elapsed),
            ..FAILED
        };
        assert_eq!(policy.decide(failed), expect, "{budget} {elapsed}");
    };
    check(30, 29_750, Decision::Wait(ms(250)));
    check(30, 29_900, Decision::Wait(ms(100)));
    check(30, 30_000, Decision::Stop(GiveUp::BudgetUsed));
    check(30, 60_000, Decision::Stop(GiveUp::BudgetUsed));
    check(0, 0, Decision::Stop(GiveUp::BudgetUsed));
}

#[test]
fn random_numbers_fit_and_differ() {
    let drawn: Vec<f64> = (0..100).map(|_| random_unit()).collect();
    assert!(drawn.iter().all(|unit| (0.0..1.0).contains(unit)));
    assert!(drawn.iter().any(|unit| *unit != drawn[0]));
}

proptest! {
    #[test]
    fn wait_keeps_its_bounds(
        max_attempts in any::<u32>(), first in any::<u64>(), last in any::<u64>(), budget in any::<u64>(),
        attempt in any::<u32>(), asked in any::<Option<u64>>(), elapsed in any::<u64>(), random in any::<f64>(),
    ) {
        let policy = Policy {
            max_attempts, first_ceiling: ms(first), last_ceiling: ms(last), budget: Duration::from_secs(budget),
        };
        let retry_after = asked.map(Duration::from_secs);
        let failed = FailedAttempt { attempt, retry_after, elapsed: ms(elapsed), random };
        if let Decision::Wait(wait) = policy.decide(failed) {
            prop_assert!(attempt < max_attempts);
            prop_assert!(wait >= retry_after.unwrap_or_default());
            prop_assert!(wait <= ms(last).max(retry_after.unwrap_or_default()));
            prop_assert!(wait <= policy.budget.saturating_sub(ms(elapsed)));
        }
    }
}
