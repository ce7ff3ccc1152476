//! An editable line with an initial text.

use unicode_width::UnicodeWidthChar as _;

/// The most characters of a line.
const MAX_LINE_CHARS: usize = 2000;

/// The result of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// Editing continues.
    More,
    /// Enter.
    Done,
    /// Escape.
    Back,
    /// Ctrl-C.
    Interrupt,
}

/// The line and the cursor in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    text: Vec<char>,
    cursor: usize,
    /// The start of an incomplete character.
    partial: Vec<u8>,
}

impl Line {
    /// A line with this text, and the cursor at its end.
    pub(super) fn of(text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        Self {
            cursor: text.len(),
            text,
            partial: Vec::new(),
        }
    }

    /// The text of the line.
    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Handles the bytes of one read.
    pub(super) fn typed(&mut self, bytes: &[u8]) -> Typed {
        match bytes {
            [0x1b] => return Typed::Back,
            [0x1b, rest @ ..] => {
                self.moved(rest);
                return Typed::More;
            }
            _ => {}
        }
        for byte in bytes {
            match byte {
                b'\r' | b'\n' => return Typed::Done,
                0x03 => return Typed::Interrupt,
                0x04 if self.text.is_empty() => return Typed::Back,
                0x01 => self.cursor = 0,
                0x05 => self.cursor = self.text.len(),
                0x7f | 0x08 if self.cursor > 0 => {
                    self.cursor -= 1;
                    self.text.remove(self.cursor);
                }
                0x15 => {
                    self.text.drain(..self.cursor);
                    self.cursor = 0;
                }
                0x0b => self.text.truncate(self.cursor),
                0x17 => self.drop_word(),
                0..0x20 | 0x7f => {}
                byte => self.push(*byte),
            }
        }
        Typed::More
    }

    fn moved(&mut self, sequence: &[u8]) {
        match sequence {
            b"[D" | b"OD" => self.cursor = self.cursor.saturating_sub(1),
            b"[C" | b"OC" => self.cursor = (self.cursor + 1).min(self.text.len()),
            b"[H" | b"OH" | b"[1~" => self.cursor = 0,
            b"[F" | b"OF" | b"[4~" => self.cursor = self.text.len(),
            b"[3~" if self.cursor < self.text.len() => {
                self.text.remove(self.cursor);
            }
            _ => {}
        }
    }

    fn drop_word(&mut self) {
        let before = &self.text[..self.cursor];
        let word = before.iter().rposition(|c| *c != ' ').unwrap_or(0);
        let start = before[..word].iter().rposition(|c| *c == ' ');
        let start = start.map_or(0, |blank| blank + 1);
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    fn push(&mut self, byte: u8) {
        self.partial.push(byte);
        let character = match std::str::from_utf8(&self.partial) {
            Ok(text) => text.chars().next(),
            Err(error) if error.error_len().is_none() => return,
            Err(_) => None,
        };
        self.partial.clear();
        if let Some(character) = character.filter(|_| self.text.len() < MAX_LINE_CHARS) {
            self.text.insert(self.cursor, character);
            self.cursor += 1;
        }
    }

    /// The visible part of the line in `columns`, and the column of the cursor in it. Characters that cannot be shown
    /// are drawn as `?`.
    pub(super) fn drawn(&self, columns: usize) -> (String, usize) {
        let room = columns.saturating_sub(2).max(8);
        let mut start = self.cursor;
        let mut width = 0;
        while start > 0 {
            width += width_of(self.text[start - 1]);
            if width > room {
                break;
            }
            start -= 1;
        }
        let cursor: usize = self.text[start..self.cursor]
            .iter()
            .copied()
            .map(width_of)
            .sum();
        let mut shown = String::new();
        let mut used = 0;
        for character in &self.text[start..] {
            used += width_of(*character);
            if used > room {
                break;
            }
            let visible =
                character.escape_debug().len() == 1 || matches!(character, '\\' | '\'' | '"');
            shown.push(if visible { *character } else { '?' });
        }
        (shown, cursor)
    }
}

fn width_of(character: char) -> usize {
    character.width().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited() {
        let check = |keys: &[&str], expect: &str| {
            let mut line = Line::of("cargo test");
            for key in keys {
                assert_eq!(line.typed(key.as_bytes()), Typed::More, "{key:?}");
            }
            assert_eq!(line.text(), expect, "{keys:?}");
        };
        check(&[], "cargo test");
        check(&[" *"], "cargo test *");
        check(&["\x7f\x7f", "\x08"], "cargo t");
        check(&["\x17", "*"], "cargo *");
        check(&["\x17", "\x17", "\x17", "x"], "x");
        check(&["\x15", "grün é"], "grün é");
        check(&["\x01", "x ", "\x05", "!"], "x cargo test!");
        check(&["\x1b[D", "\x1b[D", "\x0b"], "cargo te");
        check(
            &["\x1b[H", "\x1b[3~", "\x1b[C", "\x1b[C", "X"],
            "arXgo test",
        );
        check(&["\x1b[A", "\x1b[1;5C", "\t"], "cargo test");
        check(&["\x01", "\x7f"], "cargo test");
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let mut line = Line::of("");
        assert_eq!(line.typed(b"\xc3"), Typed::More);
        assert_eq!(line.typed(b"\xa9\xff!"), Typed::More);
        assert_eq!(line.text(), "é!");
    }

    #[test]
    fn keys_that_end_it() {
        let check = |keys: &[u8], expect| assert_eq!(Line::of("a").typed(keys), expect);
        check(b"b\r", Typed::Done);
        check(b"\n", Typed::Done);
        check(b"\x1b", Typed::Back);
        check(b"\x03", Typed::Interrupt);
        check(b"\x04", Typed::More);
        assert_eq!(Line::of("").typed(b"\x04"), Typed::Back);
    }

    #[test]
    fn the_cursor_is_always_drawn() {
        let mut line = Line::of(&"x".repeat(100));
        let (shown, cursor) = line.drawn(22);
        assert_eq!((shown.len(), cursor), (20, 20));
        line.typed(b"\x01");
        assert_eq!(line.drawn(22).1, 0);
        assert_eq!(Line::of("漢a\u{202e}").drawn(40), ("漢a?".to_owned(), 4));
    }
}
