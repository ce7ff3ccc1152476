//! Bytes of a long text that are looked for 64 at a time, with the processor's instructions for many bytes.

use std::marker::PhantomData;

use wide::u8x16;

/// Bytes that are looked at together.
pub(crate) const BLOCK: usize = 64;

/// Which bytes of a block are of a class, a bit for each: `class` says it of sixteen of them.
fn mask(block: &[u8; BLOCK], class: impl Fn(u8x16) -> u8x16) -> u64 {
    let parts = block.as_chunks::<16>().0.iter().rev();
    parts.fold(0, |mask, part| {
        mask << 16 | u64::from(class(u8x16::new(*part)).to_bitmask())
    })
}

/// The same of the block that begins at a place, which the text may end in.
pub(crate) fn mask_at(bytes: &[u8], at: usize, class: impl Fn(u8x16) -> u8x16) -> u64 {
    match bytes[at..].first_chunk() {
        Some(block) => mask(block, class),
        None => mask(&last_block(bytes, at), class),
    }
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
pub(crate) fn last_block(bytes: &[u8], at: usize) -> [u8; BLOCK] {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Calls `check` with a text of more than a block for each byte and each place where it may stand.
    pub(crate) fn each_byte_anywhere(check: impl Fn(&[u8], u8, usize)) {
        const LENGTH: usize = BLOCK + 11;
        for byte in 0..=u8::MAX {
            for at in 0..LENGTH {
                let mut text = [b'x'; LENGTH];
                text[at] = byte;
                check(&text, byte, at);
            }
        }
    }

    #[test]
    fn finds_class_bytes_at_every_offset() {
        each_byte_anywhere(|text, byte, at| {
            assert_eq!(is_ascii(text), byte.is_ascii(), "{byte:#x} at {at}");
        });
    }
}
