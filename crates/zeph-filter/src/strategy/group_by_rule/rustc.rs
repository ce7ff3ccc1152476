//! Parser for diagnostics of rustc, clippy, rustdoc and cargo.
//!
//! A diagnostic is a level, an optional code, and a message; then its place, a source excerpt with a gutter,
//! and notes, up to a blank line. Lints are grouped. Errors are complete, except repeated parts: empty gutter
//! lines, and links to explanations.

mod text;

use memchr::memchr_iter;
use std::collections::HashSet;

use super::super::cargo_lines::{Progress, progress};
use super::super::line_buffer::HeldLines;
use super::{Diagnostic, Dialect, ExitInfo, Found, Line};
use text::{
    header, is_error_code, is_explain_hint, is_gutter, is_list_of_types, is_marks, is_reading_hint,
    is_tally, label, notes, place, short,
};

/// Buffered lines of one diagnostic.
const MAX_LINES: usize = 400;
/// Buffered bytes of one diagnostic.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum number of lines in a message.
const MAX_MESSAGE_LINES: usize = 12;
/// Types of a list that are shown.
const MAX_TYPES: usize = 3;
/// Errors that are shown with source excerpts. Further errors are grouped like lints.
const WHOLE: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Between,
    /// After a level and a message, which may begin a diagnostic.
    Message,
    /// After the place of a diagnostic.
    Body,
    /// In the output of tests, which may have any form.
    Tests,
}

/// The lines of a diagnostic.
#[derive(Default)]
struct Block {
    lines: HeldLines,
    /// The number of lines in the message; 0 while it is unknown.
    message: usize,
}

struct Rustc {
    at: Section,
    block: Block,
    /// Errors that were shown with source excerpts.
    whole: HashSet<String>,
}

pub(super) fn start() -> Box<dyn Dialect> {
    Box::new(Rustc {
        at: Section::Between,
        block: Block::default(),
        whole: HashSet::default(),
    })
}

/// Returns true if a line can belong to a diagnostic after its place.
fn is_body(text: &str) -> bool {
    match text.as_bytes() {
        [b' ', ..] => progress(text).is_none() && !is_panic(text),
        [b'0'..=b'9' | b'|', ..] => true,
        [b'.', ..] => text.starts_with("..."),
        [b'h', ..] => text.starts_with("help: "),
        [b'n', ..] => text.starts_with("note: "),
        _ => false,
    }
}

fn is_panic(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_there =
        |at: usize| bytes[..at].ends_with(b" panic") && bytes[at..].starts_with(b"ked at ");
    memchr_iter(b'k', bytes).any(is_there)
}

impl Block {
    fn is_full(&self) -> bool {
        self.lines.len() >= MAX_LINES || self.lines.bytes() >= MAX_BYTES
    }

    /// Level, code and message, with the message in one line.
    fn head(&self) -> Option<(&str, Option<&str>, String)> {
        let mut lines = self.lines.iter();
        let (level, code, message) = header(lines.next()?.text)?;
        let mut message = message.to_owned();
        for line in lines.take(self.message.checked_sub(1)?) {
            message.push(' ');
            message.push_str(line.text.trim_ascii());
        }
        Some((level, code, message))
    }
}

impl Rustc {
    /// Ends the buffered diagnostic and returns its lines.
    fn take(&mut self) -> Block {
        self.at = Section::Between;
        std::mem::take(&mut self.block)
    }

    /// Reuses the memory of a processed diagnostic.
    fn reuse(&mut self, mut block: Block) {
        block.lines.clear();
        block.message = 0;
        self.block = block;
    }

    /// Emits the buffered lines, which are not a diagnostic.
    fn release(&mut self, found: &mut Found<'_>) {
        let block = self.take();
        for line in block.lines.iter() {
            found.keep(line);
        }
        self.reuse(block);
    }

    /// Processes the buffered diagnostic, which is complete.
    fn complete(&mut self, found: &mut Found<'_>) {
        let block = self.take();
        self.tell(&block, found);
        self.reuse(block);
    }

    fn tell(&mut self, block: &Block, found: &mut Found<'_>) {
        let Some((level, own_code, message)) = block.head() else {
            return;
        };
        let number = block.lines.iter().next().map_or(0, |line| line.number);
        let mut notes_of = block.lines.iter().skip(block.message);
        let place = notes_of.next().and_then(|line| place(line.text));
        let (code, help) = notes(notes_of);
        let code = own_code.map(str::to_owned).or(code);
        let lint = level == "warning"
            || match &code {
                Some(code) => !is_error_code(code),
                None => found.groups.knows(level, &message),
            };
        let known = self.whole.len() >= WHOLE || self.whole.contains(&message);
        if let (true, Some(place)) = (lint || known, place) {
            let place = place.to_owned();
            found.diagnostic(&match own_code {
                Some(own) => Diagnostic {
                    number,
                    level: format!("{level}[{own}]"),
                    code: None,
                    message: with_label(block, message),
                    place,
                    help: None,
                },
                None => Diagnostic {
                    number,
                    level: level.to_owned(),
                    code,
                    message,
                    place,
                    help,
                },
            });
        } else {
            if !known {
                self.whole.insert(message);
            }
            keep_trimmed(block, code.filter(|_| own_code.is_none()), found);
        }
    }
    fn between(&mut self, line: Line<'_>, found: &mut Found<'_>) {
        let text = line.text;
        if let Some((level, _, message)) = header(text) {
            if is_tally(level, message) {
                return found.keep_after(line);
            }
            self.at = Section::Message;
            self.block.lines.push(line);
            return;
        }
        if is_explain_hint(text) {
            return;
        }
        match progress(text) {
            Some(Progress::Finished) => {
                found.keep_after(line);
                found.boundary();
            }
            Some(Progress::Program) => {
                found.boundary();
                found.keep(line);
                self.at = Section::Tests;
            }
            Some(Progress::Step) => found.keep(line),
            None if is_test(text) => {
                found.boundary();
                found.keep(line);
                self.at = Section::Tests;
            }
            None => match short(text) {
                Some(diagnostic) => found.diagnostic(&Diagnostic {
                    number: line.number,
                    ..diagnostic
                }),
                None => found.keep(line),
            },
        }
    }
}

/// Emits a diagnostic without repeated parts.
fn keep_trimmed(block: &Block, code: Option<String>, found: &mut Found<'_>) {
    let mut suggestion = false;
    // The list of types that implement a trait can be long, so it is truncated.
    let mut implementors = None;
    for (index, line) in block.lines.iter().enumerate() {
        let text = line.text.trim_ascii();
        if index == 0
            && let Some(code) = &code
        {
            let text = format!("{} ({code})", line.text);
            found.keep(Line {
                text: &text,
                ..line
            });
            continue;
        }
        if index < block.message || (index == block.message && place(line.text).is_some()) {
            found.keep(line);
            continue;
        }
        if text.starts_with("help: ") || text.starts_with("note: ") {
            suggestion = text.starts_with("help: ");
            implementors = None;
            found.keep(line);
            continue;
        }
        if let Some(left) = &mut implementors
            && !text.starts_with("= ")
        {
            if *left > 0 || text.starts_with("and ") {
                *left = usize::saturating_sub(*left, 1);
                found.keep(line);
            }
            continue;
        }
        implementors = is_list_of_types(text).then_some(MAX_TYPES);
        let chatter = is_gutter(text)
            || is_reading_hint(text)
            || text.starts_with("= note: `#[")
            || text.starts_with("--> /rustc/")
            || text.starts_with("::: /rustc/")
            || (suggestion && is_marks(text));
        if chatter {
            continue;
        }
        found.keep(line);
    }
}

/// The message. If it does not name anything, the label is appended: `mismatched types: expected `u8`, found
/// `bool``.
fn with_label(block: &Block, message: String) -> String {
    if message.contains('`') {
        return message;
    }
    let labels = block.lines.iter().skip(block.message);
    match labels.filter_map(|line| label(line.text)).next() {
        Some(label) => format!("{message}: {label}"),
        None => message,
    }
}

/// Returns true if the line begins the output of tests.
fn is_test(text: &str) -> bool {
    (text.starts_with("running ") && (text.ends_with(" tests") || text == "running 1 test"))
        || (text.starts_with("test ") && text.contains(" ... "))
        || text.starts_with("    Starting ")
        || text.starts_with("---- ")
}

impl Dialect for Rustc {
    fn line(&mut self, line: Line<'_>, found: &mut Found<'_>) {
        let text = line.text;
        match self.at {
            Section::Tests => found.keep(line),
            Section::Between => self.between(line, found),
            Section::Message => {
                let trimmed = text.trim_ascii_start();
                if trimmed.starts_with("--> ") || trimmed == "|" || trimmed.starts_with("= ") {
                    self.block.message = self.block.lines.len();
                    self.at = Section::Body;
                    self.block.lines.push(line);
                } else if text.is_empty()
                    || header(text).is_some()
                    || progress(text).is_some()
                    || self.block.lines.len() >= MAX_MESSAGE_LINES
                {
                    self.release(found);
                    self.between(line, found);
                } else {
                    self.block.lines.push(line);
                }
            }
            Section::Body => {
                if text.is_empty() {
                    self.complete(found);
                } else if !is_body(text) {
                    self.complete(found);
                    self.between(line, found);
                } else if self.block.is_full() {
                    self.release(found);
                    found.keep(line);
                } else {
                    self.block.lines.push(line);
                }
            }
        }
    }

    fn finish(&mut self, _end: ExitInfo, found: &mut Found<'_>) {
        match self.at {
            Section::Message => self.release(found),
            Section::Body => self.complete(found),
            Section::Between | Section::Tests => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn panics_are_found(text in "(k| |ä){0,2}( panic| panick|panic)(ked at|ed at|ked)( |:|k)?( panicked at |k| ){0,2}") {
            proptest::prop_assert_eq!(is_panic(&text), text.contains(" panicked at "));
        }
    }
}
