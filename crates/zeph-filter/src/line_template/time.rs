//! Numbers, durations and times.

use super::{is_digit, is_letter, is_wordy};

/// The end of the digits at `at`.
fn digits_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The end of a number: digits, with points or commas between them.
pub(super) fn number_end(bytes: &[u8], at: usize) -> usize {
    let mut end = digits_end(bytes, at);
    while matches!(bytes.get(end), Some(b'.' | b',')) && is_digit(bytes, end + 1) {
        end = digits_end(bytes, end + 1);
    }
    end
}

/// Whether a word is a unit of durations.
fn is_duration(unit: &[u8]) -> bool {
    matches!(
        unit,
        b"ms" | b"ns" | b"us" | b"\xc2\xb5s" | b"\xce\xbcs" | b"s" | b"m" | b"h" | b"d"
    ) || matches!(unit, b"min" | b"mins" | b"sec" | b"secs")
}

/// Whether a word is a unit of durations also after a space.
fn is_spaced_duration(unit: &[u8]) -> bool {
    matches!(unit, b"ms" | b"\xc2\xb5s" | b"ns" | b"s")
}

/// Whether a word is a unit of sizes.
pub(super) fn is_size(unit: &[u8]) -> bool {
    matches!(
        unit,
        b"B" | b"kB" | b"KB" | b"MB" | b"GB" | b"TB" | b"KiB" | b"MiB" | b"GiB" | b"TiB"
    ) || matches!(unit, b"K" | b"k" | b"M" | b"G" | b"T")
}

/// The end of the unit at `at`, if the word there is one.
pub(super) fn unit(bytes: &[u8], at: usize, is_unit: fn(&[u8]) -> bool) -> Option<usize> {
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
    (length <= MAX_UNIT_BYTES && is_unit(&rest[..length])).then_some(at + length)
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
    const LONG: usize = 5;
    let digits = |from: usize| (digits_end(bytes, at + from) - (at + from)).min(LONG);
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
        true => {
            let letters = bytes[at + middle..].iter();
            letters
                .take_while(|byte| byte.is_ascii_alphanumeric())
                .count()
        }
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
    let two = |from: usize| digits_end(bytes, at + from) == at + from + 2;
    let hours = if two(0) { 2 } else { 1 };
    if bytes.get(at + hours) != Some(&b':') || !two(hours + 1) {
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
        end = digits_end(bytes, end + 1);
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
