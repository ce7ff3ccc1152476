//! What pytest prints while tests run: a sign or a line a test.

use std::collections::VecDeque;

use memchr::{memchr, memchr2, memrchr};

use super::super::excerpt::Excerpt;
use super::prefix_set::PrefixSet;
use super::pytest_sugar;
use crate::find::Find as _;
use crate::line::{Line, OwnedLine, Sink};

/// Lines that tell of failures, for a session that breaks off; the last ones stay.
const MAX_HELD: usize = 60;
/// Lines that have another form.
const FOREIGN: (usize, usize) = (10, 15);

/// Takes the lines before the first section.
#[derive(Debug)]
pub(super) struct Progress {
    foreign: Excerpt,
    /// Lines that tell of failures.
    failed: VecDeque<OwnedLine>,
    /// The last line of all.
    last: Option<OwnedLine>,
    tests: bool,
    /// Others tell of the failures.
    told: bool,
    /// A warning of Python was seen: its source follows.
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
    /// About the session, of no use.
    Header,
    /// How many tests there are.
    Count,
    Running,
    Failed,
    Foreign,
}

static HEADERS: PrefixSet = PrefixSet::new(&[
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
]);

/// Endings of files with tests; one that comes first here counts, wherever in a line it stands.
const ENDINGS: [&str; 3] = [".py", ".rst", ".txt"];

/// Which bytes are signs of tests: passed, failed, error, skipped, expected to fail, …
const SIGNS: [bool; 256] = {
    let (mut table, signs, mut at) = ([false; 256], b".FEsxXRuU,-", 0);
    while at < signs.len() {
        table[signs[at] as usize] = true;
        at += 1;
    }
    table
};

/// What is before ` [ 12%]`, where that is the end.
fn before_percent(text: &str) -> &str {
    match text.ends_with("%]").then(|| memrchr(b'[', text.as_bytes())) {
        Some(Some(at)) => text[..at].trim_ascii_end(),
        _ => text,
    }
}

/// Of signs of tests, whether one failed.
fn signs(text: &str) -> Option<bool> {
    let first = *text.as_bytes().first()?;
    if !SIGNS[usize::from(first)] {
        return None;
    }
    let body = before_percent(text).as_bytes();
    let all = !body.is_empty() && body.iter().all(|sign| SIGNS[usize::from(*sign)]);
    all.then(|| memchr2(b'F', b'E', body).is_some())
}

/// Where the ending of a test's file begins in the first word of `body`.
fn file(body: &str) -> Option<usize> {
    let word = memchr(b' ', body.as_bytes()).map_or(body, |blank| &body[..blank]);
    // Most lines have none of them there.
    ENDINGS.iter().find_map(|ending| word.place_of(ending))?;
    let first = ENDINGS.iter().find_map(|ending| body.place_of(ending));
    first.filter(|at| *at < word.len())
}

fn kind(text: &str) -> Kind {
    if let Some(failed) = signs(text).or_else(|| pytest_sugar::progress(text)) {
        return if failed { Kind::Failed } else { Kind::Running };
    }
    if text.starts_with("collected ") {
        return Kind::Count;
    }
    if (text.ends_with(']') && text.place_of(" workers [").is_some()) || HEADERS.begin(text) {
        return Kind::Header;
    }
    // `[gw0] [ 12%] PASSED tests/test_a.py::test_b`
    if let Some(rest) = text.strip_prefix("[gw")
        && let Some((_, rest)) = rest.cut_at("%] ")
    {
        return verdict(rest.split(' ').next().unwrap_or_default());
    }
    // `tests/test_a.py ..F.` and `tests/test_a.py::test_b PASSED`
    let body = before_percent(text);
    let Some(file) = file(body) else {
        return Kind::Foreign;
    };
    let rest = &body[file..];
    let Some(last) = memrchr(b' ', rest.as_bytes()) else {
        // The name of a test that has begun.
        return if rest.place_of("::").is_some() {
            Kind::Running
        } else {
            Kind::Foreign
        };
    };
    let (id, last) = (&rest[..last], &rest[last + 1..]);
    if id.place_of("::").is_some() {
        return verdict(reasoned(rest).unwrap_or(last));
    }
    match signs(last) {
        Some(true) => Kind::Failed,
        Some(false) => Kind::Running,
        None => Kind::Foreign,
    }
}

/// The verdict behind which a reason stands: `test_b SKIPPED (no network)`.
fn reasoned(rest: &str) -> Option<&'static str> {
    memchr(b'(', rest.as_bytes())?;
    [
        (" SKIPPED (", "SKIPPED"),
        (" XFAIL (", "XFAIL"),
        (" XPASS (", "XPASS"),
    ]
    .into_iter()
    .find_map(|(stated, word)| rest.place_of(stated).map(|_| word))
}

/// Whether a line tells of tests that have run; a lone `E` is an empty line of a message.
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
    /// The next line.
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
                // The memory of the line that goes is used for the one that comes.
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

    /// A list names what failed.
    pub(super) fn told(&mut self) {
        self.told = true;
    }

    /// Whether tests were seen.
    pub(super) fn understood(&self) -> bool {
        self.tests
    }

    /// The first section begins.
    pub(super) fn end(&mut self, out: &mut dyn Sink) {
        self.foreign.flush(out);
    }

    /// The session has no end: what failed so far, and where it was.
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
