//! Whether a line has words: runs of three letters and more, without digits.
//!
//! Many bytes are looked at together, as a bit each.

use super::mask::{WINDOW, Window};

/// Bytes that are looked at together.
const BLOCK: usize = u64::BITS as usize;
/// Letters of the shortest word.
const SHORTEST: usize = 3;

/// A run of letters and digits that goes on behind a block.
#[derive(Default)]
struct Open {
    length: usize,
    has_digit: bool,
}

impl Open {
    /// Goes on with the first `length` bytes of a block; returns whether it is a word.
    fn grow(&mut self, length: usize, digits: u64) -> bool {
        self.length += length;
        self.has_digit |= digits & low(length) != 0;
        self.length >= SHORTEST && !self.has_digit
    }
}

/// Whether a line has that many words.
pub(super) fn has_words(text: &str, least: usize) -> bool {
    let bytes = text.as_bytes();
    let mut words = 0;
    let mut open = Open::default();
    let mut at = 0;
    while words < least && at < bytes.len() {
        let (mut letters, digits) = classes(bytes, at);
        let goes_on = (letters | digits).trailing_ones() as usize;
        let is_word = open.grow(goes_on, digits);
        if goes_on < BLOCK {
            words += usize::from(is_word);
            let last = (letters | digits).leading_ones() as usize;
            open = Open::default();
            open.grow(last, digits.checked_shr((BLOCK - last) as u32).unwrap_or(0));
            letters &= !low(goes_on) & low(BLOCK - last);
            let digits = digits & !low(goes_on) & low(BLOCK - last);
            words += words_of(letters, digits);
        }
        at += BLOCK;
    }
    words + usize::from(open.grow(0, 0)) >= least
}

/// Runs of letters that are words, none of which is at either end of the block.
fn words_of(letters: u64, digits: u64) -> usize {
    let wordy = letters | digits;
    let starts = wordy & !(wordy << 1);
    let long = starts & letters & (letters >> 1) & (letters >> 2);
    // What is added to the first letter of a run is carried to the byte behind its last one.
    let behind = letters.wrapping_add(long) & !letters;
    (behind & !digits).count_ones() as usize
}

/// The first `length` bits.
fn low(length: usize) -> u64 {
    u64::MAX.checked_shr((BLOCK - length) as u32).unwrap_or(0)
}

/// Which of the bytes from `at` on are letters, and which are digits.
fn classes(bytes: &[u8], at: usize) -> (u64, u64) {
    let (mut letters, mut digits) = (0, 0);
    for part in (0..BLOCK).step_by(WINDOW) {
        if at + part >= bytes.len() {
            break;
        }
        let window = Window::at(bytes, at + part);
        letters |= u64::from(window.alphabetic()) << part;
        digits |= u64::from(window.digits()) << part;
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
