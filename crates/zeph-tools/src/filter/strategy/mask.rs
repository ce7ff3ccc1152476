//! The shape of a line: its text with what differs from line to line masked.
//!
//! A line is read once, byte by byte through a table of classes, and becomes a hash; nothing is
//! copied. Words without digits count as they are. What begins with a digit, holds one, or is a
//! path is looked at more closely: timestamps, UUIDs, hexadecimal ids and durations are masked
//! always, numbers and paths where [`Mask::Shape`] is asked for.

use crate::bytes::{between, find, packed};

/// What is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) enum Mask {
    /// Timestamps, UUIDs, hexadecimal ids, durations.
    Ids,
    /// These, and numbers, sizes, paths.
    Shape,
}

/// Plain: a byte that stands for itself.
const PLAIN: u8 = 0;
/// A letter: stands for itself, unless its word holds a digit.
const LETTER: u8 = 1;
/// A digit.
const DIGIT: u8 = 2;
/// A slash: its word may be a path.
const SLASH: u8 = 3;

/// The class of every byte.
const CLASS: [u8; 256] = {
    let mut table = [PLAIN; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => LETTER,
            b'/' => SLASH,
            _ => PLAIN,
        };
        byte += 1;
    }
    table
};

/// Marks in place of what is masked.
const NUMBER: u64 = 0x11;
const TIME: u64 = 0x12;
const ID: u64 = 0x13;
const DURATION: u64 = 0x14;
const SIZE: u64 = 0x15;
const PATH: u64 = 0x16;

/// Odd constants without structure, from the digits of pi and of the golden ratio.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash that is the same in every run: eight bytes a step.
struct Hash(u64);

impl Hash {
    fn mark(&mut self, mark: u64) {
        self.0 = (self.0 ^ mark).wrapping_mul(FACTOR);
        self.0 ^= self.0 >> 29;
    }

    fn text(&mut self, text: &[u8]) {
        let mut chunks = text.chunks_exact(8);
        for chunk in &mut chunks {
            let mut eight = [0; 8];
            eight.copy_from_slice(chunk);
            self.mark(u64::from_le_bytes(eight));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let length = (rest.len() as u64).wrapping_mul(FACTOR);
            self.mark(packed(rest) ^ length);
        }
    }
}

/// The hash of a line's shape. Lines of one shape have one hash, in every run.
pub(in crate::filter) fn shape(text: &str, mask: Mask) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = Hash(SEED);
    // Up to here everything is in the hash.
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = next_digit_or_slash(&bytes[at..]) {
        at += found;
        match class(bytes, at) {
            DIGIT => {
                let start = uuid_start(bytes, done, word_start(bytes, done, at));
                hash.text(&bytes[done..start]);
                at = word(bytes, start, at, mask, &mut hash);
                done = at;
            }
            SLASH if mask == Mask::Shape && begins_path(bytes, at) => {
                let start = path_start(bytes, done, at);
                hash.text(&bytes[done..start]);
                hash.mark(PATH);
                at = path_end(bytes, at);
                done = at;
            }
            _ => at += 1,
        }
    }
    hash.text(&bytes[done..]);
    hash.0
}

/// Where the first digit or slash is.
fn next_digit_or_slash(bytes: &[u8]) -> Option<usize> {
    find(bytes, |word| between(word, b'/', b'9'))
}

fn class(bytes: &[u8], at: usize) -> u8 {
    bytes
        .get(at)
        .map_or(PLAIN, |byte| CLASS[usize::from(*byte)])
}

fn is_digit(bytes: &[u8], at: usize) -> bool {
    class(bytes, at) == DIGIT
}

fn is_wordy(bytes: &[u8], at: usize) -> bool {
    matches!(class(bytes, at), LETTER | DIGIT)
}

/// Where the word that holds `at` begins, not before `from`.
fn word_start(bytes: &[u8], from: usize, at: usize) -> usize {
    let letters = bytes[from..at].iter().rev();
    at - letters
        .take_while(|byte| CLASS[usize::from(**byte)] == LETTER)
        .count()
}

/// A slash between words, not a lonely one and not `//`.
fn begins_path(bytes: &[u8], at: usize) -> bool {
    bytes
        .get(at + 1)
        .is_some_and(|next| !ends_path(*next) && *next != b'/')
}

/// What separates a path from the text around it.
fn ends_path(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b'"' | b'\''
                | b'`'
                | b'('
                | b')'
                | b'['
                | b']'
                | b'{'
                | b'}'
                | b'<'
                | b'>'
                | b'='
                | b','
                | b';'
                | b'|'
                | b':'
        )
}

fn path_start(bytes: &[u8], from: usize, at: usize) -> usize {
    let before = bytes[from..at].iter().rev();
    at - before.take_while(|byte| !ends_path(**byte)).count()
}

fn path_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes[at..].iter();
    at + rest.take_while(|byte| !ends_path(**byte)).count()
}

/// Puts the word at `start`, whose first digit is at `digit`, into the hash; returns its end.
fn word(bytes: &[u8], start: usize, digit: usize, mask: Mask, hash: &mut Hash) -> usize {
    if let Some(end) = uuid(bytes, start) {
        hash.mark(ID);
        return end;
    }
    if start == digit {
        if let Some(end) = timestamp(bytes, start) {
            hash.mark(TIME);
            return end;
        }
        if let Some(end) = duration(bytes, start) {
            hash.mark(DURATION);
            return end;
        }
    }
    let rest = bytes[start..].iter();
    let length = rest
        .take_while(|byte| matches!(CLASS[usize::from(**byte)], LETTER | DIGIT))
        .count();
    let end = start + length;
    let text = &bytes[start..end];
    if is_id(text, mask) {
        hash.mark(ID);
        return end;
    }
    if mask == Mask::Ids || (start == digit && is_code(bytes, start, end)) {
        hash.text(text);
        hash.mark(NUMBER);
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

/// Hexadecimal of a length that no number and no word has; or letters and digits mixed, long.
fn is_id(text: &[u8], mask: Mask) -> bool {
    if text.starts_with(b"0x") && text.len() > 4 {
        return true;
    }
    if text.len() < 7 {
        return false;
    }
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    if text.iter().all(u8::is_ascii_hexdigit) {
        return digits < text.len() || text.len() >= 10;
    }
    mask == Mask::Shape && text.len() >= 16 && digits >= 3
}

/// Numbers that mean a state, not an amount: HTTP 4xx and 5xx, log levels, exit codes.
fn is_code(bytes: &[u8], start: usize, end: usize) -> bool {
    if end - start > 3 {
        return false;
    }
    let before = &bytes[start.saturating_sub(14)..start];
    let bad = end - start == 3 && matches!(bytes[start], b'4' | b'5');
    let told = |name: &[u8]| before.windows(name.len()).any(|window| window == name);
    (bad && (before.ends_with(b"\" ") || told(b"tatus") || told(b"code")))
        || told(b"level")
        || told(b"exit")
}

/// Letters as they are, and a mark for each number; sizes have a mark of their own.
fn numbers(bytes: &[u8], start: usize, end: usize, hash: &mut Hash) -> usize {
    let mut at = start;
    let mut end = end;
    while at < end {
        if !is_digit(bytes, at) {
            let from = at;
            while at < end && !is_digit(bytes, at) {
                at += 1;
            }
            hash.text(&bytes[from..at]);
            continue;
        }
        let after = number_end(bytes, at);
        if let Some(after) = unit(bytes, after, SIZES) {
            hash.mark(SIZE);
            return after;
        }
        hash.mark(NUMBER);
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

/// The end of a number: digits, with points or commas between them.
fn number_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    loop {
        while is_digit(bytes, at) {
            at += 1;
        }
        let point = matches!(bytes.get(at), Some(b'.' | b','));
        if !(point && is_digit(bytes, at + 1)) {
            return at;
        }
        at += 1;
    }
}

const DURATIONS: &[&str] = &[
    "ms", "ns", "us", "µs", "μs", "s", "m", "h", "d", "min", "mins", "sec", "secs",
];
const SIZES: &[&str] = &[
    "B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "K", "k", "M", "G", "T",
];

/// The end of one of `units` at `at`, where no other word goes on.
fn unit(bytes: &[u8], at: usize, units: &[&str]) -> Option<usize> {
    let rest = bytes.get(at..)?;
    if !rest
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte > 0x7f)
    {
        return None;
    }
    let found = units
        .iter()
        .find(|unit| rest.starts_with(unit.as_bytes()) && class(rest, unit.len()) != LETTER)?;
    Some(at + found.len())
}

/// The end of a duration such as `12ms`, `1.5 s`, `1m 3s`, `2h3m`.
fn duration(bytes: &[u8], at: usize) -> Option<usize> {
    let one = |at: usize| {
        let number = number_end(bytes, at);
        let spaced = (bytes.get(number) == Some(&b' ')).then_some(number + 1);
        unit(bytes, number, DURATIONS).or_else(|| unit(bytes, spaced?, &["ms", "µs", "ns", "s"]))
    };
    let mut end = one(at)?;
    loop {
        let next = end + usize::from(bytes.get(end) == Some(&b' '));
        if !is_digit(bytes, next) {
            return Some(end);
        }
        match one(next) {
            Some(further) => end = further,
            None => return Some(end),
        }
    }
}

/// The end of a date, a time or both: `2026-05-01T10:00:00.123+02:00`, `10:00:00,123`,
/// `01/May/2026:10:00:00 +0200`.
fn timestamp(bytes: &[u8], at: usize) -> Option<usize> {
    let Some(after) = date(bytes, at) else {
        return time(bytes, at);
    };
    let joined = matches!(bytes.get(after), Some(b'T' | b't' | b' ' | b':' | b'_'));
    Some(match joined.then(|| time(bytes, after + 1)).flatten() {
        Some(end) => end,
        None => after,
    })
}

fn date(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = |at: usize| {
        bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let first = digits(at);
    if !matches!(first, 1 | 2 | 4) {
        return None;
    }
    let sign = *bytes.get(at + first)?;
    if !matches!(sign, b'-' | b'/' | b'.') {
        return None;
    }
    let middle = at + first + 1;
    // A number, or the name of a month.
    let second = bytes
        .get(middle..)?
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .count();
    let named = second == 3 && bytes[middle].is_ascii_uppercase();
    if !(named || (second == 2 || second == 1) && digits(middle) == second)
        || bytes.get(middle + second) != Some(&sign)
    {
        return None;
    }
    let last = middle + second + 1;
    let third = digits(last);
    let lengths = (first == 4 && third == 2) || (first <= 2 && third == 4);
    (lengths && bytes.get(last + third) != Some(&sign)).then_some(last + third)
}

fn time(bytes: &[u8], at: usize) -> Option<usize> {
    let two =
        |at: usize| is_digit(bytes, at) && is_digit(bytes, at + 1) && !is_digit(bytes, at + 2);
    let hours = if two(at) { 2 } else { 1 };
    if !is_digit(bytes, at) || bytes.get(at + hours) != Some(&b':') || !two(at + hours + 1) {
        return None;
    }
    let mut end = at + hours + 3;
    if bytes.get(end) == Some(&b':') && two(end + 1) {
        end += 3;
    } else if hours == 1 {
        // `1:23` is rather a place than a time.
        return None;
    }
    if matches!(bytes.get(end), Some(b'.' | b',')) && is_digit(bytes, end + 1) {
        end += 1;
        while is_digit(bytes, end) {
            end += 1;
        }
    }
    if bytes.get(end) == Some(&b'Z') && !is_wordy(bytes, end + 1) {
        return Some(end + 1);
    }
    let zone = end + usize::from(bytes.get(end) == Some(&b' '));
    if matches!(bytes.get(zone), Some(b'+' | b'-'))
        && is_digit(bytes, zone + 1)
        && is_digit(bytes, zone + 2)
    {
        let mut after = zone + 3;
        after += usize::from(bytes.get(after) == Some(&b':') && is_digit(bytes, after + 1));
        if is_digit(bytes, after) && is_digit(bytes, after + 1) && !is_digit(bytes, after + 2) {
            return Some(after + 2);
        }
    }
    Some(end)
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
    fn a_shape_knows_no_numbers_and_no_paths() {
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
        fn text_near_numbers(text in "[0-9a-f:TZ .,/+µms-]{0,60}") {
            for mask in [Mask::Ids, Mask::Shape] {
                let _ = shape(&text, mask);
            }
        }
    }
}
