//! Groups of diagnostics and their printed form.

use std::collections::HashMap;

use super::super::line_buffer::HeldLines;
use super::budget::{Block, Budget, Lines, Pieces, by_file};
use super::{Diagnostic, Line, Sink};

/// Buffered bytes. After this limit the groups are printed, and new groups begin.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Characters of a line of places.
const WIDTH: usize = 110;
/// Characters of a line of help.
const MAX_HELP_CHARS: usize = 200;

/// Diagnostics by rule, in the order of their first violations.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    by_key: HashMap<String, usize>,
    /// Rules by message form, because the compiler names a rule only with its first message.
    codes: HashMap<String, String>,
    after: HeldLines,
    bytes: usize,
    seen: bool,
    budget: Budget,
    key: String,
    /// The texts of all places, concatenated.
    places: String,
    /// The group of the last diagnostic.
    last: usize,
}

#[derive(Debug)]
struct Group {
    number: u64,
    level: String,
    code: Option<String>,
    help: Option<String>,
    count: usize,
    messages: Vec<Message>,
    by_text: HashMap<String, usize>,
    /// The index of the last message.
    last: usize,
}

#[derive(Debug)]
struct Message {
    text: String,
    places: Vec<Place>,
}

/// A range of [`Groups::places`].
#[derive(Debug, Clone, Copy)]
struct Place {
    start: u32,
    end: u32,
}

impl Place {
    fn text(self, places: &str) -> &str {
        &places[self.start as usize..self.end as usize]
    }
}

impl Groups {
    /// Returns true if the output has a diagnostic.
    pub(super) fn seen(&self) -> bool {
        self.seen
    }

    /// Records that the output was understood, although no group has the line.
    pub(super) fn understood(&mut self) {
        self.seen = true;
    }

    pub(super) fn add(&mut self, diagnostic: &Diagnostic, out: &mut dyn Sink) {
        self.seen = true;
        let Diagnostic { message, place, .. } = diagnostic;
        let index = match &diagnostic.code {
            Some(code) => self.group(diagnostic, Some(code)),
            None => {
                let code = self.code(diagnostic).cloned();
                self.group(diagnostic, code.as_ref())
            }
        };
        let known = self.groups[index].place_of(message);
        // The form of a known message is also known.
        if let (None, Some(code)) = (known, &diagnostic.code)
            && self.code(diagnostic).is_none()
        {
            self.bytes += self.key.len() + code.len();
            self.codes.insert(self.key.clone(), code.clone());
        }
        self.bytes += self.groups[index].add(known, message, place, &mut self.places);
        if self.bytes > MAX_BYTES {
            self.flush(out);
        }
    }

    /// The rule for the form of this message. Sets `key` to the form.
    fn code(&mut self, diagnostic: &Diagnostic) -> Option<&String> {
        self.key.clear();
        form(&diagnostic.level, &diagnostic.message, &mut self.key);
        self.codes.get(&self.key)
    }

    /// The index of the group for a rule. Without a rule, `key` (the form) selects the group.
    fn group(&mut self, diagnostic: &Diagnostic, code: Option<&String>) -> usize {
        if let Some(code) = code {
            let is_same =
                |last: &Group| last.code.as_ref() == Some(code) && last.level == diagnostic.level;
            if self.groups.get(self.last).is_some_and(is_same) {
                return self.last;
            }
            self.key.clear();
            self.key.push_str(&diagnostic.level);
            self.key.push(' ');
            self.key.push_str(code);
        }
        self.last = match self.by_key.get(&self.key) {
            Some(index) => *index,
            None => {
                self.by_key.insert(self.key.clone(), self.groups.len());
                self.bytes += self.key.len() + 200;
                self.groups.push(Group {
                    number: diagnostic.number,
                    level: diagnostic.level.clone(),
                    code: code.cloned(),
                    help: diagnostic.help.clone(),
                    count: 0,
                    messages: Vec::new(),
                    by_text: HashMap::default(),
                    last: 0,
                });
                self.groups.len() - 1
            }
        };
        self.last
    }

    /// Processes a line that is printed after the groups.
    pub(super) fn after(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if self.groups.is_empty() {
            out.keep(line);
            return;
        }
        self.bytes += line.text.len();
        self.after.push(line);
        if self.bytes > MAX_BYTES {
            self.flush(out);
        }
    }

    /// Prints all groups, then the lines after them.
    pub(super) fn flush(&mut self, out: &mut dyn Sink) {
        let room = self.budget.room();
        let blocks = self.groups.iter();
        let blocks = blocks.map(|group| group.block(&self.places, room));
        self.budget.tell(&blocks.collect::<Vec<_>>(), out);
        self.groups.clear();
        self.places.clear();
        self.after.iter().for_each(|line| out.keep(line));
        self.after.clear();
        self.by_key.clear();
        if self.bytes > MAX_BYTES {
            self.codes.clear();
        }
        self.bytes = 0;
    }

    /// Returns true if the rule for this message form is known.
    pub(super) fn knows(&mut self, level: &str, message: &str) -> bool {
        self.key.clear();
        form(level, message, &mut self.key);
        self.codes.contains_key(&self.key)
    }
}

/// Computes the common form of similar messages: all text except quoted text and numbers.
fn form(level: &str, message: &str, form: &mut String) {
    form.push_str(level);
    form.push(':');
    let bytes = message.as_bytes();
    let mut quoted = false;
    // The form contains everything before this index.
    let mut done = 0;
    let is_mark = |byte: &u8| byte.is_ascii_digit() || *byte == b'`';
    while let Some(next) = bytes[done..].iter().position(is_mark) {
        let at = done + next;
        match (bytes[at] == b'`', quoted) {
            (true, true) => form.push('`'),
            (_, false) => form.push_str(&message[done..at]),
            // Quoted text is omitted.
            (false, true) => {}
        }
        done = at + 1;
        quoted ^= bytes[at] == b'`';
    }
    match quoted {
        true => form.push('`'),
        false => form.push_str(&message[done..]),
    }
}

impl Group {
    /// The index of a known message. Often it is the last one.
    fn place_of(&self, text: &str) -> Option<usize> {
        let last = self.messages.get(self.last);
        match last.is_some_and(|last| last.text == text) {
            true => Some(self.last),
            false => self.by_text.get(text).copied(),
        }
    }

    /// Adds a place, and returns the number of added bytes. `known`: the index of the message, if it is known;
    /// `places`: [`Groups::places`].
    fn add(&mut self, known: Option<usize>, text: &str, place: &str, places: &mut String) -> usize {
        let mut bytes = place.len() + 32;
        let index = match known {
            Some(index) => index,
            None => {
                bytes += 2 * text.len() + 120;
                self.by_text.insert(text.to_owned(), self.messages.len());
                self.messages.push(Message {
                    text: text.to_owned(),
                    places: Vec::new(),
                });
                self.messages.len() - 1
            }
        };
        self.last = index;
        let known = &mut self.messages[index].places;
        // Several targets of a crate print the same diagnostic in succession.
        if known.last().is_none_or(|last| last.text(places) != place) {
            let start = places.len() as u32;
            places.push_str(place);
            let end = places.len() as u32;
            known.push(Place { start, end });
            self.count += 1;
        }
        bytes
    }

    /// Formats a message of the group like the tool.
    fn title(&self, message: &str) -> String {
        match (self.level.as_str(), self.code.as_deref()) {
            ("", None) => message.to_owned(),
            ("", Some(code)) if !code.starts_with('[') => format!("{code} {message}"),
            ("", Some(code)) => format!("{message} {code}"),
            (level, None) => format!("{level}: {message}"),
            (level, Some(code)) if code.starts_with('[') => format!("{level}: {message} {code}"),
            (level, Some(code)) => format!("{level}: {message} ({code})"),
        }
    }

    /// Formats the group in at most `room` bytes. `places`: [`Groups::places`].
    fn block<'t>(&'t self, places: &'t str, room: usize) -> Block<'t> {
        let mut block = Block {
            number: self.number,
            short: Pieces::new(room),
            ..Block::default()
        };
        let Some(first) = self.messages.first() else {
            return block;
        };
        // The first message has the form of the tool, so that it is recognized.
        let title = self.title(&first.text);
        match (self.messages.as_slice(), first.places.as_slice()) {
            ([_], [place]) => block
                .head
                .push(format!("{title} --> {}", place.text(places))),
            _ => block.head.push(format!("{title} ×{}", self.count)),
        }
        if let Some(help) = &self.help {
            block.foot.push(format!("  {}", shortened(help)));
        }
        if self.count == 1 && self.messages.len() == 1 {
            return block;
        }
        let mut full = Lines::new(room);
        for (index, message) in self.messages.iter().enumerate() {
            // Errors have their level, so that a search for it finds them.
            let said = match (index, self.level.starts_with("error")) {
                (0, _) => String::new(),
                (_, true) => format!(" {}: {}", self.level, message.text),
                (_, false) => format!(" {}", message.text),
            };
            let texts = || message.places.iter().map(|place| place.text(places));
            push_places(texts(), &said, &mut full);
            by_file(texts(), &mut block.short);
            block.short.add(&said);
        }
        block.full = Some(full);
        block
    }
}

/// The first characters of a line of help.
fn shortened(help: &str) -> String {
    match help.char_indices().nth(MAX_HELP_CHARS) {
        Some((end, _)) => format!("{}…", &help[..end]),
        None => help.to_owned(),
    }
}

/// Appends the places, then the message `said` about them.
fn push_places<'t>(places: impl Iterator<Item = &'t str>, said: &str, lines: &mut Lines) {
    lines.begin(" ");
    for place in places {
        if lines.length() > 1 && lines.length() + place.len() > WIDTH {
            lines.begin(" ");
        }
        lines.add(" ");
        lines.add(place);
    }
    lines.add(said);
}
