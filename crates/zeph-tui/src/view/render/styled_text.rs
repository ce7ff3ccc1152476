//! Text with styles, before it is wrapped into lines.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::sanitize::clean;

/// Less important text.
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
/// Names, headings.
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
/// Errors, removed lines.
pub(super) const RED: Style = Style::new().fg(Color::Red);
/// Successes, added lines.
pub(super) const GREEN: Style = Style::new().fg(Color::Green);
/// Questions, warnings.
pub(super) const YELLOW: Style = Style::new().fg(Color::Yellow);
/// Code, marks.
pub(super) const CYAN: Style = Style::new().fg(Color::Cyan);

/// Columns between tab stops.
const TAB_COLUMNS: usize = 4;

/// Text whose parts have styles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StyledText {
    text: String,
    /// The end of each part and its style.
    parts: Vec<(usize, Style)>,
}

impl StyledText {
    /// Text of one style. The text is safe.
    pub(super) fn new(text: &str, style: Style) -> Self {
        let mut all = Self::default();
        all.push(text, style);
        all
    }

    /// Adds safe text.
    pub(super) fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        match self.parts.last_mut() {
            Some((end, last)) if *last == style => *end = self.text.len(),
            _ => self.parts.push((self.text.len(), style)),
        }
    }

    /// Adds text with its styles.
    pub(super) fn append(&mut self, other: &Self) {
        let mut start = 0;
        for (end, style) in &other.parts {
            self.push(other.text.get(start..*end).unwrap_or_default(), *style);
            start = *end;
        }
    }

    /// Removes and returns the whole text.
    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// The text without white space at its end.
    pub(super) fn trimmed_end(mut self) -> Self {
        self.text.truncate(self.text.trim_end().len());
        let len = self.text.len();
        for (end, _) in &mut self.parts {
            *end = (*end).min(len);
        }
        self
    }

    /// The text without styles.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the text is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Columns on the screen.
    pub(super) fn width(&self) -> usize {
        self.text.width()
    }

    /// The part of the text in a range of bytes.
    pub(super) fn spans(&self, start: usize, end: usize) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        let first = self
            .parts
            .partition_point(|(part_end, _)| *part_end <= start);
        let mut at = start;
        for (part_end, style) in &self.parts[first.min(self.parts.len())..] {
            if at >= end {
                break;
            }
            let until = (*part_end).min(end);
            if let Some(text) = self.text.get(at..until) {
                spans.push(Span::styled(text.to_owned(), *style));
            }
            at = until;
        }
        spans
    }

    /// The whole text as one line.
    pub(super) fn to_line(&self) -> Line<'static> {
        Line::from(self.spans(0, self.text.len()))
    }
}

/// Foreign text without control sequences, and with tabs as spaces. Line breaks remain.
pub(super) fn safe(text: &str) -> String {
    expand_tabs(&clean(text))
}

/// Tabs as spaces up to the next tab stop.
pub(super) fn expand_tabs(text: &str) -> String {
    if !text.contains('\t') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let count = TAB_COLUMNS - column % TAB_COLUMNS;
                out.extend(std::iter::repeat_n(' ', count));
                column += count;
            }
            '\n' => {
                out.push(c);
                column = 0;
            }
            _ => {
                out.push(c);
                column += c.width().unwrap_or(0);
            }
        }
    }
    out
}

/// The beginning of a text of one line that fits into `columns`. A cut is marked.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let end = prefix_that_fits(text, columns.saturating_sub(1));
    let mark = if columns == 0 { "" } else { "…" };
    format!("{}{mark}", &text[..end])
}

/// The length in bytes of the longest beginning that is at most `columns` wide.
pub(crate) fn prefix_that_fits(text: &str, columns: usize) -> usize {
    let mut width = 0;
    for (at, c) in text.char_indices() {
        width += c.width().unwrap_or(0);
        if width > columns {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_retain_their_styles() {
        let mut text = StyledText::new("one ", BOLD);
        text.push("two", BOLD);
        text.push(" three", DIM);
        assert_eq!(
            text.spans(2, 9),
            [Span::styled("e two", BOLD), Span::styled(" t", DIM)]
        );
        assert_eq!(text.spans(5, 5), []);
    }

    #[test]
    fn tabs_are_spaces_to_the_next_stop() {
        let check = |text, expect: &str| assert_eq!(expand_tabs(text), expect);
        check("a\tb", "a   b");
        check("\tb\n漢\tc", "    b\n漢  c");
        check("none", "none");
    }

    #[test]
    fn cut_text_fits_its_columns() {
        let check = |columns, expect: &str| assert_eq!(fit("a漢字b", columns), expect);
        check(6, "a漢字b");
        check(5, "a漢…");
        check(4, "a漢…");
        check(3, "a…");
        check(1, "…");
        check(0, "");
    }
}
