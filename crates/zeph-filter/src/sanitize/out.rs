//! Emission of lines: line numbers never decrease, and runs of blank lines become one.

use super::terminal_line::TerminalLine;
use crate::line::Line;

/// Passes on lines.
#[derive(Debug, Default)]
pub(super) struct LineEmitter {
    /// The last line was blank.
    blank: bool,
    number: u64,
    /// The text of a line of the screen; its memory is used again.
    rendered: String,
}

impl LineEmitter {
    /// Passes on a line of the screen, unless it continues a run of blank ones.
    pub(super) fn row(&mut self, row: &TerminalLine, out: &mut impl FnMut(Line<'_>)) {
        let mut text = std::mem::take(&mut self.rendered);
        text.clear();
        row.render(&mut text);
        self.line(row.number, &text, out);
        self.rendered = text;
    }

    /// Passes on a line, unless it continues a run of blank ones.
    pub(super) fn line(&mut self, number: u64, text: &str, out: &mut impl FnMut(Line<'_>)) {
        self.number = self.number.max(number).max(1);
        let blank = text.chars().all(char::is_whitespace);
        if !(blank && self.blank) {
            let number = self.number;
            out(Line { number, text });
        }
        self.blank = blank;
    }
}
