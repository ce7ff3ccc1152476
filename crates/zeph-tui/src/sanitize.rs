//! Removal of control sequences from foreign text, so that it cannot control the terminal.
//!
//! Text of models, tools and files may contain escape sequences that recolour, retitle, overwrite or send replies.
//! [`Sanitizer`] removes them from streams. In text for a decision of the user, [`visible`] shows them instead, so
//! that nothing can hide. Both show characters that reorder a line.

use zeph_tools::hidden::Reader;

/// The maximum number of characters that a paste adds to a field of one line.
const MAX_PASTED_CHARS: usize = 1024;

/// A filter that removes escape sequences and control characters other than `\n` and `\t` from a stream, in pieces of
/// any size.
///
/// Sequences are recognized as in ECMA-48: CSI ends at its final byte, the strings (OSC, DCS, SOS, PM, APC) at BEL or
/// ST. A string also ends at the end of the line, so that an unterminated one hides only its line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sanitizer {
    state: State,
    reader: Reader,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Ground,
    Escape,
    Control,
    Text,
    TextEscape,
}

impl Sanitizer {
    /// The part of `c` that is not an escape sequence.
    fn step(&mut self, c: char) -> Option<char> {
        if c == '\n' {
            self.state = State::Ground;
            return Some(c);
        }
        match self.state {
            State::Ground => self.ground(c),
            State::Escape => {
                self.state = match c {
                    '[' => State::Control,
                    ']' | 'P' | 'X' | '^' | '_' => State::Text,
                    '\x1b' | ' '..='/' => State::Escape,
                    '0'..='~' => State::Ground,
                    // This is not a sequence: the escape is removed, the character is not.
                    _ => return self.ground(c),
                };
                None
            }
            State::Control => match c {
                ' '..='?' => None,
                '@'..='~' => {
                    self.state = State::Ground;
                    None
                }
                _ => self.ground(c),
            },
            State::Text => {
                match c {
                    '\x07' | '\u{9c}' => self.state = State::Ground,
                    '\x1b' => self.state = State::TextEscape,
                    _ => {}
                }
                None
            }
            State::TextEscape => {
                if c == '\\' {
                    self.state = State::Ground;
                    return None;
                }
                self.state = State::Escape;
                self.step(c)
            }
        }
    }

    fn ground(&mut self, c: char) -> Option<char> {
        self.state = match c {
            '\x1b' => State::Escape,
            '\u{9b}' => State::Control,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => State::Text,
            _ => State::Ground,
        };
        (c == '\t' || !c.is_control()).then_some(c)
    }

    /// Appends the visible part of `text` to `out`.
    pub fn push(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            if let Some(c) = self.step(c) {
                self.reader.push(c, out);
            }
        }
    }
}

/// Returns a complete text without escape sequences and control characters.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    Sanitizer::default().push(text, &mut out);
    out
}

/// The start of a pasted text for a field of one line, without escape sequences and control characters.
pub(crate) fn pasted_words(text: &str) -> String {
    let text = clean(text);
    let characters = text.chars().filter(|c| !c.is_control());
    characters.take(MAX_PASTED_CHARS).collect()
}

pub use zeph_tools::hidden::revealed as visible;

/// The first line of a text, at most `max` characters, with `…` if anything is omitted.
pub(crate) fn first_line(text: &str, max: usize) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let cut = line
        .char_indices()
        .nth(max)
        .map_or(line.len(), |(at, _)| at);
    let more = cut < text.len();
    let mut out = visible(&line[..cut]).replace('\t', " ");
    if more {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_and_controls_are_removed() {
        let check = |text, expect: &str| assert_eq!(clean(text), expect, "{text:?}");
        check("plain\ttext\n", "plain\ttext\n");
        check("\x1b[31mred\x1b[0m", "red");
        check("\x1b[38;5;1m\x1b[2Jx", "x");
        check("a\x1b]0;title\x07b", "ab");
        check("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb");
        check("a\x1bP1;2|hidden\x1b\\b", "ab");
        check("\u{9b}31mx", "x");
        check("\u{9d}0;t\u{9c}x", "x");
        check("a\rb\x08c\x00d\x7fe", "abcde");
        check("\x1b(Bx\x1bcy", "xy");
        check("\x1b]0;never closed\nnext", "\nnext");
        check("\x1b\x1b[31mx", "x");
        check("\x1béx", "éx");
        check("\x1b[31\u{fc}x", "üx");
        check("end\x1b", "end");
        check("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c");
        check("a\u{200b}b \x1b[1m❤\u{fe0f}\x1b[0m", "ab ❤\u{fe0f}");
    }

    #[test]
    fn hidden_characters_are_shown() {
        let check = |text, expect: &str| assert_eq!(visible(text), expect);
        check("rm -rf x\t\n", "rm -rf x\t\n");
        check("a\x1b[8mb", "a\\u{1b}[8mb");
        check("a\rb", "a\\u{d}b");
        check("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}");
        check("äöü 漢字 🙂", "äöü 漢字 🙂");
    }

    #[test]
    fn first_line_marks_omitted_text() {
        let check = |text, max, expect: &str| assert_eq!(first_line(text, max), expect);
        check("abc", 5, "abc");
        check("abc\n", 5, "abc");
        check("abcdef", 5, "abcde…");
        check("ab\ncd", 5, "ab…");
        check("äöüß", 3, "äöü…");
        check("", 3, "");
    }

    proptest! {
        #[test]
        fn no_control_survives_any_text(text in "[\\x00-\\u{ff}]{0,60}") {
            let cleaned = clean(&text);
            prop_assert!(!cleaned.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert!(!cleaned.chars().any(zeph_tools::hidden::is_hidden));
            prop_assert_eq!(cleaned.matches('\n').count(), text.matches('\n').count());
        }
    }
}
