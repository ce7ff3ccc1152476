//! Rows of a block in a compact form: one text with the ends of its parts. A long conversation has many rows, and only
//! the visible ones are needed as lines.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Rows of styled text.
#[derive(Debug, Default)]
pub(super) struct Rows {
    text: String,
    parts: Vec<Part>,
    rows: Vec<RowEnd>,
}

/// Text of one style.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The end in the text.
    end: usize,
    style: Style,
}

#[derive(Debug, Clone, Copy)]
struct RowEnd {
    /// The number of parts up to the end of the row.
    parts: usize,
    style: Style,
}

impl Rows {
    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds rows.
    pub(super) fn extend(&mut self, lines: Vec<Line<'_>>) {
        for line in lines {
            for span in &line.spans {
                self.text.push_str(&span.content);
                self.parts.push(Part {
                    end: self.text.len(),
                    style: span.style,
                });
            }
            self.rows.push(RowEnd {
                parts: self.parts.len(),
                style: line.style,
            });
        }
    }

    /// Removes all rows except the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        if count < self.rows.len() {
            self.rows.truncate(count);
            self.parts
                .truncate(self.rows.last().map_or(0, |row| row.parts));
            self.text
                .truncate(self.parts.last().map_or(0, |part| part.end));
        }
    }

    /// A row.
    pub(super) fn line(&self, at: usize) -> Option<Line<'static>> {
        let (first, row) = (self.first_part(at), self.rows.get(at)?);
        let mut start = self.start(first);
        let parts = self.parts.get(first..row.parts)?.iter();
        let spans = parts.map(|part| {
            let text = self.text.get(start..part.end).unwrap_or_default();
            start = part.end;
            Span::styled(text.to_owned(), part.style)
        });
        Some(Line::from_iter(spans).style(row.style))
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
        before.map_or(0, |row| row.parts)
    }

    /// The start of a part in the text.
    fn start(&self, part: usize) -> usize {
        let before = part
            .checked_sub(1)
            .and_then(|before| self.parts.get(before));
        before.map_or(0, |part| part.end)
    }
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
        rows.extend(lines.clone());
        let shown: Vec<_> = (0..rows.len()).filter_map(|at| rows.line(at)).collect();
        assert_eq!(shown, lines);
        let texts: Vec<_> = rows.texts().collect();
        assert_eq!(texts, ["a é漢", "", "whole", "last"]);
        assert_eq!(rows.line(4), None);
        rows.truncate(1);
        rows.extend(vec![Line::from("next")]);
        assert_eq!(rows.texts().collect::<Vec<_>>(), ["a é漢", "next"]);
        rows.truncate(0);
        assert_eq!((rows.len(), rows.texts().count()), (0, 0));
    }
}
