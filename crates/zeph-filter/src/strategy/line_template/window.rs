//! Sixteen bytes of a line, and which of them are of a class: a bit for each.

use wide::u8x16;

use crate::blocks::{between, equal};

/// Bytes that are looked at together.
pub(in crate::strategy) const WINDOW: usize = 16;

/// Bytes from a place of a line on; what is behind the line is of no class.
#[derive(Clone, Copy)]
pub(in crate::strategy) struct Window {
    bytes: u8x16,
    /// So many of them, the first ones, stand before the place.
    before: usize,
}

impl Window {
    /// The bytes at `at` and behind it.
    #[inline(always)]
    pub(in crate::strategy) fn at(line: &[u8], at: usize) -> Self {
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
    pub(in crate::strategy) fn digits(self) -> u32 {
        self.mask(between(self.bytes, b'0', b'9'))
    }

    #[inline(always)]
    pub(super) fn digits_and_slashes(self) -> u32 {
        self.mask(between(self.bytes, b'/', b'9'))
    }

    /// Letters of ASCII.
    #[inline(always)]
    pub(in crate::strategy) fn alphabetic(self) -> u32 {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(mask: u32) -> Vec<usize> {
        let all = 0..u32::BITS as usize;
        all.filter(|place| mask >> place & 1 != 0).collect()
    }

    fn is_end_of_path(byte: u8) -> bool {
        byte.is_ascii_whitespace() || b"\"'`()[]{}<>=,;|:".contains(&byte)
    }

    #[test]
    fn each_byte_is_of_its_classes() {
        for byte in 0..=u8::MAX {
            // Short lines, lines of a window, and what is behind both.
            for (length, at) in [
                (1, 0),
                (9, 3),
                (16, 0),
                (20, 1),
                (20, 15),
                (40, 24),
                (40, 33),
            ] {
                for place in at..length.min(at + WINDOW) {
                    let mut line = vec![0x80; length];
                    line[place] = byte;
                    let window = Window::at(&line, at);
                    let check = |mask: u32, is: bool| {
                        let expect = Vec::from_iter(is.then_some(place - at));
                        assert_eq!(places(mask), expect, "{byte:#x} at {place} of {length}");
                    };
                    check(window.digits(), byte.is_ascii_digit());
                    check(window.alphabetic(), byte.is_ascii_alphabetic());
                    let hex = byte.is_ascii_hexdigit() && !byte.is_ascii_digit();
                    check(window.hex(), hex);
                    check(window.ends_of_paths(), is_end_of_path(byte));
                    assert_eq!(super::super::ends_path(byte), is_end_of_path(byte));
                    let marks = byte.is_ascii_digit() || byte == b'/';
                    check(window.digits_and_slashes(), marks);
                    check(window.equal(b'x'), byte == b'x');
                }
            }
        }
    }

    proptest! {
        #[test]
        fn marks_are_digits_and_slashes(line in "([0-9]{1,3}|/|[a-z.: ]{1,9}|é|[a-z]{60,70}){0,20}", skips in proptest::collection::vec(0_usize..150, 1..9)) {
            let bytes = line.as_bytes();
            let mut marks = Marks::of(bytes);
            let mut skips = skips.iter().cycle();
            let mut at = 0;
            loop {
                let is_mark = |at: &usize| bytes[*at].is_ascii_digit() || bytes[*at] == b'/';
                let expect = (at..bytes.len()).find(is_mark);
                let found = marks.next(at);
                prop_assert_eq!(found, expect);
                let (Some(found), Some(skip)) = (found, skips.next()) else {
                    break;
                };
                at = found + 1 + skip % 80;
                if at > bytes.len() {
                    break;
                }
            }
        }

        #[test]
        fn what_is_before_ends_the_window(line in "[a-z0-9]{0,40}", at in 0_usize..40) {
            let at = at.min(line.len());
            let expect = line.as_bytes()[..at].iter().rev().take(WINDOW);
            let digits: Vec<bool> = expect.map(u8::is_ascii_digit).collect();
            let found = Window::before(line.as_bytes(), at).digits();
            for (back, is_digit) in digits.iter().enumerate() {
                prop_assert_eq!(found >> (WINDOW - 1 - back) & 1 != 0, *is_digit);
            }
            prop_assert_eq!(found.count_ones() as usize, digits.iter().filter(|is| **is).count());
        }
    }
}
