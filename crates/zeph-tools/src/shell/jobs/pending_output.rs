//! What a job printed since it was last asked: head and tail in memory, and all of it spilled when it
//! is long, up to the overflow store's limit.

use std::sync::Arc;

use crate::event::OutputStream;
use crate::overflow::OverflowConfig;
use crate::secrets::SecurityPatterns;
use crate::shell::capture::{Capture, Captured};

/// Output that nobody has read yet.
#[derive(Debug)]
pub(super) struct PendingOutput {
    config: OverflowConfig,
    secrets: Arc<SecurityPatterns>,
    capture: Capture,
    empty: bool,
}

impl PendingOutput {
    /// Nothing yet.
    pub(super) fn new(config: OverflowConfig, secrets: Arc<SecurityPatterns>) -> Self {
        Self {
            capture: Capture::new(&config, &secrets).frugal(),
            config,
            secrets,
            empty: true,
        }
    }

    /// Whether there is nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Adds what a stream printed.
    pub(super) fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.empty &= self.capture.push(stream, bytes).is_empty();
    }

    /// No more will come: a character that was begun is incomplete for good.
    pub(super) fn finish(&mut self) {
        self.empty &= self.capture.end().iter().all(|(_, rest)| rest.is_empty());
    }

    /// Hands over what there is. A character of which only the beginning has come stays.
    pub(super) fn take(&mut self) -> Captured {
        self.empty = true;
        let next = Capture::new(&self.config, &self.secrets).frugal();
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
    fn each_part_is_handed_over_once_and_characters_stay_whole() {
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

    /// Proves SH-40: whatever is printed between two questions, head and tail of it are read, and
    /// the whole is spilled up to the limit.
    #[test]
    fn what_is_not_asked_for_is_spilled_up_to_the_limit() {
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
