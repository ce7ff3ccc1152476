//! One line on the screen.

use memchr::memchr;
use unicode_width::UnicodeWidthChar as _;

use super::cut::Text;

/// The maximum number of columns of a line that can be edited. A longer line is not a progress bar.
pub(super) const MAX_COLUMNS: usize = 1024;
/// The column that a movement to the right can reach even if the line is shorter.
const MARGIN: usize = 256;
/// The size in bytes at which a cell takes no further combining characters.
const MAX_MARKS: usize = 32;
const TAB: usize = 8;

/// A line of the screen: text while it only grows, cells after an edit.
#[derive(Debug, Default)]
pub(super) struct TerminalLine {
    text: Text,
    cells: Vec<Cell>,
    /// True if the line is stored in cells; `text` is empty then.
    edited: bool,
    /// True if the text may have characters that are not one byte and one column.
    wide: bool,
    /// True if a part of the text was overwritten or erased.
    overwritten: bool,
    /// True if the line is too long to be edited.
    fixed: bool,
    /// The size of the text in bytes when [`TerminalLine::has_grown`] last returned true.
    asked: usize,
    /// The number of the last raw line that wrote to this line; 0 before the first write.
    pub(super) number: u64,
    /// True if a line break follows the line.
    pub(super) ended: bool,
}

#[derive(Debug)]
struct Cell {
    c: char,
    /// The width in columns; 0 for the continuation of the previous cell.
    width: u8,
    /// Combining characters.
    #[allow(clippy::box_collection, reason = "a cell is small, and few have any")]
    marks: Option<Box<String>>,
}

const BLANK: Cell = Cell {
    c: ' ',
    width: 1,
    marks: None,
};

/// The position of the next character in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// After the last character.
    End,
    At(usize),
}

impl TerminalLine {
    /// Empties the line, but retains its memory.
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

    /// Returns true if the line is too long to be edited: it can only grow.
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed || self.text.kept().len() > MAX_COLUMNS
    }

    /// The text; empty if the line is stored in cells.
    pub(super) fn text(&self) -> &str {
        self.text.kept()
    }

    /// Returns true if the line is longer than when this last returned true, and is neither in cells nor cut.
    pub(super) fn has_grown(&mut self) -> bool {
        let length = self.text.kept().len();
        let grown = !self.edited && !self.text.is_cut() && length > self.asked;
        if grown {
            self.asked = length;
        }
        grown
    }

    /// Returns true if the line has a character that is not whitespace.
    pub(super) fn is_visible(&self) -> bool {
        self.text.kept().chars().any(is_visible) || self.cells.iter().any(|cell| is_visible(cell.c))
    }

    /// Appends text without control characters other than tabs. The line must not have cells.
    pub(super) fn append(&mut self, text: &str) {
        if self.cells.is_empty() {
            self.edited = false;
        }
        self.wide |= !is_narrow(text.as_bytes());
        self.text.push(text);
    }

    /// Returns true if the line is stored in cells.
    pub(super) fn is_edited(&self) -> bool {
        self.edited
    }

    /// Converts the text to cells.
    fn edit(&mut self) {
        if self.edited {
            return;
        }
        self.edited = true;
        let text = std::mem::take(&mut self.text);
        for c in text.kept().chars() {
            self.put(self.cells.len(), c);
        }
        // Retains the memory.
        self.text = text;
        self.text.clear();
    }

    /// The column after the last character. If a column may differ from a byte, the text is converted to cells.
    pub(super) fn columns(&mut self) -> usize {
        if !self.edited && !self.wide {
            return self.text.kept().len();
        }
        self.edit();
        self.cells.len()
    }

    /// Writes text at a column. Returns the new position of the cursor, and whether visible text was lost. If the last
    /// argument is true, a loss is already known, and the check may be skipped.
    pub(super) fn write(&mut self, column: usize, text: &str, told: bool) -> (Column, bool) {
        let end = self.text.kept().len();
        if !self.edited && !self.wide && column <= end && is_narrow(text.as_bytes()) {
            // Text after the last editable column can only grow.
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
                // A tab inside of the line only moves the cursor.
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

    /// Fills the line with blanks up to a column.
    fn pad(&mut self, column: usize) {
        if self.cells.len() < column {
            self.cells.resize_with(column, || BLANK);
        }
    }

    /// Attaches a combining character to the character before the column.
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

    /// Frees a cell for `new`. If a wide character loses a part, its other cells become blank. Returns true if
    /// visible text is lost.
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
        // Overstriking replaces the underscores of underlined text.
        old != new && is_visible(old) && old != '_'
    }

    /// Converts the cells of a line that became too long to text, which can only grow.
    fn fix(&mut self) {
        let mut text = String::new();
        self.render_cells(&mut text);
        self.cells.clear();
        self.edited = false;
        // Trailing blanks are removed when the line is rendered.
        self.overwritten = true;
        self.fixed = true;
        self.text.push(&text);
    }

    /// Erases columns. Returns true if visible text is lost.
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
            // An empty line can grow as text again.
            (self.edited, self.wide, self.overwritten) = (false, false, false);
        }
        lost
    }

    /// The last column that a movement to the right can reach.
    pub(super) fn rightmost(&mut self) -> usize {
        self.columns().saturating_sub(1).max(MARGIN)
    }

    /// Appends the visible text of the line to `out`.
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
        // Trailing blanks come from erased text.
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

    /// Returns true if the middle of the text is omitted.
    pub(super) fn is_cut(&self) -> bool {
        self.text.is_cut()
    }
}

/// Returns true if each byte is one column.
pub(super) fn is_narrow(text: &[u8]) -> bool {
    text.is_ascii() && memchr(b'\t', text).is_none()
}

/// Returns true if visible text is lost when the ASCII byte `new` overwrites `old`. An underscore is not counted,
/// because overstriking replaces the underscores of underlined text.
pub(super) fn gone(old: u8, new: u8) -> bool {
    old != new && is_visible(char::from(old)) && old != b'_'
}

fn is_visible(c: char) -> bool {
    !c.is_whitespace()
}
