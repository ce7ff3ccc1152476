//! Lines that are drawn over from their beginning, as simple progress bars are: many of them at once, without a row of
//! the screen for each.
//!
//! While text is cleaned of its colours, its last line stands at the end of what is clean. As long as each of its bytes
//! is a column, what follows a carriage return is written over it there. The cursor's row takes over what is left in the
//! end.

use std::ops::Range;

use memchr::memrchr;

use super::Sanitizer;
use super::terminal_line::{Column, MAX_COLUMNS, gone, is_narrow};
use super::wrap::may_be_wrapped;
use crate::bytes::{add_short, find, no_column};

/// The last line of text that is cleaned, and the cursor in it.
#[derive(Debug)]
pub(super) struct OverwriteState {
    /// Whether lines may be written over at all.
    allowed: bool,
    /// What is clean begins with a line.
    whole: bool,
    /// Where the last line begins, while something is written over it.
    start: usize,
    /// Where in it the cursor is; none: behind its end.
    column: Option<usize>,
    /// Something was written over it.
    over: bool,
    erased: Option<Erased>,
    /// The last line, if all of it was written at once where nothing was left of another: its bytes are columns.
    written: Option<Range<usize>>,
    /// Something that was to be seen was written over; it is not looked for once it is known.
    lost: bool,
}

/// A line of which all was erased.
#[derive(Debug, Clone, Copy)]
struct Erased {
    /// Where it begins.
    start: usize,
    /// How long it had been.
    length: usize,
}

/// What a sequence erases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Erase {
    /// What is behind the cursor.
    Right,
    Line,
}

impl OverwriteState {
    /// Whether what follows is added behind the end of the last line.
    pub(super) fn appends(&self) -> bool {
        self.column.is_none()
    }

    /// Whether what follows is written over something.
    pub(super) fn is_over(&self) -> bool {
        self.column.is_some() || self.over
    }

    /// Takes a carriage return; whether it can be done here.
    pub(super) fn carriage_return(&mut self, clean: &[u8]) -> bool {
        if self.column.is_none() {
            let written = self.written.take().filter(|line| line.end == clean.len());
            let start = match &written {
                Some(line) => Some(line.start),
                None => self.line_start(clean),
            };
            let Some(start) = start.filter(|_| self.allowed) else {
                return false;
            };
            let line = &clean[start..];
            if line.is_empty() {
                return true;
            }
            if line.len() > MAX_COLUMNS || written.is_none() && !is_narrow(line) {
                return false;
            }
            self.start = start;
        }
        self.column = Some(0);
        true
    }

    /// Whether nothing stands in the last line after all of it was erased.
    fn is_erased(&self, clean: &[u8]) -> bool {
        self.erased
            .is_some_and(|erased| erased.start == clean.len())
    }

    /// Where the last line begins, if it is short.
    fn line_start(&self, clean: &[u8]) -> Option<usize> {
        let near = clean.len().saturating_sub(MAX_COLUMNS + 1);
        match memrchr(b'\n', &clean[near..]) {
            Some(at) => Some(near + at + 1),
            None => (near == 0 && self.whole).then_some(0),
        }
    }

    /// Erases a part of the last line; whether that can be done here.
    pub(super) fn erase(&mut self, erase: Erase, clean: &mut Vec<u8>) -> bool {
        let Some(column) = self.column else {
            return false;
        };
        let at = self.start + column;
        let behind = &clean[at..];
        match (erase, column) {
            (Erase::Right, _) if behind.is_empty() => {}
            (_, 0) if may_be_wrapped(behind) => return false,
            (_, 0) => {
                let before = self.erased.filter(|erased| erased.start == at);
                self.erased = Some(Erased {
                    start: at,
                    length: behind.len().max(before.map_or(0, |erased| erased.length)),
                });
                self.lost |= behind.iter().any(u8::is_ascii_graphic);
                self.over = false;
                clean.truncate(at);
            }
            (Erase::Right, _) => {
                self.lost |= behind.iter().any(|byte| gone(*byte, b' '));
                self.over = true;
                clean.truncate(at);
            }
            (Erase::Line, _) => return false,
        }
        true
    }

    /// Writes a part of `bytes` without controls but line breaks and tabs over the last line; returns how much of it
    /// could be written.
    pub(super) fn write(&mut self, bytes: &[u8], part: Range<usize>, clean: &mut Vec<u8>) -> usize {
        let run = &bytes[part.clone()];
        let end = find(run, no_column).unwrap_or(run.len());
        let first = part.start..part.start + end;
        let rest = &run[end..];
        if !matches!(rest, [] | [b'\n', ..]) {
            return 0;
        }
        match self.column {
            Some(0) if clean.len() == self.start => {
                self.column = first.is_empty().then_some(0);
                add_short(bytes, first, clean);
                self.written = Some(self.start..clean.len());
            }
            Some(column) if column + end <= MAX_COLUMNS => {
                self.write_over(bytes, first, self.start + column, clean);
                self.column = Some(column + end);
            }
            Some(_) => return 0,
            None => add_short(bytes, first, clean),
        }
        if rest.is_empty() {
            return run.len();
        }
        // Blanks at the end erase what stood there, unless something is written behind them yet; and a line of which
        // all was erased is one that was printed.
        let blanks = self.over && clean.last() == Some(&b' ');
        if blanks || self.is_erased(clean) {
            return end;
        }
        clean.extend_from_slice(rest);
        (self.column, self.over) = (None, false);
        run.len()
    }

    /// Writes a part of `bytes` over what stands at a place in `clean`.
    fn write_over(&mut self, bytes: &[u8], part: Range<usize>, at: usize, clean: &mut Vec<u8>) {
        let text = &bytes[part.clone()];
        let old = &mut clean[at..];
        let mut pairs = old.iter().zip(text);
        self.lost |= !self.lost && pairs.any(|(old, new)| gone(*old, *new));
        if text.len() < old.len() {
            old[..text.len()].copy_from_slice(text);
        } else {
            clean.truncate(at);
            add_short(bytes, part, clean);
        }
        self.over |= !text.is_empty();
    }
}

impl Sanitizer {
    /// Begins to clean text that is added at the end of the last line, if it `appends`.
    pub(super) fn draw(&self, appends: bool) -> OverwriteState {
        OverwriteState {
            allowed: appends && !self.margins.are_known(),
            whole: self.rows[self.row].is_empty(),
            start: 0,
            column: None,
            over: false,
            erased: None,
            written: None,
            lost: self.lost,
        }
    }

    /// Begins to clean text that is written over the last line, which becomes what is `clean`, if it can.
    pub(super) fn draw_over(&mut self, clean: &mut Vec<u8>) -> Option<OverwriteState> {
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
        let begun = row.number == self.breaks + 1;
        let over = begun.then(|| row.move_into(clean)).flatten()?;
        self.column = Column::End;
        Some(OverwriteState {
            whole: true,
            column,
            over,
            ..draw
        })
    }

    /// What was cleaned is on the screen, `clean` is what it was: the cursor is where it was drawn last.
    pub(super) fn end_draw(&mut self, draw: &OverwriteState, clean: &[u8]) {
        self.lost |= draw.lost;
        let row = &mut self.rows[self.row];
        if draw.over {
            row.mark_overwritten();
        }
        if let Some(erased) = draw.erased
            && draw.line_start(clean) == Some(erased.start)
        {
            row.was_erased(self.breaks + 1, erased.length);
        }
        if let Some(column) = draw.column {
            self.column = Column::At(column);
        }
    }
}
