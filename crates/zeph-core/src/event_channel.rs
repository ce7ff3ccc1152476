//! A channel for programs without a user who can be asked.

use async_trait::async_trait;
use serde_json::Value;
use zeph_tools::Confirmation;
use zeph_tools::question::{ServerAnswer, ServerQuestion};

use crate::channel::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};

/// A channel that passes events to a function, and declines every question.
pub struct EventChannel<F> {
    show: F,
}

impl<F: Fn(LoopbackEvent) + Send + Sync> EventChannel<F> {
    /// Creates a channel that calls `show` with each event, in order. The function must not block.
    pub fn new(show: F) -> Self {
        Self { show }
    }
}

#[async_trait]
impl<F: Fn(LoopbackEvent) + Send + Sync> Channel for EventChannel<F> {
    fn emit(&self, event: LoopbackEvent) {
        (self.show)(event);
    }

    fn can_ask(&self) -> bool {
        false
    }

    async fn confirm(&self, _call: &str, _question: &Confirmation, _: &Value) -> UserAnswer {
        UserAnswer::No(None)
    }

    async fn check_in(&self, _question: &CheckIn) -> CheckInAnswer {
        CheckInAnswer::Stop
    }

    async fn ask_for_server(&self, _question: &ServerQuestion) -> ServerAnswer {
        ServerAnswer::Decline
    }
}
