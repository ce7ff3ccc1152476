//! The searchable text of a stored message: prompts and responses, without calls, results, images and reasoning.

use serde::Deserialize;

/// A part of a message.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
}

/// The text of a message with its lines; empty if it has none.
pub(crate) fn text_of(content: &str) -> String {
    let parts: Vec<Part> = serde_json::from_str(content).unwrap_or_default();
    let texts = parts.into_iter().filter(|part| part.kind == "text");
    let mut texts: Vec<String> = texts.map(|part| part.text).collect();
    match texts.len() {
        // A long text is not copied.
        1 => texts.pop().unwrap_or_default(),
        _ => texts.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_parts_are_extracted() {
        let check = |content: &str, expect: &str| assert_eq!(text_of(content), expect, "{content}");
        check("", "");
        check("not json", "");
        check("{}", "");
        check(r#"[{"type":"text","text":"a\n b"}]"#, "a\n b");
        check(
            r#"[{"type":"text","text":"a\n b"},{"type":"text","text":"c"}]"#,
            "a\n b\nc",
        );
        check(
            r#"[{"type":"tool_result","tool_use_id":"1","content":"x"}]"#,
            "",
        );
        check(
            r#"[{"type":"reasoning","text":"x"},{"type":"text","text":"y"}]"#,
            "y",
        );
    }
}
