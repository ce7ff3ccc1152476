//! How much of a running command's output is shown live.

use std::borrow::Cow;
use std::time::{Duration, Instant};

/// The length of a window.
const WINDOW: Duration = Duration::from_millis(100);
/// Bytes shown per window. More than anyone can read, and little enough that a consumer which
/// queues what it is sent stays small however fast a command prints.
const PER_WINDOW: usize = 32 * 1024;

/// Lets output through at a bounded rate and counts what it holds back.
#[derive(Debug)]
pub struct LiveLimit {
    window: Instant,
    shown: usize,
    skipped: u64,
}

impl LiveLimit {
    /// A limit whose first window starts at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            window: now,
            shown: 0,
            skipped: 0,
        }
    }

    /// What of `text`, printed at `now`, is shown: all of it, preceded by a word on what was
    /// skipped before it, or nothing.
    pub fn admit<'t>(&mut self, now: Instant, text: &'t str) -> Option<Cow<'t, str>> {
        if text.is_empty() {
            return None;
        }
        if now.duration_since(self.window) >= WINDOW {
            self.window = now;
            self.shown = 0;
        }
        if self.shown >= PER_WINDOW {
            self.skipped += text.len() as u64;
            return None;
        }
        self.shown += text.len();
        Some(match self.finish() {
            Some(skipped) => Cow::Owned(skipped + text),
            None => Cow::Borrowed(text),
        })
    }

    /// A word on what was skipped and not yet spoken of.
    pub fn finish(&mut self) -> Option<String> {
        let skipped = std::mem::take(&mut self.skipped);
        (skipped > 0).then(|| format!("\n[… {skipped} bytes not shown live …]\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-4.
    #[test]
    fn a_flood_is_shown_at_a_bounded_rate_and_says_so() {
        let start = Instant::now();
        let mut limit = LiveLimit::new(start);
        let chunk = "x".repeat(PER_WINDOW);
        assert_eq!(limit.admit(start, &chunk).as_deref(), Some(chunk.as_str()));
        assert_eq!(limit.admit(start, &chunk), None);
        assert_eq!(limit.admit(start, "abc"), None);
        let later = start + WINDOW;
        assert_eq!(
            limit.admit(later, "next").as_deref(),
            Some("\n[… 32771 bytes not shown live …]\nnext")
        );
        assert_eq!(limit.finish(), None);
        assert_eq!(limit.admit(later, ""), None);
    }
}
