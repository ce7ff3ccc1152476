//! The keys of a turn and of its input line, from the events of the terminal. Pure.
//!
//! A paste is one key, so that a line break in it is not Enter.

use crossterm::event::{Event, KeyCode, KeyModifiers};

use super::decode::Decoder;

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

/// Decodes keys that arrive in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyDecoder(Decoder);

impl KeyDecoder {
    /// Adds bytes, and returns the keys that are complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<KeyPress> {
        self.0.push(bytes).into_iter().filter_map(key).collect()
    }

    /// Ends an incomplete sequence after a pause: a lone escape character is the key Esc.
    pub(super) fn pause(&mut self) -> Option<KeyPress> {
        match self.0.is_in_sequence() {
            true => self.0.pause().and_then(key),
            // The rest of a character may still arrive.
            false => None,
        }
    }
}

/// The key of an event; `None` for an event without a meaning here.
fn key(event: Event) -> Option<KeyPress> {
    let key = match event {
        Event::Key(key) => key,
        // Terminals send `\r` for a line break.
        Event::Paste(text) => {
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            return Some(KeyPress::Paste(text));
        }
        _ => return None,
    };
    let (alt, control) = (KeyModifiers::ALT, KeyModifiers::CONTROL);
    let is_word = key.modifiers == alt || key.modifiers == control;
    Some(match key.code {
        KeyCode::Enter if key.modifiers.is_empty() => KeyPress::Enter,
        KeyCode::Enter if [alt, KeyModifiers::SHIFT].contains(&key.modifiers) => KeyPress::Newline,
        KeyCode::Char('j') if key.modifiers == control => KeyPress::Enter,
        KeyCode::Char('j') if key.modifiers == alt | control => KeyPress::Newline,
        KeyCode::Char('w') if key.modifiers == control => KeyPress::DeleteWord,
        KeyCode::Char('b') if key.modifiers == alt => KeyPress::WordLeft,
        KeyCode::Char('f') if key.modifiers == alt => KeyPress::WordRight,
        KeyCode::Char(c) if key.modifiers == control => KeyPress::Ctrl(c),
        KeyCode::Backspace if key.modifiers == alt => KeyPress::DeleteWord,
        KeyCode::Left if is_word => KeyPress::WordLeft,
        KeyCode::Right if is_word => KeyPress::WordRight,
        KeyCode::Home if is_word => KeyPress::Home,
        KeyCode::End if is_word => KeyPress::End,
        KeyCode::BackTab => KeyPress::BackTab,
        _ if !key.modifiers.is_empty() => return None,
        KeyCode::Char(c) => KeyPress::Char(c),
        KeyCode::Backspace => KeyPress::Backspace,
        KeyCode::Delete => KeyPress::Delete,
        KeyCode::Left => KeyPress::Left,
        KeyCode::Right => KeyPress::Right,
        KeyCode::Up => KeyPress::Up,
        KeyCode::Down => KeyPress::Down,
        KeyCode::Home => KeyPress::Home,
        KeyCode::End => KeyPress::End,
        KeyCode::Tab => KeyPress::Tab,
        KeyCode::Esc => KeyPress::Esc,
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
