//! The format of `cargo test`: the lines of cargo around the started programs, and those of the test harness of
//! the standard library.
//!
//! The output is in this order: a build; for each program its name, one line per test, the output of the failed
//! tests, their names, and the result.

mod text;

use std::collections::HashSet;

use super::super::cargo_lines::{Progress, progress};
use super::rust_captured_output::{Captured, is_backtrace_hint, panicked};
use super::{ExitInfo, FilterConfidence, Limits, Line, OwnedLine, Sink, Strategy};
use text::{
    Status, failed_name, is_dots, is_empty_result, is_running, output_of, plain_name, status,
};

/// Bytes of failing tests that are buffered until their output appears.
const MAX_PENDING_BYTES: usize = 512 * 1024;
/// First and last lines of program output that has no known form.
const FOREIGN: (usize, usize) = (20, 20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Before the first test program.
    Build,
    /// While tests run.
    Run,
    /// In the output of one test.
    Output,
    /// In a list of test names.
    Names,
}

struct Cargo {
    limits: Limits,
    at: Section,
    /// The line that names the current program.
    program: Option<OwnedLine>,
    /// The `running N tests` line of a program that has no result yet.
    open: Option<OwnedLine>,
    /// The last line about a test that passed or was ignored.
    last: Option<OwnedLine>,
    /// Failing tests whose output has not appeared yet.
    pending: Vec<OwnedLine>,
    pending_bytes: usize,
    /// Failing tests that are shown.
    shown: HashSet<String>,
    /// The output of the current test or of the current program.
    captured: Captured,
    /// True if the outputs are those of successful tests.
    successes: bool,
    failures: usize,
    /// The result line of a program without tests, and the number of further programs with the same line.
    empty: Option<String>,
    same_empty: u64,
    last_empty: u64,
    results: u64,
    failed: bool,
    unfinished: bool,
}

/// Returns true if only `cargo test` prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    text.starts_with("test result: ")
        || panicked(text).is_some()
        || is_running(text)
        || status(text).is_some_and(|(_, status)| status != Status::Other)
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Cargo {
        limits,
        at: Section::Build,
        program: None,
        open: None,
        last: None,
        pending: Vec::new(),
        pending_bytes: 0,
        shown: HashSet::default(),
        captured: foreign(limits),
        successes: false,
        failures: 0,
        empty: None,
        same_empty: 0,
        last_empty: 0,
        results: 0,
        failed: false,
        unfinished: false,
    })
}

fn foreign(limits: Limits) -> Captured {
    Captured::new(FOREIGN.0, FOREIGN.1, limits.truncate_stack_trace)
}

impl Cargo {
    /// Shows the line that names the program, unless it was already shown.
    fn name_program(&mut self, out: &mut dyn Sink) {
        if let Some(program) = self.program.take() {
            // The path of the program is not needed.
            let text = program.text.trim_ascii_start();
            let text = text.split_once(" (target").map_or(text, |(text, _)| text);
            out.say(program.number, text);
        }
    }

    fn end_text(&mut self, out: &mut dyn Sink) {
        self.captured.finish(out);
        self.captured = foreign(self.limits);
    }

    /// Shows the failing tests that were not shown yet.
    fn show_pending(&mut self, out: &mut dyn Sink) {
        for held in std::mem::take(&mut self.pending) {
            let name = failed_name(&held.text).unwrap_or(&held.text);
            if self.shown.insert(name.to_owned()) {
                self.name_program(out);
                out.keep(held.line());
            }
        }
        self.pending_bytes = 0;
    }

    /// Ends a program, either by its result or because another program begins.
    fn end_program(&mut self, out: &mut dyn Sink) {
        self.end_text(out);
        self.show_pending(out);
        if let Some(open) = self.open.take() {
            self.unfinished = true;
            self.name_program(out);
            out.keep(open.line());
            if let Some(last) = self.last.take() {
                out.keep(last.line());
            }
        }
        self.shown.clear();
        self.program = None;
        self.last = None;
        self.successes = false;
        self.at = Section::Run;
    }

    fn result(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.open = None;
        self.end_text(out);
        self.show_pending(out);
        self.results += 1;
        if is_empty_result(line.text) {
            if self.empty.as_deref() == Some(line.text) {
                self.same_empty += 1;
                self.last_empty = line.number;
                self.end_program(out);
                return;
            }
            if self.empty.is_none() {
                self.empty = Some(line.text.to_owned());
            }
        } else if !line.text.starts_with("test result: ok") {
            self.failed = true;
        }
        self.name_program(out);
        out.keep(line);
        self.end_program(out);
    }

    fn failing(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.failed = true;
        if let Some((name, _)) = status(line.text)
            && plain_name(name) != name
        {
            // The expectation, for example `should panic`, appears in no other line.
            self.shown.insert(plain_name(name).to_owned());
            self.name_program(out);
            return out.keep(line);
        }
        self.pending_bytes += line.text.len();
        self.pending.push(line.into());
        if self.pending_bytes > MAX_PENDING_BYTES {
            self.show_pending(out);
        }
    }

    /// Starts the output of the test `name`.
    fn output(&mut self, line: Line<'_>, name: &str, out: &mut dyn Sink) {
        self.end_text(out);
        self.at = Section::Output;
        self.name_program(out);
        let frames = self.limits.truncate_stack_trace;
        if self.successes {
            self.captured = Captured::new(2, 2, frames).headed(line, "", false);
            return;
        }
        self.failed = true;
        self.shown.insert(name.to_owned());
        self.failures += 1;
        let brief = self.failures > self.limits.max_failures;
        let repeats = self.failures > 1;
        self.captured = Captured::of_failure(brief, frames).headed(line, name, repeats);
    }

    /// Processes a name in a list, and shows it if it was not shown yet.
    fn name(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let name = line.text.trim_ascii();
        let told = self.successes && panicked(name).is_none();
        if told || !self.shown.insert(name.to_owned()) {
            return;
        }
        self.pending
            .retain(|held| failed_name(&held.text) != Some(name));
        self.name_program(out);
        out.keep(line);
    }

    /// Processes a line about the work of cargo itself.
    fn progress(&mut self, line: Line<'_>, progress: Progress, out: &mut dyn Sink) {
        match progress {
            Progress::Program => {
                self.end_program(out);
                self.program = Some(line.into());
            }
            Progress::Finished => out.keep(line),
            Progress::Step => {}
        }
    }

    /// Processes a line that is not inside the output of a test.
    fn running(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if text.is_empty() {
            return;
        }
        if let Some((_, status)) = status(text) {
            match status {
                Status::Passed | Status::Ignored => {
                    if self.at == Section::Build {
                        self.at = Section::Run;
                    }
                    OwnedLine::put(&mut self.last, line);
                    return;
                }
                Status::Failed => {
                    self.at = Section::Run;
                    return self.failing(line, out);
                }
                Status::Other => {
                    self.name_program(out);
                    if text.contains(" ... bench: ") {
                        return out.keep(line);
                    }
                }
            }
        }
        if text.ends_with(" --- FAILED") {
            self.at = Section::Run;
            return self.failing(line, out);
        }
        if is_running(text) {
            self.end_text(out);
            self.at = Section::Run;
            self.open = Some(line.into());
            return;
        }
        if text == "failures:" || text == "successes:" {
            self.successes = text == "successes:";
            self.at = Section::Names;
            return;
        }
        if let Some(name) = output_of(text) {
            return self.output(line, name, out);
        }
        if let Some(progress) = progress(text) {
            return self.progress(line, progress, out);
        }
        if self.at == Section::Build {
            self.failed |= text.starts_with("error");
            if !is_backtrace_hint(text) {
                out.keep(line);
            }
            return;
        }
        if is_dots(text) {
            return;
        }
        if text.starts_with('{') {
            // `--format json`: the user requested this output, so it is not changed.
            return out.keep(line);
        }
        if text.starts_with("error: ") {
            self.failed = true;
            self.end_text(out);
            if self.open.is_some() {
                self.end_program(out);
            }
        }
        self.name_program(out);
        self.captured.line(line, out);
    }
}

impl Strategy for Cargo {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        match self.at {
            Section::Build | Section::Run => {
                if text.starts_with("test result: ") {
                    self.result(line, out);
                } else {
                    self.running(line, out);
                }
            }
            Section::Output => {
                if let Some(name) = output_of(text) {
                    self.output(line, name, out);
                } else if text == "failures:" || text == "successes:" {
                    self.successes = text == "successes:";
                    self.at = Section::Names;
                } else if progress(text) == Some(Progress::Program)
                    || text.starts_with("error: test failed, to rerun pass ")
                    || text.starts_with("error: doctest failed, to rerun pass ")
                {
                    self.end_program(out);
                    self.running(line, out);
                } else {
                    self.captured.line(line, out);
                }
            }
            Section::Names => {
                if text.starts_with("    ") {
                    self.name(line, out);
                } else if text.is_empty() {
                } else if let Some(name) = output_of(text) {
                    self.output(line, name, out);
                } else if text == "failures:" {
                    self.successes = false;
                } else if text.starts_with("test result: ") {
                    self.result(line, out);
                } else if progress(text) == Some(Progress::Program) || text.starts_with("error: ") {
                    self.end_program(out);
                    self.running(line, out);
                } else {
                    // The test itself printed `failures:` or `successes:`.
                    self.at = Section::Output;
                    self.captured.line(line, out);
                }
            }
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        let cut = self.at == Section::Output || self.open.is_some();
        self.end_program(out);
        if self.same_empty > 0
            && let Some(empty) = &self.empty
        {
            let text = format!("[{} more: {empty}]", self.same_empty);
            out.say(self.last_empty, &text);
        }
        if !self.failed && (self.results == 0 || end.failed()) {
            return FilterConfidence::Fallback;
        }
        if cut || self.unfinished {
            return FilterConfidence::Partial;
        }
        FilterConfidence::Full
    }
}
