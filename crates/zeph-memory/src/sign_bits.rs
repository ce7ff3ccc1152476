//! Sign bits of vectors: the number of different bits of two vectors estimates the angle between them. No I/O.
//!
//! A vector is rotated at random, always in the same way. Each bit is the sign of one number of the result (M. Charikar,
//! "Similarity Estimation Techniques from Rounding Algorithms", 2002). The rotation is three rounds of changed signs and
//! the Walsh-Hadamard transform. The estimate therefore holds also for short vectors and for positive numbers only.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The minimum number of bits of a vector.
const MIN_BITS: usize = 512;
/// The maximum number of bits of a vector. The vectors themselves decide finer differences.
const MAX_BITS: usize = 1024;
/// The number of rounds of the rotation.
const ROUNDS: u64 = 3;
/// The number of bytes of a word of bits.
const WORD_BYTES: usize = size_of::<u64>();

/// Returns the number of bytes of the bits of a vector of `length` numbers.
pub(crate) fn width(length: usize) -> usize {
    length.clamp(MIN_BITS, MAX_BITS).next_multiple_of(64) / 8
}

/// Computes the bits of `vector`, which take [`width`] bytes.
pub(crate) fn signs(vector: &[f32]) -> Vec<u8> {
    let mut turned = vector.to_vec();
    turned.resize(vector.len().max(MIN_BITS).next_power_of_two(), 0.0);
    for round in 0..ROUNDS {
        flip(&mut turned, round);
        transform(&mut turned);
    }
    let bits = turned.chunks(8).take(width(vector.len()));
    let byte = |numbers: &[f32]| {
        let bits = numbers.iter().enumerate();
        bits.fold(0_u8, |byte, (at, number)| {
            byte | u8::from(*number < 0.0) << at
        })
    };
    bits.map(byte).collect()
}

/// Changes the sign of about half of the numbers. `round` determines which.
fn flip(numbers: &mut [f32], round: u64) {
    for (at, numbers) in (0_u64..).zip(numbers.chunks_mut(64)) {
        let mut bits = mixed(round << 32 | at);
        for number in numbers {
            if bits & 1 == 1 {
                *number = -*number;
            }
            bits >>= 1;
        }
    }
}

/// Computes pseudo-random bits with the finalizer of SplitMix64.
fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Computes the Walsh-Hadamard transform of a power of two of numbers. It has no scale factor, because only the signs
/// are used.
fn transform(numbers: &mut [f32]) {
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (left, right) in left.iter_mut().zip(right) {
                (*left, *right) = (*left + *right, *left - *right);
            }
        }
        half *= 2;
    }
}

/// The facts whose bits differ least from those of a query.
pub(crate) struct Nearest {
    query: Vec<u64>,
    most: usize,
    found: BinaryHeap<(u32, Reverse<i64>)>,
}

impl Nearest {
    /// Creates an empty search for the `most` facts that are nearest to `signs`.
    pub(crate) fn new(signs: &[u8], most: usize) -> Self {
        Self {
            query: words(signs).collect(),
            most,
            found: BinaryHeap::with_capacity(most + 1),
        }
    }

    /// Adds a fact. Of facts with the same distance, those with the highest numbers are retained.
    pub(crate) fn look(&mut self, fact: i64, signs: &[u8]) {
        let pairs = self.query.iter().zip(words(signs));
        let distance = pairs.map(|(a, b)| (a ^ b).count_ones()).sum();
        let this = (distance, Reverse(fact));
        if self.found.len() < self.most {
            self.found.push(this);
        } else if let Some(mut farthest) = self.found.peek_mut()
            && this < *farthest
        {
            *farthest = this;
        }
    }

    /// Returns the numbers of the nearest facts.
    pub(crate) fn facts(self) -> BTreeSet<i64> {
        let found = self.found.into_iter();
        found.map(|(_, Reverse(fact))| fact).collect()
    }
}

fn words(signs: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = signs.as_chunks::<WORD_BYTES>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn distance(a: &[f32], b: &[f32]) -> u32 {
        let pairs = signs(a).into_iter().zip(signs(b));
        pairs.map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    #[test]
    fn sign_bits_grow_with_the_vector_length() {
        let check = |length: usize, bits: usize| {
            assert_eq!(width(length) * 8, bits, "{length}");
            assert_eq!(signs(&vec![1.0; length]).len() * 8, bits, "{length}");
        };
        check(1, 512);
        check(384, 512);
        check(768, 768);
        check(770, 832);
        check(1536, 1024);
        check(4096, 1024);
    }

    proptest! {
        /// The bits estimate the angle, also of short vectors with only positive numbers.
        #[test]
        fn sign_bits_estimate_the_angle(
            a in prop::collection::vec(0.0_f32..1.0, 3..40),
            seed in prop::collection::vec(-1.0_f32..1.0, 40),
            share in 0.0_f32..1.0,
        ) {
            let b: Vec<f32> = a.iter().zip(&seed).map(|(a, b)| a * share + b * (1.0 - share)).collect();
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let cosine = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
            prop_assume!(cosine.is_finite());
            let angle = cosine.clamp(-1.0, 1.0).acos() / std::f32::consts::PI;
            let differ = f32::from(u16::try_from(distance(&a, &b)).unwrap()) / 512.0;
            prop_assert!((angle - differ).abs() < 0.15, "{angle} {differ}");
        }
    }

    #[test]
    fn nearest_facts_are_found() {
        let check = |most: usize, expect: &[i64]| {
            let mut nearest = Nearest::new(&[0; 8], most);
            for (fact, signs) in [(1, 0b111), (2, 0b1), (3, 0b11), (4, 0b100), (5, 0xff)] {
                nearest.look(fact, &[0, 0, 0, signs, 0, 0, 0, 0]);
            }
            let facts: Vec<i64> = nearest.facts().into_iter().collect();
            assert_eq!(facts, expect, "{most}");
        };
        check(0, &[]);
        check(1, &[4]);
        check(2, &[2, 4]);
        check(3, &[2, 3, 4]);
        check(9, &[1, 2, 3, 4, 5]);
    }
}
