//! The kind of a body, by its type, and its text, by its charset.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use memchr::memmem;

/// The number of bytes at the start of a page that may contain a `<meta>` with the charset.
const META_WITHIN: usize = 1024;

/// The kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// A page.
    Html,
    /// Text that is returned unchanged.
    Text,
    /// Anything else.
    Other,
}

/// Returns the kind of a body by its header, or by its first bytes if the header is missing.
#[must_use]
pub fn kind(content_type: &str, body: &[u8]) -> BodyKind {
    let essence = essence(content_type);
    match essence.as_str() {
        "" => sniff(body),
        "text/html" | "application/xhtml+xml" => BodyKind::Html,
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/ecmascript"
        | "application/x-javascript"
        | "application/ndjson"
        | "application/x-ndjson"
        | "application/jsonl"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/sql"
        | "application/x-sh"
        | "application/graphql" => BodyKind::Text,
        other
            if other.starts_with("text/")
                || other.ends_with("+json")
                || other.ends_with("+xml")
                || other.ends_with("+yaml") =>
        {
            BodyKind::Text
        }
        _ => BodyKind::Other,
    }
}

/// Returns the media type without parameters: `text/html` for `Text/HTML; charset=utf-8`.
#[must_use]
pub fn essence(content_type: &str) -> String {
    let end = content_type.find([';', ',']).unwrap_or(content_type.len());
    content_type[..end].trim().to_ascii_lowercase()
}

fn sniff(body: &[u8]) -> BodyKind {
    let head = &body[..body.len().min(META_WITHIN)];
    let head = String::from_utf8_lossy(head).to_lowercase();
    let head = head.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let tags = ["<!doctype html", "<html", "<head", "<body", "<title"];
    if tags.iter().any(|tag| head.starts_with(tag)) {
        BodyKind::Html
    } else if head.contains('\0') || head.contains('\u{fffd}') {
        BodyKind::Other
    } else {
        BodyKind::Text
    }
}

/// Decodes a body. The charset is that of the byte order mark, or of the header, or, for a page, of `<meta>`.
/// Otherwise it is UTF-8, or Windows-1252 for a page that is not UTF-8. Control characters other than tab and
/// line feed are removed.
#[must_use]
pub fn decode(body: &[u8], content_type: &str, kind: BodyKind, cut: bool) -> String {
    let (encoding, mark) = match Encoding::for_bom(body) {
        Some((encoding, length)) => (encoding, length),
        None => (named(body, content_type, kind, cut), 0),
    };
    let body = &body[mark..];
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length(body.len());
    let mut text = String::with_capacity(room.unwrap_or_default());
    // An incomplete character at a cut is not an error: the decoder then expects more input.
    let _ = decoder.decode_to_string(body, &mut text, !cut);
    clean(text)
}

fn named(body: &[u8], content_type: &str, kind: BodyKind, cut: bool) -> &'static Encoding {
    let header = parameter(content_type).and_then(label);
    let meta = || (kind == BodyKind::Html).then(|| meta(body)).flatten();
    header.or_else(meta).unwrap_or_else(|| {
        // The cut may be inside the last character.
        let is_utf8 = match std::str::from_utf8(body) {
            Ok(_) => true,
            Err(error) => cut && error.error_len().is_none(),
        };
        if is_utf8 || kind != BodyKind::Html {
            UTF_8
        } else {
            WINDOWS_1252
        }
    })
}

fn label(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label.as_bytes())
}

/// Returns the value of `charset` in a header.
fn parameter(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// Returns the charset of a `<meta>` near the start: `<meta charset="…">` or `<meta http-equiv="Content-Type"
/// content="…; charset=…">`.
fn meta(body: &[u8]) -> Option<&'static Encoding> {
    let head = body[..body.len().min(META_WITHIN)].to_ascii_lowercase();
    let mut at = 0;
    while let Some(found) = memmem::find(&head[at..], b"<") {
        at += found;
        let rest = &head[at..];
        if rest.starts_with(b"<!--") {
            at += memmem::find(rest, b"-->")?;
            continue;
        }
        at += 1;
        if !rest.starts_with(b"<meta") {
            continue;
        }
        let tag = &rest[..memmem::find(rest, b">").unwrap_or(rest.len())];
        if let Some(encoding) = charset(tag).and_then(label) {
            // A page with a `<meta>` that is readable as ASCII cannot be UTF-16.
            let wide = encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE;
            return Some(if wide { UTF_8 } else { encoding });
        }
    }
    None
}

/// Returns the value of `charset=` in a tag.
fn charset(tag: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(tag).ok()?;
    let after = &text[text.find("charset")? + "charset".len()..];
    let value = after.trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(['"', '\'', ' ', ';', '/', '\t', '\n', '\r']);
    Some(&value[..end.unwrap_or(value.len())])
}

/// Removes control characters and converts line ends to line feeds.
fn clean(text: String) -> String {
    if !text.contains(is_control) {
        return text;
    }
    let mut text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.retain(|c| !is_control(c));
    text
}

fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}
