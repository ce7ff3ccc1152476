//! Output of a job since the last query: head and tail in memory, and the whole text spilled if it is long, up to the
//! overflow store's limit.

use std::sync::Arc;

use crate::event::OutputStream;
use crate::overflow::OverflowConfig;
use crate::secrets::SecurityPatterns;
use crate::shell::capture::{Capture, Captured};

/// Output that is not read yet.
#[derive(Debug)]
pub(super) struct PendingOutput {
    config: OverflowConfig,
    secrets: Arc<SecurityPatterns>,
    capture: Capture,
    empty: bool,
}

impl PendingOutput {
    /// Returns an empty buffer.
    pub(super) fn new(config: OverflowConfig, secrets: Arc<SecurityPatterns>) -> Self {
        Self {
            capture: Capture::new(&config, &secrets).with_low_memory(),
            config,
            secrets,
            empty: true,
        }
    }

    /// Whether the buffer is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Adds bytes of a stream.
    pub(super) fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.empty &= self.capture.push(stream, bytes).is_empty();
    }

    /// Ends the output, so that a character that has begun is incomplete.
    pub(super) fn finish(&mut self) {
        self.empty &= self.capture.end().iter().all(|(_, rest)| rest.is_empty());
    }

    /// Returns the output so far. An incomplete character stays in the buffer.
    pub(super) fn take(&mut self) -> Captured {
        self.empty = true;
        let next = Capture::new(&self.config, &self.secrets).with_low_memory();
        std::mem::replace(&mut self.capture, next).hand_over(&mut self.capture)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::overflow::spill::tests::whole;

    /// Proves SH-40.
    #[test]
    fn each_part_is_returned_once_with_whole_characters() {
        let mut unread = PendingOutput::new(OverflowConfig::default(), Arc::default());
        assert!(unread.is_empty());
        unread.push(OutputStream::Stdout, b"z\xC3");
        unread.push(OutputStream::Stderr, b"warn\n");
        let first = unread.take();
        assert_eq!(first.merged.text, "zwarn\n");
        assert_eq!(first.stdout.text, "z");
        assert_eq!(first.stderr.text, "warn\n");
        assert!(unread.is_empty());
        unread.push(OutputStream::Stdout, b"\xA4z\xC3");
        assert_eq!(unread.take().merged.text, "äz");
        unread.finish();
        assert!(!unread.is_empty());
        assert_eq!(unread.take().stdout.text, "\u{FFFD}");
        assert!(unread.is_empty());
    }

    /// Proves SH-40: the head and the tail of the output between two queries are read, and the whole is spilled up to
    /// the limit.
    #[test]
    fn unread_output_is_spilled_up_to_the_limit() {
        let config = OverflowConfig {
            threshold: 1000,
            max_overflow_bytes: 1_000_000,
            ..OverflowConfig::default()
        };
        let mut unread = PendingOutput::new(config, Arc::default());
        let piece = "0123456\n".repeat(1024);
        for _ in 0..1000 {
            unread.push(OutputStream::Stdout, piece.as_bytes());
        }
        let taken = unread.take();
        assert!(taken.truncated());
        assert!(taken.merged.text.len() <= 1000);
        let spilled = taken.merged.shortened.unwrap().spilled;
        assert_eq!(spilled.total_bytes(), 8 * 1024 * 1000);
        assert_eq!(whole(&spilled), "0123456\n".repeat(125_000));
        unread.push(OutputStream::Stdout, b"new\n");
        assert_eq!(unread.take().merged.text, "new\n");
    }
}
