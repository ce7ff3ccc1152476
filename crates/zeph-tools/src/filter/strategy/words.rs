//! Whether a line has words: runs of three letters and more, without digits.
//!
//! Many bytes are looked at together, as a bit each.

use crate::bytes::{between, bits};

/// Bytes that are looked at together; the last bit of a word stays free.
const BLOCK: usize = 63;

/// Whether a line has that many words.
pub(super) fn has_words(text: &str, least: usize) -> bool {
    let mut rest = text.as_bytes();
    let mut words = 0;
    while words < least && !rest.is_empty() {
        let (letters, digits) = classes(&rest[..rest.len().min(BLOCK)]);
        let wordy = letters | digits;
        let starts = wordy & !(wordy << 1);
        let long = starts & letters & (letters >> 1) & (letters >> 2);
        // What is added to the first letter of a run is carried to the byte behind its last one.
        let behind = letters.wrapping_add(long) & !letters;
        // A run that may go on behind the block is looked at with what follows.
        let open = match rest.len() > BLOCK {
            true => (wordy << 1).leading_ones() as usize,
            false => 0,
        };
        let taken = rest.len().min(BLOCK) - open;
        words += (behind & !digits & !(u64::MAX << taken)).count_ones() as usize;
        if open == 0 {
            words += usize::from(behind & !digits & (1 << taken) != 0);
        }
        rest = match taken {
            0 => {
                let (word, more) = long_run(rest);
                words += usize::from(word);
                more
            }
            _ => &rest[taken..],
        };
    }
    words >= least
}

/// Whether the run of more than a block with which `bytes` begin is a word, and what is behind it.
fn long_run(bytes: &[u8]) -> (bool, &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_alphanumeric());
    let (run, more) = bytes.split_at(end.unwrap_or(bytes.len()));
    (run.iter().all(u8::is_ascii_alphabetic), more)
}

/// Which of at most [`BLOCK`] bytes are letters, and which are digits.
fn classes(bytes: &[u8]) -> (u64, u64) {
    let mut block = [0; 64];
    block[..bytes.len()].copy_from_slice(bytes);
    let (mut letters, mut digits) = (0, 0);
    for (index, eight) in block.as_chunks::<8>().0.iter().enumerate() {
        let eight = u64::from_le_bytes(*eight);
        let lower = eight | 0x2020_2020_2020_2020;
        letters |= bits(between(lower, b'a', b'z')) << (8 * index);
        digits |= bits(between(eight, b'0', b'9')) << (8 * index);
    }
    (letters, digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> usize {
        let runs = text.split(|c: char| !c.is_ascii_alphanumeric());
        let is_word =
            |run: &&str| run.len() > 2 && run.bytes().all(|byte| byte.is_ascii_alphabetic());
        runs.filter(is_word).count()
    }

    proptest! {
        #[test]
        fn each_word_counts_once(text in "([a-c1 .é_]|[a-z]{1,5}[ :0]?|[a-z]{50,90}|[a-z0-9 ]{58,66}){0,30}") {
            for least in 0..8 {
                prop_assert_eq!(has_words(&text, least), words(&text) >= least, "{} of {:?}", least, text);
            }
        }
    }
}
