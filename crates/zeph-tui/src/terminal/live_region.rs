//! The bottom rows of the terminal, which are painted in place. Everything above them is scrollback that never changes.
//!
//! One write contains a whole frame between the marks of a synchronized update (DEC private mode 2026), so that a
//! terminal that knows the mode shows no half of it. A row never fills more than the width, so the terminal never wraps
//! it. After a change of the size, the rows are painted again from the row where the region began. A narrower terminal has
//! wrapped the painted rows, so the region then begins further above the cursor.

use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use crate::view::render::to_ansi;

const BEGIN_FRAME: &str = "\x1b[?2026h";
const END_FRAME: &str = "\x1b[?2026l";
/// Erases from the cursor to the end of the screen.
const ERASE_BELOW: &str = "\x1b[J";
/// Erases from the cursor to the end of the row.
const ERASE_REST: &str = "\x1b[K";

/// The size of the terminal in columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The rows at the bottom and the place of the cursor in them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LiveRows {
    pub(super) rows: Vec<Line<'static>>,
    /// Row and column of the cursor; `None` for the end of the last row.
    pub(super) cursor: Option<(usize, usize)>,
}

/// The painted region.
#[derive(Debug, Default)]
pub(super) struct LiveRegion {
    rows: Vec<String>,
    /// The columns of each row without the blanks at its end.
    widths: Vec<usize>,
    cursor: (usize, usize),
    size: Option<Size>,
}

impl LiveRegion {
    /// The bytes that print the complete lines of `above`, and the rows `live` below them. Rows above the height of the
    /// terminal are omitted.
    pub(super) fn paint(
        &mut self,
        above: &str,
        live: LiveRows,
        size: Size,
        colour: bool,
    ) -> String {
        let LiveRows { mut rows, cursor } = live;
        // With one row less than the terminal has, the region never scrolls its own first row away.
        let omitted = rows
            .len()
            .saturating_sub(size.rows.saturating_sub(1).max(1));
        rows.drain(..omitted);
        let widths: Vec<usize> = rows
            .iter()
            .map(|row| row.width().min(size.columns))
            .collect();
        let text_widths = rows.iter().zip(&widths).map(|(row, width)| {
            let text = row.to_string();
            text.trim_end().width().min(*width)
        });
        let text_widths: Vec<usize> = text_widths.collect();
        let last = rows.len().saturating_sub(1);
        let end = (last, widths.last().copied().unwrap_or(0));
        let cursor = cursor.map_or(end, |(row, column)| {
            (row.saturating_sub(omitted).min(last), column)
        });
        // A cursor after the last column would be in the next row.
        let cursor = (cursor.0, cursor.1.min(size.columns.saturating_sub(1)));
        let rows: Vec<String> = rows
            .iter()
            .map(|row| to_ansi(&fit(row, size.columns), colour))
            .collect();
        let is_same = rows == self.rows && cursor == self.cursor && self.size == Some(size);
        if above.is_empty() && is_same {
            return String::new();
        }
        let mut out = BEGIN_FRAME.to_owned();
        out.push_str(&self.to_start(size.columns));
        let is_narrower = self
            .size
            .is_some_and(|before| size.columns < before.columns);
        if is_narrower || !above.is_empty() {
            out.push_str(ERASE_BELOW);
            out.push_str(&above.replace('\n', "\r\n"));
        }
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                out.push_str("\r\n");
            }
            out.push_str(row);
            // A full row leaves the cursor on its last character, which would be erased.
            if widths.get(at).is_none_or(|width| *width < size.columns) {
                out.push_str(ERASE_REST);
            }
        }
        // The cursor is on the last row: the rows below belonged to a higher region.
        if rows.is_empty() {
            out.push_str(ERASE_BELOW);
        } else if self.rows.len() > rows.len() {
            out.push_str(&format!("\r\n{ERASE_BELOW}\x1b[A"));
        }
        if !rows.is_empty() {
            out.push('\r');
            up(last - cursor.0, &mut out);
            if cursor.1 > 0 {
                out.push_str(&format!("\x1b[{}C", cursor.1));
            }
        }
        out.push_str(END_FRAME);
        self.rows = rows;
        self.widths = text_widths;
        self.cursor = cursor;
        self.size = Some(size);
        out
    }

    /// The bytes that erase the region on a terminal of `columns`. The cursor is then at the start of an empty row.
    pub(super) fn erase(&mut self, columns: usize) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let out = format!("{}{ERASE_BELOW}", self.to_start(columns));
        self.forget();
        out
    }

    /// Forgets the rows: something else has used the screen.
    pub(super) fn forget(&mut self) {
        self.rows.clear();
        self.widths.clear();
        self.cursor = (0, 0);
        self.size = None;
    }

    /// Moves the cursor to the start of the region on a terminal of `columns`, which wraps the rows that are wider.
    fn to_start(&self, columns: usize) -> String {
        let mut out = String::new();
        if !self.rows.is_empty() {
            let columns = columns.max(1);
            let height = |width: &usize| width.div_ceil(columns).max(1);
            let (row, column) = self.cursor;
            let above: usize = self.widths.iter().take(row).map(height).sum();
            let last = self.widths.get(row).map_or(0, |width| height(width) - 1);
            out.push('\r');
            up(above + (column / columns).min(last), &mut out);
        }
        out
    }
}

fn up(rows: usize, out: &mut String) {
    if rows > 0 {
        out.push_str(&format!("\x1b[{rows}A"));
    }
}

/// The beginning of a row that fits into `columns`.
fn fit(row: &Line<'static>, columns: usize) -> Line<'static> {
    if row.width() <= columns {
        return row.clone();
    }
    let mut left = columns;
    let mut spans = Vec::new();
    for span in &row.spans {
        let mut end = 0;
        for (at, c) in span.content.char_indices() {
            let width = Span::raw(c.to_string()).width();
            if width > left {
                break;
            }
            left -= width;
            end = at + c.len_utf8();
        }
        spans.push(Span::styled(span.content[..end].to_owned(), span.style));
        if end < span.content.len() {
            break;
        }
    }
    Line {
        spans,
        ..row.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &[&str]) -> LiveRows {
        LiveRows {
            rows: texts
                .iter()
                .map(|text| Line::from((*text).to_owned()))
                .collect(),
            cursor: None,
        }
    }

    /// A terminal with the output of the region.
    struct Terminal {
        screen: vt100::Parser,
        region: LiveRegion,
        size: Size,
    }

    impl Terminal {
        fn new(columns: u16, rows: u16) -> Self {
            let (Ok(high), Ok(wide)) = (rows.try_into(), columns.try_into()) else {
                unreachable!("the sizes are not zero");
            };
            Self {
                screen: vt100::Parser::new(high, wide, 100),
                region: LiveRegion::default(),
                size: Size {
                    columns: columns.into(),
                    rows: rows.into(),
                },
            }
        }

        fn paint(&mut self, above: &str, live: LiveRows) -> String {
            let bytes = self.region.paint(above, live, self.size, false);
            self.screen.process(bytes.as_bytes());
            self.screen.screen().contents()
        }
    }

    /// Proves CLI-4a, CLI-4c: rows change in place, and committed lines remain above them.
    #[test]
    fn region_is_painted_in_place_below_committed_lines() {
        let mut terminal = Terminal::new(20, 6);
        assert_eq!(terminal.paint("", rows(&["a", "b"])), "a\nb");
        assert_eq!(
            terminal.paint("one\n", rows(&["a", "c", "d"])),
            "one\na\nc\nd"
        );
        assert_eq!(terminal.paint("two\n", rows(&["x"])), "one\ntwo\nx");
        assert_eq!(terminal.paint("", rows(&[])), "one\ntwo");
        assert_eq!(
            terminal.paint("three\n", rows(&["y"])),
            "one\ntwo\nthree\ny"
        );
        let erased = terminal.region.erase(terminal.size.columns);
        terminal.screen.process(erased.as_bytes());
        assert_eq!(terminal.screen.screen().contents(), "one\ntwo\nthree");
        assert!(terminal.region.rows.is_empty());
    }

    #[test]
    fn same_frame_prints_nothing() {
        let mut terminal = Terminal::new(20, 6);
        terminal.paint("", rows(&["a"]));
        let size = terminal.size;
        assert_eq!(terminal.region.paint("", rows(&["a"]), size, false), "");
    }

    /// Proves CLI-4a: a terminal wraps the rows when it becomes narrower, and no part of them remains.
    #[test]
    fn rows_that_a_narrower_terminal_wraps_are_painted_again() {
        let check = |painted: &[&str], cursor: Option<(usize, usize)>, columns: u16| {
            let mut live = rows(painted);
            live.cursor = cursor;
            let mut wide = Terminal::new(20, 12);
            let size = wide.size;
            let bytes = wide.region.paint("committed\n", live, size, false);
            // As if the terminal had wrapped: it shows the same text in fewer columns, with the cursor in its cell.
            let mut narrow = Terminal::new(columns, 12);
            narrow
                .screen
                .process(bytes.replace("\x1b[K", "").as_bytes());
            narrow.region = wide.region;
            let shown = narrow.paint("", rows(&["new", "rows"]));
            assert_eq!(shown, "committed\nnew\nrows", "{painted:?} {columns}");
        };
        check(&["short", "row"], None, 10);
        check(&["a row of 19 columns", "end"], None, 10);
        check(&["a row of 19 columns", "a row of 19 columns"], None, 8);
        check(&["one", "a row with blanks   "], None, 10);
        check(&["漢字漢字漢字", "end"], None, 10);
    }

    #[test]
    fn cursor_in_a_wrapped_row_is_above_the_rest_of_the_region() {
        let check = |cursor, columns, expect: &str| {
            let mut live = rows(&["0123456789012345678", "012345", "status"]);
            live.cursor = Some(cursor);
            let mut terminal = Terminal::new(20, 12);
            terminal.paint("", live);
            assert_eq!(terminal.region.to_start(columns), expect, "{cursor:?}");
        };
        check((0, 3), 20, "\r");
        check((1, 3), 20, "\r\x1b[1A");
        check((0, 3), 10, "\r");
        check((0, 12), 10, "\r\x1b[1A");
        check((1, 3), 10, "\r\x1b[2A");
        check((2, 6), 10, "\r\x1b[3A");
        check((2, 6), 4, "\r\x1b[8A");
    }

    /// Proves CLI-4a: the region is bounded by a terminal of any size.
    #[test]
    fn region_fits_every_terminal() {
        for (columns, height) in [(1, 1), (2, 2), (12, 4), (80, 24)] {
            let mut terminal = Terminal::new(columns, height);
            for n in 0..6 {
                let long = "漢x".repeat(60);
                let many: Vec<String> = (0..n * 9).map(|row| format!("{row} {long}")).collect();
                let many: Vec<&str> = many.iter().map(String::as_str).collect();
                terminal.paint(&format!("line {n}\n"), rows(&many));
                assert!(terminal.region.rows.len() < usize::from(height).max(2));
            }
            let shown = terminal.paint("", rows(&["e"]));
            assert_eq!(
                shown.trim_end().lines().last(),
                Some("e"),
                "{columns}x{height}"
            );
        }
    }

    #[test]
    fn scrolled_lines_are_not_lost() {
        let mut terminal = Terminal::new(20, 4);
        for n in 0..9 {
            terminal.paint(&format!("line {n}\n"), rows(&["a", "b"]));
        }
        assert_eq!(
            terminal.paint("", rows(&["a", "b"])),
            "line 7\nline 8\na\nb"
        );
        terminal.screen.screen_mut().set_scrollback(7);
        let above = terminal.screen.screen().contents();
        assert!(above.starts_with("line 0\nline 1\nline 2\n"), "{above}");
    }

    #[test]
    fn cursor_is_at_its_place() {
        let mut terminal = Terminal::new(20, 6);
        let mut live = rows(&["input", "status"]);
        live.cursor = Some((0, 3));
        terminal.paint("", live.clone());
        assert_eq!(terminal.screen.screen().cursor_position(), (0, 3));
        terminal.paint("one\n", live);
        assert_eq!(terminal.screen.screen().cursor_position(), (1, 3));
    }
}
