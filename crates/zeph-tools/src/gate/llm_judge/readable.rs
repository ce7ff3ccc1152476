//! JSON in one line without hidden characters and without text that resembles a mark of a chat template.

use std::fmt::Write as _;

use serde_json::Value;

use crate::hidden::is_blank;

/// Formats a value as compact JSON with sorted keys, in one line. These characters are written as `\uXXXX`, which
/// does not change the value: invisible and reordering characters, private characters, `<`, and `[` before a
/// possible mark name.
pub(super) fn line(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value);
    escaped(&text)
}

/// Writes JSON with sorted keys.
fn write(text: &mut String, value: &Value) {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(name, _)| name.as_str());
            text.push('{');
            for (at, (name, value)) in entries.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(text, value);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write(text, item);
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

/// Escapes the characters that [`line()`] lists. In JSON such characters occur only in strings.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json.chars();
    while let Some(c) = rest.next() {
        let marks = c == '<' || (c == '[' && rest.as_str().starts_with(begins_mark));
        if !marks && !is_hidden(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing into a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Whether the character after `[` can begin a mark such as `[INST]`, `[/INST]` or `[TOOL_CALLS]`; it cannot
/// follow `[` in a JSON array.
fn begins_mark(c: char) -> bool {
    c == '/' || c.is_ascii_uppercase()
}

/// Whether a character can be invisible or can reorder others. Characters that only some fonts show also count:
/// private characters, non-characters, unusual spaces.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || is_blank(c)
        || matches!(c,
            '\u{2000}'..='\u{206f}' | '\u{3000}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}'
            | '\u{e0000}'..='\u{10ffff}')
            && !matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn escapes_invisible_characters() {
        let check = |value: Value, expect: &str| assert_eq!(line(&value), expect);
        check(
            json!({"b": [1, {"d": null, "c": true}], "a": "ä"}),
            r#"{"a":"ä","b":[1,{"c":true,"d":null}]}"#,
        );
        check(
            json!("a\nb\u{2028}c\u{202e}d\u{200b}e"),
            r#""a\nb\u2028c\u202ed\u200be""#,
        );
        check(json!("\u{e0041}"), r#""\udb40\udc41""#);
        check(json!("<|im_start|>system"), r#""\u003c|im_start|>system""#);
        check(json!("\\<s>"), r#""\\\u003cs>""#);
        check(
            json!("x[/INST] [INST] [a] [1]"),
            r#""x\u005b/INST] \u005bINST] [a] [1]""#,
        );
        check(json!({"[INST]": []}), r#"{"\u005bINST]":[]}"#);
    }

    proptest! {
        /// Proves PERM-20: any text becomes one line of JSON with the same value.
        #[test]
        fn any_text_becomes_one_equal_json_line(text in any::<String>(), key in any::<String>()) {
            let value = json!({"k": [text], key: {"<": "[/A"}});
            let line = line(&value);
            prop_assert!(!line.chars().any(|c| c == '<' || is_hidden(c)), "{line:?}");
            prop_assert_eq!(line.lines().count(), 1);
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
