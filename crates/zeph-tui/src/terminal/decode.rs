//! Decodes the bytes of a terminal into keys, pastes and clicks. Pure.
//!
//! The library for terminals reads the terminal itself and loses keys that arrive together with a change of the size. So
//! only its types are used. The sequences are those of xterm: control sequences (ECMA-48), SGR mouse reports, bracketed paste.

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// The most bytes of a control sequence.
const MAX_SEQUENCE_BYTES: usize = 64;
/// The most bytes of a paste. The rest is dropped.
const MAX_PASTE_BYTES: usize = 1024 * 1024;

/// Decodes inputs that arrive in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    /// The bytes of a paste that has not ended.
    paste: Option<Vec<u8>>,
}

/// The first bytes of the input.
enum Step {
    /// That many bytes are an event, or mean nothing.
    Event(usize, Option<Event>),
    /// That many bytes begin a paste.
    Paste(usize),
    /// More bytes are needed.
    Incomplete,
}

impl Decoder {
    /// Adds bytes, and returns the complete events.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.pending.extend_from_slice(bytes);
        let mut events = Vec::new();
        loop {
            if let Some(paste) = &mut self.paste {
                let found = self
                    .pending
                    .windows(PASTE_ENDS.len())
                    .position(|part| part == PASTE_ENDS);
                // A part of the end mark may be at the end.
                let length =
                    found.unwrap_or(self.pending.len().saturating_sub(PASTE_ENDS.len() - 1));
                let room = MAX_PASTE_BYTES.saturating_sub(paste.len());
                paste.extend_from_slice(&self.pending[..length.min(room)]);
                self.pending.drain(..length);
                if found.is_none() {
                    return events;
                }
                self.pending.drain(..PASTE_ENDS.len());
                let text = self.paste.take().unwrap_or_default();
                events.push(Event::Paste(String::from_utf8_lossy(&text).into_owned()));
            }
            match first(&self.pending) {
                Step::Event(length, event) => {
                    self.pending.drain(..length);
                    events.extend(event);
                }
                Step::Paste(length) => {
                    self.pending.drain(..length);
                    self.paste = Some(Vec::new());
                }
                Step::Incomplete => return events,
            }
        }
    }

    /// Whether bytes wait for more.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty() && self.paste.is_none()
    }

    /// Whether an escape sequence waits for more.
    pub(super) fn is_in_sequence(&self) -> bool {
        self.paste.is_none() && self.pending.first() == Some(&0x1b)
    }

    /// Ends an incomplete sequence after a pause: a lone escape character is the key Esc.
    pub(crate) fn pause(&mut self) -> Option<Event> {
        if self.paste.is_some() {
            return None;
        }
        let is_escape = self.pending == b"\x1b";
        self.pending.clear();
        is_escape.then(|| key(KeyCode::Esc, KeyModifiers::NONE))
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

fn first(bytes: &[u8]) -> Step {
    match bytes {
        [] | [0x1b] => Step::Incomplete,
        [0x1b, b'[', ..] => control_sequence(bytes),
        [0x1b, b'O'] => Step::Incomplete,
        [0x1b, b'O', last, ..] => Step::Event(3, cursor_key(*last, KeyModifiers::NONE)),
        [0x1b, 0x1b, ..] => Step::Event(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        [0x1b, rest @ ..] => match single(rest, KeyModifiers::ALT) {
            Step::Event(length, event) => Step::Event(length + 1, event),
            other => other,
        },
        _ => single(bytes, KeyModifiers::NONE),
    }
}

/// A character or a control character.
fn single(bytes: &[u8], modifiers: KeyModifiers) -> Step {
    let Some(byte) = bytes.first() else {
        return Step::Incomplete;
    };
    let code = match byte {
        b'\r' => KeyCode::Enter,
        b'\t' => KeyCode::Tab,
        0x7f | 0x08 => KeyCode::Backspace,
        0x01..=0x1a => {
            let letter = KeyCode::Char(char::from(byte + 0x60));
            return Step::Event(1, Some(key(letter, modifiers | KeyModifiers::CONTROL)));
        }
        0x00 | 0x1b..=0x1f => return Step::Event(1, None),
        _ => return character(bytes, modifiers),
    };
    Step::Event(1, Some(key(code, modifiers)))
}

fn character(bytes: &[u8], modifiers: KeyModifiers) -> Step {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) if error.error_len().is_none() => return Step::Incomplete,
        Err(_) => return Step::Event(1, None),
    };
    match valid.chars().next() {
        Some(c) => Step::Event(c.len_utf8(), Some(key(KeyCode::Char(c), modifiers))),
        None => Step::Incomplete,
    }
}

fn control_sequence(bytes: &[u8]) -> Step {
    let body = &bytes[2..];
    let Some(end) = body.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return match body.len() > MAX_SEQUENCE_BYTES {
            true => Step::Event(bytes.len(), None),
            false => Step::Incomplete,
        };
    };
    let length = end + 3;
    if &bytes[..length] == PASTE_BEGINS {
        return Step::Paste(length);
    }
    let text = std::str::from_utf8(&body[..end]).unwrap_or_default();
    let event = match text.strip_prefix('<') {
        Some(report) => mouse(&numbers(report), body[end]),
        None => function_key(&numbers(text), body[end]),
    };
    Step::Event(length, event)
}

/// The numbers of a sequence; a missing one is 0. Sub-parameters are dropped.
fn numbers(text: &str) -> Vec<u32> {
    let number = |part: &str| part.split(':').next().and_then(|part| part.parse().ok());
    text.split(';')
        .map(|part| number(part).unwrap_or(0))
        .collect()
}

fn function_key(numbers: &[u32], last: u8) -> Option<Event> {
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
    let modifiers = modifiers(at(1));
    let code = match (last, at(0)) {
        (b'~', 27) => return unicode_key(at(2), modifiers),
        (b'u', code) => return unicode_key(code, modifiers),
        (b'~', 1 | 7) => KeyCode::Home,
        (b'~', 2) => KeyCode::Insert,
        (b'~', 3) => KeyCode::Delete,
        (b'~', 4 | 8) => KeyCode::End,
        (b'~', 5) => KeyCode::PageUp,
        (b'~', 6) => KeyCode::PageDown,
        (b'~', number @ 11..=15) => KeyCode::F(u8::try_from(number - 10).ok()?),
        (b'~', number @ 17..=21) => KeyCode::F(u8::try_from(number - 11).ok()?),
        (b'~', number @ 23..=24) => KeyCode::F(u8::try_from(number - 12).ok()?),
        (b'Z', _) => return Some(key(KeyCode::BackTab, KeyModifiers::SHIFT)),
        (last, 0 | 1) => return cursor_key(last, modifiers),
        _ => return None,
    };
    Some(key(code, modifiers))
}

/// A key that is reported by its character, with modifiers.
fn unicode_key(code: u32, modifiers: KeyModifiers) -> Option<Event> {
    let code = match char::from_u32(code)? {
        '\r' => KeyCode::Enter,
        '\t' if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        '\t' => KeyCode::Tab,
        '\u{7f}' | '\u{8}' => KeyCode::Backspace,
        '\u{1b}' => KeyCode::Esc,
        // Keys without a character have numbers in this area.
        '\u{e000}'..='\u{f8ff}' => return None,
        other if other.is_control() => return None,
        other => KeyCode::Char(other),
    };
    Some(key(code, modifiers))
}

fn cursor_key(last: u8, modifiers: KeyModifiers) -> Option<Event> {
    let code = match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        _ => return None,
    };
    Some(key(code, modifiers))
}

/// The modifiers of a parameter, which is 1 plus the sum of their bits.
fn modifiers(parameter: u32) -> KeyModifiers {
    let bits = parameter.saturating_sub(1);
    let mut modifiers = KeyModifiers::NONE;
    modifiers.set(KeyModifiers::SHIFT, bits & 1 != 0);
    modifiers.set(KeyModifiers::ALT, bits & 2 != 0);
    modifiers.set(KeyModifiers::CONTROL, bits & 4 != 0);
    modifiers
}

/// An SGR mouse report: button, column and row from 1.
fn mouse(numbers: &[u32], last: u8) -> Option<Event> {
    let &[button, column, row] = numbers else {
        return None;
    };
    let kind = match (button & 0b1100_0011, last) {
        (0, b'M') => MouseEventKind::Down(MouseButton::Left),
        (64, b'M') => MouseEventKind::ScrollUp,
        (65, b'M') => MouseEventKind::ScrollDown,
        _ => return None,
    };
    let place = |number: u32| u16::try_from(number.saturating_sub(1)).ok();
    Some(Event::Mouse(MouseEvent {
        kind,
        column: place(column)?,
        row: place(row)?,
        modifiers: KeyModifiers::NONE,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The events of `bytes`, the same in one piece and byte by byte.
    fn events(bytes: &[u8]) -> Vec<Event> {
        let whole = Decoder::default().push(bytes);
        let mut decoder = Decoder::default();
        let single: Vec<Event> = bytes
            .iter()
            .flat_map(|byte| decoder.push(&[*byte]))
            .collect();
        assert_eq!(whole, single, "{bytes:?}");
        whole
    }

    #[test]
    fn bytes_become_keys() {
        let check = |bytes: &[u8], expect: &[(KeyCode, KeyModifiers)]| {
            let expect = expect
                .iter()
                .map(|(code, modifiers)| key(*code, *modifiers));
            assert_eq!(events(bytes), expect.collect::<Vec<_>>(), "{bytes:?}");
        };
        let none = KeyModifiers::NONE;
        let (alt, control, shift) = (
            KeyModifiers::ALT,
            KeyModifiers::CONTROL,
            KeyModifiers::SHIFT,
        );
        let c = KeyCode::Char;
        check(
            "aé漢".as_bytes(),
            &[(c('a'), none), (c('é'), none), (c('漢'), none)],
        );
        check(b"\xff\x00b", &[(c('b'), none)]);
        check(
            b"\r\n\t\x7f",
            &[
                (KeyCode::Enter, none),
                (c('j'), control),
                (KeyCode::Tab, none),
                (KeyCode::Backspace, none),
            ],
        );
        check(
            b"\x03\x1bx\x1b\r",
            &[(c('c'), control), (c('x'), alt), (KeyCode::Enter, alt)],
        );
        check(
            b"\x1b[A\x1bOB\x1b[1;5D\x1b[H\x1b[F",
            &[
                (KeyCode::Up, none),
                (KeyCode::Down, none),
                (KeyCode::Left, control),
                (KeyCode::Home, none),
                (KeyCode::End, none),
            ],
        );
        check(
            b"\x1b[5~\x1b[6~\x1b[3~\x1b[12~\x1bOP\x1b[Z",
            &[
                (KeyCode::PageUp, none),
                (KeyCode::PageDown, none),
                (KeyCode::Delete, none),
                (KeyCode::F(2), none),
                (KeyCode::F(1), none),
                (KeyCode::BackTab, shift),
            ],
        );
        check(
            b"\x1b[13;2u\x1b[27;2;13~",
            &[(KeyCode::Enter, shift), (KeyCode::Enter, shift)],
        );
        check(b"\x1b\x1b[A", &[(KeyCode::Esc, none), (KeyCode::Up, none)]);
        check(b"\x1b[24;80Rx\x1b[Ix", &[(c('x'), none), (c('x'), none)]);
    }

    #[test]
    fn lone_escape_is_a_key_after_a_pause() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"\x1b"), []);
        assert!(decoder.is_pending());
        assert_eq!(decoder.pause(), Some(key(KeyCode::Esc, KeyModifiers::NONE)));
        assert_eq!(decoder.push(b"\x1b[1"), []);
        assert_eq!(decoder.pause(), None);
        assert!(!decoder.is_pending());
    }

    #[test]
    fn paste_is_one_event() {
        let pasted = Event::Paste("a\r\x1b[31mb".to_owned());
        assert_eq!(events(b"\x1b[200~a\r\x1b[31mb\x1b[201~"), [pasted]);
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"\x1b[200~1\r"), []);
        assert_eq!(decoder.pause(), None, "a slow paste continues");
        assert_eq!(decoder.push(b"\x1b[201~"), [Event::Paste("1\r".to_owned())]);
    }

    #[test]
    fn mouse_is_reported() {
        let kinds = |bytes: &[u8]| -> Vec<(MouseEventKind, u16, u16)> {
            let mouse = events(bytes).into_iter().filter_map(|event| match event {
                Event::Mouse(it) => Some((it.kind, it.column, it.row)),
                _ => None,
            });
            mouse.collect()
        };
        let seen =
            kinds(b"\x1b[<0;3;4M\x1b[<0;3;4m\x1b[<64;1;1M\x1b[<65;200;60M\x1b[<2;1;1M\x1b[<0;1M");
        assert_eq!(
            seen,
            [
                (MouseEventKind::Down(MouseButton::Left), 2, 3),
                (MouseEventKind::ScrollUp, 0, 0),
                (MouseEventKind::ScrollDown, 199, 59),
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            decoder.pause();
            prop_assert!(decoder.paste.is_some() || !decoder.is_pending());
        }
    }
}
