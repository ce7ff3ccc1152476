//! Secrets with known values: the keys of providers, and variables that are hidden from commands. A value is found
//! unchanged, in base64, in hexadecimal, percent-encoded, escaped in JSON, and split by line breaks.

use aho_corasick::{AhoCorasick, MatchKind};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::value::{is_placeholder, is_wordy, variety};

/// The minimum length of a value in bytes.
const MIN_VALUE_BYTES: usize = 8;
/// The minimum length in bytes of a value that is also searched in base64 and hexadecimal.
const MIN_ENCODED_BYTES: usize = 12;

/// The number of JSON texts that can be strings of each other, such that a value in the innermost one is found.
const MAX_JSON_DEPTH: usize = 4;

/// Finds values in their original and encoded forms.
#[derive(Debug, Default)]
pub(super) struct Known {
    automaton: Option<AhoCorasick>,
    forms: Vec<String>,
}

impl Known {
    /// Builds the search for `keys` and `values`. Short values are ignored. Of `values`, words, paths and numbers are
    /// ignored as well.
    pub(super) fn new(keys: &[String], values: &[String]) -> Self {
        let values = values.iter().filter(|value| is_unlike_others(value));
        Self::of_forms(forms(keys.iter().chain(values)))
    }

    /// Builds the search with more values.
    pub(super) fn with(self: &Arc<Self>, values: &[String]) -> Arc<Self> {
        let values = values.iter().filter(|value| is_unlike_others(value));
        let mut new = forms(values);
        new.retain(|form| !self.forms.contains(form));
        if new.is_empty() {
            return Arc::clone(self);
        }
        new.extend_from_slice(&self.forms);
        Arc::new(Self::of_forms(new))
    }

    fn of_forms(mut forms: Vec<String>) -> Self {
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms)
            .ok()
            .filter(|_| !forms.is_empty());
        Self { automaton, forms }
    }

    /// The ranges of all values in a text, in order and without overlap. Values may contain line breaks.
    pub(super) fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let Some(automaton) = &self.automaton else {
            return Vec::new();
        };
        let plain = automaton.find_iter(text).map(|found| found.range());
        let mut ranges: Vec<_> = plain.collect();
        if text.contains(['\n', '\\']) {
            let joined = Joined::new(text);
            let split = automaton.find_iter(&joined.text);
            ranges.extend(split.map(|found| joined.place(found.range())));
            merge(&mut ranges);
        }
        ranges
    }

    /// The range of the first value at or after `from`.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        let found = self.automaton.as_ref()?.find(&text[from..])?;
        Some(from + found.start()..from + found.end())
    }

    /// The number of bytes at the end of `text` with which a value may begin.
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

/// The forms in which the values are searched.
fn forms<'v>(values: impl Iterator<Item = &'v String>) -> Vec<String> {
    let values = values.map(|value| value.trim());
    let long = values.filter(|value| value.len() >= MIN_VALUE_BYTES && variety(value) >= 3);
    long.flat_map(forms_of).collect()
}

/// Sorts ranges, and merges those that overlap.
fn merge(ranges: &mut Vec<Range<usize>>) {
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let overlaps = next.start < last.end;
        if overlaps {
            last.end = last.end.max(next.end);
        }
        overlaps
    });
}

/// A line break, with backslashes before it and indentation after it. Two other forms count as well: `\n` in a string,
/// and an escaped space, which replaces a line break in a pattern.
static LINE_BREAK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:\\*\r?\n|\\+(?:r\\+)?n|\\+ )[ \t]*").ok());

/// A text without its line breaks.
struct Joined {
    text: String,
    /// The start of each run of `text`, and its position in the original.
    runs: Vec<(usize, usize)>,
}

impl Joined {
    fn new(text: &str) -> Self {
        let mut joined = Self {
            text: String::with_capacity(text.len()),
            runs: Vec::new(),
        };
        let mut at = 0;
        for found in LINE_BREAK.iter().flat_map(|regex| regex.find_iter(text)) {
            joined.add(&text[at..found.start()], at);
            at = found.end();
        }
        joined.add(&text[at..], at);
        joined
    }

    fn add(&mut self, run: &str, place: usize) {
        if !run.is_empty() {
            self.runs.push((self.text.len(), place));
            self.text.push_str(run);
        }
    }

    /// The original range of a range in `text`.
    fn place(&self, range: Range<usize>) -> Range<usize> {
        let original = |at: usize| {
            let run = self.runs.partition_point(|(start, _)| *start <= at);
            let (start, place) = self
                .runs
                .get(run.saturating_sub(1))
                .copied()
                .unwrap_or_default();
            place + (at - start)
        };
        original(range.start)..original(range.end.saturating_sub(1)) + 1
    }
}

/// Whether an environment value is not a word, path or number that also occurs in other contexts.
fn is_unlike_others(value: &str) -> bool {
    let value = value.trim();
    !(is_wordy(value)
        || is_placeholder(value)
        || value.starts_with(['/', '~', '.', '$'])
        || value.contains(char::is_whitespace)
        || (value.contains("://") && !value.contains('@'))
        || value.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A value and its encoded forms.
fn forms_of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let (mut upper, mut lower) = (String::new(), String::new());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            upper.push(char::from(byte));
            lower.push(char::from(byte));
        } else {
            let _ = write!(upper, "%{byte:02X}");
            let _ = write!(lower, "%{byte:02x}");
        }
    }
    let mut nested = Vec::new();
    let mut json = value.to_owned();
    for _ in 0..MAX_JSON_DEPTH {
        json = json.replace('\\', "\\\\").replace('"', "\\\"");
        nested.extend([json.clone(), json.replace('/', "\\/")]);
    }
    for form in [upper, lower].into_iter().chain(nested) {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    if value.len() >= MIN_ENCODED_BYTES {
        let (mut upper, mut lower) = (String::new(), String::new());
        for byte in value.bytes() {
            let _ = write!(upper, "{byte:02X}");
            let _ = write!(lower, "{byte:02x}");
        }
        forms.extend([upper, lower]);
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

/// The base64 characters (RFC 4648) that depend on `bytes` alone, if `lead` other bytes precede them in the text.
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
    fn encoded_values_are_found_at_any_position() {
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

    /// Proves OUT-21.
    #[test]
    fn every_form_of_a_value_has_its_range() {
        let known = known(&["p+4/kqaZt7x911x"], &[]);
        let check = |text: &str, expect: &[&str]| {
            let found = known.ranges(text).into_iter().map(|range| &text[range]);
            assert_eq!(found.collect::<Vec<_>>(), expect, "{text:?}");
        };
        check("no value", &[]);
        check("a p+4/kqaZt7x911x b", &["p+4/kqaZt7x911x"]);
        check("p+4/kqaZt7x911xp+4/kqaZt7x911x", &["p+4/kqaZt7x911x"; 2]);
        check("p%2b4%2fkqaZt7x911x", &["p%2b4%2fkqaZt7x911x"]);
        check("p%2B4%2FkqaZt7x911x", &["p%2B4%2FkqaZt7x911x"]);
        check("p+4\\/kqaZt7x911x", &["p+4\\/kqaZt7x911x"]);
        check(
            "702b342f6b71615a743778393131780a",
            &["702b342f6b71615a74377839313178"],
        );
        check(
            "702B342F6B71615A74377839313178",
            &["702B342F6B71615A74377839313178"],
        );
        check("x p+4/kqa\nZt7x911x y", &["p+4/kqa\nZt7x911x"]);
        check("p+4/\r\n  kqaZt7\n\tx911x", &["p+4/\r\n  kqaZt7\n\tx911x"]);
        check("p+4/kqa\\\nZt7x911x", &["p+4/kqa\\\nZt7x911x"]);
        check("a\np+4/kqaZt7x911x\nb", &["p+4/kqaZt7x911x"]);
        check(r"p+4/kqa\nZt7x911x", &[r"p+4/kqa\nZt7x911x"]);
        check(r"p+4/kqa\\\r\n  Zt7x911x", &[r"p+4/kqa\\\r\n  Zt7x911x"]);
        check("p+4/kqa Zt7x911x", &[]);
        let encoded = base64(b"key: p+4/kqaZt7x911x;", 0, STANDARD);
        let wrapped = format!("{}\n{}\n", &encoded[..10], &encoded[10..]);
        assert_eq!(known.ranges(&wrapped).len(), 1, "{wrapped}");
    }

    #[test]
    fn base64_matches_the_specification() {
        // RFC 4648, section 10, without the padding and the character before it.
        assert_eq!(base64(b"foobar", 0, STANDARD), "Zm9vYmFy");
        assert_eq!(base64(b"fooba", 0, STANDARD), "Zm9vYm");
        assert_eq!(base64(b"\xff\xef", 0, URL_SAFE), "_-");
        assert_eq!(base64(b"bar", 3, STANDARD), "YmFy");
    }

    #[test]
    fn short_or_common_values_are_not_searched() {
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
    fn prefix_of_a_value_is_detected() {
        let known = known(&["k3Vq9Zt1"], &[]);
        let check = |text, expect| assert_eq!(known.begun(text), expect, "{text}");
        check("abc", 0);
        check("abck", 1);
        check("abck3Vq9Zt", 7);
        check("k3Vq9Zt1", 0);
        check("", 0);
    }
}
