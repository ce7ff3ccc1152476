//! The hash that a shape becomes.

use crate::bytes::packed;

/// Constants without structure, from the digits of pi and of the golden ratio.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const OTHER: u64 = 0x1319_8a2e_0370_7344;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash that is the same in every run: sixteen bytes a step.
pub(super) struct Hash {
    value: u64,
}

impl Hash {
    pub(super) fn new() -> Self {
        Self { value: SEED }
    }

    pub(super) fn mark(&mut self, mark: u64) {
        self.value = (self.value ^ mark).wrapping_mul(FACTOR);
        self.value ^= self.value >> 29;
    }

    /// Adds a text; where it ends makes a difference.
    #[inline(always)]
    pub(super) fn text(&mut self, text: &[u8]) {
        let (blocks, rest) = text.as_chunks::<16>();
        for block in blocks {
            let both = u128::from_le_bytes(*block);
            self.both(both as u64, (both >> 64) as u64);
        }
        if !rest.is_empty() {
            let (low, high) = match (rest.first_chunk(), rest.last_chunk()) {
                (Some(low), Some(high)) => (u64::from_le_bytes(*low), u64::from_le_bytes(*high)),
                _ => (packed(rest), 0),
            };
            self.both(low, high ^ (rest.len() as u64).wrapping_mul(FACTOR));
        }
    }

    /// A product that is folded, as in wyhash (public domain).
    fn both(&mut self, low: u64, high: u64) {
        let product = u128::from(low ^ self.value) * u128::from(high ^ OTHER);
        self.value = product as u64 ^ (product >> 64) as u64 ^ self.value.rotate_left(23);
    }

    /// The hash of all that was added.
    pub(super) fn end(self) -> u64 {
        self.value.wrapping_mul(FACTOR)
    }
}
