//! Tolerant parsing of non-essential parts of a response: token counts, broken escapes.
//!
//! A server with wrong counts still responds. Its text must not be lost, and its figures must not stop the session.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The highest token count that one response can have. A higher one is a server's error.
const MAX_TOKENS: u64 = 100_000_000;

/// Reads a value of any shape; `None` if it is not a `T`.
///
/// # Errors
/// Invalid JSON only.
pub(crate) fn optional<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// Reads a token count; `None` for a negative, fractional or absurd one, and for other types.
///
/// # Errors
/// Invalid JSON only.
pub(crate) fn token_count<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let count = match &value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    Ok(count.filter(|count| *count <= MAX_TOKENS))
}

/// A float without a fraction as a count: some servers write `12.0`.
fn whole(float: f64) -> Option<u64> {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked first"
    )]
    (float.fract() == 0.0 && (0.0..=1e15).contains(&float)).then_some(float as u64)
}

/// JSON text with every `\u` escape of a lone surrogate replaced by `\ufffd`.
///
/// RFC 8259, section 8.2, does not define such escapes; servers produce them by splitting a pair when they count
/// UTF-16 units. The length stays the same.
pub(crate) fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let bytes = json.as_bytes();
    let mut repaired = String::with_capacity(json.len());
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        let low = |unit: u16| (0xDC00..0xE000).contains(&unit);
        at += match (escaped_unit(bytes, at), escaped_unit(bytes, at + 6)) {
            (Some(0xD800..0xDC00), Some(second)) if low(second) => 12,
            (Some(0xD800..0xE000), _) => {
                repaired.push_str(&json[copied..at]);
                repaired.push_str("\\ufffd");
                copied = at + 6;
                6
            }
            (Some(_), _) => 6,
            // Another escape: the character after the backslash belongs to it.
            (None, _) => 2,
        };
    }
    repaired.push_str(&json[copied..]);
    Cow::Owned(repaired)
}

/// The UTF-16 unit of the `\uXXXX` escape at `at`.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_count_of_any_shape_is_a_count_or_nothing() {
        #[derive(Deserialize)]
        struct Counted {
            #[serde(default, deserialize_with = "token_count")]
            count: Option<u64>,
        }
        let check = |json: &str, expect| {
            let text = format!("{{\"count\":{json}}}");
            let counted: Counted = serde_json::from_str(&text).unwrap();
            assert_eq!(counted.count, expect, "{json}");
        };
        check("0", Some(0));
        check("12", Some(12));
        check("12.0", Some(12));
        check("\"12\"", Some(12));
        check("100000000", Some(100_000_000));
        check("100000001", None);
        check("18446744073709551615", None);
        check("99999999999999999999999", None);
        check("1e300", None);
        check("-1", None);
        check("-9223372036854775808", None);
        check("1.5", None);
        check("\"many\"", None);
        check("null", None);
        check("true", None);
        check("[1]", None);
        check("{\"n\":1}", None);
        assert_eq!(serde_json::from_str::<Counted>("{}").unwrap().count, None);
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        let check = |json: &str, expect: &str| {
            let repaired = without_lone_surrogates(json);
            assert_eq!(repaired.len(), json.len(), "{json}");
            let text: String = serde_json::from_str(&repaired).unwrap();
            assert_eq!(text, expect, "{json}");
        };
        check(r#""plain""#, "plain");
        check(r#""\ud83d\ude00""#, "😀");
        check(r#""\uD83D\uDE00 x""#, "😀 x");
        check(r#""\ud83d""#, "\u{FFFD}");
        check(r#""a\ude00b""#, "a\u{FFFD}b");
        check(r#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀");
        check(r#""\ude00\ud83d""#, "\u{FFFD}\u{FFFD}");
        check(r#""\ud83d\u0041""#, "\u{FFFD}A");
        check(r#""\ud83d\n""#, "\u{FFFD}\n");
        // After an escaped backslash, `u` is a letter.
        check(r#""\\ud83d""#, "\\ud83d");
        check(r#""\\\ud83d""#, "\\\u{FFFD}");
        check(r#""é\ud83d é""#, "é\u{FFFD} é");
        check(r#""\"\ud83d\"""#, "\"\u{FFFD}\"");
        for broken in [r#""\ud8"#, r#""\ud83"#, "\\", r#"\ud83d"#, r#""\ud+12""#] {
            assert_eq!(without_lone_surrogates(broken).len(), broken.len());
        }
    }
}
