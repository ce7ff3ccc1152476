//! A command in which the parts that need confirmation are marked.

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;
use zeph_tools::gate::DisplayPart;

use super::styled_text::{BOLD, DIM, StyledText, YELLOW, expand_tabs};
use super::wrap::{MIN_COLUMNS, ranges};
use crate::sanitize::visible;

/// The prefix of the first line of a command.
const FIRST: &str = "  $ ";
/// The prefix of further lines of a command.
const REST: &str = "  │ ";

/// The style of a part that needs confirmation.
const ASKED: Style = YELLOW.add_modifier(Modifier::BOLD);

/// The lines of a command.
pub(super) struct MarkedCommand {
    /// The command, with a line of carets below each line with marked text.
    pub(super) lines: Vec<Line<'static>>,
    /// For each part, whether it is in the command literally.
    pub(super) is_found: Vec<bool>,
}

/// Shows the whole command once, with escapes, and marks the parts that need confirmation. A command that needs
/// confirmation as a whole has no carets.
pub(super) fn marked_command(command: &str, parts: &[DisplayPart], width: usize) -> MarkedCommand {
    let places = places(command, parts);
    let asked: Vec<(usize, usize)> = parts
        .iter()
        .zip(&places)
        .filter(|(part, _)| part.asked)
        .filter_map(|(_, place)| *place)
        .collect();
    let is_marked = |at: usize| {
        asked
            .iter()
            .any(|(start, end)| (*start..*end).contains(&at))
    };
    let is_whole = command
        .char_indices()
        .all(|(at, c)| c.is_whitespace() || is_marked(at));
    let mut lines = Vec::new();
    let mut offset = 0;
    for line in command.split('\n') {
        let mut shown = StyledText::default();
        for (at, c) in line.char_indices() {
            let style = match !is_whole && is_marked(offset + at) {
                true => ASKED,
                false => BOLD,
            };
            shown.push(&one_char(c), style);
        }
        let room = width.saturating_sub(FIRST.len()).max(MIN_COLUMNS);
        for (start, end) in ranges(shown.as_str(), |_| room) {
            let prefix = if lines.is_empty() { FIRST } else { REST };
            let spans = shown.spans(start, end);
            let carets = carets(&spans);
            let mut line = vec![Span::styled(prefix, DIM)];
            line.extend(spans);
            lines.push(Line::from(line));
            if !carets.is_empty() {
                lines.push(Line::styled(format!("    {carets}"), YELLOW));
            }
        }
        offset += line.len() + 1;
    }
    MarkedCommand {
        lines,
        is_found: places.iter().map(Option::is_some).collect(),
    }
}

/// A character of the command as text without hidden characters.
fn one_char(c: char) -> String {
    expand_tabs(&visible(c.encode_utf8(&mut [0; 4])))
}

/// A caret below each column of marked text.
fn carets(spans: &[Span<'static>]) -> String {
    let mut carets = String::new();
    for span in spans {
        let mark = if span.style == ASKED { "^" } else { " " };
        carets.push_str(&mark.repeat(span.content.width()));
    }
    carets.truncate(carets.trim_end().len());
    carets
}

/// The range of each part in the command, in the order of the parts; `None` if the text is not in the command. A part
/// that is nested in another one begins inside it.
fn places(command: &str, parts: &[DisplayPart]) -> Vec<Option<(usize, usize)>> {
    let mut places: Vec<Option<(usize, usize)>> = Vec::new();
    // The end of the last part at each depth.
    let mut after: Vec<usize> = Vec::new();
    let mut last_start = 0;
    for part in parts {
        let from = after
            .get(part.depth)
            .copied()
            .unwrap_or(0)
            .max(if part.depth > 0 { last_start } else { 0 });
        let found = command
            .get(from..)
            .filter(|_| !part.text.is_empty())
            .and_then(|rest| rest.find(&part.text))
            .map(|at| (from + at, from + at + part.text.len()));
        if let Some((start, end)) = found {
            after.truncate(part.depth + 1);
            after.resize(part.depth + 1, start);
            after[part.depth] = end;
            last_start = start;
        }
        places.push(found);
    }
    places
}
