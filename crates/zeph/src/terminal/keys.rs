//! Decodes the bytes of a terminal into keys. Pure.
//!
//! The sequences are those of xterm and of the terminals that follow it. A paste is marked (bracketed paste mode), so that a
//! line break in it is not Enter.

/// A key, or a paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyPress {
    /// A character.
    Char(char),
    /// Pasted text, with line breaks as `\n`.
    Paste(String),
    Enter,
    /// Alt-Enter or Shift-Enter: a line break in the text.
    Newline,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    WordLeft,
    WordRight,
    /// Deletes the word before the cursor.
    DeleteWord,
    Tab,
    BackTab,
    Esc,
    /// Ctrl with this letter.
    Ctrl(char),
}

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// The most bytes of a control sequence.
const MAX_SEQUENCE: usize = 32;
/// The most bytes of a paste. The rest is dropped.
const MAX_PASTE: usize = 1024 * 1024;

/// Decodes keys that arrive in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyDecoder {
    pending: Vec<u8>,
    /// The text of a paste that has not ended.
    paste: Option<Vec<u8>>,
}

/// The first bytes of the input.
enum Step {
    /// That many bytes are a key, or mean nothing.
    Key(usize, Option<KeyPress>),
    /// That many bytes begin a paste.
    Paste(usize),
    /// More bytes are needed.
    Incomplete,
}

impl KeyDecoder {
    /// Adds bytes, and returns the keys that are complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<KeyPress> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        loop {
            if let Some(paste) = &mut self.paste {
                let end = find(&self.pending, PASTE_ENDS);
                // A part of the end mark may be at the end.
                let taken = end.unwrap_or(self.pending.len().saturating_sub(PASTE_ENDS.len() - 1));
                let room = MAX_PASTE.saturating_sub(paste.len());
                paste.extend_from_slice(&self.pending[..taken.min(room)]);
                self.pending.drain(..taken);
                if end.is_none() {
                    return keys;
                }
                self.pending.drain(..PASTE_ENDS.len());
                let text = self.paste.take().unwrap_or_default();
                keys.push(KeyPress::Paste(text_of(&text)));
            }
            match first(&self.pending) {
                Step::Key(length, key) => {
                    self.pending.drain(..length);
                    keys.extend(key);
                }
                Step::Paste(length) => {
                    self.pending.drain(..length);
                    self.paste = Some(Vec::new());
                }
                Step::Incomplete => return keys,
            }
        }
    }

    /// Ends an incomplete sequence after a pause: a lone escape character is the key Esc.
    pub(super) fn pause(&mut self) -> Option<KeyPress> {
        if self.paste.is_some() || self.pending.first() != Some(&0x1b) {
            return None;
        }
        let is_lone = self.pending.len() == 1;
        self.pending.clear();
        is_lone.then_some(KeyPress::Esc)
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|part| part == mark)
}

/// Pasted bytes as text. Terminals send `\r` for a line break.
fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Decodes the first key of `bytes`.
fn first(bytes: &[u8]) -> Step {
    let Some(byte) = bytes.first() else {
        return Step::Incomplete;
    };
    let key = match byte {
        0x1b => return escape(bytes),
        b'\r' | b'\n' => KeyPress::Enter,
        0x7f | 0x08 => KeyPress::Backspace,
        b'\t' => KeyPress::Tab,
        0x17 => KeyPress::DeleteWord,
        0x01..=0x1a => KeyPress::Ctrl(char::from(byte + 0x60)),
        0x00 | 0x1c..=0x1f => return Step::Key(1, None),
        _ => return character(bytes),
    };
    Step::Key(1, Some(key))
}

fn character(bytes: &[u8]) -> Step {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) if error.error_len().is_none() => return Step::Incomplete,
        Err(_) => return Step::Key(1, None),
    };
    match valid.chars().next() {
        Some(c) => Step::Key(c.len_utf8(), Some(KeyPress::Char(c))),
        None => Step::Incomplete,
    }
}

fn escape(bytes: &[u8]) -> Step {
    let key = match bytes.get(1) {
        None => return Step::Incomplete,
        Some(b'[') => return control_sequence(bytes),
        Some(b'O') => {
            return match bytes.get(2) {
                None => Step::Incomplete,
                Some(last) => Step::Key(3, cursor_key(*last, false)),
            };
        }
        // Two keys: the second one may begin a sequence.
        Some(0x1b) => return Step::Key(1, Some(KeyPress::Esc)),
        Some(b'\r' | b'\n') => KeyPress::Newline,
        Some(b'b') => KeyPress::WordLeft,
        Some(b'f') => KeyPress::WordRight,
        Some(0x7f | 0x08) => KeyPress::DeleteWord,
        Some(_) => return Step::Key(2, None),
    };
    Step::Key(2, Some(key))
}

fn control_sequence(bytes: &[u8]) -> Step {
    let body = &bytes[2..];
    let Some(end) = body.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return match body.len() > MAX_SEQUENCE {
            true => Step::Key(bytes.len(), None),
            false => Step::Incomplete,
        };
    };
    let length = end + 3;
    if &bytes[..length] == PASTE_BEGINS {
        return Step::Paste(length);
    }
    let parameters = &body[..end];
    let key = match (parameters, body[end]) {
        (b"1" | b"7", b'~') => Some(KeyPress::Home),
        (b"4" | b"8", b'~') => Some(KeyPress::End),
        (b"3", b'~') => Some(KeyPress::Delete),
        (b"27;2;13", b'~') | (b"13;2", b'u') => Some(KeyPress::Newline),
        (b"", b'Z') => Some(KeyPress::BackTab),
        (b"", last) => cursor_key(last, false),
        // With Ctrl or Alt.
        (b"1;5" | b"1;3", last) => cursor_key(last, true),
        _ => None,
    };
    Step::Key(length, key)
}

fn cursor_key(last: u8, is_word: bool) -> Option<KeyPress> {
    Some(match (last, is_word) {
        (b'A', false) => KeyPress::Up,
        (b'B', false) => KeyPress::Down,
        (b'C', false) => KeyPress::Right,
        (b'D', false) => KeyPress::Left,
        (b'C', true) => KeyPress::WordRight,
        (b'D', true) => KeyPress::WordLeft,
        (b'H', _) => KeyPress::Home,
        (b'F', _) => KeyPress::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of `bytes`, the same in one piece and byte by byte.
    fn keys(bytes: &[u8]) -> Vec<KeyPress> {
        let whole = KeyDecoder::default().push(bytes);
        let mut decoder = KeyDecoder::default();
        let single: Vec<KeyPress> = bytes
            .iter()
            .flat_map(|byte| decoder.push(&[*byte]))
            .collect();
        assert_eq!(whole, single, "{bytes:?}");
        whole
    }

    #[test]
    fn bytes_become_keys() {
        let check = |bytes: &[u8], expect: &[KeyPress]| assert_eq!(keys(bytes), expect);
        check(b"a\r", &[KeyPress::Char('a'), KeyPress::Enter]);
        check(
            "é漢".as_bytes(),
            &[KeyPress::Char('é'), KeyPress::Char('漢')],
        );
        check(b"\xff\x00b", &[KeyPress::Char('b')]);
        check(
            b"\x03\x17\x7f",
            &[
                KeyPress::Ctrl('c'),
                KeyPress::DeleteWord,
                KeyPress::Backspace,
            ],
        );
        check(
            b"\x1b[A\x1bOB\x1b[1;5D\x1b[3~\x1b[Z",
            &[
                KeyPress::Up,
                KeyPress::Down,
                KeyPress::WordLeft,
                KeyPress::Delete,
                KeyPress::BackTab,
            ],
        );
        check(b"\x1b\r\x1b[13;2u", &[KeyPress::Newline, KeyPress::Newline]);
        check(b"\x1b\x1b[A", &[KeyPress::Esc, KeyPress::Up]);
        check(b"\x1b[24;80Rx", &[KeyPress::Char('x')]);
    }

    #[test]
    fn paste_is_one_key() {
        let pasted = |text: &str| KeyPress::Paste(text.to_owned());
        let check = |bytes: &[u8], expect: &[KeyPress]| assert_eq!(keys(bytes), expect);
        check(
            b"\x1b[200~a\rb\x1b[201~\r",
            &[pasted("a\nb"), KeyPress::Enter],
        );
        check(
            b"\x1b[200~y\x03\x1b[A\x1b[201~",
            &[pasted("y\u{3}\u{1b}[A")],
        );
        check(b"\x1b[200~no end", &[]);
    }

    #[test]
    fn lone_escape_is_a_key_after_a_pause() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.push(b"\x1b"), []);
        assert_eq!(decoder.pause(), Some(KeyPress::Esc));
        assert_eq!(decoder.pause(), None);
        decoder.push(b"\x1b[");
        assert_eq!(decoder.pause(), None);
        assert_eq!(decoder.push(b"A"), [KeyPress::Char('A')]);
    }
}
