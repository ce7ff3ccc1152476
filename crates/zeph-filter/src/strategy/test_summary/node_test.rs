//! The `spec` format of Node's test runner: a tree of tests, totals after `ℹ`, and the failures, which the
//! runner repeats with their places at the end.

use super::super::excerpt::Excerpt;
use super::failures::Failures;
use super::js_failure::{is_preamble, own_frame};
use super::{ExitInfo, FilterConfidence, Limits, Line, OwnedLine, Sink, Strategy};
use crate::duration_tokens::without_time;

/// First and last lines of the output of tests.
const FOREIGN: (usize, usize) = (30, 30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// While tests run.
    Tree,
    /// After a failed test, while tests run.
    Named(usize),
    /// After `✖ failing tests:`.
    Section,
}

struct NodeTest {
    failures: Failures,
    at: State,
    excerpt: Excerpt,
    /// The place of the next failure: `test at test/a.test.js:5:3`.
    place: Option<OwnedLine>,
    results: u64,
    failed: bool,
}

/// Returns true if only this runner prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    text.starts_with("ℹ tests ") || text == "✖ failing tests:"
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(NodeTest {
        failures: Failures::new(limits),
        at: State::Tree,
        excerpt: Excerpt::new(FOREIGN.0, FOREIGN.1),
        place: None,
        results: 0,
        failed: false,
    })
}

impl NodeTest {
    fn failed(&mut self, line: Line<'_>, name: &str, out: &mut dyn Sink) {
        let name = without_time(name);
        if self.at == State::Section {
            let place = self.place.take();
            let place_text = place.as_ref().map_or("", |place| &place.text);
            self.failures.begin(&format!("{place_text}\n{name}"), out);
            if let Some(place) = &place {
                out.keep(place.line());
            }
            out.keep(line);
            return;
        }
        self.excerpt.flush(out);
        self.at = State::Named(indent(line.text));
        self.failures.name(name, line, out);
    }
}

fn indent(text: &str) -> usize {
    text.len() - text.trim_ascii_start().len()
}

impl Strategy for NodeTest {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        let trimmed = text.trim_ascii();
        if trimmed.is_empty() || is_preamble(text) {
            return;
        }
        if let Some(number) = text.strip_prefix("ℹ ") {
            self.failures.end(out);
            self.excerpt.flush(out);
            self.at = State::Tree;
            self.results += 1;
            self.failed |= number.starts_with("fail ") && number != "fail 0";
            if !number.ends_with(" 0") || number == "fail 0" {
                out.keep(line);
            }
            return;
        }
        if trimmed == "✖ failing tests:" {
            self.excerpt.flush(out);
            self.at = State::Section;
            return;
        }
        if self.at == State::Section && text.starts_with("test at ") {
            self.failures.end(out);
            self.place = Some(line.into());
            return;
        }
        let mut signs = trimmed.chars();
        match signs.next() {
            Some('✔' | '▶' | '﹣') if signs.next() == Some(' ') => {
                self.failures.end(out);
                self.excerpt.flush(out);
                if self.at != State::Section {
                    self.at = State::Tree;
                }
                return;
            }
            Some('✖') if signs.next() == Some(' ') => {
                let name = trimmed.strip_prefix("✖ ").unwrap_or(trimmed);
                self.failed(line, name, out);
                return;
            }
            _ => {}
        }
        match self.at {
            State::Section => self.failures.line(line, out),
            State::Named(depth) if indent(text) > depth => {
                if own_frame(trimmed) != Some(false) {
                    self.failures.name_more(line);
                }
            }
            State::Named(_) | State::Tree => {
                self.at = State::Tree;
                if own_frame(trimmed) != Some(false) {
                    self.excerpt.line(line, out);
                }
            }
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.excerpt.flush(out);
        let failures = self.failures.any();
        self.failures.finish(out);
        match self.results {
            0 => FilterConfidence::Partial,
            _ if end.failed() && !failures && !self.failed => FilterConfidence::Fallback,
            _ => FilterConfidence::Full,
        }
    }
}
