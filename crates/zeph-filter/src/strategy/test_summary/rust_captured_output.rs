//! What a Rust program printed before it failed: its panics whole, the rest in excerpts.

use super::super::excerpt::{Excerpt, keep_cut};
use super::rust_backtrace::Trace;
use crate::find::Find as _;
use crate::line::{Line, OwnedLine, Sink};

/// Lines of a panic's message, or after an error.
const MESSAGE: usize = 40;
const BRIEF_MESSAGE: usize = 6;
/// Lines of messages in one text; beyond them a message has [`BRIEF_MESSAGE`] lines.
const ALL_MESSAGES: usize = 160;
/// Bytes of a line of a message.
const MAX_LINE_BYTES: usize = 4000;
const MAX_BRIEF_LINE_BYTES: usize = 600;

/// Takes the lines of one text.
#[derive(Debug)]
pub(super) struct Captured {
    /// A line that names what follows; it goes where a panic names it too.
    header: Option<OwnedLine>,
    name: String,
    excerpt: Excerpt,
    tail: usize,
    trace: Option<Trace>,
    place: String,
    /// Lines of the current message that may still come.
    message: usize,
    spent: usize,
    frames: usize,
    brief: bool,
    /// Whether the header goes when the first thing behind it is a panic that names the test.
    repeats: bool,
    told: bool,
}

impl Captured {
    /// Of a text of which `head` lines at the start and `tail` lines before each message stay, and
    /// `frames` frames of each backtrace.
    pub(super) fn new(head: usize, tail: usize, frames: usize) -> Self {
        Self {
            header: None,
            name: String::new(),
            excerpt: Excerpt::new(head, tail),
            tail,
            trace: None,
            place: String::new(),
            message: 0,
            spent: 0,
            frames,
            brief: false,
            repeats: false,
            told: false,
        }
    }

    /// Of what a failing test printed: much, or, where there are many such tests, its message and
    /// little else.
    pub(super) fn of_failure(brief: bool, frames: usize) -> Self {
        let mut captured = match brief {
            true => Self::new(0, 2, frames.min(2)),
            false => Self::new(3, 8, frames),
        };
        captured.brief = brief;
        captured
    }

    /// Begins with `header`, a line about the test `name`; `repeats`: it goes when a panic names the
    /// test too.
    pub(super) fn headed(mut self, header: Line<'_>, name: &str, repeats: bool) -> Self {
        self.header = Some(header.into());
        self.repeats = repeats;
        self.name = name.to_owned();
        self
    }

    /// Takes the next line.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text.trim_ascii_start();
        if let Some(trace) = &mut self.trace {
            if trace.line(line.number, text, out) {
                return;
            }
            trace.finish(out);
            self.trace = None;
            self.message = 0;
        }
        if text.is_empty() {
            return;
        }
        match text.as_bytes()[0] {
            b's' if text == "stack backtrace:" => {
                self.trace = Some(Trace::start(self.frames, &self.place));
                return;
            }
            b'n' if is_backtrace_hint(text) => {
                self.message = 0;
                return;
            }
            b't' if let Some((name, place)) = panicked(text) => {
                self.place.clear();
                self.place.push_str(place);
                self.begin(name == self.name, out);
                out.keep(line);
                return;
            }
            b't' if is_verdict(text) => {
                // The test prints what the harness does.
                self.show_header(out);
                out.keep(line);
                return;
            }
            b'e' | b'E' | b'n' | b'(' if is_statement(text) => {
                if self.message == 0 {
                    self.begin(false, out);
                }
                self.message_line(line, out);
                return;
            }
            b'|' | b'F' if text == "|" || is_explain_hint(text) => return,
            _ => {}
        }
        if self.message > 0 {
            self.message_line(line, out);
        } else {
            if !self.brief {
                self.show_header(out);
            }
            self.excerpt.line(line, out);
        }
    }

    /// The text has ended.
    pub(super) fn finish(&mut self, out: &mut dyn Sink) {
        if let Some(mut trace) = self.trace.take() {
            trace.finish(out);
        }
        if !self.told {
            self.show_header(out);
        }
        self.end_excerpt(out);
        self.message = 0;
    }

    /// A message begins; `named`: its first line names the test.
    fn begin(&mut self, named: bool, out: &mut dyn Sink) {
        if named && self.repeats {
            self.header = None;
        }
        self.show_header(out);
        self.told = true;
        self.end_excerpt(out);
        let few = self.brief || self.spent > ALL_MESSAGES;
        self.message = if few { BRIEF_MESSAGE } else { MESSAGE };
    }

    fn message_line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.message -= 1;
        self.spent += 1;
        let most = if self.brief {
            MAX_BRIEF_LINE_BYTES
        } else {
            MAX_LINE_BYTES
        };
        keep_cut(line, most, out);
        if self.message == 0 {
            self.excerpt = Excerpt::new(0, self.tail);
        }
    }

    fn end_excerpt(&mut self, out: &mut dyn Sink) {
        // What is printed besides a message has to give way where there are many.
        if self.brief && self.told {
            self.excerpt.forget();
        } else {
            self.excerpt.flush(out);
        }
    }

    fn show_header(&mut self, out: &mut dyn Sink) {
        if let Some(header) = self.header.take() {
            out.keep(header.line());
        }
    }
}

/// The thread and the place of `thread 'NAME' (ID) panicked at PLACE:`, as it is today, without the
/// process's number, and as it was before Rust 1.73: `thread 'NAME' panicked at 'MESSAGE', PLACE`.
pub(super) fn panicked(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("thread ")?;
    let (thread, place) = rest.cut_at(" panicked at ")?;
    let name = match thread.strip_prefix('\'') {
        Some(name) => name.rsplit_once('\'').map_or(name, |(name, _)| name),
        None => thread,
    };
    Some((name, place.strip_suffix(':').unwrap_or(place)))
}

/// How to see a backtrace, or more of it.
pub(super) fn is_backtrace_hint(text: &str) -> bool {
    text.starts_with("note: run with `RUST_BACKTRACE=")
        || text.starts_with("note: Some details are omitted, run with `RUST_BACKTRACE=")
        || text.starts_with("note: run with `RUST_BACKTRACE")
}

pub(super) fn is_explain_hint(text: &str) -> bool {
    text.starts_with("For more information about an error, try `rustc --explain")
        || text.starts_with("For more information about this error, try `rustc --explain")
}

fn is_verdict(text: &str) -> bool {
    text.starts_with("test result: ")
        || (text.starts_with("test ") && text.ends_with(" ... FAILED"))
}

/// What a test or the harness says of a failure without a panic.
fn is_statement(text: &str) -> bool {
    text.starts_with("error:")
        || text.starts_with("error[")
        || text.starts_with("Error:")
        || text.starts_with("note: ")
        || (text.starts_with("(test ") && text.ends_with(')'))
}
