//! Decodes the escapes of `$'…'`.

use super::lexer::{Cursor, SyntaxError};

impl Cursor<'_> {
    /// Reads the bytes of `$'…'`, from the position after the quote.
    pub(crate) fn ansi_c(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let mut bytes = Vec::new();
        loop {
            match self.next_char() {
                None => return Err(self.fail("a `$'` that is not closed")),
                Some('\'') => break,
                Some('\\') => self.escape(&mut bytes)?,
                Some(other) => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        // A NUL ends the string.
        if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            bytes.truncate(end);
        }
        Ok(bytes)
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let Some(next) = self.next_char() else {
            return Err(self.fail("a `$'` that is not closed"));
        };
        let byte = match next {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '\'' | '"' | '?' => next as u8,
            '0'..='7' => {
                self.at -= 1;
                (self.digits(8, 3).unwrap_or(0) & 0xff) as u8
            }
            'x' if self.raw() == Some(b'{') => {
                return Err(self.fail("`\\x{` is not supported"));
            }
            'x' => match self.digits(16, 2) {
                Some(value) => (value & 0xff) as u8,
                None => {
                    bytes.extend_from_slice(b"\\x");
                    return Ok(());
                }
            },
            'u' | 'U' => {
                match self.digits(16, if next == 'u' { 4 } else { 8 }) {
                    Some(value) => {
                        let character = char::from_u32(value).unwrap_or('\u{FFFD}');
                        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    None => bytes.extend_from_slice(&[b'\\', next as u8]),
                }
                return Ok(());
            }
            // Versions of bash differ in `\c` before a quote or a backslash.
            'c' => match self.next_char() {
                Some('?') => 0x7f,
                Some(control) if control.is_ascii_alphabetic() || "@[]^_".contains(control) => {
                    control as u8 & 0x1f
                }
                _ => return Err(self.fail("`\\c` without a letter is not supported")),
            },
            other => {
                bytes.push(b'\\');
                bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
        };
        bytes.push(byte);
        Ok(())
    }

    /// Reads at most `most` digits.
    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let digits = self
            .rest()
            .bytes()
            .take(most)
            .take_while(|byte| char::from(*byte).is_digit(radix))
            .count();
        let value = u32::from_str_radix(self.rest().get(..digits)?, radix).ok();
        self.at += digits;
        value
    }
}
