//! Finds control characters, and prints what is between them: whole lines at once, where they cannot be redrawn.

use super::{Sanitizer, WINDOW, cut};
use memchr::{memchr, memrchr};

use super::row::Column;
use crate::bytes::{controls, equal, find, plain_bytes};
use crate::filter::line::{Line, Take};

/// Bytes of a colour's sequence, or of a link's target, that are looked at together.
const MAX_COLOUR: usize = 32;
const MAX_LINK: usize = 2048;
/// Bytes of coloured text that are taken at once.
const MAX_COLOURED: usize = 64 * 1024;

/// How many bytes of `text` are neither controls, but for line breaks and tabs, nor may begin
/// one.
fn plain_prefix(text: &[u8]) -> usize {
    // Where there are many controls, the next one is near.
    const NEAR: usize = 32;
    let mut at = 0;
    loop {
        let to = text.len().min(at + NEAR);
        if let Some(found) = next_special(text, at, to) {
            return found;
        }
        if to == text.len() {
            return to;
        }
        at = to + plain_bytes(&text[to..]);
    }
}

/// The first control in `from..to`.
fn next_special(text: &[u8], from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += find(&text[at..to], |word| controls(word) | equal(word, 0xc2))?;
        // 0xC2 begins U+0080 to U+009F, and other characters.
        if text[at] != 0xc2 || text.get(at + 1).is_some_and(|next| *next < 0xa0) {
            return Some(at);
        }
        at += 1;
    }
}

/// Adds to `clean` the text up to the first control that does more to what is printed at the end of
/// the last line than colouring it; returns how many bytes that were.
fn coloured_prefix(text: &str, clean: &mut String) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let plain = plain_prefix(&bytes[at..]);
        if clean.len() + plain > MAX_COLOURED && at > 0 {
            break;
        }
        clean.push_str(&text[at..at + plain]);
        at += plain;
        match idle(&bytes[at..]) {
            Some(length) => at += length,
            None => break,
        }
    }
    at
}

/// The length of the control with which `bytes` begin, if it changes nothing where text is added at the
/// end of the last line: colours, links, erasing what is behind the cursor, a carriage return before a
/// line break.
fn idle(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0x1b, b'[', rest @ ..] => {
            let mut body = rest.iter().take(MAX_COLOUR);
            let length = body.position(|byte| !(b' '..=b'?').contains(byte))?;
            let idle = match rest[length] {
                b'm' => true,
                b'K' => matches!(rest[..length], [] | [b'0']),
                _ => false,
            };
            idle.then_some(length + 3)
        }
        [0x1b, b']', rest @ ..] => {
            let mut body = rest.iter().take(MAX_LINK);
            let ends = |byte: &u8| matches!(byte, 0x07 | 0x18 | 0x1a | 0x1b | b'\n' | 0xc2);
            let length = body.position(ends)?;
            match rest[length..] {
                [0x07, ..] => Some(length + 3),
                [0x1b, b'\\', ..] => Some(length + 4),
                _ => None,
            }
        }
        [0x1b, b'(', b' '..=b'~', ..] => Some(3),
        [b'\r', b'\n', ..] => Some(1),
        [b'\r', b'\r', b'\n', ..] => Some(2),
        _ => None,
    }
}

impl Sanitizer {
    /// Prints what `text` begins with, up to a control; where it is added at the end of the last line,
    /// colours are no such. Returns how many bytes that were.
    pub(super) fn text(&mut self, text: &str, out: &mut impl Take) -> usize {
        let plain = plain_prefix(text.as_bytes());
        if plain == text.len() || !self.appends() {
            self.plain(&text[..plain], out);
            return plain;
        }
        let mut clean = std::mem::take(&mut self.clean);
        clean.clear();
        let taken = coloured_prefix(text, &mut clean);
        self.plain(&clean, out);
        self.clean = clean;
        taken
    }

    /// Text without any control but line breaks and tabs.
    fn plain(&mut self, text: &str, out: &mut impl Take) {
        let mut rest = text;
        let mut first = true;
        while let Some(end) = memchr(b'\n', rest.as_bytes()) {
            let mut each = |line: Line<'_>| out.line(line);
            self.print(&rest[..end], &mut each);
            self.line_break(&mut each);
            rest = &rest[end + 1..];
            if std::mem::take(&mut first) && self.is_on_new_line() {
                rest = self.whole_lines(rest, out);
            }
        }
        self.print(rest, &mut |line| out.line(line));
    }

    /// The cursor is on an empty last line: hands on the lines of `text` that are out of reach
    /// when it has been printed, and returns the rest.
    fn whole_lines<'t>(&mut self, text: &'t str, out: &mut impl Take) -> &'t str {
        let bytes = text.as_bytes();
        let mut end = bytes.len();
        for _ in 0..=WINDOW {
            match memrchr(b'\n', &bytes[..end]) {
                Some(at) => end = at,
                None => return text,
            }
        }
        // `end` is the line break behind the last line that goes.
        while self.rows.len() > 1 {
            self.evict(&mut |line| out.line(line));
        }
        let (mut lines, rest) = text.split_at(end + 1);
        while let Some(first) = cut::whole(lines) {
            let (block, more) = lines.split_at(first);
            self.breaks += self.out.block(self.breaks + 1, block, out);
            lines = more;
            if let Some(end) = memchr(b'\n', lines.as_bytes())
                && cut::is_too_long(end)
            {
                self.breaks += 1;
                let mut each = |line: Line<'_>| out.line(line);
                self.print(&lines[..end], &mut each);
                self.rows[0].number = self.breaks;
                self.lost = true;
                self.out.row(&self.rows[0], &mut each);
                self.rows[0].clear();
                self.column = Column::End;
                lines = &lines[end + 1..];
            }
        }
        rest
    }

    /// Whether what is printed next is added at the end of the last line.
    fn appends(&self) -> bool {
        let last = self.row + 1 == self.rows.len();
        let plain = !self.aside && !self.margins.are_known() && !self.rows[self.row].is_edited();
        last && plain && self.column == Column::End
    }
}
