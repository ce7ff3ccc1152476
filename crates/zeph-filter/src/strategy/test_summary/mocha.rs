//! The format of Mocha: a tree of groups and tests, the totals, and the failures with number, group names and
//! message.

use super::super::excerpt::Excerpt;
use super::coverage;
use super::failures::Failures;
use super::js_failure::is_preamble;
use super::{ExitInfo, FilterConfidence, Limits, Line, OwnedLine, Sink, Strategy};
use crate::duration_tokens::without_time;

/// First and last lines of output that is neither a group nor a test.
const FOREIGN: (usize, usize) = (30, 30);
/// Buffered lines that may be names of groups.
const MAX_TITLES: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// While tests run.
    Tree,
    /// After the totals.
    Numbers,
    /// In the group names above a failure.
    Title,
    Failure,
}

struct Mocha {
    failures: Failures,
    at: Section,
    excerpt: Excerpt,
    coverage: coverage::Table,
    /// Lines that are group names if a test follows.
    titles: Vec<OwnedLine>,
    /// The joined names above the current failure. `header` has their lines.
    title: String,
    header: Vec<OwnedLine>,
    results: u64,
    failed: bool,
}

/// Returns true if only Mocha prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    number(text).is_some_and(|what| what == "passing")
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Mocha {
        failures: Failures::new(limits),
        at: Section::Tree,
        excerpt: Excerpt::new(FOREIGN.0, FOREIGN.1),
        coverage: coverage::Table::default(),
        titles: Vec::new(),
        title: String::new(),
        header: Vec::new(),
        results: 0,
        failed: false,
    })
}

/// Parses the counted word from `  50 passing (610ms)`.
fn number(text: &str) -> Option<&str> {
    let text = text.strip_prefix("  ")?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let what = text[digits..].strip_prefix(' ').filter(|_| digits > 0)?;
    let what = without_time(what);
    ["passing", "pending", "failing"]
        .contains(&what)
        .then_some(what)
}

/// Parses the name after `1) `.
fn numbered(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[digits..].strip_prefix(") ").filter(|_| digits > 0)
}

fn indent(text: &str) -> usize {
    text.len() - text.trim_ascii_start().len()
}

impl Mocha {
    fn tree(&mut self, line: Line<'_>, trimmed: &str, out: &mut dyn Sink) {
        let depth = indent(line.text);
        if depth >= 2 {
            if let Some(name) = numbered(trimmed) {
                self.test(depth, out);
                self.failures.name(without_time(name), line, out);
                return;
            }
            if trimmed.starts_with(['✔', '✓', '√']) || trimmed.starts_with("- ") {
                self.test(depth, out);
                return;
            }
            if trimmed.chars().all(|c| matches!(c, '․' | '.' | '!' | ',')) {
                return;
            }
            if self.titles.len() < MAX_TITLES {
                self.titles.push(line.into());
                return;
            }
        }
        self.no_titles(0, out);
        self.excerpt.line(line, out);
    }

    /// Processes a test at `depth`. The preceding lines with decreasing depth are its groups.
    fn test(&mut self, depth: usize, out: &mut dyn Sink) {
        let mut above = depth;
        let mut groups = 0;
        for held in self.titles.iter().rev() {
            let depth = indent(&held.text);
            if depth >= above {
                break;
            }
            above = depth;
            groups += 1;
        }
        self.no_titles(groups, out);
    }

    /// Treats the buffered lines, except the last `groups`, as foreign output.
    fn no_titles(&mut self, groups: usize, out: &mut dyn Sink) {
        let foreign = self.titles.len().saturating_sub(groups);
        for held in self.titles.drain(..foreign) {
            self.excerpt.line(held.line(), out);
        }
        self.titles.clear();
    }

    /// Processes a line of the names above a failure. The last name ends with a colon.
    fn title(&mut self, line: Line<'_>, name: &str, out: &mut dyn Sink) {
        let last = name.strip_suffix(':');
        if !self.title.is_empty() {
            self.title.push_str(" > ");
        }
        self.title.push_str(last.unwrap_or(name));
        self.header.push(line.into());
        self.at = Section::Title;
        if last.is_some() || self.header.len() > 30 {
            self.headed(out);
        }
    }

    fn headed(&mut self, out: &mut dyn Sink) {
        if self.at != Section::Title {
            return;
        }
        self.at = Section::Failure;
        self.failures.begin(&self.title, out);
        for held in self.header.drain(..) {
            out.keep(held.line());
        }
        self.title.clear();
    }

    fn end(&mut self, out: &mut dyn Sink) {
        self.headed(out);
        self.failures.end(out);
        self.no_titles(0, out);
        self.excerpt.flush(out);
    }
}

impl Strategy for Mocha {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        let trimmed = text.trim_ascii();
        if trimmed.is_empty() || is_preamble(text) {
            return;
        }
        if let Some(what) = number(text) {
            if what == "passing" {
                self.end(out);
            }
            self.failed |= what == "failing";
            self.at = Section::Numbers;
            self.results += 1;
            out.keep(line);
            return;
        }
        if self.at != Section::Tree
            && let Some(name) = text.strip_prefix("  ").and_then(numbered)
        {
            self.headed(out);
            self.failures.end(out);
            self.title.clear();
            self.title(line, name, out);
            return;
        }
        if self.coverage.line(line, out) {
            return;
        }
        match self.at {
            Section::Tree => self.tree(line, trimmed, out),
            Section::Title => self.title(line, trimmed, out),
            Section::Failure => self.failures.line(line, out),
            Section::Numbers => self.excerpt.line(line, out),
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.end(out);
        let failures = self.failures.any();
        self.failures.finish(out);
        match self.results {
            0 => FilterConfidence::Partial,
            _ if end.failed() && !failures && !self.failed => FilterConfidence::Fallback,
            _ => FilterConfidence::Full,
        }
    }
}
