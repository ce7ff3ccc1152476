//! Retries of failed requests, with their waits and messages. `zeph-backoff` computes the waits.

use std::time::Duration;

use tokio::time::Instant;
use zeph_backoff::{Decision, FailedAttempt, GiveUp, Policy, random_unit};

use crate::config::RetryConfig;
use crate::error::{LlmError, LlmErrorKind};
use crate::provider::{Retry, StreamEvent, StreamSink};

/// The ceiling of the first wait.
const FIRST_CEILING: Duration = Duration::from_millis(500);
/// The ceiling of every wait.
const LAST_CEILING: Duration = Duration::from_secs(20);
/// How often a request is sent, without a configured number, if its responses begin and break off: each costs tokens.
const MAX_BROKEN_RESPONSES: u32 = 4;
/// The attempts after which a server that asks for no wait (`Retry-After: 0`) gets the request immediately.
const MAX_IMMEDIATE: u32 = 3;

/// Decides whether a request that failed with `kind` is sent again.
///
/// The budget decides whether another attempt begins. It never cuts off a running attempt, because a slow local model
/// may need longer than the budget for its first word.
fn decide(config: &RetryConfig, kind: LlmErrorKind, failed: FailedAttempt) -> Decision {
    if !kind.is_retryable() {
        return Decision::Stop(GiveUp::NotRetryable);
    }
    let policy = Policy {
        max_attempts: config.max_attempts.unwrap_or(u32::MAX),
        first_ceiling: FIRST_CEILING,
        last_ceiling: LAST_CEILING,
        budget: Duration::from_secs(config.budget_secs),
    };
    policy.decide(failed)
}

/// The state of the attempts of one request.
#[derive(Debug)]
pub struct Retries {
    config: RetryConfig,
    attempt: u32,
    /// The number of attempts with responses that began and broke off.
    broken: u32,
    started: Instant,
}

impl Retries {
    /// Begins the first attempt.
    #[must_use]
    pub fn begin(config: RetryConfig) -> Self {
        Self {
            config,
            attempt: 1,
            broken: 0,
            started: Instant::now(),
        }
    }

    /// Records that the response of the current attempt had begun before its stream broke off. The budget restarts.
    pub fn response_began(&mut self) {
        self.broken += 1;
        self.started = Instant::now();
    }

    /// Waits until the next attempt is due. Before the wait, a [`StreamEvent::Retry`] names the error, the attempt and
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
            random: self.random(error.retry_after),
        };
        let decision = match self.config.max_attempts {
            None if self.broken >= MAX_BROKEN_RESPONSES => Decision::Stop(GiveUp::AttemptsUsed),
            _ => decide(&self.config, error.kind, failed),
        };
        match decision {
            Decision::Wait(wait) => {
                self.attempt += 1;
                tracing::debug!(provider = %error.provider, kind = ?error.kind, attempt = self.attempt, ?wait, "request is sent again");
                sink(StreamEvent::Retry(Retry {
                    attempt: self.attempt,
                    wait,
                    reason: format!("{}{next}", sentence(&error)),
                }));
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Decision::Stop(reason) => Err(self.given_up(error, reason)),
        }
    }

    /// The random part of the next wait. A wait that the server asks for is exact; any other is at least half of its
    /// ceiling, so that waits grow.
    fn random(&self, asked: Option<Duration>) -> f64 {
        match asked {
            Some(wait) if !wait.is_zero() || self.attempt <= MAX_IMMEDIATE => 0.0,
            _ => 0.5 + random_unit() / 2.0,
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

/// The text of the error as a sentence, with a space after it.
fn sentence(error: &LlmError) -> String {
    let text = error.to_string();
    let end = if text.ends_with(['.', '!', '?', '…']) {
        " "
    } else {
        ". "
    };
    text + end
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

    const AGAIN: &str = "It is sent again.";

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Proves LLM-5, LLM-5a.
    #[test]
    fn retry_decision_follows_the_error_kind() {
        use LlmErrorKind::{
            Auth, BadRequest, ContextOverflow, Network, NoCredit, RateLimited, Server,
        };
        let config = RetryConfig {
            max_attempts: Some(9),
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
    async fn retries_wait_with_a_notice_and_stop_at_the_budget() {
        let mut notices = Vec::new();
        let mut sink = |event: StreamEvent| notices.push(event);
        let mut retries = Retries::begin(RetryConfig::default());
        let began = Instant::now();
        retries.wait(limited(20.0), AGAIN, &mut sink).await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 20);
        retries.wait(limited(30.0), AGAIN, &mut sink).await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 50);
        let error = retries
            .wait(limited(90.0), AGAIN, &mut sink)
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
        let StreamEvent::Retry(retry) = &notices[0] else {
            panic!("{notices:?}")
        };
        assert_eq!(
            retry.to_string(),
            "p: too many requests. It is sent again. (attempt 2 in 20.0 s)"
        );
        assert_eq!(notices.len(), 2);
    }

    fn failed() -> LlmError {
        LlmError::new(LlmErrorKind::Server, "p", "oops.")
    }

    /// Sends until the request fails; the waits in seconds and the error.
    async fn waits(retries: &mut Retries, error: impl Fn() -> LlmError) -> (Vec<f64>, LlmError) {
        let mut waits = Vec::new();
        loop {
            let mut sink = |event: StreamEvent| match event {
                StreamEvent::Retry(retry) => waits.push(retry.wait.as_secs_f64()),
                other => panic!("{other:?}"),
            };
            if let Err(error) = retries.wait(error(), AGAIN, &mut sink).await {
                return (waits, error);
            }
        }
    }

    /// Proves LLM-14: the waits grow until the budget is used, and the last attempt begins at its end.
    #[tokio::test(start_paused = true)]
    async fn transient_errors_use_the_budget() {
        let began = Instant::now();
        let (waits, error) = waits(&mut Retries::begin(RetryConfig::default()), failed).await;
        assert_eq!(began.elapsed().as_secs(), 60, "{waits:?}");
        assert!((7..=10).contains(&waits.len()), "{waits:?}");
        for (at, wait) in waits[..waits.len() - 1].iter().enumerate() {
            let ceiling = (0.5 * 2_f64.powi(i32::try_from(at).unwrap())).min(20.0);
            assert!((ceiling / 2.0..=ceiling).contains(wait), "{waits:?}");
        }
        let expect = format!(
            "oops. (gave up after {} attempts in 60 s: the 60 s of `[llm.retry] budget_secs` are used up)",
            waits.len() + 1
        );
        assert_eq!(error.message, expect);
    }

    /// Proves LLM-5a.
    #[tokio::test(start_paused = true)]
    async fn configured_attempts_limit_the_retries() {
        let config = RetryConfig {
            max_attempts: Some(3),
            ..RetryConfig::default()
        };
        let (waits, error) = waits(&mut Retries::begin(config), failed).await;
        assert_eq!(waits.len(), 2);
        assert!(
            error.message.contains("gave up after 3 attempts"),
            "{error}"
        );
    }

    /// Proves LLM-5a: each response that breaks off costs tokens.
    #[tokio::test(start_paused = true)]
    async fn broken_responses_are_limited() {
        let mut retries = Retries::begin(RetryConfig::default());
        for attempt in 1..=MAX_BROKEN_RESPONSES {
            retries.response_began();
            let result = retries.wait(failed(), AGAIN, &mut |_| ()).await;
            assert_eq!(result.is_ok(), attempt < MAX_BROKEN_RESPONSES);
        }
    }

    /// A server that asks for no wait is not asked without end.
    #[tokio::test(start_paused = true)]
    async fn zero_retry_after_is_limited() {
        let mut retries = Retries::begin(RetryConfig::default());
        let (waits, _) = waits(&mut retries, || limited(0.0)).await;
        assert_eq!(waits[..3], [0.0; 3]);
        assert!((5..=10).contains(&waits.len()), "{waits:?}");
    }
}
