//! An editable text with an initial text, shown on one row.

use unicode_width::UnicodeWidthChar as _;

use super::key_press::{KeyDecoder, KeyPress};

/// The most characters of a line in a dialog.
const MAX_LINE_CHARS: usize = 2000;
/// The most characters of a prompt.
const MAX_PROMPT_CHARS: usize = 1024 * 1024;

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
    /// Ctrl-Z.
    Suspend,
}

/// The text and the cursor in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    text: Vec<char>,
    cursor: usize,
    /// The text may contain line breaks.
    is_prompt: bool,
    keys: KeyDecoder,
}

impl Line {
    /// A line with this text, and the cursor at its end.
    pub(super) fn of(text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        Self {
            cursor: text.len(),
            text,
            ..Self::default()
        }
    }

    /// An empty text that may contain line breaks.
    pub(super) fn prompt() -> Self {
        Self {
            is_prompt: true,
            ..Self::default()
        }
    }

    /// The text of the line.
    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Whether the text is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes the text, and leaves an empty one.
    pub(super) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text).into_iter().collect()
    }

    /// Handles the bytes of one read.
    pub(super) fn typed(&mut self, bytes: &[u8]) -> Typed {
        let mut keys = self.keys.push(bytes);
        keys.extend(self.keys.pause());
        for key in keys {
            match key {
                KeyPress::Enter => return Typed::Done,
                KeyPress::Esc => return Typed::Back,
                KeyPress::Ctrl('c') => return Typed::Interrupt,
                KeyPress::Ctrl('z') => return Typed::Suspend,
                KeyPress::Ctrl('d') if self.text.is_empty() => return Typed::Back,
                key => {
                    self.press(key);
                }
            }
        }
        Typed::More
    }

    /// Handles a key that edits the text. Returns whether it does.
    pub(super) fn press(&mut self, key: KeyPress) -> bool {
        match key {
            KeyPress::Char(c) => self.insert(c),
            KeyPress::Newline if self.is_prompt => self.insert('\n'),
            KeyPress::Paste(text) => {
                let text = text.trim_end_matches('\n');
                text.chars().for_each(|c| match c {
                    '\n' if !self.is_prompt => self.insert(' '),
                    c => self.insert(c),
                });
            }
            KeyPress::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            KeyPress::Delete if self.cursor < self.text.len() => {
                self.text.remove(self.cursor);
            }
            KeyPress::Left | KeyPress::Ctrl('b') => self.cursor = self.cursor.saturating_sub(1),
            KeyPress::Right | KeyPress::Ctrl('f') => {
                self.cursor = (self.cursor + 1).min(self.text.len());
            }
            KeyPress::Home | KeyPress::Ctrl('a') => self.cursor = 0,
            KeyPress::End | KeyPress::Ctrl('e') => self.cursor = self.text.len(),
            KeyPress::WordLeft => self.cursor = self.word_start(),
            KeyPress::WordRight => {
                let after = &self.text[self.cursor..];
                let word = after.iter().position(|c| !c.is_whitespace()).unwrap_or(0);
                let length = after[word..].iter().position(|c| c.is_whitespace());
                self.cursor += length.map_or(after.len(), |length| word + length);
            }
            KeyPress::Ctrl('u') => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            KeyPress::Ctrl('k') => self.text.truncate(self.cursor),
            KeyPress::DeleteWord => {
                let start = self.word_start();
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            _ => return false,
        }
        true
    }

    /// The start of the word before the cursor.
    fn word_start(&self) -> usize {
        let before = &self.text[..self.cursor];
        let word = before.iter().rposition(|c| !c.is_whitespace()).unwrap_or(0);
        let start = before[..word].iter().rposition(|c| c.is_whitespace());
        start.map_or(0, |blank| blank + 1)
    }

    fn insert(&mut self, c: char) {
        let max = match self.is_prompt {
            true => MAX_PROMPT_CHARS,
            false => MAX_LINE_CHARS,
        };
        if self.text.len() < max {
            self.text.insert(self.cursor, c);
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
            shown.push(match character {
                '\n' => '↵',
                c if visible => *c,
                _ => '?',
            });
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
    fn line_is_edited() {
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
        check(&["\x1b[1;5D", "x ", "\x1bf", "s"], "cargo x tests");
        check(&["\x1b[200~ a\rb\r\x1b[201~"], "cargo test a b");
        check(&["\x01", "\x7f"], "cargo test");
    }

    #[test]
    fn character_in_pieces_is_decoded() {
        let mut line = Line::of("");
        assert_eq!(line.typed(b"\xc3"), Typed::More);
        assert_eq!(line.typed(b"\xa9\xff!"), Typed::More);
        assert_eq!(line.text(), "é!");
    }

    #[test]
    fn keys_that_end_the_line_are_recognized() {
        let check = |keys: &[u8], expect| assert_eq!(Line::of("a").typed(keys), expect);
        check(b"b\r", Typed::Done);
        check(b"\n", Typed::Done);
        check(b"\x1b", Typed::Back);
        check(b"\x03", Typed::Interrupt);
        check(b"\x1a", Typed::Suspend);
        check(b"\x04", Typed::More);
        assert_eq!(Line::of("").typed(b"\x04"), Typed::Back);
    }

    #[test]
    fn cursor_is_always_drawn() {
        let mut line = Line::of(&"x".repeat(100));
        let (shown, cursor) = line.drawn(22);
        assert_eq!((shown.len(), cursor), (20, 20));
        line.typed(b"\x01");
        assert_eq!(line.drawn(22).1, 0);
        assert_eq!(Line::of("漢a\u{202e}").drawn(40), ("漢a?".to_owned(), 4));
    }

    #[test]
    fn prompt_can_have_line_breaks() {
        let mut line = Line::prompt();
        for key in [
            KeyPress::Paste("a\nb\n".to_owned()),
            KeyPress::Newline,
            KeyPress::Char('c'),
        ] {
            assert!(line.press(key));
        }
        assert_eq!(line.drawn(40), ("a↵b↵c".to_owned(), 5));
        assert!(!line.press(KeyPress::Enter) && !line.press(KeyPress::Up));
        assert_eq!(line.take(), "a\nb\nc");
        assert!(line.is_empty());
    }
}
