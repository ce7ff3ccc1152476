//! A line as a terminal shows it: without escape sequences, and without characters that backspaces remove.

use std::ops::Range;

use memchr::{memchr2_iter, memchr3};

/// The visible text of a line, with the original position of each byte.
pub(super) struct VisibleLine {
    pub(super) text: String,
    /// The start of each run of `text`, and its position in the line.
    runs: Vec<(usize, usize)>,
}

const ESC: u8 = 0x1b;
const BACKSPACE: u8 = 0x08;
const BELL: u8 = 0x07;

/// Whether a line contains bytes that a terminal does not show. A carriage return before the line break does not
/// count.
pub(super) fn is_needed(line: &str) -> bool {
    let bytes = line.strip_suffix('\n').unwrap_or(line);
    let bytes = bytes.strip_suffix('\r').unwrap_or(bytes).as_bytes();
    memchr3(b'\x1b', b'\x08', b'\r', bytes).is_some()
}

/// Whether a text of any number of lines contains bytes that a terminal does not show.
pub(super) fn is_needed_anywhere(text: &str) -> bool {
    memchr3(b'\x1b', b'\x08', b'\r', text.as_bytes()).is_some()
}

/// The offset of the first control character of ASCII, except line feed and tab.
pub(super) fn find_control(text: &str) -> Option<usize> {
    let is_control = |byte: u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t');
    text.bytes().position(is_control)
}

/// A part of a line.
enum Part<'t> {
    /// The position of a visible part, and its text.
    Shown(usize, &'t str),
    /// The last character is removed.
    Backspace,
}

/// Iterates over the parts of a line.
struct Parts<'t> {
    line: &'t str,
    at: usize,
    /// Whether no string sequence from here on has an end.
    endless: bool,
}

impl<'t> Parts<'t> {
    fn of(line: &'t str) -> Self {
        Self {
            line,
            at: 0,
            endless: false,
        }
    }
}

impl<'t> Iterator for Parts<'t> {
    type Item = Part<'t>;

    fn next(&mut self) -> Option<Part<'t>> {
        loop {
            let at = self.at;
            let rest = &self.line[at..];
            let plain = find_control(rest).unwrap_or(rest.len());
            if plain > 0 {
                self.at += plain;
                return Some(Part::Shown(at, &rest[..plain]));
            }
            match *rest.as_bytes().first()? {
                ESC => self.at += escape(rest, &mut self.endless),
                BACKSPACE => {
                    self.at += 1;
                    return Some(Part::Backspace);
                }
                _ => self.at += 1,
            }
        }
    }
}

impl VisibleLine {
    pub(super) fn new(line: &str) -> Self {
        let mut view = Self {
            text: String::with_capacity(line.len()),
            runs: Vec::new(),
        };
        for part in Parts::of(line) {
            match part {
                Part::Shown(at, text) => view.push(at, text),
                Part::Backspace => view.remove_last(),
            }
        }
        view
    }

    fn push(&mut self, at: usize, text: &str) {
        if !text.is_empty() {
            self.runs.push((self.text.len(), at));
            self.text.push_str(text);
        }
    }

    fn remove_last(&mut self) {
        self.text.pop();
        while self
            .runs
            .last()
            .is_some_and(|(start, _)| *start >= self.text.len())
        {
            self.runs.pop();
        }
    }

    /// The range in the line of a range in `text`.
    pub(super) fn range(&self, range: Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            let run = self.runs.partition_point(|(start, _)| *start <= at);
            let run = run.checked_sub(1).and_then(|run| self.runs.get(run));
            run.map_or(0, |(start, place)| place + at - start)
        };
        if range.is_empty() {
            return 0..0;
        }
        place(range.start)..place(range.end - 1) + 1
    }
}

/// The length of the escape sequence (ECMA-48) at the start of `text`: CSI, OSC and similar sequences up to their end,
/// other sequences of two or three characters. `endless` is whether the text has no such end.
fn escape(text: &str, endless: &mut bool) -> usize {
    let bytes = text.as_bytes();
    let is = |byte: &u8, range: std::ops::RangeInclusive<u8>| range.contains(byte);
    let end = match bytes.get(1) {
        Some(b'[') => {
            let body = bytes[2..].iter();
            let body = body.take_while(|byte| is(byte, 0x20..=0x3f)).count();
            let last = bytes.get(2 + body);
            // All of it is ASCII.
            return 2 + body + usize::from(last.is_some_and(|byte| is(byte, 0x40..=0x7e)));
        }
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let is_end = |at: &usize| bytes[*at] == BELL || bytes.get(at + 1) == Some(&b'\\');
            let found = match *endless {
                true => None,
                false => memchr2_iter(ESC, BELL, bytes).skip(1).find(is_end),
            };
            *endless = found.is_none();
            match found {
                Some(at) if bytes[at] == BELL => at + 1,
                Some(at) => at + 2,
                // Without an end, some terminals show the following text.
                None => 2,
            }
        }
        Some(byte) if is(byte, 0x20..=0x2f) => {
            let between = bytes[1..]
                .iter()
                .take_while(|byte| is(byte, 0x20..=0x2f))
                .count();
            2 + between
        }
        Some(byte) if byte.is_ascii() => 2,
        _ => 1,
    };
    text.ceil_char_boundary(end.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invisible_text_is_removed() {
        let check =
            |line: &str, expect: &str| assert_eq!(VisibleLine::new(line).text, expect, "{line:?}");
        check("plain\n", "plain\n");
        check("\x1b[1;31mred\x1b[m\x1b[K!", "red!");
        check("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07.", "link.");
        check("b\x08bo\x08ol\x08ld", "bold");
        check("\x08a", "a");
        check("a\x1b(Bb\x1b=c\x1b", "abc");
        check("ä\x08ö\r\n", "ö\n");
        check("\x1b]open", "open");
    }

    proptest! {
        #[test]
        fn each_character_has_its_position(line in "(\x1b|\\[|\\]|m|;|1|a|ä|\u{8}|\r|\\\\|\u{7}){0,40}") {
            let view = VisibleLine::new(&line);
            for (at, c) in view.text.char_indices() {
                let range = view.range(at..at + c.len_utf8());
                prop_assert_eq!(&line[range], c.to_string());
            }
        }
    }
}
