//! A line under examination. Its end may still be missing.

use std::cell::Cell;

use memchr::memchr;

/// The number of bytes before its start that a pattern may inspect.
pub(super) const LOOK_BACK: usize = 200;

/// The text of a line, or its start. It records whether a check reached the end of an incomplete text, so that its
/// result may change.
pub(super) struct Line<'t> {
    text: &'t str,
    complete: bool,
    open: Cell<bool>,
}

impl<'t> Line<'t> {
    /// Returns a line; `complete` is whether its text ends here.
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

    /// The text between two positions; empty if they are invalid.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Whether a result since the last [`Line::reset`] may change with more text.
    pub(super) fn is_open(&self) -> bool {
        self.open.get()
    }

    pub(super) fn reset(&self) {
        self.open.set(false);
    }

    /// The byte at a position.
    pub(super) fn at(&self, place: usize) -> Option<u8> {
        let byte = self.text.as_bytes().get(place).copied();
        if byte.is_none() && !self.complete {
            self.open.set(true);
        }
        byte
    }

    /// The byte before a position.
    pub(super) fn before(&self, place: usize) -> Option<u8> {
        self.text.as_bytes()[..place].last().copied()
    }

    /// The end of a run of at most `most` bytes from `from` that satisfy `is`.
    pub(super) fn run(&self, from: usize, most: usize, is: impl Fn(u8) -> bool) -> usize {
        let mut end = from;
        while end - from < most && self.at(end).is_some_and(&is) {
            end += 1;
        }
        end
    }

    /// The start of a run of at most `most` bytes before `to` that satisfy `is`.
    pub(super) fn run_before(&self, to: usize, most: usize, is: impl Fn(u8) -> bool) -> usize {
        let mut start = to;
        while to - start < most && self.before(start).is_some_and(&is) {
            start -= 1;
        }
        start
    }

    /// Whether only `marks` are between the start of the line and a position.
    pub(super) fn is_first(&self, place: usize, marks: &[char]) -> bool {
        place <= LOOK_BACK && self.text[..place].trim_matches(marks).is_empty()
    }

    /// Whether `byte` is certainly not among the `most` bytes from a position on.
    pub(super) fn lacks(&self, from: usize, most: usize, byte: u8) -> bool {
        let bytes = &self.text.as_bytes()[from.min(self.text.len())..];
        self.complete && memchr(byte, &bytes[..most.min(bytes.len())]).is_none()
    }

    /// The [`LOOK_BACK`] bytes before a position.
    pub(super) fn shortly_before(&self, place: usize) -> &'t str {
        &self.text[self
            .text
            .floor_char_boundary(place.saturating_sub(LOOK_BACK))..place]
    }

    /// Whether `literal` is at a position.
    pub(super) fn has(&self, place: usize, literal: &str) -> bool {
        let mut bytes = literal.bytes().enumerate();
        bytes.all(|(offset, byte)| self.at(place + offset) == Some(byte))
    }
}

/// Whether a byte is an ASCII letter or digit.
pub(super) fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// Whether a byte is a character of base64url or of a name.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether a byte is a character of base64.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
