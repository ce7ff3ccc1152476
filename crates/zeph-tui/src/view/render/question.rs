//! The permission question: the call with the parts that need confirmation, the reason, the risk and the scopes.
//!
//! The user decides by this text, so nothing is hidden: control characters, invisible characters and characters that
//! reorder text are escapes, and cuts are marked. Every line of foreign text has a prefix, so that no text can imitate
//! the question.

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};
use serde_json::Value;
use zeph_tools::gate::{ApprovalProposal, DisplayPart, Grant};
use zeph_tools::plural::pluralize;
use zeph_tools::{Confirmation, Risk};

use super::Detail;
use super::diff::diff_lines;
use super::marked_command::{MarkedCommand, marked_command};
use super::styled_text::{BOLD, DIM, GREEN, RED, StyledText, YELLOW, expand_tabs};
use super::wrap::{Hanging, wrap};
use crate::sanitize::{first_line, visible};
use crate::view::permission_answers::{AnswerOption, has_always};

/// Lines of a new file in an excerpt.
const MAX_CONTENT_LINES: usize = 20;
/// Characters of a line of a new file in an excerpt.
const MAX_CONTENT_CHARS: usize = 400;
/// Characters of a part that is marked in the command, in the list of reasons.
const MAX_LABEL_CHARS: usize = 32;
/// Characters of a part that is not in the command literally, for example because of quotes. Ctrl-O shows all of it.
const MAX_UNMARKED_CHARS: usize = 60;
/// The sign before the selected option.
const SELECTED: &str = " ›";
/// The prefix of foreign text.
const BAR: &str = "  │ ";
/// The remark below a question about a change of a file.
const ACCEPT_ALL: &str = "/mode auto-edit (Shift-Tab at the prompt) accepts all changes of files";

/// The keys in at most `width` columns, on as many lines as they need. A sign marks the selected option, also without
/// colours.
pub(crate) fn option_lines(
    options: &[AnswerOption],
    selected: Option<usize>,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default()];
    for (at, option) in options.iter().enumerate() {
        let (sign, style) = match selected == Some(at) {
            true => (
                SELECTED,
                Style::new().add_modifier(Modifier::REVERSED.union(Modifier::BOLD)),
            ),
            false => ("  ", Style::new()),
        };
        let text = format!("[{}] {}", option.key, option.label);
        let spans = [Span::raw(sign), Span::styled(text, style)];
        let columns: usize = spans.iter().map(Span::width).sum();
        let used = lines.last().map_or(0, Line::width);
        if used > 0 && used + columns > width {
            lines.push(Line::default());
        }
        if let Some(line) = lines.last_mut() {
            line.spans.extend(spans);
        }
    }
    lines
}

/// The question without its keys.
pub(crate) fn question_lines(
    question: &Confirmation,
    params: &Value,
    width: usize,
    detail: Detail,
) -> Vec<Line<'static>> {
    let mut view = body(question, params, width, detail);
    view.scopes(question);
    if question.preview.is_some() {
        view.say(ACCEPT_ALL, DIM);
    }
    view.lines
}

/// Formats the question as plain text without keys, for a user of another program.
pub fn plain_question(question: &Confirmation, params: &Value) -> String {
    /// Wide enough that nothing wraps.
    const COLUMNS: usize = 100_000;
    let lines = body(question, params, COLUMNS, Detail::Full).lines;
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let text = lines.join("\n") + "\n";
    text.strip_prefix("? ").map(str::to_owned).unwrap_or(text)
}

/// The calls that an approval for the session covers, one per line; `None` if the question offers none.
pub fn session_scope(question: &Confirmation) -> Option<String> {
    match &question.offer.proposal {
        ApprovalProposal::Grants(grants) => {
            let lines: Vec<String> = grants.iter().map(grant).collect();
            Some(lines.join("\n"))
        }
        ApprovalProposal::ThisCall { .. } => Some("only this call".to_owned()),
        ApprovalProposal::Nothing { .. } => None,
    }
}

/// Formats a grant for the user.
pub(crate) fn grant(grant: &Grant) -> String {
    format!(
        "{} `{}`",
        shown_line(&grant.tool),
        shown_line(&grant.pattern)
    )
}

/// Formats a grant below a question. A pattern that is the exact text of a long part has the name of that part.
fn scope(rule: &Grant, parts: &[DisplayPart]) -> String {
    let exact = literal(&rule.pattern)
        .filter(|text| text.chars().count() > MAX_LABEL_CHARS)
        .filter(|text| parts.iter().any(|part| part.text == *text));
    match exact {
        Some(text) => format!(
            "{} exactly `{}`",
            shown_line(&rule.tool),
            label(&text, MAX_LABEL_CHARS)
        ),
        None => grant(rule),
    }
}

/// The only text that a pattern matches; `None` if it has wildcards.
fn literal(pattern: &str) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(chars.next()?),
            '*' | '?' | '[' | '{' => return None,
            c => text.push(c),
        }
    }
    Some(text)
}

/// The beginning of foreign text on one line.
fn label(text: &str, max_chars: usize) -> String {
    let text = shown_line(text);
    match text.chars().count() > max_chars {
        true => text.chars().take(max_chars - 1).chain(['…']).collect(),
        false => text,
    }
}

/// Foreign text on one line, with escapes.
fn shown_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// The call, its parts with their decisions, and the reason of the question.
fn body(question: &Confirmation, params: &Value, width: usize, detail: Detail) -> View {
    let (risk, style) = match question.risk {
        Risk::Safe => ("safe", GREEN),
        Risk::Medium => ("medium", YELLOW),
        Risk::High => ("high", RED),
    };
    let mut view = View {
        lines: Vec::new(),
        width,
        detail,
    };
    view.lines.push(Line::from(vec![
        Span::styled("?", YELLOW),
        Span::raw(" May "),
        Span::styled(shown_line(&first_line(&question.tool, 60)), BOLD),
        Span::raw(" run?  risk: "),
        Span::styled(risk, style),
    ]));
    let marks = view.arguments(question, params);
    view.parts(&question.pieces, &marks);
    if !question.reason.is_empty() {
        view.say(&format!("why: {}", question.reason), DIM);
    }
    view
}

/// The lines of a question.
struct View {
    lines: Vec<Line<'static>>,
    width: usize,
    detail: Detail,
}

impl View {
    /// Adds a remark. Line breaks in it are visible.
    fn say(&mut self, text: &str, style: Style) {
        let hanging = Hanging {
            first: vec![Span::raw("  ")],
            rest: vec![Span::raw("    ")],
        };
        let text = StyledText::new(&shown_line(text), style);
        self.lines.extend(wrap(&text, self.width, &hanging));
    }

    /// Adds foreign text after a label; its further lines have a bar.
    fn foreign(&mut self, label: &str, text: &str, style: Style) {
        for (at, line) in text.split('\n').enumerate() {
            let mut shown = StyledText::default();
            if at == 0 {
                shown.push(label, Style::new());
            }
            shown.push(&expand_tabs(&visible(line)), style);
            let hanging = Hanging {
                first: vec![Span::styled(if at == 0 { "  " } else { BAR }, DIM)],
                rest: vec![Span::styled(BAR, DIM)],
            };
            self.lines.extend(wrap(&shown, self.width, &hanging));
        }
    }

    /// Adds the arguments: the target first, contents last, a change of a file as a diff. Returns the marks of the
    /// parts in the command.
    fn arguments(&mut self, question: &Confirmation, params: &Value) -> Vec<bool> {
        let Some(arguments) = params.as_object().filter(|all| !all.is_empty()) else {
            self.foreign("", &question.subject, Style::new());
            return Vec::new();
        };
        let diff = question.preview.as_ref().map(|preview| &preview.diff);
        let mut marks = Vec::new();
        let mut arguments: Vec<_> = arguments.iter().collect();
        arguments.sort_by_key(|(name, _)| place(name));
        for (name, value) in arguments {
            match (name.as_str(), value.as_str()) {
                ("old_string" | "new_string" | "content", Some(_)) if diff.is_some() => {}
                ("command", Some(command)) => {
                    let MarkedCommand { lines, is_found } =
                        marked_command(command, &question.pieces, self.width);
                    self.lines.extend(lines);
                    marks = is_found;
                }
                ("old_string", Some(text)) => self.content("- ", text, RED),
                ("new_string" | "content", Some(text)) => self.content("+ ", text, GREEN),
                (name, Some(text)) => {
                    self.foreign(&format!("{}: ", shown_line(name)), text, Style::new());
                }
                (name, None) => {
                    let text = value.to_string();
                    self.foreign(&format!("{}: ", shown_line(name)), &text, Style::new());
                }
            }
        }
        if let Some(diff) = diff {
            let shown = expand_tabs(&visible(diff));
            let lines = diff_lines(&shown, BAR, self.width, self.detail);
            if lines.is_empty() {
                self.say("nothing would change", DIM);
            }
            self.lines.extend(lines);
        }
        marks
    }

    /// Adds the lines of a text that would be written or replaced, bounded in an excerpt.
    fn content(&mut self, mark: &'static str, text: &str, style: Style) {
        let all: Vec<&str> = text.lines().collect();
        let most = match self.detail {
            Detail::Brief | Detail::Excerpt if all.len() > MAX_CONTENT_LINES + 1 => {
                MAX_CONTENT_LINES
            }
            _ => all.len(),
        };
        for line in &all[..most] {
            let end = line
                .char_indices()
                .nth(MAX_CONTENT_CHARS)
                .map(|(end, _)| end);
            let end = end
                .filter(|_| self.detail != Detail::Full)
                .unwrap_or(line.len());
            let mut shown = StyledText::new(&expand_tabs(&visible(&line[..end])), style);
            if end < line.len() {
                let hidden = pluralize(line[end..].chars().count(), "more character");
                shown.push(&format!("… ({hidden})"), DIM);
            }
            let hanging = Hanging {
                first: vec![Span::styled(BAR, DIM), Span::styled(mark, style)],
                rest: vec![Span::styled(BAR, DIM), Span::raw("  ")],
            };
            self.lines.extend(wrap(&shown, self.width, &hanging));
        }
        if most < all.len() {
            let hidden = pluralize(all.len() - most, "more line");
            self.say(&format!("… {hidden} (Ctrl-O shows all)"), DIM);
        }
    }

    /// Adds the decisions about the parts of a command. The command above is complete, so the parts are named in short.
    fn parts(&mut self, parts: &[DisplayPart], is_marked: &[bool]) {
        for (at, part) in parts.iter().enumerate() {
            let is_marked = is_marked.get(at).copied().unwrap_or(false);
            let text = match (is_marked, self.detail) {
                (true, _) => label(&part.text, MAX_LABEL_CHARS),
                (false, Detail::Full) => shown_line(&part.text),
                (false, _) => label(&part.text, MAX_UNMARKED_CHARS),
            };
            let (mark, style) = match part.asked {
                true => ("^ ", YELLOW),
                false => ("✔ ", GREEN),
            };
            let depth = "  ".repeat(part.depth.min(10));
            let mut line = StyledText::default();
            // Of a command of one part, the command is the text of the part.
            if parts.len() > 1 || !is_marked {
                line.push(&text, Style::new());
                line.push(" — ", DIM);
            }
            line.push(&shown_line(&part.judged), style);
            let hanging = Hanging {
                first: vec![Span::raw(format!("    {depth}")), Span::styled(mark, style)],
                rest: vec![Span::raw(format!("      {depth}"))],
            };
            self.lines.extend(wrap(&line, self.width, &hanging));
        }
    }

    /// Adds the scopes of the answers other than "once".
    fn scopes(&mut self, question: &Confirmation) {
        match &question.offer.proposal {
            ApprovalProposal::Grants(grants) => {
                let keys = match has_always(question) {
                    true => "[2] this session, [3] always:",
                    false => "[2] this session:",
                };
                let grants: Vec<String> = grants
                    .iter()
                    .map(|grant| scope(grant, &question.pieces))
                    .collect();
                self.say(&format!("{keys} {}", grants.join(", ")), DIM);
            }
            ApprovalProposal::ThisCall { why } => {
                self.say("[2] this session: only this call", DIM);
                self.say(&format!("[3] always is not available: {why}"), DIM);
            }
            ApprovalProposal::Nothing { why } if why.is_empty() => {}
            ApprovalProposal::Nothing { why } => {
                self.say(&format!("[2] and [3] are not available: {why}"), DIM);
            }
        }
    }
}

/// The position of an argument in a question: the target first, contents last.
fn place(name: &str) -> u8 {
    match name {
        "command" | "path" | "source" => 0,
        "destination" => 1,
        "old_string" => 3,
        "new_string" | "content" => 4,
        _ => 2,
    }
}

#[cfg(test)]
mod tests;
