//! Rate limit for the live output of a running command.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::overflow::truncate::line_breaks;

/// The length of a time window.
const WINDOW: Duration = Duration::from_millis(100);
/// The number of bytes that are shown per window. It is more than the user can read, and it bounds the queue of a
/// consumer at any output rate.
const PER_WINDOW: usize = 32 * 1024;

/// Passes output at a bounded rate, and counts the skipped output.
#[derive(Debug)]
pub struct OutputThrottle {
    window: Instant,
    shown: usize,
    skipped: u64,
    skipped_lines: u64,
    /// Whether the skipped output ends in the middle of a line.
    skipped_open: bool,
}

/// Text that is shown live.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown<'t> {
    /// The text, after a note if output was skipped before it.
    pub text: Cow<'t, str>,
    /// Line breaks of the skipped output, minus those of the note.
    pub skipped_lines: u64,
}

impl OutputThrottle {
    /// Returns a throttle with a first window that starts at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            window: now,
            shown: 0,
            skipped: 0,
            skipped_lines: 0,
            skipped_open: false,
        }
    }

    /// The part of `text`, printed at `now`, that is shown: all of it, after a note about skipped output, or nothing.
    pub fn admit<'t>(&mut self, now: Instant, text: &'t str) -> Option<Shown<'t>> {
        if text.is_empty() {
            return None;
        }
        if now.duration_since(self.window) >= WINDOW {
            self.window = now;
            self.shown = 0;
        }
        if self.shown >= PER_WINDOW {
            self.skipped += text.len() as u64;
            self.skipped_lines += line_breaks(text);
            self.skipped_open = !text.ends_with('\n');
            return None;
        }
        self.shown += text.len();
        Some(match self.note() {
            Some(skipped) => Shown {
                text: Cow::Owned(skipped.text.into_owned() + text),
                ..skipped
            },
            None => Shown {
                text: Cow::Borrowed(text),
                skipped_lines: 0,
            },
        })
    }

    /// A note about skipped output that was not reported yet, at the end of the output. A last line without
    /// a line break counts.
    pub fn finish(&mut self) -> Option<Shown<'static>> {
        let open = std::mem::take(&mut self.skipped_open);
        let last_line = u64::from(open && self.skipped > 0);
        self.skipped_lines += last_line;
        self.note()
    }

    /// A note about skipped output that was not reported yet.
    fn note(&mut self) -> Option<Shown<'static>> {
        let skipped = std::mem::take(&mut self.skipped);
        let lines = std::mem::take(&mut self.skipped_lines);
        let note = format!("\n[… {skipped} bytes not shown live …]\n");
        (skipped > 0).then(|| Shown {
            skipped_lines: lines.saturating_sub(line_breaks(&note)),
            text: note.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-4.
    #[test]
    fn flood_is_shown_at_a_bounded_rate_with_a_notice() {
        let start = Instant::now();
        let mut limit = OutputThrottle::new(start);
        let chunk = "x".repeat(PER_WINDOW);
        let shown = |shown: Option<Shown<'_>>| {
            shown.map(|shown| (shown.text.into_owned(), shown.skipped_lines))
        };
        assert_eq!(shown(limit.admit(start, &chunk)), Some((chunk.clone(), 0)));
        assert_eq!(limit.admit(start, &chunk), None);
        assert_eq!(limit.admit(start, "a\nb\nc\n"), None);
        let later = start + WINDOW;
        assert_eq!(
            shown(limit.admit(later, "next")),
            Some(("\n[… 32774 bytes not shown live …]\nnext".to_owned(), 1))
        );
        assert_eq!(limit.finish(), None);
        assert_eq!(limit.admit(later, ""), None);
        // A last line without a line break counts at the end.
        assert!(limit.admit(later, &chunk).is_some());
        assert_eq!(limit.admit(later, "a\nb\nc\nd"), None);
        assert_eq!(
            shown(limit.finish()),
            Some(("\n[… 7 bytes not shown live …]\n".to_owned(), 2))
        );
    }
}
