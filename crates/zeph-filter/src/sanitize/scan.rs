//! Text between control characters: whole lines are passed on directly if they cannot be redrawn.

use memchr::{memchr, memrchr};

use super::terminal_line::{Column, TerminalLine};
use super::{Sanitizer, WINDOW, cut};
use crate::line::Line;

/// The place of the first control character other than a line break or a tab, or the end of the text.
pub(super) fn first_control(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_control = |at: &usize| match bytes[*at] {
        b'\t' | b'\n' => false,
        // U+0080 to U+009F.
        0xc2 => bytes.get(at + 1).is_some_and(|next| *next < 0xa0),
        byte => byte.is_ascii_control(),
    };
    (0..bytes.len()).find(is_control).unwrap_or(bytes.len())
}

impl Sanitizer {
    /// Prints text without control characters other than line breaks and tabs.
    pub(super) fn plain(&mut self, text: &str, out: &mut impl FnMut(Line<'_>)) {
        let mut rest = text;
        let mut first = true;
        while let Some(end) = memchr(b'\n', rest.as_bytes()) {
            self.print(&rest[..end], out);
            self.line_break(out);
            rest = &rest[end + 1..];
            if std::mem::take(&mut first) && self.is_on_new_line() {
                rest = self.whole_lines(rest, out);
            }
        }
        self.print(rest, out);
    }

    /// The cursor is on an empty last line: passes on the lines of `text` that are out of reach
    /// after it is printed, and returns the rest.
    fn whole_lines<'t>(&mut self, text: &'t str, out: &mut impl FnMut(Line<'_>)) -> &'t str {
        let bytes = text.as_bytes();
        let mut end = bytes.len();
        for _ in 0..=WINDOW {
            match memrchr(b'\n', &bytes[..end]) {
                Some(at) => end = at,
                None => return text,
            }
        }
        // `end` is the line break of the last line that is passed on.
        while self.rows.len() > 1 {
            self.evict(out);
        }
        let (lines, rest) = text.split_at(end + 1);
        for line in lines.split_terminator('\n') {
            self.breaks += 1;
            if cut::is_too_long(line.len()) {
                let mut row = TerminalLine::default();
                row.append(line);
                row.number = self.breaks;
                self.lost = true;
                self.out.row(&row, out);
            } else {
                self.out.line(self.breaks, line, out);
            }
        }
        self.column = Column::End;
        rest
    }
}
