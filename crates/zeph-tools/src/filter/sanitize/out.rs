//! Lines on their way out: numbers never go back, runs of blank lines become one.

use super::super::line::Line;
use super::row::Row;

/// What was handed on.
#[derive(Debug, Default)]
pub(super) struct Out {
    /// The last line was blank.
    blank: bool,
    number: u64,
    scratch: String,
}

impl Out {
    /// Hands on a line of the screen.
    pub(super) fn row(&mut self, row: &Row, out: &mut impl FnMut(Line<'_>)) {
        if let Some(text) = row.plain() {
            self.line(row.number, text, out);
            return;
        }
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        row.render(&mut text);
        self.line(row.number, &text, out);
        self.scratch = text;
    }

    /// Hands on a line, unless it goes on a run of blank ones.
    pub(super) fn line(&mut self, number: u64, text: &str, out: &mut impl FnMut(Line<'_>)) {
        self.number = self.number.max(number).max(1);
        let blank = text.chars().all(char::is_whitespace);
        if !(blank && self.blank) {
            out(Line {
                number: self.number,
                text,
            });
        }
        self.blank = blank;
    }
}
