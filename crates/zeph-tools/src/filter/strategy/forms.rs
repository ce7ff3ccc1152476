//! The shapes of lines, looked up where a line differs from one before it in digits alone.

use super::mask::{Mask, shape_by};
use super::words::has_words;

/// How many lines are remembered.
const SLOTS: usize = 4096;
/// Where so many more lines were not found than were, hashes are not worth it for so many blocks.
const LOST: u32 = 1024;
const PASSED_OVER: u32 = 8;

/// A line that was looked at.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// What it is but for its digits.
    hash: u64,
    /// Its shape; none if it has too few words.
    shape: Option<u64>,
    /// The group of its shape.
    group: Option<u32>,
}

/// Lines that were looked at; a newer one takes the place of an older one.
#[derive(Debug)]
pub(super) struct Forms {
    slots: Box<[Slot]>,
    /// Words that a line needs.
    min_words: usize,
    /// How many more lines were not found than were.
    missed: u32,
    /// Blocks since the last one with hashes.
    passed_over: u32,
}

impl Forms {
    /// Lines of fewer words have no shape.
    pub(super) fn new(min_words: usize) -> Self {
        Self {
            slots: vec![Slot::default(); SLOTS].into_boxed_slice(),
            min_words,
            missed: 0,
            passed_over: 0,
        }
    }

    /// Whether it is worth the while to know hashes of the next lines.
    pub(super) fn are_found(&self) -> bool {
        self.missed < LOST || self.passed_over >= PASSED_OVER
    }

    /// A block comes without hashes.
    pub(super) fn pass_over(&mut self) {
        self.passed_over += 1;
    }

    /// The hash of the shape of a line; `hash`: of what it is but for its digits, if that is known.
    pub(super) fn shape(&mut self, text: &str, hash: Option<u64>) -> Option<u64> {
        let Some(hash) = hash else {
            return self.read(text).0;
        };
        self.passed_over = 0;
        let (shape, known) = self.look_up(text, hash);
        self.missed = match known {
            true => self.missed.saturating_sub(1),
            false => LOST.min(self.missed + 1),
        };
        shape
    }

    /// The hash of the shape of a line, and whether it was known.
    #[inline(always)]
    fn look_up(&mut self, text: &str, hash: u64) -> (Option<u64>, bool) {
        let hash = hash | 1;
        let slot = &self.slots[slot(hash)];
        if slot.hash == hash {
            return (slot.shape, true);
        }
        let (shape, by_digits) = self.read(text);
        if !by_digits {
            self.slots[self::slot(hash)] = Slot {
                hash,
                shape,
                group: None,
            };
        }
        (shape, false)
    }

    /// Whether the shape of a line is remembered; it is from now on, if it can be.
    pub(super) fn knows(&mut self, text: &str, hash: u64) -> bool {
        self.look_up(text, hash).1
    }

    /// The group of the lines that are this but for their digits.
    pub(super) fn group(&mut self, hash: u64) -> Option<usize> {
        let slot = &self.slots[slot(hash)];
        let group = slot.group.filter(|_| slot.hash == hash | 1)?;
        self.missed = self.missed.saturating_sub(1);
        Some(group as usize)
    }

    /// Such a line is in this group.
    pub(super) fn grouped(&mut self, hash: u64, group: usize) {
        let slot = &mut self.slots[slot(hash)];
        if slot.hash == hash | 1 {
            slot.group = u32::try_from(group).ok();
        }
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

fn slot(hash: u64) -> usize {
    (hash >> 40) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::filter::but_for_digits;

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
                let hash = but_for_digits::hash_without_ids(&line, &mut Vec::new());
                let hash = hash.unwrap_or(but_for_digits::hash(&line));
                prop_assert_eq!(forms.shape(&line, Some(hash)), expect, "{:?}", line);
            }
        }

        /// Proves OUT-7d: an id is an id, whichever it is.
        #[test]
        fn lines_that_differ_in_ids_have_one_shape(
            lines in proptest::collection::vec(
                "([0-9a-f]{7,12}|[0-9]{1,3}[a-f][0-9]{3,6}|[0-9a-f]{3}|[0-9]{1,4}|a word| |=|\"|-|:|\\.|/|ms|s |d|T|exit|status ){0,9}",
                1..6,
            ),
            digits in proptest::collection::vec("[0-9a-f]", 400),
        ) {
            let mut digits = digits.iter().flat_map(|digit| digit.chars()).cycle();
            let mut forms = Forms::new(1);
            let hash = |line: &str| {
                let hash = but_for_digits::hash_without_ids(line, &mut Vec::new());
                hash.unwrap_or(but_for_digits::hash(line))
            };
            for line in lines.iter().cycle().take(60) {
                let other = |c: char| match (c, digits.next()) {
                    ('0'..='9' | 'a'..='f', Some(digit)) => digit,
                    _ => c,
                };
                let line: String = line.chars().map(other).collect();
                let expect = has_words(&line, 1).then(|| shape_by(&line, Mask::Shape).0);
                prop_assert_eq!(forms.shape(&line, Some(hash(&line))), expect, "{:?}", line);
            }
        }
    }
}
