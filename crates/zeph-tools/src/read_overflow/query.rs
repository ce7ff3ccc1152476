//! The selection of lines of a stored output: a range or a pattern, within a limit.

use std::fmt::Write as _;

use memchr::memchr;
use regex::Regex;

/// The maximum number of characters of a matching line that is shown whole; a longer line shows the text around
/// the matches.
const LONG_LINE: usize = 2000;
/// Characters shown on each side of a match in a long line.
const AROUND: usize = 400;
/// The maximum bytes of a line that are processed together; a longer line is searched in pieces.
const MAX_PIECE_BYTES: usize = 4 * 1024 * 1024;

/// The requested lines.
#[derive(Debug, Clone)]
pub(super) struct Query {
    /// The first line (from 1).
    pub(super) offset: u64,
    /// The maximum number of lines.
    pub(super) limit: u64,
    /// The pattern that a line must match.
    pub(super) pattern: Option<Regex>,
}

/// The state of a search that receives the text block by block.
#[derive(Debug)]
pub(super) struct Selection {
    query: Query,
    /// The number of characters that still fit.
    room: usize,
    /// The number of the next or current line.
    line: u64,
    /// The collected start of the current line.
    gathered: String,
    /// Whether an earlier piece of the line was processed.
    continued: bool,
    found: Found,
}

/// The result of a selection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The lines, each with its number and a tab before it and a line break after it.
    pub(super) text: String,
    /// The number of lines.
    pub(super) lines: u64,
    /// The line to continue with, if the search is not complete.
    pub(super) next: Option<u64>,
    /// The line that is shown in part.
    pub(super) cut_line: Option<u64>,
}

impl Selection {
    /// Creates a selection of at most `room` characters. The first block begins on line `line`.
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

    /// Processes the next text. Returns whether more text is needed.
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
        // A line that fits is processed as one piece.
        if self.gathered.len() >= MAX_PIECE_BYTES.max(4 * self.room) {
            let piece = std::mem::take(&mut self.gathered);
            self.look_at(&piece);
            self.continued = true;
        }
        self.found.next.is_none()
    }

    /// Returns the result.
    pub(super) fn finish(mut self) -> Found {
        if self.found.next.is_none() && !self.gathered.is_empty() {
            let last = std::mem::take(&mut self.gathered);
            self.look_at(&last);
        }
        self.found
    }

    /// Adds a line, or a piece of one, to the result if it is requested.
    fn look_at(&mut self, line: &str) {
        if self.line < self.query.offset || self.found.next.is_some() {
            return;
        }
        let is_long = || line.len() > LONG_LINE && line.chars().nth(LONG_LINE).is_some();
        let shown = match &self.query.pattern {
            // The start of the line was shown, and the rest did not fit.
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

/// Returns the text around the matches in a long line, up to about `room` characters.
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
