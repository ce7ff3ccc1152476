//! Detection of the kind of content by its first bytes.

/// The number of bytes that [`sniff`] needs.
pub(super) const SNIFF: usize = 8192;

/// The kind of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Text in UTF-8 or in a similar encoding.
    Text,
    /// Text in UTF-16, with a byte order mark.
    Utf16,
    /// An image, by its media type.
    Image(&'static str),
    /// Other binary data, by its type.
    Binary(&'static str),
}

/// Signatures that do not occur in text, with their offsets.
const BINARY: &[(usize, &[u8], &str)] = &[
    (0, b"%PDF-", "a PDF document"),
    (
        0,
        b"PK\x03\x04",
        "a ZIP archive (or a document that is one)",
    ),
    (0, b"PK\x05\x06", "an empty ZIP archive"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"\xfd7zXZ\0", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"\x7fELF", "an ELF program or library"),
    (0, b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (0, b"\xca\xfe\xba\xbe", "a Java class or Mach-O program"),
    (0, b"\0asm", "a WebAssembly module"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"OggS\0", "Ogg audio or video"),
    (0, b"fLaC\0", "FLAC audio"),
    (0, b"ID3\x02", "MP3 audio"),
    (0, b"ID3\x03", "MP3 audio"),
    (0, b"ID3\x04", "MP3 audio"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska video"),
    (0, b"wOFF\0", "a font"),
    (0, b"wOF2\0", "a font"),
    (0, b"\0\0\x01\0", "an icon"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
    (257, b"ustar", "a tar archive"),
];

/// Signatures that may occur in text. They are used only if the content is binary.
const WEAK: &[(usize, &[u8], &str)] = &[
    (0, b"MZ", "a Windows program or library"),
    (0, b"BZh", "bzip2 data"),
    (0, b"BM", "a BMP image"),
    (0, b"RIFF", "RIFF audio or video"),
    (4, b"ftyp", "MP4 video or audio"),
    (0, b"!<arch>\n", "an ar archive or static library"),
];

/// Images that providers accept.
const IMAGES: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

/// Detects the kind of a content by `head`, its first bytes (up to [`SNIFF`]).
pub(super) fn sniff(head: &[u8]) -> Content {
    let at = |offset: usize, magic: &[u8]| {
        head.get(offset..)
            .is_some_and(|bytes| bytes.starts_with(magic))
    };
    if let Some((_, media)) = IMAGES.iter().find(|(magic, _)| at(0, magic)) {
        return Content::Image(media);
    }
    if at(0, b"RIFF") && at(8, b"WEBP") {
        return Content::Image("image/webp");
    }
    let find = |table: &[(usize, &[u8], &'static str)]| {
        let mut rows = table.iter();
        rows.find(|(offset, magic, _)| at(*offset, magic))
            .map(|(_, _, kind)| *kind)
    };
    if let Some(kind) = find(BINARY) {
        return Content::Binary(kind);
    }
    if at(0, b"\xff\xfe\0\0") || at(0, b"\0\0\xfe\xff") {
        return Content::Binary("text in UTF-32");
    }
    if at(0, b"\xff\xfe") || at(0, b"\xfe\xff") {
        return Content::Utf16;
    }
    if head.contains(&0) {
        return Content::Binary(find(WEAK).unwrap_or("of no known type (it has NUL bytes)"));
    }
    Content::Text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves FILE-11.
    #[test]
    fn contents_are_detected_by_their_first_bytes() {
        let check = |head: &[u8], expect| assert_eq!(sniff(head), expect, "{head:?}");
        check(b"", Content::Text);
        check(b"fn main() {}\n", Content::Text);
        check("Grüße".as_bytes(), Content::Text);
        check(b"caf\xe9\n", Content::Text);
        check(b"\xef\xbb\xbfhello", Content::Text);
        check(b"MZ is how this text begins", Content::Text);
        check(b"BM and RIFF and ftyp", Content::Text);
        check(b"ID3 tags explained", Content::Text);
        check(b"\xff\xfeh\0i\0", Content::Utf16);
        check(b"\xfe\xff\0h\0i", Content::Utf16);
        check(b"\x89PNG\r\n\x1a\n\0\0", Content::Image("image/png"));
        check(b"\xff\xd8\xff\xe0", Content::Image("image/jpeg"));
        check(b"GIF89a\x01", Content::Image("image/gif"));
        check(b"RIFF\x10\0\0\0WEBPVP8 ", Content::Image("image/webp"));
        check(b"%PDF-1.7\n", Content::Binary("a PDF document"));
        check(
            b"\x7fELF\x02\x01",
            Content::Binary("an ELF program or library"),
        );
        check(
            b"MZ\x90\0\x03",
            Content::Binary("a Windows program or library"),
        );
        check(
            b"text\0text",
            Content::Binary("of no known type (it has NUL bytes)"),
        );
        check(b"\xff\xfe\0\0h\0\0\0", Content::Binary("text in UTF-32"));
    }
}
