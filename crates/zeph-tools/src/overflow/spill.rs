//! The buffer of a long text on its way to the store: compressed in blocks, in bounded memory.
//!
//! The blocks are [LZ4 blocks](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md) of about 128 KiB of
//! text each. Small outputs stay in memory, compressed; larger than `IN_MEMORY`, they are written to a temporary
//! file without a name.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memchr_iter;
use tempfile::SpooledTempFile;

/// The size of the text of a block in bytes.
const BLOCK: usize = 128 * 1024;
/// The maximum number of compressed bytes in memory; more bytes are written to a file.
const IN_MEMORY: usize = 12 * 1024 * 1024;
/// The maximum number of compressed bytes in memory for one of many texts.
const LITTLE: usize = 128 * 1024;

/// A buffer that stores the start of a text, up to a limit.
#[derive(Debug)]
pub struct SpillBuffer {
    limit: u64,
    /// Whether the limit is reached.
    full: bool,
    /// The text of the current block.
    pending: String,
    packed: SpooledTempFile,
    scratch: Vec<u8>,
    /// The first line of the current block.
    line: u64,
    inner: Measures,
}

#[derive(Debug, Default)]
struct Measures {
    blocks: Vec<SpilledBlock>,
    bytes: u64,
    lines: u64,
    total_bytes: u64,
}

/// The position of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpilledBlock {
    /// The number (from 1) of its first line.
    pub line: u64,
    /// The size of its text in bytes.
    pub bytes: usize,
    /// The offset of the compressed bytes.
    at: u64,
    /// The number of compressed bytes.
    packed: usize,
}

impl SpillBuffer {
    /// Creates a buffer for at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            full: false,
            pending: String::new(),
            packed: SpooledTempFile::new(IN_MEMORY),
            scratch: Vec::new(),
            line: 1,
            inner: Measures::default(),
        }
    }

    /// Limits the memory use, for a buffer that is one of many.
    #[must_use]
    pub fn with_low_memory(self) -> Self {
        Self {
            packed: SpooledTempFile::new(LITTLE),
            ..self
        }
    }

    /// Appends text.
    pub fn push(&mut self, mut text: &str) {
        self.inner.total_bytes += text.len() as u64;
        while !self.full && !text.is_empty() {
            let kept = self.inner.bytes + self.pending.len() as u64;
            let left = usize::try_from(self.limit - kept).unwrap_or(usize::MAX);
            let room = BLOCK - self.pending.len();
            let piece = text.floor_char_boundary(text.len().min(left).min(room));
            self.pending.push_str(&text[..piece]);
            text = &text[piece..];
            match text {
                "" => {}
                _ if left <= room => self.end_at_a_line(),
                _ => self.pack(),
            }
        }
    }

    /// Ends the text, because the limit is reached: removes an incomplete last line, unless it is the only one.
    fn end_at_a_line(&mut self) {
        self.full = true;
        if let Some(end) = self.pending.rfind('\n') {
            self.pending.truncate(end + 1);
        }
    }

    /// Compresses the current block.
    fn pack(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let text = self.pending.as_bytes();
        self.scratch
            .resize(lz4_flex::block::get_maximum_output_size(text.len()), 0);
        let packed = lz4_flex::block::compress_into(text, &mut self.scratch)
            .map_err(io::Error::other)
            .and_then(|length| {
                self.packed.write_all(&self.scratch[..length])?;
                Ok(length)
            });
        match packed {
            Ok(packed) => {
                let at = self.inner.blocks.last();
                self.inner.blocks.push(SpilledBlock {
                    line: self.line,
                    bytes: text.len(),
                    at: at.map_or(0, |block| block.at + block.packed as u64),
                    packed,
                });
                self.inner.bytes += text.len() as u64;
                self.line += memchr_iter(b'\n', text).count() as u64;
                self.inner.lines = self.line - u64::from(text.ends_with(b"\n"));
            }
            Err(error) => {
                tracing::warn!(%error, "a long output is not stored completely");
                self.full = true;
            }
        }
        self.pending.clear();
    }

    /// Returns the buffered text.
    #[must_use]
    pub fn finish(mut self) -> Spilled {
        self.pack();
        Spilled(Arc::new(Inner {
            packed: Mutex::new(self.packed),
            measures: self.inner,
        }))
    }
}

/// A complete buffered text.
#[derive(Debug, Clone)]
pub struct Spilled(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    packed: Mutex<SpooledTempFile>,
    measures: Measures,
}

impl PartialEq for Spilled {
    /// Whether both are the same buffer.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Spilled {
    /// Returns the number of stored bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.measures.bytes
    }

    /// Returns the number of stored lines.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.0.measures.lines
    }

    /// Returns the number of bytes of the complete text; more than [`Spilled::bytes`] if it was cut.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.0.measures.total_bytes
    }

    /// Returns the blocks, in order.
    #[must_use]
    pub fn blocks(&self) -> &[SpilledBlock] {
        &self.0.measures.blocks
    }

    /// Returns the compressed bytes of a block.
    ///
    /// # Errors
    /// An error if the temporary file cannot be read.
    pub fn packed(&self, block: SpilledBlock) -> io::Result<Vec<u8>> {
        let mut packed = self.0.packed.lock().unwrap_or_else(PoisonError::into_inner);
        packed.seek(SeekFrom::Start(block.at))?;
        let mut bytes = vec![0; block.packed];
        packed.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// Returns the text of a compressed block that has `bytes` bytes.
///
/// # Errors
/// The reason if the block is damaged.
pub(super) fn unpack(packed: &[u8], bytes: usize) -> Result<String, String> {
    // A damaged length must not cause a large allocation.
    if bytes > BLOCK {
        return Err(format!("it claims to have {bytes} bytes"));
    }
    let text = lz4_flex::block::decompress(packed, bytes).map_err(|error| error.to_string())?;
    String::from_utf8(text).map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the complete text of a buffer.
    pub(crate) fn whole(spilled: &Spilled) -> String {
        let text =
            |block: &SpilledBlock| unpack(&spilled.packed(*block).unwrap(), block.bytes).unwrap();
        spilled.blocks().iter().map(text).collect()
    }

    fn spill(pieces: &[&str], limit: u64) -> Spilled {
        let mut spill = SpillBuffer::new(limit);
        for piece in pieces {
            spill.push(piece);
        }
        spill.finish()
    }

    /// Proves OUT-30.
    #[test]
    fn spill_ends_at_the_last_line_within_the_limit() {
        let check = |pieces: &[&str], limit, expect: &str, lines| {
            let spilled = spill(pieces, limit);
            assert_eq!(whole(&spilled), expect, "{pieces:?} {limit}");
            assert_eq!(spilled.bytes(), expect.len() as u64);
            assert_eq!(spilled.lines(), lines, "{pieces:?} {limit}");
            let total: usize = pieces.iter().map(|piece| piece.len()).sum();
            assert_eq!(spilled.total_bytes(), total as u64);
        };
        check(&[], 10, "", 0);
        check(&["a\nb"], 10, "a\nb", 2);
        check(&["a\nb\n"], 4, "a\nb\n", 2);
        check(&["a\nb\n", "c"], 4, "a\nb\n", 2);
        check(&["a\nb\n", "cd\n", "e"], 6, "a\nb\n", 2);
        check(&["a\nb\nc"], 4, "a\nb\n", 2);
        check(&["abcdef"], 4, "abcd", 1);
        check(&["äöü"], 5, "äö", 1);
        check(&["ab\n€", "x"], 4, "ab\n", 1);
        check(&["€"], 2, "", 0);
    }

    /// Proves OUT-30: also for a text that exceeds the memory limit.
    #[test]
    fn text_of_many_blocks_is_stored_whole() {
        let mut seed = 1_u64;
        let mut text = String::new();
        while text.len() < 2 * IN_MEMORY {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(&format!("{:x}ä\n", seed >> 8));
        }
        let spilled = spill(&[&text], u64::MAX);
        assert!(spilled.blocks().len() > 100);
        let file = spilled.0.packed.lock().unwrap().is_rolled();
        assert!(file, "it should have gone to a file");
        assert!(whole(&spilled) == text);
        assert_eq!(spilled.lines(), text.lines().count() as u64);
        let mut line = 1;
        for block in spilled.blocks() {
            assert_eq!(block.line, line);
            let text = unpack(&spilled.packed(*block).unwrap(), block.bytes).unwrap();
            line += text.matches('\n').count() as u64;
        }
    }

    #[test]
    fn damaged_block_is_an_error_and_reserves_no_memory() {
        let spilled = spill(&["text ".repeat(100).as_str()], 10_000);
        let packed = spilled.packed(spilled.blocks()[0]).unwrap();
        assert!(unpack(&packed, 500).is_ok());
        assert!(unpack(&packed[..packed.len() / 2], 500).is_err());
        assert!(unpack(&packed, 10).is_err());
        assert!(unpack(&packed, usize::MAX).is_err());
        assert!(unpack(&[0xff; 64], 500).is_err());
    }

    proptest! {
        /// Proves OUT-30.
        #[test]
        fn spilled_text_is_a_prefix_within_the_limit(
            pieces in proptest::collection::vec("[a-cä€\n]{0,12}", 0..20),
            limit in 0_u64..60,
        ) {
            let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();
            let all = pieces.concat();
            let spilled = spill(&pieces, limit);
            let kept = whole(&spilled);
            prop_assert!(all.starts_with(&kept));
            prop_assert!(kept.len() as u64 <= limit);
            prop_assert_eq!(spilled.bytes(), kept.len() as u64);
            prop_assert_eq!(spilled.lines(), kept.lines().count() as u64);
            if all.len() as u64 <= limit {
                prop_assert_eq!(kept, all);
            } else {
                // It ends with a line, or all lines that fit are present.
                let most = all.floor_char_boundary(usize::try_from(limit).unwrap());
                let lines = all[..most].rfind('\n').map_or(most, |end| end + 1);
                prop_assert_eq!(kept.len(), lines);
            }
        }
    }
}
