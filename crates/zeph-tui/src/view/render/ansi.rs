//! Lines as text with escape sequences.

use std::fmt::Write as _;

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

/// The modifiers and their SGR codes.
const MODIFIERS: [(Modifier, u8); 6] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::REVERSED, 7),
    (Modifier::CROSSED_OUT, 9),
];

/// The text of a line without a line break. Without `colour` it has no escape sequences.
pub(crate) fn to_ansi(line: &Line<'_>, colour: bool) -> String {
    let mut out = String::new();
    for span in &line.spans {
        let codes = if colour {
            codes(line.style.patch(span.style))
        } else {
            String::new()
        };
        if codes.is_empty() || span.content.is_empty() {
            out.push_str(&span.content);
        } else {
            let _ = write!(out, "\x1b[{codes}m{}\x1b[0m", span.content);
        }
    }
    out
}

/// The SGR codes of a style, separated by semicolons.
fn codes(style: Style) -> String {
    let modifiers = MODIFIERS
        .iter()
        .filter(|(modifier, _)| style.add_modifier.contains(*modifier));
    let mut codes: Vec<u8> = modifiers.map(|(_, code)| *code).collect();
    codes.extend(style.fg.and_then(|colour| colour_code(colour, 30)));
    codes.extend(style.bg.and_then(|colour| colour_code(colour, 40)));
    codes
        .iter()
        .map(u8::to_string)
        .collect::<Vec<_>>()
        .join(";")
}

/// The code of one of the 16 colours; `base` is 30 for text and 40 for the background.
fn colour_code(colour: Color, base: u8) -> Option<u8> {
    let number = match colour {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 60,
        Color::LightRed => 61,
        Color::LightGreen => 62,
        Color::LightYellow => 63,
        Color::LightBlue => 64,
        Color::LightMagenta => 65,
        Color::LightCyan => 66,
        Color::White => 67,
        Color::Reset | Color::Rgb(..) | Color::Indexed(_) => return None,
    };
    Some(base + number)
}

#[cfg(test)]
mod tests {
    use ratatui_core::text::Span;

    use super::*;

    /// Proves CLI-3: without colours no escape sequence is printed.
    #[test]
    fn styles_become_escape_sequences_only_with_colour() {
        let line = Line::from(vec![
            Span::raw("a "),
            Span::styled(
                "b",
                Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            ),
            Span::styled("c", Style::new().bg(Color::LightBlue)),
            Span::styled("", Style::new().fg(Color::Red)),
        ]);
        assert_eq!(
            to_ansi(&line, true),
            "a \x1b[1;31mb\x1b[0m\x1b[104mc\x1b[0m"
        );
        assert_eq!(to_ansi(&line, false), "a bc");
        let line = line.style(Style::new().add_modifier(Modifier::DIM));
        assert_eq!(
            to_ansi(&line, true),
            "\x1b[2ma \x1b[0m\x1b[1;2;31mb\x1b[0m\x1b[2;104mc\x1b[0m"
        );
    }
}
