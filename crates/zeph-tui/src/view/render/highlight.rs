//! Code in colour, line by line.

use std::ops::Range;

use ratatui_core::style::Style;
#[cfg(feature = "syntax")]
use ratatui_core::style::{Color, Modifier};
use ratatui_core::text::Line;
#[cfg(feature = "syntax")]
use zeph_tools::{HighlightKind, Language, LineHighlighter};

use super::styled_text::{CYAN, StyledText, safe};

/// The lines of a block of code. Lines that were returned never change.
#[derive(Debug, Clone)]
pub(super) struct CodeLines {
    #[cfg(feature = "syntax")]
    highlighter: Option<LineHighlighter>,
    /// The style of text without a colour of its own.
    style: Style,
}

impl CodeLines {
    /// Starts a block; its language is the first word of `info`. Code of an unknown language has one colour.
    pub(super) fn new(info: &str) -> Self {
        #[cfg(feature = "syntax")]
        {
            let end = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | ':');
            let name = info.trim().split(end).next().unwrap_or_default();
            let highlighter = Language::from_name(name).and_then(LineHighlighter::new);
            Self {
                style: if highlighter.is_some() {
                    Style::new()
                } else {
                    CYAN
                },
                highlighter,
            }
        }
        #[cfg(not(feature = "syntax"))]
        {
            let _ = info;
            Self { style: CYAN }
        }
    }

    /// The next line, without its line break. It is not wrapped, so that copied text is the original text.
    pub(super) fn push(&mut self, line: &str) -> Line<'static> {
        let line = safe(line);
        let mut text = StyledText::default();
        let mut at = 0;
        for (range, style) in self.colours(&line) {
            // A grammar may end a node inside a character.
            if let (Some(before), Some(part)) = (line.get(at..range.start), line.get(range.clone()))
            {
                text.push(before, self.style);
                text.push(part, style);
                at = range.end;
            }
        }
        text.push(&line[at..], self.style);
        text.to_line()
    }

    /// The coloured parts of the next line.
    #[cfg(feature = "syntax")]
    fn colours(&mut self, line: &str) -> Vec<(Range<usize>, Style)> {
        let highlighter = self.highlighter.as_mut();
        let parts = highlighter
            .map(|highlighter| highlighter.push(line))
            .unwrap_or_default();
        parts
            .into_iter()
            .map(|(range, kind)| (range, style(kind)))
            .collect()
    }

    /// Without grammars, no part has a colour of its own.
    #[cfg(not(feature = "syntax"))]
    fn colours(&mut self, _: &str) -> Vec<(Range<usize>, Style)> {
        Vec::new()
    }
}

#[cfg(feature = "syntax")]
fn style(kind: HighlightKind) -> Style {
    match kind {
        HighlightKind::Comment => Style::new().add_modifier(Modifier::DIM),
        HighlightKind::Keyword => Style::new().fg(Color::Magenta),
        HighlightKind::String => Style::new().fg(Color::Green),
        HighlightKind::Function | HighlightKind::Key => Style::new().fg(Color::Blue),
        HighlightKind::Type => Style::new().fg(Color::Cyan),
        HighlightKind::Constant | HighlightKind::Attribute => Style::new().fg(Color::Yellow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-4a: code is highlighted, and its text is unchanged.
    #[cfg(feature = "syntax")]
    #[test]
    fn code_is_highlighted() {
        let mut code = CodeLines::new("rust,ignore");
        let line = code.push("fn main() { let é = \"a\"; } // b");
        assert_eq!(line.to_string(), "fn main() { let é = \"a\"; } // b");
        let colours: Vec<_> = line
            .spans
            .iter()
            .map(|span| (span.content.as_ref(), span.style.fg))
            .filter(|(_, colour)| colour.is_some())
            .collect();
        let expect = [
            ("fn", Some(Color::Magenta)),
            ("main", Some(Color::Blue)),
            ("let", Some(Color::Magenta)),
            ("\"a\"", Some(Color::Green)),
        ];
        assert_eq!(colours, expect);
    }

    #[test]
    fn code_of_an_unknown_language_has_one_colour() {
        let line = CodeLines::new("").push("\x1b[31mfn\tx");
        assert_eq!(
            (line.to_string().as_str(), line.spans[0].style),
            ("fn  x", CYAN)
        );
    }
}
