//! Secrets whose values are known: those of provider keys, and of variables that commands do not
//! see.

use aho_corasick::{AhoCorasick, MatchKind};
use std::fmt::Write as _;
use std::ops::Range;

use super::value::{is_placeholder, is_wordy, variety};

/// The fewest bytes of a value.
const SHORTEST: usize = 8;
/// The fewest bytes of a value whose base64 is looked for.
const SHORTEST_ENCODED: usize = 12;

/// Finds values as they are, in base64 and percent-encoded.
#[derive(Debug, Default)]
pub(super) struct Known {
    automaton: Option<AhoCorasick>,
    forms: Vec<String>,
}

impl Known {
    /// Looks for `values`. Those that are too short, or words that stand in many texts, are left
    /// out; `keys` are looked for unless they are too short.
    pub(super) fn new(keys: &[String], values: &[String]) -> Self {
        let values = values.iter().filter(|value| is_unlike_others(value));
        let mut forms: Vec<String> = Vec::new();
        for value in keys.iter().chain(values) {
            let value = value.trim();
            if value.len() >= SHORTEST && variety(value) >= 3 {
                forms.extend(forms_of(value));
            }
        }
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms)
            .ok()
            .filter(|_| !forms.is_empty());
        Self { automaton, forms }
    }

    /// Where the first value behind a place is.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        let found = self.automaton.as_ref()?.find(&text[from..])?;
        Some(from + found.start()..from + found.end())
    }

    /// Bytes at the end of `text` with which a value may begin.
    pub(super) fn begun(&self, text: &str) -> usize {
        let most = self
            .forms
            .iter()
            .map(|form| form.len() - 1)
            .max()
            .unwrap_or_default();
        let bytes = text.as_bytes();
        let begins = |length: usize| {
            let end = &bytes[bytes.len() - length..];
            self.forms
                .iter()
                .any(|form| form.len() > length && form.as_bytes().starts_with(end))
        };
        (1..=most.min(bytes.len()))
            .rev()
            .find(|length| begins(*length))
            .unwrap_or_default()
    }
}

/// Whether a value of the environment is no word, path or number that occurs without being secret.
fn is_unlike_others(value: &str) -> bool {
    let value = value.trim();
    !(is_wordy(value)
        || is_placeholder(value)
        || value.starts_with(['/', '~', '.', '$'])
        || value.contains(char::is_whitespace)
        || (value.contains("://") && !value.contains('@'))
        || value.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A value and what it becomes when it is encoded.
fn forms_of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let mut percent = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            percent.push(char::from(byte));
        } else {
            let _ = write!(percent, "%{byte:02X}");
        }
    }
    if percent != value {
        forms.push(percent);
    }
    let json = value.replace('\\', "\\\\").replace('"', "\\\"");
    if json != value {
        forms.push(json);
    }
    if value.len() >= SHORTEST_ENCODED {
        for lead in 0..3 {
            for alphabet in [STANDARD, URL_SAFE] {
                forms.push(base64(value.as_bytes(), lead, alphabet));
            }
        }
    }
    forms
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Those characters of the base64 (RFC 4648) of a text in which `bytes` stand behind `lead` others
/// that depend on `bytes` alone.
fn base64(bytes: &[u8], lead: usize, alphabet: &[u8; 64]) -> String {
    let first = (8 * lead).div_ceil(6);
    let last = (8 * (lead + bytes.len())) / 6;
    let bit = |at: usize| {
        let byte = bytes
            .get((at / 8).wrapping_sub(lead))
            .copied()
            .unwrap_or_default();
        usize::from(byte >> (7 - at % 8) & 1)
    };
    (first..last)
        .map(|place| (0..6).fold(0, |sextet, offset| sextet << 1 | bit(6 * place + offset)))
        .map(|sextet| char::from(alphabet[sextet]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(keys: &[&str], values: &[&str]) -> Known {
        let owned = |list: &[&str]| {
            list.iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        Known::new(&owned(keys), &owned(values))
    }

    /// Proves OUT-21.
    #[test]
    fn encoded_values_are_found_wherever_they_stand() {
        let key = "p+4/ä\"kq-Zt7-911x";
        let known = known(&[key], &[]);
        for lead in ["", "x", "xy", "user:", "12345"] {
            let text = format!("{lead}{key}: more");
            let encoded = base64(text.as_bytes(), 0, STANDARD);
            let found = known.find(encoded.as_bytes(), 0);
            assert!(
                found.is_some_and(|range| range.len() >= key.len()),
                "{lead}"
            );
        }
        for text in [
            format!("a {key} b"),
            "p%2B4%2F%C3%A4%22kq-Zt7-911x".to_owned(),
            "p+4/ä\\\"kq-Zt7-911x".to_owned(),
        ] {
            assert!(known.find(text.as_bytes(), 0).is_some(), "{text}");
        }
        assert_eq!(known.find("p+4/ä\"kq-Zt7".as_bytes(), 0), None);
    }

    #[test]
    fn base64_is_that_of_the_specification() {
        // RFC 4648, section 10, without the padding and what depends on it.
        assert_eq!(base64(b"foobar", 0, STANDARD), "Zm9vYmFy");
        assert_eq!(base64(b"fooba", 0, STANDARD), "Zm9vYm");
        assert_eq!(base64(b"\xff\xef", 0, URL_SAFE), "_-");
        assert_eq!(base64(b"bar", 3, STANDARD), "YmFy");
    }

    #[test]
    fn what_is_short_or_common_is_not_looked_for() {
        let check = |keys: &[&str], values: &[&str], expect: usize| {
            assert_eq!(
                known(keys, values).forms.len(),
                expect,
                "{keys:?} {values:?}"
            )
        };
        check(&["1234567"], &[], 0);
        check(&["12345678"], &[], 1);
        check(&["aaaaaaaaaa"], &[], 0);
        check(
            &[],
            &[
                "development",
                "/run/secrets/x1",
                "12345678",
                "http://localhost:8080/a",
                "q9x",
            ],
            0,
        );
        check(&[], &["k3Vq9Zt1"], 1);
        check(&["k3Vq9Zt1", "k3Vq9Zt1"], &["k3Vq9Zt1"], 1);
    }

    #[test]
    fn what_may_be_the_beginning_of_a_value_is_told() {
        let known = known(&["k3Vq9Zt1"], &[]);
        let check = |text, expect| assert_eq!(known.begun(text), expect, "{text}");
        check("abc", 0);
        check("abck", 1);
        check("abck3Vq9Zt", 7);
        check("k3Vq9Zt1", 0);
        check("", 0);
    }
}
