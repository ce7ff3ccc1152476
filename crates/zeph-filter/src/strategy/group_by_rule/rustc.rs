//! What rustc, clippy, rustdoc and cargo say of a program.
//!
//! A diagnostic is a level, maybe a code, and a message; then its place, an excerpt of the source
//! under a gutter, and notes; a blank line ends it. Lints come in groups. Errors stay whole, but for
//! what repeats: frames of the gutter, and where to read more.

mod text;

use foldhash::HashSet;
use memchr::memchr_iter;

use super::super::cargo_lines::{Progress, progress};
use super::super::line_buffer::HeldLines;
use super::{Diagnostic, Dialect, ExitInfo, Found, Line};
use text::{
    header, is_error_code, is_explain_hint, is_gutter, is_list_of_types, is_marks, is_reading_hint,
    is_tally, label, notes, place, short,
};

/// Lines of one diagnostic that are held.
const MAX_LINES: usize = 400;
/// Bytes of one diagnostic that are held.
const MAX_BYTES: usize = 256 * 1024;
/// Lines that a message may have.
const MAX_MESSAGE_LINES: usize = 12;
/// Types of a list that are named.
const MAX_TYPES: usize = 3;
/// Errors that are shown with their excerpts; those beyond come in groups, as lints do.
const WHOLE: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Between,
    /// Behind a level and a message: maybe of a diagnostic.
    Message,
    /// Behind its place.
    Body,
    /// Tests print what they want.
    Tests,
}

/// The lines of a diagnostic.
#[derive(Default)]
struct Block {
    lines: HeldLines,
    /// How many of them are the message; 0 as long as that is not known.
    message: usize,
}

struct Rustc {
    at: Section,
    block: Block,
    /// Errors that are shown with their excerpts.
    whole: HashSet<String>,
}

pub(super) fn start() -> Box<dyn Dialect> {
    Box::new(Rustc {
        at: Section::Between,
        block: Block::default(),
        whole: HashSet::default(),
    })
}

/// Whether a line can belong to a diagnostic behind its place.
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

    /// The level and the code that stand before the message, and the message in one line.
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
    /// Ends the diagnostic that is held, whose lines it returns.
    fn take(&mut self) -> Block {
        self.at = Section::Between;
        std::mem::take(&mut self.block)
    }

    /// Takes back the memory of one that is told.
    fn reuse(&mut self, mut block: Block) {
        block.lines.clear();
        block.message = 0;
        self.block = block;
    }

    /// What is held is no diagnostic.
    fn release(&mut self, found: &mut Found<'_>) {
        let block = self.take();
        for line in block.lines.iter() {
            found.keep(line);
        }
        self.reuse(block);
    }

    /// The diagnostic that is held is complete.
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

/// Hands on a diagnostic without what repeats.
fn keep_trimmed(block: &Block, code: Option<String>, found: &mut Found<'_>) {
    let mut suggestion = false;
    // Of the types that a trait is implemented for, which may be many, so many more are named.
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

/// The message, and what is said at the marked place where the message names nothing: `mismatched
/// types: expected `u8`, found `bool``.
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

/// Whether the line begins the output of tests.
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
