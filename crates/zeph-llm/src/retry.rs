//! When a failed request is sent again: a pure decision, and the waiting around it.
//!
//! Waits grow exponentially with full jitter ("Exponential Backoff And Jitter", AWS Architecture
//! Blog, 2015): a random time between nothing and a ceiling that doubles with every attempt.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tokio::time::Instant;

use crate::config::RetryConfig;
use crate::error::{LlmError, LlmErrorKind};
use crate::provider::{StreamEvent, StreamSink};

/// The ceiling of the first wait.
const FIRST_CEILING: Duration = Duration::from_millis(500);
/// The ceiling of every wait.
const LAST_CEILING: Duration = Duration::from_secs(20);

/// A failed attempt, as the decision sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailedAttempt {
    /// How many attempts were made, this one included.
    pub attempt: u32,
    /// Why it failed.
    pub kind: LlmErrorKind,
    /// What the server asked to wait.
    pub retry_after: Option<Duration>,
    /// Time since the first attempt began.
    pub elapsed: Duration,
    /// A random number in [0, 1).
    pub random: f64,
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Wait so long, then send again.
    Wait(Duration),
    /// Give up.
    Stop(GiveUp),
}

/// Why no further attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUp {
    /// The same request would fail again.
    NotRetryable,
    /// `max_attempts` were made.
    AttemptsUsed,
    /// `budget_secs` are over, or the wait would pass them.
    BudgetUsed,
    /// The server asks for a longer wait than what is left of the budget.
    ServerWaitTooLong {
        /// What the server asks for.
        wait: Duration,
        /// What is left of the budget.
        left: Duration,
    },
}

/// Decides what follows a failed attempt.
///
/// The budget decides whether another attempt begins; it never cuts off one under way, since a
/// slow local model may need longer than the budget for its first word.
#[must_use]
pub fn decide(config: &RetryConfig, failed: FailedAttempt) -> Decision {
    if !failed.kind.is_retryable() {
        return Decision::Stop(GiveUp::NotRetryable);
    }
    let left = Duration::from_secs(config.budget_secs).saturating_sub(failed.elapsed);
    if let Some(wait) = failed.retry_after
        && wait > left
    {
        return Decision::Stop(GiveUp::ServerWaitTooLong { wait, left });
    }
    if failed.attempt >= config.max_attempts {
        return Decision::Stop(GiveUp::AttemptsUsed);
    }
    let wait = failed.retry_after.unwrap_or_else(|| {
        let doublings = failed.attempt.saturating_sub(1).min(16);
        let ceiling = (FIRST_CEILING * 2_u32.pow(doublings)).min(LAST_CEILING);
        ceiling.mul_f64(failed.random.clamp(0.0, 1.0))
    });
    if left.is_zero() || wait > left {
        return Decision::Stop(GiveUp::BudgetUsed);
    }
    Decision::Wait(wait)
}

/// Reads a `Retry-After` header (RFC 9110, 10.2.3): seconds (fractions are taken too) or an HTTP
/// date. `None` for anything else; a date that is past gives zero, and more seconds than a
/// [`Duration`] holds the longest there is.
#[must_use]
pub fn parse_retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        if seconds.is_nan() || seconds.is_sign_negative() {
            return None;
        }
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    // "GMT" is the zone that HTTP prescribes; RFC 2822 calls it obsolete, and reads it.
    let at = rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
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

    /// Begins the budget anew: an answer had begun before its stream broke off.
    pub fn restart_budget(&mut self) {
        self.started = Instant::now();
    }

    /// Waits until the next attempt is due, after a [`StreamEvent::Notice`] that names the error,
    /// the attempt and `next`, what will be done.
    ///
    /// # Errors
    /// The error itself when no further attempt is made; its message then says why, and after a
    /// refusal with a waiting time when to try again.
    pub async fn wait(
        &mut self,
        error: LlmError,
        next: &str,
        sink: StreamSink<'_>,
    ) -> Result<(), LlmError> {
        let failed = FailedAttempt {
            attempt: self.attempt,
            kind: error.kind,
            retry_after: error.retry_after,
            elapsed: self.started.elapsed(),
            random: random_unit(),
        };
        match decide(&self.config, failed) {
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

/// "try again in 90 s, at 14:03:10", in local time.
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

/// A random number in [0, 1), from the seed that the standard library draws for its hash maps.
fn random_unit() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn failed(kind: LlmErrorKind, attempt: u32) -> FailedAttempt {
        FailedAttempt {
            attempt,
            kind,
            retry_after: None,
            elapsed: Duration::ZERO,
            random: 0.5,
        }
    }

    /// Proves LLM-5, LLM-5a.
    #[test]
    fn decisions() {
        use LlmErrorKind::{
            Auth, BadRequest, ContextOverflow, Network, NoCredit, RateLimited, Server,
        };
        let config = RetryConfig::default();
        let check = |failed: FailedAttempt, expect: Decision| {
            assert_eq!(decide(&config, failed), expect, "{failed:?}");
        };
        check(failed(Network, 1), Decision::Wait(secs(0.25)));
        check(failed(Server, 2), Decision::Wait(secs(0.5)));
        check(failed(RateLimited, 3), Decision::Wait(secs(1.0)));
        check(failed(Server, 4), Decision::Stop(GiveUp::AttemptsUsed));
        for kind in [Auth, NoCredit, BadRequest, ContextOverflow] {
            check(failed(kind, 1), Decision::Stop(GiveUp::NotRetryable));
        }
        check(
            FailedAttempt {
                random: 0.0,
                ..failed(Server, 1)
            },
            Decision::Wait(Duration::ZERO),
        );
        let late = FailedAttempt {
            elapsed: secs(60.0),
            ..failed(Server, 1)
        };
        check(late, Decision::Stop(GiveUp::BudgetUsed));
        let almost = FailedAttempt {
            elapsed: secs(59.9),
            ..failed(Server, 1)
        };
        check(almost, Decision::Stop(GiveUp::BudgetUsed));
        let told = FailedAttempt {
            retry_after: Some(secs(7.0)),
            ..failed(RateLimited, 1)
        };
        check(told, Decision::Wait(secs(7.0)));
        let too_long = FailedAttempt {
            retry_after: Some(secs(31.0)),
            elapsed: secs(30.0),
            ..failed(RateLimited, 1)
        };
        check(
            too_long,
            Decision::Stop(GiveUp::ServerWaitTooLong {
                wait: secs(31.0),
                left: secs(30.0),
            }),
        );
        let once = RetryConfig {
            max_attempts: 0,
            ..config
        };
        assert_eq!(
            decide(&once, failed(Server, 1)),
            Decision::Stop(GiveUp::AttemptsUsed)
        );
    }

    #[test]
    fn the_ceiling_doubles_up_to_its_cap() {
        let config = RetryConfig {
            max_attempts: u32::MAX,
            budget_secs: 1000,
            ..RetryConfig::default()
        };
        let ceilings: Vec<Decision> = [1, 2, 5, 6, 7, 40, u32::MAX - 1]
            .map(|attempt| {
                decide(
                    &config,
                    FailedAttempt {
                        random: 1.0,
                        ..failed(LlmErrorKind::Server, attempt)
                    },
                )
            })
            .to_vec();
        let expect = [0.5, 1.0, 8.0, 16.0, 20.0, 20.0, 20.0].map(|s| Decision::Wait(secs(s)));
        assert_eq!(ceilings, expect);
    }

    /// Proves LLM-5.
    #[test]
    fn retry_after_in_seconds_and_as_a_date() {
        let now: Timestamp = "1994-11-06T08:49:00Z".parse().unwrap();
        for (value, expect) in [
            ("0", Some(0.0)),
            (" 120 ", Some(120.0)),
            ("1.5", Some(1.5)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(37.0)),
            ("Sun, 06 Nov 1994 08:48:00 GMT", Some(0.0)),
            ("-1", None),
            ("NaN", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parse_retry_after(value, now), expect.map(secs), "{value:?}");
        }
        for endless in ["99999999999999999999", "1e300"] {
            let wait = parse_retry_after(endless, now);
            assert_eq!(wait, Some(Duration::MAX), "{endless:?}");
        }
    }

    #[test]
    fn random_numbers_fit_and_differ() {
        let drawn: Vec<f64> = (0..100).map(|_| random_unit()).collect();
        assert!(drawn.iter().all(|unit| (0.0..1.0).contains(unit)));
        assert!(drawn.iter().any(|unit| *unit != drawn[0]));
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
