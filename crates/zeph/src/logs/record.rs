//! A record of the log file: its data without secrets, and its two forms. Pure.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use zeph_tools::hidden::{revealed, revealed_json};
use zeph_tools::secrets::SecurityPatterns;

/// The maximum size of a value in the file.
const MAX_VALUE: usize = 4 * 1024;
/// The maximum size of a value that is searched for secrets. The rest would not be in the file in any case.
const MAX_SEARCHED: usize = 64 * 1024;

/// The fields of a span or of a record, in their order.
pub(super) type Fields = Map<String, Value>;

/// A span around a record.
pub(super) struct SpanData {
    pub(super) name: &'static str,
    pub(super) fields: Fields,
}

/// The data of a record.
pub(super) struct Record {
    /// RFC 3339.
    pub(super) time: String,
    pub(super) level: &'static str,
    pub(super) pid: u32,
    pub(super) target: String,
    pub(super) message: String,
    pub(super) fields: Fields,
    /// From the outside in.
    pub(super) spans: Vec<SpanData>,
}

impl Record {
    /// The line of this record, with its line break.
    pub(super) fn line(self, is_json: bool, secrets: &Arc<SecurityPatterns>) -> String {
        let mut value = self.into_json();
        each_text(&mut value, &mut |text| cut(text, MAX_SEARCHED));
        secrets.redact_json(&mut value);
        each_text(&mut value, &mut |text| cut(text, MAX_VALUE));
        let mut line = match is_json {
            true => revealed_json(&value.to_string()),
            false => text(&value),
        };
        line.push('\n');
        line
    }

    fn into_json(self) -> Value {
        let mut record = json!({
            "time": self.time,
            "level": self.level,
            "pid": self.pid,
            "target": self.target,
            "message": self.message,
        });
        if !self.fields.is_empty() {
            record["fields"] = Value::Object(self.fields);
        }
        if !self.spans.is_empty() {
            let spans = self.spans.into_iter().map(|span| {
                let mut value = json!({ "name": span.name });
                if !span.fields.is_empty() {
                    value["fields"] = Value::Object(span.fields);
                }
                value
            });
            record["spans"] = spans.collect();
        }
        record
    }
}

/// `TIME LEVEL PID TARGET: SPAN{NAME=VALUE}:SPAN: MESSAGE NAME=VALUE`, without control characters.
fn text(record: &Value) -> String {
    let part = |name: &str| one_line(record[name].as_str().unwrap_or_default());
    let mut line = format!(
        "{} {:>5} {} {}: ",
        part("time"),
        part("level"),
        record["pid"],
        part("target"),
    );
    for span in record["spans"].as_array().into_iter().flatten() {
        let _ = write!(line, "{}", span["name"].as_str().unwrap_or_default());
        let fields = span["fields"].as_object().into_iter().flatten();
        let fields: Vec<String> = fields.map(|(name, value)| field(name, value)).collect();
        if !fields.is_empty() {
            let _ = write!(line, "{{{}}}", fields.join(" "));
        }
        line.push_str(": ");
    }
    line.push_str(&part("message"));
    for (name, value) in record["fields"].as_object().into_iter().flatten() {
        line.push(' ');
        line.push_str(&field(name, value));
    }
    line
}

/// `name=value`; a text that contains more than a word is quoted.
fn field(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) if is_word(text) => format!("{name}={text}"),
        value => format!("{name}={}", one_line(&value.to_string())),
    }
}

fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"\\={}".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

/// The text on one line: control and invisible characters as escapes.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    revealed(&line)
}

/// Applies `change` to every text in `value`.
fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|item| each_text(item, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Omits the bytes after `max`.
fn cut(text: &mut String, max: usize) {
    if text.len() <= max {
        return;
    }
    let end = text.floor_char_boundary(max);
    let omitted = text.len() - end;
    text.truncate(end);
    let _ = write!(text, "… [{omitted} bytes omitted]");
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeph_tools::secrets::{KnownSecrets, SecurityConfig};

    fn record(message: &str, fields: Value) -> Record {
        let Value::Object(fields) = fields else {
            panic!("not an object");
        };
        let mut turn = Fields::new();
        turn.insert("session".to_owned(), "s1".into());
        Record {
            time: "2026-01-02T03:04:05Z".to_owned(),
            level: "WARN",
            pid: 7,
            target: "zeph_core::agent".to_owned(),
            message: message.to_owned(),
            fields,
            spans: vec![SpanData {
                name: "turn",
                fields: turn,
            }],
        }
    }

    fn plain(record: Record) -> String {
        record.line(false, &Arc::default())
    }

    /// Proves OPS-4.
    #[test]
    fn text_and_json_have_the_same_data() {
        let fields = || json!({ "tool": "bash", "rate": 0.5, "why": "two words" });
        assert_eq!(
            plain(record("it fails", fields())),
            "2026-01-02T03:04:05Z  WARN 7 zeph_core::agent: turn{session=s1}: it fails tool=bash rate=0.5 why=\"two words\"\n"
        );
        let line = record("it fails", fields()).line(true, &Arc::default());
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["message"], "it fails");
        assert_eq!(value["fields"], fields());
        let span = json!({ "name": "turn", "fields": { "session": "s1" } });
        assert_eq!(value["spans"], json!([span]));
    }

    /// Proves OPS-4: a field of a span does not replace the name of the span.
    #[test]
    fn field_called_name_is_next_to_the_name_of_its_span() {
        let named = || {
            let mut record = record("it fails", json!({ "name": "inner" }));
            record.spans[0].fields.insert("name".to_owned(), "x".into());
            record
        };
        let line = plain(named());
        assert!(
            line.ends_with(": turn{session=s1 name=x}: it fails name=inner\n"),
            "{line}"
        );
        let line = named().line(true, &Arc::default());
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["spans"][0]["name"], "turn");
        assert_eq!(value["spans"][0]["fields"]["name"], "x");
    }

    /// Proves OPS-4: no value begins a new line or steers a terminal.
    #[test]
    fn value_cannot_forge_a_line() {
        let forged =
            "a\n2026-01-02T03:04:05Z ERROR 7 zeph: forged\r\u{1b}[2J\u{2028}\u{202e}\u{85}";
        for is_json in [false, true] {
            let record = record(forged, json!({ "error": forged }));
            let line = record.line(is_json, &Arc::default());
            assert_eq!(line.lines().count(), 1, "{line:?}");
            let body = line.strip_suffix('\n').unwrap();
            assert!(!body.contains(|c: char| c.is_control() || c == '\u{202e}'));
        }
    }

    /// Proves OPS-4: a known value is found also in JSON, where characters of it are escaped.
    #[test]
    fn secret_is_not_in_the_line() {
        let key = "pass\"word\\0123456789";
        let known = KnownSecrets {
            keys: vec![key.to_owned()],
            likely: Vec::new(),
        };
        let (secrets, _) = SecurityPatterns::new(&SecurityConfig::default(), &known);
        let secrets = Arc::new(secrets);
        for is_json in [false, true] {
            let long = format!("{}{key}", "y ".repeat(MAX_VALUE / 2 - 4));
            let fields = json!({ "url": format!("https://h/?k={key}"), "long": long });
            let line = record(&format!("refused: {key}"), fields).line(is_json, &secrets);
            for part in [key, "word\\", "0123456789", "pass\\\"", "pass\""] {
                assert!(!line.contains(part), "{part}: {line}");
            }
        }
    }

    /// Proves OPS-4: a secret is not in the line, also within JSON that is a string of other JSON.
    #[test]
    fn secret_in_nested_json_is_not_in_the_line() {
        let key = "pass\"word\\0123456789";
        let known = KnownSecrets {
            keys: vec![key.to_owned()],
            likely: Vec::new(),
        };
        let (secrets, _) = SecurityPatterns::new(&SecurityConfig::default(), &known);
        let secrets = Arc::new(secrets);
        let unknown = "hT7kQ2vX9mZ4bN6w";
        let mut body = json!({ "key": key, "api_key": unknown }).to_string();
        for depth in 1..=3 {
            for is_json in [false, true] {
                let line = record(&body, json!({ "body": body })).line(is_json, &secrets);
                for part in ["0123456789", "pass\\", "word\\", unknown] {
                    assert!(!line.contains(part), "{part} at depth {depth}: {line}");
                }
            }
            body = json!({ "body": body }).to_string();
        }
    }

    #[test]
    fn long_value_is_cut() {
        let line = plain(record(&"é".repeat(MAX_VALUE), json!({})));
        assert!(line.len() < MAX_VALUE + 200, "{}", line.len());
        assert!(line.contains("4096 bytes omitted"), "{line}");
    }
}
