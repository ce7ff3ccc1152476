//! The lines of a tool call: one line with its action, and its output or its result.

use std::time::Duration;

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;
use zeph_tools::cache::split_note;
use zeph_tools::plural::pluralize;

use super::Detail;
use super::diff::{diff_lines, is_diff};
use super::excerpt::{Excerpt, excerpt};
use super::styled_text::{BOLD, CYAN, DIM, RED, StyledText, fit, safe};
use super::wrap::{Hanging, wrap};
use crate::output::sanitize::first_line;
use crate::view::{Call, CallResult};

/// Lines of output of a running call.
const MAX_RUNNING_LINES: usize = 5;
/// Characters of a subject.
const MAX_SUBJECT_CHARS: usize = 400;
/// Lines of remarks after the output of a command.
const MAX_REMARKS: usize = 4;
/// Shorter calls show no duration.
const MIN_SHOWN_DURATION: Duration = Duration::from_secs(1);
/// The prefix of the first line of a result.
const FIRST: &str = "  ⎿ ";
/// The prefix of further lines of a result.
const REST: &str = "    ";
/// The prefix of output.
const OUTPUT: &str = "  │ ";

/// The action of a call in one line.
pub(crate) fn call_title(call: &Call, width: usize) -> Line<'static> {
    let mark = match &call.result {
        None => Span::styled("●", CYAN),
        Some(result) if result.failure.is_some() => Span::styled("●", RED),
        Some(_) => Span::styled("●", DIM),
    };
    let title = shown_line(&call.title());
    let tool = shown_line(&call.tool);
    let mut text = StyledText::default();
    if title == tool {
        text.push(&tool, BOLD);
        let subject = subject(&call.params);
        if !subject.is_empty() {
            text.push(&format!(" {subject}"), Style::new());
        }
    } else {
        if is_command(call) {
            text.push("$ ", DIM);
        }
        text.push(&title, BOLD);
    }
    let room = width.saturating_sub(2);
    let mut spans = vec![mark, Span::raw(" ")];
    if text.width() <= room {
        spans.extend(text.spans(0, text.as_str().len()));
    } else {
        let cut = fit(text.as_str(), room);
        let end = cut.len().saturating_sub("…".len());
        spans.extend(text.spans(0, end));
        spans.push(Span::styled("…", DIM));
    }
    Line::from(spans)
}

/// The last output of a running call, or the result of a call that ended.
pub(crate) fn call_result(call: &Call, width: usize, detail: Detail) -> Vec<Line<'static>> {
    match &call.result {
        None => running(call, width, detail),
        Some(result) => finished(call, result, width, detail),
    }
}

/// Whether the title of the call is a command.
fn is_command(call: &Call) -> bool {
    matches!(call.tool.as_str(), "bash" | "shell") && call.params.get("command").is_some()
}

/// The target of a call whose title is the name of its tool: a well-known argument, otherwise all of them.
fn subject(params: &Value) -> String {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let known = [
        "command",
        "path",
        "file_path",
        "url",
        "pattern",
        "query",
        "title",
        "name",
    ];
    match known.into_iter().find_map(text) {
        Some(subject) => shown_line(subject),
        None if params.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        None => shown_line(&params.to_string()),
    }
}

/// Foreign text on one line.
fn shown_line(text: &str) -> String {
    safe(&first_line(text, MAX_SUBJECT_CHARS))
}

/// The last lines of the output of a running call.
fn running(call: &Call, width: usize, detail: Detail) -> Vec<Line<'static>> {
    if call.had_terminal {
        return Vec::new();
    }
    let most = match detail {
        Detail::Excerpt => MAX_RUNNING_LINES,
        Detail::Full => usize::MAX,
    };
    let shown: Vec<String> = call.output.last(most).map(output_line).collect();
    let count = u64::try_from(shown.len()).unwrap_or(u64::MAX);
    let hidden = call.output.total().saturating_sub(count);
    let mut lines = Vec::new();
    if hidden > 0 {
        let text = format!("{OUTPUT}… {}", pluralize(hidden, "earlier line"));
        lines.push(Line::styled(text, DIM));
    }
    for line in shown {
        let line = fit(&line, width.saturating_sub(OUTPUT.width()).max(1));
        lines.push(Line::from(vec![
            Span::styled(OUTPUT, DIM),
            Span::styled(line, DIM),
        ]));
    }
    lines
}

/// A line of output. Text that a carriage return overwrites is omitted.
fn output_line(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    safe(line.rsplit('\r').next().unwrap_or(line))
}

/// The result of a call: a summary, and the text below it.
fn finished(call: &Call, result: &CallResult, width: usize, detail: Detail) -> Vec<Line<'static>> {
    let display = output_lines(&result.display);
    let (cached, text) = split_note(display.trim_matches('\n'));
    let mut view = View {
        lines: Vec::new(),
        width,
        detail,
    };
    let mut facts: Vec<String> = Vec::new();
    if let Some(note) = cached {
        facts.push(note.trim_matches(['[', ']']).to_owned());
    }
    if result.duration >= MIN_SHOWN_DURATION {
        facts.push(format!("{:.1} s", result.duration.as_secs_f64()));
    }
    if let Some(note) = result
        .filter
        .as_ref()
        .and_then(zeph_tools::FilterStats::notice)
    {
        facts.push(safe(&note));
    }
    if result.failure.is_some() {
        view.failure(call, text, facts);
    } else if is_diff(text) {
        view.diff(text, facts);
    } else {
        view.success(call, text, facts);
    }
    view.lines
}

/// A text without control sequences. Text that a carriage return overwrites is omitted.
fn output_lines(text: &str) -> String {
    text.split('\n')
        .map(output_line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The lines of a result.
struct View {
    lines: Vec<Line<'static>>,
    width: usize,
    detail: Detail,
}

impl View {
    /// The message, then the output before the failure.
    fn failure(&mut self, call: &Call, text: &str, facts: Vec<String>) {
        let (message, output) = text.split_once('\n').unwrap_or((text, ""));
        self.summary(message, RED, facts);
        if !call.had_terminal {
            self.body(output, 0, Style::new());
        }
    }

    /// The text around a diff, and the diff.
    fn diff(&mut self, text: &str, facts: Vec<String>) {
        let start = text.find("--- ").unwrap_or(0);
        let before = text[..start].trim_end();
        if before.is_empty() {
            self.summary("changed", DIM, facts);
        } else {
            self.summary(before, Style::new(), facts);
        }
        self.lines
            .extend(diff_lines(&text[start..], REST, self.width, self.detail));
    }

    /// The number of lines and the remarks, then the end of the output.
    fn success(&mut self, call: &Call, text: &str, facts: Vec<String>) {
        let (output, remarks) = split_remarks(text);
        if call.had_terminal {
            self.remarks(remarks, facts);
            return;
        }
        let printed = call.output.total();
        let shown = u64::try_from(output.lines().count()).unwrap_or(u64::MAX);
        let total = printed.max(shown);
        if total <= 1 && remarks.is_empty() {
            let only = if output.trim().is_empty() {
                "done"
            } else {
                output
            };
            self.summary(only, DIM, facts);
            return;
        }
        let mut all = Vec::new();
        all.extend(
            remarks
                .lines()
                .map(|line| line.trim_matches(['[', ']']).to_owned()),
        );
        all.extend(facts);
        if total == 0 || output == "(no output)" {
            self.summary("no output", DIM, all);
            return;
        }
        self.summary(&pluralize(total, "line"), DIM, all);
        self.body(output, total, DIM);
    }

    /// Only the remarks: the user has seen the output.
    fn remarks(&mut self, remarks: &str, facts: Vec<String>) {
        let mut all: Vec<String> = remarks
            .lines()
            .map(|line| line.trim_matches(['[', ']']).to_owned())
            .collect();
        all.extend(facts);
        if !all.is_empty() {
            let first = all.remove(0);
            self.summary(&first, DIM, all);
        }
    }

    /// Adds the first line of a result.
    fn summary(&mut self, text: &str, style: Style, facts: Vec<String>) {
        let mut line = StyledText::new(text, style);
        for fact in facts {
            line.push(&format!(" · {fact}"), DIM);
        }
        let hanging = Hanging {
            first: vec![Span::styled(FIRST, DIM)],
            rest: vec![Span::raw(REST)],
        };
        self.lines.extend(wrap(&line, self.width, &hanging));
    }

    /// Adds the end of a text and its errors, or all of it. `total` is the number of lines that were printed.
    fn body(&mut self, text: &str, total: u64, style: Style) {
        let lines: Vec<&str> = text.lines().collect();
        if self.detail == Detail::Full {
            for line in lines {
                let hanging = Hanging::of(vec![Span::raw(REST)]);
                self.lines
                    .extend(wrap(&StyledText::new(line, style), self.width, &hanging));
            }
            return;
        }
        let room = self.width.saturating_sub(REST.width()).max(1);
        let mut has_hidden = false;
        for part in excerpt(&lines, total) {
            let (text, style) = match part {
                Excerpt::Line(line) => (fit(line, room), style),
                Excerpt::Error(line) => (fit(line, room), RED),
                Excerpt::Hidden(count) => {
                    let hint = if has_hidden { "" } else { " (Ctrl-O expands)" };
                    has_hidden = true;
                    (format!("… {}{hint}", pluralize(count, "line")), DIM)
                }
            };
            self.lines
                .push(Line::from(vec![Span::raw(REST), Span::styled(text, style)]));
        }
    }
}

/// The output of a command, and the lines after it that are remarks, such as `[exit code: 1]`.
fn split_remarks(text: &str) -> (&str, &str) {
    let mut start = text.len();
    for line in text.rsplit('\n').take(MAX_REMARKS) {
        let at = start.saturating_sub(line.len());
        if !line.starts_with('[') || line.starts_with("[…") {
            break;
        }
        start = at.saturating_sub(1);
    }
    let output = &text[..start];
    (output, text[start..].trim_start_matches('\n'))
}
