//! The status line: mode, model, branch, remaining context, cost and running operations.

use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;
use zeph_llm::Usd;
use zeph_tools::Mode;

use super::styled_text::{CYAN, DIM, GREEN, RED, YELLOW, fit, safe};
use crate::sanitize::first_line;
use crate::view::SessionStatus;

/// The separator of the parts.
const SEPARATOR: &str = " · ";
/// The maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 40;
/// Less remaining context than this is a warning.
const LOW_CONTEXT_PERCENT: u8 = 20;

/// A part of the line. Parts with a high rank are dropped first.
struct Part {
    rank: u8,
    span: Span<'static>,
}

/// The state of the session in at most `width` columns. Parts that do not fit are dropped.
pub(crate) fn status_line(status: &SessionStatus, running: usize, width: usize) -> Line<'static> {
    let mut parts = parts(status, running);
    while parts.len() > 1 && columns(&parts) > width {
        let last = parts.iter().enumerate().max_by_key(|(_, part)| part.rank);
        if let Some((at, _)) = last {
            parts.remove(at);
        }
    }
    let mut spans = Vec::new();
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            spans.push(Span::styled(SEPARATOR, DIM));
        }
        spans.push(part.span);
    }
    if let [only] = spans.as_mut_slice() {
        only.content = fit(&only.content, width).into();
    }
    Line::from(spans)
}

/// The known parts, in the order of the line.
fn parts(status: &SessionStatus, running: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut push = |rank, span| parts.push(Part { rank, span });
    if let Some(mode) = status.mode {
        let style = match mode {
            Mode::Plan => CYAN,
            Mode::Ask => GREEN,
            Mode::AutoEdit | Mode::Auto => YELLOW,
            Mode::Full => RED,
        };
        push(0, Span::styled(mode.as_str(), style));
    }
    if !status.model.is_empty() {
        push(3, Span::styled(name(&status.model), DIM));
    }
    if let Some(branch) = &status.branch {
        push(5, Span::styled(name(branch), DIM));
    }
    if let Some(left) = status.context_left() {
        let style = if left < LOW_CONTEXT_PERCENT {
            YELLOW
        } else {
            DIM
        };
        push(2, Span::styled(format!("{left}% context left"), style));
    }
    // A cost of zero is not shown.
    if let Some(cost) = status.cost.filter(|cost| *cost > Usd::default()) {
        push(4, Span::styled(cost.to_string(), DIM));
    }
    if running > 0 {
        push(1, Span::styled(format!("{running} running"), CYAN));
    }
    parts
}

/// A foreign name, on one line.
fn name(text: &str) -> String {
    safe(&first_line(text, MAX_NAME_CHARS))
}

fn columns(parts: &[Part]) -> usize {
    let separators = SEPARATOR.width() * parts.len().saturating_sub(1);
    parts.iter().map(|part| part.span.width()).sum::<usize>() + separators
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> SessionStatus {
        SessionStatus {
            mode: Some(Mode::AutoEdit),
            model: "a-model\u{1b}[2J".to_owned(),
            branch: Some("main".to_owned()),
            context_used: 250,
            context_size: 1000,
            cost: Some(Usd::from_nanos(12_300_000)),
            ..SessionStatus::default()
        }
    }

    /// Proves CLI-4c: the line shows the state, and parts that do not fit are dropped.
    #[test]
    fn status_line_drops_parts_that_do_not_fit() {
        let check = |width, expect: &str| {
            let line = status_line(&status(), 2, width);
            assert_eq!(line.to_string(), expect);
        };
        check(
            120,
            "auto-edit · a-model\\u{1b}[2J · main · 75% context left · $0.0123 · 2 running",
        );
        check(
            70,
            "auto-edit · a-model\\u{1b}[2J · 75% context left · $0.0123 · 2 running",
        );
        check(
            60,
            "auto-edit · a-model\\u{1b}[2J · 75% context left · 2 running",
        );
        check(41, "auto-edit · 75% context left · 2 running");
        check(30, "auto-edit · 2 running");
        check(5, "auto…");
        assert_eq!(
            status_line(&SessionStatus::default(), 0, 80),
            Line::default()
        );
    }
}
