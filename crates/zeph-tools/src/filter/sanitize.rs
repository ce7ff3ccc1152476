//! From text that was meant for a terminal to lines.

use super::line::Line;

/// Makes lines of a text that comes in pieces.
#[derive(Debug, Default)]
pub struct Sanitizer {
    pending: String,
    number: u64,
}

impl Sanitizer {
    /// At the start of a text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece and gives out the lines that end in it.
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(Line<'_>)) {
        let mut rest = text;
        while let Some(end) = memchr::memchr(b'\n', rest.as_bytes()) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            self.number += 1;
            if self.pending.is_empty() {
                give(self.number, line, out);
            } else {
                self.pending.push_str(line);
                give(self.number, &self.pending, out);
                self.pending.clear();
            }
        }
        self.pending.push_str(rest);
    }

    /// The text has ended: gives out what it did not end with a line break.
    pub fn finish(&mut self, out: &mut impl FnMut(Line<'_>)) {
        if !self.pending.is_empty() {
            give(self.number + 1, &self.pending, out);
            self.pending.clear();
        }
    }

    /// Whether text that had been visible was overwritten.
    #[must_use]
    pub fn dropped_visible(&self) -> bool {
        false
    }
}

fn give(number: u64, text: &str, out: &mut impl FnMut(Line<'_>)) {
    let text = text.strip_suffix('\r').unwrap_or(text);
    out(Line { number, text });
}
