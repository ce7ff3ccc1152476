//! Recognizes binary output: images, archives, executables, random bytes.

/// Bytes of an output that is short enough to be shown in any case.
const MIN_BYTES: u64 = 256;
/// Bytes from the start that are stored.
const HEAD: usize = 512;
/// One noise byte in so many bytes makes an output binary.
const NOISE_SHARE: u64 = 20;

/// Formats by the bytes at an offset.
const FORMATS: &[(&str, usize, &[u8])] = &[
    ("PNG image", 0, b"\x89PNG\r\n\x1a\n"),
    ("JPEG image", 0, b"\xff\xd8\xff"),
    ("GIF image", 0, b"GIF87a"),
    ("GIF image", 0, b"GIF89a"),
    ("WebP image", 8, b"WEBPVP8"),
    ("TIFF image", 0, b"II*\0"),
    ("TIFF image", 0, b"MM\0*"),
    ("icon", 0, b"\0\0\x01\0"),
    ("bitmap image", 0, b"BM"),
    ("WAV audio", 8, b"WAVEfmt"),
    ("AVI video", 8, b"AVI LIST"),
    ("MP4 video", 4, b"ftyp"),
    ("Matroska video", 0, b"\x1a\x45\xdf\xa3"),
    ("MP3 audio", 0, b"ID3"),
    ("Ogg audio", 0, b"OggS"),
    ("FLAC audio", 0, b"fLaC"),
    ("PDF document", 0, b"%PDF-"),
    ("zip archive", 0, b"PK\x03\x04"),
    ("zip archive", 0, b"PK\x05\x06"),
    ("gzip data", 0, b"\x1f\x8b"),
    ("bzip2 data", 0, b"BZh"),
    ("xz data", 0, b"\xfd7zXZ\0"),
    ("zstd data", 0, b"\x28\xb5\x2f\xfd"),
    ("lz4 data", 0, b"\x04\x22\x4d\x18"),
    ("7z archive", 0, b"7z\xbc\xaf\x27\x1c"),
    ("tar archive", 257, b"ustar"),
    ("Debian package", 0, b"!<arch>\ndebian"),
    ("static library", 0, b"!<arch>\n"),
    ("ELF executable or library", 0, b"\x7fELF"),
    ("Mach-O executable", 0, b"\xcf\xfa\xed\xfe"),
    ("Windows executable", 0, b"MZ"),
    ("Java class", 0, b"\xca\xfe\xba\xbe"),
    ("WebAssembly module", 0, b"\0asm"),
    ("SQLite database", 0, b"SQLite format 3\0"),
    ("Git pack", 0, b"PACK\0"),
    ("NumPy array", 0, b"\x93NUMPY"),
    ("HDF5 data", 0, b"\x89HDF\r\n"),
    ("Parquet data", 0, b"PAR1"),
    ("TrueType font", 0, b"\0\x01\0\0\0"),
    ("OpenType font", 0, b"OTTO"),
    ("WOFF font", 0, b"wOF"),
];

/// Counts the bytes of an output that no text has.
#[derive(Debug, Default)]
pub(super) struct Sniffer {
    head: Vec<u8>,
    bytes: u64,
    nuls: u64,
    /// Other control characters than those that terminals and text files use.
    controls: u64,
    /// Bytes that are not ASCII.
    high: u64,
}

impl Sniffer {
    /// Takes the next bytes of the output.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let room = HEAD - self.head.len().min(HEAD);
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.bytes += bytes.len() as u64;
        for byte in bytes {
            match byte {
                0 => self.nuls += 1,
                b'\x07'..=b'\r' | b'\x1b' => {}
                ..b' ' | 0x7f => self.controls += 1,
                0x80.. => self.high += 1,
                _ => {}
            }
        }
    }

    /// The number of bytes in the output.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The description of a binary output: format, size and first bytes. `undecoded`: the number of replacement
    /// characters in the decoded output.
    pub(super) fn report(&self, undecoded: u64) -> Option<String> {
        if self.bytes < MIN_BYTES {
            return None;
        }
        let format = if self.nuls * 100 >= self.bytes * 99 {
            "zero bytes"
        } else if undecoded == 0 && self.controls * NOISE_SHARE < self.bytes {
            // Text, perhaps separated by NUL, or UTF-16.
            return None;
        } else {
            let noise = self.nuls + self.controls;
            match self.format() {
                Some(format) if noise > 0 && undecoded > 0 => format,
                _ if noise * NOISE_SHARE >= self.bytes => "unknown format",
                _ => return None,
            }
        };
        let first = self.head.iter().take(8).map(|byte| format!(" {byte:02x}"));
        let first: String = first.collect();
        Some(format!(
            "[binary output: {format}, {} bytes, first bytes{first}]",
            self.bytes
        ))
    }

    fn format(&self) -> Option<&'static str> {
        let found = FORMATS.iter().find(|(_, at, magic)| {
            let rest = self.head.get(*at..);
            rest.is_some_and(|rest| rest.starts_with(magic))
        });
        found.map(|(format, _, _)| *format)
    }
}

/// Whether a line next to binary data is text.
pub(super) fn is_text(line: &str) -> bool {
    !line
        .chars()
        .any(|char| char == char::REPLACEMENT_CHARACTER || (char.is_control() && char != '\t'))
}
