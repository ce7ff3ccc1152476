//! YAML front matter as JSON values. The text is untrusted, so every construct that can refer to another part
//! of the text is refused: anchors, aliases, merge keys and tags. Duplicate keys and deep nesting are refused too.

use std::borrow::Cow;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput};
use serde_json::{Map, Value};

/// The maximum nesting of mappings and sequences.
const MAX_DEPTH: usize = 8;

/// The first characters of a value that YAML does not read as plain text.
const QUOTES_AND_INDICATORS: [char; 11] = ['"', '\'', '|', '>', '[', '{', '&', '*', '!', '#', '-'];

/// A construct that is invalid or refused, and its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
#[non_exhaustive]
pub struct YamlError {
    /// The line of the text, from 1.
    pub line: usize,
    /// The construct and how to fix it.
    pub what: String,
}

impl YamlError {
    fn new(at: Marker, what: impl Into<String>) -> Self {
        Self {
            line: at.line(),
            what: what.into(),
        }
    }
}

impl From<ScanError> for YamlError {
    fn from(error: ScanError) -> Self {
        let what = format!(
            "{} (quote a text that contains `: ` or ` #`, or that begins with one of `*&!@%[{{`)",
            error.info()
        );
        Self::new(*error.marker(), what)
    }
}

/// Parses one document. A text without content is an empty mapping.
///
/// YAML refuses `: ` in an unquoted text, but skills of other programs often have it (`description: Use when: asked`).
/// A value of a top-level key on one line may contain it here.
///
/// # Errors
/// [`YamlError`] for invalid YAML and for refused constructs.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    let text = quote_colons(text);
    let mut reader = Reader(Parser::new_from_str(&text));
    let mut document = None;
    loop {
        match reader.event()? {
            (Event::StreamStart | Event::DocumentEnd, _) => {}
            (Event::StreamEnd, _) => {
                return Ok(document.unwrap_or_else(|| Value::Object(Map::new())));
            }
            (Event::DocumentStart(explicit), at) if explicit || document.is_some() => {
                return Err(YamlError::new(
                    at,
                    "document markers are not allowed: write one mapping",
                ));
            }
            (Event::DocumentStart(_), _) => {
                let first = reader.event()?;
                document = Some(reader.value(first, 0)?);
            }
            (_, at) => return Err(YamlError::new(at, "content outside of the document")),
        }
    }
}

/// Quotes the unquoted values of top-level keys that contain `: ` or end with `:`. The lines keep their numbers.
fn quote_colons(text: &str) -> Cow<'_, str> {
    if !text.lines().any(|line| colon_value(line).is_some()) {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n').map(|line| {
        let content = line.trim_end_matches('\n');
        let end = &line[content.len()..];
        match colon_value(content) {
            Some((key, value)) => format!("{key}: '{}'{end}", value.replace('\'', "''")),
            None => line.to_owned(),
        }
    });
    Cow::Owned(lines.collect())
}

/// The key and the value of a line `key: value` at column 0 if YAML would take the value for another mapping.
fn colon_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(": ")?;
    let is_key = key.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && !key.contains([' ', '\t', '#', ':']);
    let value = value.trim();
    // A comment is not a part of the value.
    let value = value.find(" #").map_or(value, |at| value[..at].trim_end());
    let is_plain = !value.is_empty() && !value.starts_with(QUOTES_AND_INDICATORS);
    let has_colon = value.contains(": ") || value.ends_with(':');
    (is_key && is_plain && has_colon).then_some((key, value))
}

struct Reader<'t>(Parser<'t, StrInput<'t>>);

impl<'t> Reader<'t> {
    fn event(&mut self) -> Result<(Event<'t>, Marker), YamlError> {
        match self.0.next_event() {
            Some(event) => event
                .map(|(event, span)| (event, span.start))
                .map_err(YamlError::from),
            None => Ok((Event::StreamEnd, Marker::default())),
        }
    }

    /// Builds the value that begins with `event`, inside of `depth` collections.
    fn value(
        &mut self,
        (event, at): (Event<'t>, Marker),
        depth: usize,
    ) -> Result<Value, YamlError> {
        if let Event::Scalar(_, _, anchor, tag) = &event {
            refuse_references(at, *anchor, tag.is_some())?;
        }
        if let Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) = &event {
            refuse_references(at, *anchor, tag.is_some())?;
            if depth == MAX_DEPTH {
                return Err(YamlError::new(
                    at,
                    format!("more than {MAX_DEPTH} levels of nesting"),
                ));
            }
        }
        match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => Ok(plain_scalar(&text)),
            Event::Scalar(text, ..) => Ok(Value::String(text.into_owned())),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.event()? {
                        (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                        item => items.push(self.value(item, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => self.mapping(depth),
            // An alias without its anchor is an error of the parser.
            _ => Err(YamlError::new(at, "a value is missing")),
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut map = Map::new();
        loop {
            let (event, at) = self.event()?;
            let key = match event {
                Event::MappingEnd => return Ok(Value::Object(map)),
                Event::Scalar(key, style, anchor, tag) => {
                    refuse_references(at, anchor, tag.is_some())?;
                    if style == ScalarStyle::Plain && key == "<<" {
                        return Err(YamlError::new(
                            at,
                            "merge keys are not allowed: repeat the keys",
                        ));
                    }
                    key.into_owned()
                }
                _ => {
                    return Err(YamlError::new(
                        at,
                        "a key is not a text: write `key: value`",
                    ));
                }
            };
            if map.contains_key(&key) {
                return Err(YamlError::new(
                    at,
                    format!("duplicate key `{key}`: remove one of them"),
                ));
            }
            let value = self.event()?;
            let value = self.value(value, depth + 1)?;
            map.insert(key, value);
        }
    }
}

/// Refuses anchors and tags. The parser numbers anchors from 1; 0 means no anchor.
fn refuse_references(at: Marker, anchor: usize, has_tag: bool) -> Result<(), YamlError> {
    match (anchor, has_tag) {
        (0, false) => Ok(()),
        (0, true) => Err(YamlError::new(
            at,
            "tags are not allowed: quote a text that begins with `!`",
        )),
        _ => Err(YamlError::new(
            at,
            "anchors are not allowed: quote a text that begins with `&`",
        )),
    }
}

/// Resolves a plain scalar: null and booleans of the core schema of YAML 1.2, numbers of its JSON schema
/// (so `0755` and `0x1f` remain texts).
fn plain_scalar(text: &str) -> Value {
    match text {
        "" | "~" | "Null" | "NULL" => Value::Null,
        "True" | "TRUE" => Value::Bool(true),
        "False" | "FALSE" => Value::Bool(false),
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests;
