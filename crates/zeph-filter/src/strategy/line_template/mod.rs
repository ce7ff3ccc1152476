//! The shape of a line: its text with what differs from line to line masked.
//!
//! A line is read once, many bytes a step, and becomes a hash; nothing is copied. Words without
//! digits count as they are. What begins with a digit, holds one, or is a path is looked at more
//! closely: timestamps, UUIDs, hexadecimal ids and durations are masked always, numbers and paths
//! where [`Mask::Shape`] is asked for.

mod hash;
mod time;
mod window;

use hash::Hash;
use time::{duration, is_duration, is_size, number_end, timestamp, unit};
use window::Marks;
pub(super) use window::{WINDOW, Window};

/// What is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mask {
    /// Timestamps, UUIDs, hexadecimal ids, durations.
    Ids,
    /// These, and numbers, sizes, paths.
    Shape,
}

/// Marks in place of what is masked.
const NUMBER: u64 = 0x11;
const TIME: u64 = 0x12;
const ID: u64 = 0x13;
const DURATION: u64 = 0x14;
const SIZE: u64 = 0x15;
const PATH: u64 = 0x16;

/// The hash of a line's shape. Lines of one shape have one hash, in every run.
pub(crate) fn shape(text: &str, mask: Mask) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = Hash::new();
    // Up to here everything is in the hash.
    let mut done = 0;
    let mut at = 0;
    let mut marks = Marks::of(bytes);
    while let Some(found) = marks.next(at) {
        at = found;
        if is_digit(bytes, at) {
            let start = uuid_start(bytes, done, word_start(bytes, done, at));
            hash.text(&bytes[done..start]);
            at = word(bytes, start, at, mask, &mut hash);
            done = at;
        } else if mask == Mask::Shape && begins_path(bytes, at) {
            let start = path_start(bytes, done, at);
            hash.text(&bytes[done..start]);
            hash.mark(PATH);
            at = path_end(bytes, at);
            done = at;
        } else {
            at += 1;
        }
    }
    hash.text(&bytes[done..]);
    hash.end()
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

/// What separates a path from the text around it; of many bytes [`Window::ends_of_paths`] says it.
fn ends_path(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(byte, b'"' | b'`' | b'\''..=b')' | b'[' | b']' | b'{'..=b'}' | b',' | b':'..=b'>')
}

fn path_start(bytes: &[u8], from: usize, at: usize) -> usize {
    let mut at = at;
    while at > from && !ends_path(bytes[at - 1]) {
        let ends = Window::before(bytes, at).ends_of_paths();
        let length = (ends << WINDOW).leading_zeros() as usize;
        if length < WINDOW {
            return (at - length).max(from);
        }
        at = at.saturating_sub(WINDOW);
    }
    at.max(from)
}

fn path_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    while at < bytes.len() {
        let ends = Window::at(bytes, at).ends_of_paths();
        if ends != 0 {
            return at + ends.trailing_zeros() as usize;
        }
        at += WINDOW;
    }
    bytes.len()
}

/// Puts the word at `start`, whose first digit is at `digit`, into the hash; returns its end.
fn word(bytes: &[u8], start: usize, digit: usize, mask: Mask, hash: &mut Hash) -> usize {
    if start == digit
        && let Some(alone) = Alone::at(bytes, start)
    {
        if alone.is_duration {
            hash.mark(DURATION);
            return alone.end;
        }
        let digits = &bytes[start..alone.digits];
        let code = mask == Mask::Shape && digits.len() <= 3 && is_code(bytes, start, alone.digits);
        if mask == Mask::Ids || code {
            hash.text(digits);
            hash.mark(NUMBER);
            return alone.digits;
        }
        hash.mark(NUMBER);
        return alone.end;
    }
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
    let text = Word::at(bytes, start);
    let end = start + text.bytes.len();
    if text.is_id(mask) {
        hash.mark(ID);
        return end;
    }
    let may_be_code = mask == Mask::Shape && start == digit && end - start <= 3;
    let code = may_be_code && is_code(bytes, start, end);
    if mask == Mask::Ids || code {
        hash.text(text.bytes);
        hash.mark(NUMBER);
        return end;
    }
    numbers(bytes, start, end, hash)
}

/// A number that is none of what else begins with digits: an id, a time, a size.
struct Alone {
    /// Where its first digits end.
    digits: usize,
    /// Where it ends, with its unit.
    end: usize,
    /// It has a unit of durations.
    is_duration: bool,
}

impl Alone {
    /// The number at `start`, if a look at it and at what is behind it is enough to know it.
    #[inline(always)]
    fn at(bytes: &[u8], start: usize) -> Option<Self> {
        const FEW: usize = 9;
        let run = |at: usize| Window::at(bytes, at).digits().trailing_ones() as usize;
        let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
        let digits = start + run(start);
        if digits > start + FEW {
            return None;
        }
        let mut end = digits;
        let sign = byte(end);
        if matches!(sign, b'.' | b',') && byte(end + 1).is_ascii_digit() {
            end += 1 + run(end + 1);
            if end > digits + FEW || matches!(byte(end), b'.' | b',') {
                return None;
            }
        } else if matches!(sign, b'.' | b',' | b':' | b'-' | b'/') {
            let joined = byte(end + 1).is_ascii_alphanumeric();
            return (!joined).then_some(Self::number(digits, end));
        }
        match byte(end) {
            b' ' if matches!(byte(end + 1), b'm' | b'n' | b's' | 0xc2) => None,
            b'm' | b'n' | b's' | b'u' | b'h' => {
                let end = unit(bytes, end, is_duration)?;
                let next = end + usize::from(byte(end) == b' ');
                let is_duration = true;
                (!is_digit(bytes, next)).then_some(Self {
                    digits,
                    end,
                    is_duration,
                })
            }
            byte if is_letter(byte) || !byte.is_ascii() => None,
            _ => Some(Self::number(digits, end)),
        }
    }

    fn number(digits: usize, end: usize) -> Self {
        Self {
            digits,
            end,
            is_duration: false,
        }
    }
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
    #[inline(always)]
    fn at(bytes: &'t [u8], start: usize) -> Self {
        let (mut length, mut digits, mut hex) = (0, 0, true);
        loop {
            let window = Window::at(bytes, start + length);
            let of_hex = window.digits() | window.hex();
            let wordy = of_hex | window.alphabetic() | window.equal(b'_');
            let run = wordy.trailing_ones();
            let within = !(u32::MAX << run);
            length += run as usize;
            digits += (window.digits() & within).count_ones() as usize;
            hex &= within & !of_hex == 0;
            if (run as usize) < WINDOW {
                break;
            }
        }
        Self {
            bytes: &bytes[start..start + length],
            digits,
            hex,
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
    /// So many bytes before a number tell what it is.
    const NEAR: usize = 14;
    let before = Window::before(bytes, start);
    let told = |name: &[u8]| {
        let letters = name.iter().zip(0..);
        let begins = letters.fold(u32::MAX << (WINDOW - NEAR), |begins, (letter, place)| {
            begins & before.equal(*letter) >> place
        });
        begins != 0
    };
    // A letter of each of the names that other words seldom have.
    let rare = [b'v', b'x', b'u', b'd'].map(|letter| before.equal(letter));
    let near = rare.iter().any(|found| *found != 0);
    let level = near && (told(b"level") || told(b"exit"));
    let is_long = end - start == 3;
    let quoted = is_long && bytes[..start].ends_with(b"\" ");
    let status = quoted || near && is_long && (told(b"tatus") || told(b"code"));
    level || status && matches!(bytes[start], b'4' | b'5')
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
        if let Some(after) = unit(bytes, after, is_size) {
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
