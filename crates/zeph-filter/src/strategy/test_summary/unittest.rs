//! The format of Python's unittest and of derived runners: a sign or a line per test, failures below a rule of
//! `=`, tracebacks below a rule of `-`.

use super::super::excerpt::{Excerpt, keep_cut};
use super::python_traceback::Frames;
use super::{ExitInfo, FilterConfidence, Limits, Line, OwnedLine, Sink, Strategy};

/// First and last lines of the output of tests.
const FOREIGN: (usize, usize) = (12, 12);
const MAX_LINE_BYTES: usize = 2000;
/// Lines of a message.
const MESSAGE: usize = 40;
const MESSAGE_BRIEF: usize = 4;

struct Unittest {
    limits: Limits,
    /// A rule of `=`, after which a failure may follow.
    rule: Option<OwnedLine>,
    /// In a failure.
    failure: bool,
    /// True if the header of a traceback was shown.
    traceback: bool,
    frames: Frames,
    message: usize,
    failures: usize,
    foreign: Excerpt,
    /// The line of a test whose result is on the next line.
    name: Option<OwnedLine>,
    last: Option<OwnedLine>,
    ended: bool,
    bad: bool,
    tests: bool,
}

/// Returns true if only unittest prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    is_count(text)
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Unittest {
        limits,
        rule: None,
        failure: false,
        traceback: false,
        frames: Frames::new(limits.truncate_stack_trace),
        message: 0,
        failures: 0,
        foreign: Excerpt::new(FOREIGN.0, FOREIGN.1),
        name: None,
        last: None,
        ended: false,
        bad: false,
        tests: false,
    })
}

/// Returns true for the count of tests: `Ran 12 tests in 0.003s`.
fn is_count(text: &str) -> bool {
    text.strip_prefix("Ran ")
        .and_then(|rest| rest.split_once(" test"))
        .is_some_and(|(count, rest)| {
            count.bytes().all(|byte| byte.is_ascii_digit()) && rest.contains(" in ")
        })
}

fn is_rule(text: &str, sign: u8) -> bool {
    text.len() == 70 && text.bytes().all(|byte| byte == sign)
}

/// Returns true for the title of a failure: `ERROR: test_a (mod.Class.test_a)`.
fn is_failing(text: &str) -> bool {
    ["ERROR: ", "FAIL: ", "UNEXPECTED SUCCESS: "]
        .iter()
        .any(|word| text.starts_with(word))
}

impl Unittest {
    fn end_failure(&mut self, out: &mut dyn Sink) {
        self.frames.finish(out);
        self.failure = false;
        self.foreign.flush(out);
    }

    fn in_failure(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if self.frames.line(line, out) {
            self.message = self.most();
            return;
        }
        let text = line.text;
        if text.is_empty() || is_rule(text, b'-') {
            return;
        }
        if text.starts_with("Traceback (") {
            if !std::mem::replace(&mut self.traceback, true) {
                out.keep(line);
            }
            return;
        }
        if self.message > 0 {
            self.message -= 1;
            keep_cut(line, MAX_LINE_BYTES, out);
        } else {
            self.foreign.line(line, out);
        }
    }

    fn most(&self) -> usize {
        if self.failures > self.limits.max_failures {
            MESSAGE_BRIEF
        } else {
            MESSAGE
        }
    }

    /// Processes a line before the failures.
    fn progress(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        let signs = text.bytes().all(|sign| b".FEsxu".contains(&sign));
        if signs {
            self.tests = true;
            self.last = Some(line.into());
            return;
        }
        if let Some((name, verdict)) = text.rsplit_once(" ... ") {
            self.tests = true;
            self.name = None;
            match verdict {
                "ok" => self.last = Some(line.into()),
                "" => self.name = Some(line.into()),
                _ if verdict.starts_with("skipped ") || verdict == "expected failure" => {
                    keep_cut(line, MAX_LINE_BYTES / 4, out);
                }
                "FAIL" | "ERROR" | "unexpected success" => {
                    self.bad = true;
                    // The failure is shown below.
                    self.last = Some(line.into());
                }
                _ => self.foreign.line(line, out),
            }
            let _ = name;
            return;
        }
        // The name precedes the description of the test: `test_a (mod.Class.test_a)`.
        if text.ends_with(')') && text.starts_with("test") && text.contains(" (") {
            self.last = Some(line.into());
            return;
        }
        if text.is_empty() || is_rule(text, b'-') {
            return;
        }
        self.foreign.line(line, out);
    }
}

impl Strategy for Unittest {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text.trim_ascii_end();
        let line = Line { text, ..line };
        let ruled = self.rule.take().is_some();
        if is_rule(text, b'=') {
            self.end_failure(out);
            self.rule = Some(line.into());
            return;
        }
        if ruled && is_failing(text) {
            self.failure = true;
            self.bad = true;
            self.failures += 1;
            self.message = 2;
            self.frames = Frames::new(match self.failures > self.limits.max_failures {
                true => 1,
                false => self.limits.truncate_stack_trace,
            });
            keep_cut(line, MAX_LINE_BYTES, out);
            return;
        }
        if is_count(text) {
            self.end_failure(out);
            self.ended = true;
            out.keep(line);
            return;
        }
        if self.failure {
            self.in_failure(line, out);
        } else if self.ended {
            if !text.is_empty() {
                self.bad |= text.starts_with("FAILED");
                self.foreign.line(line, out);
            }
        } else {
            self.progress(line, out);
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.end_failure(out);
        if !self.ended
            && self.tests
            && let Some(last) = self.last.take()
        {
            out.keep(last.line());
        }
        let understood = self.ended || self.bad || self.tests;
        let contradicted = end.failed() && self.ended && !self.bad;
        if !understood || contradicted {
            return FilterConfidence::Fallback;
        }
        if self.ended {
            FilterConfidence::Full
        } else {
            FilterConfidence::Partial
        }
    }
}
