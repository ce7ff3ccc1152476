//! The encodings of a content: text is searched in its code units, so nothing is re-encoded for an exact match.

use std::borrow::Cow;

use memchr::memmem::Finder;

/// The encoding of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-8, with any other bytes in between.
    Bytes,
    /// UTF-16, little endian, with a byte order mark.
    Utf16Le,
    /// UTF-16, big endian, with a byte order mark.
    Utf16Be,
}

impl Encoding {
    /// The encoding that the byte order mark of `content` names.
    pub(crate) fn of(content: &[u8]) -> Self {
        match content {
            [0xff, 0xfe, 0, 0, ..] => Self::Bytes,
            [0xff, 0xfe, ..] => Self::Utf16Le,
            [0xfe, 0xff, ..] => Self::Utf16Be,
            _ => Self::Bytes,
        }
    }

    /// The bytes of `text` in this encoding.
    pub(crate) fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Bytes => text.as_bytes().to_vec(),
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        }
    }

    /// Converts a UTF-16 `content` to UTF-8; returns other contents unchanged, and `None` for malformed UTF-16.
    pub(crate) fn decode(self, content: &[u8]) -> Option<Cow<'_, [u8]>> {
        let unit: fn([u8; 2]) -> u16 = match self {
            Self::Bytes => return Some(content.into()),
            Self::Utf16Le => u16::from_le_bytes,
            Self::Utf16Be => u16::from_be_bytes,
        };
        if !content.len().is_multiple_of(2) {
            return None;
        }
        let units = content.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: Result<String, _> = char::decode_utf16(units).collect();
        Some(text.ok()?.into_bytes().into())
    }

    /// Converts a changed result of [`Encoding::decode`] back.
    pub(crate) fn encode_all(self, text: Vec<u8>) -> Option<Vec<u8>> {
        match self {
            Self::Bytes => Some(text),
            Self::Utf16Le | Self::Utf16Be => Some(self.encode(std::str::from_utf8(&text).ok()?)),
        }
    }

    /// The number of bytes of a code unit.
    fn unit(self) -> usize {
        if self == Self::Bytes { 1 } else { 2 }
    }

    /// The first occurrence of `needle` in `content` at or after `from`, at the start of a code unit.
    pub(crate) fn find(
        self,
        content: &[u8],
        needle: &Finder<'_>,
        mut from: usize,
    ) -> Option<usize> {
        loop {
            let place = from + needle.find(content.get(from..)?)?;
            if place.is_multiple_of(self.unit()) {
                return Some(place);
            }
            from = place + 1;
        }
    }

    /// The first `most` occurrences of `needle` in `content`; they may overlap.
    pub(crate) fn places(self, content: &[u8], needle: &[u8], most: usize) -> Vec<usize> {
        let needle = Finder::new(needle);
        let mut places = Vec::new();
        let mut from = 0;
        while places.len() < most
            && let Some(place) = self.find(content, &needle, from)
        {
            places.push(place);
            from = place + 1;
        }
        places
    }

    /// Whether a word continues from the end of `left` into the start of `right`.
    pub(crate) fn joins(self, left: &[u8], right: &[u8]) -> bool {
        let is_word = |unit: Option<&[u8]>| match (self, unit) {
            (Self::Bytes, Some([byte]))
            | (Self::Utf16Le, Some([byte, 0]))
            | (Self::Utf16Be, Some([0, byte])) => {
                byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()
            }
            (_, unit) => unit.is_some(),
        };
        is_word(left.rchunks_exact(self.unit()).next())
            && is_word(right.chunks_exact(self.unit()).next())
    }

    /// The number of line feeds in `content`.
    pub(crate) fn line_feeds(self, content: &[u8]) -> usize {
        match self {
            Self::Bytes => memchr::memchr_iter(b'\n', content).count(),
            Self::Utf16Le | Self::Utf16Be => {
                let feed = self.encode("\n");
                content.chunks(2).filter(|unit| *unit == feed).count()
            }
        }
    }

    /// Whether the line of `content` that contains `at` ends with CR LF. A last line without an ending takes that
    /// of the line before it.
    pub(crate) fn line_is_crlf(self, content: &[u8], at: usize) -> bool {
        let feed = self.encode("\n");
        let next = content[at..]
            .chunks_exact(self.unit())
            .position(|unit| unit == feed)
            .map(|units| at + units * self.unit());
        let feed_at = next.or_else(|| {
            content[..at]
                .chunks_exact(self.unit())
                .rposition(|unit| unit == feed)
                .map(|units| units * self.unit())
        });
        feed_at.is_some_and(|feed_at| content[..feed_at].ends_with(&self.encode("\r")))
    }
}
