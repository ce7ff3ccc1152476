//! Sixteen bytes of a line, and which of them are of a class: a bit for each.

use wide::u8x16;

use crate::blocks::{between, equal};

/// Bytes that are looked at together.
pub(in crate::filter::strategy) const WINDOW: usize = 16;

/// Bytes from a place of a line on; what is behind the line is of no class.
#[derive(Clone, Copy)]
pub(in crate::filter::strategy) struct Window {
    bytes: u8x16,
    /// So many of them, the first ones, stand before the place.
    before: usize,
}

impl Window {
    /// The bytes at `at` and behind it.
    #[inline(always)]
    pub(in crate::filter::strategy) fn at(line: &[u8], at: usize) -> Self {
        if let Some(bytes) = line.get(at..).and_then(<[u8]>::first_chunk) {
            return Self {
                bytes: u8x16::new(*bytes),
                before: 0,
            };
        }
        // Of a line that ends before the window does the last bytes are read.
        if let Some(bytes) = line.last_chunk() {
            return Self {
                bytes: u8x16::new(*bytes),
                before: (at + WINDOW - line.len()).min(WINDOW),
            };
        }
        let mut bytes = [0; WINDOW];
        bytes[..line.len()].copy_from_slice(line);
        Self {
            bytes: u8x16::new(bytes),
            before: at.min(WINDOW),
        }
    }

    /// The bytes before `at`, the last of which is the last one of the window.
    #[inline(always)]
    pub(super) fn before(line: &[u8], at: usize) -> Self {
        let mut bytes = [0; WINDOW];
        match line[..at].last_chunk() {
            Some(last) => bytes = *last,
            None => bytes[WINDOW - at..].copy_from_slice(&line[..at]),
        }
        Self {
            bytes: u8x16::new(bytes),
            before: 0,
        }
    }

    #[inline(always)]
    fn mask(self, class: u8x16) -> u32 {
        class.to_bitmask() >> self.before
    }

    #[inline(always)]
    pub(super) fn equal(self, byte: u8) -> u32 {
        self.mask(equal(self.bytes, byte))
    }

    #[inline(always)]
    pub(in crate::filter::strategy) fn digits(self) -> u32 {
        self.mask(between(self.bytes, b'0', b'9'))
    }

    #[inline(always)]
    pub(super) fn digits_and_slashes(self) -> u32 {
        self.mask(between(self.bytes, b'/', b'9'))
    }

    /// Letters of ASCII.
    #[inline(always)]
    pub(in crate::filter::strategy) fn alphabetic(self) -> u32 {
        let lower = self.bytes | u8x16::splat(0x20);
        self.mask(between(lower, b'a', b'z'))
    }

    /// Letters that are hexadecimal digits.
    #[inline(always)]
    pub(super) fn hex(self) -> u32 {
        let lower = self.bytes | u8x16::splat(0x20);
        self.mask(between(lower, b'a', b'f'))
    }

    /// What separates a path from the text around it.
    #[inline(always)]
    pub(super) fn ends_of_paths(self) -> u32 {
        let bytes = self.bytes;
        let either = |one: u8, other: u8| equal(bytes, one) | equal(bytes, other);
        let blanks = equal(bytes, b' ') | between(bytes, b'\t', b'\r') & !equal(bytes, 0x0b);
        let quotes = either(b'"', b'`') | between(bytes, b'\'', b')');
        let brackets = either(b'[', b']') | between(bytes, b'{', b'}');
        let signs = equal(bytes, b',') | between(bytes, b':', b'>');
        self.mask(blanks | quotes | brackets | signs)
    }
}

/// Bytes whose marks are known together.
const BLOCK: usize = u64::BITS as usize;

/// Digits and slashes of a line, in order.
pub(super) struct Marks<'t> {
    line: &'t [u8],
    /// Where the block at hand begins.
    block: usize,
    /// Those of it, a bit for each byte.
    marks: u64,
}

impl<'t> Marks<'t> {
    pub(super) fn of(line: &'t [u8]) -> Self {
        Self {
            line,
            block: 0,
            marks: marks(line, 0),
        }
    }

    /// The first one at `from` or behind it; `from` is no less than the last time.
    #[inline(always)]
    pub(super) fn next(&mut self, from: usize) -> Option<usize> {
        let mut passed = from - self.block;
        loop {
            let left = self.marks & u64::MAX.checked_shl(passed as u32).unwrap_or(0);
            if left != 0 {
                return Some(self.block + left.trailing_zeros() as usize);
            }
            self.block += BLOCK.max(passed);
            if self.block >= self.line.len() {
                self.marks = 0;
                return None;
            }
            self.marks = marks(self.line, self.block);
            passed = 0;
        }
    }
}

/// The digits and slashes among the bytes at `at` and behind it.
fn marks(line: &[u8], at: usize) -> u64 {
    let mut marks = 0;
    for part in (0..BLOCK).step_by(WINDOW) {
        if at + part >= line.len() {
            break;
        }
        marks |= u64::from(Window::at(line, at + part).digits_and_slashes()) << part;
    }
    marks
}
