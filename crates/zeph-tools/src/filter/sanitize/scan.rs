//! Finds control characters.

/// How many bytes of `text` are neither controls, but for line breaks and tabs, nor may begin
/// one.
pub(super) fn plain_prefix(text: &[u8]) -> usize {
    // Without a branch within a block, so that it is compared many bytes at a time. 0xC2 begins
    // U+0080 to U+009F, and other characters.
    const BLOCK: usize = 64;
    let special = |byte: u8, next: u8| {
        let control = (byte < 0x20) & (byte != b'\n') & (byte != b'\t') | (byte == 0x7f);
        control | ((byte == 0xc2) & (next < 0xa0))
    };
    let mut at = 0;
    while let (Some(block), Some(next)) = (text.get(at..at + BLOCK), text.get(at + 1..=at + BLOCK))
    {
        let pairs = block.iter().zip(next);
        if pairs.fold(false, |any, (byte, next)| any | special(*byte, *next)) {
            break;
        }
        at += BLOCK;
    }
    let rest = &text[at..];
    let next = rest.iter().skip(1).chain([&b' ']);
    let found = rest
        .iter()
        .zip(next)
        .position(|(byte, next)| special(*byte, *next));
    at + found.unwrap_or(rest.len())
}
