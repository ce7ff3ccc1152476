//! The channel of a sub-agent: its steps are output of the call that started it, and its questions go to the user of the
//! parent.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Mutex;
use zeph_tools::question::{ServerAnswer, ServerQuestion};
use zeph_tools::{Confirmation, OutputStream};

use crate::call_display::title;
use crate::channel::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};

/// The channel of one sub-agent.
pub(super) struct SubAgentChannel {
    /// The channel of the parent.
    pub(super) parent: Arc<dyn Channel>,
    /// The id of the call that started the sub-agent.
    pub(super) call: String,
    /// The name of the agent.
    pub(super) name: String,
    /// Only one question of the parent and its sub-agents is open at a time.
    pub(super) asking: Arc<Mutex<()>>,
}

impl SubAgentChannel {
    /// Shows a step.
    fn step(&self, text: &str) {
        self.parent.emit(LoopbackEvent::ToolOutput {
            id: self.call.clone(),
            stream: OutputStream::Stdout,
            text: format!("{text}\n"),
            skipped_lines: 0,
        });
    }

    fn labelled(&self, text: &str) -> String {
        format!("[sub-agent {}] {text}", self.name)
    }
}

#[async_trait]
impl Channel for SubAgentChannel {
    fn emit(&self, event: LoopbackEvent) {
        match event {
            LoopbackEvent::ToolStarted { tool, params, .. } => self.step(&title(&tool, &params)),
            LoopbackEvent::ToolFinished {
                tool,
                failure: Some(failure),
                ..
            } => self.step(&format!("{tool} failed: {}", failure.label())),
            LoopbackEvent::Retrying(retry) => self.step(&format!("retrying: {}", retry.reason)),
            LoopbackEvent::SummingUp => self.step("compacting older messages"),
            LoopbackEvent::Permission {
                tool,
                allowed,
                answer,
                ..
            } => self.parent.emit(LoopbackEvent::Permission {
                id: self.call.clone(),
                tool,
                allowed,
                answer,
            }),
            LoopbackEvent::Warning(text) => {
                self.parent
                    .emit(LoopbackEvent::Warning(self.labelled(&text)));
            }
            LoopbackEvent::Error(text) => {
                self.parent.emit(LoopbackEvent::Error(self.labelled(&text)));
            }
            LoopbackEvent::Rollback { changes, .. } => self.parent.emit(LoopbackEvent::Rollback {
                id: self.call.clone(),
                changes,
            }),
            // The result of the call contains the text; the parent reports the costs.
            _ => {}
        }
    }

    fn can_ask(&self) -> bool {
        self.parent.can_ask()
    }

    fn shows_questions(&self) -> bool {
        self.parent.shows_questions()
    }

    async fn confirm(&self, _call: &str, question: &Confirmation, params: &Value) -> UserAnswer {
        let question = Confirmation {
            reason: self.labelled(&question.reason),
            ..question.clone()
        };
        let _open = self.asking.lock().await;
        self.parent.confirm(&self.call, &question, params).await
    }

    async fn check_in(&self, _question: &CheckIn) -> CheckInAnswer {
        // A sub-agent has its own limit.
        CheckInAnswer::Stop
    }

    async fn ask_for_server(&self, question: &ServerQuestion) -> ServerAnswer {
        let _open = self.asking.lock().await;
        self.parent.ask_for_server(question).await
    }
}
