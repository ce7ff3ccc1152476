//! One line on the screen.

use memchr::memchr;
use unicode_width::UnicodeWidthChar as _;

use super::cut::Text;

/// Columns up to which a line can be edited. A longer one is text that is no progress bar.
pub(super) const MAX_COLUMNS: usize = 1024;
/// How far a movement to the right may go beyond what was printed.
const MARGIN: usize = 256;
/// Combining characters that one cell keeps, in bytes.
const MAX_MARKS: usize = 32;
const TAB: usize = 8;

/// A line: text as long as it only grows, cells once it was edited.
#[derive(Debug, Default)]
pub(super) struct TerminalLine {
    text: Text,
    cells: Vec<Cell>,
    /// It is held in cells; `text` is empty.
    edited: bool,
    /// The text has characters of another width than one column, or one byte.
    wide: bool,
    /// Something of the text was overwritten or erased.
    overwritten: bool,
    /// It has become too long to be edited.
    fixed: bool,
    /// Bytes of the text when it was last asked whether it has grown.
    asked: usize,
    /// The last raw line that wrote into it; 0 is none.
    pub(super) number: u64,
    /// A line break has followed it.
    pub(super) ended: bool,
}

#[derive(Debug)]
struct Cell {
    c: char,
    /// Columns; 0 is the continuation of the cell before.
    width: u8,
    /// What combines with it.
    #[allow(clippy::box_collection, reason = "a cell is small, and few have any")]
    marks: Option<Box<String>>,
}

const BLANK: Cell = Cell {
    c: ' ',
    width: 1,
    marks: None,
};

/// Where in a line the next character goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Behind its last character.
    End,
    At(usize),
}

impl TerminalLine {
    /// Makes it an empty line again, keeping its memory.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.cells.clear();
        self.edited = false;
        self.wide = false;
        self.overwritten = false;
        self.fixed = false;
        self.asked = 0;
        self.number = 0;
        self.ended = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.kept().is_empty() && self.cells.is_empty()
    }

    /// Whether it is too long for anything but growing.
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed || self.text.kept().len() > MAX_COLUMNS
    }

    /// Its text, as long as it was not edited.
    pub(super) fn text(&self) -> &str {
        self.text.kept()
    }

    /// Whether there is text of which nothing was edited or cut, and more of it than when this was asked
    /// last.
    pub(super) fn has_grown(&mut self) -> bool {
        let length = self.text.kept().len();
        let grown = !self.edited && !self.text.is_cut() && length > self.asked;
        if grown {
            self.asked = length;
        }
        grown
    }

    /// Whether something other than blanks stands in it.
    pub(super) fn is_visible(&self) -> bool {
        self.text.kept().chars().any(is_visible) || self.cells.iter().any(|cell| is_visible(cell.c))
    }

    /// Adds text without control characters other than tabs at the end of a line that was not
    /// edited.
    pub(super) fn append(&mut self, text: &str) {
        if self.cells.is_empty() {
            self.edited = false;
        }
        self.wide |= !is_narrow(text.as_bytes());
        self.text.push(text);
    }

    /// Whether it can only be added to cell by cell.
    pub(super) fn is_edited(&self) -> bool {
        self.edited
    }

    /// Turns the text into cells.
    fn edit(&mut self) {
        if self.edited {
            return;
        }
        self.edited = true;
        let text = std::mem::take(&mut self.text);
        for c in text.kept().chars() {
            self.put(self.cells.len(), c);
        }
        // Keeps the memory.
        self.text = text;
        self.text.clear();
    }

    /// The column behind its last character. Where columns are no bytes, it gets cells.
    pub(super) fn columns(&mut self) -> usize {
        if !self.edited && !self.wide {
            return self.text.kept().len();
        }
        self.edit();
        self.cells.len()
    }

    /// Writes a text at a column. Returns where the cursor then is, and whether something that
    /// was visible went; `told`: that is known already, and need not be looked for.
    pub(super) fn write(&mut self, column: usize, text: &str, told: bool) -> (Column, bool) {
        let end = self.text.kept().len();
        if !self.edited && !self.wide && column <= end && is_narrow(text.as_bytes()) {
            // What goes beyond the columns that can be edited is text that only grows.
            let most = MAX_COLUMNS.max(end) - column;
            let (text, beyond) = text.split_at(text.len().min(most));
            let after = column + text.len();
            let old = &self.text.kept().as_bytes()[column..after.min(end)];
            let mut pairs = old.iter().zip(text.as_bytes());
            let lost = !told && pairs.any(|(old, new)| gone(*old, *new));
            self.overwritten = true;
            self.text.write(column, text);
            if beyond.is_empty() {
                return (Column::At(after), lost);
            }
            self.fixed = true;
            self.append(beyond);
            return (Column::End, lost);
        }
        self.edit();
        let mut column = column;
        let mut lost = false;
        for (at, c) in text.char_indices() {
            if column >= MAX_COLUMNS && column >= self.cells.len() {
                self.fix();
                self.append(&text[at..]);
                return (Column::End, lost);
            }
            let (next, gone) = self.put(column, c);
            column = next;
            lost |= gone;
        }
        (Column::At(column), lost)
    }

    fn put(&mut self, column: usize, c: char) -> (usize, bool) {
        if c == '\t' {
            let next = (column / TAB + 1) * TAB;
            if column < self.cells.len() {
                // It moves over what is there.
                return (next, false);
            }
            self.pad(column);
            self.cells.push(Cell {
                width: u8::try_from(next - column).unwrap_or(1),
                c,
                marks: None,
            });
            self.cells.resize_with(next, || Cell { width: 0, ..BLANK });
            return (next, false);
        }
        let width = c.width().unwrap_or(0);
        if width == 0 {
            self.combine(column, c);
            return (column, false);
        }
        let mut lost = false;
        self.pad(column);
        for (at, cell) in [(column, c), (column + 1, ' ')].into_iter().take(width) {
            if at < self.cells.len() {
                lost |= self.release(at, cell);
            } else {
                self.cells.push(BLANK);
            }
        }
        self.cells[column] = Cell {
            c,
            width: u8::try_from(width).unwrap_or(1),
            marks: None,
        };
        if let Some(second) = self.cells.get_mut(column + 1).filter(|_| width > 1) {
            second.width = 0;
        }
        (column + width, lost)
    }

    /// Fills with blanks up to a column.
    fn pad(&mut self, column: usize) {
        if self.cells.len() < column {
            self.cells.resize_with(column, || BLANK);
        }
    }

    /// Attaches a character without a width of its own to the one before the column.
    fn combine(&mut self, column: usize, c: char) {
        let Some(mut at) = column.checked_sub(1).filter(|at| *at < self.cells.len()) else {
            return;
        };
        while at > 0 && self.cells[at].width == 0 {
            at -= 1;
        }
        let marks = self.cells[at].marks.get_or_insert_default();
        if marks.len() < MAX_MARKS {
            marks.push(c);
        }
    }

    /// Makes a cell free for `new`: of a wide one that loses a part the rest becomes blank.
    /// Whether something visible goes.
    fn release(&mut self, at: usize, new: char) -> bool {
        let mut first = at;
        while first > 0 && self.cells[first].width == 0 {
            first -= 1;
        }
        let old = self.cells[first].c;
        let width = usize::from(self.cells[first].width).max(1);
        let end = (first + width).min(self.cells.len());
        if width > 1 || first != at {
            for cell in &mut self.cells[first..end] {
                *cell = BLANK;
            }
        }
        // An underscore is what overstriking leaves of underlined text.
        old != new && is_visible(old) && old != '_'
    }

    /// Too long to be edited any further.
    fn fix(&mut self) {
        let mut text = String::new();
        self.render_cells(&mut text);
        self.cells.clear();
        self.edited = false;
        // Blanks at its end still say nothing.
        self.overwritten = true;
        self.fixed = true;
        self.text.push(&text);
    }

    /// Erases columns; whether something visible went.
    pub(super) fn erase(&mut self, columns: impl std::ops::RangeBounds<usize>) -> bool {
        use std::ops::Bound;
        let start = match columns.start_bound() {
            Bound::Included(start) => *start,
            _ => 0,
        };
        if start == 0 && columns.end_bound() == Bound::Unbounded {
            let lost = self.is_visible();
            self.text.clear();
            self.cells.clear();
            self.edited = false;
            self.wide = false;
            self.overwritten = false;
            self.fixed = false;
            return lost;
        }
        if !self.edited && !self.wide && columns.end_bound() == Bound::Unbounded {
            let kept = self.text.kept().get(start..).unwrap_or_default();
            let lost = kept.chars().any(|c| is_visible(c) && c != '_');
            self.overwritten |= !kept.is_empty();
            self.text.truncate(start);
            return lost;
        }
        self.edit();
        let end = match columns.end_bound() {
            Bound::Excluded(end) => (*end).min(self.cells.len()),
            Bound::Included(end) => (*end + 1).min(self.cells.len()),
            Bound::Unbounded => self.cells.len(),
        };
        let mut lost = false;
        for at in start..end {
            lost |= self.release(at, ' ');
            self.cells[at] = BLANK;
        }
        if end == self.cells.len() && start < end {
            self.cells.truncate(start);
        }
        if self.cells.is_empty() {
            // As if nothing had been there.
            (self.edited, self.wide, self.overwritten) = (false, false, false);
        }
        lost
    }

    /// How far to the right a movement may go.
    pub(super) fn rightmost(&mut self) -> usize {
        self.columns().saturating_sub(1).max(MARGIN)
    }

    /// Adds what is seen of it to `out`.
    pub(super) fn render(&self, out: &mut String) {
        let start = out.len();
        if self.edited {
            self.render_cells(out);
        } else {
            self.text.render(out);
        }
        if !self.edited && !self.overwritten {
            return;
        }
        // Blanks at the end erase what stood there.
        let end = out[start..].trim_end_matches(' ').len();
        out.truncate(start + end);
    }

    fn render_cells(&self, out: &mut String) {
        for cell in self.cells.iter().filter(|cell| cell.width > 0) {
            out.push(cell.c);
            if let Some(marks) = &cell.marks {
                out.push_str(marks);
            }
        }
    }

    /// Whether text was taken out of its middle.
    pub(super) fn is_cut(&self) -> bool {
        self.text.is_cut()
    }
}

/// Whether each byte is one column.
pub(super) fn is_narrow(text: &[u8]) -> bool {
    text.is_ascii() && memchr(b'\t', text).is_none()
}

/// Whether a byte of ASCII that was to be seen goes where another one is written over it. An underscore is what
/// overstriking leaves of underlined text.
pub(super) fn gone(old: u8, new: u8) -> bool {
    old != new && is_visible(char::from(old)) && old != b'_'
}

fn is_visible(c: char) -> bool {
    !c.is_whitespace()
}
