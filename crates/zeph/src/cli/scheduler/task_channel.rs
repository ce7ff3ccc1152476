//! The channel of a scheduled task that runs during a conversation: the user of the conversation sees its problems.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use zeph_core::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};
use zeph_tools::Confirmation;
use zeph_tools::question::{ServerAnswer, ServerQuestion};

/// Shows warnings and errors of the task in the conversation, and answers every question with no.
pub(super) struct TaskChannel {
    told_to: Arc<dyn Channel>,
    task: i64,
}

impl TaskChannel {
    /// A channel for this task, with problems shown by `told_to`.
    pub(super) fn new(told_to: &Arc<dyn Channel>, task: i64) -> Self {
        Self {
            told_to: Arc::clone(told_to),
            task,
        }
    }
}

#[async_trait]
impl Channel for TaskChannel {
    fn emit(&self, event: LoopbackEvent) {
        if let LoopbackEvent::Warning(text) | LoopbackEvent::Error(text) = event {
            let text = format!("scheduled task {}: {text}", self.task);
            self.told_to.emit(LoopbackEvent::Notice(text));
        }
    }

    fn can_ask(&self) -> bool {
        false
    }

    async fn confirm(&self, _: &str, _: &Confirmation, _: &Value) -> UserAnswer {
        UserAnswer::No(None)
    }

    async fn check_in(&self, _: &CheckIn) -> CheckInAnswer {
        CheckInAnswer::Stop
    }

    async fn ask_for_server(&self, _: &ServerQuestion) -> ServerAnswer {
        ServerAnswer::Decline
    }
}
