//! The format of `go test`, with and without `-v`.
//!
//! A verdict is `--- FAIL: Name (0.00s)`, indented by four spaces per level of subtests. The output of a test
//! is below its verdict, or above it with `-v`. `ok`, `FAIL` and `?` end a package.

use std::collections::BTreeMap;

use memchr::memchr;

use super::super::excerpt::{Excerpt, keep_cut};
use super::go_trace::Trace;
use super::{ExitInfo, FilterConfidence, Limits, Line, OwnedLine, Sink, Strategy};

/// First and last lines of output that belongs to no known test.
const FOREIGN: (usize, usize) = (12, 12);
/// Output lines of a failing test, and of each failing test beyond `max_failures`.
const SAID: usize = 30;
const SAID_BRIEF: usize = 6;
/// Tests whose output is buffered until their verdict, and the bytes of that output.
const MAX_TESTS: usize = 2000;
const MAX_BYTES: usize = 1024 * 1024;
/// Passed packages that are shown.
const MAX_OK: usize = 12;
const MAX_LINE_BYTES: usize = 2000;

struct Go {
    limits: Limits,
    /// True after `=== RUN`: the output of a test precedes its verdict.
    verbose: bool,
    /// The test that prints the current lines.
    current: Option<String>,
    /// Output of tests that have no verdict yet.
    said: BTreeMap<String, Vec<OwnedLine>>,
    bytes: usize,
    /// Lines that are still shown below the verdict of a failing test; `None` elsewhere.
    shown: Option<usize>,
    /// True below the verdict of a test that did not fail.
    passed: bool,
    failures: usize,
    passing: usize,
    foreign: Excerpt,
    trace: Trace,
    /// True after the line that ends a package.
    ended: bool,
    bad: bool,
}

/// Returns true if only `go test` prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    text.starts_with("=== RUN   ")
        || text.starts_with("--- FAIL: ")
        || text.starts_with("--- PASS: ")
        || package(text).is_some()
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Go {
        limits,
        verbose: false,
        current: None,
        said: BTreeMap::new(),
        bytes: 0,
        shown: None,
        passed: false,
        failures: 0,
        passing: 0,
        foreign: Excerpt::new(FOREIGN.0, FOREIGN.1),
        trace: Trace::new(limits.truncate_stack_trace),
        ended: false,
        bad: false,
    })
}

/// The first word of a line that ends a package: `ok`, `FAIL`, `?`, or an empty one for a package without
/// tests.
fn package(text: &str) -> Option<&str> {
    if !matches!(text.as_bytes(), [b'o' | b'F' | b'?', ..])
        && !text.starts_with(|c: char| c.is_ascii_whitespace())
    {
        return None;
    }
    let tab = memchr(b'\t', text.as_bytes())?;
    let (word, rest) = (&text[..tab], &text[tab + 1..]);
    let word = word.trim_ascii_end();
    let ends = match word {
        "ok" | "FAIL" | "?" => !rest.is_empty() && !rest.starts_with('\t'),
        // The compiler also indents its notes with a tab.
        "" => rest.contains("\tcoverage: ") || rest.ends_with("\t[no test files]"),
        _ => false,
    };
    ends.then_some(word)
}

/// Parses verdict and name from `    --- FAIL: TestA/b (0.00s)`.
fn verdict(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_ascii_start().strip_prefix("--- ")?;
    let (word, rest) = rest.split_once(": ")?;
    let (name, time) = rest.rsplit_once(" (")?;
    let timed = time.ends_with("s)") && time.starts_with(|c: char| c.is_ascii_digit());
    (timed && matches!(word, "FAIL" | "PASS" | "SKIP" | "BENCH")).then_some((word, name))
}

/// Parses the name from `=== RUN   TestA` or `=== CONT  TestA`.
fn begins(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("=== ")?;
    ["RUN   ", "CONT  ", "PAUSE ", "NAME  "]
        .iter()
        .find_map(|word| rest.strip_prefix(word))
}

impl Go {
    fn begin(&mut self, text: &str, name: &str) {
        self.verbose = true;
        self.end_shown();
        self.current = match text.starts_with("=== PAUSE") || name.is_empty() {
            true => None,
            false => Some(name.to_owned()),
        };
        if text.starts_with("=== RUN") && self.said.len() < MAX_TESTS {
            self.said.entry(name.to_owned()).or_default();
        }
    }

    fn end_shown(&mut self) {
        self.shown = None;
        self.passed = false;
    }

    fn verdict(&mut self, line: Line<'_>, word: &str, name: &str, out: &mut dyn Sink) {
        self.end_shown();
        self.current = None;
        let said = self.said.remove(name).unwrap_or_default();
        self.bytes -= said
            .iter()
            .map(|held| held.text.len())
            .sum::<usize>()
            .min(self.bytes);
        if word != "FAIL" {
            // The reason for a skipped test is below its verdict. It is omitted.
            self.passed = true;
            return;
        }
        self.bad = true;
        self.failures += 1;
        self.foreign.flush(out);
        keep_cut(line, MAX_LINE_BYTES, out);
        let most = self.most();
        let left = said.len().saturating_sub(most);
        for held in said.iter().take(most / 2) {
            out.keep(held.line());
        }
        if left > 0 {
            out.say(line.number, &format!("[… {left} lines …]"));
        }
        for held in said.iter().skip(most / 2 + left) {
            out.keep(held.line());
        }
        self.shown = Some(most);
    }

    fn most(&self) -> usize {
        if self.failures > self.limits.max_failures {
            SAID_BRIEF
        } else {
            SAID
        }
    }

    fn ended(&mut self, line: Line<'_>, word: &str, out: &mut dyn Sink) {
        self.broke_off(out);
        self.foreign.flush(out);
        self.ended = true;
        match word {
            "FAIL" => {
                self.bad = true;
                out.keep(line);
            }
            "ok" => {
                self.passing += 1;
                if self.passing <= MAX_OK {
                    out.keep(line);
                } else if self.passing == MAX_OK + 1 {
                    out.say(line.number, "[… more packages that are `ok` …]");
                }
            }
            _ => {}
        }
    }

    /// Shows the output of the tests without a verdict: they were running when the package ended.
    fn broke_off(&mut self, out: &mut dyn Sink) {
        self.end_shown();
        self.current = None;
        self.bytes = 0;
        for (name, said) in std::mem::take(&mut self.said) {
            let number = said.first().map_or(0, |held| held.number);
            out.say(number, &format!("=== RUN   {name}"));
            for held in said.iter().rev().take(SAID_BRIEF).rev() {
                out.keep(held.line());
            }
        }
    }

    /// Processes a line of output of the current test or of an unknown source.
    fn text(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if let Some(left) = &mut self.shown {
            if *left > 0 {
                *left -= 1;
                keep_cut(line, MAX_LINE_BYTES, out);
            } else if is_said(line.text) {
                // The line has the place of a message.
                self.foreign.line(line, out);
            }
            return;
        }
        if self.passed && (line.text.starts_with(' ') || self.verbose) {
            return;
        }
        if let Some(name) = &self.current {
            let length = line.text.len().min(MAX_LINE_BYTES);
            if self.bytes + length > MAX_BYTES {
                return;
            }
            if let Some(said) = self.said.get_mut(name) {
                self.bytes += length;
                said.push(OwnedLine {
                    number: line.number,
                    text: line.text[..line.text.floor_char_boundary(length)].to_owned(),
                });
                return;
            }
        }
        self.foreign.line(line, out);
    }
}

/// Returns true for a message of the `testing` package: `    a_test.go:12: …`.
fn is_said(text: &str) -> bool {
    text.trim_ascii_start()
        .split_once(".go:")
        .is_some_and(|(file, rest)| {
            !file.contains(' ') && rest.starts_with(|c: char| c.is_ascii_digit())
        })
}

impl Strategy for Go {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text.trim_ascii_end();
        let line = Line { text, ..line };
        if self.trace.line(line, out) {
            self.bad = true;
            return;
        }
        match text.as_bytes() {
            [] => {}
            [b'=', ..] if let Some(name) = begins(text) => self.begin(text, name),
            [b'-' | b' ', ..] if let Some((word, name)) = verdict(text) => {
                self.verdict(line, word, name, out);
            }
            _ if let Some(word) = package(text) => self.ended(line, word, out),
            [b'P' | b'F', ..] if matches!(text, "PASS" | "FAIL") => {
                self.end_shown();
                self.current = None;
                self.ended = true;
                if text == "FAIL" {
                    self.bad = true;
                    self.foreign.flush(out);
                }
            }
            [b'#', b' ', ..] => {
                self.end_shown();
                self.foreign.flush(out);
                self.bad = true;
                out.keep(line);
            }
            [b'g', ..] if text.starts_with("goos: ") || text.starts_with("goarch: ") => {}
            [b'p', ..] if text.starts_with("pkg: ") => {}
            [b'B', ..] if text.starts_with("Benchmark") => {
                // A row of results has a tab. A line with only the name precedes it.
                if text.contains('\t') {
                    out.keep(line);
                }
            }
            [b'c', ..] if text.starts_with("coverage: ") => {
                self.end_shown();
                self.current = None;
                out.keep(line);
            }
            [b'e', ..] if text.starts_with("exit status ") => {
                self.end_shown();
                out.keep(line);
            }
            _ if is_compile_error(text) => {
                self.bad = true;
                self.foreign.flush(out);
                keep_cut(line, MAX_LINE_BYTES, out);
            }
            _ => self.text(line, out),
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.trace.finish(out);
        self.broke_off(out);
        self.foreign.flush(out);
        if !self.ended && !self.bad && !self.verbose || end.failed() && !self.bad {
            return FilterConfidence::Fallback;
        }
        if self.ended {
            FilterConfidence::Full
        } else {
            FilterConfidence::Partial
        }
    }
}

/// Returns true for a diagnostic of the compiler or of `go vet`, which starts in the first column:
/// `cart/cart.go:10:9: …`.
fn is_compile_error(text: &str) -> bool {
    let text = text.strip_prefix("vet: ").unwrap_or(text);
    if text.starts_with([' ', '\t']) {
        return false;
    }
    let blank = memchr(b' ', text.as_bytes()).unwrap_or(text.len());
    let Some(at) = text[..blank].find(".go:") else {
        return false;
    };
    let rest = &text[at + ".go:".len()..];
    rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(": ")
}
