//! Shapes of lines that were looked at, by what the lines are but for their digits.
//!
//! Commands print the same line again and again with other numbers. No shape of a fact depends on which
//! number it is, but for whether it is 0.

use super::shape::Shape;
use crate::bytes::{between, packed};

/// How many lines are remembered.
const SLOTS: usize = 4096;
/// The bits of an entry that tell the shape; the others are those of the hash.
const SHAPE: u64 = 0b111;
/// What a shape is told as; 0 is none.
const SHAPES: [Shape; 6] = [
    Shape::Error,
    Shape::Failing,
    Shape::Panic,
    Shape::Summary,
    Shape::Complaint,
    Shape::Chatter,
];
/// 2^64 divided by the golden ratio: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// A factor (of MurmurHash3's mixer) that is never cancelled out: no text holds the byte 0xff.
const NO_TEXT: u64 = 0xff51_afd7_ed55_8ccd;

/// A byte in every byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Such lines; a newer one takes the place of an older one.
#[derive(Debug)]
pub(super) struct Seen(Box<[u64]>);

impl Default for Seen {
    fn default() -> Self {
        Self(vec![0; SLOTS].into_boxed_slice())
    }
}

impl Seen {
    /// The hash of a line, the same for lines that differ in the digits 1 to 9 alone. Its last bits are 0,
    /// but not all.
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
        (hash & !SHAPE).max(SHAPE + 1)
    }

    /// The shape of a line that has this hash, if one is known; `Some(None)`: it has none.
    pub(super) fn shape(&self, hash: u64) -> Option<Option<Shape>> {
        let entry = self.0[slot(hash)];
        let known = entry & !SHAPE == hash;
        known.then(|| {
            SHAPES
                .get((entry & SHAPE).wrapping_sub(1) as usize)
                .copied()
        })
    }

    pub(super) fn add(&mut self, hash: u64, shape: Option<Shape>) {
        let place = SHAPES.iter().position(|other| Some(*other) == shape);
        self.0[slot(hash)] = hash | place.map_or(0, |place| place as u64 + 1);
    }
}

fn slot(hash: u64) -> usize {
    (hash >> 40) as usize % SLOTS
}

/// The word with each of its bytes that is a digit from 1 to 9 replaced by `1`.
fn masked(word: u64) -> u64 {
    let digits = (between(word, b'1', b'9') >> 7) * 0xff;
    (word & !digits) | (digits & (0x31 * ONES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-7a: a shape that is not among those that are told would be taken for none the second time.
    #[test]
    fn every_shape_is_remembered() {
        let mut seen = Seen::default();
        let lines = [
            "error: it broke",
            "FAILED tests/test_a.py::test_b",
            "thread 'main' panicked at src/a.rs:3:5:",
            "Tests: 3 failed",
            "rm: cannot remove 'a1': No such file or directory",
            "2026-01-01 10:00:00 ERROR no",
            "all is well",
        ];
        let shapes = lines.map(super::super::shape::shape_alone);
        for (line, shape) in lines.into_iter().zip(shapes) {
            assert_eq!(shape.is_none(), line == "all is well", "{line}");
            seen.add(Seen::hash(line), shape);
            assert_eq!(seen.shape(Seen::hash(line)), Some(shape), "{line}");
        }
        let distinct = shapes.iter().flatten().map(|shape| *shape as u8);
        let distinct: std::collections::BTreeSet<u8> = distinct.collect();
        assert_eq!(distinct.len(), SHAPES.len());
    }

    #[test]
    fn digits_do_not_count_but_zero_does() {
        let check = |a: &str, b: &str, same: bool| {
            assert_eq!(Seen::hash(a) == Seen::hash(b), same, "{a:?} {b:?}");
        };
        check("", "", true);
        check("line 17 of 89", "line 42 of 31", true);
        check("1 failed", "0 failed", false);
        check(
            "a long line with the number 9",
            "a long line with the number 1",
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
            let expect = if (b'1'..=b'9').contains(&byte) {
                b'1'
            } else {
                byte
            };
            for at in 0..8 {
                let mut word = [b'9', 0xff, 0, b'0', b':', b'/', 0xb1, b'x'];
                word[at] = byte;
                let masked = masked(u64::from_le_bytes(word)).to_le_bytes();
                assert_eq!(masked[at], expect, "{byte:#x} at {at}");
            }
        }
    }
}
