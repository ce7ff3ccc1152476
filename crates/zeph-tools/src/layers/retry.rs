//! The `retry` layer: repeats a call after a delay if its failure may be temporary.
//!
//! It is inside every gate, so that a retry is not judged, asked about or counted again. It is outside of all
//! layers that process the output of one execution. The executor of a tool decides whether its calls may be
//! repeated: never if they may have changed something.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::future::FutureExt as _;
use zeph_backoff::{Decision, FailedAttempt, GiveUp, random_unit};

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::error::{ErrorKind, ToolError};
use crate::event::ToolEvent;
use crate::feedback::{ToolResult, brief};
use crate::retry::{ToolRetryConfig, decide};

/// The layer that repeats failed calls.
pub struct RetryLayer {
    config: ToolRetryConfig,
}

impl RetryLayer {
    /// Creates a layer that retries according to `config`.
    #[must_use]
    pub fn new(config: ToolRetryConfig) -> Self {
        Self { config }
    }

    /// Adds notes about the attempts to the final failure.
    fn given_up(&self, error: ToolError, attempt: u32, why: GiveUp) -> ToolError {
        let mut notes = Vec::new();
        if attempt > 1 {
            notes.push(format!("tried {attempt} times"));
        }
        match why {
            GiveUp::NotRetryable | GiveUp::AttemptsUsed => {}
            GiveUp::BudgetUsed => notes.push(format!(
                "the {} s of `[tools.retry] budget_secs` are used up",
                self.config.budget_secs
            )),
            GiveUp::ServerWaitTooLong { wait, .. } => notes.push(format!(
                "no retry now, because it would exceed the {} s of `[tools.retry] budget_secs`; \
                 try again in {} s",
                self.config.budget_secs,
                whole_seconds(wait),
            )),
        }
        if notes.is_empty() {
            return error;
        }
        error.noted(notes.join("; "))
    }

    fn tell(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        error: &ToolError,
        attempt: u32,
        wait: Duration,
    ) {
        cx.emit(ToolEvent::Notice {
            call_id: call.id.clone(),
            text: format!(
                "retrying {} in {:.1} s (attempt {} of {}): {}",
                call.tool,
                wait.as_secs_f64(),
                attempt + 1,
                u64::from(self.config.max_attempts) + 1,
                brief(error),
            ),
        });
    }
}

#[async_trait]
impl ToolLayer for RetryLayer {
    fn name(&self) -> &'static str {
        "retry"
    }

    fn is_gate(&self) -> bool {
        false
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        // Delays count with their nominal time, executions with their real time.
        let mut elapsed = Duration::ZERO;
        let mut attempt = 1;
        loop {
            let start = Instant::now();
            let error = match next.run(call, cx).await {
                Err(error) if error.kind() == ErrorKind::Transient => error,
                result => return result,
            };
            elapsed += start.elapsed();
            if cx.cancel.is_cancelled() || !next.is_retryable(&call.tool) {
                return Err(error);
            }
            let failed = FailedAttempt {
                attempt,
                retry_after: error.retry_after(),
                elapsed,
                random: random_unit(),
            };
            let wait = match decide(&self.config, error.category(), failed) {
                Decision::Wait(wait) => wait,
                Decision::Stop(why) => return Err(self.given_up(error, attempt, why)),
            };
            self.tell(call, cx, &error, attempt, wait);
            if cx.cancel.cancelled().timeout(wait).await.is_ok() {
                return Err(ToolError::Cancelled {
                    reason: format!(
                        "the call was cancelled before its next attempt; the last attempt failed: \
                         {}",
                        brief(&error)
                    ),
                });
            }
            elapsed += wait;
            attempt += 1;
        }
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}

/// Rounds `wait` up to whole seconds.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
}
