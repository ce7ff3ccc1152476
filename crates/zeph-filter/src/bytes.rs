//! Classes of bytes, eight looked at together: where the first one of a class is.

use std::ops::Range;

/// A byte in every byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of every byte.
const HIGH: u64 = 0x80 * ONES;

/// Where the first byte is that `class` holds of: it returns the highest bit of each byte of a word that is in the
/// class.
pub(crate) fn find(bytes: &[u8], class: impl Fn(u64) -> u64) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = class(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(index * 8 + first(found));
        }
    }
    if !rest.is_empty()
        && let Some(last) = bytes.last_chunk::<8>()
    {
        // What it begins with was looked at before.
        let found = class(u64::from_le_bytes(*last));
        return (found != 0).then(|| bytes.len() - 8 + first(found));
    }
    // What is found behind the end does not count.
    let found = first(class(filled(rest)));
    (found < rest.len()).then_some(words.len() * 8 + found)
}

/// Fewer than nine bytes as a word, zeros behind them.
pub(crate) fn filled(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn first(found: u64) -> usize {
    found.trailing_zeros() as usize / 8
}

/// Fewer than nine bytes as a number; other bytes of the same length are another one.
pub(crate) fn packed(bytes: &[u8]) -> u64 {
    if let Some(all) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*all);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(last) << 32 | u64::from(first);
    }
    filled(bytes)
}

/// The highest bit of each byte of a word, next to each other.
pub(crate) fn bits(high: u64) -> u64 {
    // Each bit is moved to its place in the highest byte; no two of them meet.
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The bytes from `least` to `most`, both ASCII.
pub(crate) fn between(word: u64, least: u8, most: u8) -> u64 {
    // No byte carries into the next one.
    let low = word & !HIGH;
    let from_least = low + u64::from(0x80 - least) * ONES;
    let beyond_most = low + u64::from(0x7f - most) * ONES;
    from_least & !beyond_most & !word & HIGH
}

/// The bytes that are `byte`.
pub(crate) fn equal(word: u64, byte: u8) -> u64 {
    let differ = word ^ (u64::from(byte) * ONES);
    !(((differ & !HIGH) + !HIGH) | differ) & HIGH
}

/// Bytes that are not a column by themselves: control characters, and all that is not ASCII.
pub(crate) fn no_column(word: u64) -> u64 {
    let low = word & !HIGH;
    let is_not_delete = (low ^ (0x7f * ONES)) + !HIGH;
    let shown = (low + (0x80 - 0x20) * ONES) & is_not_delete;
    (!shown | word) & HIGH
}

/// Adds a part of `bytes`, which is mostly short.
#[inline(always)]
pub(crate) fn add_short(bytes: &[u8], part: Range<usize>, to: &mut Vec<u8>) {
    const SHORT: usize = 16;
    match bytes[part.start..].first_chunk::<SHORT>() {
        // Copied in one piece, whatever is behind it.
        Some(block) if part.len() <= SHORT => {
            to.extend_from_slice(block);
            to.truncate(to.len() - SHORT + part.len());
        }
        _ => to.extend_from_slice(&bytes[part]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_told_by_itself() {
        let text = *b"\n\tz~ \xc2\x80\xff\xe2\x9c\x95 abcdefgh";
        for byte in 0..=u8::MAX {
            for at in 0..text.len() {
                let mut columns = *b"  z~ !\"[]{}/ abcdefgh";
                columns[at] = byte;
                let is_none = byte.is_ascii_control() || !byte.is_ascii();
                assert_eq!(find(&columns, no_column), is_none.then_some(at));
                let mut text = text;
                text[at] = byte;
                let check = |class: fn(u64) -> u64, is: bool| {
                    assert_eq!(find(&text, class), is.then_some(at), "{byte:#x} at {at}");
                };
                check(
                    |word| between(word, b'/', b'9'),
                    (b'/'..=b'9').contains(&byte),
                );
                check(|word| between(word, b'1', b'1'), byte == b'1');
                check(|word| equal(word, 0xc3), byte == 0xc3);
            }
        }
    }

    #[test]
    fn each_byte_counts() {
        for length in 0..=8 {
            let text = &b"abcdefgh"[..length];
            for at in 0..length {
                let mut other = text.to_vec();
                other[at] = b'x';
                assert_ne!(packed(text), packed(&other), "{length} {at}");
            }
        }
    }
}
