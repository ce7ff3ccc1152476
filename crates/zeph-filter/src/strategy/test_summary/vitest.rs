//! The format of Vitest: a line per file or per test, failures between rules of `⎯`, and the totals at the end.

use super::super::excerpt::Excerpt;
use super::coverage;
use super::failures::Failures;
use super::js_failure::is_preamble;
use super::js_totals::Totals;
use super::{ExitInfo, FilterConfidence, Limits, Line, OwnedLine, Sink, Strategy};
use crate::duration_tokens::without_time;

/// First and last lines of the output of tests, and of output that is not from Vitest.
const CONSOLE: (usize, usize) = (10, 10);
const FOREIGN: (usize, usize) = (30, 30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Open,
    /// After the name of a failed test, while tests run.
    Named,
    /// In the console output of a test.
    Console,
    Failure,
}

struct Vitest {
    failures: Failures,
    at: Section,
    excerpt: Excerpt,
    coverage: coverage::Table,
    totals: Totals,
    failed: bool,
}

/// Returns true if only Vitest prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    let failure = text.strip_prefix(" FAIL  ");
    is_start(text)
        || failure.is_some_and(|name| name.contains(" > ") || name.contains(" [ "))
        || text.starts_with(" Test Files  ")
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Vitest {
        failures: Failures::new(limits),
        at: Section::Open,
        excerpt: Excerpt::new(FOREIGN.0, FOREIGN.1),
        coverage: coverage::Table::default(),
        totals: Totals::default(),
        failed: false,
    })
}

/// Returns true for the first line of a run: ` RUN  v3.2.7 /home/user/store`.
fn is_start(text: &str) -> bool {
    [" RUN  v", " DEV  v"]
        .iter()
        .any(|start| text.starts_with(start))
}

/// Parses the name of a total: ` Test Files  1 failed (3)`, `      Tests  …`.
fn total(text: &str) -> Option<&str> {
    const TOTALS: &[&str] = &[
        "Test Files",
        "Tests",
        "Snapshots",
        "Errors",
        "Type Errors",
        "Start at",
        "Duration",
    ];
    let trimmed = text.trim_ascii_start();
    if trimmed.len() == text.len() {
        return None;
    }
    // None of them is the beginning of another, with a blank behind it.
    let name = TOTALS.iter().find(|start| trimmed.starts_with(**start))?;
    let rest = &trimmed[name.len()..];
    (rest.starts_with(' ')
        && rest
            .trim_ascii_start()
            .starts_with(|c: char| c.is_ascii_digit()))
    .then_some(name)
}

/// Parses the sign before a file or a test, and the text after it.
fn sign(text: &str) -> Option<(char, &str)> {
    let trimmed = text.trim_ascii_start();
    if trimmed.len() == text.len() {
        return None;
    }
    let sign = trimmed
        .chars()
        .next()
        .filter(|sign| matches!(sign, '✓' | '✔' | '×' | '✗' | '↓' | '❯'))?;
    Some((sign, trimmed[sign.len_utf8()..].strip_prefix(' ')?))
}

/// Parses the text in a rule of `⎯`: `⎯⎯⎯ Failed Tests 8 ⎯⎯⎯`.
fn rule(text: &str) -> Option<&str> {
    text.starts_with("⎯⎯")
        .then(|| text.trim_matches(|c| c == '⎯' || c == ' '))
}

impl Vitest {
    fn close(&mut self, out: &mut dyn Sink) {
        self.failures.end(out);
        self.excerpt.flush(out);
        if self.at == Section::Console {
            self.excerpt = Excerpt::new(FOREIGN.0, FOREIGN.1);
        }
        self.at = Section::Open;
    }

    fn total(&mut self, line: Line<'_>, name: &str, out: &mut dyn Sink) {
        self.close(out);
        let is_first = |held: &OwnedLine| held.text.trim_ascii_start().starts_with("Test Files");
        if name == "Test Files" && self.totals.lines.iter().any(is_first) {
            // On a terminal the totals are printed repeatedly.
            self.totals.lines.clear();
        }
        if name == "Start at" || self.totals.lines.len() > 12 {
            return;
        }
        self.failed |= line.text.contains(" failed") || name.ends_with("Errors");
        self.totals.lines.push(line.into());
    }

    /// Processes a line with a sign. Returns `false` if it is not a line of Vitest.
    fn sign(&mut self, line: Line<'_>, out: &mut dyn Sink) -> bool {
        let Some((sign, rest)) = sign(line.text) else {
            return false;
        };
        match sign {
            '✓' | '✔' | '↓' if self.at != Section::Failure => self.close(out),
            '×' | '✗' if self.at != Section::Failure => {
                self.close(out);
                self.at = Section::Named;
                self.failures.name(without_time(rest), line, out);
            }
            // A file with failures: ` ❯ src/a.test.ts (3 tests | 1 failed) 12ms`.
            '❯' if self.at != Section::Failure && is_file(rest) && !is_place(rest) => {
                self.close(out)
            }
            _ => return false,
        }
        true
    }
}

/// Returns true for a file with its number of tests, or a queued file.
fn is_file(rest: &str) -> bool {
    let rest = without_time(rest);
    rest.contains(" (") && rest.ends_with(')') || rest.contains(" [queued]") || rest.contains("/")
}

/// Returns true for a place in a failure whose start is missing: `test/user.test.ts:8:3`.
fn is_place(rest: &str) -> bool {
    let mut parts = rest.rsplitn(3, ':');
    let numbers = parts.by_ref().take(2);
    let numbers = numbers.filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.filter(|part| !part.is_empty()).count() == 2 && parts.next().is_some()
}

impl Strategy for Vitest {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        let trimmed = text.trim_ascii();
        if trimmed.is_empty() || is_preamble(text) {
            return;
        }
        if let Some(said) = rule(text) {
            self.close(out);
            let banner = said.starts_with("Failed Tests") || said.starts_with("Failed Suites");
            if !banner && !said.is_empty() && !said.starts_with('[') {
                self.at = Section::Failure;
                self.failures.begin(said, out);
                out.keep(line);
            }
            return;
        }
        if let Some(name) = text.strip_prefix(" FAIL  ") {
            self.close(out);
            self.at = Section::Failure;
            self.failures.begin(name, out);
            out.keep(line);
            return;
        }
        if is_start(text) {
            self.close(out);
            if !self.totals.lines.is_empty() {
                self.failures.finish(out);
                self.totals.show(out);
            }
            return;
        }
        if let Some(name) = total(text) {
            self.total(line, name, out);
            return;
        }
        if text.starts_with("stdout | ") || text.starts_with("stderr | ") {
            self.close(out);
            self.at = Section::Console;
            self.excerpt = Excerpt::new(CONSOLE.0, CONSOLE.1);
            self.excerpt.line(line, out);
            return;
        }
        if self.sign(line, out) || self.coverage.line(line, out) || is_dots(trimmed) {
            return;
        }
        match self.at {
            Section::Failure => self.failures.line(line, out),
            Section::Named => self.failures.name_more(line),
            Section::Console | Section::Open => self.excerpt.line(line, out),
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.close(out);
        self.totals
            .finish(&mut self.failures, self.failed, end, out)
    }
}

/// Returns true for a line of signs, one per test.
fn is_dots(text: &str) -> bool {
    let is_sign = |c| matches!(c, '·' | 'x' | '-' | '*' | '↓' | '.');
    text.chars().all(is_sign) && text.contains(['·', '.'])
}
