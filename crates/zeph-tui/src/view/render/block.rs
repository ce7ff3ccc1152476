//! The lines of a block of the conversation.

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;
use zeph_tools::plural::pluralize;

use super::Detail;
use super::call::{call_result, call_title};
use super::markdown;
use super::styled_text::{BOLD, CYAN, DIM, RED, StyledText, YELLOW, fit, safe};
use super::wrap::{Hanging, wrap};
use crate::view::{Block, Severity};

/// Columns of the first line of folded reasoning.
const MAX_REASONING_COLUMNS: usize = 60;

/// The lines of any block.
pub(crate) fn block_lines(block: &Block, width: usize, detail: Detail) -> Vec<Line<'static>> {
    match block {
        Block::Prompt(text) => prompt(text, width),
        Block::Text(text) => markdown::render(text, width),
        Block::Reasoning(text) => reasoning(text, width, detail),
        Block::Call(call) => {
            let mut lines = vec![call_title(call, width)];
            lines.extend(call_result(call, width, detail));
            lines
        }
        Block::Message(severity, text) => message(*severity, text, width),
        Block::Reply(text) => reply(text, width),
    }
}

fn prompt(text: &str, width: usize) -> Vec<Line<'static>> {
    let hanging = Hanging {
        first: vec![Span::styled("> ", CYAN)],
        rest: vec![Span::raw("  ")],
    };
    wrap(
        &StyledText::new(safe(text).trim_end(), BOLD),
        width,
        &hanging,
    )
}

/// A reply. The rest of a wrapped line begins in the second column of its list, as in `/help`.
fn reply(text: &str, width: usize) -> Vec<Line<'static>> {
    let text = safe(text);
    let lines = text.trim_end().split('\n').flat_map(|line| {
        let column = second_column(line).filter(|column| *column <= width / 2);
        let hanging = Hanging {
            first: Vec::new(),
            rest: vec![Span::raw(" ".repeat(column.unwrap_or(0)))],
        };
        wrap(&StyledText::new(line, Style::new()), width, &hanging)
    });
    lines.collect()
}

/// The column of the text after the first gap of at least two spaces.
fn second_column(line: &str) -> Option<usize> {
    let indent = line.len() - line.trim_start().len();
    let gap = indent + line[indent..].find("  ")?;
    let rest = line[gap..].trim_start();
    (!rest.is_empty()).then(|| line[..line.len() - rest.len()].width())
}

/// One line with the beginning of the reasoning and its length, or all of it.
fn reasoning(text: &str, width: usize, detail: Detail) -> Vec<Line<'static>> {
    let text = safe(text);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else {
        return Vec::new();
    };
    let style = DIM.add_modifier(Modifier::ITALIC);
    if detail == Detail::Full {
        let hanging = Hanging {
            first: vec![Span::styled("thinking: ", DIM)],
            rest: vec![Span::raw("  ")],
        };
        return wrap(&StyledText::new(text.trim(), style), width, &hanging);
    }
    let count = 1 + lines.count();
    let size = format!(" ({})", pluralize(count, "line"));
    let label = "thinking: ";
    let room = width
        .saturating_sub(label.len() + size.len())
        .min(MAX_REASONING_COLUMNS);
    let mut first = fit(first.trim(), room);
    if count > 1 && !first.ends_with('…') {
        first = fit(&format!("{first} …"), room);
    }
    vec![Line::from(vec![
        Span::styled(label, DIM),
        Span::styled(first, style),
        Span::styled(size, DIM),
    ])]
}

fn message(severity: Severity, text: &str, width: usize) -> Vec<Line<'static>> {
    let (label, label_style, style) = match severity {
        Severity::Remark => ("", DIM, DIM),
        Severity::Notice => ("", YELLOW, YELLOW),
        Severity::Warning => ("warning: ", YELLOW, Style::new()),
        Severity::Error => ("error: ", RED, Style::new()),
    };
    let mut all = StyledText::new(label, label_style);
    all.push(safe(text).trim_end(), style);
    wrap(&all, width, &Hanging::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_line_of_a_list_begins_in_its_second_column() {
        let check = |text: &str, width, expect: &[&str]| {
            let block = Block::Reply(text.to_owned());
            let lines = block_lines(&block, width, Detail::Full);
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            assert_eq!(lines, expect, "{text:?}");
        };
        check(
            "/undo   take changes back",
            20,
            &["/undo   take changes", "        back"],
        );
        check("a b c d e f", 8, &["a b c d", "e f"]);
        check("one\n\ntwo", 8, &["one", "", "two"]);
        check(
            "a very long name  b c d",
            10,
            &["a very", "long name", "b c d"],
        );
    }
}
