//! Lines on their way out: numbers never go back, runs of blank lines become one.

use memchr::memchr_iter;

use super::super::line::{Block, Line, Span, Take};
use super::row::Row;

/// What was handed on.
#[derive(Debug, Default)]
pub(super) struct Out {
    /// The last line was blank.
    blank: bool,
    number: u64,
    scratch: String,
    /// Lines of a block; its memory is used again.
    spans: Vec<Span>,
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
        let blank = is_blank(text);
        if !(blank && self.blank) {
            out(Line {
                number: self.number,
                text,
            });
        }
        self.blank = blank;
    }

    /// Hands on whole lines, of which the first one has this number, in the same way; returns how many lines
    /// there are.
    pub(super) fn block(&mut self, first: u64, text: &str, out: &mut impl Take) -> u64 {
        self.spans.clear();
        let mut next = first;
        let mut start = 0;
        for end in memchr_iter(b'\n', text.as_bytes()) {
            self.number = self.number.max(next).max(1);
            let blank = is_blank(&text[start..end]);
            if !(blank && self.blank) {
                self.spans.push(Span {
                    number: self.number,
                    start: start as u32,
                    end: end as u32,
                });
            }
            self.blank = blank;
            start = end + 1;
            next += 1;
        }
        out.block(Block::new(text, &self.spans));
        next - first
    }
}

fn is_blank(text: &str) -> bool {
    // Most lines begin with something to be seen.
    let shown = text.as_bytes().first().is_some_and(u8::is_ascii_graphic);
    !shown && text.chars().all(char::is_whitespace)
}
