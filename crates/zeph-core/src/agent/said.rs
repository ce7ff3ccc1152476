//! The words of a model as they stream: shown without known secrets, and kept as they were shown.

use std::sync::Arc;

use zeph_tools::secrets::{KnownStream, SecurityPatterns};

use crate::channel::{Channel, LoopbackEvent};

/// Shows the text and the reasoning of one response.
pub(super) struct Said<'c> {
    pub(super) channel: &'c dyn Channel,
    text: KnownStream,
    reasoning: KnownStream,
    shown: &'c mut String,
}

impl<'c> Said<'c> {
    /// Shows on `channel`, and adds the text to `shown`.
    pub(super) fn new(
        channel: &'c dyn Channel,
        secrets: &Arc<SecurityPatterns>,
        shown: &'c mut String,
    ) -> Self {
        Self {
            channel,
            text: KnownStream::new(Arc::clone(secrets)),
            reasoning: KnownStream::new(Arc::clone(secrets)),
            shown,
        }
    }

    /// More text.
    pub(super) fn text(&mut self, text: &str) {
        let rest = self.reasoning.finish();
        self.show_reasoning(rest);
        let ready = self.text.push(text);
        self.show_text(ready);
    }

    /// More reasoning.
    pub(super) fn reasoning(&mut self, text: &str) {
        let rest = self.text.finish();
        self.show_text(rest);
        let ready = self.reasoning.push(text);
        self.show_reasoning(ready);
    }

    /// Shows the rest, as the response has ended.
    pub(super) fn finish(mut self) {
        let rest = self.reasoning.finish();
        self.show_reasoning(rest);
        let rest = self.text.finish();
        self.show_text(rest);
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
