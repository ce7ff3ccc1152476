//! What happens to a command's output while it arrives: it is kept, and shown live.

use std::sync::Arc;
use std::time::Instant;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::event::{OutputStream, ToolEvent};
use crate::overflow::OverflowConfig;
use crate::secrets::Secrets;

use super::capture::{Capture, Captured};
use super::live::LiveLimit;

/// Keeps what is printed, and shows it live.
pub(super) struct Recorder<'c> {
    capture: Capture,
    live: LiveLimit,
    call: &'c ToolCall,
    cx: &'c CallContext,
    last: OutputStream,
}

impl<'c> Recorder<'c> {
    pub(super) fn new(
        call: &'c ToolCall,
        cx: &'c CallContext,
        now: Instant,
        overflow: &OverflowConfig,
        secrets: &Arc<Secrets>,
    ) -> Self {
        Self {
            capture: Capture::new(overflow, secrets),
            live: LiveLimit::new(now),
            call,
            cx,
            last: OutputStream::Stdout,
        }
    }

    /// Takes what a stream printed.
    pub(super) fn record(&mut self, stream: OutputStream, bytes: &[u8]) {
        let text = self.capture.push(stream, bytes);
        self.last = stream;
        self.show_live(stream, &text);
    }

    fn show_live(&mut self, stream: OutputStream, text: &str) {
        if let Some(text) = self.live.admit(Instant::now(), text) {
            self.show(stream, text.into_owned());
        }
    }

    /// What was kept.
    pub(super) fn finish(mut self) -> Captured {
        for (stream, rest) in self.capture.end() {
            self.show_live(stream, &rest);
        }
        if let Some(text) = self.live.finish() {
            self.show(self.last, text);
        }
        let captured = self.capture.finish();
        self.cx.trace().secrets.extend(captured.secrets);
        captured
    }

    fn show(&self, stream: OutputStream, text: String) {
        self.cx.emit(ToolEvent::Output {
            call_id: self.call.id.clone(),
            stream,
            text,
        });
    }
}
