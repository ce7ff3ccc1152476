//! Markdown files with front matter: the checks that skills, custom commands and sub-agents share. The files are untrusted.

pub mod yaml;

use serde_json::{Map, Value};
use zeph_tools::registry::nearest;

/// Bytes of the front matter.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Bytes of a short text, such as a name.
pub(crate) const MAX_TEXT_BYTES: usize = 256;
/// Names in a list.
pub(crate) const MAX_NAMES: usize = 64;

/// Whether a character is invisible or changes the display of others: control characters, direction marks and tags.
pub(crate) fn hides(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// The text of a file without hidden characters, with line feeds as line breaks.
///
/// # Errors
/// The text is not UTF-8, or has a hidden character.
pub(crate) fn text_of(bytes: Vec<u8>, file: &str) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{file} is not UTF-8 in line {line}")
    })?;
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(&text)
        .replace("\r\n", "\n");
    for (at, line) in text.lines().enumerate() {
        if let Some(hidden) = line.chars().find(|char| hides(*char) && *char != '\t') {
            let code = u32::from(hidden);
            return Err(format!(
                "{file} contains the control character U+{code:04X} in line {}",
                at + 1
            ));
        }
    }
    Ok(text)
}

/// The front matter and the body. `None` if the text has no front matter.
///
/// # Errors
/// The front matter is too long, or does not end.
pub(crate) fn parts<'t>(text: &'t str, file: &str) -> Result<Option<(&'t str, &'t str)>, String> {
    let Some((first, rest)) = text.split_once('\n') else {
        return Ok(None);
    };
    if first.trim_end() != "---" {
        return Ok(None);
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let head = rest.get(..at).unwrap_or_default();
            let body = rest.get(at + line.len()..).unwrap_or_default();
            return Ok(Some((head, body)));
        }
        at += line.len();
        if at > MAX_HEAD_BYTES {
            return Err(format!(
                "the front matter of {file} has more than {} KiB",
                MAX_HEAD_BYTES / 1024
            ));
        }
    }
    Err(format!(
        "the front matter of {file} has no end: a line `---` is missing"
    ))
}

/// The front matter as a mapping.
///
/// # Errors
/// The text is not valid, or not a mapping.
pub(crate) fn mapping(head: &str, file: &str) -> Result<Map<String, Value>, String> {
    // The first line is the marker.
    let head = yaml::parse(head)
        .map_err(|error| format!("{file}, line {}: {}", error.line + 1, error.what))?;
    match head {
        Value::Object(head) => Ok(head),
        _ => Err(format!("the front matter of {file} is not a mapping")),
    }
}

/// Checks that a mapping has no other keys.
///
/// # Errors
/// The unknown key, and the nearest known one.
pub(crate) fn known_keys(
    map: &Map<String, Value>,
    keys: &[&str],
    others: &[&str],
    place: &str,
) -> Result<(), String> {
    let unknown = map
        .keys()
        .find(|key| !keys.contains(&key.as_str()) && !others.contains(&key.as_str()));
    match unknown {
        None => Ok(()),
        Some(unknown) => {
            let near = nearest(unknown, keys.iter().copied(), 1).pop();
            let near = near.map_or_else(
                || format!("there are {}", keys.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            Err(format!("`{unknown}` is not a key of {place}: {near}"))
        }
    }
}

/// A text of one line.
///
/// # Errors
/// The value is missing, empty, too long, or has another type.
pub(crate) fn words(value: Option<Value>, key: &str, most: usize) -> Result<String, String> {
    let text = match value {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => return Err(format!("`{key}` is missing")),
        Some(_) => return Err(format!("`{key}` is not a string: quote it")),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.len() {
        0 => Err(format!("`{key}` is empty")),
        length if length > most => Err(format!("`{key}` has more than {most} bytes")),
        // A quoted text may contain escapes.
        _ if text.contains(hides) => Err(format!("`{key}` contains a control character")),
        _ => Ok(text),
    }
}

/// A list of names. In a single text, commas or spaces separate them.
///
/// # Errors
/// The value has another type, or too many names.
pub(crate) fn names(value: Value, key: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{key}` is not a list of names");
    let names: Vec<String> = match value {
        Value::Null => Vec::new(),
        Value::String(text) => {
            let parts = text.split(|char: char| char == ',' || char.is_whitespace());
            parts
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        }
        Value::Array(items) => {
            let items = items.into_iter().map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(wrong()),
            });
            items.collect::<Result<_, _>>()?
        }
        _ => return Err(wrong()),
    };
    if names.len() > MAX_NAMES {
        return Err(format!("`{key}` has more than {MAX_NAMES} names"));
    }
    match names
        .iter()
        .find(|name| name.is_empty() || name.len() > MAX_TEXT_BYTES || name.contains(hides))
    {
        Some(_) => Err(wrong()),
        None => Ok(names),
    }
}
