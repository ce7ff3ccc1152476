//! What lines are but for their digits, and but for ids: commands print the same line again and again with other
//! numbers.
//!
//! An id is a word of seven and more hexadecimal digits, letters among them: a commit, a request. Where it stands
//! behind a blank, a quote or `=`, nothing that looks at a line for its form tells it from another one that begins with
//! a digit as well, or with a letter as well.

use crate::bytes::{between, filled, find, packed};

/// 2^64 divided by the golden ratio: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// A factor (of MurmurHash3's mixer) that is never cancelled out: no text holds the byte 0xff.
const NO_TEXT: u64 = 0xff51_afd7_ed55_8ccd;

/// What stands in place of the bytes of an id; its first one stays a digit where it is one.
const ID: u8 = 0xff;
/// Bytes of the shortest id.
const SHORTEST: usize = 7;
/// Bytes of a line in which ids are looked for.
const LONGEST: usize = 512;

/// A byte in every byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// A hash that is the same for lines of one length that differ in digits alone.
pub(super) fn hash(text: &str) -> u64 {
    hash_of(text.as_bytes())
}

/// A hash that is the same for lines of one length that differ in digits and ids alone; `None` for a line without
/// an id. `masked`: memory for the line without its ids.
pub(super) fn hash_without_ids(text: &str, masked: &mut Vec<u8>) -> Option<u64> {
    let bytes = text.as_bytes();
    masked.clear();
    let mut at = 0;
    while at < bytes.len().min(LONGEST)
        && let Some(mixed) = next_mixed(bytes, at)
    {
        let mut is_hex = true;
        let before = bytes[at..mixed].iter().rev().map(|byte| kind(*byte));
        let before = before.take_while(|kind| *kind != 0);
        let before = before.inspect(|kind| is_hex &= *kind != OTHER).count();
        let start = mixed - before;
        at = find(&bytes[mixed..], no_hex).map_or(bytes.len(), |end| mixed + end);
        let more = bytes[at..].iter().take_while(|byte| kind(**byte) != 0);
        let more = more.count();
        is_hex &= more == 0;
        at += more;
        let word = &bytes[start..at];
        let stands_alone = start > 0 && matches!(bytes[start - 1], b' ' | b'=' | b'"' | b'\'');
        if is_hex && stands_alone && word.len() >= SHORTEST && !begins_with_days(word) {
            masked.extend_from_slice(&bytes[masked.len()..start]);
            masked.push(if word[0].is_ascii_digit() {
                word[0]
            } else {
                ID
            });
            masked.resize(at, ID);
        }
    }
    if masked.is_empty() {
        return None;
    }
    masked.extend_from_slice(&bytes[masked.len()..]);
    Some(hash_of(masked))
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let mut add = |low: u64, high: u64| {
        let (low, high) = (masked(low), masked(high));
        let product = u128::from(low ^ hash ^ GOLDEN) * u128::from(high ^ NO_TEXT);
        hash = product as u64 ^ (product >> 64) as u64;
    };
    for block in bytes.as_chunks::<16>().0 {
        let both = u128::from_le_bytes(*block);
        add(both as u64, (both >> 64) as u64);
    }
    // The last ones, whether they were looked at or not.
    if let Some(last) = bytes.last_chunk::<16>() {
        let both = u128::from_le_bytes(*last);
        add(both as u64, (both >> 64) as u64);
    } else {
        let (low, high) = bytes.split_at(bytes.len().min(8));
        add(packed(low), packed(high));
    }
    hash
}

/// The word with each of its bytes that is a digit replaced by `0`.
fn masked(word: u64) -> u64 {
    // The lower half of `0` to `9` is what tells them apart.
    let digits = between(word, b'0', b'9');
    word & !((digits >> 3) - (digits >> 7))
}

/// Where, behind a place, a digit and a letter that is a hexadecimal one stand side by side: the second of them.
fn next_mixed(bytes: &[u8], from: usize) -> Option<usize> {
    // Of the word before: whether its last byte is a digit, and such a letter.
    let (mut digit, mut letter) = (0, 0);
    let mut look = |word: u64| {
        let digits = between(word, b'0', b'9');
        let letters = between(word | (0x20 * ONES), b'a', b'f');
        let mixed = (digits << 8 | digit) & letters | (letters << 8 | letter) & digits;
        (digit, letter) = (digits >> 56, letters >> 56);
        (mixed != 0).then(|| mixed.trailing_zeros() as usize / 8)
    };
    let (words, rest) = bytes[from..].as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(found) = look(u64::from_le_bytes(*word)) {
            return Some(from + index * 8 + found);
        }
    }
    Some(from + words.len() * 8 + look(filled(rest))?)
}

/// Bytes that are no hexadecimal digits.
fn no_hex(word: u64) -> u64 {
    let digits = between(word, b'0', b'9');
    let letters = between(word | (0x20 * ONES), b'a', b'f');
    !(digits | letters) & (0x80 * ONES)
}

/// What a byte of a word is.
const DIGIT: u8 = 1;
const HEX: u8 = 2;
const OTHER: u8 = 4;

/// What every byte is within a word; 0: in none. A table, for no branch could be foretold within an id.
static KINDS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'f' | b'A'..=b'F' => HEX,
            b'g'..=b'z' | b'G'..=b'Z' | b'_' => OTHER,
            _ => 0,
        };
        byte += 1;
    }
    table
};

fn kind(byte: u8) -> u8 {
    KINDS[usize::from(byte)]
}

/// Whether a word begins with a number of days, `3d`: with that it is read in another way.
fn begins_with_days(word: &[u8]) -> bool {
    let digits = word.iter().take_while(|byte| kind(**byte) == DIGIT).count();
    digits > 0
        && word.get(digits) == Some(&b'd')
        && word.get(digits + 1).is_none_or(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_do_not_count() {
        let check = |a: &str, b: &str, same: bool| {
            assert_eq!(hash(a) == hash(b), same, "{a:?} {b:?}");
        };
        check("", "", true);
        check("line 17 of 89", "line 42 of 30", true);
        check("line 17", "line 7", false);
        check(
            "a long line with the number 9",
            "a long line with the number 0",
            true,
        );
        check(
            "a long line with the number :",
            "a long line with the number 1",
            false,
        );
        check(
            "a long line with the number /",
            "a long line with the number 1",
            false,
        );
        check("test a ... ok", "test b ... ok", false);
        check("ä1", "ä2", true);
        check("ä1", "ö1", false);
        check("a", "a\0", false);
        check("±²³´µ¶·¸¹", "±²³´µ¶·¸º", false);
    }

    #[test]
    fn each_byte_is_masked_by_itself() {
        for byte in 0..=u8::MAX {
            let expect = if byte.is_ascii_digit() { b'0' } else { byte };
            for at in 0..8 {
                let mut word = [b'9', 0xff, 0, b'0', b':', b'/', 0xb1, b'x'];
                word[at] = byte;
                let masked = masked(u64::from_le_bytes(word)).to_le_bytes();
                assert_eq!(masked[at], expect, "{byte:#x} at {at}");
            }
        }
    }

    /// Proves OUT-7a: ids whose lines are taken for the same.
    #[test]
    fn ids_do_not_count() {
        let check = |a: &str, b: &str, same: bool| {
            let hashes =
                [a, b].map(|text| hash_without_ids(text, &mut Vec::new()).unwrap_or(hash(text)));
            assert_eq!(hashes[0] == hashes[1], same, "{a:?} {b:?}");
        };
        check(
            "request 9e3779b97f4a took 1 ms",
            "request 0a1b2c3d4e5f took 7 ms",
            true,
        );
        check("request 9e3779b97f4a", "request ae3779b97f4a", false);
        check("request 9e3779b97f4a", "request 9e3779b97f4g", false);
        check("request 9e3779b97f4a", "request 9e3779b97_4a", false);
        check("id=\"ab12cd3\"", "id=\"ff00ee1\"", true);
        check("id=\"ab12cd\"", "id=\"ff00ee\"", false);
        check("9e3779b97f4a is one", "0a1b2c3d4e5f is one", false);
        check("/9e3779b97f4a", "/0a1b2c3d4e5f", false);
        check("a 12345678", "a 1234567a", false);
        check("a deadbeef", "a cafebabe", false);
        check("in 3d00aa11", "in 3e00aa11", false);
        check(" ab12cd3", " ba21dc4", true);
    }
}
