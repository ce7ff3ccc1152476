//! Decoder for the output of commands.

use std::borrow::Cow;

use memchr::memchr;

/// Converts bytes that arrive in pieces into text. Invalid UTF-8 becomes U+FFFD as in [`String::from_utf8_lossy`],
/// regardless of the piece boundaries. NUL is removed. Text after a UTF-16 byte order mark is decoded as UTF-16.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The start of an incomplete character: at most three bytes.
    pending: Vec<u8>,
    encoding: Encoding,
}

/// The encoding of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Encoding {
    /// The first two bytes have not arrived.
    #[default]
    Unknown,
    Utf8,
    Utf16 {
        big_endian: bool,
    },
}

impl Decoder {
    /// Decodes the next piece.
    pub fn decode<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, str> {
        let bytes = match self.encoding {
            Encoding::Unknown => self.begin(bytes),
            _ => bytes,
        };
        match self.encoding {
            Encoding::Unknown => Cow::Borrowed(""),
            Encoding::Utf8 => self.utf8(bytes),
            Encoding::Utf16 { big_endian } => Cow::Owned(self.utf16(bytes, big_endian)),
        }
    }

    /// Detects the encoding by the first bytes. Returns the bytes after a byte order mark.
    fn begin<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        const MARKS: [([u8; 2], bool); 2] = [([0xff, 0xfe], false), ([0xfe, 0xff], true)];
        let Some(first) = self.pending.first().or(bytes.first()).copied() else {
            return bytes;
        };
        let second = bytes.get(1 - self.pending.len()).copied();
        let marks = MARKS.iter().filter(|(mark, _)| mark[0] == first);
        for (mark, big_endian) in marks {
            match second {
                None => {
                    self.pending = vec![first];
                    return &[];
                }
                Some(second) if second == mark[1] => {
                    let big_endian = *big_endian;
                    self.encoding = Encoding::Utf16 { big_endian };
                    let rest = &bytes[2 - self.pending.len()..];
                    self.pending.clear();
                    return rest;
                }
                Some(_) => {}
            }
        }
        self.encoding = Encoding::Utf8;
        bytes
    }

    /// Decodes the next piece of UTF-16.
    fn utf16(&mut self, bytes: &[u8], big_endian: bool) -> String {
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        let (pairs, rest) = all.as_chunks::<2>();
        let mut units: Vec<u16> = pairs
            .iter()
            .map(|pair| match big_endian {
                true => u16::from_be_bytes(*pair),
                false => u16::from_le_bytes(*pair),
            })
            .collect();
        // The first half of a surrogate pair waits for the second one.
        let begun = units.pop_if(|unit| (0xd800..0xdc00).contains(unit));
        if begun.is_some()
            && let Some(pair) = pairs.last()
        {
            self.pending.extend_from_slice(pair);
        }
        self.pending.extend_from_slice(rest);
        let chars = char::decode_utf16(units);
        chars
            .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
            .filter(|char| *char != '\0')
            .collect()
    }

    /// Decodes the next piece of UTF-8.
    fn utf8<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, str> {
        if self.pending.is_empty() && memchr(0, bytes).is_none() {
            // An incomplete character waits for the next piece.
            let (whole, begun) = bytes.split_at(bytes.len() - begun(bytes));
            if let Ok(text) = str::from_utf8(whole) {
                self.pending.extend_from_slice(begun);
                return Cow::Borrowed(text);
            }
        }
        let mut text = String::with_capacity(self.pending.len() + bytes.len());
        let mut rest = bytes;
        while let Some(end) = memchr(0, rest) {
            self.append(&rest[..end], &mut text);
            text.push_str(self.finish());
            rest = behind_nuls(&rest[end..]);
        }
        self.append(rest, &mut text);
        Cow::Owned(text)
    }

    /// Decodes bytes and removes NUL.
    fn append(&mut self, bytes: &[u8], text: &mut String) {
        let mut rest = bytes;
        // The next byte completes the pending character, makes it invalid, or leaves it incomplete.
        while !self.pending.is_empty()
            && let Some((next, more)) = rest.split_first()
        {
            self.pending.push(*next);
            match std::str::from_utf8(&self.pending) {
                Ok(whole) => text.push_str(whole),
                Err(error) if error.error_len().is_some() => {
                    // The byte begins the next character; the pending bytes are invalid.
                    self.pending.clear();
                    text.push(char::REPLACEMENT_CHARACTER);
                    break;
                }
                Err(_) => {
                    rest = more;
                    continue;
                }
            }
            self.pending.clear();
            rest = more;
        }
        loop {
            let error = match str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return;
                }
                Err(error) => error,
            };
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            text.push_str(str::from_utf8(valid).unwrap_or_default());
            let Some(length) = error.error_len() else {
                self.pending.extend_from_slice(invalid);
                return;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &invalid[length..];
        }
    }

    /// Ends the text. Returns U+FFFD if a character is incomplete.
    pub fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.pending).is_empty() {
            ""
        } else {
            "\u{FFFD}"
        }
    }
}

/// The length of an incomplete character at the end that more bytes may complete.
fn begun(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    let lead = last.iter().rposition(|byte| *byte >= 0xc0);
    let begun = lead.map_or(&[][..], |at| &last[at..]);
    match std::str::from_utf8(begun) {
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => begun.len(),
        _ => 0,
    }
}

/// The bytes after the leading NULs. A device or a sparse file can have many.
fn behind_nuls(mut bytes: &[u8]) -> &[u8] {
    const MANY: [u8; 1024] = [0; 1024];
    while let Some(rest) = bytes.strip_prefix(&MANY) {
        bytes = rest;
    }
    let nuls = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[nuls..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Proves OUT-7c: UTF-16 is decoded regardless of the piece boundaries.
    #[test]
    fn utf16_with_mark_is_decoded() {
        let check = |text: &str| {
            for big_endian in [false, true] {
                let units = std::iter::once(0xfeff).chain(text.encode_utf16());
                let bytes: Vec<u8> = units
                    .flat_map(|unit| match big_endian {
                        true => unit.to_be_bytes(),
                        false => unit.to_le_bytes(),
                    })
                    .collect();
                for piece in [1, 2, 3, 7, bytes.len()] {
                    let mut decoder = Decoder::default();
                    let mut decoded = String::new();
                    for bytes in bytes.chunks(piece) {
                        decoded += &decoder.decode(bytes);
                    }
                    decoded += decoder.finish();
                    assert_eq!(decoded, text, "{piece} {big_endian}");
                }
            }
        };
        check("");
        check("hello\r\nworld\n");
        check("größer ✓ 日本語 𝄞𝄞 end");
        check("𝄞");
    }

    /// Proves OUT-7c: invalid UTF-16 becomes replacement characters.
    #[test]
    fn broken_utf16_has_marks() {
        let check = |bytes: &[u8], expect: &str| {
            let mut decoder = Decoder::default();
            let text = decoder.decode(bytes).into_owned() + decoder.finish();
            assert_eq!(text, expect, "{bytes:?}");
        };
        check(b"\xff\xfea\0b", "a\u{fffd}");
        check(b"\xff\xfe\x34\xd8a\0", "\u{fffd}a");
        check(b"\xff\xfe\x34\xd8", "\u{fffd}");
        check(b"\xff\xfea\0\0\0b\0", "ab");
        check(b"\xff", "\u{fffd}");
        check(b"\xffa", "\u{fffd}a");
        check(b"\xfe\xfe", "\u{fffd}\u{fffd}");
        check(b"\xef\xbb\xbfa", "\u{feff}a");
    }

    proptest! {
        /// Proves SH-4.
        #[test]
        fn many_nuls_are_removed(runs in proptest::collection::vec((0_usize..5000, "[a-c\0é]{0,3}"), 0..6)) {
            let mut bytes = Vec::new();
            for (nuls, text) in &runs {
                bytes.resize(bytes.len() + nuls, 0);
                bytes.extend_from_slice(text.as_bytes());
            }
            let text = String::from_utf8_lossy(&bytes).replace('\0', "");
            prop_assert_eq!(Decoder::default().decode(&bytes).into_owned(), text);
        }

        /// Proves SH-4.
        #[test]
        fn decoding_is_equal_for_any_chunks(
            bytes in proptest::collection::vec(
                prop_oneof![any::<u8>(), Just(0), Just(0xE2), Just(0x82), Just(0xAC), Just(b'a')], 0..60),
            cuts in proptest::collection::vec(0usize..60, 0..8),
        ) {
            prop_assume!(!bytes.starts_with(&[0xff, 0xfe]) && !bytes.starts_with(&[0xfe, 0xff]));
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut decoder = Decoder::default();
            let mut text = String::new();
            for pair in cuts.windows(2) {
                text.push_str(&decoder.decode(&bytes[pair[0]..pair[1]]));
            }
            text.push_str(decoder.finish());
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes).replace('\0', ""));
        }
    }
}
