//! The lines of a tool call: one line with its action, and its output or its result.

use std::time::Duration;

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;
use zeph_core::call_display::ResultKind;
use zeph_tools::FilterStats;
use zeph_tools::cache::split_note;
use zeph_tools::plural::pluralize;

use super::Detail;
use super::diff::{diff_lines, is_diff};
use super::excerpt::{Excerpt, excerpt};
use super::styled_text::{BOLD, CYAN, DIM, RED, StyledText, fit, safe};
use super::wrap::{Hanging, wrap};
use crate::sanitize::first_line;
use crate::view::{Call, CallResult};

/// Lines of output of a running call.
const MAX_RUNNING_LINES: usize = 5;
/// Characters of a subject.
const MAX_SUBJECT_CHARS: usize = 400;
/// Lines of remarks after the output of a command.
const MAX_REMARKS: usize = 4;
/// A result of so few lines is shown without their number.
const MAX_WHOLE_LINES: u64 = 5;
/// The beginning of the remark about a failed command.
const EXIT_CODE: &str = "exit code";
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

fn is_listing(call: &Call) -> bool {
    call.result_kind() == ResultKind::Listing
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
        Detail::Brief | Detail::Excerpt => MAX_RUNNING_LINES,
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
    let notice = result.filter.as_ref().and_then(FilterStats::notice);
    facts.extend(notice.map(|notice| safe(&notice)));
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
    let lines: Vec<String> = text.split('\n').map(output_line).collect();
    lines.join("\n")
}

/// The lines of a result.
struct View {
    lines: Vec<Line<'static>>,
    width: usize,
    detail: Detail,
}

impl View {
    /// The key that shows the hidden lines.
    fn hint(&self) -> &'static str {
        match self.detail {
            Detail::Excerpt => " (Ctrl-O expands)",
            Detail::Brief | Detail::Full => "",
        }
    }

    /// The message, then the output before the failure.
    fn failure(&mut self, call: &Call, text: &str, facts: Vec<String>) {
        let (message, output) = text.split_once('\n').unwrap_or((text, ""));
        self.summary(message, RED, facts);
        if !call.had_terminal {
            let (printed, shown) = (call.output.total(), count_lines(output));
            let output = self.printed(call, output);
            self.body(&output, printed.max(shown), Style::new());
        }
    }

    /// The text before a diff, and the diff.
    fn diff(&mut self, text: &str, facts: Vec<String>) {
        let start = text.find("--- ").unwrap_or(0);
        let before = text[..start].trim_end();
        let before = if before.is_empty() { "changed" } else { before };
        self.summary(before, DIM, facts);
        let lines = diff_lines(&text[start..], REST, self.width, self.detail);
        self.lines.extend(lines);
    }

    /// The number of lines and the remarks, then the end of the output.
    fn success(&mut self, call: &Call, text: &str, facts: Vec<String>) {
        let (output, remarks) = match is_command(call) {
            true => split_remarks(text),
            false => (text, ""),
        };
        let mut all: Vec<String> = remarks.lines().map(remark).collect();
        all.extend(facts);
        if call.had_terminal {
            // The user has seen the output.
            if !all.is_empty() {
                let first = all.remove(0);
                self.summary(&first, DIM, all);
            }
            return;
        }
        let total = call.output.total().max(count_lines(output));
        let has_block = call.result_kind() == ResultKind::TaskList && self.detail != Detail::Full;
        if has_block || output.trim().is_empty() {
            self.summary("done", DIM, all);
        } else if total <= 1 {
            self.summary(output, DIM, all);
        } else if total <= MAX_WHOLE_LINES && all.is_empty() {
            self.whole(output);
        } else {
            let is_folded = is_listing(call) && self.detail != Detail::Full;
            let hint = if is_folded { self.hint() } else { "" };
            self.summary(&format!("{}{hint}", pluralize(total, "line")), DIM, all);
            if !is_folded {
                self.body(&self.printed(call, output), total, DIM);
            }
        }
    }

    /// Adds the first line of a result.
    fn summary(&mut self, text: &str, style: Style, facts: Vec<String>) {
        let mut line = StyledText::new(text, style);
        for fact in facts {
            let style = if fact.starts_with(EXIT_CODE) {
                RED
            } else {
                DIM
            };
            line.push(" · ", DIM);
            line.push(&fact, style);
        }
        let hanging = Hanging {
            first: vec![Span::styled(FIRST, DIM)],
            rest: vec![Span::raw(REST)],
        };
        self.lines.extend(wrap(&line, self.width, &hanging));
    }

    /// Adds a short text without a summary.
    fn whole(&mut self, text: &str) {
        for (at, line) in text.lines().enumerate() {
            let hanging = Hanging {
                first: vec![Span::styled(if at == 0 { FIRST } else { REST }, DIM)],
                rest: vec![Span::raw(REST)],
            };
            self.lines
                .extend(wrap(&StyledText::new(line, DIM), self.width, &hanging));
        }
    }

    /// The output in full if it is wanted and known: the result may have less than the command printed.
    fn printed(&self, call: &Call, output: &str) -> String {
        match self.detail == Detail::Full && call.output.stored() > output.lines().count() {
            true => call
                .output
                .last(usize::MAX)
                .map(output_line)
                .collect::<Vec<_>>()
                .join("\n"),
            false => output.to_owned(),
        }
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
                    let hint = if has_hidden { "" } else { self.hint() };
                    has_hidden = true;
                    (format!("… {}{hint}", pluralize(count, "line")), DIM)
                }
            };
            self.lines
                .push(Line::from(vec![Span::raw(REST), Span::styled(text, style)]));
        }
    }
}

fn count_lines(text: &str) -> u64 {
    u64::try_from(text.lines().count()).unwrap_or(u64::MAX)
}

/// A remark without its brackets: `exit code: 137 (killed by SIGKILL)`.
fn remark(line: &str) -> String {
    let line = line.strip_prefix('[').unwrap_or(line);
    let line = line.strip_suffix(']').unwrap_or(line);
    line.replace("] (", " (")
}

/// The output of a command, and the lines after it that are remarks, such as `[exit code: 1]`.
fn split_remarks(text: &str) -> (&str, &str) {
    let mut start = text.len();
    for line in text.rsplit('\n').take(MAX_REMARKS) {
        let is_remark = line.strip_prefix('[').is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_lowercase()) && rest.contains(' ')
        });
        if !is_remark {
            break;
        }
        start = start.saturating_sub(line.len() + 1);
    }
    (&text[..start], text[start..].trim_start_matches('\n'))
}

#[cfg(test)]
mod tests;
