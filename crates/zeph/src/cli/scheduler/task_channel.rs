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
        let labelled = |text: String| format!("scheduled task {}: {text}", self.task);
        match event {
            LoopbackEvent::Warning(text) => {
                self.told_to.emit(LoopbackEvent::Warning(labelled(text)));
            }
            LoopbackEvent::Error(text) => self.told_to.emit(LoopbackEvent::Error(labelled(text))),
            _ => {}
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use zeph_core::EventChannel;

    use super::*;

    /// Proves NAT-3: a problem of a task keeps its severity, and names the task; other events are not shown.
    #[test]
    fn problem_keeps_its_severity() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let events = Arc::clone(&seen);
        let user: Arc<dyn Channel> = Arc::new(EventChannel::new(move |event| {
            events.lock().unwrap().push(event);
        }));
        let channel = TaskChannel::new(&user, 5);
        channel.emit(LoopbackEvent::Warning("slow".to_owned()));
        channel.emit(LoopbackEvent::Error("failed".to_owned()));
        channel.emit(LoopbackEvent::Notice("begins".to_owned()));
        let seen = seen.lock().unwrap();
        let [LoopbackEvent::Warning(warning), LoopbackEvent::Error(error)] = seen.as_slice() else {
            panic!("{seen:?}");
        };
        assert_eq!(warning, "scheduled task 5: slow");
        assert_eq!(error, "scheduled task 5: failed");
    }
}
