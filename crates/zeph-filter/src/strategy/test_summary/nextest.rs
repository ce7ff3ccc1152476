//! The format of `cargo nextest run`: a line per test with a verb that ends in column 12, the output of a
//! failed test after it, indented by four spaces, and a summary that names the failed tests again.

use std::collections::HashSet;

use super::super::cargo_lines::{Progress, progress};
use super::rust_captured_output::{Captured, is_backtrace_hint, panicked};
use super::{ExitInfo, FilterConfidence, Limits, Line, OwnedLine, Sink, Strategy};

/// Bytes of buffered lines about tests whose output may still follow.
const MAX_PENDING_BYTES: usize = 512 * 1024;
/// Panics that are remembered.
const MAX_REPORTED: usize = 10_000;
/// First and last lines of output that has no known form.
const FOREIGN: (usize, usize) = (20, 20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Before the first test.
    Build,
    /// While tests run.
    Run,
    /// In the output of one test. `shown` is false if the output is omitted.
    Output { shown: bool },
}

struct Nextest {
    limits: Limits,
    at: Section,
    /// The line of the last test. Its output may follow.
    header: Option<OwnedLine>,
    captured: Captured,
    /// True if the output is not indented, as before version 0.9.96.
    flush_left: bool,
    /// Verbs and names of the tests with shown output.
    shown: HashSet<String>,
    /// Lines of tests without output. The output may follow the summary.
    bare: Vec<OwnedLine>,
    bare_bytes: usize,
    /// Tests that were reported as slow.
    slow: HashSet<String>,
    failures: HashSet<String>,
    /// Panics and errors that were shown.
    told: HashSet<String>,
    summary: bool,
    failed: bool,
}

/// Returns true if only `cargo nextest` prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    text.starts_with(" Nextest run ID ") || text.starts_with("     Summary [")
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Nextest {
        limits,
        at: Section::Build,
        header: None,
        captured: foreign(limits),
        flush_left: false,
        shown: HashSet::default(),
        bare: Vec::new(),
        bare_bytes: 0,
        slow: HashSet::default(),
        failures: HashSet::default(),
        told: HashSet::default(),
        summary: false,
        failed: false,
    })
}

fn foreign(limits: Limits) -> Captured {
    Captured::new(FOREIGN.0, FOREIGN.1, limits.truncate_stack_trace)
}

/// The parsed line about a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Status<'t> {
    /// `FAIL`, `TRY 2 FAIL`, `SIGABRT`, `TIMEOUT`, …
    verb: &'t str,
    /// Binary and test.
    name: &'t str,
}

/// The column in which the verb of a status ends.
const ALIGNED: usize = 12;

/// Parses `        FAIL [   0.271s] ( 1/25) ledger entry::tests::parses`.
fn status(text: &str) -> Option<Status<'_>> {
    let indent = text.bytes().take_while(|byte| *byte == b' ').count();
    let rest = text.get(indent..)?;
    // Most lines do not begin with a verb.
    if indent >= ALIGNED || !rest.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let (verb, rest) = rest.split_once(" [")?;
    // Signals have names of any length.
    let aligned = indent + verb.len() == ALIGNED || (indent == 1 && verb.len() >= ALIGNED);
    let known = verb
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b" /-+".contains(&byte));
    if !aligned || !known {
        return None;
    }
    let (time, rest) = rest.split_once(']')?;
    if !time
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b" .>s/".contains(&byte))
    {
        return None;
    }
    let rest = rest.trim_ascii_start();
    let name = match rest.strip_prefix('(') {
        // The count, or dashes without one: `( 1/25)`, `(─────)`.
        Some(count) => count.split_once(") ").map_or(rest, |(_, name)| name),
        None => rest,
    };
    Some(Status { verb, name })
}

impl Status<'_> {
    /// The last word of the verb, without the number of the try.
    fn word(&self) -> &str {
        self.verb.rsplit(' ').next().unwrap_or_default()
    }

    fn failed(&self) -> bool {
        !matches!(
            self.word(),
            "PASS"
                | "SLOW"
                | "LEAK"
                | "SKIP"
                | "START"
                | "TERMINATING"
                | "TRMNTG"
                | "RETRY"
                | "DELAY"
                | "XFAIL"
                | "SETUP"
                | "BENCH"
        ) && !self.verb.starts_with("FLAKY")
    }
}

impl Nextest {
    fn end_output(&mut self, out: &mut dyn Sink) {
        self.captured.finish(out);
        self.captured = foreign(self.limits);
        if let Some(header) = self.header.take() {
            // The test has no output.
            if self.summary {
                if !self.is_shown(&header) {
                    out.keep(header.line());
                }
            } else {
                self.bare_bytes += header.text.len();
                self.bare.push(header);
                if self.bare_bytes > MAX_PENDING_BYTES {
                    self.show_bare(out);
                }
            }
        }
        self.at = Section::Run;
        self.flush_left = false;
    }

    fn is_shown(&self, header: &OwnedLine) -> bool {
        status(&header.text).is_none_or(|status| self.shown.contains(&key(status)))
    }

    fn show_bare(&mut self, out: &mut dyn Sink) {
        for held in std::mem::take(&mut self.bare) {
            let Some(status) = status(&held.text) else {
                continue;
            };
            if self.shown.insert(key(status)) {
                out.keep(held.line());
            }
        }
        self.bare_bytes = 0;
    }

    fn status(&mut self, line: Line<'_>, status: Status<'_>, out: &mut dyn Sink) {
        self.end_output(out);
        if status.failed() {
            self.failed = true;
            self.header = Some(line.into());
            return;
        }
        match status.verb {
            "PASS" | "START" | "DELAY" => {}
            "SLOW" => {
                if self.slow.insert(status.name.to_owned()) {
                    out.keep(line);
                }
            }
            _ => {
                if self.shown.insert(key(status)) {
                    out.keep(line);
                }
            }
        }
        if status.verb.starts_with("SETUP") {
            self.captured = foreign(self.limits);
        } else {
            self.captured = Captured::new(2, 2, self.limits.truncate_stack_trace);
        }
    }

    /// Starts the output of the test in `header`.
    fn output(&mut self, out: &mut dyn Sink) {
        let Some(header) = self.header.take() else {
            self.at = Section::Output { shown: true };
            return;
        };
        let Some(status) = status(&header.text) else {
            return;
        };
        if !self.shown.insert(key(status)) {
            self.at = Section::Output { shown: false };
            return;
        }
        // Further tries of a test are shown in brief.
        let known = !self.failures.insert(status.name.to_owned());
        let brief = known || self.failures.len() > self.limits.max_failures;
        out.keep(header.line());
        self.captured = Captured::of_failure(brief, self.limits.truncate_stack_trace);
        self.at = Section::Output { shown: true };
    }

    /// Processes a line with the indentation of test output.
    fn captured_line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if is_boilerplate(line.text) {
            return;
        }
        let text = line.text.trim_ascii_start();
        let statement = panicked(text).is_some() || text.starts_with("error[");
        if self.at == (Section::Output { shown: false }) {
            // Repeated output is omitted, except new errors and panics.
            if statement && !self.told.contains(text) {
                out.keep(line);
            }
            return;
        }
        if statement && self.told.len() < MAX_REPORTED {
            self.told.insert(text.to_owned());
        }
        self.captured.line(line, out);
    }

    /// Processes a line that is neither about a test nor part of its output.
    fn other(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if self.header.is_some() || self.at != Section::Run {
            self.end_output(out);
        }
        if text.starts_with("     Summary [") {
            self.end_output(out);
            self.summary = true;
            out.keep(line);
            return;
        }
        match progress(text) {
            Some(Progress::Finished) => {
                out.keep(line);
                return;
            }
            Some(_) => return,
            None => {}
        }
        if text.starts_with(" Nextest run ID ") || text.starts_with("────") {
            self.at = Section::Run;
            return;
        }
        if text.starts_with("    Starting ") || text.starts_with("error: ") {
            self.at = Section::Run;
            self.failed |= text.starts_with("error: ");
            self.end_output(out);
            out.keep(line);
            return;
        }
        self.captured.line(line, out);
    }
}

fn key(status: Status<'_>) -> String {
    format!("{} {}", status.verb, status.name)
}

/// Returns true for a line of the test harness that repeats the status of a single test.
fn is_boilerplate(text: &str) -> bool {
    let text = text.strip_prefix("    ").unwrap_or(text);
    match text.as_bytes() {
        [] => true,
        [b'r', ..] => text == "running 1 test",
        [b'f', ..] => text == "failures:",
        [b's', ..] => text == "successes:",
        [b't', ..] => {
            text.starts_with("test result: FAILED. 0 passed; 1 failed; ")
                || text.starts_with("test result: ok. 1 passed; 0 failed; ")
                || (text.starts_with("test ")
                    && (text.ends_with(" ... FAILED") || text.ends_with(" ... ok")))
        }
        [b'-', ..] => text.starts_with("---- ") && text.ends_with(" ----"),
        // The name of the test, in the list of failures.
        [b' ', ..] => text
            .strip_prefix("    ")
            .is_some_and(|name| name.contains("::") && !name.contains(' ') && !name.ends_with(':')),
        _ => false,
    }
}

/// Returns true if the line names the stream of the following output: `  stdout ───`, `--- STDERR: … ---`.
fn is_stream(text: &str) -> bool {
    let today = text.strip_prefix("  ").is_some_and(|text| {
        ["stdout ", "stderr ", "output "].iter().any(|stream| {
            text.strip_prefix(stream)
                .is_some_and(|rest| rest.starts_with('─'))
        })
    });
    today
        || ((text.starts_with("--- STDOUT:") || text.starts_with("--- STDERR:"))
            && text.ends_with("---"))
}

impl Strategy for Nextest {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if let Some(status) = status(text)
            && !status.verb.starts_with("Summary")
        {
            self.status(line, status, out);
        } else if text.starts_with("   DELAY ") && text.contains(" by ") {
            self.end_output(out);
        } else if self.at == Section::Build {
            if text.starts_with(" Nextest run ID ")
                || text.starts_with("    Starting ")
                || text.starts_with("────")
            {
                self.other(line, out);
            } else {
                self.failed |= text.starts_with("error");
                match progress(text) {
                    None if is_backtrace_hint(text) => {}
                    None | Some(Progress::Finished) => out.keep(line),
                    Some(_) => {}
                }
            }
        } else if is_stream(text) {
            if self.header.is_some() || self.at == Section::Run {
                self.output(out);
            }
            self.flush_left = text.starts_with('-');
        } else if text.is_empty() {
        } else if text.starts_with("    ")
            && !text.starts_with("    Starting ")
            && !text.starts_with("     Summary [")
        {
            if self.header.is_some() {
                self.output(out);
            }
            self.captured_line(line, out);
        } else if self.flush_left
            && !text.starts_with("────")
            && !text.starts_with("error: test run")
        {
            self.captured_line(line, out);
        } else {
            self.other(line, out);
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        let cut = matches!(self.at, Section::Output { .. }) && !self.summary;
        self.end_output(out);
        self.show_bare(out);
        if !self.failed && (!self.summary || end.failed()) {
            return FilterConfidence::Fallback;
        }
        if cut || !self.summary {
            return FilterConfidence::Partial;
        }
        FilterConfidence::Full
    }
}
