//! Conversion of a call's result to text for the model; omitted parts are always mentioned. Pure functions.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use zeph_tools::{ImageContent, ToolOutput};

use crate::sanitize::line;

/// The most bytes of an image that is passed to the model.
const MAX_IMAGE_BYTES: usize = 5 << 20;
/// The kinds of images that models take.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The most characters of a name, an address or a kind.
const MAX_WORD_CHARS: usize = 500;

/// A result as text.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The text for the model, with an image if the model takes images and there is one.
    pub output: ToolOutput,
    /// Whether the tool reported a failure.
    pub failed: bool,
}

/// Formats the result of a call as text.
#[must_use]
pub fn rendered(result: &Value, takes_images: bool) -> Rendered {
    let mut parts = Vec::new();
    let mut image = None;
    let content = result.get("content").and_then(Value::as_array);
    for block in content.into_iter().flatten() {
        parts.push(match text(block, "type") {
            "text" => text(block, "text").to_owned(),
            "image" => {
                let (said, found) = picture(block, takes_images, image.is_some());
                image = image.or(found);
                said
            }
            "audio" => format!(
                "[audio: {}; audio is not passed to the \
             model]",
                data(block, "data")
            ),
            "resource_link" => link(block),
            "resource" => resource(block.get("resource").unwrap_or(&Value::Null)),
            _ => format!("[content of an unknown type: {block}]"),
        });
    }
    let structured = result.get("structuredContent").filter(|it| !it.is_null());
    if let Some(structured) = structured {
        // Servers repeat it as text, for clients without structured content.
        let is_said = |part: &String| {
            serde_json::from_str::<Value>(part).is_ok_and(|said| said == *structured)
        };
        if !parts.iter().any(is_said) {
            parts.push(format!("{structured:#}"));
        }
    }
    let summary = match parts.join("\n") {
        text if text.trim().is_empty() => "[the tool returned no content]".to_owned(),
        text => text,
    };
    let mut output = ToolOutput::text(summary);
    output.image = image;
    if let Some(structured) = structured {
        output = output.with_raw(structured.clone());
    }
    Rendered {
        output,
        failed: result.get("isError") == Some(&Value::Bool(true)),
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn word(value: &Value, key: &str) -> String {
    line(text(value, key), MAX_WORD_CHARS)
}

/// The kind and the size of data in base64.
fn data(block: &Value, key: &str) -> String {
    let kind = match word(block, "mimeType") {
        kind if kind.is_empty() => "of no kind".to_owned(),
        kind => kind,
    };
    format!("{kind}, {} bytes", size(text(block, key)))
}

/// The decoded size of base64 data in bytes.
fn size(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// The text about an image, and the image if it is passed to the model.
fn picture(block: &Value, takes_images: bool, is_second: bool) -> (String, Option<ImageContent>) {
    let (kind, bytes) = (text(block, "mimeType"), text(block, "data"));
    let why = if !takes_images {
        Some("the current model does not accept images")
    } else if is_second {
        Some("only one image of a result is passed to the model")
    } else if !IMAGES.contains(&kind) {
        Some("models do not accept this image type")
    } else if size(bytes) > MAX_IMAGE_BYTES {
        Some("it is too large")
    } else if !STANDARD.decode(bytes).is_ok_and(|bytes| !bytes.is_empty()) {
        Some("its data is damaged")
    } else {
        None
    };
    let said = data(block, "data");
    match why {
        Some(why) => (format!("[image: {said}; {why}]"), None),
        None => {
            let image = ImageContent {
                media_type: kind.to_owned(),
                data: bytes.to_owned(),
            };
            (format!("[image: {said}]"), Some(image))
        }
    }
}

/// A resource that is named and not included.
fn link(block: &Value) -> String {
    let mut said = format!("[link: {}", word(block, "uri"));
    for (key, before) in [("name", ", "), ("mimeType", ", "), ("description", ": ")] {
        let word = word(block, key);
        if !word.is_empty() {
            let _ = write!(said, "{before}{word}");
        }
    }
    said.push(']');
    said
}

/// A resource that is included.
fn resource(resource: &Value) -> String {
    let uri = word(resource, "uri");
    match resource.get("text").and_then(Value::as_str) {
        Some(text) => format!("[resource {uri}]\n{text}"),
        None => format!(
            "[resource {uri}: {}; its data is not passed to the model]",
            data(resource, "blob")
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn summary(result: Value) -> String {
        rendered(&result, false).output.summary
    }

    /// Proves MCP-2.
    #[test]
    fn every_kind_of_content_is_rendered() {
        let result = json!({"content": [
            {"type": "text", "text": "one\n"},
            {"type": "image", "mimeType": "image/png", "data": "AAECAw=="},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAEC"},
            {"type": "resource_link", "uri": "file:///a", "name": "a\u{200b}", "mimeType": "text/plain", "description": "An a."},
            {"type": "resource_link", "uri": "file:///b"},
            {"type": "resource", "resource": {"uri": "file:///c", "text": "in c"}},
            {"type": "resource", "resource": {"uri": "file:///d", "mimeType": "x/y", "blob": "AAECAw=="}},
            {"type": "hologram", "x": 1},
        ]});
        let expect = "one\n\n[image: image/png, 4 bytes; the current model does not accept \
            images]\n\
            [audio: audio/wav, 3 bytes; audio is not passed to the model]\n[link: file:///a, a, text/plain: An a.]\n\
            [link: file:///b]\n[resource file:///c]\nin c\n\
            [resource file:///d: x/y, 4 bytes; its data is not passed to the model]\n\
            [content of an unknown type: {\"type\":\"hologram\",\"x\":1}]";
        assert_eq!(summary(result), expect);
        for nothing in [
            json!({}),
            json!({"content": []}),
            json!({"content": [{"type": "text", "text": " "}]}),
        ] {
            assert_eq!(summary(nothing), "[the tool returned no content]");
        }
    }

    /// Proves MCP-2.
    #[test]
    fn structured_content_is_rendered_once() {
        let both = json!({"content": [{"type": "text", "text": "{\"b\": 2, \"a\": 1}"}], "structuredContent": {"a": 1, "b": 2}});
        let found = rendered(&both, false).output;
        assert_eq!(found.summary, "{\"b\": 2, \"a\": 1}");
        assert_eq!(found.raw_response, Some(json!({"a": 1, "b": 2})));
        let other =
            json!({"content": [{"type": "text", "text": "3 rows"}], "structuredContent": {"a": 1}});
        assert_eq!(summary(other), "3 rows\n{\n  \"a\": 1\n}");
        assert_eq!(summary(json!({"structuredContent": [1]})), "[\n  1\n]");
    }

    /// Proves MCP-2.
    #[test]
    fn single_image_is_forwarded() {
        let image =
            |kind: &str, data: &str| json!({"type": "image", "mimeType": kind, "data": data});
        let check = |blocks: Vec<Value>, expect: Option<&str>, said: &str| {
            let found = rendered(&json!({ "content": blocks }), true).output;
            assert_eq!(found.image.map(|image| image.data).as_deref(), expect);
            assert_eq!(found.summary, said);
        };
        check(
            vec![image("image/png", "AAEC")],
            Some("AAEC"),
            "[image: image/png, 3 bytes]",
        );
        check(
            vec![
                image("image/tiff", "AAEC"),
                image("image/gif", "AAED"),
                image("image/gif", "AAEE"),
            ],
            Some("AAED"),
            "[image: image/tiff, 3 bytes; models do not accept this image type]\n[image: \
             image/gif, 3 bytes]\n\
             [image: image/gif, 3 bytes; only one image of a result is passed to the model]",
        );
        check(
            vec![image("image/png", "!")],
            None,
            "[image: image/png, 0 bytes; its data is damaged]",
        );
        let large = "A".repeat(7 << 20);
        check(
            vec![image("image/png", &large)],
            None,
            "[image: image/png, 5505024 bytes; it is too large]",
        );
    }

    /// Proves MCP-2.
    #[test]
    fn tool_failure_is_detected() {
        let failed = |said: Value| rendered(&json!({ "isError": said }), false).failed;
        assert!(failed(json!(true)));
        assert!(!failed(json!(false)) && !failed(json!("true")) && !failed(Value::Null));
    }
}
