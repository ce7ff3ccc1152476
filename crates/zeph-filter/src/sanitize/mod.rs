//! The lines that a terminal would show of a command's output, in bounded memory and linear time.
//!
//! Escape sequences are removed (`escape`). Carriage returns, backspaces and cursor movements leave their last state
//! (`terminal_line`), also over several lines, as progress displays draw them: the last `WINDOW` lines can be redrawn. Runs of
//! blank lines become one. The screen has no right margin, unless a display fills its lines up to one (`wrap`). Clearing the screen
//! or moving to an absolute position begins a new line and removes nothing. A line of more than 64 KiB keeps its head and its tail
//! (`cut`).
//!
//! Text without control characters is passed on without a copy, except lines that could still be redrawn (`scan`).

mod cut;
mod escape;
mod out;
mod scan;
mod terminal_line;
#[cfg(test)]
mod tests;
mod wrap;

use std::borrow::Cow;
use std::collections::VecDeque;

use escape::{Escapes, Step, TerminalOp};
use out::LineEmitter;
use scan::first_control;
use terminal_line::{Column, TerminalLine};
use wrap::Margins;

use super::line::Line;

/// Lines above the last one that can still be redrawn.
const WINDOW: usize = 64;

/// A model of the terminal that receives the output of a command.
#[derive(Debug)]
pub struct Sanitizer {
    escapes: Escapes,
    /// The lines that can still change; never empty.
    rows: VecDeque<TerminalLine>,
    /// The row of the cursor.
    row: usize,
    column: Column,
    /// The cursor cannot move above this row.
    top: usize,
    saved: Option<Saved>,
    /// True while text is printed to a status line, which is dropped.
    aside: bool,
    /// The number of line breaks so far.
    breaks: u64,
    /// True if raw text follows the last line break.
    begun: bool,
    lost: bool,
    margins: Margins,
    out: LineEmitter,
}

/// A saved cursor position.
#[derive(Debug, Clone, Copy)]
struct Saved {
    row: usize,
    column: Column,
    /// The number of line breaks before it was saved.
    breaks: u64,
}

impl Default for Sanitizer {
    fn default() -> Self {
        Self::new()
    }
}

impl Sanitizer {
    /// Creates an empty screen.
    #[must_use]
    pub fn new() -> Self {
        Self {
            escapes: Escapes::default(),
            rows: VecDeque::from([TerminalLine::default()]),
            row: 0,
            column: Column::End,
            top: 0,
            saved: None,
            aside: false,
            breaks: 0,
            begun: false,
            lost: false,
            margins: Margins::default(),
            out: LineEmitter::default(),
        }
    }

    /// Returns true if visible text is missing from the lines: it was overwritten or erased, or its line was too
    /// long.
    #[must_use]
    pub fn dropped_visible(&self) -> bool {
        self.lost
    }

    /// The number of lines of the raw text so far.
    #[must_use]
    pub fn raw_lines(&self) -> u64 {
        self.breaks + u64::from(self.begun)
    }

    /// Processes the next piece of the raw text. Passes the lines that can no longer change to `out`.
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(Line<'_>)) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            self.begun = true;
            if !self.escapes.is_ground() {
                let step = self.escapes.step(c);
                if !matches!(step, Step::Before(_)) {
                    rest = &rest[c.len_utf8()..];
                }
                if let Step::Done(op) | Step::Before(op) = step {
                    self.apply(op, out);
                }
                continue;
            }
            let (plain, more) = rest.split_at(first_control(rest));
            if !plain.is_empty() {
                self.begun = !plain.ends_with('\n');
                self.plain(plain, out);
                rest = more;
                continue;
            }
            rest = &rest[c.len_utf8()..];
            match self.escapes.begin(c) {
                Some(Step::Done(op)) => self.apply(op, out),
                Some(_) => {}
                None => self.control(c, out),
            }
        }
    }

    /// Ends the text, and passes the remaining lines to `out`. Returns true if the last line ends with a line break.
    pub fn finish(&mut self, out: &mut impl FnMut(Line<'_>)) -> bool {
        let op = self.escapes.end();
        self.apply(op, out);
        self.unwrap_early(out);
        // The cursor may have moved below the printed text.
        while self
            .rows
            .back()
            .is_some_and(|row| !row.ended && row.is_empty())
        {
            self.rows.pop_back();
        }
        let ended = self.rows.back().is_none_or(|row| row.ended);
        for row in std::mem::take(&mut self.rows) {
            self.lost |= row.is_cut();
            self.out.row(&row, out);
        }
        self.rows.push_back(TerminalLine::default());
        (self.row, self.column, self.top, self.saved) = (0, Column::End, 0, None);
        ended
    }

    /// Returns true if the cursor is on the last line and the line was never printed on. An erased line has the
    /// number of the raw line that wrote to it.
    fn is_on_new_line(&self) -> bool {
        let row = &self.rows[self.row];
        let untouched = row.is_empty() && row.number == 0;
        self.row + 1 == self.rows.len() && self.column == Column::End && untouched
    }

    /// Prints text without control characters other than tabs at the cursor.
    fn print(&mut self, text: &str, out: &mut impl FnMut(Line<'_>)) {
        if text.is_empty() {
            return;
        }
        if self.aside {
            self.lost = true;
            return;
        }
        if self.column != Column::End && self.rows[self.row].is_fixed() {
            self.fresh_line(out);
        }
        let number = self.breaks + 1;
        let row = &mut self.rows[self.row];
        row.number = number;
        match self.column {
            Column::End if !row.is_edited() && self.margins.are_known() => {
                self.append_wrapped(text, out);
            }
            Column::End if !row.is_edited() => row.append(text),
            Column::At(0) if row.is_empty() => {
                row.append(text);
                self.column = Column::End;
            }
            column => {
                let at = match column {
                    Column::At(at) => at,
                    Column::End => row.columns(),
                };
                let (column, lost) = row.write(at, text, self.lost);
                self.column = column;
                self.lost |= lost;
            }
        }
    }

    fn line_break(&mut self, out: &mut impl FnMut(Line<'_>)) {
        self.breaks += 1;
        self.begun = false;
        self.aside = false;
        self.unwrap_early(out);
        let row = &mut self.rows[self.row];
        row.ended = true;
        if row.number == 0 {
            row.number = self.breaks;
        }
        self.down(out);
        self.column = Column::At(0);
        if self.rows[self.row].is_empty() {
            self.column = Column::End;
        }
    }

    /// Moves the cursor one line down, and adds a line if needed.
    fn down(&mut self, out: &mut impl FnMut(Line<'_>)) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push_back(TerminalLine::default());
            if self.rows.len() > WINDOW + 1 {
                self.evict(out);
            }
        }
    }

    /// Passes on the first line, and reuses its memory for the last one.
    fn evict(&mut self, out: &mut impl FnMut(Line<'_>)) {
        let Some(row) = self.rows.pop_front() else {
            return;
        };
        self.lost |= row.is_cut();
        self.out.row(&row, out);
        self.row = self.row.saturating_sub(1);
        self.top = self.top.saturating_sub(1);
        if let Some(saved) = &mut self.saved {
            saved.row = saved.row.saturating_sub(1);
        }
        self.spare(row);
    }

    fn spare(&mut self, mut row: TerminalLine) {
        // The new line reuses the memory of the evicted one.
        row.clear();
        if let Some(last) = self.rows.back_mut()
            && last.is_empty()
            && !last.ended
        {
            row.number = last.number;
            *last = row;
        }
    }

    /// Moves the cursor to the start of an empty last line.
    fn fresh_line(&mut self, out: &mut impl FnMut(Line<'_>)) {
        self.row = self.rows.len() - 1;
        if !self.rows[self.row].is_empty() {
            self.rows[self.row].ended = true;
            self.down(out);
        }
        self.column = Column::End;
    }

    fn control(&mut self, c: char, out: &mut impl FnMut(Line<'_>)) {
        match c {
            '\r' if self.column == Column::End && self.rows[self.row].is_empty() => {}
            '\r' => self.column = Column::At(0),
            '\x08' => self.apply(TerminalOp::Left(1), out),
            '\x0b' | '\x0c' => self.fresh_line(out),
            _ => {}
        }
    }

    /// The column of the cursor. If its line is too long to be edited, the cursor moves to an empty last line first.
    fn at(&mut self, out: &mut impl FnMut(Line<'_>)) -> usize {
        if self.column == Column::End && self.rows[self.row].is_fixed() {
            self.fresh_line(out);
        }
        match self.column {
            Column::At(at) => at,
            Column::End => self.rows[self.row].columns(),
        }
    }

    fn apply(&mut self, op: TerminalOp, out: &mut impl FnMut(Line<'_>)) {
        match op {
            TerminalOp::Nothing => {}
            TerminalOp::Swallowed => self.lost = true,
            TerminalOp::Up(count) => self.vertical(count, false, out),
            TerminalOp::Down(count) => self.vertical(count, true, out),
            TerminalOp::NextLine(count) => {
                self.vertical(count, true, out);
                self.column = Column::At(0);
            }
            TerminalOp::PreviousLine(count) => {
                self.vertical(count, false, out);
                self.column = Column::At(0);
            }
            TerminalOp::Left(count) => {
                let at = self.at(out);
                self.column = Column::At(at.saturating_sub(count));
            }
            TerminalOp::Right(count) => {
                let at = self.at(out);
                self.go_to_column(at.saturating_add(count), out);
            }
            TerminalOp::Column(0) => self.control('\r', out),
            TerminalOp::Column(at) => self.go_to_column(at, out),
            TerminalOp::EraseRight
            | TerminalOp::EraseLeft
            | TerminalOp::EraseLine
            | TerminalOp::EraseBelow
            | TerminalOp::EraseCharacters(_) => self.erase(op, out),
            TerminalOp::Elsewhere if self.saved.is_some_and(|at| at.breaks == self.breaks) => {
                self.aside = true;
            }
            TerminalOp::Elsewhere => {
                self.fresh_line(out);
                self.top = self.row;
            }
            TerminalOp::Save => {
                let column = self.place(out);
                self.saved = Some(Saved {
                    row: self.row,
                    column,
                    breaks: self.breaks,
                });
            }
            TerminalOp::Restore => {
                self.aside = false;
                if let Some(saved) = self.saved {
                    self.row = saved.row.clamp(self.top, self.rows.len() - 1);
                    self.column = saved.column;
                }
            }
        }
    }

    /// The column of the cursor as a number, which stays valid if the line grows.
    fn place(&mut self, out: &mut impl FnMut(Line<'_>)) -> Column {
        if self.rows[self.row].is_empty() && self.column == Column::End {
            return Column::At(0);
        }
        Column::At(self.at(out))
    }

    fn vertical(&mut self, count: usize, down: bool, out: &mut impl FnMut(Line<'_>)) {
        if !down {
            self.unwrap_row(count, out);
        }
        let at = self.place(out);
        if down {
            for _ in 0..count.min(WINDOW) {
                self.down(out);
            }
        } else {
            self.row = self.row.saturating_sub(count).max(self.top);
        }
        self.column = at;
    }

    fn go_to_column(&mut self, to: usize, out: &mut impl FnMut(Line<'_>)) {
        if self.rows[self.row].is_fixed() {
            self.fresh_line(out);
        }
        let most = self.rows[self.row].rightmost();
        self.column = Column::At(to.min(most));
    }

    fn erase(&mut self, op: TerminalOp, out: &mut impl FnMut(Line<'_>)) {
        if op == TerminalOp::EraseBelow && self.row + 1 < self.rows.len() {
            for row in self.rows.drain(self.row + 1..) {
                self.lost |= row.is_visible();
            }
            self.rows[self.row].ended = false;
        }
        let from_start = self.column == Column::At(0);
        if op == TerminalOp::EraseLine
            || from_start && matches!(op, TerminalOp::EraseRight | TerminalOp::EraseBelow)
        {
            self.unwrap_row(0, out);
            let at = if from_start { 0 } else { self.at(out) };
            self.lost |= self.rows[self.row].erase(..);
            self.column = Column::At(at);
            return;
        }
        if self.column == Column::End && op != TerminalOp::EraseLeft {
            // No text follows the end of a line.
            return;
        }
        let at = self.at(out);
        self.column = Column::At(at);
        let row = &mut self.rows[self.row];
        if row.is_fixed() {
            return;
        }
        self.lost |= match op {
            TerminalOp::EraseLeft => row.erase(..=at),
            TerminalOp::EraseCharacters(count) => row.erase(at..at.saturating_add(count)),
            _ => row.erase(at..),
        };
    }
}

/// Returns the text as a terminal would show it.
///
/// Escape sequences and control characters other than line breaks and tabs are removed. Progress displays are in
/// their last state. Runs of blank lines become one. In lines of more than 64 KiB, a note replaces the middle.
#[must_use]
pub fn sanitize_output(text: &str) -> Cow<'_, str> {
    let mut sanitizer = Sanitizer::new();
    let mut clean = String::with_capacity(text.len());
    let mut add = |line: Line<'_>| {
        clean.push_str(line.text);
        clean.push('\n');
    };
    sanitizer.push(text, &mut add);
    if !sanitizer.finish(&mut add) {
        clean.pop();
    }
    if clean == text {
        return Cow::Borrowed(text);
    }
    Cow::Owned(clean)
}
