//! Numbers, durations and times.

use super::{WINDOW, Window, is_digit, is_letter, is_wordy};

/// The end of a number: digits, with points or commas between them.
#[inline(always)]
pub(super) fn number_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    loop {
        let run = Window::at(bytes, at).digits().trailing_ones() as usize;
        at += run;
        if run == WINDOW {
            continue;
        }
        let point = matches!(bytes.get(at), Some(b'.' | b','));
        if !(point && is_digit(bytes, at + 1)) {
            return at;
        }
        at += 1;
    }
}

/// A unit of at most four bytes as a number.
const fn name(unit: &[u8]) -> u32 {
    let mut name = 0;
    let mut at = unit.len();
    while at > 0 {
        at -= 1;
        name = name << 8 | unit[at] as u32;
    }
    name
}

/// Whether a word is a unit of durations.
pub(super) fn is_duration(unit: u32) -> bool {
    const UNITS: [u32; 13] = [
        name(b"ms"),
        name(b"ns"),
        name(b"us"),
        name(b"\xc2\xb5s"),
        name(b"\xce\xbcs"),
        name(b"s"),
        name(b"m"),
        name(b"h"),
        name(b"d"),
        name(b"min"),
        name(b"mins"),
        name(b"sec"),
        name(b"secs"),
    ];
    UNITS.contains(&unit)
}

/// Whether a word is one also where a space stands before it.
fn is_spaced_duration(unit: u32) -> bool {
    const UNITS: [u32; 4] = [name(b"ms"), name(b"\xc2\xb5s"), name(b"ns"), name(b"s")];
    UNITS.contains(&unit)
}

/// Whether a word is a unit of sizes.
pub(super) fn is_size(unit: u32) -> bool {
    const UNITS: [u32; 15] = [
        name(b"B"),
        name(b"kB"),
        name(b"KB"),
        name(b"MB"),
        name(b"GB"),
        name(b"TB"),
        name(b"KiB"),
        name(b"MiB"),
        name(b"GiB"),
        name(b"TiB"),
        name(b"K"),
        name(b"k"),
        name(b"M"),
        name(b"G"),
        name(b"T"),
    ];
    UNITS.contains(&unit)
}

/// The end of the unit at `at`, if the word there is one.
#[inline(always)]
pub(super) fn unit(bytes: &[u8], at: usize, is_unit: fn(u32) -> bool) -> Option<usize> {
    const MAX_UNIT_BYTES: usize = 4;
    let rest = bytes.get(at..)?;
    // A micro sign, or a Greek my.
    let micro = match rest {
        [0xc2, 0xb5, ..] | [0xce, 0xbc, ..] => 2,
        [first, ..] if first.is_ascii_alphabetic() => 0,
        _ => return None,
    };
    let letters = rest[micro..].iter().take(MAX_UNIT_BYTES + 1);
    let length = micro + letters.take_while(|byte| is_letter(**byte)).count();
    (length <= MAX_UNIT_BYTES && is_unit(name(&rest[..length]))).then_some(at + length)
}

/// The end of a duration such as `12ms`, `1.5 s`, `1m 3s`, `2h3m`.
pub(super) fn duration(bytes: &[u8], at: usize) -> Option<usize> {
    let one = |at: usize| {
        let number = number_end(bytes, at);
        match bytes.get(number) {
            Some(b' ') => unit(bytes, number + 1, is_spaced_duration),
            _ => unit(bytes, number, is_duration),
        }
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
pub(super) fn timestamp(bytes: &[u8], at: usize) -> Option<usize> {
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
    /// Longer numbers are no part of a date.
    const LONG: u32 = 5;
    let window = Window::at(bytes, at);
    let all = window.digits();
    let digits = |from: usize| (all >> from).trailing_ones().min(LONG) as usize;
    let first = digits(0);
    if !matches!(first, 1 | 2 | 4) {
        return None;
    }
    let sign = *bytes.get(at + first)?;
    if !matches!(sign, b'-' | b'/' | b'.') {
        return None;
    }
    let middle = first + 1;
    // A number, or the name of a month.
    let named = bytes.get(at + middle).is_some_and(u8::is_ascii_uppercase);
    let second = match named {
        true => ((all | window.alphabetic()) >> middle).trailing_ones() as usize,
        false => digits(middle),
    };
    let named = named && second == 3;
    if !(named || (second == 2 || second == 1) && digits(middle) == second)
        || bytes.get(at + middle + second) != Some(&sign)
    {
        return None;
    }
    let last = middle + second + 1;
    let third = digits(last);
    let lengths = (first == 4 && third == 2) || (first <= 2 && third == 4);
    let end = at + last + third;
    (lengths && bytes.get(end) != Some(&sign)).then_some(end)
}

fn time(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) != Some(&b':') && bytes.get(at + 2) != Some(&b':') {
        return None;
    }
    let digits = Window::at(bytes, at).digits();
    let two = |from: usize| digits >> from & 0b111 == 0b011;
    let hours = if two(0) { 2 } else { 1 };
    if digits & 1 == 0 || bytes.get(at + hours) != Some(&b':') || !two(hours + 1) {
        return None;
    }
    let mut end = hours + 3;
    if bytes.get(at + end) == Some(&b':') && two(end + 1) {
        end += 3;
    } else if hours == 1 {
        // `1:23` is rather a place than a time.
        return None;
    }
    let mut end = at + end;
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
