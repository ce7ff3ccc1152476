//! Diagnostics that a tool tells in one line each: what they say once, and behind it all places.
//!
//! Messages that differ in what they quote, and in numbers, are one: the first is told in full, and
//! with the places of the others what they have instead. Nothing that a diagnostic says is left out.

use std::ops::Range;

use foldhash::HashMap;
use memchr::memchr;

use super::budget::{Block, Budget, Pieces};
use super::{Line, OwnedLine, Sink};
use crate::bytes::{between, equal, find};

/// Bytes that are held; of more, what there is is told and the groups begin anew.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Characters of a line of places.
const WIDTH: usize = 160;

/// What a tool says of one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remark<'t> {
    /// `error`, `warning`, as the tool prints it.
    pub(super) level: &'t str,
    /// The rule; may be empty.
    pub(super) code: &'t str,
    pub(super) message: &'t str,
    /// The file, told once for all places in it; empty where `place` has it.
    pub(super) file: &'t str,
    /// Where: `3:5`, or with the file: `src/a.ts(3,5)`.
    pub(super) place: &'t str,
}

/// Remarks by rule and by form, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    groups: Vec<Group>,
    by_key: HashMap<String, usize>,
    key: String,
    /// Of the last message; their memory is used again.
    form: String,
    parts: Vec<Range<usize>>,
    /// Files and places, behind one another.
    texts: String,
    /// The last file that a remark had.
    file: Text,
    /// The group of the last remark.
    last: usize,
    bytes: usize,
    seen: bool,
    budget: Budget,
}

#[derive(Debug)]
struct Group {
    number: u64,
    level: String,
    code: String,
    count: usize,
    forms: Vec<Form>,
    by_form: HashMap<String, usize>,
}

#[derive(Debug)]
struct Form {
    /// The first message, and what it has where the others differ.
    message: String,
    parts: Vec<String>,
    places: Vec<Place>,
}

/// Where it is said, and what differs there: ranges of [`Remarks::texts`].
#[derive(Debug)]
struct Place {
    file: Text,
    text: Text,
}

/// Where a text is in [`Remarks::texts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Text {
    start: u32,
    end: u32,
}

impl Text {
    /// Adds a text to others.
    fn push(texts: &mut String, text: &str) -> Self {
        let start = texts.len() as u32;
        texts.push_str(text);
        let end = texts.len() as u32;
        Self { start, end }
    }

    fn of(self, texts: &str) -> &str {
        &texts[self.start as usize..self.end as usize]
    }
}

impl Remarks {
    /// Whether there was any.
    pub(super) fn seen(&self) -> bool {
        self.seen
    }

    /// Something was understood that is in no group.
    pub(super) fn understood(&mut self) {
        self.seen = true;
    }

    pub(super) fn add(&mut self, number: u64, remark: Remark<'_>, out: &mut dyn Sink) {
        self.seen = true;
        let index = self.group(number, remark);
        if self.file.of(&self.texts) != remark.file {
            self.file = Text::push(&mut self.texts, remark.file);
        }
        read_form(remark.message, &mut self.form, &mut self.parts);
        let group = &mut self.groups[index];
        self.bytes += group.add(remark, &self.form, &self.parts, self.file, &mut self.texts);
        if self.bytes > MAX_BYTES {
            self.tell(out);
        }
    }

    /// Where the group of a rule is.
    fn group(&mut self, number: u64, remark: Remark<'_>) -> usize {
        let is_same = |last: &Group| last.code == remark.code && last.level == remark.level;
        if self.groups.get(self.last).is_some_and(is_same) {
            return self.last;
        }
        self.key.clear();
        self.key.push_str(remark.level);
        self.key.push(' ');
        self.key.push_str(remark.code);
        self.last = match self.by_key.get(&self.key) {
            Some(index) => *index,
            None => {
                self.by_key.insert(self.key.clone(), self.groups.len());
                self.bytes += 2 * self.key.len() + 200;
                self.groups.push(Group {
                    number,
                    level: remark.level.to_owned(),
                    code: remark.code.to_owned(),
                    count: 0,
                    forms: Vec::new(),
                    by_form: HashMap::default(),
                });
                self.groups.len() - 1
            }
        };
        self.last
    }

    /// Tells all, and begins anew.
    pub(super) fn tell(&mut self, out: &mut dyn Sink) {
        let room = self.budget.room();
        let blocks = self.groups.iter();
        let blocks = blocks.map(|group| group.block(&self.texts, room));
        self.budget.tell(&blocks.collect::<Vec<_>>(), out);
        self.groups.clear();
        self.by_key.clear();
        self.texts.clear();
        self.file = Text::default();
        self.bytes = 0;
    }
}

impl Group {
    /// Takes a remark with a message of this form; returns how many bytes more there are.
    fn add(
        &mut self,
        remark: Remark<'_>,
        form: &str,
        parts: &[Range<usize>],
        file: Text,
        texts: &mut String,
    ) -> usize {
        self.count += 1;
        let parts = || parts.iter().map(|part| &remark.message[part.clone()]);
        let mut bytes = 48 + remark.place.len();
        let index = match self.by_form.get(form) {
            Some(index) => *index,
            None => {
                bytes += form.len() + remark.message.len() + 200;
                self.by_form.insert(form.to_owned(), self.forms.len());
                self.forms.push(Form {
                    message: remark.message.to_owned(),
                    parts: parts().map(str::to_owned).collect(),
                    places: Vec::new(),
                });
                self.forms.len() - 1
            }
        };
        let form = &mut self.forms[index];
        let is_same = |last: &Place| last.file == file || last.file.of(texts) == remark.file;
        if !form.places.last().is_some_and(is_same) {
            bytes += remark.file.len() + 64;
        }
        let mut text = Text::push(texts, remark.place);
        for (first, part) in form.parts.iter().zip(parts()) {
            if first != part {
                texts.push(' ');
                texts.push_str(part);
                bytes += part.len() + 1;
            }
        }
        text.end = texts.len() as u32;
        form.places.push(Place { file, text });
        bytes
    }

    /// As it is printed in at most `room` bytes; `texts`: [`Remarks::texts`].
    fn block<'t>(&'t self, texts: &'t str, room: usize) -> Block<'t> {
        let mut head = format!("{} {}", self.level, self.code);
        if self.code.is_empty() {
            head.pop();
        }
        if self.count > 1 {
            head.push_str(&format!(" ×{}", self.count));
        }
        let mut block = Block {
            number: self.number,
            short: Pieces::new(room),
            ..Block::default()
        };
        let one = self.forms.len() == 1;
        if !one {
            block.head.push(head.clone());
        }
        for form in &self.forms {
            if let (1, [place]) = (self.count, form.places.as_slice()) {
                let at = format!("{} {}", place.file.of(texts), place.text.of(texts));
                let line = format!("{head}: {}  {}", form.message, at.trim_ascii());
                block.head.push(line);
                continue;
            }
            match one {
                true => block.head.push(format!("{head}: {}", form.message)),
                false => {
                    block.short.begin("", " ");
                    block.short.add(&form.message);
                }
            }
            // Files of which one form is told in turns are told once.
            let alike =
                |a: &Place, b: &Place| a.file == b.file || a.file.of(texts) == b.file.of(texts);
            for places in form.places.chunk_by(alike) {
                push_places(places, texts, &mut block.short);
            }
        }
        block
    }
}

/// The places of one file, in as many lines as it takes.
fn push_places<'t>(places: &[Place], texts: &'t str, pieces: &mut Pieces<'t>) {
    let Some(first) = places.first() else { return };
    let file = first.file.of(texts);
    let places = || places.iter().map(|place| place.text.of(texts));
    // Where a place has more than a number, it has to be seen where the next begins.
    let between = match places().any(|place| memchr(b' ', place.as_bytes()).is_some()) {
        true => "; ",
        false => " ",
    };
    pieces.begin(file, "  ");
    pieces.add(file);
    for place in places() {
        if pieces.count() > 0 {
            pieces.add(between);
            if pieces.length() + place.len() > WIDTH {
                pieces.trim_end(1);
                pieces.begin(file, "    ");
            }
        } else if !file.is_empty() {
            pieces.add(" ");
        }
        pieces.add_place(place);
    }
}

/// What messages of one form have in common, and where each has something instead: what it quotes, and
/// numbers.
fn read_form(message: &str, form: &mut String, parts: &mut Vec<Range<usize>>) {
    form.clear();
    parts.clear();
    let bytes = message.as_bytes();
    // Up to here everything is in the form.
    let mut done = 0;
    let mut at = 0;
    let marks = |word| {
        between(word, b'0', b'9') | equal(word, b'\'') | equal(word, b'"') | equal(word, b'`')
    };
    while let Some(next) = find(&bytes[at..], marks) {
        at += next;
        let byte = bytes[at];
        let quotes = matches!(byte, b'\'' | b'"' | b'`');
        let begins = quotes || byte.is_ascii_digit();
        if !begins || (at > 0 && bytes[at - 1].is_ascii_alphanumeric()) {
            at += 1;
            continue;
        }
        let (mark, end) = if quotes {
            let end = memchr(byte, &bytes[at + 1..]);
            ('\u{1}', end.map(|end| at + end + 2))
        } else {
            let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit());
            ('\u{2}', Some(at + digits.count()))
        };
        let Some(end) = end else {
            at += 1;
            continue;
        };
        form.push_str(&message[done..at]);
        form.push(mark);
        parts.push(at..end);
        (done, at) = (end, end);
    }
    form.push_str(&message[done..]);
}

/// Reads what a tool prints, line by line.
pub(super) trait Reader: Send {
    /// Takes the next line.
    fn line(&mut self, line: Line<'_>, remarks: &mut Remarks, out: &mut dyn Sink);
    /// The output has ended: hands on what is held.
    fn finish(&mut self, remarks: &mut Remarks, out: &mut dyn Sink);
}

/// A line that is none of the diagnostics: they are told before it.
pub(super) fn keep_behind(line: Line<'_>, remarks: &mut Remarks, out: &mut dyn Sink) {
    remarks.tell(out);
    out.keep(line);
}

/// Hands on a line that was held.
pub(super) fn release(held: &mut Option<OwnedLine>, remarks: &mut Remarks, out: &mut dyn Sink) {
    if let Some(held) = held.take() {
        keep_behind(held.line(), remarks, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Texts;
    use super::*;

    #[test]
    fn what_differs_stands_with_the_place() {
        let mut remarks = Remarks::default();
        let mut out = Texts::default();
        let mut add = |file, place, message| {
            let remark = Remark {
                level: "error",
                code: "no-undef",
                message,
                file,
                place,
            };
            remarks.add(1, remark, &mut out);
        };
        add("a.js", "1:2", "'x' is not defined");
        add("a.js", "3:4", "'y' is not defined");
        add("b.js", "5:6", "'x' is not defined");
        remarks.tell(&mut out);
        assert_eq!(
            out.0,
            [
                "error no-undef ×3: 'x' is not defined",
                "  a.js 1:2; 3:4 'y'",
                "  b.js 5:6"
            ]
        );
    }

    #[test]
    fn apostrophes_quote_nothing() {
        let check = |message: &str, expect: &str, expect_parts: &[&str]| {
            let (mut form, mut parts) = ("x".to_owned(), Vec::new());
            read_form(message, &mut form, &mut parts);
            let parts: Vec<&str> = parts.into_iter().map(|part| &message[part]).collect();
            assert_eq!((form.as_str(), parts.as_slice()), (expect, expect_parts));
        };
        check(
            "can't use 'x' or 12",
            "can't use \u{1} or \u{2}",
            &["'x'", "12"],
        );
        check("an open 'quote", "an open 'quote", &[]);
        check("ES2022 é", "ES2022 é", &[]);
    }
}
