//! Which lines of a stored output are shown: a range, or those that match, within a bound.

use std::fmt::Write as _;

use memchr::memchr;
use regex::Regex;

/// Characters of a line that matches which are shown whole; of a longer one, what is around the
/// matches.
const LONG_LINE: usize = 2000;
/// Characters shown on each side of a match in a long line.
const AROUND: usize = 400;
/// Bytes of a line that are looked at at once; a longer one is searched in pieces.
const MAX_PIECE_BYTES: usize = 4 * 1024 * 1024;

/// What is asked for.
#[derive(Debug, Clone)]
pub(super) struct Query {
    /// The first line (from 1).
    pub(super) offset: u64,
    /// The most lines that are shown.
    pub(super) limit: u64,
    /// What a line must match.
    pub(super) pattern: Option<Regex>,
}

/// Takes in the text block by block and keeps what is asked for.
#[derive(Debug)]
pub(super) struct Selection {
    query: Query,
    /// Characters that still fit.
    room: usize,
    /// The line that comes next, or is being gathered.
    line: u64,
    /// What has come of it.
    gathered: String,
    /// Whether an earlier piece of it has been looked at.
    continued: bool,
    found: Found,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The lines, each with its number and a tabulator before it and a line break after it.
    pub(super) text: String,
    /// How many.
    pub(super) lines: u64,
    /// Where to go on, when not everything was looked at.
    pub(super) next: Option<u64>,
    /// A line that is shown in part.
    pub(super) cut_line: Option<u64>,
}

impl Selection {
    /// A selection of at most `room` characters. The first block begins on line `line`.
    pub(super) fn new(query: Query, room: usize, line: u64) -> Self {
        Self {
            query,
            room,
            line,
            gathered: String::new(),
            continued: false,
            found: Found::default(),
        }
    }

    /// Takes in the next text. Whether there is any use for more.
    pub(super) fn push(&mut self, mut text: &str) -> bool {
        while let Some(end) = memchr(b'\n', text.as_bytes()) {
            let (line, rest) = (&text[..end], &text[end + 1..]);
            if self.gathered.is_empty() {
                self.look_at(line);
            } else {
                let mut whole = std::mem::take(&mut self.gathered);
                whole.push_str(line);
                self.look_at(&whole);
            }
            self.line += 1;
            self.continued = false;
            text = rest;
            if self.found.next.is_some() {
                return false;
            }
        }
        if self.line >= self.query.offset {
            self.gathered.push_str(text);
        }
        // A line that fits is looked at as one.
        if self.gathered.len() >= MAX_PIECE_BYTES.max(4 * self.room) {
            let piece = std::mem::take(&mut self.gathered);
            self.look_at(&piece);
            self.continued = true;
        }
        self.found.next.is_none()
    }

    /// What was found.
    pub(super) fn finish(mut self) -> Found {
        if self.found.next.is_none() && !self.gathered.is_empty() {
            let last = std::mem::take(&mut self.gathered);
            self.look_at(&last);
        }
        self.found
    }

    /// Shows a line, or a piece of one, if it is asked for.
    fn look_at(&mut self, line: &str) {
        if self.line < self.query.offset || self.found.next.is_some() {
            return;
        }
        let is_long = || line.len() > LONG_LINE && line.chars().nth(LONG_LINE).is_some();
        let shown = match &self.query.pattern {
            // Its beginning was shown, and there was no room for the rest.
            None if self.continued => return,
            None => line.to_owned(),
            Some(pattern) if !pattern.is_match(line.trim_end_matches('\r')) => return,
            Some(pattern) if is_long() => around_matches(line, pattern, self.room),
            Some(_) => line.to_owned(),
        };
        if self.found.lines == self.query.limit {
            self.found.next = Some(self.line);
            return;
        }
        let mut entry = String::with_capacity(shown.len() + 16);
        // Writing into a string cannot fail.
        let _ = writeln!(entry, "{}\t{shown}", self.line);
        let length = entry.chars().count();
        if length > self.room {
            if self.found.lines > 0 {
                self.found.next = Some(self.line);
                return;
            }
            let end = entry.char_indices().nth(self.room.saturating_sub(2));
            entry.truncate(end.map_or(entry.len(), |(end, _)| end));
            entry.push_str("…\n");
            self.found.cut_line = Some(self.line);
        }
        self.room = self.room.saturating_sub(length);
        self.found.text.push_str(&entry);
        self.found.lines += 1;
        if self.found.cut_line.is_some() {
            self.found.next = Some(self.line + 1);
        }
    }
}

/// What is around the matches in a long line, up to about `room` characters.
fn around_matches(line: &str, pattern: &Regex, room: usize) -> String {
    let back = |at: usize| line[..at].char_indices().nth_back(AROUND - 1);
    let forth = |at: usize| line[at..].char_indices().nth(AROUND);
    let mut text = String::new();
    let mut shown = 0;
    for found in pattern.find_iter(line) {
        let start = back(found.start()).map_or(0, |(start, _)| start);
        let end = forth(found.end()).map_or(line.len(), |(end, _)| found.end() + end);
        if text.len() > 4 * room {
            break;
        }
        if start > shown {
            text.push('…');
        }
        if end > shown {
            text.push_str(&line[start.max(shown)..end]);
            shown = end;
        }
    }
    if shown < line.len() {
        text.push('…');
    }
    text
}
