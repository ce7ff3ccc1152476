//! Bytes of a long text that are looked for 64 at a time, with the processor's instructions for many bytes.

use std::marker::PhantomData;

use wide::u8x16;

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// Which bytes of a block are of a class, a bit for each: `class` says it of sixteen of them.
fn mask(block: &[u8; BLOCK], class: impl Fn(u8x16) -> u8x16) -> u64 {
    let parts = block.as_chunks::<16>().0.iter().rev();
    parts.fold(0, |mask, part| {
        mask << 16 | u64::from(class(u8x16::new(*part)).to_bitmask())
    })
}

/// The bytes from `least` to `most`.
pub(crate) fn between(bytes: u8x16, least: u8, most: u8) -> u8x16 {
    let offset = bytes - u8x16::splat(least);
    offset.min(u8x16::splat(most - least)).simd_eq(offset)
}

/// The bytes that are `byte`.
pub(crate) fn equal(bytes: u8x16, byte: u8) -> u8x16 {
    bytes.simd_eq(u8x16::splat(byte))
}

/// The last block of a text, which ends before the block does: blanks stand behind it.
fn last_block(bytes: &[u8], at: usize) -> [u8; BLOCK] {
    let rest = &bytes[at..];
    let mut block = [b' '; BLOCK];
    let length = rest.len().min(BLOCK);
    block[..length].copy_from_slice(&rest[..length]);
    block
}

/// Whether no byte is part of a character beyond ASCII.
pub(crate) fn is_ascii(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    blocks.iter().all(|block| mask(block, |part| part) == 0) && rest.is_ascii()
}

/// What is looked for in blocks.
pub(crate) trait Sought {
    /// The bytes of the block that begins at a place, a bit for each.
    fn mask_at(bytes: &[u8], at: usize) -> u64;
}

/// Goes through the places of what is sought, in order.
pub(crate) struct Places<'t, S> {
    bytes: &'t [u8],
    /// Where the block at hand begins.
    block: usize,
    /// Those of it that are left, a bit for each byte.
    left: u64,
    sought: PhantomData<S>,
}

impl<'t, S: Sought> Places<'t, S> {
    pub(crate) fn of(bytes: &'t [u8]) -> Self {
        Self {
            bytes,
            block: 0,
            left: S::mask_at(bytes, 0),
            sought: PhantomData,
        }
    }
}

impl<S: Sought> Iterator for Places<'_, S> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.left == 0 {
            self.block += BLOCK;
            if self.block >= self.bytes.len() {
                self.block = self.bytes.len();
                return None;
            }
            self.left = S::mask_at(self.bytes, self.block);
        }
        let place = self.block + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        Some(place)
    }
}

/// Control characters of ASCII, line breaks and tabs apart, and all bytes 0xC2.
pub(crate) struct Special;

pub(crate) type Specials<'t> = Places<'t, Special>;

impl Sought for Special {
    fn mask_at(bytes: &[u8], at: usize) -> u64 {
        match bytes[at..].first_chunk() {
            Some(block) => specials(block),
            None => specials(&last_block(bytes, at)),
        }
    }
}

fn specials(block: &[u8; BLOCK]) -> u64 {
    mask(block, |part| {
        let breaks = between(part, b'\t', b'\n');
        let controls = between(part, 0, 0x1f) & !breaks;
        controls | equal(part, 0x7f) | equal(part, 0xc2)
    })
}

/// Line breaks before which no byte stands that is seen by itself.
pub(crate) struct BareBreak;

pub(crate) type BareBreaks<'t> = Places<'t, BareBreak>;

impl Sought for BareBreak {
    fn mask_at(bytes: &[u8], at: usize) -> u64 {
        let Some(start) = at.checked_sub(1) else {
            let block = last_block(bytes, 0);
            let mut before = [b'\n'; BLOCK];
            before[1..].copy_from_slice(&block[..BLOCK - 1]);
            return bare(&before, &block);
        };
        match (bytes[start..].first_chunk(), bytes[at..].first_chunk()) {
            (Some(before), Some(block)) => bare(before, block),
            _ => bare(&last_block(bytes, start), &last_block(bytes, at)),
        }
    }
}

/// The bare line breaks of a block; of each byte the one `before` it.
fn bare(before: &[u8; BLOCK], block: &[u8; BLOCK]) -> u64 {
    let (parts, parts_before) = (block.as_chunks::<16>().0, before.as_chunks::<16>().0);
    let both = parts.iter().zip(parts_before).rev();
    both.fold(0, |mask, (part, before)| {
        let seen = between(u8x16::new(*before), b'!', b'~');
        let bare = equal(u8x16::new(*part), b'\n') & !seen;
        mask << 16 | u64::from(bare.to_bitmask())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_block_holds_is_found() {
        const LENGTH: usize = BLOCK + 11;
        for byte in 0..=u8::MAX {
            for at in 0..LENGTH {
                let mut text = [b'x'; LENGTH];
                text[at] = byte;
                let special = byte == 0xc2 || byte.is_ascii_control() && !b"\n\t".contains(&byte);
                let found: Vec<usize> = Specials::of(&text).collect();
                let expect = Vec::from_iter(special.then_some(at));
                assert_eq!(found, expect, "{byte:#x} at {at}");
                assert_eq!(is_ascii(&text), byte.is_ascii(), "{byte:#x} at {at}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn bare_breaks_are_found(
            text in proptest::collection::vec(proptest::sample::select(&b"\n\n \tx!~\x7f\xa0"[..]), 0..300),
            gap in 0_usize..200,
        ) {
            let text = [&text[..], &vec![b'x'; gap], &text[..]].concat();
            let is_bare = |at: &usize| {
                text[*at] == b'\n' && !(*at > 0 && text[at - 1].is_ascii_graphic())
            };
            let expect: Vec<usize> = (0..text.len()).filter(is_bare).collect();
            proptest::prop_assert_eq!(BareBreaks::of(&text).collect::<Vec<_>>(), expect);
        }
    }
}
