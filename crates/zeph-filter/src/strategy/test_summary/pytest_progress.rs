//! The progress lines of pytest: a sign or a line per test.

use std::collections::VecDeque;

use memchr::{memchr, memchr2, memrchr};

use super::super::excerpt::Excerpt;
use super::pytest_sugar;
use crate::line::{Line, OwnedLine, Sink};

/// Lines with failures, for an interrupted session; the last ones are retained.
const MAX_HELD: usize = 60;
/// First and last lines with an unknown form.
const FOREIGN: (usize, usize) = (10, 15);

/// Processes the lines before the first section.
#[derive(Debug)]
pub(super) struct Progress {
    foreign: Excerpt,
    /// Lines with failures.
    failed: VecDeque<OwnedLine>,
    /// The last line about a test.
    last: Option<OwnedLine>,
    tests: bool,
    /// True if a list names the failures.
    told: bool,
    /// True after a warning of Python: its source follows.
    warned: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            foreign: Excerpt::new(FOREIGN.0, FOREIGN.1),
            failed: VecDeque::new(),
            last: None,
            tests: false,
            told: false,
            warned: false,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// A line about the session that is not needed.
    Header,
    /// The number of tests.
    Count,
    Running,
    Failed,
    Foreign,
}

const HEADERS: &[&str] = &[
    "platform ",
    "cachedir: ",
    "rootdir: ",
    "configfile: ",
    "testpaths: ",
    "plugins: ",
    "asyncio: ",
    "hypothesis profile ",
    "created: ",
    "initialized: ",
    "scheduling tests via ",
    "collecting ",
    "timeout: ",
    "timeout method: ",
    "timeout func_only: ",
    "benchmark: ",
    "django: ",
    "metadata: ",
    "bringing up nodes",
    "gw0 ",
    "Using --random",
    "run-last-failure: ",
    "inifile: ",
    "cov: ",
];

/// Extensions of files with tests. An extension earlier in this list has priority over the position in the
/// line.
const ENDINGS: [&str; 3] = [".py", ".rst", ".txt"];

/// The bytes that are signs of tests: passed, failed, error, skipped, expected to fail, …
const SIGNS: [bool; 256] = {
    let (mut table, signs, mut at) = ([false; 256], b".FEsxXRuU,-", 0);
    while at < signs.len() {
        table[signs[at] as usize] = true;
        at += 1;
    }
    table
};

/// The text before ` [ 12%]` at the end of a line.
fn before_percent(text: &str) -> &str {
    match text.ends_with("%]").then(|| memrchr(b'[', text.as_bytes())) {
        Some(Some(at)) => text[..at].trim_ascii_end(),
        _ => text,
    }
}

/// Parses the signs of tests, and returns whether one failed; `None` if another character occurs.
fn signs(text: &str) -> Option<bool> {
    let first = *text.as_bytes().first()?;
    if !SIGNS[usize::from(first)] {
        return None;
    }
    let body = before_percent(text).as_bytes();
    let all = !body.is_empty() && body.iter().all(|sign| SIGNS[usize::from(*sign)]);
    all.then(|| memchr2(b'F', b'E', body).is_some())
}

/// The start of the file extension in the first word of `body`.
fn file(body: &str) -> Option<usize> {
    let word = memchr(b' ', body.as_bytes()).map_or(body, |blank| &body[..blank]);
    // Most lines have none of them there.
    ENDINGS.iter().find_map(|ending| word.find(ending))?;
    let first = ENDINGS.iter().find_map(|ending| body.find(ending));
    first.filter(|at| *at < word.len())
}

fn kind(text: &str) -> Kind {
    if let Some(failed) = signs(text).or_else(|| pytest_sugar::progress(text)) {
        return if failed { Kind::Failed } else { Kind::Running };
    }
    if text.starts_with("collected ") {
        return Kind::Count;
    }
    if (text.ends_with(']') && text.contains(" workers ["))
        || HEADERS.iter().any(|start| text.starts_with(start))
    {
        return Kind::Header;
    }
    // The form `[gw0] [ 12%] PASSED tests/test_a.py::test_b`.
    if let Some(rest) = text.strip_prefix("[gw")
        && let Some((_, rest)) = rest.split_once("%] ")
    {
        return verdict(rest.split(' ').next().unwrap_or_default());
    }
    // The forms `tests/test_a.py ..F.` and `tests/test_a.py::test_b PASSED`.
    let body = before_percent(text);
    let Some(file) = file(body) else {
        return Kind::Foreign;
    };
    let rest = &body[file..];
    let Some(last) = memrchr(b' ', rest.as_bytes()) else {
        // The name of a test that has begun.
        return if rest.contains("::") {
            Kind::Running
        } else {
            Kind::Foreign
        };
    };
    let (id, last) = (&rest[..last], &rest[last + 1..]);
    if id.contains("::") {
        return verdict(reasoned(rest).unwrap_or(last));
    }
    match signs(last) {
        Some(true) => Kind::Failed,
        Some(false) => Kind::Running,
        None => Kind::Foreign,
    }
}

/// The verdict before a reason: `test_b SKIPPED (no network)`.
fn reasoned(rest: &str) -> Option<&'static str> {
    memchr(b'(', rest.as_bytes())?;
    [
        (" SKIPPED (", "SKIPPED"),
        (" XFAIL (", "XFAIL"),
        (" XPASS (", "XPASS"),
    ]
    .into_iter()
    .find_map(|(stated, word)| rest.find(stated).map(|_| word))
}

/// Returns true for a line about tests that have run. A single `E` is an empty line of a message.
pub(super) fn is_running(text: &str) -> bool {
    text != "E" && matches!(kind(text), Kind::Running | Kind::Failed)
}

fn verdict(word: &str) -> Kind {
    match word {
        "PASSED" | "SKIPPED" | "XFAIL" | "XPASS" | "RERUN" | "SUBPASS" | "SUBPASSED" => {
            Kind::Running
        }
        "FAILED" | "ERROR" | "SUBFAIL" | "SUBFAILED" => Kind::Failed,
        _ => Kind::Foreign,
    }
}

impl Progress {
    /// Processes the next line.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if text.is_empty() {
            self.warned = false;
            return;
        }
        match kind(text) {
            Kind::Header => {}
            Kind::Count => out.keep(line),
            Kind::Running => {
                self.tests = true;
                self.set_last(line);
            }
            Kind::Failed => {
                self.tests = true;
                // The memory of the removed line is reused for the new one.
                let is_full = self.failed.len() >= MAX_HELD;
                let mut held = is_full.then(|| self.failed.pop_front()).flatten();
                OwnedLine::put(&mut held, line);
                self.failed.extend(held);
                self.set_last(line);
            }
            Kind::Foreign => {
                self.set_last(line);
                self.foreign.line(line, out);
            }
        }
    }

    fn set_last(&mut self, line: Line<'_>) {
        match &mut self.last {
            Some(last) => {
                last.number = line.number;
                last.text.clear();
                last.text
                    .push_str(&line.text[..line.text.floor_char_boundary(2000)]);
            }
            None => self.last = Some(line.into()),
        }
    }

    /// Records that a list names the failures.
    pub(super) fn told(&mut self) {
        self.told = true;
    }

    /// Returns true if a line about a test was seen.
    pub(super) fn understood(&self) -> bool {
        self.tests
    }

    /// Ends the progress at the first section.
    pub(super) fn end(&mut self, out: &mut dyn Sink) {
        self.foreign.flush(out);
    }

    /// Shows the failures so far and the last line of a session that has no end.
    pub(super) fn broke_off(&mut self, out: &mut dyn Sink) {
        let last = self.last.take().filter(|_| self.tests);
        if !self.told {
            for held in self.failed.drain(..) {
                if last.as_ref().is_none_or(|last| last.number != held.number) {
                    out.keep(held.line());
                }
            }
        }
        self.foreign.flush(out);
        if let Some(last) = last
            && kind(&last.text) != Kind::Foreign
        {
            out.keep(last.line());
        }
    }
}
