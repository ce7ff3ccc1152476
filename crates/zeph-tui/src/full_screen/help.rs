//! The list of keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block as Border, Clear, Paragraph, Widget as _};

/// The keys and their effects.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "submit; Alt-Enter or Ctrl-J begins a new line"),
    ("Tab", "complete; at an empty prompt, select a call"),
    (
        "Up, Down",
        "earlier and later inputs; with a selection, calls",
    ),
    ("Enter, Space", "with a selection: expand or fold"),
    ("Ctrl-O", "expand or fold all calls"),
    ("PageUp/Down", "scroll; also the mouse wheel"),
    ("Home, End", "the start and the end of the conversation"),
    ("Ctrl-F", "search; Enter shows the next older match"),
    ("F2, Ctrl-R", "show or hide tools, tasks and resources"),
    ("Shift-Tab", "the next permission mode"),
    ("Esc, Ctrl-C", "interrupt; twice at an empty prompt: leave"),
    ("Ctrl-G", "open the prompt in $VISUAL or $EDITOR"),
    ("Ctrl-L", "draw again"),
    ("Ctrl-Z", "suspend"),
    ("Ctrl-D", "leave"),
    ("/help", "all slash commands; !COMMAND runs a command"),
];

/// Draws the list in the middle of an area.
pub(super) fn help(area: Rect, buffer: &mut Buffer) {
    let rows = KEYS.iter().map(|(key, effect)| {
        Line::from(vec![
            Span::styled(
                format!("{key:<13}"),
                Style::new().add_modifier(Modifier::BOLD),
            ),
            Span::raw(*effect),
        ])
    });
    let rows: Vec<Line<'_>> = rows.collect();
    let height = u16::try_from(rows.len() + 2).unwrap_or(0).min(area.height);
    let width = 66.min(area.width);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(place, buffer);
    let border = Border::bordered().title(" Keys: any key closes this list ");
    Paragraph::new(rows).block(border).render(place, buffer);
}
