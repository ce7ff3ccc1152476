//! Rows of a block in a compact form: one text with the ends of its parts. A long conversation has many rows, and only
//! the visible ones are needed as lines.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use crate::view::render::prefix_that_fits;

/// The styles that are compared with a new one. A theme has a few dozens.
const MAX_RECENT_STYLES: usize = 64;

/// Rows of styled text.
#[derive(Debug, Default)]
pub(super) struct Rows {
    text: String,
    parts: Vec<Part>,
    rows: Vec<RowEnd>,
    /// The styles. A recent one is not added again.
    styles: Vec<Style>,
}

/// Text of one style.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The end in the text. A block has less than 4 GiB.
    end: u32,
    /// The index of the style.
    style: u32,
}

#[derive(Debug, Clone, Copy)]
struct RowEnd {
    /// The number of parts up to the end of the row.
    parts: u32,
    /// The index of the style.
    style: u32,
}

impl Rows {
    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds lines. A line that is wider than `width` continues in the next row, such as a long line of code.
    pub(super) fn extend(&mut self, lines: Vec<Line<'_>>, width: usize) {
        let width = width.max(1);
        for line in lines {
            let mut room = width;
            for span in &line.spans {
                let mut text = span.content.as_ref();
                loop {
                    let mut end = prefix_that_fits(text, room);
                    if end == 0 && room == width {
                        // A character is wider than the row.
                        end = text.ceil_char_boundary(1);
                    }
                    if end >= text.len() {
                        break;
                    }
                    self.push_part(&text[..end], span.style);
                    self.end_row(line.style);
                    (text, room) = (&text[end..], width);
                }
                self.push_part(text, span.style);
                room = room.saturating_sub(text.width());
            }
            self.end_row(line.style);
        }
    }

    fn push_part(&mut self, text: &str, style: Style) {
        self.text.push_str(text);
        let (end, style) = (compact(self.text.len()), self.index_of(style));
        self.parts.push(Part { end, style });
    }

    fn end_row(&mut self, style: Style) {
        let (parts, style) = (compact(self.parts.len()), self.index_of(style));
        self.rows.push(RowEnd { parts, style });
    }

    /// Removes all rows except the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        if count < self.rows.len() {
            self.rows.truncate(count);
            self.parts.truncate(self.first_part(count));
            self.text.truncate(self.start(self.parts.len()));
        }
    }

    /// A row.
    pub(super) fn line(&self, at: usize) -> Option<Line<'static>> {
        let (first, row) = (self.first_part(at), self.rows.get(at)?);
        let mut start = self.start(first);
        let parts = self.parts.get(first..row.parts as usize)?.iter();
        let spans = parts.map(|part| {
            let end = part.end as usize;
            let text = self.text.get(start..end).unwrap_or_default();
            start = end;
            Span::styled(text.to_owned(), self.style(part.style))
        });
        Some(Line::from_iter(spans).style(self.style(row.style)))
    }

    /// The text of each row.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| {
            let start = self.start(self.first_part(at));
            let end = self.start(self.first_part(at + 1));
            self.text.get(start..end).unwrap_or_default()
        })
    }

    fn first_part(&self, row: usize) -> usize {
        let before = row.checked_sub(1).and_then(|before| self.rows.get(before));
        before.map_or(0, |row| row.parts as usize)
    }

    /// The start of a part in the text.
    fn start(&self, part: usize) -> usize {
        let before = part
            .checked_sub(1)
            .and_then(|before| self.parts.get(before));
        before.map_or(0, |part| part.end as usize)
    }

    fn style(&self, index: u32) -> Style {
        let style = self.styles.get(index as usize);
        style.copied().unwrap_or_default()
    }

    fn index_of(&mut self, style: Style) -> u32 {
        let recent = self.styles.len().saturating_sub(MAX_RECENT_STYLES);
        let known = self.styles[recent..]
            .iter()
            .position(|known| *known == style);
        let index = known.map_or(self.styles.len(), |at| recent + at);
        if index == self.styles.len() {
            self.styles.push(style);
        }
        compact(index)
    }
}

/// A length or an index in the compact form.
fn compact(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use ratatui::style::Modifier;

    use super::*;

    #[test]
    fn rows_are_the_lines_that_were_added() {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let lines = vec![
            Line::from(vec![Span::raw("a é"), Span::styled("漢", bold)]),
            Line::default(),
            Line::styled("whole", bold),
            Line::from("last"),
        ];
        let mut rows = Rows::default();
        rows.extend(lines.clone(), 80);
        let shown: Vec<_> = (0..rows.len()).filter_map(|at| rows.line(at)).collect();
        assert_eq!(shown, lines);
        let texts: Vec<_> = rows.texts().collect();
        assert_eq!(texts, ["a é漢", "", "whole", "last"]);
        assert_eq!(rows.line(4), None);
        rows.truncate(1);
        rows.extend(vec![Line::from("next")], 80);
        assert_eq!(rows.texts().collect::<Vec<_>>(), ["a é漢", "next"]);
        rows.truncate(0);
        assert_eq!((rows.len(), rows.texts().count()), (0, 0));
    }

    /// Proves CLI-5: a line that is wider than the screen is not cut.
    #[test]
    fn wide_line_continues_in_the_next_row() {
        let check = |spans: &[&'static str], width, expect: &[&str]| {
            let mut rows = Rows::default();
            let spans = spans.iter().map(|text| Span::raw(*text));
            rows.extend(vec![Line::from_iter(spans)], width);
            assert_eq!(rows.texts().collect::<Vec<_>>(), expect, "{width}");
        };
        check(&["let a = 1;", " // one"], 20, &["let a = 1; // one"]);
        check(&["let a = 1;", " // one"], 10, &["let a = 1;", " // one"]);
        check(
            &["let a = 1;", " // one"],
            7,
            &["let a =", " 1; // ", "one"],
        );
        check(&["漢字", "x"], 3, &["漢", "字x"]);
        check(&["漢字"], 1, &["漢", "字"]);
        check(&["e\u{301}x"], 1, &["e\u{301}", "x"]);
        check(&["ab"], 0, &["a", "b"]);
        check(&[""], 5, &[""]);
        check(&[], 5, &[""]);
    }

    #[test]
    fn every_style_of_many_is_restored() {
        let coloured = |red: u8| {
            let colours = (0..=255).map(|green| ratatui::style::Color::Rgb(red, green, 0));
            Line::from_iter(colours.map(|colour| Span::styled("x", Style::new().fg(colour))))
        };
        let lines: Vec<_> = (0..4).chain(0..4).map(coloured).collect();
        let mut rows = Rows::default();
        rows.extend(lines.clone(), 256);
        let shown: Vec<_> = (0..rows.len()).filter_map(|at| rows.line(at)).collect();
        assert_eq!(shown, lines);
    }
}
