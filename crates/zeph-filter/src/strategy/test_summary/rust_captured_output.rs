//! Output of a Rust program that failed: panics in full, other lines in excerpts.

use super::super::excerpt::{Excerpt, keep_cut};
use super::rust_backtrace::Trace;
use crate::line::{Line, OwnedLine, Sink};

/// Lines of a panic's message, or after an error.
const MESSAGE: usize = 40;
const BRIEF_MESSAGE: usize = 6;
/// Message lines in one text. After this limit a message has [`BRIEF_MESSAGE`] lines.
const ALL_MESSAGES: usize = 160;
/// Bytes of a line of a message.
const MAX_LINE_BYTES: usize = 4000;
const MAX_BRIEF_LINE_BYTES: usize = 600;

/// Processes the lines of one text.
#[derive(Debug)]
pub(super) struct Captured {
    /// The line that names the text. It may be omitted if a panic contains the name.
    header: Option<OwnedLine>,
    name: String,
    excerpt: Excerpt,
    tail: usize,
    trace: Option<Trace>,
    place: String,
    /// Remaining lines of the current message.
    message: usize,
    spent: usize,
    frames: usize,
    brief: bool,
    /// True if the header is omitted when the text starts with a panic that names the test.
    repeats: bool,
    told: bool,
}

impl Captured {
    /// Creates a parser that retains `head` lines at the start, `tail` lines before each message, and `frames`
    /// frames per backtrace.
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

    /// Creates a parser for the output of a failing test. `brief`: little besides the message is retained.
    pub(super) fn of_failure(brief: bool, frames: usize) -> Self {
        let mut captured = match brief {
            true => Self::new(0, 2, frames.min(2)),
            false => Self::new(3, 8, frames),
        };
        captured.brief = brief;
        captured
    }

    /// Sets `header`, a line about the test `name`. `repeats`: it is omitted if a panic also names the test.
    pub(super) fn headed(mut self, header: Line<'_>, name: &str, repeats: bool) -> Self {
        self.header = Some(header.into());
        self.repeats = repeats;
        self.name = name.to_owned();
        self
    }

    /// Processes the next line.
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
                // The test prints a verdict of the harness.
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

    /// Ends the text.
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

    /// Begins a message. `named`: its first line names the test.
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
        // In brief output, other lines are omitted after the first message.
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

/// Parses thread and place from `thread 'NAME' (ID) panicked at PLACE:`, with or without the ID. The form
/// before Rust 1.73 is `thread 'NAME' panicked at 'MESSAGE', PLACE`.
pub(super) fn panicked(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("thread ")?;
    let (thread, place) = rest.split_once(" panicked at ")?;
    let name = match thread.strip_prefix('\'') {
        Some(name) => name.rsplit_once('\'').map_or(name, |(name, _)| name),
        None => thread,
    };
    Some((name, place.strip_suffix(':').unwrap_or(place)))
}

/// Returns true for a note on how to show a backtrace.
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

/// Returns true for an error message without a panic, from a test or from the harness.
fn is_statement(text: &str) -> bool {
    text.starts_with("error:")
        || text.starts_with("error[")
        || text.starts_with("Error:")
        || text.starts_with("note: ")
        || (text.starts_with("(test ") && text.ends_with(')'))
}
