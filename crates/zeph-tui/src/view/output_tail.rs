//! The end of the output of a running command.

use std::collections::VecDeque;

/// Lines that are stored.
const MAX_LINES: usize = 20_000;
/// Bytes of one stored line.
const MAX_LINE_BYTES: usize = 4 * 1024;
/// Bytes of all stored lines.
const MAX_BYTES: usize = 1024 * 1024;

/// The last lines of an output, and the number of all lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutputTail {
    lines: VecDeque<String>,
    /// The bytes of `lines`.
    bytes: usize,
    /// The last line has not ended.
    is_open: bool,
    total: u64,
}

impl OutputTail {
    /// Adds output. `skipped` line breaks were printed before it and are not part of it.
    pub(crate) fn push(&mut self, text: &str, skipped: u64) {
        if skipped > 0 {
            // The first of them ends the open line, which is counted.
            self.total += skipped - u64::from(self.is_open);
            self.is_open = false;
        }
        for piece in text.split_inclusive('\n') {
            if !self.is_open {
                self.lines.push_back(String::new());
                self.total += 1;
            }
            let line = piece.strip_suffix('\n').unwrap_or(piece);
            if let Some(last) = self.lines.back_mut() {
                let room = MAX_LINE_BYTES.saturating_sub(last.len());
                let added = &line[..line.floor_char_boundary(room)];
                last.push_str(added);
                self.bytes += added.len();
            }
            while self.lines.len() > MAX_LINES || (self.bytes > MAX_BYTES && self.lines.len() > 1) {
                let first = self.lines.pop_front();
                self.bytes -= first.map_or(0, |line| line.len());
            }
            self.is_open = !piece.ends_with('\n');
        }
    }

    /// The number of lines so far, with the ones that are not stored.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Drops the stored lines. Their number remains.
    pub(crate) fn forget_lines(&mut self) {
        self.lines = VecDeque::new();
        self.bytes = 0;
        self.is_open = false;
    }

    /// The number of stored lines.
    pub(crate) fn stored(&self) -> usize {
        self.lines.len()
    }

    /// The last `count` lines.
    pub(crate) fn last(&self, count: usize) -> impl Iterator<Item = &str> {
        let skipped = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(skipped).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunked_lines_are_counted_once() {
        let check = |pieces: &[(&str, u64)], total, last: &[&str]| {
            let mut tail = OutputTail::default();
            for (text, skipped) in pieces {
                tail.push(text, *skipped);
            }
            assert_eq!(tail.total(), total, "{pieces:?}");
            assert_eq!(tail.last(2).collect::<Vec<_>>(), last, "{pieces:?}");
        };
        check(&[], 0, &[]);
        check(&[("a", 0), ("b\nc", 0)], 2, &["ab", "c"]);
        check(&[("1\n2\n3\n", 0)], 3, &["2", "3"]);
        check(&[("a\n", 0), ("z\n", 7)], 9, &["a", "z"]);
        check(&[("a", 0), ("z\n", 7)], 8, &["a", "z"]);
        check(&[("a\n\n", 0)], 2, &["a", ""]);
    }

    #[test]
    fn long_output_stays_bounded() {
        let mut tail = OutputTail::default();
        for _ in 0..1000 {
            tail.push(&format!("{}\n", "é".repeat(10_000)), 0);
        }
        assert_eq!(tail.total(), 1000);
        assert!(tail.lines.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        assert!(tail.lines.iter().all(|line| line.len() <= MAX_LINE_BYTES));
    }
}
