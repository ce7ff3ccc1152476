//! The text and the reasoning of a response while they stream: sent to the channel without known secrets.

use std::sync::Arc;

use zeph_llm::StreamEvent;
use zeph_tools::secrets::{KnownStream, SecurityPatterns};

use crate::channel::{Channel, LoopbackEvent};

/// Sends the stream of one response to the channel, and collects the text that was shown.
pub(super) struct ResponseRelay<'c> {
    channel: &'c dyn Channel,
    text: KnownStream,
    reasoning: KnownStream,
    shown: String,
    has_reasoning: bool,
}

impl<'c> ResponseRelay<'c> {
    /// Sends to `channel` without the known values of `secrets`.
    pub(super) fn new(channel: &'c dyn Channel, secrets: &Arc<SecurityPatterns>) -> Self {
        Self {
            channel,
            text: KnownStream::new(Arc::clone(secrets)),
            reasoning: KnownStream::new(Arc::clone(secrets)),
            shown: String::new(),
            has_reasoning: false,
        }
    }

    /// Sends one event of the stream.
    pub(super) fn push(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::TextDelta(text) => {
                let rest = self.reasoning.finish();
                self.show_reasoning(rest);
                let ready = self.text.push(&text);
                self.show_text(ready);
            }
            StreamEvent::ReasoningDelta(text) => {
                self.has_reasoning = true;
                let rest = self.text.finish();
                self.show_text(rest);
                let ready = self.reasoning.push(&text);
                self.show_reasoning(ready);
            }
            StreamEvent::Notice(text) => self.channel.emit(LoopbackEvent::Notice(text)),
            StreamEvent::Retry(retry) => self.channel.emit(LoopbackEvent::Retrying(retry)),
            StreamEvent::ToolUseStarted { .. } | StreamEvent::ToolInputDelta(_) => {}
        }
    }

    /// Whether the model streamed reasoning.
    pub(super) fn has_reasoning(&self) -> bool {
        self.has_reasoning
    }

    /// Sends the rest at the end of the response, and returns the text that was shown.
    pub(super) fn finish(mut self) -> String {
        let rest = self.reasoning.finish();
        self.show_reasoning(rest);
        let rest = self.text.finish();
        self.show_text(rest);
        self.shown
    }

    fn show_text(&mut self, text: String) {
        if !text.is_empty() {
            self.shown.push_str(&text);
            self.channel.emit(LoopbackEvent::Text(text));
        }
    }

    fn show_reasoning(&self, text: String) {
        if !text.is_empty() {
            self.channel.emit(LoopbackEvent::Reasoning(text));
        }
    }
}
