//! Unified diffs in colour.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use zeph_tools::plural::pluralize;

use super::Detail;
use super::styled_text::{CYAN, DIM, GREEN, RED, StyledText};
use super::wrap::{Hanging, wrap};

/// Lines of a diff in an excerpt.
const MAX_LINES: usize = 40;

/// Whether a text has a unified diff.
pub(super) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ ")) && text.lines().any(is_header)
}

/// The lines of a diff, each after `prefix`, and the number of hidden lines. The names of the files are omitted. The
/// text is safe.
pub(crate) fn diff_lines(
    diff: &str,
    prefix: &'static str,
    width: usize,
    detail: Detail,
) -> Vec<Line<'static>> {
    let all: Vec<&str> = without_header(diff).collect();
    let most = match detail {
        // One hidden line takes as much room as the remark about it.
        Detail::Brief | Detail::Excerpt if all.len() > MAX_LINES + 1 => MAX_LINES,
        _ => all.len(),
    };
    let mut lines = Vec::new();
    for line in &all[..most] {
        let hanging = Hanging {
            first: vec![Span::raw(prefix)],
            rest: vec![Span::raw(prefix), Span::styled("  ", DIM)],
        };
        lines.extend(wrap(&StyledText::new(line, style(line)), width, &hanging));
    }
    if most < all.len() {
        let hidden = pluralize(all.len() - most, "more line");
        let hint = match detail {
            Detail::Excerpt => " (Ctrl-O shows all)",
            Detail::Brief | Detail::Full => "",
        };
        lines.push(Line::styled(format!("{prefix}… {hidden}{hint}"), DIM));
    }
    lines
}

fn style(line: &str) -> Style {
    match line.chars().next() {
        Some('+') => GREEN,
        Some('-') => RED,
        Some('@') => CYAN,
        _ => Style::new(),
    }
}

fn is_header(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with("+++ ")
}

/// The lines of a diff except the names of its files. In a hunk, a line that looks like one is a changed line.
fn without_header(diff: &str) -> impl Iterator<Item = &str> {
    let mut in_hunk = false;
    diff.lines().filter(move |line| {
        in_hunk |= line.starts_with("@@");
        in_hunk || !is_header(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n+++ sign\n";

    /// Proves CLI-4: diffs are coloured.
    #[test]
    fn changed_lines_have_colours() {
        let lines = diff_lines(DIFF, "  ", 80, Detail::Excerpt);
        let shown: Vec<_> = lines
            .iter()
            .map(|line| (line.to_string(), line.spans[1].style))
            .collect();
        let expect = [
            ("  @@ -1,2 +1,2 @@", CYAN),
            ("   same", Style::new()),
            ("  -old", RED),
            ("  +new", GREEN),
            ("  +++ sign", GREEN),
        ];
        assert_eq!(shown, expect.map(|(text, style)| (text.to_owned(), style)));
        assert!(is_diff(DIFF) && !is_diff("@@ x"));
    }

    /// Proves CLI-4b: a diff has a bounded length, and its rest can be shown.
    #[test]
    fn long_diff_is_bounded() {
        let diff = format!("@@ -1 +1 @@\n{}", "+a\n".repeat(100));
        let lines = diff_lines(&diff, "", 80, Detail::Excerpt);
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(
            lines.last().map(ToString::to_string).as_deref(),
            Some("… 61 more lines (Ctrl-O shows all)")
        );
        let brief = diff_lines(&diff, "", 80, Detail::Brief);
        let last = brief.last().map(ToString::to_string);
        assert_eq!(last.as_deref(), Some("… 61 more lines"));
        assert_eq!(diff_lines(&diff, "", 80, Detail::Full).len(), 101);
    }
}
