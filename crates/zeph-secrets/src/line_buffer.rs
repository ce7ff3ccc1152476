//! A line that is looked at, of which the end may still be missing.

use std::cell::Cell;

use memchr::memchr;

/// How far back patterns look from where they begin.
pub(super) const LOOK_BACK: usize = 200;

/// The text of a line, or its beginning. Notes when a question could not be answered for good
/// because the text ends where it was looked at.
pub(super) struct Line<'t> {
    text: &'t str,
    complete: bool,
    open: Cell<bool>,
}

impl<'t> Line<'t> {
    /// `complete`: no more text follows.
    pub(super) fn new(text: &'t str, complete: bool) -> Self {
        Self {
            text,
            complete,
            open: Cell::new(false),
        }
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// The text between two places; empty where they are none.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Whether an answer since the last [`Line::reset`] may change with more text.
    pub(super) fn is_open(&self) -> bool {
        self.open.get()
    }

    pub(super) fn reset(&self) {
        self.open.set(false);
    }

    /// The byte at a place.
    pub(super) fn at(&self, place: usize) -> Option<u8> {
        let byte = self.text.as_bytes().get(place).copied();
        if byte.is_none() && !self.complete {
            self.open.set(true);
        }
        byte
    }

    /// The byte before a place.
    pub(super) fn before(&self, place: usize) -> Option<u8> {
        self.text.as_bytes()[..place].last().copied()
    }

    /// Where a run of at most `most` bytes that `is` holds of ends.
    pub(super) fn run(&self, from: usize, most: usize, is: impl Fn(u8) -> bool) -> usize {
        let mut end = from;
        while end - from < most && self.at(end).is_some_and(&is) {
            end += 1;
        }
        end
    }

    /// Where a run of bytes that `is` holds of begins that ends at `to`.
    pub(super) fn run_before(&self, to: usize, most: usize, is: impl Fn(u8) -> bool) -> usize {
        let mut start = to;
        while to - start < most && self.before(start).is_some_and(&is) {
            start -= 1;
        }
        start
    }

    /// Whether nothing but `marks` stands between the beginning of the line and a place.
    pub(super) fn is_first(&self, place: usize, marks: &[char]) -> bool {
        place <= LOOK_BACK && self.text[..place].trim_matches(marks).is_empty()
    }

    /// Whether it is known that `byte` is not among the `most` bytes from a place on.
    pub(super) fn lacks(&self, from: usize, most: usize, byte: u8) -> bool {
        let bytes = &self.text.as_bytes()[from.min(self.text.len())..];
        self.complete && memchr(byte, &bytes[..most.min(bytes.len())]).is_none()
    }

    /// The text shortly before a place.
    pub(super) fn shortly_before(&self, place: usize) -> &'t str {
        &self.text[self
            .text
            .floor_char_boundary(place.saturating_sub(LOOK_BACK))..place]
    }

    /// Whether `literal` stands at a place.
    pub(super) fn has(&self, place: usize, literal: &str) -> bool {
        let mut bytes = literal.bytes().enumerate();
        bytes.all(|(offset, byte)| self.at(place + offset) == Some(byte))
    }
}

/// A letter or a digit.
pub(super) fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// What a word of base64 in its URL form is made of, and names.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// What base64 is made of.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
