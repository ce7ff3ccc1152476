//! Line parsers for the parts of a diagnostic.

use super::super::Diagnostic;
use crate::line::Line;

/// Parses level, code and message from `error[E0308]: mismatched types`.
pub(super) fn header(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let level = match text.as_bytes().first()? {
        b'e' if text.starts_with("error") => "error",
        b'w' if text.starts_with("warning") => "warning",
        _ => return None,
    };
    let rest = &text[level.len()..];
    if let Some(message) = rest.strip_prefix(": ") {
        return Some((level, None, message));
    }
    let (code, message) = rest.strip_prefix('[')?.split_once("]: ")?;
    Some((level, Some(code), message))
}

/// Parses the place from `  --> src/lib.rs:3:5`.
pub(super) fn place(text: &str) -> Option<&str> {
    text.trim_ascii_start().strip_prefix("--> ")
}

/// Returns true if a message counts diagnostics or states that the compiler stops.
pub(super) fn is_tally(level: &str, message: &str) -> bool {
    match level {
        "warning" => {
            message.starts_with('`') && message.contains(" generated ")
                || message.ends_with(" warning emitted")
                || message.ends_with(" warnings emitted")
                || message.starts_with("build failed, ")
        }
        _ => message.starts_with("could not compile ") || message.starts_with("aborting due to "),
    }
}

pub(super) fn is_explain_hint(text: &str) -> bool {
    text.starts_with("For more information about ")
        || text.starts_with("Some errors have detailed explanations: ")
}

pub(super) fn is_reading_hint(text: &str) -> bool {
    text.starts_with("= help: for further information visit ")
        || text.starts_with("= note: see <https://")
        || text.starts_with("= note: for more information, see ")
}

/// Returns true if a line only connects marks with their labels: `   |    |`.
pub(super) fn is_gutter(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'|' || byte == b' ')
}

/// Returns true if a list of types follows, one per line.
pub(super) fn is_list_of_types(text: &str) -> bool {
    text.starts_with("= help: the following ") && text.contains(" implement trait ")
}

/// Returns true for the code of an error of the language, not for a lint.
pub(super) fn is_error_code(code: &str) -> bool {
    code.strip_prefix('E').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns true if a line only marks the changes of a suggestion.
pub(super) fn is_marks(text: &str) -> bool {
    let text = text.strip_prefix('|').unwrap_or(text);
    text.bytes().all(|byte| b" +~-".contains(&byte))
}

/// The label at the marked place: `     |     ^^^ expected `u32``.
pub(super) fn label(text: &str) -> Option<&str> {
    let (gutter, marks) = text.split_once('|')?;
    if !gutter.trim_ascii().is_empty() {
        return None;
    }
    let (_, label) = marks.rsplit_once('^')?;
    Some(label.trim_ascii()).filter(|label| !label.is_empty())
}

/// The rule that is named in the notes, and the first help.
pub(super) fn notes<'l>(lines: impl Iterator<Item = Line<'l>>) -> (Option<String>, Option<String>) {
    let mut code = None;
    let mut help = None;
    let mut suggested = false;
    for line in lines {
        let text = line.text.trim_ascii_start();
        match text.as_bytes() {
            [b'=', ..] => {
                if let Some(url) = text.strip_prefix("= help: for further information visit ") {
                    if let Some((_, lint)) = url.rsplit_once('#') {
                        code = Some(format!("clippy::{lint}"));
                    }
                } else if let Some(text) = text.strip_prefix("= help: ") {
                    help.get_or_insert_with(|| format!("help: {text}"));
                } else if code.is_none() {
                    code = text.strip_prefix("= note: ").and_then(lint_in_note);
                }
            }
            [b'h', ..] if text.starts_with("help: ") => {
                suggested = help.is_none();
                help.get_or_insert_with(|| text.to_owned());
            }
            [b'|', ..] => {
                if help.is_none()
                    && let Some((_, text)) = text.split_once(" help: ")
                {
                    help = Some(format!("help: {text}"));
                }
                // The denied group `#![deny(unused)]` has a mark below it.
            }
            [b'0'..=b'9', ..] if suggested => {
                // The first line of the suggestion: `12 + code`.
                let code = text.trim_start_matches(|c: char| c.is_ascii_digit());
                if let (Some(added), Some(help)) = (code.strip_prefix(" + "), &mut help) {
                    help.push_str(" `");
                    help.push_str(added.trim_ascii());
                    help.push('`');
                    suggested = false;
                }
            }
            _ => {}
        }
    }
    (code, help)
}

/// Parses the lint from a note.
///
/// The forms are: `#[warn(dead_code)]` on by default; `-D dead-code` implied by `-D warnings`;
/// `#[deny(dead_code)]` implied by `#[deny(unused)]`; requested on the command line with `-W dead-code`.
pub(super) fn lint_in_note(note: &str) -> Option<String> {
    let note = note
        .strip_prefix("requested on the command line with ")
        .unwrap_or(note);
    let quoted = note.strip_prefix('`')?;
    let (quoted, _) = quoted.split_once('`')?;
    let lint = match quoted
        .strip_prefix("#[")
        .or_else(|| quoted.strip_prefix("#!["))
    {
        Some(attribute) => {
            let (level, lint) = attribute.split_once('(')?;
            if !matches!(level, "warn" | "deny" | "forbid") {
                return None;
            }
            lint.split(')').next()?
        }
        None => {
            let (level, lint) = quoted.split_once(' ')?;
            if !matches!(level, "-W" | "-D" | "-F" | "--warn" | "--deny" | "--forbid") {
                return None;
            }
            lint
        }
    };
    Some(lint.replace('-', "_"))
}

/// Parses a warning of `--message-format short`: `src/lib.rs:3:5: warning: unused variable: `x``.
pub(super) fn short(text: &str) -> Option<Diagnostic> {
    let (place, message) = text.split_once(": warning: ")?;
    let mut parts = place.rsplit(':');
    let numeric = |part: Option<&str>| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if !numeric(parts.next()) || !numeric(parts.next()) || place.starts_with(' ') {
        return None;
    }
    Some(Diagnostic {
        level: "warning".to_owned(),
        message: message.to_owned(),
        place: place.to_owned(),
        ..Diagnostic::default()
    })
}
