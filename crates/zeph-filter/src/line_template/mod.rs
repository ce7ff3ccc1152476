//! The shape of a line: its text with what differs from line to line masked.
//!
//! Words without digits count as they are. A word with a digit or a path is inspected: timestamps, UUIDs, hexadecimal
//! ids and durations are masked always, numbers and paths with [`Mask::Shape`] only.

mod time;

use std::hash::{DefaultHasher, Hasher as _};

use time::{duration, is_size, number_end, timestamp, unit};

/// The parts of a line that a template masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mask {
    /// Timestamps, UUIDs, hexadecimal ids, durations.
    Ids,
    /// These, and numbers, sizes, paths.
    Shape,
}

/// The marks that replace masked parts.
const NUMBER: u8 = 0x11;
const TIME: u8 = 0x12;
const ID: u8 = 0x13;
const DURATION: u8 = 0x14;
const SIZE: u8 = 0x15;
const PATH: u8 = 0x16;

/// The hash of a line's shape. Lines of one shape have one hash, in every run.
pub(crate) fn shape(text: &str, mask: Mask) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = DefaultHasher::new();
    // Up to here everything is in the hash.
    let mut done = 0;
    let mut at = 0;
    let is_mark = |byte: &u8| byte.is_ascii_digit() || *byte == b'/';
    while let Some(found) = bytes[at..].iter().position(is_mark) {
        at += found;
        if is_digit(bytes, at) {
            let start = uuid_start(bytes, done, word_start(bytes, done, at));
            hash.write(&bytes[done..start]);
            at = word(bytes, start, at, mask, &mut hash);
            done = at;
        } else if mask == Mask::Shape && begins_path(bytes, at) {
            let start = path_start(bytes, done, at);
            hash.write(&bytes[done..start]);
            hash.write_u8(PATH);
            at = path_end(bytes, at);
            done = at;
        } else {
            at += 1;
        }
    }
    hash.write(&bytes[done..]);
    hash.finish()
}

fn is_digit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(u8::is_ascii_digit)
}

/// Whether a byte is one that words without digits are made of.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_wordy(bytes: &[u8], at: usize) -> bool {
    let byte = bytes.get(at);
    byte.is_some_and(|byte| is_letter(*byte) || byte.is_ascii_digit())
}

/// Where the word that holds `at` begins, not before `from`.
fn word_start(bytes: &[u8], from: usize, at: usize) -> usize {
    let letters = bytes[from..at].iter().rev();
    at - letters.take_while(|byte| is_letter(**byte)).count()
}

/// A slash between words, not a lonely one and not `//`.
fn begins_path(bytes: &[u8], at: usize) -> bool {
    let next = bytes.get(at + 1);
    next.is_some_and(|next| *next != b'/' && !ends_path(*next))
}

/// Whether a byte separates a path from the text around it.
fn ends_path(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(byte, b'"' | b'`' | b'\''..=b')' | b'[' | b']' | b'{'..=b'}' | b',' | b':'..=b'>')
}

fn path_start(bytes: &[u8], from: usize, at: usize) -> usize {
    let before = bytes[from..at].iter().rposition(|byte| ends_path(*byte));
    before.map_or(from, |end| from + end + 1)
}

fn path_end(bytes: &[u8], at: usize) -> usize {
    let end = bytes[at..].iter().position(|byte| ends_path(*byte));
    end.map_or(bytes.len(), |end| at + end)
}

/// Puts the word at `start`, whose first digit is at `digit`, into the hash; returns its end.
fn word(bytes: &[u8], start: usize, digit: usize, mask: Mask, hash: &mut DefaultHasher) -> usize {
    if let Some(end) = uuid(bytes, start) {
        hash.write_u8(ID);
        return end;
    }
    if start == digit {
        if let Some(end) = timestamp(bytes, start) {
            hash.write_u8(TIME);
            return end;
        }
        if let Some(end) = duration(bytes, start) {
            hash.write_u8(DURATION);
            return end;
        }
    }
    let text = Word::at(bytes, start);
    let end = start + text.bytes.len();
    if text.is_id(mask) {
        hash.write_u8(ID);
        return end;
    }
    let may_be_code = mask == Mask::Shape && start == digit && end - start <= 3;
    let code = may_be_code && is_code(bytes, start, end);
    if mask == Mask::Ids || code {
        hash.write(text.bytes);
        hash.write_u8(NUMBER);
        return end;
    }
    numbers(bytes, start, end, hash)
}

/// Where the UUID begins whose first group with a digit is at `start`; else `start`.
fn uuid_start(bytes: &[u8], from: usize, start: usize) -> usize {
    if start == from || bytes[start - 1] != b'-' {
        return start;
    }
    let groups = [9, 14, 19, 24]
        .into_iter()
        .filter_map(|back| start.checked_sub(back));
    let mut begins = groups.filter(|at| *at >= from);
    begins
        .find(|at| uuid(bytes, *at).is_some())
        .unwrap_or(start)
}

/// The end of a UUID that begins at `at`.
fn uuid(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 8) != Some(&b'-') || bytes.get(at + 13) != Some(&b'-') {
        return None;
    }
    let text = bytes.get(at..at + 36)?;
    let fits = text.iter().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    (fits && !is_wordy(bytes, at + 36)).then_some(at + 36)
}

/// A word: letters and digits.
struct Word<'t> {
    bytes: &'t [u8],
    digits: usize,
    /// Nothing but hexadecimal digits.
    hex: bool,
}

impl<'t> Word<'t> {
    /// The word that begins at `start`.
    fn at(bytes: &'t [u8], start: usize) -> Self {
        let rest = &bytes[start..];
        let is_end = |byte: &u8| !is_letter(*byte) && !byte.is_ascii_digit();
        let bytes = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
        Self {
            bytes,
            digits: bytes.iter().filter(|byte| byte.is_ascii_digit()).count(),
            hex: bytes.iter().all(u8::is_ascii_hexdigit),
        }
    }

    /// Hexadecimal of a length that no number and no word has; or letters and digits mixed, long.
    fn is_id(&self, mask: Mask) -> bool {
        let length = self.bytes.len();
        if self.bytes.starts_with(b"0x") && length > 4 {
            return true;
        }
        if length < 7 {
            return false;
        }
        if self.hex {
            return self.digits < length || length >= 10;
        }
        mask == Mask::Shape && length >= 16 && self.digits >= 3
    }
}

/// Numbers that mean a state, not an amount: HTTP 4xx and 5xx, log levels, exit codes.
fn is_code(bytes: &[u8], start: usize, end: usize) -> bool {
    /// Bytes before a number that decide its kind.
    const NEAR: usize = 14;
    let before = &bytes[start.saturating_sub(NEAR)..start];
    let told = |name: &[u8]| before.windows(name.len()).any(|part| part == name);
    // A letter of each of the names that other words seldom have.
    let near = before
        .iter()
        .any(|byte| matches!(byte, b'v' | b'x' | b'u' | b'd'));
    let level = near && (told(b"level") || told(b"exit"));
    let is_long = end - start == 3;
    let quoted = is_long && bytes[..start].ends_with(b"\" ");
    let status = quoted || near && is_long && (told(b"tatus") || told(b"code"));
    level || status && matches!(bytes[start], b'4' | b'5')
}

/// Letters as they are, and a mark for each number; sizes have a mark of their own.
fn numbers(bytes: &[u8], start: usize, end: usize, hash: &mut DefaultHasher) -> usize {
    let mut at = start;
    let mut end = end;
    while at < end {
        if !is_digit(bytes, at) {
            let from = at;
            while at < end && !is_digit(bytes, at) {
                at += 1;
            }
            hash.write(&bytes[from..at]);
            continue;
        }
        let after = number_end(bytes, at);
        if let Some(after) = unit(bytes, after, is_size) {
            hash.write_u8(SIZE);
            return after;
        }
        hash.write_u8(NUMBER);
        at = after;
        if at > end {
            // The number went on behind a point: so does its word.
            end = at;
            while is_wordy(bytes, end) {
                end += 1;
            }
        }
    }
    end.max(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mask: Mask, a: &str, b: &str, same: bool) {
        assert_eq!(shape(a, mask) == shape(b, mask), same, "{a} | {b}");
    }

    /// Proves OUT-4: timestamps, UUIDs, hex ids and durations do not count; all else does.
    #[test]
    fn ids_and_times_are_masked_always() {
        let same = |a, b| check(Mask::Ids, a, b, true);
        let differ = |a, b| check(Mask::Ids, a, b, false);
        same("2026-05-01T10:00:00.123Z ok", "2027-11-21T23:59:59.9Z ok");
        same("2026-05-01 10:00:00,123 ok", "2026-05-02 10:00:01,000 ok");
        same("[10:00:00] ok", "[23:01:02] ok");
        same(
            "01/May/2026:10:00:00 +0200 ok",
            "12/Jun/2026:01:00:00 -0100 ok",
        );
        same("2026/05/01 10:00:00 ok", "2026/05/01 10:00:01 ok");
        same(
            "id 27b8fa78-5356-430f-9a98-16d71985cf8c",
            "id abcdefab-cdef-abcd-efab-16d71985cf8c",
        );
        same("commit 8fd63645e00c", "commit ca95c484b103");
        same("at 0x7fff01ab", "at 0x7ffe22cd");
        same("done in 12ms", "done in 1.5s");
        same("done in 1m 3s", "done in 59s");
        same("done in 12 ms", "done in 3 ms");
        differ("port 8080", "port 8081");
        differ("try 1 of 5", "try 2 of 5");
        differ("src/a.rs:1:2", "src/a.rs:1:3");
        differ("a", "b");
        differ("v1.2.3", "v1.2.4");
        differ("", " ");
    }

    /// Proves OUT-7d.
    #[test]
    fn shape_ignores_numbers_and_paths() {
        let same = |a, b| check(Mask::Shape, a, b, true);
        let differ = |a, b| check(Mask::Shape, a, b, false);
        same("Fetched 12 rows", "Fetched 9999 rows");
        same("Fetched 1,234.5 rows", "Fetched 9 rows");
        same("Compiling /a/b.c", "Compiling src/x/y/z.c");
        same("took 12.5MB", "took 900K");
        same("chunk-12a", "chunk-9a");
        same("key=user:29926", "key=user:1");
        same("token Zk3jX91mmQpa8Lw2", "token aaB4jX91m0Qpa8Lw9");
        same("{\"level\":30,\"ms\":1}", "{\"level\":30,\"ms\":22.5}");
        differ("{\"level\":30,\"ms\":1}", "{\"level\":50,\"ms\":1}");
        differ("\"GET /x HTTP/1.1\" 200 12", "\"GET /x HTTP/1.1\" 502 12");
        differ("Fetched rows", "Fetched lines");
        differ("exit status 1", "exit status 2");
        differ("a 1", "a x");
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_shape(text: String, other: String) {
            for mask in [Mask::Ids, Mask::Shape] {
                proptest::prop_assert_eq!(shape(&text, mask), shape(&text.clone(), mask));
                let _ = shape(&other, mask);
            }
        }

        #[test]
        fn any_text_near_numbers_has_a_shape(text in "[0-9a-f:TZ .,/+µms-]{0,60}") {
            for mask in [Mask::Ids, Mask::Shape] {
                let _ = shape(&text, mask);
            }
        }
    }
}
