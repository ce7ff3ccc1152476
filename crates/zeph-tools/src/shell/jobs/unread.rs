//! What a job printed since it was last asked, in bounded memory.

use crate::event::OutputStream;
use crate::shell::capture::{Decoder, HeadTail, Kept, Limits};

/// What is kept between two questions, of both streams together and of each.
const LIMITS: Limits = Limits {
    head: 16 * 1024,
    tail: 16 * 1024,
};

/// Output that nobody has read yet.
#[derive(Debug)]
pub(super) struct Unread {
    decoders: [Decoder; 2],
    texts: Texts,
    empty: bool,
}

/// What was handed over.
#[derive(Debug)]
pub(super) struct Taken {
    /// Both streams in order of arrival.
    pub(super) merged: Kept,
    pub(super) stdout: Kept,
    pub(super) stderr: Kept,
}

impl Taken {
    /// Whether anything was cut.
    pub(super) fn truncated(&self) -> bool {
        let all = [&self.merged, &self.stdout, &self.stderr];
        all.iter().any(|kept| kept.omitted_bytes > 0)
    }
}

#[derive(Debug)]
struct Texts {
    merged: HeadTail,
    streams: [HeadTail; 2],
}

impl Default for Texts {
    fn default() -> Self {
        Self {
            merged: HeadTail::new(LIMITS),
            streams: [HeadTail::new(LIMITS), HeadTail::new(LIMITS)],
        }
    }
}

impl Default for Unread {
    fn default() -> Self {
        Self {
            decoders: Default::default(),
            texts: Texts::default(),
            empty: true,
        }
    }
}

impl Unread {
    /// Whether there is nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Adds what a stream printed.
    pub(super) fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        let at = match stream {
            OutputStream::Stdout => 0,
            OutputStream::Stderr => 1,
        };
        let text = self.decoders[at].decode(bytes);
        self.empty &= text.is_empty();
        self.texts.merged.push(&text);
        self.texts.streams[at].push(&text);
    }

    /// No more will come: a character that was begun is incomplete for good.
    pub(super) fn finish(&mut self) {
        for at in [0, 1] {
            let rest = self.decoders[at].finish();
            self.empty &= rest.is_empty();
            self.texts.merged.push(rest);
            self.texts.streams[at].push(rest);
        }
    }

    /// Hands over what there is. A character of which only the beginning has come stays.
    pub(super) fn take(&mut self) -> Taken {
        self.empty = true;
        let Texts {
            merged,
            streams: [stdout, stderr],
        } = std::mem::take(&mut self.texts);
        Taken {
            merged: merged.finish(),
            stdout: stdout.finish(),
            stderr: stderr.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-40.
    #[test]
    fn each_part_is_handed_over_once_and_characters_stay_whole() {
        let mut unread = Unread::default();
        assert!(unread.is_empty());
        unread.push(OutputStream::Stdout, b"a\xC3");
        unread.push(OutputStream::Stderr, b"warn\n");
        let first = unread.take();
        assert_eq!(first.merged.text, "awarn\n");
        assert_eq!(first.stdout.text, "a");
        assert_eq!(first.stderr.text, "warn\n");
        assert!(unread.is_empty());
        unread.push(OutputStream::Stdout, b"\xA4b\xC3");
        assert_eq!(unread.take().merged.text, "äb");
        unread.finish();
        assert!(!unread.is_empty());
        assert_eq!(unread.take().stdout.text, "\u{FFFD}");
        assert!(unread.is_empty());
    }

    /// Proves SH-40: whatever is printed between two questions, head and tail of it are kept.
    #[test]
    fn what_is_not_asked_for_is_bounded_and_counted() {
        let mut unread = Unread::default();
        let piece = "0123456\n".repeat(8 * 1024);
        for _ in 0..100 {
            unread.push(OutputStream::Stdout, piece.as_bytes());
        }
        let taken = unread.take();
        assert!(taken.merged.text.len() <= LIMITS.head + LIMITS.tail + 100);
        assert!(taken.truncated());
        let kept = (LIMITS.head + LIMITS.tail) as u64;
        // Lines stay whole.
        let omitted = 100 * piece.len() as u64 - kept;
        assert!((omitted..omitted + 16).contains(&taken.merged.omitted_bytes));
        unread.push(OutputStream::Stdout, b"new\n");
        assert_eq!(unread.take().merged.text, "new\n");
    }
}
