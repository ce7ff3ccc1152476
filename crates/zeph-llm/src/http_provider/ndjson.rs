//! An incremental decoder of newline-delimited JSON (<https://github.com/ndjson/ndjson-spec>).
//!
//! The input is bytes from the network in chunks of any size; the output is complete lines without blank ones. Work
//! is linear in the bytes, and memory is bounded by a cap for one line.

use memchr::memchr;

use super::error_mapping::Failure;
use crate::error::LlmErrorKind;

/// The decoder. One per stream.
#[derive(Debug)]
pub(crate) struct LineDecoder {
    /// The start of an incomplete line.
    line: Vec<u8>,
    limit: usize,
}

impl LineDecoder {
    /// A decoder that refuses lines longer than `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            limit,
        }
    }

    /// Decodes the next bytes, and passes every complete line to `on_line`, in order. Invalid UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// `Protocol` for a line above the cap, or the error of `on_line`.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        mut on_line: impl FnMut(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut rest = bytes;
        loop {
            let end = memchr(b'\n', rest);
            let piece = &rest[..end.unwrap_or(rest.len())];
            if self.line.len() + piece.len() > self.limit {
                return Err(Failure::new(
                    LlmErrorKind::Protocol,
                    format!("a line of the stream is longer than {} bytes", self.limit),
                ));
            }
            let Some(end) = end else {
                self.line.extend_from_slice(piece);
                return Ok(());
            };
            rest = &rest[end + 1..];
            if self.line.is_empty() {
                hand_on(piece, &mut on_line)?;
            } else {
                self.line.extend_from_slice(piece);
                let line = std::mem::take(&mut self.line);
                hand_on(&line, &mut on_line)?;
            }
        }
    }

    /// The last line, if its line feed is missing.
    pub(crate) fn finish(self) -> Option<String> {
        let line = text(&self.line).into_owned();
        (!line.is_empty()).then_some(line)
    }
}

fn hand_on(
    line: &[u8],
    on_line: &mut impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match &*text(line) {
        "" => Ok(()),
        line => on_line(line),
    }
}

/// A line without blanks around it, and without a byte order mark before it.
fn text(line: &[u8]) -> std::borrow::Cow<'_, str> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    String::from_utf8_lossy(line.trim_ascii())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn decode<'a>(
        chunks: impl IntoIterator<Item = &'a [u8]>,
        limit: usize,
    ) -> Result<Vec<String>, Failure> {
        let mut decoder = LineDecoder::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            decoder.push(chunk, |line| {
                lines.push(line.to_owned());
                Ok(())
            })?;
        }
        lines.extend(decoder.finish());
        Ok(lines)
    }

    #[test]
    fn lines_of_every_shape_are_decoded() {
        for (input, expect) in [
            ("{}\n{}\n", &["{}", "{}"][..]),
            ("{}\r\n\r\n  \n{\"a\":1}", &["{}", "{\"a\":1}"]),
            ("\u{feff}{}\n", &["{}"]),
            ("", &[]),
            ("\n\n", &[]),
        ] {
            assert_eq!(
                decode([input.as_bytes()], 100).unwrap(),
                expect,
                "{input:?}"
            );
        }
        assert!(decode([&[b'x'; 101][..]], 100).is_err());
        assert!(decode([&[b'x'; 60][..]; 2], 100).is_err());
        assert!(decode([&b"xxxxx\n"[..]; 100], 100).is_ok());
    }

    proptest! {
        #[test]
        fn chunking_has_no_effect(text in "[a-c\n\r é]{0,60}", size in 1_usize..9) {
            let whole = decode([text.as_bytes()], 1000).unwrap();
            prop_assert_eq!(&decode(text.as_bytes().chunks(size), 1000).unwrap(), &whole);
            let plain: Vec<&str> = text.split('\n').map(|line| line.trim_matches(|c: char| c.is_ascii_whitespace())).filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(whole, plain);
        }
    }
}
