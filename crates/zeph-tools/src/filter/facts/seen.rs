//! Shapes of lines that were looked at, by what the lines are but for their digits and ids.
//!
//! No shape of a fact depends on which they are.

use super::shape::Shape;

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
/// Such lines; a newer one takes the place of an older one.
#[derive(Debug)]
pub(super) struct Seen(Box<[u64]>);

impl Default for Seen {
    fn default() -> Self {
        Self(vec![0; SLOTS].into_boxed_slice())
    }
}

impl Seen {
    /// Under what a line is remembered that has this hash, the same for lines that differ in digits alone. Its last
    /// bits are 0, but not all.
    pub(super) fn key(hash: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::but_for_digits;

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
            let key = Seen::key(but_for_digits::hash(line));
            seen.add(key, shape);
            assert_eq!(seen.shape(key), Some(shape), "{line}");
        }
        let distinct = shapes.iter().flatten().map(|shape| *shape as u8);
        let distinct: std::collections::BTreeSet<u8> = distinct.collect();
        assert_eq!(distinct.len(), SHAPES.len());
    }

    proptest::proptest! {
        /// Proves OUT-7a: what is remembered of a line holds of those that differ from it in digits and ids.
        #[test]
        fn lines_that_differ_in_ids_have_one_shape(
            lines in proptest::collection::vec(
                "([0-9a-f]{7,12}|[0-9a-f]{2}|[0-9]{1,4}|not ok |# fail |error|Error: |Tests|failed|SIG|ERR_|: cannot |FAIL| passing|panicked at |\\[| |=|\"|-|:|\\.|/|\\(|\\)){0,9}",
                1..6,
            ),
            digits in proptest::collection::vec("[0-9a-f]", 400),
        ) {
            let mut digits = digits.iter().flat_map(|digit| digit.chars()).cycle();
            let mut seen = Seen::default();
            for line in lines.iter().cycle().take(60) {
                let other = |c: char| match (c, digits.next()) {
                    ('0'..='9', Some(digit)) => digit,
                    _ => c,
                };
                let line: String = line.chars().map(other).collect();
                let hash = but_for_digits::hash_without_ids(&line, &mut Vec::new());
                let key = Seen::key(hash.unwrap_or(but_for_digits::hash(&line)));
                let expect = super::super::shape::shape_alone(&line);
                if let Some(known) = seen.shape(key) {
                    proptest::prop_assert_eq!(known, expect, "{:?}", line);
                }
                seen.add(key, expect);
            }
        }
    }
}
