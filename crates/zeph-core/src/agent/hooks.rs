//! Hooks at the events of a conversation: the port to programs of the user, and their effect on a turn.

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_tools::call_hooks::hook_blocks;

use super::Agent;
use super::outcome::{TurnEnd, TurnOutcome};
use super::turn::TurnAbort;
use crate::channel::LoopbackEvent;

/// The outcome of the hooks of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookReply {
    /// Texts for the model.
    pub context: Vec<String>,
    /// The reason why a hook refused the prompt.
    pub denied: Option<String>,
    /// Failures, for the user.
    pub warnings: Vec<String>,
}

/// Runs the hooks of a conversation. Hooks of calls are a layer of the stack.
#[async_trait]
pub trait SessionHooks: Send + Sync {
    /// Runs the hooks before the first prompt of a session in this process. Later requests for the session do nothing.
    async fn session_start(&self, session: &str, cancel: &CancellationToken) -> HookReply;

    /// Runs the hooks before a prompt is sent.
    async fn prompt(&self, session: &str, prompt: &str, cancel: &CancellationToken) -> HookReply;

    /// Runs the hooks after a turn, also if it was cancelled. `result` contains the end and the last text.
    async fn turn_end(&self, session: &str, prompt: &str, result: serde_json::Value) -> HookReply;
}

impl Agent {
    /// Moves the texts of hooks for the next prompt from the agent that this one replaces.
    #[must_use]
    pub fn with_hook_context_of(mut self, replaced: &mut Self) -> Self {
        self.hook_context = std::mem::take(&mut replaced.hook_context);
        self
    }

    /// Runs the hooks before a turn. Returns the prompt with the texts of hooks.
    ///
    /// # Errors
    /// A hook refused the prompt, or the turn was cancelled. Texts of earlier events are then sent with the next prompt.
    pub(super) async fn hooked_prompt(
        &mut self,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<String, TurnAbort> {
        let mut blocks = std::mem::take(&mut self.hook_context);
        if let Some(hooks) = self.hooks.clone() {
            let start = hooks.session_start(self.session.id(), cancel).await;
            self.report_hooks(&start);
            blocks += &hook_blocks("session_start", &self.without_secrets(start.context));
            let reply = hooks.prompt(self.session.id(), prompt, cancel).await;
            self.report_hooks(&reply);
            if cancel.is_cancelled() {
                self.hook_context = blocks;
                return Err(TurnAbort::Cancelled);
            }
            if let Some(reason) = reply.denied {
                self.hook_context = blocks;
                let [reason] = self.without_secrets([reason]);
                let message = format!("a hook refused the prompt: {reason}");
                return Err(TurnAbort::End(TurnEnd::Refused, message));
            }
            blocks += &hook_blocks("prompt", &self.without_secrets(reply.context));
        }
        Ok(format!("{prompt}{blocks}"))
    }

    /// Runs the hooks after a turn. Their texts are sent with the next prompt.
    pub(super) async fn run_turn_end_hooks(&mut self, prompt: &str, outcome: &TurnOutcome) {
        let Some(hooks) = self.hooks.clone() else {
            return;
        };
        let result = json!({ "stop_reason": outcome.end, "text": outcome.text });
        let reply = hooks.turn_end(self.session.id(), prompt, result).await;
        self.report_hooks(&reply);
        self.hook_context += &hook_blocks("turn_end", &self.without_secrets(reply.context));
    }

    fn report_hooks(&self, reply: &HookReply) {
        for warning in &reply.warnings {
            self.channel.emit(LoopbackEvent::Error(warning.clone()));
        }
    }

    /// Replaces secrets in the texts of hooks.
    fn without_secrets<T: AsMut<[String]>>(&self, mut texts: T) -> T {
        let secrets = self.session.history.secrets();
        for text in texts.as_mut() {
            *text = secrets.redact(text).text.into_owned();
        }
        texts
    }
}
