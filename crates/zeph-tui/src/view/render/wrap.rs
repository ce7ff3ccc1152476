//! Word wrap of styled text: each line takes as many words as fit, so that earlier lines never depend on later words.

use ratatui_core::text::{Line, Span};
use textwrap::WordSeparator;
use unicode_width::UnicodeWidthStr;

use super::styled_text::{StyledText, prefix_that_fits};

/// The least columns of text after a prefix. A terminal that is narrower wraps itself.
pub(super) const MIN_COLUMNS: usize = 8;

/// The first character of the scripts without spaces.
const FIRST_WIDE: char = '\u{2e80}';

/// The prefixes of the first line and of all others, such as the mark of a list item and its indent.
#[derive(Debug, Clone, Default)]
pub(super) struct Hanging {
    /// The prefix of the first line.
    pub(super) first: Vec<Span<'static>>,
    /// The prefix of other lines.
    pub(super) rest: Vec<Span<'static>>,
}

impl Hanging {
    /// The same prefix for all lines.
    pub(super) fn of(prefix: Vec<Span<'static>>) -> Self {
        Self {
            first: prefix.clone(),
            rest: prefix,
        }
    }
}

/// Wraps text to lines of at most `width` columns with their prefixes. Line breaks in the text are respected.
pub(super) fn wrap(text: &StyledText, width: usize, hanging: &Hanging) -> Vec<Line<'static>> {
    let mut prefix = &hanging.first;
    let mut lines = Vec::new();
    for (start, end) in ranges(text.as_str(), |line| {
        let prefix = if line == 0 {
            &hanging.first
        } else {
            &hanging.rest
        };
        width.saturating_sub(columns(prefix)).max(MIN_COLUMNS)
    }) {
        let mut spans = prefix.clone();
        spans.extend(text.spans(start, end));
        lines.push(Line::from(spans));
        prefix = &hanging.rest;
    }
    lines
}

fn columns(spans: &[Span<'static>]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// The ranges in bytes of the wrapped lines; `room` is the width of the line with a number. White space at the end of
/// a line is omitted. There is at least one line.
pub(super) fn ranges(text: &str, room: impl Fn(usize) -> usize) -> Vec<(usize, usize)> {
    let mut lines = Vec::new();
    let mut offset = 0;
    for line in text.split('\n') {
        wrap_line(line, offset, &room, &mut lines);
        offset += line.len() + 1;
    }
    lines
}

/// Wraps one line of the text, which begins at `offset`.
fn wrap_line(
    line: &str,
    offset: usize,
    room: &impl Fn(usize) -> usize,
    lines: &mut Vec<(usize, usize)>,
) {
    // The current line: its range in `line`, and its columns with the white space at its end.
    let (mut start, mut end, mut used) = (0, 0, 0);
    let mut at = 0;
    for (mut text, space) in words(line) {
        let mut width = text.width();
        if end > start && used + width > room(lines.len()) {
            lines.push((offset + start, offset + end));
            (start, used) = (at, 0);
        }
        // A word that is longer than a line is broken. Before it, only white space can be on the line.
        while used + width > room(lines.len()) {
            let room = room(lines.len());
            if used >= room {
                (start, used) = (at, 0);
                continue;
            }
            let cut = prefix_that_fits(text, room - used);
            let cut = if cut > 0 || used > 0 {
                cut
            } else {
                text.ceil_char_boundary(1)
            };
            if cut >= text.len() {
                break;
            }
            at += cut;
            if at > start && cut > 0 {
                lines.push((offset + start, offset + at));
            }
            (start, used, text) = (at, 0, &text[cut..]);
            width = text.width();
        }
        at += text.len();
        end = at;
        at += space.len();
        used += width + space.len();
    }
    lines.push((offset + start, offset + end.max(start)));
}

/// The words of a line, each with the spaces after it. Without spaces, words end only in scripts without spaces: a URL
/// and a path are one word.
fn words(line: &str) -> Vec<(&str, &str)> {
    let is_wide = |c: Option<char>| c.is_some_and(|c| c >= FIRST_WIDE);
    let mut words = Vec::new();
    let (mut start, mut end) = (0, 0);
    for word in WordSeparator::UnicodeBreakProperties.find_words(line) {
        end += word.word.len();
        let (before, after) = line.split_at(end);
        let can_break = is_wide(before.chars().next_back()) || is_wide(after.chars().next());
        if !word.whitespace.is_empty() || can_break || after.is_empty() {
            words.push((&line[start..end], word.whitespace));
            start = end + word.whitespace.len();
        }
        end += word.whitespace.len();
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::view::render::styled_text::BOLD;

    fn wrapped(text: &str, width: usize) -> Vec<&str> {
        let ranges = ranges(text, |_| width);
        ranges
            .into_iter()
            .map(|(start, end)| &text[start..end])
            .collect()
    }

    /// Proves CLI-4a: lines break between words, and wide characters count twice.
    #[test]
    fn lines_break_at_word_boundaries() {
        let check = |text, width, expect: &[&str]| assert_eq!(wrapped(text, width), expect);
        check("one two three", 8, &["one two", "three"]);
        check("one two", 7, &["one two"]);
        check("one two ", 7, &["one two"]);
        check("a\n\nb", 7, &["a", "", "b"]);
        check("", 7, &[""]);
        check("漢字漢字漢", 5, &["漢字", "漢字", "漢"]);
        check("abcdefghij kl", 4, &["abcd", "efgh", "ij", "kl"]);
        check("x abcdefgh", 4, &["x", "abcd", "efgh"]);
        check("well-known fact", 11, &["well-known", "fact"]);
        check("👩‍💻 ab", 4, &["👩‍💻", "ab"]);
        check(
            "see https://a.org/b/c-d?e=f",
            24,
            &["see", "https://a.org/b/c-d?e=f"],
        );
        check("a漢b", 2, &["a", "漢", "b"]);
    }

    /// Proves CLI-4a: list items and quotes have a hanging indent.
    #[test]
    fn later_lines_have_the_hanging_indent() {
        let hanging = Hanging {
            first: vec![Span::raw("• ")],
            rest: vec![Span::raw("  ")],
        };
        let lines = wrap(&StyledText::new("one two three", BOLD), 10, &hanging);
        let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["• one two", "  three"]);
        assert_eq!(lines[1].spans[1].style, BOLD);
    }

    proptest! {
        #[test]
        fn no_character_is_lost_and_no_line_is_too_wide(text in "[a-c漢é \\n-]{0,60}", width in 2_usize..12) {
            let lines = wrapped(&text, width);
            let solid = |text: &str| text.replace([' ', '\n'], "");
            prop_assert_eq!(solid(&lines.concat()), solid(&text));
            for line in &lines {
                prop_assert!(line.width() <= width, "{:?}", line);
            }
        }

        #[test]
        fn earlier_lines_do_not_depend_on_later_text(text in "[a-c漢 ]{0,60}", more in "[a-c漢 ]{0,30}", width in 2_usize..12) {
            let before = wrapped(&text, width);
            let whole = format!("{text}{more}");
            let after = wrapped(&whole, width);
            let fixed = before.len().saturating_sub(2);
            prop_assert_eq!(&before[..fixed], &after[..fixed]);
        }
    }
}
