//! Tables that fit: columns shrink and their cells wrap; a narrow screen shows one record per row.

use pulldown_cmark::Alignment;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::view::render::styled_text::{BOLD, DIM, StyledText};
use crate::view::render::wrap::{Hanging, ranges, wrap};

/// The separator of columns.
const SEPARATOR: &str = " │ ";
/// Columns shrink to this width, unless they are narrower.
const MIN_COLUMN: usize = 8;

/// A table.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The header and the other rows.
    rows: Vec<Vec<StyledText>>,
}

/// The arrangement of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Columns of these widths.
    Columns(Vec<usize>),
    /// Each row as lines of `header: value`.
    Records,
}

impl Table {
    /// An empty table.
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
        }
    }

    /// Starts a row. The first one is the header.
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the last row.
    pub(super) fn push_cell(&mut self, text: StyledText) {
        if let Some(row) = self.rows.last_mut() {
            row.push(text);
        }
    }

    /// The arrangement in `width` columns.
    pub(super) fn layout(&self, width: usize) -> Layout {
        let mut natural = vec![1_usize; self.alignments.len()];
        for row in &self.rows {
            for (column, cell) in natural.iter_mut().zip(row) {
                *column = cell.width().max(*column);
            }
        }
        let separators = SEPARATOR.width() * natural.len().saturating_sub(1);
        let room = width.saturating_sub(separators);
        if natural
            .iter()
            .map(|column| (*column).min(MIN_COLUMN))
            .sum::<usize>()
            > room
        {
            return Layout::Records;
        }
        Layout::Columns(shrink(natural, room))
    }

    /// The lines of the table. Without the header, the rows continue an earlier table.
    pub(super) fn lines(
        &self,
        layout: &Layout,
        with_header: bool,
        width: usize,
        prefix: &[Span<'static>],
    ) -> Vec<Line<'static>> {
        match layout {
            Layout::Columns(widths) => self.columns(widths, with_header, prefix),
            Layout::Records => self.records(with_header, width, prefix),
        }
    }

    fn columns(
        &self,
        widths: &[usize],
        with_header: bool,
        prefix: &[Span<'static>],
    ) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            if at == 0 && !with_header {
                continue;
            }
            self.row(row, widths, prefix, &mut lines);
            if at == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                let mut spans = prefix.to_vec();
                spans.push(Span::styled(rules.join("─┼─"), DIM));
                lines.push(Line::from(spans));
            }
        }
        lines
    }

    /// Adds the lines of a row. Each cell wraps in its column.
    fn row(
        &self,
        row: &[StyledText],
        widths: &[usize],
        prefix: &[Span<'static>],
        lines: &mut Vec<Line<'static>>,
    ) {
        let empty = StyledText::default();
        let cells: Vec<_> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let cell = row.get(column).unwrap_or(&empty);
                (cell, ranges(cell.as_str(), |_| *width), *width)
            })
            .collect();
        let height = cells
            .iter()
            .map(|(_, parts, _)| parts.len())
            .max()
            .unwrap_or(0);
        for line in 0..height {
            let mut spans = prefix.to_vec();
            for (column, (cell, parts, width)) in cells.iter().enumerate() {
                if column > 0 {
                    spans.push(Span::styled(SEPARATOR, DIM));
                }
                let content = parts.get(line).map(|(start, end)| cell.spans(*start, *end));
                let content = content.unwrap_or_default();
                let used: usize = content.iter().map(Span::width).sum();
                let space = width.saturating_sub(used);
                let before = match self.alignments.get(column) {
                    _ if used == 0 => 0,
                    Some(Alignment::Right) => space,
                    Some(Alignment::Center) => space / 2,
                    _ => 0,
                };
                // The last column has no space at its end.
                let after = if column + 1 < cells.len() {
                    space - before
                } else {
                    0
                };
                for (count, is_before) in [(before, true), (after, false)] {
                    if !is_before {
                        spans.extend(content.iter().cloned());
                    }
                    if count > 0 {
                        spans.push(Span::raw(" ".repeat(count)));
                    }
                }
            }
            lines.push(Line::from(spans));
        }
    }

    fn records(
        &self,
        with_header: bool,
        width: usize,
        prefix: &[Span<'static>],
    ) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let Some((header, rows)) = self.rows.split_first() else {
            return lines;
        };
        let hanging = |indent: &'static str| {
            let mut rest = prefix.to_vec();
            rest.push(Span::raw(indent));
            Hanging {
                first: prefix.to_vec(),
                rest,
            }
        };
        if rows.is_empty() && with_header {
            for name in header {
                lines.extend(wrap(name, width, &hanging("  ")));
            }
        }
        for (at, row) in rows.iter().enumerate() {
            if at > 0 || !with_header {
                lines.push(Line::from(prefix.to_vec()));
            }
            for (name, value) in header.iter().zip(row) {
                let mut text = StyledText::new(name.as_str(), BOLD);
                text.push(if name.is_empty() { "" } else { ": " }, Style::new());
                text.append(value);
                lines.extend(wrap(&text, width, &hanging("  ")));
            }
        }
        lines
    }
}

/// Shrinks the widest columns until all fit into `room`. Narrow columns retain their widths.
fn shrink(natural: Vec<usize>, room: usize) -> Vec<usize> {
    if natural.iter().sum::<usize>() <= room {
        return natural;
    }
    // The largest limit for all columns with which they fit.
    let fits = |limit: usize| {
        natural
            .iter()
            .map(|column| (*column).min(limit))
            .sum::<usize>()
            <= room
    };
    let widest = natural.iter().copied().max().unwrap_or(0);
    let limit = (MIN_COLUMN..=widest)
        .rev()
        .find(|limit| fits(*limit))
        .unwrap_or(MIN_COLUMN);
    let mut widths: Vec<usize> = natural.iter().map(|column| (*column).min(limit)).collect();
    let mut left = room.saturating_sub(widths.iter().sum());
    for (width, natural) in widths.iter_mut().zip(&natural) {
        if left > 0 && *width < *natural {
            *width += 1;
            left -= 1;
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wide_columns_shrink() {
        let check = |natural: &[usize], room, expect: &[usize]| {
            assert_eq!(shrink(natural.to_vec(), room), expect);
        };
        check(&[3, 50, 10], 100, &[3, 50, 10]);
        check(&[3, 50, 10], 43, &[3, 30, 10]);
        check(&[50, 50], 31, &[16, 15]);
        check(&[50, 9, 50], 40, &[16, 9, 15]);
    }
}
