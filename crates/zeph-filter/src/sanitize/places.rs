//! Which bytes of a text the model of a terminal looks for, many at once.

use wide::u8x16;

use crate::blocks::{BLOCK, Places, Sought, between, equal, last_block, mask_at};

/// Control characters of ASCII, line breaks and tabs apart, and all bytes 0xC2.
pub(crate) struct Special;

pub(crate) type Specials<'t> = Places<'t, Special>;

impl Sought for Special {
    fn mask_at(bytes: &[u8], at: usize) -> u64 {
        mask_at(bytes, at, |part| {
            let breaks = between(part, b'\t', b'\n');
            let controls = between(part, 0, 0x1f) & !breaks;
            controls | equal(part, 0x7f) | equal(part, 0xc2)
        })
    }
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
    use crate::blocks::tests::each_byte_anywhere;

    #[test]
    fn what_a_block_holds_is_found() {
        each_byte_anywhere(|text, byte, at| {
            let special = byte == 0xc2 || byte.is_ascii_control() && !b"\n\t".contains(&byte);
            let found: Vec<usize> = Specials::of(text).collect();
            let expect = Vec::from_iter(special.then_some(at));
            assert_eq!(found, expect, "{byte:#x} at {at}");
        });
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
