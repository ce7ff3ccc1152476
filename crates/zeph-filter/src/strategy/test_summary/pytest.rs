//! The format of pytest: sections below rules of `=`, failures below rules of `_`, captured output below rules
//! of `-`.
//!
//! Lines of a failure that begin with `E` are its message. `path:line: Name` is its place.

use super::super::excerpt::{Excerpt, keep_cut};
use super::pytest_brief::{Briefs, split_message};
use super::pytest_failure::Failure;
use super::pytest_progress::{Progress, is_running};
use super::pytest_sugar;
use super::pytest_untitled::{self, Untitled};
use super::{ExitInfo, FilterConfidence, Limits, Line, Sink, Strategy};

/// First and last lines of a section without its own parser.
const OTHER: (usize, usize) = (20, 20);
/// Shown lines about tests that were skipped or expected to fail.
const MAX_NOTES: usize = 20;
/// Shown warnings, and shown files with incomplete coverage.
const MAX_WARNINGS: usize = 20;
const MAX_FILES: usize = 60;
/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Before the session starts, or if its start is missing.
    Before,
    /// While tests run.
    Progress,
    Failures,
    /// In a failure that a plugin shows immediately, during the progress.
    Instant,
    /// The output of passed tests.
    Passes,
    Warnings,
    Coverage,
    /// The list of failures in the short summary.
    List,
    /// A section with an unknown form.
    Other,
    /// After the last line.
    After,
    /// In the summary of a plugin, up to its end.
    Results,
}

struct Pytest {
    limits: Limits,
    at: Section,
    /// The width of a rule in characters, after the first rule.
    width: Option<usize>,
    progress: Progress,
    failure: Option<Failure>,
    failures: usize,
    /// Failures beyond `max_failures`. `brief` is true if the current failure is one of them.
    briefs: Briefs,
    brief: bool,
    untitled: Untitled,
    /// True if a plugin prints the progress, and shows failures immediately.
    sugar: bool,
    other: Excerpt,
    /// True after the place of a warning: its source follows.
    warned: bool,
    warnings: usize,
    files: usize,
    notes: usize,
    /// True after the last line of the session. `bad`: the session has failures.
    ended: bool,
    bad: bool,
    sections: usize,
}

/// Returns true if only pytest prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    pytest_sugar::starts(text)
        || ["test session starts", "short test summary info", "FAILURES"]
            .iter()
            .any(|title| rule(text, '=') == Some(title))
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Pytest {
        limits,
        at: Section::Before,
        width: None,
        progress: Progress::default(),
        failure: None,
        failures: 0,
        briefs: Briefs::default(),
        brief: false,
        untitled: Untitled::default(),
        sugar: false,
        other: Excerpt::new(OTHER.0, OTHER.1),
        warned: false,
        warnings: 0,
        files: 0,
        notes: 0,
        ended: false,
        bad: false,
        sections: 0,
    })
}

/// Parses the title from `==== title ====`.
pub(super) fn rule(text: &str, sign: char) -> Option<&str> {
    if !text.starts_with(sign) || !text.ends_with(sign) {
        return None;
    }
    let inner = match u8::try_from(sign) {
        Ok(sign) if sign.is_ascii() => {
            let other = |byte: &u8| *byte != sign;
            let start = text.bytes().position(|byte| other(&byte))?;
            let end = text.as_bytes().iter().rposition(other)?;
            text.get(start..=end)?
        }
        _ => text.trim_matches(sign),
    };
    let title = inner.strip_prefix(' ')?.strip_suffix(' ')?;
    (!title.is_empty()).then_some(title)
}

/// Returns true if a title is the last line of a session: `1 failed, 2 passed in 0.12s`.
fn is_summary(title: &str) -> bool {
    if !title.starts_with(|c: char| c.is_ascii_digit()) && !title.starts_with("no tests ran in ") {
        return false;
    }
    let Some((counts, time)) = title.rsplit_once(" in ") else {
        return false;
    };
    let timed = time.starts_with(|c: char| c.is_ascii_digit())
        && time
            .split_ascii_whitespace()
            .next()
            .is_some_and(|time| time.ends_with('s'));
    timed && (counts.starts_with(|c: char| c.is_ascii_digit()) || counts == "no tests ran")
}

/// Returns true if a summary states failures.
fn tells_failures(summary: &str) -> bool {
    ["failed", "error", "no tests ran"]
        .iter()
        .any(|word| summary.contains(word))
}

impl Pytest {
    /// Parses the title of a rule. The rule must be as wide as the previous ones, because tests may print
    /// similar lines.
    fn title<'t>(&self, text: &'t str, sign: char) -> Option<&'t str> {
        let title = rule(text, sign)?;
        let wide = match self.width {
            // A long title makes its rule wider.
            Some(width) => {
                text.chars().count() == width
                    || (text.len() > width && text.len() - title.len() <= 4)
            }
            None => text.len() >= 40,
        };
        wide.then_some(title)
    }

    fn section(&mut self, title: &str, line: Line<'_>, out: &mut dyn Sink) {
        self.end_section(out);
        self.sections += 1;
        self.at = match title {
            "test session starts" => Section::Progress,
            "FAILURES" | "ERRORS" => {
                self.bad = true;
                Section::Failures
            }
            "PASSES" | "XPASSES" | "XFAILURES" => Section::Passes,
            "short test summary info" => Section::List,
            "tests coverage" => Section::Coverage,
            _ if title.starts_with("warnings summary") => Section::Warnings,
            _ if is_summary(title) => {
                self.end_list(out);
                out.keep(line);
                self.summary(title);
                Section::After
            }
            _ => {
                out.keep(line);
                Section::Other
            }
        };
    }

    fn summary(&mut self, text: &str) {
        self.ended = true;
        self.bad |= tells_failures(text);
    }

    fn end_failure(&mut self, out: &mut dyn Sink) {
        let Some(failure) = self.failure.take() else {
            return;
        };
        match self.briefs.sink().filter(|_| self.brief) {
            Some(mut sink) => failure.finish(&mut sink),
            None => failure.finish(out),
        }
    }

    /// Ends the list of failures, and shows those that it did not name.
    fn end_list(&mut self, out: &mut dyn Sink) {
        self.briefs.finish(out);
        self.untitled.finish(out);
    }

    fn end_section(&mut self, out: &mut dyn Sink) {
        self.end_failure(out);
        self.progress.end(out);
        self.other.flush(out);
        self.warned = false;
    }

    fn failure(&mut self, title: &str, line: Line<'_>, out: &mut dyn Sink) {
        self.end_failure(out);
        if title.starts_with("coverage: ") {
            self.at = Section::Coverage;
            return;
        }
        self.failures += 1;
        self.brief = self.failures > self.limits.max_failures;
        if self.brief {
            self.briefs.begin(title, line, out);
        } else {
            let text = format!("__ {title} __");
            out.keep(Line {
                text: &text,
                ..line
            });
        }
        let most = self.limits.truncate_stack_trace;
        self.failure = Some(Failure::new(self.brief, most));
    }

    fn warning(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if !text.starts_with(' ') {
            self.warned = false;
            return;
        }
        // The first indented line has the place. The source follows it.
        if !std::mem::replace(&mut self.warned, true) {
            self.warnings += 1;
            if self.warnings <= MAX_WARNINGS {
                keep_cut(line, MAX_LINE_BYTES / 4, out);
            } else if self.warnings == MAX_WARNINGS + 1 {
                out.say(line.number, "[… more warnings …]");
            }
        }
    }

    fn coverage(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        let whole = text.split_ascii_whitespace().nth(3) == Some("100%")
            || text.split_ascii_whitespace().nth(5) == Some("100%");
        if text.is_empty() || text.starts_with("---") || (whole && !text.starts_with("TOTAL")) {
            return;
        }
        self.files += 1;
        if self.files <= MAX_FILES || !text.contains('%') || text.starts_with("TOTAL") {
            keep_cut(line, MAX_LINE_BYTES, out);
        } else if self.files == MAX_FILES + 1 {
            out.say(line.number, "[… more files …]");
        }
    }

    /// Processes a line of the list that names a failure without a title. Returns false if none matches.
    fn untitled_listed(&mut self, line: Line<'_>, out: &mut dyn Sink) -> bool {
        let Some((_, rest)) = line.text.split_once(' ') else {
            return false;
        };
        let (_, message) = split_message(rest);
        self.untitled.listed(line, message, out)
    }

    /// Processes a line of a failure without a title.
    fn untitled(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.untitled.line(line, self.limits.max_failures, out);
    }

    /// Processes a line of the list of failures.
    fn listed(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        let word = text.split(' ').next().unwrap_or_default();
        match word {
            "FAILED" | "ERROR" | "SUBFAIL" | "SUBFAILED" => {
                self.bad = true;
                self.progress.told();
                if !self.briefs.listed(line, out) && !self.untitled_listed(line, out) {
                    keep_cut(line, MAX_LINE_BYTES, out);
                }
            }
            "PASSED" | "SUBPASS" | "SUBPASSED" => {}
            "SKIPPED" | "XFAIL" | "XPASS" | "SUBSKIP" | "SUBSKIPPED" => {
                self.notes += 1;
                if self.notes <= MAX_NOTES {
                    keep_cut(line, MAX_LINE_BYTES / 4, out);
                } else if self.notes == MAX_NOTES + 1 {
                    out.say(line.number, "[… more that did not run …]");
                }
            }
            // Further lines of a message were shown with the failure.
            _ if (self.failures > 0 || self.untitled.any()) && !is_summary(text) => {}
            _ => self.other(line, out),
        }
    }

    fn other(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if is_summary(text) {
            // With `-q` the summary has no rule.
            self.end_section(out);
            self.end_list(out);
            self.summary(text);
            self.at = Section::After;
            out.keep(line);
        } else if !text.is_empty() {
            self.other.line(line, out);
        }
    }
}

impl Strategy for Pytest {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text.trim_ascii_end();
        let line = Line { text, ..line };
        match text.as_bytes().first() {
            Some(b'=') => {
                if let Some(title) = self.title(text, '=') {
                    if self.width.is_none() {
                        self.width = Some(text.chars().count());
                    }
                    self.section(title, line, out);
                    return;
                }
            }
            Some(b'_')
                if matches!(
                    self.at,
                    Section::Failures | Section::Coverage | Section::Progress | Section::Instant
                ) =>
            {
                // A separator `_ _ _ _` between frames is not a title.
                if !text.starts_with("_ _ _ _")
                    && let Some(title) = self.title(text, '_')
                    && !title.starts_with("_ ")
                {
                    if self.at == Section::Progress {
                        self.progress.end(out);
                        self.at = Section::Instant;
                    }
                    self.failure(title, line, out);
                    return;
                }
            }
            Some(0xe2) => {
                if let Some(title) = pytest_sugar::title(text) {
                    self.progress.end(out);
                    self.at = Section::Instant;
                    self.failure(title, line, out);
                    return;
                }
            }
            Some(b'T') if pytest_sugar::starts(text) => {
                self.sugar = true;
                self.section("test session starts", line, out);
                return;
            }
            Some(b'R') if pytest_sugar::results(text) => {
                self.end_section(out);
                self.end_list(out);
                self.ended = true;
                self.at = Section::Results;
            }
            Some(b'!') if self.title(text, '!').is_some() => {
                self.end_section(out);
                self.bad = true;
                self.at = Section::Other;
                out.keep(line);
                return;
            }
            Some(b'-') if text.contains(" coverage: ") && self.title(text, '-').is_some() => {
                self.end_section(out);
                self.at = Section::Coverage;
                return;
            }
            Some(b'-') if text.starts_with("-- Docs: ") => return,
            _ => {}
        }
        if self.at == Section::Instant && is_running(text) {
            self.end_failure(out);
            self.at = Section::Progress;
        }
        if matches!(
            self.at,
            Section::Warnings | Section::Coverage | Section::Failures | Section::Instant
        ) && text.ends_with('s')
            && is_summary(text)
        {
            self.other(line, out);
            return;
        }
        match self.at {
            Section::Results => {
                self.bad |= tells_failures(text);
                if !text.is_empty() {
                    keep_cut(line, MAX_LINE_BYTES, out);
                }
            }
            Section::Before | Section::Progress => {
                if is_summary(text) {
                    self.other(line, out);
                } else if self.sugar && pytest_untitled::is_last(text) {
                    self.untitled(line, out);
                } else {
                    self.bad |= text.starts_with("ERROR: ") || text.starts_with("INTERNALERROR> ");
                    self.progress.line(line, out);
                }
            }
            Section::Failures | Section::Instant => match &mut self.failure {
                Some(failure) => match self.briefs.sink().filter(|_| self.brief) {
                    Some(mut sink) => failure.line(line, &mut sink),
                    None => failure.line(line, out),
                },
                None => self.untitled(line, out),
            },
            Section::Passes => {}
            Section::Warnings => self.warning(line, out),
            Section::Coverage => self.coverage(line, out),
            Section::List => self.listed(line, out),
            Section::Other | Section::After => self.other(line, out),
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        if !self.ended {
            self.progress.broke_off(out);
        }
        self.end_section(out);
        self.end_list(out);
        let understood = self.sections > 0 || self.ended || self.progress.understood();
        if !understood || (end.failed() && !self.bad && self.ended) {
            return FilterConfidence::Fallback;
        }
        if self.ended {
            FilterConfidence::Full
        } else {
            FilterConfidence::Partial
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn title_is_the_text_between_the_signs(text in "(={0,3}|―{0,3}) ?[ =―aä]{0,3} ?(={0,3}|―{0,3})", sign in "[=―]") {
            let sign = sign.chars().next().unwrap_or_default();
            let bounded = text.starts_with(sign) && text.ends_with(sign);
            let inner = text.trim_matches(sign);
            let title = inner.strip_prefix(' ').and_then(|inner| inner.strip_suffix(' '));
            let expect = title.filter(|title| bounded && !title.is_empty());
            prop_assert_eq!(rule(&text, sign), expect);
        }
    }
}
