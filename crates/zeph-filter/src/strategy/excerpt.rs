//! Excerpts: the first and the last lines of a block of unimportant lines.

use std::collections::VecDeque;

use crate::line::{Line, OwnedLine, Sink};

/// Bytes that are retained of a buffered or truncated line.
const MAX_LINE_BYTES: usize = 2000;

/// Emits the first lines of a block immediately and the last ones at its end, with the number of omitted lines
/// between them.
#[derive(Debug)]
pub(super) struct Excerpt {
    head: usize,
    tail: usize,
    seen: usize,
    held: VecDeque<OwnedLine>,
    /// Omitted lines, and the number of the last one.
    gone: u64,
    last_gone: u64,
}

impl Excerpt {
    /// Creates an excerpt of `head` lines at the start and `tail` lines at the end.
    pub(super) fn new(head: usize, tail: usize) -> Self {
        Self {
            head,
            tail,
            seen: 0,
            held: VecDeque::new(),
            gone: 0,
            last_gone: 0,
        }
    }

    /// Processes the next line of the block.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.seen += 1;
        if self.seen <= self.head {
            keep_cut(line, MAX_LINE_BYTES, out);
            return;
        }
        if self.held.len() < self.tail {
            self.held.push_back(held(line));
            return;
        }
        self.gone += 1;
        // The buffer of the removed line is reused.
        match self.held.pop_front() {
            None => self.last_gone = line.number,
            Some(mut old) => {
                self.last_gone = old.number;
                old.number = line.number;
                old.text.clear();
                old.text
                    .push_str(&line.text[..line.text.floor_char_boundary(MAX_LINE_BYTES)]);
                self.held.push_back(old);
            }
        }
    }

    /// Ends the block, emits its last lines, and starts the next block.
    pub(super) fn flush(&mut self, out: &mut dyn Sink) {
        if self.gone > 0 {
            out.say(self.last_gone, &format!("[… {} lines …]", self.gone));
        }
        for line in self.held.drain(..) {
            out.keep(line.line());
        }
        self.reset();
    }

    /// Ends the block without its last lines.
    pub(super) fn forget(&mut self) {
        self.held.clear();
        self.reset();
    }

    fn reset(&mut self) {
        (self.seen, self.gone, self.last_gone) = (0, 0, 0);
    }
}

fn held(line: Line<'_>) -> OwnedLine {
    OwnedLine {
        number: line.number,
        text: line.text[..line.text.floor_char_boundary(MAX_LINE_BYTES)].to_owned(),
    }
}

/// Emits a line. If it is longer than `most` bytes, about half of that remains at each end.
pub(super) fn keep_cut(line: Line<'_>, most: usize, out: &mut dyn Sink) {
    let text = line.text;
    if text.len() <= most {
        out.keep(line);
        return;
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    let cut = format!(
        "{}[… {} bytes …]{}",
        &text[..head],
        tail - head,
        &text[tail..]
    );
    out.keep(Line { text: &cut, ..line });
}

#[cfg(test)]
mod tests {
    use super::super::testing::Texts;
    use super::*;

    #[test]
    fn excerpt_retains_first_and_last_lines() {
        let check = |head, tail, lines: u64, expect: &[&str]| {
            let mut excerpt = Excerpt::new(head, tail);
            let mut out = Texts::default();
            for number in 1..=lines {
                let text = &number.to_string();
                excerpt.line(Line { number, text }, &mut out);
            }
            excerpt.flush(&mut out);
            assert_eq!(out.0, expect);
        };
        check(2, 2, 0, &[]);
        check(2, 2, 4, &["1", "2", "3", "4"]);
        check(2, 2, 7, &["1", "2", "[… 3 lines …]", "6", "7"]);
        check(1, 0, 3, &["1", "[… 2 lines …]"]);
        check(0, 1, 2, &["[… 1 lines …]", "2"]);
    }

    #[test]
    fn long_line_is_cut_in_its_middle() {
        let text = format!("a{}z", "ä".repeat(3000));
        let mut out = Texts::default();
        keep_cut(
            Line {
                number: 1,
                text: &text,
            },
            100,
            &mut out,
        );
        assert!(out.0[0].starts_with('a') && out.0[0].ends_with('z'));
        assert!(out.0[0].len() < 140, "{}", out.0[0].len());
    }
}
