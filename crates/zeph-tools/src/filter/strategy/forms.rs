//! The shapes of lines, looked up where a line differs from one before it in digits alone.

use super::mask::{Mask, shape_by};
use super::words::has_words;
use crate::filter::but_for_digits;

/// How many lines are remembered.
const SLOTS: usize = 512;
/// Of so many lines, the first few are looked up where none before them was found: of lines that are all
/// different each would be looked up in vain.
const ROUND: u32 = 256;
const TRIED: u32 = 16;

/// Lines that were looked at; a newer one takes the place of an older one.
#[derive(Debug)]
pub(super) struct Forms {
    /// What a line is but for its digits, and its shape; no shape if it has too few words.
    slots: Box<[(u64, Option<u64>)]>,
    /// Words that a line needs.
    min_words: usize,
    /// Lines since the last one that was found.
    missed: u32,
}

impl Forms {
    /// Lines of fewer words have no shape.
    pub(super) fn new(min_words: usize) -> Self {
        Self {
            slots: vec![(0, None); SLOTS].into_boxed_slice(),
            min_words,
            missed: 0,
        }
    }

    /// The hash of the shape of a line.
    pub(super) fn shape(&mut self, text: &str) -> Option<u64> {
        if self.missed % ROUND >= TRIED {
            self.missed = self.missed.wrapping_add(1);
            return self.read(text).0;
        }
        let hash = but_for_digits::hash(text) | 1;
        let slot = (hash >> 40) as usize % SLOTS;
        if let Some((known, shape)) = self.slots.get(slot)
            && *known == hash
        {
            self.missed = 0;
            return *shape;
        }
        self.missed = self.missed.wrapping_add(1);
        let (shape, by_digits) = self.read(text);
        if !by_digits {
            self.slots[slot] = (hash, shape);
        }
        shape
    }

    /// The shape of a line, and whether it is another one with other digits.
    fn read(&self, text: &str) -> (Option<u64>, bool) {
        if !has_words(text, self.min_words) {
            return (None, false);
        }
        let (shape, by_digits) = shape_by(text, Mask::Shape);
        (Some(shape), by_digits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_remembered_is_what_is_read(
            lines in proptest::collection::vec(
                "(0x|1x|GET|\" |status |code=|exit |level:|[0-9]{1,5}|-|[a-f]{1,4}|a word |: |/|ms|\\.){0,8}",
                1..6,
            ),
            digits in proptest::collection::vec("[0-9]", 200),
        ) {
            let mut forms = Forms::new(1);
            let mut digits = digits.iter().cycle();
            for line in lines.iter().cycle().take(40) {
                let other = |c: char| match (c.is_ascii_digit(), digits.next()) {
                    (true, Some(digit)) => digit.chars().next().unwrap_or(c),
                    _ => c,
                };
                let line: String = line.chars().map(other).collect();
                let expect = has_words(&line, 1).then(|| shape_by(&line, Mask::Shape).0);
                prop_assert_eq!(forms.shape(&line), expect, "{:?}", line);
            }
        }
    }
}
