//! Tables: held back until they are complete, then shown with aligned columns.

use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use super::inline::{self, Inline};
use crate::terminal::style::{BOLD, DIM, RESET};

/// A cell: its displayed text and the width in columns.
#[derive(Debug, Clone, Default)]
struct Cell {
    shown: String,
    width: usize,
}

/// Shows the lines of a table; other lines are shown as text.
pub(super) fn render(lines: &[String], out: &mut String) {
    let text = lines.join("\n");
    let Some((alignments, rows)) = parse(&text) else {
        for line in lines {
            inline::render(line, "", out);
            out.push('\n');
        }
        return;
    };
    let mut widths = vec![0_usize; alignments.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.width.max(*width);
        }
    }
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<_> = widths
            .iter()
            .zip(&alignments)
            .enumerate()
            .map(|(column, (width, alignment))| {
                pad(
                    row.get(column).cloned().unwrap_or_default(),
                    *width,
                    *alignment,
                )
            })
            .collect();
        let separator = format!("{DIM} │ {RESET}");
        out.push_str(cells.join(&separator).trim_end());
        out.push('\n');
        if at == 0 {
            let rules: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
            out.push_str(DIM);
            out.push_str(&rules.join("─┼─"));
            out.push_str(RESET);
            out.push('\n');
        }
    }
}

/// The columns and rows of a table, its head first; `None` unless the whole text is one table.
fn parse(text: &str) -> Option<(Vec<Alignment>, Vec<Vec<Cell>>)> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut alignments = None;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut cell = Cell::default();
    let mut writer = Inline::new("");
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Table(columns)) => {
                if !text[..range.start].trim().is_empty() || !text[range.end..].trim().is_empty() {
                    return None;
                }
                alignments = Some(columns);
            }
            _ if alignments.is_none() => return None,
            Event::Start(Tag::TableHead) => {
                rows.push(Vec::new());
                writer = Inline::new(BOLD);
            }
            Event::Start(Tag::TableRow) => {
                rows.push(Vec::new());
                writer = Inline::new("");
            }
            Event::Start(Tag::TableCell) => cell = Cell::default(),
            Event::End(TagEnd::TableCell) => {
                cell.width = painted_width(&cell.shown);
                rows.last_mut()?.push(std::mem::take(&mut cell));
            }
            event => writer.event(event, &mut cell.shown),
        }
    }
    alignments.map(|alignments| (alignments, rows))
}

/// Columns that a text takes without its paints.
fn painted_width(text: &str) -> usize {
    crate::output::sanitize::clean(text).width()
}

fn pad(cell: Cell, width: usize, alignment: Alignment) -> String {
    let space = width.saturating_sub(cell.width);
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => space / 2,
        Alignment::Right => space,
    };
    format!(
        "{}{}{}",
        " ".repeat(before),
        cell.shown,
        " ".repeat(space - before)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sanitize::clean;

    fn shown(text: &str) -> String {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let mut out = String::new();
        render(&lines, &mut out);
        clean(&out)
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            shown("| a | num |\n|---|----:|\n| **long** | 1 |\n| 漢 | 22 |\n| `x|y` |"),
            "a    │ num\n─────┼────\nlong │   1\n漢   │  22\n`x   │  y`\n"
        );
    }

    #[test]
    fn what_is_no_table_is_text() {
        assert_eq!(shown("| a | b |\n| c | d |"), "| a | b |\n| c | d |\n");
        assert_eq!(shown("| alone"), "| alone\n");
    }
}
