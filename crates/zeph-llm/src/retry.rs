//! Retries of failed requests, with their waits and messages. `zeph-backoff` computes the waits.

use std::time::Duration;

use tokio::time::Instant;
use zeph_backoff::{Decision, FailedAttempt, GiveUp, Policy, random_unit};

use crate::config::RetryConfig;
use crate::error::{LlmError, LlmErrorKind};
use crate::provider::{StreamEvent, StreamSink};

/// The ceiling of the first wait.
const FIRST_CEILING: Duration = Duration::from_millis(500);
/// The ceiling of every wait.
const LAST_CEILING: Duration = Duration::from_secs(20);

/// Decides whether a request that failed with `kind` is sent again.
///
/// The budget decides whether another attempt begins. It never cuts off a running attempt, because a slow local model
/// may need longer than the budget for its first word.
fn decide(config: &RetryConfig, kind: LlmErrorKind, failed: FailedAttempt) -> Decision {
    if !kind.is_retryable() {
        return Decision::Stop(GiveUp::NotRetryable);
    }
    let policy = Policy {
        max_attempts: config.max_attempts,
        first_ceiling: FIRST_CEILING,
        last_ceiling: LAST_CEILING,
        budget: Duration::from_secs(config.budget_secs),
    };
    policy.decide(failed)
}

/// The attempts of one request.
#[derive(Debug)]
pub struct Retries {
    config: RetryConfig,
    attempt: u32,
    started: Instant,
}

impl Retries {
    /// Begins the first attempt.
    #[must_use]
    pub fn begin(config: RetryConfig) -> Self {
        Self {
            config,
            attempt: 1,
            started: Instant::now(),
        }
    }

    /// Restarts the budget. The caller does so if a response had begun before its stream broke off.
    pub fn restart_budget(&mut self) {
        self.started = Instant::now();
    }

    /// Waits until the next attempt is due. Before the wait, a [`StreamEvent::Notice`] names the error, the attempt and
    /// the `next` action.
    ///
    /// # Errors
    /// The error itself if no further attempt is made. Its message then states the reason, and the time of the next
    /// try if the server asked for a longer wait than the budget.
    pub async fn wait(
        &mut self,
        error: LlmError,
        next: &str,
        sink: StreamSink<'_>,
    ) -> Result<(), LlmError> {
        let failed = FailedAttempt {
            attempt: self.attempt,
            retry_after: error.retry_after,
            elapsed: self.started.elapsed(),
            // A wait that the server asks for is exact.
            random: match error.retry_after {
                Some(_) => 0.0,
                None => random_unit(),
            },
        };
        match decide(&self.config, error.kind, failed) {
            Decision::Wait(wait) => {
                self.attempt += 1;
                tracing::debug!(provider = %error.provider, kind = ?error.kind, attempt = self.attempt, ?wait, "request is sent again");
                sink(StreamEvent::Notice(format!(
                    "{error} ({next}: attempt {} of {} in {:.1} s)",
                    self.attempt,
                    self.config.max_attempts,
                    wait.as_secs_f64(),
                )));
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Decision::Stop(reason) => Err(self.given_up(error, reason)),
        }
    }

    fn given_up(&self, mut error: LlmError, reason: GiveUp) -> LlmError {
        let tried = format!(
            "{} in {:.0} s",
            if self.attempt == 1 {
                "1 attempt".to_owned()
            } else {
                format!("{} attempts", self.attempt)
            },
            self.started.elapsed().as_secs_f64(),
        );
        let budget = self.config.budget_secs;
        match reason {
            GiveUp::NotRetryable => {}
            GiveUp::AttemptsUsed => error.message.push_str(&format!(" (gave up after {tried})")),
            GiveUp::BudgetUsed => error.message.push_str(&format!(
                " (gave up after {tried}: the {budget} s of `[llm.retry] budget_secs` are used up)"
            )),
            GiveUp::ServerWaitTooLong { wait, left } => error.message.push_str(&format!(
                " The server asks to wait {} s, but {} s are left of `[llm.retry] budget_secs` = {budget}: {}.",
                wait.as_secs_f64().ceil(),
                left.as_secs(),
                try_again(wait),
            )),
        }
        error
    }
}

/// Formats the time of the next try: "try again in 90 s, at 2015-10-21 14:03:10", in local time.
fn try_again(wait: Duration) -> String {
    let seconds = wait.as_secs_f64().ceil();
    let at = jiff::SignedDuration::try_from(wait)
        .ok()
        .and_then(|wait| jiff::Zoned::now().checked_add(wait).ok());
    match at {
        Some(at) => format!(
            "try again in {seconds} s, at {}",
            at.strftime("%Y-%m-%d %H:%M:%S")
        ),
        None => format!("try again in {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Proves LLM-5, LLM-5a.
    #[test]
    fn decisions() {
        use LlmErrorKind::{
            Auth, BadRequest, ContextOverflow, Network, NoCredit, RateLimited, Server,
        };
        let config = RetryConfig {
            max_attempts: 9,
            ..RetryConfig::default()
        };
        let check = |kind, attempt, expect| {
            let failed = FailedAttempt {
                attempt,
                retry_after: None,
                elapsed: Duration::ZERO,
                random: 0.5,
            };
            let decision = decide(&config, kind, failed);
            assert_eq!(decision, expect, "{kind:?} {attempt}");
        };
        check(Network, 1, Decision::Wait(secs(0.25)));
        check(Server, 2, Decision::Wait(secs(0.5)));
        check(RateLimited, 3, Decision::Wait(secs(1.0)));
        check(Server, 8, Decision::Wait(secs(10.0)));
        check(Server, 9, Decision::Stop(GiveUp::AttemptsUsed));
        for kind in [Auth, NoCredit, BadRequest, ContextOverflow] {
            check(kind, 1, Decision::Stop(GiveUp::NotRetryable));
        }
    }

    fn limited(wait: f64) -> LlmError {
        LlmError {
            retry_after: Some(secs(wait)),
            status: Some(429),
            ..LlmError::new(LlmErrorKind::RateLimited, "p", "too many requests.")
        }
    }

    /// Proves LLM-5, LLM-5a.
    #[tokio::test(start_paused = true)]
    async fn waits_as_told_with_a_notice_and_gives_up_in_time() {
        let mut notices = Vec::new();
        let mut sink = |event: StreamEvent| notices.push(event);
        let mut retries = Retries::begin(RetryConfig::default());
        let began = Instant::now();
        retries
            .wait(limited(20.0), "sent again", &mut sink)
            .await
            .unwrap();
        assert_eq!(began.elapsed().as_secs(), 20);
        retries
            .wait(limited(30.0), "sent again", &mut sink)
            .await
            .unwrap();
        assert_eq!(began.elapsed().as_secs(), 50);
        let error = retries
            .wait(limited(90.0), "sent again", &mut sink)
            .await
            .unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 50, "it fails at once");
        assert!(
            error
                .message
                .contains("asks to wait 90 s, but 10 s are left"),
            "{error}"
        );
        assert!(error.message.contains("try again in 90 s, at "), "{error}");
        retries.restart_budget();
        retries
            .wait(limited(0.0), "sent again", &mut sink)
            .await
            .unwrap();
        let error = retries
            .wait(limited(0.0), "sent again", &mut sink)
            .await
            .unwrap_err();
        assert!(
            error.message.ends_with("(gave up after 4 attempts in 0 s)"),
            "{error}"
        );
        assert_eq!(
            notices[0],
            StreamEvent::Notice(
                "p: too many requests. (sent again: attempt 2 of 4 in 20.0 s)".to_owned()
            )
        );
        assert_eq!(notices.len(), 3);
    }
}
