//! Conversion of the bytes of tokens to displayable text.

/// Collects bytes until they form complete characters.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    pending: Vec<u8>,
}

impl Utf8 {
    /// Adds bytes, and returns the characters that are complete now. Invalid bytes are replaced.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut done = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if done + invalid.len() == self.pending.len() && may_go_on(invalid) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done += invalid.len();
        }
        self.pending.drain(..done);
        text
    }
}

/// Whether bytes are the beginning of a character.
fn may_go_on(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn characters_are_emitted_whole() {
        let check = |pieces: &[&[u8]], expect: &[&str]| {
            let mut utf8 = Utf8::default();
            let got: Vec<_> = pieces.iter().map(|piece| utf8.push(piece)).collect();
            assert_eq!(got, expect, "{pieces:?}");
        };
        check(&[b"a", b"b"], &["a", "b"]);
        check(&[b"\xc3", b"\xa4x"], &["", "\u{e4}x"]);
        check(&[b"\xf0\x9f", b"\x98", b"\x80"], &["", "", "\u{1f600}"]);
        check(&[b"\xff", b"a"], &["\u{fffd}", "a"]);
        check(&[b"\xc3", b"a"], &["", "\u{fffd}a"]);
    }

    proptest! {
        #[test]
        fn text_is_equal_for_any_cuts(text in "\\PC{0,40}", cut in 0usize..200) {
            let cut = cut.min(text.len());
            let mut utf8 = Utf8::default();
            let mut got = utf8.push(&text.as_bytes()[..cut]);
            got.push_str(&utf8.push(&text.as_bytes()[cut..]));
            prop_assert_eq!(got, text);
        }
    }
}
