//! Failures without a title, as `--tb=line` prints them: the message, what was printed, and, as the last line of
//! each, its place with the message once more. The list names them, in the same order.

use std::collections::VecDeque;

use super::super::excerpt::{Excerpt, keep_cut};
use super::pytest::rule;
use super::pytest_failure::place;
use super::pytest_message::{Message, said};
use crate::line::{Line, OwnedLine, Sink};

/// Bytes that are held.
const MAX_BYTES: usize = 1024 * 1024;
/// Failures among which the one is searched that a line of the list names.
const MAX_SEARCHED: usize = 8;
/// First and last lines of what a failing test printed.
const PRINTED: (usize, usize) = (3, 5);
/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;
/// What a test says that ought to have failed.
const UNEXPECTED: &str = "[XPASS(strict)]";

#[derive(Debug)]
struct Failure {
    /// What came before its last line.
    above: Vec<OwnedLine>,
    last: OwnedLine,
}

/// Those of one run, in order.
#[derive(Debug, Default)]
pub(super) struct Untitled {
    above: Vec<OwnedLine>,
    failures: VecDeque<Failure>,
    /// How many there were.
    count: usize,
    bytes: usize,
}

/// What the last line of a failure says, behind its place.
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

/// Whether a line ends a failure: `/home/user/shop/test_a.py:12: AssertionError: no`.
pub(super) fn is_last(text: &str) -> bool {
    message(text).is_some()
}

/// Whether it names the worker of pytest-xdist: `[gw1] linux -- Python 3.11.7 /usr/bin/python`.
fn is_worker(text: &str) -> bool {
    text.starts_with("[gw") && text.contains("] ") && text.contains(" -- Python ")
}

/// Whether `listed`, which may be cut, is the beginning of `message`.
fn begins(message: &str, listed: &str) -> bool {
    match listed.strip_suffix("...") {
        Some(start) => message.starts_with(start),
        None => message.starts_with(listed) || message == listed,
    }
}

impl Untitled {
    /// Whether there was any.
    pub(super) fn any(&self) -> bool {
        self.count > 0
    }

    /// The next line.
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

    /// Of some failures the last line stands there twice.
    fn repeats(&self, text: &str) -> bool {
        text.starts_with(UNEXPECTED)
            && self.above.is_empty()
            && self
                .failures
                .back()
                .is_some_and(|last| last.last.text == text)
    }

    /// A line of the list, `FAILED tests/test_a.py::test_b - assert 1 ==...`: says it with the last line of the failure
    /// that it names; whether there is one.
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
        // What the list has whole need not be told twice.
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

    /// Those that no list has named are told as they stand.
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

/// How many of these lines come before what the test printed.
fn printed(above: &[OwnedLine]) -> usize {
    let first = above.iter().position(|held| captured(&held.text).is_some());
    first.unwrap_or(above.len())
}

/// The title of what a test printed.
fn captured(text: &str) -> Option<&str> {
    rule(text, '-').filter(|title| title.starts_with("Captured "))
}

/// The lines above the last one, but for the message that stands there too.
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
    fn a_failure_meets_the_line_that_lists_it() {
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
        // Beyond the first ones without what was printed.
        let told = run(&lines, 0, &listed[..1]);
        assert!(!told.iter().any(|line| line == "parsing"), "{told:?}");
        assert!(told.iter().any(|line| line == "E   ValueError: no number"));
    }
}
