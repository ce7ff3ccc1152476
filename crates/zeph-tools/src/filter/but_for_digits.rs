//! What lines are but for their digits: commands print the same line again and again with other numbers.

use crate::bytes::{between, packed};

/// 2^64 divided by the golden ratio: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// A factor (of MurmurHash3's mixer) that is never cancelled out: no text holds the byte 0xff.
const NO_TEXT: u64 = 0xff51_afd7_ed55_8ccd;

/// A byte in every byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// A hash that is the same for lines of one length that differ in digits alone.
pub(super) fn hash(text: &str) -> u64 {
    let mut hash = text.len() as u64;
    let mut add = |low: u64, high: u64| {
        let (low, high) = (masked(low), masked(high));
        let product = u128::from(low ^ hash ^ GOLDEN) * u128::from(high ^ NO_TEXT);
        hash = product as u64 ^ (product >> 64) as u64;
    };
    let bytes = text.as_bytes();
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
    let digits = (between(word, b'0', b'9') >> 7) * 0xff;
    (word & !digits) | (digits & (0x30 * ONES))
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
}
