//! Where control characters stand in a text: eight bytes are looked at together.

/// Every byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of every byte.
const HIGH: u64 = 0x80 * ONES;

/// How many bytes `bytes` begins with that are no control character of ASCII, line breaks and tabs apart.
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = controls(u64::from_le_bytes(*word));
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let found = rest.iter().position(|byte| is_control(*byte));
    words.len() * 8 + found.unwrap_or(rest.len())
}

/// Whether a byte is a control character of ASCII, but neither a line break nor a tab.
pub(crate) fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t')
}

/// The highest bit of each byte of `word` that is a control character, line breaks and tabs apart.
fn controls(word: u64) -> u64 {
    let low = word & !HIGH;
    // No byte carries into the next one.
    let is_not = |byte: u8| ((low ^ (u64::from(byte) * ONES)) + !HIGH) & HIGH;
    let shown = (low + (0x80 - 0x20) * ONES) & is_not(0x7f);
    let breaks = !(is_not(b'\n') & is_not(b'\t'));
    !(shown | breaks | word) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_told_by_itself() {
        for byte in 0..=u8::MAX {
            for at in 0..20 {
                let mut text = *b"\n\ta~ \xc2\x80\xff\xe2\x9c\x95 abcdefgh";
                text[at] = byte;
                let expect = if is_control(byte) { at } else { text.len() };
                assert_eq!(plain_prefix(&text), expect, "{byte:#x} at {at}");
            }
        }
    }

    #[test]
    fn the_first_is_found() {
        let check = |text: &[u8], expect| assert_eq!(plain_prefix(text), expect, "{text:?}");
        check(b"", 0);
        check(b"\x1b", 0);
        check(b"a\r\x1b\n\x08bcdef", 1);
        check(b"0123456789\x7f\x00", 10);
        check(b"\x80\x81\x00\x00\x00\x00\x00\x00", 2);
    }
}
