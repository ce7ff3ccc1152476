//! Groups of one-line diagnostics: each message once, then all its places.
//!
//! Messages that differ only in quoted text and numbers form one group. The first message is shown in full.
//! Each place of another message shows its different parts, so no information is lost.

use std::ops::Range;

use memchr::memchr;
use std::collections::HashMap;

use super::budget::{Block, Budget, Pieces};
use super::{Line, OwnedLine, Sink};

/// Buffered bytes. After this limit the groups are printed, and new groups begin.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Characters of a line of places.
const WIDTH: usize = 160;

/// The message of a tool about one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remark<'t> {
    /// `error`, `warning`, as the tool prints it.
    pub(super) level: &'t str,
    /// The rule; may be empty.
    pub(super) code: &'t str,
    pub(super) message: &'t str,
    /// The file, shown once for all its places; empty if `place` contains it.
    pub(super) file: &'t str,
    /// The place: `3:5`, or with the file: `src/a.ts(3,5)`.
    pub(super) place: &'t str,
}

/// Remarks by rule and by form, in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    groups: Vec<Group>,
    by_key: HashMap<String, usize>,
    key: String,
    /// Form and parts of the last message. Their memory is reused.
    form: String,
    parts: Vec<Range<usize>>,
    /// The texts of all files and places, concatenated.
    texts: String,
    /// The file of the last remark.
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
    /// The first message, and its parts that differ in other messages.
    message: String,
    parts: Vec<String>,
    places: Vec<Place>,
}

/// A place and its different parts, as ranges of [`Remarks::texts`].
#[derive(Debug)]
struct Place {
    file: Text,
    text: Text,
}

/// A range of [`Remarks::texts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Text {
    start: u32,
    end: u32,
}

impl Text {
    /// Appends `text` to `texts`.
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
    /// Returns true if the output has a remark.
    pub(super) fn seen(&self) -> bool {
        self.seen
    }

    /// Records that the output was understood, although no group has the line.
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

    /// The index of the group for a rule.
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

    /// Prints all groups and clears them.
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
    /// Adds a remark with a message of this form. Returns the number of added bytes.
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

    /// Formats the group in at most `room` bytes. `texts`: [`Remarks::texts`].
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
            // Consecutive places in the same file are joined, so the file is shown once.
            let alike =
                |a: &Place, b: &Place| a.file == b.file || a.file.of(texts) == b.file.of(texts);
            for places in form.places.chunk_by(alike) {
                push_places(places, texts, &mut block.short);
            }
        }
        block
    }
}

/// Appends the places of one file, in as many lines as necessary.
fn push_places<'t>(places: &[Place], texts: &'t str, pieces: &mut Pieces<'t>) {
    let Some(first) = places.first() else { return };
    let file = first.file.of(texts);
    let places = || places.iter().map(|place| place.text.of(texts));
    // If a place has more than a number, `; ` separates the places.
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

/// Splits a message into its form, which similar messages share, and its variable parts: quoted text and
/// numbers.
fn read_form(message: &str, form: &mut String, parts: &mut Vec<Range<usize>>) {
    form.clear();
    parts.clear();
    let bytes = message.as_bytes();
    // The form contains everything before this index.
    let mut done = 0;
    let mut at = 0;
    let is_mark = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'\'' | b'"' | b'`');
    while let Some(next) = bytes[at..].iter().position(is_mark) {
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

/// Line parser for the output of a tool.
pub(super) trait Reader: Send {
    /// Processes the next line.
    fn line(&mut self, line: Line<'_>, remarks: &mut Remarks, out: &mut dyn Sink);
    /// Emits the buffered lines at the end of the output.
    fn finish(&mut self, remarks: &mut Remarks, out: &mut dyn Sink);
}

/// Emits a line that is not a diagnostic, after the groups.
pub(super) fn keep_behind(line: Line<'_>, remarks: &mut Remarks, out: &mut dyn Sink) {
    remarks.tell(out);
    out.keep(line);
}

/// Emits a buffered line.
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
    fn differing_words_are_listed_with_the_place() {
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
    fn apostrophes_are_not_quotes() {
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
