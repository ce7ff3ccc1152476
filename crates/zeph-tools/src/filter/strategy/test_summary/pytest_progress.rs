//! What pytest prints while tests run: a sign or a line a test.

use std::collections::VecDeque;

use super::super::excerpt::Excerpt;
use super::pytest_sugar;
use crate::filter::find::Find as _;
use crate::filter::line::{Held, Line, Sink};

/// Lines that tell of failures, for a session that breaks off; the last ones stay.
const MOST_HELD: usize = 60;
/// Lines that have another form.
const FOREIGN: (usize, usize) = (10, 15);

/// Takes the lines before the first section.
#[derive(Debug)]
pub(super) struct Progress {
    foreign: Excerpt,
    /// Lines that tell of failures.
    failed: VecDeque<Held>,
    /// The last line of all.
    last: Option<Held>,
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

/// Signs of tests: passed, failed, error, skipped, expected to fail, …
fn signs(text: &str) -> Option<bool> {
    let body = match text.rfind('[') {
        Some(at) if text.ends_with("%]") => text[..at].trim_ascii_end(),
        _ => text,
    };
    let all = !body.is_empty() && body.bytes().all(|sign| b".FEsxXRuU,-".contains(&sign));
    all.then(|| body.contains(['F', 'E']))
}

fn kind(text: &str) -> Kind {
    if let Some(failed) = signs(text) {
        return if failed { Kind::Failed } else { Kind::Running };
    }
    if let Some(failed) = pytest_sugar::progress(text) {
        return if failed { Kind::Failed } else { Kind::Running };
    }
    if text.starts_with("collected ") {
        return Kind::Count;
    }
    if HEADERS.iter().any(|header| text.starts_with(header))
        || (text.contains(" workers [") && text.ends_with(']'))
    {
        return Kind::Header;
    }
    // `[gw0] [ 12%] PASSED tests/test_a.py::test_b`
    if let Some(rest) = text.strip_prefix("[gw")
        && let Some((_, rest)) = rest.cut_at("%] ")
    {
        return verdict(rest.split(' ').next().unwrap_or_default());
    }
    let percent = text.ends_with("%]");
    let body = match text.rfind('[') {
        Some(at) if percent => text[..at].trim_ascii_end(),
        _ => text,
    };
    // `tests/test_a.py ..F.` and `tests/test_a.py::test_b PASSED`
    let file = body
        .place_of(".py")
        .or_else(|| body.place_of(".rst"))
        .or_else(|| body.place_of(".txt"));
    let Some(file) = file.filter(|at| !body[..*at].contains(' ')) else {
        return Kind::Foreign;
    };
    let rest = &body[file..];
    let Some((id, last)) = rest.rsplit_once(' ') else {
        // The name of a test that has begun.
        return if rest.contains("::") {
            Kind::Running
        } else {
            Kind::Foreign
        };
    };
    if id.contains("::") {
        // The reason stands behind it.
        let reasoned = ["SKIPPED", "XFAIL", "XPASS"]
            .into_iter()
            .find(|word| rest.contains(&format!(" {word} (")));
        let last = reasoned.unwrap_or(last);
        return verdict(last);
    }
    match signs(last) {
        Some(true) => Kind::Failed,
        Some(false) => Kind::Running,
        None => Kind::Foreign,
    }
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
                if self.failed.len() >= MOST_HELD {
                    self.failed.pop_front();
                }
                self.failed.push_back(line.into());
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
