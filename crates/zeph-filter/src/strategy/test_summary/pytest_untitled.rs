//! Failures without a title, as `--tb=line` prints them: message, captured output, and a last line with place
//! and message.
//!
//! The short summary lists them in the same order.

use std::collections::VecDeque;

use super::super::excerpt::{Excerpt, keep_cut};
use super::pytest::rule;
use super::pytest_failure::place;
use super::pytest_message::{Message, said};
use crate::line::{Line, OwnedLine, Sink};

/// Bytes that are buffered.
const MAX_BYTES: usize = 1024 * 1024;
/// Buffered failures that are compared with a line of the list.
const MAX_SEARCHED: usize = 8;
/// First and last lines of the captured output of a failing test.
const PRINTED: (usize, usize) = (3, 5);
/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;
/// The message for a test that passed although a failure was expected.
const UNEXPECTED: &str = "[XPASS(strict)]";

#[derive(Debug)]
struct Failure {
    /// The lines before the last one.
    above: Vec<OwnedLine>,
    last: OwnedLine,
}

/// The failures of one run, in order.
#[derive(Debug, Default)]
pub(super) struct Untitled {
    above: Vec<OwnedLine>,
    failures: VecDeque<Failure>,
    /// The number of failures in the run.
    count: usize,
    bytes: usize,
}

/// The message after the place in the last line of a failure.
fn message(text: &str) -> Option<&str> {
    if text.starts_with(UNEXPECTED) {
        return Some(text);
    }
    if text.starts_with(' ') {
        return None;
    }
    let (_, message) = place(text)?;
    (!message.is_empty()).then_some(message)
}

/// Returns true if a line ends a failure: `/home/user/shop/test_a.py:12: AssertionError: no`.
pub(super) fn is_last(text: &str) -> bool {
    message(text).is_some()
}

/// Returns true for a line that names a worker of pytest-xdist: `[gw1] linux -- Python 3.11.7 /usr/bin/python`.
fn is_worker(text: &str) -> bool {
    text.starts_with("[gw") && text.contains("] ") && text.contains(" -- Python ")
}

/// Returns true if `listed`, which may be truncated, is the start of `message`.
fn begins(message: &str, listed: &str) -> bool {
    match listed.strip_suffix("...") {
        Some(start) => message.starts_with(start),
        None => message.starts_with(listed) || message == listed,
    }
}

impl Untitled {
    /// Returns true if the run has such a failure.
    pub(super) fn any(&self) -> bool {
        self.count > 0
    }

    /// Processes the next line. Failures after the first `most` are buffered without their captured output.
    pub(super) fn line(&mut self, line: Line<'_>, most: usize, out: &mut dyn Sink) {
        if line.text.is_empty() || is_worker(line.text) {
            return;
        }
        self.bytes += line.text.len() + size_of::<OwnedLine>();
        if !is_last(line.text) {
            self.above.push(line.into());
        } else if !self.repeats(line.text) {
            self.count += 1;
            let mut above = std::mem::take(&mut self.above);
            if self.count > most {
                above.truncate(printed(&above));
            }
            self.failures.push_back(Failure {
                above,
                last: line.into(),
            });
        }
        if self.bytes > MAX_BYTES {
            self.finish(out);
        }
    }

    /// Returns true if the line repeats the last line of the previous failure. Pytest prints some of them
    /// twice.
    fn repeats(&self, text: &str) -> bool {
        text.starts_with(UNEXPECTED)
            && self.above.is_empty()
            && self
                .failures
                .back()
                .is_some_and(|last| last.last.text == text)
    }

    /// Shows a line of the list, `FAILED tests/test_a.py::test_b - assert 1 ==...`, with the details of the
    /// failure that it names. Returns false if no failure matches.
    pub(super) fn listed(&mut self, line: Line<'_>, said: &str, out: &mut dyn Sink) -> bool {
        let named = |failure: &Failure| {
            message(&failure.last.text).is_some_and(|message| begins(message, said))
        };
        let searched = self.failures.iter().take(MAX_SEARCHED);
        let Some(found) = searched.into_iter().position(named) else {
            return false;
        };
        let Some(failure) = self.failures.remove(found) else {
            return false;
        };
        // The full message in the list is not repeated.
        let whole = message(&failure.last.text) == Some(said);
        let end = failure.last.text.len() - if whole { said.len() } else { 0 };
        let text = match failure.last.text[..end].trim_ascii_end() {
            "" => line.text.to_owned(),
            last => format!("{} --> {last}", line.text),
        };
        let named = Line {
            text: &text,
            ..line
        };
        keep_cut(named, MAX_LINE_BYTES, out);
        tell_above(&failure, out);
        true
    }

    /// Shows the failures that the list did not name.
    pub(super) fn finish(&mut self, out: &mut dyn Sink) {
        for failure in self.failures.drain(..) {
            tell_above(&failure, out);
            keep_cut(failure.last.line(), MAX_LINE_BYTES, out);
        }
        for held in self.above.drain(..) {
            keep_cut(held.line(), MAX_LINE_BYTES, out);
        }
        self.bytes = 0;
    }
}

/// The number of lines before the captured output.
fn printed(above: &[OwnedLine]) -> usize {
    let first = above.iter().position(|held| captured(&held.text).is_some());
    first.unwrap_or(above.len())
}

/// The title of captured output.
fn captured(text: &str) -> Option<&str> {
    rule(text, '-').filter(|title| title.starts_with("Captured "))
}

/// Shows the lines before the last one, except a repetition of its message.
fn tell_above(failure: &Failure, out: &mut dyn Sink) {
    let last = message(&failure.last.text).unwrap_or_default();
    let (messages, printed) = failure.above.split_at(printed(&failure.above));
    let mut told = Message::new(false);
    for held in messages.iter().filter(|held| said(&held.text) != last) {
        told.line(held.line(), out);
    }
    told.end(out);
    let mut excerpt = Excerpt::new(PRINTED.0, PRINTED.1);
    for held in printed {
        match captured(&held.text) {
            Some(title) => {
                excerpt.flush(out);
                let text = format!("-- {title} --");
                let number = held.number;
                out.keep(Line {
                    number,
                    text: &text,
                });
            }
            None => excerpt.line(held.line(), out),
        }
    }
    excerpt.flush(out);
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Texts;
    use super::*;

    fn run(lines: &[&str], most: usize, listed: &[(&str, &str, bool)]) -> Vec<String> {
        let mut untitled = Untitled::default();
        let mut out = Texts::default();
        for (number, text) in (1..).zip(lines) {
            untitled.line(Line { number, text }, most, &mut out);
        }
        for (id, message, expect) in listed {
            let text = &format!("FAILED {id} - {message}");
            let line = Line { number: 100, text };
            assert_eq!(untitled.listed(line, message, &mut out), *expect, "{id}");
        }
        untitled.finish(&mut out);
        out.0
    }

    /// Proves OUT-7.
    #[test]
    fn untitled_failure_matches_its_summary_line() {
        let lines = [
            "E   ValueError: no number",
            "The above exception was the direct cause of the following exception:",
            "E   shop.NoPrice: cannot parse 'twelve', which is no number",
            "----- Captured stdout call -----",
            "parsing",
            "/shop/a.py:21: shop.NoPrice: cannot parse 'twelve', which is no number",
            "",
            "[XPASS(strict)] works",
            "[XPASS(strict)] works",
            "[gw1] linux -- Python 3.11.7 /usr/bin/python",
            "/shop/a.py:9: assert 2 == 3",
            "/shop/a.py:7: assert 1 == 2",
        ];
        let listed = [
            ("t.py::test_a", "shop.NoPrice: cannot par...", true),
            ("t.py::test_x", "[XPASS(strict)] works", true),
            ("t.py::test_c", "assert 4 == 5", false),
            ("t.py::test_d", "assert 2 == 3", true),
        ];
        assert_eq!(
            run(&lines, 10, &listed),
            [
                "FAILED t.py::test_a - shop.NoPrice: cannot par... --> /shop/a.py:21: shop.NoPrice: cannot parse 'twelve', which is no number",
                "E   ValueError: no number",
                "The above exception was the direct cause of the following exception:",
                "-- Captured stdout call --",
                "parsing",
                "FAILED t.py::test_x - [XPASS(strict)] works",
                "FAILED t.py::test_d - assert 2 == 3 --> /shop/a.py:9:",
                "/shop/a.py:7: assert 1 == 2",
            ]
        );
        // Failures after the limit are shown without their captured output.
        let told = run(&lines, 0, &listed[..1]);
        assert!(!told.iter().any(|line| line == "parsing"), "{told:?}");
        assert!(told.iter().any(|line| line == "E   ValueError: no number"));
    }
}
