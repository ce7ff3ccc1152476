//! Lines that are drawn over from their beginning, as simple progress bars are: many of them at once, without a row of
//! the screen for each.
//!
//! While text is cleaned of its colours, its last line stands at the end of what is clean. As long as each of its bytes
//! is a column, what follows a carriage return is written over it there. The cursor's row takes over what is left in the
//! end.

use memchr::{memchr, memrchr};

use super::Sanitizer;
use super::row::{Column, MAX_COLUMNS, gone, is_narrow};

/// The last line of text that is cleaned, and the cursor in it.
#[derive(Debug)]
pub(super) struct Draw {
    /// Whether lines may be written over at all.
    allowed: bool,
    /// What is clean begins with a line.
    whole: bool,
    /// Where in the last line the cursor is; none: behind its end.
    column: Option<usize>,
    /// Something was written over the last line.
    over: bool,
    /// Something that was to be seen was written over; it is not looked for once it is known.
    lost: bool,
}

impl Draw {
    /// Whether what follows is added behind the end of the last line.
    pub(super) fn appends(&self) -> bool {
        self.column.is_none()
    }

    /// Takes a carriage return; whether it can be done here.
    pub(super) fn carriage_return(&mut self, clean: &[u8]) -> bool {
        let start = self.line_start(clean).filter(|_| self.allowed);
        let Some(start) = start else {
            return false;
        };
        if self.column.is_none() {
            let line = &clean[start..];
            if line.is_empty() {
                return true;
            }
            if line.len() > MAX_COLUMNS || !is_narrow(line) {
                return false;
            }
        }
        self.column = Some(0);
        true
    }

    /// Where the last line begins, if it is short.
    fn line_start(&self, clean: &[u8]) -> Option<usize> {
        let near = clean.len().saturating_sub(MAX_COLUMNS + 1);
        match memrchr(b'\n', &clean[near..]) {
            Some(at) => Some(near + at + 1),
            None => (near == 0 && self.whole).then_some(0),
        }
    }

    /// Whether `run` would be written over something.
    pub(super) fn is_over(&self) -> bool {
        self.column.is_some() || self.over
    }

    /// Writes text without controls but line breaks and tabs at the cursor; returns how much of it could be written here.
    pub(super) fn write(&mut self, run: &[u8], clean: &mut Vec<u8>) -> usize {
        let end = memchr(b'\n', run).unwrap_or(run.len());
        let (first, rest) = run.split_at(end);
        match self.column {
            Some(column) => {
                let after = column + first.len();
                let start = self.line_start(clean);
                let Some(start) = start.filter(|_| after <= MAX_COLUMNS && is_narrow(first)) else {
                    return 0;
                };
                self.write_over(first, start + column, clean);
                self.column = Some(after);
            }
            None => clean.extend_from_slice(first),
        }
        if rest.is_empty() {
            return run.len();
        }
        if self.over && clean.last() == Some(&b' ') {
            // Blanks at the end erase what stood there, unless something is written behind them yet.
            return end;
        }
        clean.extend_from_slice(rest);
        (self.column, self.over) = (None, false);
        run.len()
    }

    fn write_over(&mut self, text: &[u8], at: usize, clean: &mut Vec<u8>) {
        let old = &mut clean[at..];
        let both = old.len().min(text.len());
        let mut pairs = old.iter().zip(text);
        self.lost |= !self.lost && pairs.any(|(old, new)| gone(*old, *new));
        old[..both].copy_from_slice(&text[..both]);
        clean.extend_from_slice(&text[both..]);
        self.over |= !text.is_empty();
    }
}

impl Sanitizer {
    /// Begins to clean text that is added at the end of the last line, if it `appends`.
    pub(super) fn draw(&self, appends: bool) -> Draw {
        Draw {
            allowed: appends && !self.margins.are_known(),
            whole: self.rows[self.row].is_empty(),
            column: None,
            over: false,
            lost: self.lost,
        }
    }

    /// Begins to clean text that is written over the last line, which becomes what is `clean`, if it can.
    pub(super) fn draw_over(&mut self, clean: &mut Vec<u8>) -> Option<Draw> {
        let appends = self.appends();
        let draw = self.draw(true);
        if appends && draw.whole {
            return draw.allowed.then_some(draw);
        }
        if !draw.allowed || self.aside || self.row + 1 != self.rows.len() {
            return None;
        }
        let row = &mut self.rows[self.row];
        let column = match self.column {
            Column::End => None,
            Column::At(at) if at <= row.text().len() && !row.is_empty() => Some(at),
            Column::At(_) => return None,
        };
        if row.number != self.breaks + 1 || !row.move_into(clean) {
            return None;
        }
        self.column = Column::End;
        Some(Draw {
            whole: true,
            column,
            over: row.is_overwritten(),
            ..draw
        })
    }

    /// What was cleaned is on the screen: the cursor is where it was drawn last.
    pub(super) fn end_draw(&mut self, draw: &Draw) {
        self.lost |= draw.lost;
        if draw.over {
            self.rows[self.row].mark_overwritten();
        }
        if let Some(column) = draw.column {
            self.column = Column::At(column);
        }
    }
}
