//! What single lines and scalars say.

use serde_json::{Number, Value};

/// Whether an item of a sequence begins here.
pub(super) fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// Whether it is a marker of documents or a directive.
pub(super) fn is_marker(text: &str) -> bool {
    let starts = |marker: &str| text == marker || text.starts_with(&format!("{marker} "));
    starts("---") || starts("...") || text.starts_with('%')
}

/// A line up to its comment; quotes at its beginning hold their own.
pub(super) fn without_comment(text: &str) -> &str {
    if text.starts_with(['"', '\'']) {
        return text;
    }
    let mut quote = None;
    let flow = text.starts_with(['[', '{']);
    let mut before = ' ';
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (None, '#') if before == ' ' => return text.get(..at).unwrap_or_default().trim_end(),
            (None, '"' | '\'') if flow => quote = Some(char),
            (Some(open), close) if open == close && before != '\\' => quote = None,
            _ => {}
        }
        before = char;
    }
    text
}

/// A plain scalar by the core schema.
pub(super) fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>()
        && !text.starts_with('+')
    {
        return Value::from(number);
    }
    let digits = |byte: u8| byte.is_ascii_digit() || b".-eE".contains(&byte);
    let number = text
        .parse::<f64>()
        .ok()
        .filter(|_| text.bytes().all(digits));
    match number.and_then(Number::from_f64) {
        Some(number) => Value::Number(number),
        None => Value::String(text.to_owned()),
    }
}

/// Lines as one, but for empty lines and those set in.
pub(super) fn fold(lines: &[String]) -> String {
    let mut text = String::new();
    let mut kept = true;
    for line in lines {
        let set_in = line.starts_with(' ');
        if line.is_empty() {
            text.push('\n');
            kept = true;
            continue;
        }
        if set_in && !kept {
            text.push('\n');
        } else if !kept {
            text.push(' ');
        }
        text.push_str(line);
        kept = false;
        if set_in {
            text.push('\n');
            kept = true;
        }
    }
    text.trim_end_matches('\n').to_owned()
}
