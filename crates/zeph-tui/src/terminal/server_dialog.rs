//! The questions of an MCP server at the terminal: a decision by one key, then the fields of a form, one after another.
//!
//! All text comes from the server, so control characters and characters that hide or reorder text are shown as escapes.

use std::os::fd::{AsFd, OwnedFd};

use serde_json::Map;
use zeph_tools::question::{
    FieldKind, FieldOption, FormField, QuestionRequest, ServerAnswer, ServerQuestion,
};

use super::burst::{Bursts, Input, read};
use super::keyboard::{Show, is_abandoned, single_keys};
use super::line::{Line, Typed};
use super::screen::{ERASE, columns};
use super::style::{BOLD, DIM, Style, YELLOW};
use crate::sanitize::visible;

/// The hint after input that is not an answer.
const ONE_KEY: &str = "\n  ignored: press only one of the keys\n";
/// The most characters of a server's message and of a field's description.
const MAX_TEXT_CHARS: usize = 4000;
/// The most options that a question lists.
const MAX_OPTIONS: usize = 50;

/// The question with its keys.
pub(super) fn question(question: &ServerQuestion, style: Style) -> String {
    body(question, style) + &keys(question)
}

/// The question as plain text without its keys.
#[cfg(feature = "full-screen")]
pub(crate) fn text(question: &ServerQuestion) -> String {
    body(question, Style::default())
}

fn body(question: &ServerQuestion, style: Style) -> String {
    let mut out = format!(
        "{} The MCP server {} requests input:\n",
        style.paint(YELLOW, "?"),
        style.paint(BOLD, &visible(&question.server)),
    );
    indent(&mut out, &cut(&question.message));
    match &question.request {
        QuestionRequest::Form(fields) => {
            let names: Vec<String> = fields.iter().map(label).collect();
            indent(&mut out, &format!("fields: {}", names.join(", ")));
        }
        QuestionRequest::Url { url } => indent(&mut out, &format!("opens {}", visible(url))),
        QuestionRequest::Decision { details } => indent(&mut out, &visible(details)),
    }
    if matches!(question.request, QuestionRequest::Form(_)) {
        let hint = "enter no password or key here unless you trust this server";
        out.push_str(&format!("    {}\n", style.paint(DIM, hint)));
    }
    out
}

/// The keys of the question.
pub(super) fn keys(question: &ServerQuestion) -> String {
    let accept = match question.request {
        QuestionRequest::Form(_) => "fill in",
        QuestionRequest::Url { .. } => "open",
        QuestionRequest::Decision { .. } => "allow",
    };
    format!("  [y] {accept}  [n] decline  [Esc] cancel ")
}

/// Shows the question on `terminal` and waits for the answer. Ctrl-C and a closed terminal cancel it.
pub(super) fn dialog(
    terminal: &impl AsFd,
    stop: &OwnedFd,
    (asked, plain): (&ServerQuestion, bool),
    show: impl Fn(Show<'_>),
) -> rustix::io::Result<ServerAnswer> {
    let _mode = single_keys(terminal)?;
    // Abandoned before it began, a question is not shown.
    if is_abandoned(stop)? {
        return Ok(ServerAnswer::Cancel);
    }
    show(Show::Question);
    let mut bursts = Bursts::default();
    loop {
        let byte = match bursts.next(terminal, stop)? {
            Input::End | Input::Interrupt => return Ok(ServerAnswer::Cancel),
            Input::Key(byte) => byte,
            Input::Suspend => {
                show(Show::Suspend);
                continue;
            }
            Input::Other | Input::Next | Input::Previous => 0,
        };
        match byte {
            b'y' | b'Y' => break,
            b'n' | b'N' => return Ok(ServerAnswer::Decline),
            0x04 | 0x1b => return Ok(ServerAnswer::Cancel),
            _ => {
                show(Show::Text(ONE_KEY));
                show(Show::Keys);
            }
        }
    }
    let mut values = Map::new();
    if let QuestionRequest::Form(fields) = &asked.request {
        show(Show::Text("\n  Enter confirms a value, Esc cancels\n"));
        for field in fields {
            let Some(value) = fill_in(terminal, stop, (field, plain), &show)? else {
                return Ok(ServerAnswer::Cancel);
            };
            if let Some(value) = value {
                values.insert(field.name.clone(), value);
            }
        }
    }
    Ok(ServerAnswer::Accept(values))
}

/// Reads the value of a field; `None` if the user cancels.
#[allow(
    clippy::option_option,
    reason = "an optional field has an optional value"
)]
fn fill_in(
    terminal: &impl AsFd,
    stop: &OwnedFd,
    (field, plain): (&FormField, bool),
    show: &impl Fn(Show<'_>),
) -> rustix::io::Result<Option<Option<serde_json::Value>>> {
    let description = format!("\n{}", described(field));
    show(Show::Text(&description));
    let default = field.default.as_ref().map(|value| field.text_of(value));
    let mut line = Line::of(&default.unwrap_or_default());
    let prompt = format!("  {}: ", label(field));
    let width = prompt.chars().count();
    let mut before = None;
    loop {
        let (text, cursor) = line.drawn(columns().saturating_sub(width));
        match plain {
            // Without escape sequences, the line is written again after each change.
            true if before.as_ref() == Some(&text) => {}
            true => show(Show::Text(&format!("\n{prompt}{text}"))),
            false => {
                let column = width + cursor;
                show(Show::Text(&format!(
                    "{ERASE}{prompt}{text}\r\x1b[{column}C"
                )));
            }
        }
        before = Some(text);
        let Some(bytes) = read(terminal, stop, None)? else {
            return Ok(None);
        };
        match line.typed(&bytes) {
            Typed::More => {}
            Typed::Back | Typed::Interrupt => return Ok(None),
            Typed::Suspend => {
                show(Show::Suspend);
                show(Show::Text(&description));
                before = None;
            }
            Typed::Done => match field.parse(&line.text()) {
                Ok(value) => {
                    show(Show::Text("\n"));
                    return Ok(Some(value));
                }
                Err(why) => show(Show::Text(&format!("\n  invalid: {}\n", visible(&why)))),
            },
        }
    }
}

/// The title of a field, on one line.
pub(crate) fn label(field: &FormField) -> String {
    let title = field.title.as_ref().unwrap_or(&field.name);
    let title: String = title.chars().take(60).collect();
    visible(&title).replace('\n', " ")
}

/// The description of a field: its text, its type and its options.
pub(crate) fn described(field: &FormField) -> String {
    let mut out = String::new();
    if !field.description.is_empty() {
        indent(&mut out, &cut(&field.description));
    }
    let kind = match &field.kind {
        FieldKind::Text { .. } => "text",
        FieldKind::Number { .. } => "a number",
        FieldKind::Integer { .. } => "a whole number",
        FieldKind::Boolean => "yes or no",
        FieldKind::Choice(_) => "one of the options, by number or value",
        FieldKind::Choices { .. } => "options by number or value, separated by commas",
    };
    let needed = if field.is_required {
        "required"
    } else {
        "optional"
    };
    indent(&mut out, &format!("{kind}, {needed}"));
    let options: &[FieldOption] = match &field.kind {
        FieldKind::Choice(options) | FieldKind::Choices { options, .. } => options,
        _ => &[],
    };
    for (at, option) in options.iter().take(MAX_OPTIONS).enumerate() {
        let title = match &option.title {
            Some(title) => format!("{} ({title})", option.value),
            None => option.value.clone(),
        };
        indent(&mut out, &format!("{}. {}", at + 1, visible(&title)));
    }
    if options.len() > MAX_OPTIONS {
        let more = options.len() - MAX_OPTIONS;
        indent(&mut out, &format!("… {more} more options"));
    }
    out
}

/// A text of a server with escapes, and with a mark where it is cut.
fn cut(text: &str) -> String {
    let mut characters = text.chars();
    let mut start = visible(&characters.by_ref().take(MAX_TEXT_CHARS).collect::<String>());
    let rest = characters.count();
    if rest > 0 {
        start.push_str(&format!("… ({rest} more characters)"));
    }
    start
}

fn indent(out: &mut String, text: &str) {
    for line in text.lines() {
        out.push_str("    ");
        out.push_str(line);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves MCP-1b, MCP-1a: the question hides nothing.
    #[test]
    fn question_shows_hidden_characters_and_the_complete_address() {
        let text = question(
            &ServerQuestion {
                server: "s".to_owned(),
                message: "a\u{202e}b".to_owned(),
                request: QuestionRequest::Url {
                    url: "https://e.org/\u{200b}?x".to_owned(),
                },
            },
            Style::default(),
        );
        assert!(text.contains("a\\u{202e}b"), "{text}");
        assert!(text.contains("opens https://e.org/\\u{200b}?x"), "{text}");
        assert!(
            text.ends_with("  [y] open  [n] decline  [Esc] cancel "),
            "{text}"
        );
    }
}
