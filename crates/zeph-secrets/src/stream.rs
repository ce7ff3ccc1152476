//! Redaction of a text that arrives in pieces.
//!
//! The output does not depend on how the text is divided, except for lines with escapes, or keys, of many kilobytes.
//! Text is held back while the following text can change its result: at most a value of the maximum length, or a line
//! with escapes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memchr2, memrchr};

use super::kind::{Kind, Kinds};
use super::line_buffer::LOOK_BACK;
use super::private_key::{Key, Part};
use super::scan::{Candidates, PrivateKeyStart, Scanned, Use, scan};
use super::visible_text::{self, VisibleLine};
use crate::SecurityPatterns;

/// The maximum number of bytes of a line with escapes, or of a key, that are held back.
const MAX_HELD_BYTES: usize = 64 * 1024;
/// The size of the parts in which a line with carriage returns, such as a progress bar, is emitted.
const PROGRESS: usize = 2048;
/// The maximum number of lines between BEGIN and the first line of base64.
const HEADERS: usize = 8;

/// A redactor of secret values in a text that arrives in pieces.
#[derive(Debug)]
pub struct StreamRedactor {
    secrets: Arc<SecurityPatterns>,
    /// Whether the text is emitted unchanged.
    shows: bool,
    /// The incomplete line.
    line: String,
    /// The number of its bytes that are already emitted.
    done: usize,
    state: State,
    kinds: Kinds,
    out: String,
}

#[derive(Debug)]
enum State {
    Plain,
    /// A key may have begun. `held` has the lines since BEGIN.
    Perhaps {
        key: Key,
        held: String,
        lines: usize,
    },
    /// The next line may belong to a key.
    Within {
        key: Key,
        /// Empty lines that may follow the key.
        held: String,
        /// Whether the removed text ended with a line break.
        broken: bool,
    },
}

impl StreamRedactor {
    /// Replaces the secrets that `secrets` finds. If `secrets` shows values, it only records their kinds.
    #[must_use]
    pub fn new(secrets: Arc<SecurityPatterns>) -> Self {
        Self {
            shows: secrets.shows(),
            ..Self::strict(secrets)
        }
    }

    /// Replaces the secrets that `secrets` finds, even if it shows values.
    pub(super) fn strict(secrets: Arc<SecurityPatterns>) -> Self {
        Self {
            secrets,
            shows: false,
            line: String::new(),
            done: 0,
            state: State::Plain,
            kinds: Kinds::default(),
            out: String::new(),
        }
    }

    /// Returns the kinds that were found so far.
    #[must_use]
    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// Returns the kinds that were found so far, and clears them.
    pub fn take_kinds(&mut self) -> Kinds {
        std::mem::take(&mut self.kinds)
    }

    /// Takes the next piece, and returns the text that is ready.
    pub fn push<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let same = self.take(text);
        if self.shows {
            self.out.clear();
            return Cow::Borrowed(text);
        }
        match same {
            Some(bytes) => Cow::Borrowed(&text[..bytes]),
            None => Cow::Owned(std::mem::take(&mut self.out)),
        }
    }

    /// Whether no text of an earlier line is held back.
    fn is_plain(&self) -> bool {
        matches!(self.state, State::Plain)
    }

    /// Returns the rest at the end of the text.
    pub fn finish(&mut self) -> String {
        let line = std::mem::take(&mut self.line);
        if self.done < line.len() {
            self.complete(&line, self.done);
        }
        self.done = 0;
        match std::mem::replace(&mut self.state, State::Plain) {
            State::Plain => {}
            State::Perhaps { held, .. } => self.refute(&held),
            State::Within { held, broken, .. } => self.end_key(&held, broken),
        }
        let out = std::mem::take(&mut self.out);
        if self.shows { String::new() } else { out }
    }

    /// Takes the next piece. If the ready text is a prefix of the piece, it is not copied, and the length of the prefix
    /// is returned.
    fn take(&mut self, text: &str) -> Option<usize> {
        let mut start = 0;
        if !self.line.is_empty() {
            let end = memchr(b'\n', text.as_bytes()).map(|at| at + 1);
            start = end.unwrap_or(text.len());
            self.line.push_str(&text[..start]);
            if end.is_none() {
                self.partial();
                return None;
            }
            let mut line = std::mem::take(&mut self.line);
            self.complete(&line, self.done);
            self.done = 0;
            line.clear();
            self.line = line;
        }
        let same = self.out == text[..start];
        if same {
            self.out.clear();
        }
        if !same {
            self.out.reserve(text.len());
        }
        let end = memrchr(b'\n', &text.as_bytes()[start..]).map_or(start, |at| start + at + 1);
        let same = self.lines(&text[..end], start, same);
        self.line.push_str(&text[end..]);
        self.partial();
        if !same {
            return None;
        }
        if text[end..].starts_with(&self.out) {
            let bytes = end + self.out.len();
            self.out.clear();
            return Some(bytes);
        }
        self.out.insert_str(0, &text[..end]);
        None
    }

    /// Processes the whole lines of `text` from `start` on. With `same`, the text before `start` is emitted unchanged,
    /// and is not copied yet. Returns whether this is true of all of `text`.
    fn lines(&mut self, text: &str, start: usize, same: bool) -> bool {
        let secrets = Arc::clone(&self.secrets);
        let bytes = text.as_bytes();
        let line_end = |from: usize, to: usize| {
            memrchr(b'\n', &bytes[from..to]).map_or(from, |at| from + at + 1)
        };
        let mut special = next_special(text, start);
        // The candidates up to the next line with an escape, and where this part ends.
        let mut plain = (0, Candidates::new(&secrets, ""));
        let mut at = start;
        // The text before this position is emitted.
        let mut copied = if same { 0 } else { start };
        while at < text.len() {
            if self.is_plain() && self.secrets.extras.is_empty() {
                if special.is_some_and(|place| place < at) {
                    special = next_special(text, at);
                }
                let end = special.map_or(text.len(), |place| line_end(at, place));
                if end > at {
                    if plain.0 != end {
                        plain = (end, Candidates::new(&secrets, &text[..end]));
                    }
                    match plain.1.suspect(at) {
                        Some(suspect) => at = suspect,
                        None => {
                            at = end;
                            continue;
                        }
                    }
                }
            }
            let end =
                memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |place| at + place + 1);
            self.copy(text, copied..at);
            self.complete(&text[at..end], 0);
            (at, copied) = (end, end);
        }
        if copied == 0 {
            return true;
        }
        self.out.push_str(&text[copied..]);
        false
    }

    /// Emits a part of `text`, and reserves space for the rest.
    fn copy(&mut self, text: &str, part: Range<usize>) {
        if self.out.is_empty() {
            self.out.reserve(text.len());
        }
        self.out.push_str(&text[part]);
    }

    /// Scans the incomplete line, and emits the part that more text does not change.
    fn partial(&mut self) {
        loop {
            let held = self.line.len() - self.done;
            // A carriage return may be part of the line break.
            let begun = self.line.strip_suffix('\r').unwrap_or(&self.line);
            let special = visible_text::find_control(begun).is_some();
            let closed = special || !self.secrets.extras.is_empty() || !self.is_plain();
            if !closed {
                let scanned = scan(&self.secrets, begun, self.done, false, Use::All);
                let held = self.line.len() - scanned.decided;
                let cut = self
                    .line
                    .floor_char_boundary(scanned.decided + MAX_HELD_BYTES);
                let line = std::mem::take(&mut self.line);
                self.emit(&line, self.done, scanned.decided, &scanned);
                self.line = line;
                self.done = scanned.decided;
                if held <= MAX_HELD_BYTES {
                    self.forget();
                    return;
                }
                // A key without an end: this part of it is removed, and the following text belongs to the key.
                self.complete_until(cut);
                continue;
            }
            let progress = (held > PROGRESS)
                .then(|| next_return(&self.line, self.done + PROGRESS))
                .flatten();
            let cut = match progress {
                Some(at) => at + 1,
                None if held > MAX_HELD_BYTES => {
                    self.line.floor_char_boundary(self.done + MAX_HELD_BYTES)
                }
                None => return,
            };
            self.complete_until(cut);
        }
    }

    /// Processes the line up to `cut` as if it ended there.
    fn complete_until(&mut self, cut: usize) {
        let rest = self.line.split_off(cut);
        let line = std::mem::replace(&mut self.line, rest);
        self.complete(&line, self.done);
        self.done = 0;
    }

    /// Drops the emitted part of a long line, except for the bytes that patterns may inspect.
    fn forget(&mut self) {
        if self.done > 4 * LOOK_BACK {
            let start = self.line.floor_char_boundary(self.done - 2 * LOOK_BACK);
            self.line.drain(..start);
            self.done -= start;
        }
    }

    /// Processes a complete line. Its first `done` bytes are already emitted.
    fn complete(&mut self, line: &str, done: usize) {
        match std::mem::replace(&mut self.state, State::Plain) {
            State::Plain => self.plain(line, done),
            State::Perhaps {
                mut key,
                mut held,
                lines,
            } => match key.take(&shown(line)) {
                Part::Body(_) if key.is_certain() => {
                    self.mark(Kind::PRIVATE_KEY);
                    self.within(key, line);
                }
                Part::Filler if lines < HEADERS && held.len() + line.len() < MAX_HELD_BYTES => {
                    held.push_str(line);
                    let lines = lines + 1;
                    self.state = State::Perhaps { key, held, lines };
                }
                _ => {
                    self.refute(&held);
                    self.plain(line, done);
                }
            },
            State::Within {
                mut key,
                mut held,
                broken,
            } => match key.take(&shown(line)) {
                Part::Body(_) => self.within(key, line),
                Part::Filler if held.is_empty() => {
                    held.push_str(line);
                    self.state = State::Within { key, held, broken };
                }
                Part::End(end) => {
                    let end = if visible_text::is_needed(line) {
                        VisibleLine::new(line).range(end - 1..end).end
                    } else {
                        end
                    };
                    self.plain(line, end);
                }
                _ => {
                    self.end_key(&held, broken);
                    self.plain(line, done);
                }
            },
        }
    }

    fn within(&mut self, key: Key, line: &str) {
        let broken = line.ends_with('\n');
        self.state = State::Within {
            key,
            held: String::new(),
            broken,
        };
    }

    /// Ends a key that has no END line.
    fn end_key(&mut self, held: &str, broken: bool) {
        if broken {
            self.out.push('\n');
        }
        self.out.push_str(held);
    }

    /// Emits lines that began like a key but do not belong to one.
    fn refute(&mut self, held: &str) {
        for line in held.split_inclusive('\n') {
            let scanned = scan(&self.secrets, line, 0, true, Use::NoKeys);
            self.emit(line, 0, line.len(), &scanned);
        }
    }

    /// Processes a line outside of keys.
    fn plain(&mut self, line: &str, done: usize) {
        let scanned = scan(&self.secrets, line, done, true, Use::All);
        let Some(PrivateKeyStart { at, is_certain }) = scanned.key else {
            return self.emit(line, done, line.len(), &scanned);
        };
        let at = at.max(done);
        self.emit(line, done, at, &scanned);
        if is_certain {
            self.mark(Kind::PRIVATE_KEY);
            return self.within(Key::going_on(&shown(&line[..at])), line);
        }
        self.state = State::Perhaps {
            key: Key::new(&shown(&line[..at])),
            held: line[at..].to_owned(),
            lines: 1,
        };
    }

    /// Emits a part of a line, with its values replaced.
    fn emit(&mut self, line: &str, from: usize, to: usize, scanned: &Scanned) {
        let mut at = from;
        for finding in &scanned.findings {
            if finding.range.start < at || finding.range.end > to {
                continue;
            }
            if finding.kind == Kind::PATH {
                self.kinds.insert(finding.kind);
                continue;
            }
            self.out.push_str(&line[at..finding.range.start]);
            self.mark(finding.kind);
            at = finding.range.end;
        }
        self.out.push_str(&line[at..to.max(at)]);
    }

    fn mark(&mut self, kind: Kind) {
        self.kinds.insert(kind);
        self.out.push_str("[redacted:");
        self.out.push_str(self.secrets.name(kind));
        self.out.push(']');
    }
}

/// The text of a line that a terminal shows.
fn shown(line: &str) -> Cow<'_, str> {
    if visible_text::is_needed(line) {
        Cow::Owned(VisibleLine::new(line).text)
    } else {
        Cow::Borrowed(line)
    }
}

/// The next byte at or after `from` that a terminal does not show as a character.
fn next_special(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let other = memchr2(b'\x1b', b'\x08', &bytes[from..]).map(|at| from + at);
    let before = other.unwrap_or(bytes.len());
    next_return(&text[..before], from).or(other)
}

/// The next carriage return at or after `from` that does not end a line. One at the end of the text may.
fn next_return(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(found) = memchr(b'\r', bytes.get(at..)?) {
        let place = at + found;
        match bytes.get(place + 1) {
            Some(b'\n') | None => at = place + 1,
            Some(_) => return Some(place),
        }
    }
    None
}
