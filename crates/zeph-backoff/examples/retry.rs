//! The waits between the attempts of a request.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use zeph_backoff::{Decision, FailedAttempt, Policy};

fn main() {
    let policy = Policy {
        max_attempts: 4,
        first_ceiling: Duration::from_millis(500),
        last_ceiling: Duration::from_secs(5),
        budget: Duration::from_secs(30),
    };
    for attempt in 1.. {
        // A program takes `random` from `random_unit()`.
        let failed = FailedAttempt {
            attempt,
            retry_after: None,
            elapsed: Duration::ZERO,
            random: 0.5,
        };
        match policy.decide(failed) {
            Decision::Wait(wait) => println!("wait {wait:?}"),
            Decision::Stop(reason) => return println!("stop: {reason:?}"),
        }
    }
}

// Prints:
// wait 250ms
// wait 500ms
// wait 1s
// stop: AttemptsUsed
