//! The Test Anything Protocol, <https://testanything.org/tap-version-14-specification.html>: `ok` and `not ok`,
//! with details in YAML between `---` and `...`.

use super::super::excerpt::Excerpt;
use super::failures::Failures;
use super::js_failure::{is_preamble, own_frame};
use super::{ExitInfo, FilterConfidence, Limits, Line, Sink, Strategy};

/// First and last lines of output that is not part of the protocol.
const FOREIGN: (usize, usize) = (30, 30);
/// The starts of YAML lines that are omitted, because they do not help to fix a failure.
const KNOWN: &[&str] = &[
    "duration_ms:",
    "failureType:",
    "signal: ~",
    "code: 'ERR_ASSERTION'",
    "code: 'ERR_TEST_FAILURE'",
    "operator:",
    "type: 'test'",
    "type: 'suite'",
    "name: 'AssertionError'",
    "severity:",
];

struct Tap {
    failures: Failures,
    excerpt: Excerpt,
    /// `Some` inside YAML; true if it belongs to a failure.
    yaml: Option<bool>,
    /// The indentation of the YAML.
    depth: usize,
    /// True inside the value of `stack`.
    stack: bool,
    results: u64,
    failed: bool,
}

/// Returns true if only this protocol has such a line.
pub(super) fn recognizes(text: &str) -> bool {
    text.starts_with("TAP version ") || text.starts_with("# Subtest: ")
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Tap {
        failures: Failures::new(limits),
        excerpt: Excerpt::new(FOREIGN.0, FOREIGN.1),
        yaml: None,
        depth: 0,
        stack: false,
        results: 0,
        failed: false,
    })
}

/// Parses the status (true if failed) and the text after `ok` or `not ok`.
fn result(text: &str) -> Option<(bool, &str)> {
    let (failed, rest) = match text.strip_prefix("not ok") {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix("ok")?),
    };
    let rest = rest
        .strip_prefix(' ')
        .or_else(|| rest.is_empty().then_some(""))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 || rest.starts_with("- ") || rest.is_empty()).then_some((failed, rest))
}

/// Returns true if the result has a ` # SKIP …` directive, or the one for unfinished tests.
fn is_expected(rest: &str) -> bool {
    rest.rsplit_once(" # ").is_some_and(|(_, directive)| {
        let word = directive.split(' ').next().unwrap_or_default();
        word.eq_ignore_ascii_case("todo") || word.eq_ignore_ascii_case("skip")
    })
}

/// Parses the name of a total: `# pass 50`.
fn number(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("# ")?;
    let (what, count) = rest.split_once(' ')?;
    let known = [
        "tests",
        "suites",
        "pass",
        "fail",
        "cancelled",
        "skipped",
        "todo",
        "duration_ms",
        "failures",
        "ok",
        "skip",
    ];
    (known.contains(&what)
        && count
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.'))
    .then_some(rest)
}

impl Tap {
    fn yaml(&mut self, line: Line<'_>, trimmed: &str, of_failure: bool, out: &mut dyn Sink) {
        let depth = indent(line.text);
        if trimmed == "..." && depth <= self.depth {
            self.yaml = None;
            self.stack = false;
            return;
        }
        if !of_failure {
            return;
        }
        if depth <= self.depth {
            self.stack = trimmed.starts_with("stack:");
            if self.stack || KNOWN.iter().any(|start| trimmed.starts_with(start)) {
                return;
            }
        }
        if !self.stack {
            self.failures.line(line, out);
            return;
        }
        // The line gets the form of a stack frame.
        let text = format!("{}at {trimmed}", &line.text[..depth]);
        if own_frame(&text[depth..]) == Some(true) {
            let line = Line {
                text: &text,
                ..line
            };
            self.failures.line(line, out);
        }
    }
}

fn indent(text: &str) -> usize {
    text.len() - text.trim_ascii_start().len()
}

impl Strategy for Tap {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let trimmed = line.text.trim_ascii();
        if trimmed.is_empty() || is_preamble(line.text) {
            return;
        }
        if let Some(of_failure) = self.yaml {
            self.yaml(line, trimmed, of_failure, out);
            return;
        }
        if let Some((failed, rest)) = result(trimmed) {
            self.failures.end(out);
            self.excerpt.flush(out);
            self.results += 1;
            if failed && !is_expected(rest) {
                self.failed = true;
                self.failures.begin(rest, out);
                out.keep(line);
            }
            return;
        }
        if trimmed == "---" {
            self.yaml = Some(self.failures.is_open());
            self.depth = indent(line.text);
            return;
        }
        if let Some(number) = number(trimmed) {
            self.failures.end(out);
            self.excerpt.flush(out);
            if !number.ends_with(" 0") || number == "fail 0" {
                out.keep(line);
            }
            return;
        }
        if trimmed.starts_with("# Subtest: ")
            || trimmed.starts_with("TAP version ")
            || is_plan(trimmed)
        {
            self.failures.end(out);
            return;
        }
        if trimmed.starts_with("Bail out!") {
            self.failed = true;
            self.failures.end(out);
            out.keep(line);
            return;
        }
        let said = trimmed.trim_start_matches(['#', ' ']);
        if self.failures.is_open() {
            self.failures.line(line, out);
        } else if own_frame(said) != Some(false) && !said.is_empty() {
            self.excerpt.line(line, out);
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.excerpt.flush(out);
        self.failures.finish(out);
        match self.results {
            0 => FilterConfidence::Fallback,
            _ if end.failed() && !self.failed => FilterConfidence::Fallback,
            _ => FilterConfidence::Full,
        }
    }
}

/// Returns true for a plan: `1..9`.
fn is_plan(text: &str) -> bool {
    text.strip_prefix("1..")
        .is_some_and(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() > 0)
}
