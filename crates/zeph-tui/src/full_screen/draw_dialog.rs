//! Drawing of dialogs.

use std::time::Instant;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block as Border, BorderType, Clear, Widget as _};
use unicode_width::UnicodeWidthStr as _;

use super::app::App;
use super::dialog::Dialog;
use super::dialog_options::DialogOption;
use super::draw::{QUESTION, REVERSED, corner, lines};
use crate::view::render::DIM;

/// A dialog at the lower end of an area, with a frame that no other part of the screen has.
pub(super) fn dialog(area: Rect, buffer: &mut Buffer, app: &mut App, now: Instant) {
    let Some(dialog) = &mut app.dialog else {
        return;
    };
    let width = area.width.saturating_sub(2);
    let is_open = dialog.is_open(now);
    let footer = footer(dialog, width, is_open);
    let content = dialog.lines(width).len();
    let needed = u16::try_from(content + footer.len() + 2).unwrap_or(u16::MAX);
    let height = needed.min(area.height);
    let place = Rect {
        y: area.bottom() - height,
        height,
        ..area
    };
    app.areas.dialog = place;
    Clear.render(place, buffer);
    let border = Border::bordered()
        .border_type(BorderType::Double)
        .border_style(QUESTION)
        .title(Span::styled(format!(" {} ", dialog.title()), QUESTION));
    let inner = border.inner(place);
    border.render(place, buffer);
    let footer_rows = u16::try_from(footer.len()).unwrap_or(0).min(inner.height);
    let [text, keys] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(footer_rows)]).areas(inner);
    let hidden = content.saturating_sub(usize::from(text.height));
    dialog.scroll = dialog.scroll.min(hidden);
    let scroll = dialog.scroll;
    lines(&dialog.lines(width)[scroll..], text, buffer);
    lines(&footer[first_row(&footer, keys.height)..], keys, buffer);
    if let Some((label, field)) = dialog.field()
        && let Some(row) = keys.rows().next()
    {
        let label = format!("{label}: ");
        let columns = u16::try_from(label.width()).unwrap_or(0).min(row.width / 2);
        let [name, value] =
            Layout::horizontal([Constraint::Length(columns), Constraint::Fill(1)]).areas(row);
        Span::raw(label).render(name, buffer);
        field.area().render(value, buffer);
    }
    if hidden > 0 && place.height > 0 {
        let more = match scroll < hidden {
            true => format!(" {} more rows: PageDown ", hidden - scroll),
            false => " PageUp ".to_owned(),
        };
        let row = Rect {
            y: place.bottom() - 1,
            height: 1,
            ..place
        };
        corner(row, buffer, &more);
    }
    dialog.drawn(now);
}

/// The first visible row of a footer, so that a low screen shows the selected option.
fn first_row(footer: &[Line<'_>], height: u16) -> usize {
    let is_selected = |span: &Span<'_>| span.style.add_modifier.contains(Modifier::REVERSED);
    let selected = footer
        .iter()
        .position(|row| row.spans.iter().any(is_selected));
    selected.map_or(0, |row| (row + 1).saturating_sub(usize::from(height)))
}

/// The options in as many rows as they need, or a row for a field.
pub(super) fn footer(dialog: &Dialog, width: u16, is_open: bool) -> Vec<Line<'static>> {
    if dialog.field().is_some() {
        return vec![Line::default()];
    }
    if !is_open {
        // Keys that do not count are not offered.
        return vec![Line::styled("keys go to the prompt until you pause", DIM)];
    }
    let (options, selected) = dialog.options();
    option_rows(&options, selected, usize::from(width))
}

fn option_rows(options: &[DialogOption], selected: usize, width: usize) -> Vec<Line<'static>> {
    let mut rows: Vec<Line<'static>> = Vec::new();
    for (at, option) in options.iter().enumerate() {
        let style = match at == selected {
            true => REVERSED.add_modifier(Modifier::BOLD),
            false => Style::new(),
        };
        let span = Span::styled(format!("[{}] {}", option.key, option.label), style);
        match rows.last_mut() {
            Some(row) if row.width() + 2 + span.width() <= width => {
                row.push_span(Span::raw("  "));
                row.push_span(span);
            }
            _ => rows.push(Line::from(span)),
        }
    }
    rows
}
