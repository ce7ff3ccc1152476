//! The format of Jest: `PASS` or `FAIL` per file, `●` before each failure, and the totals at the end.
//!
//! A run with many files repeats all failures before the totals. On a terminal the totals are printed
//! repeatedly during the run; the last ones are shown.

use super::super::excerpt::Excerpt;
use super::coverage;
use super::failures::Failures;
use super::js_failure::{is_preamble, own_frame};
use super::js_totals::Totals;
use super::{ExitInfo, FilterConfidence, Limits, Line, OwnedLine, Sink, Strategy};
use crate::duration_tokens::without_time;

/// First and last lines of the output of tests, and of output that is not from Jest.
const CONSOLE: (usize, usize) = (10, 10);
const FOREIGN: (usize, usize) = (30, 30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Outside of a file, a console block and a failure.
    Open,
    /// After the line of a file: names of groups and tests.
    File,
    /// In the console output of tests.
    Console,
    /// In a failure.
    Failure,
}

struct Jest {
    failures: Failures,
    at: Section,
    /// The line of the current file, until a part of the file is shown.
    file: Option<OwnedLine>,
    file_name: String,
    excerpt: Excerpt,
    coverage: coverage::Table,
    failed: bool,
    /// True in the section that repeats all failures.
    again: bool,
    totals: Totals,
}

/// Returns true if only Jest prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    file(text).is_some() || total(text) == Some(0)
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Jest {
        failures: Failures::new(limits),
        at: Section::Open,
        file: None,
        file_name: String::new(),
        excerpt: Excerpt::new(FOREIGN.0, FOREIGN.1),
        coverage: coverage::Table::default(),
        failed: false,
        again: false,
        totals: Totals::default(),
    })
}

/// Parses the status (true if failed) and the path of a file: `FAIL src/a.test.js (5.1 s)`.
fn file(text: &str) -> Option<(bool, &str)> {
    // With colours the word has a background, and spaces on both sides.
    let text = text.strip_prefix(' ').unwrap_or(text);
    let (failed, path) = match text.strip_prefix("FAIL ") {
        Some(path) => (true, path),
        None => (false, text.strip_prefix("PASS ")?),
    };
    let path = without_time(path.trim_ascii());
    // The name of a project may precede the path: `FAIL web src/a.test.js`.
    let last = path.rsplit(' ').next().unwrap_or(path);
    let is_path = last.rsplit_once('.').is_some_and(|(_, extension)| {
        [
            "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte",
        ]
        .contains(&extension)
    });
    is_path.then_some((failed, path))
}

const TOTALS: &[&str] = &["Test Suites:", "Tests:", "Snapshots:", "Time:", LAST_TOTAL];
const LAST_TOTAL: &str = "Ran all test suites";

fn total(text: &str) -> Option<usize> {
    TOTALS.iter().position(|start| text.starts_with(start))
}

/// Parses the sign before a test, and the name of the test.
fn test(text: &str) -> Option<(char, &str)> {
    let text = text.trim_ascii_start();
    let sign = text
        .chars()
        .next()
        .filter(|sign| matches!(sign, '✓' | '✕' | '○' | '✎' | '√' | '×'))?;
    let name = text[sign.len_utf8()..].strip_prefix(' ')?;
    Some((sign, without_time(name)))
}

impl Jest {
    /// Ends the current section.
    fn close(&mut self, out: &mut dyn Sink) {
        self.failures.end(out);
        self.excerpt.flush(out);
        if self.at == Section::Console {
            self.excerpt = Excerpt::new(FOREIGN.0, FOREIGN.1);
        }
        self.at = Section::Open;
    }

    fn total(&mut self, line: Line<'_>, which: usize, out: &mut dyn Sink) {
        self.close(out);
        if which == 0 {
            self.totals.lines.clear();
            self.again = false;
        }
        self.totals.lines.push(line.into());
        if TOTALS[which] == LAST_TOTAL || self.totals.lines.len() > 8 {
            self.failures.finish(out);
            self.totals.show(out);
        }
    }

    fn failure(&mut self, line: Line<'_>, title: &str, out: &mut dyn Sink) {
        self.close(out);
        self.at = Section::Failure;
        let name = format!("{}\n{title}", self.file_name);
        if self.again && self.failures.pass_over(&name, out) {
            return;
        }
        self.failures.begin(&name, out);
        self.show_file(out);
        out.keep(line);
    }

    fn show_file(&mut self, out: &mut dyn Sink) {
        if let Some(file) = self.file.take() {
            out.keep(file.line());
        }
    }

    fn console(&mut self, out: &mut dyn Sink) {
        if self.at != Section::Console {
            self.close(out);
            self.at = Section::Console;
            self.excerpt = Excerpt::new(CONSOLE.0, CONSOLE.1);
        }
    }
}

impl Strategy for Jest {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if let Some((failed, path)) = file(text) {
            self.close(out);
            self.at = Section::File;
            self.file = Some(line.into());
            self.failed |= failed;
            self.file_name.clear();
            self.file_name.push_str(path);
            return;
        }
        if let Some(which) = total(text) {
            self.total(line, which, out);
            return;
        }
        if let Some(title) = text.strip_prefix("  ● ") {
            if title.starts_with("Console") {
                self.console(out);
                self.show_file(out);
                self.excerpt.line(line, out);
            } else {
                self.failure(line, title, out);
            }
            return;
        }
        let trimmed = text.trim_ascii();
        if trimmed.is_empty() || is_preamble(text) {
            return;
        }
        if is_console(trimmed) && !self.failures.is_open() {
            self.console(out);
        }
        if self.coverage.line(line, out) {
            return;
        }
        if text.starts_with("RUNS ") || trimmed.starts_with("Determining test suites to run") {
            self.close(out);
            return;
        }
        if trimmed == "Summary of all failing tests" {
            self.close(out);
            self.again = true;
            return;
        }
        // Snapshot notes after the failures of a file.
        if text.starts_with(" › ") || text.starts_with("   • ") || text.starts_with("   ↳ ") {
            self.close(out);
            self.show_file(out);
            out.keep(line);
            return;
        }
        match self.at {
            Section::Failure if text.starts_with("    ") => self.failures.line(line, out),
            Section::Console if text.starts_with("  ") => match own_frame(trimmed) {
                Some(false) => {}
                _ => self.excerpt.line(line, out),
            },
            Section::File if text.starts_with("  ") => {
                if let Some(('✕' | '×', name)) = test(text) {
                    self.failures.name(name, line, out);
                }
            }
            _ => {
                if self.at != Section::Open {
                    self.close(out);
                }
                match test(text) {
                    Some(('✕' | '×', name)) => self.failures.name(name, line, out),
                    Some(_) => {}
                    None => self.excerpt.line(line, out),
                }
            }
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.close(out);
        self.totals
            .finish(&mut self.failures, self.failed, end, out)
    }
}

fn is_console(text: &str) -> bool {
    text.strip_prefix("console.").is_some_and(|rest| {
        ["log", "warn", "error", "info", "debug", "trace", "dir"].contains(&rest)
    })
}
