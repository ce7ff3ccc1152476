//! Redaction of a text that comes in pieces.
//!
//! What is handed out does not depend on how the text is cut into pieces, lines with escapes or keys of
//! more than some kilobytes apart. A piece is held back as long as what follows it decides what
//! it is: at most a value of the greatest length, or a line with escapes.

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

/// The most bytes of a line with escapes, or of a key, that are held back.
const MAX_HELD_BYTES: usize = 64 * 1024;
/// A line with carriage returns, as progress bars have it, is handed out in parts of so many bytes.
const PROGRESS: usize = 2048;
/// The most lines between the beginning of a key and its first line of base64.
const HEADERS: usize = 8;

/// Replaces the values of secrets in a text that comes in pieces.
#[derive(Debug)]
pub struct StreamRedactor {
    secrets: Arc<SecurityPatterns>,
    /// Whether the text is handed out as it is.
    shows: bool,
    /// The line that has begun.
    line: String,
    /// How much of it was handed out.
    done: usize,
    state: State,
    kinds: Kinds,
    out: String,
}

#[derive(Debug)]
enum State {
    Plain,
    /// A key has begun, if what follows is one: the lines since.
    Perhaps {
        key: Key,
        held: String,
        lines: usize,
    },
    /// Within a key.
    Within {
        key: Key,
        /// Empty lines that may be its end.
        held: String,
        /// What was left out ended with a line break.
        broken: bool,
    },
}

impl StreamRedactor {
    /// Replaces what `secrets` finds; where they say that values shall be shown, it only takes note.
    #[must_use]
    pub fn new(secrets: Arc<SecurityPatterns>) -> Self {
        Self {
            shows: secrets.shows(),
            ..Self::strict(secrets)
        }
    }

    /// Replaces what `secrets` finds, whatever they say of showing it.
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

    /// What was found so far.
    #[must_use]
    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// Forgets what was found so far, and returns it.
    pub fn take_kinds(&mut self) -> Kinds {
        std::mem::take(&mut self.kinds)
    }

    /// Takes the next piece and returns what is ready.
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

    /// Whether nothing is held back that began on a line before.
    fn is_plain(&self) -> bool {
        matches!(self.state, State::Plain)
    }

    /// No more comes: the rest.
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

    /// Takes the next piece. Where what is ready is what the piece begins with, it is not copied: the
    /// number of its bytes is returned.
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

    /// Takes the whole lines of `text` that begin at `start`. `same`: what is before them is handed out
    /// as it is, and is not copied yet. Returns whether that holds of all of `text`.
    fn lines(&mut self, text: &str, start: usize, same: bool) -> bool {
        let secrets = Arc::clone(&self.secrets);
        let bytes = text.as_bytes();
        let line_end = |from: usize, to: usize| {
            memrchr(b'\n', &bytes[from..to]).map_or(from, |at| from + at + 1)
        };
        let mut special = next_special(text, start);
        // What is looked at up to the next line with an escape.
        let mut plain = (0, Candidates::new(&secrets, ""));
        let mut at = start;
        // What is before that is handed out.
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

    /// Hands out a part of `text`, most of which will follow.
    fn copy(&mut self, text: &str, part: Range<usize>) {
        if self.out.is_empty() {
            self.out.reserve(text.len());
        }
        self.out.push_str(&text[part]);
    }

    /// Looks at the line that has begun, and hands out what more text will not change.
    fn partial(&mut self) {
        loop {
            let held = self.line.len() - self.done;
            // A carriage return may end the line.
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
                // A key that does not end: what there is of it is left out, and what follows belongs to it.
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

    /// Takes the line up to `cut` as if it ended there.
    fn complete_until(&mut self, cut: usize) {
        let rest = self.line.split_off(cut);
        let line = std::mem::replace(&mut self.line, rest);
        self.complete(&line, self.done);
        self.done = 0;
    }

    /// Of a line that is long only so much is kept as patterns look back.
    fn forget(&mut self) {
        if self.done > 4 * LOOK_BACK {
            let start = self.line.floor_char_boundary(self.done - 2 * LOOK_BACK);
            self.line.drain(..start);
            self.done -= start;
        }
    }

    /// Takes a line of which `done` bytes were handed out.
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

    /// A key ended without END.
    fn end_key(&mut self, held: &str, broken: bool) {
        if broken {
            self.out.push('\n');
        }
        self.out.push_str(held);
    }

    /// What began like a key is none.
    fn refute(&mut self, held: &str) {
        for line in held.split_inclusive('\n') {
            let scanned = scan(&self.secrets, line, 0, true, Use::NoKeys);
            self.emit(line, 0, line.len(), &scanned);
        }
    }

    /// Takes a line outside of keys.
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

    /// Hands out a part of a line, with its values replaced.
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

/// A line as it is shown.
fn shown(line: &str) -> Cow<'_, str> {
    if visible_text::is_needed(line) {
        Cow::Owned(VisibleLine::new(line).text)
    } else {
        Cow::Borrowed(line)
    }
}

/// The next byte behind `from` that a terminal does not show as it is.
fn next_special(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let other = memchr2(b'\x1b', b'\x08', &bytes[from..]).map(|at| from + at);
    let before = other.unwrap_or(bytes.len());
    next_return(&text[..before], from).or(other)
}

/// The next carriage return behind `from` that does not end a line. One at the end may.
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
