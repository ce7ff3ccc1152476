//! Pipeline for the output of a running command: it is captured, filtered and shown live.

use std::time::Instant;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::event::{OutputStream, ToolEvent};
use crate::filter::{FilterStream, FilteredOutput};
use zeph_exec::StdStream;

use super::capture::{Capture, Captured};
use super::live_throttle::{OutputThrottle, Shown};

/// Captures output, filters it, and shows it live.
pub(super) struct Recorder<'c> {
    capture: Capture,
    filter: FilterStream,
    live: OutputThrottle,
    call: &'c ToolCall,
    cx: &'c CallContext,
    last: OutputStream,
    /// Whether the user sees the output by other means.
    is_shown: bool,
}

impl From<StdStream> for OutputStream {
    fn from(stream: StdStream) -> Self {
        match stream {
            StdStream::Stdout => Self::Stdout,
            StdStream::Stderr => Self::Stderr,
        }
    }
}

impl<'c> Recorder<'c> {
    pub(super) fn new(
        call: &'c ToolCall,
        cx: &'c CallContext,
        capture: Capture,
        filter: FilterStream,
    ) -> Self {
        Self {
            capture,
            filter,
            live: OutputThrottle::new(Instant::now()),
            call,
            cx,
            last: OutputStream::Stdout,
            is_shown: false,
        }
    }

    /// Shows no output live, because the user sees it by other means.
    pub(super) fn end_live_output(&mut self) {
        self.is_shown = true;
    }

    /// Processes the bytes of a stream.
    pub(super) fn record(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.filter.see_bytes(bytes);
        let text = self.capture.push(stream, bytes);
        self.filter.push(&text);
        self.last = stream;
        self.show_live(stream, &text);
    }

    fn show_live(&mut self, stream: OutputStream, text: &str) {
        if let Some(shown) = self.live.admit(Instant::now(), text) {
            self.show(stream, shown);
        }
    }

    /// Ends the output of a command that exited with this code. Returns the captured and the filtered output.
    pub(super) fn finish(mut self, exit_code: Option<i32>) -> (Captured, FilteredOutput) {
        for (stream, rest) in self.capture.end() {
            self.filter.push(&rest);
            self.show_live(stream, &rest);
        }
        if let Some(shown) = self.live.finish() {
            self.show(self.last, shown);
        }
        let captured = self.capture.finish();
        self.cx.trace().secrets.extend(captured.secrets);
        (captured, self.filter.finish(exit_code))
    }

    fn show(&self, stream: OutputStream, shown: Shown<'_>) {
        if self.is_shown {
            return;
        }
        self.cx.emit(ToolEvent::Output {
            call_id: self.call.id.clone(),
            stream,
            text: shown.text.into_owned(),
            skipped_lines: shown.skipped_lines,
        });
    }
}
