//! Finds control characters, and prints what is between them: whole lines at once, where they cannot be redrawn.

use std::borrow::Cow;

use super::overwrite::{Erase, OverwriteState};
use super::{Sanitizer, WINDOW, cut};
use memchr::{memchr, memrchr};

use super::places::Specials;
use super::terminal_line::Column;
use crate::bytes::add_short;
use crate::line::LineSink;
use crate::sgr::colour;

/// Bytes of a colour's sequence, or of a link's target, that are looked at together.
const MAX_COLOUR: usize = 32;
const MAX_LINK: usize = 2048;
/// Bytes of coloured text that are taken at once.
const MAX_COLOURED: usize = 64 * 1024;

/// Where the controls of a text are, but for line breaks and tabs, in order.
pub(super) struct Controls<'t> {
    text: &'t [u8],
    specials: Specials<'t>,
    /// The next one, or the end of the text.
    next: usize,
}

impl<'t> Controls<'t> {
    pub(super) fn of(text: &'t [u8]) -> Self {
        let mut controls = Self {
            text,
            specials: Specials::of(text),
            next: 0,
        };
        controls.go_on();
        controls
    }

    /// The first one that is not before a place, or the end of the text.
    pub(super) fn from(&mut self, place: usize) -> usize {
        while self.next < place {
            self.go_on();
        }
        self.next
    }

    fn go_on(&mut self) {
        let text = self.text;
        // 0xC2 begins U+0080 to U+009F, and other characters.
        let begins = |at: usize| text.get(at + 1).is_some_and(|next| *next < 0xa0);
        let next = self.specials.find(|at| text[*at] != 0xc2 || begins(*at));
        self.next = next.unwrap_or(text.len());
    }
}

/// Adds to `clean`, which stays UTF-8, the text from `start` up to the first control that does more to what is printed
/// than colouring it, or drawing over the last line in a simple way; returns where that is. `appends`: it is printed at
/// the end of the last line.
fn coloured_prefix(
    text: &str,
    start: usize,
    controls: &mut Controls<'_>,
    appends: bool,
    draw: &mut OverwriteState,
    clean: &mut Vec<u8>,
) -> usize {
    let bytes = text.as_bytes();
    let most = text.floor_char_boundary(start + MAX_COLOURED);
    let mut done = start;
    // Whether the next run is written over something.
    let mut over = draw.is_over();
    while done < most {
        let at = controls.from(done);
        let run = done..at.min(most);
        if over {
            let written = draw.write(bytes, run.clone(), clean);
            if written < run.len() {
                return done + written;
            }
            over = draw.is_over();
        } else {
            add_short(bytes, run, clean);
        }
        if at >= most {
            return most;
        }
        let control = &bytes[at..];
        done = at + 1;
        if begins_redraw(control) {
            if !draw.carriage_return(clean) {
                return at;
            }
        } else if let Some(length) = colour(control) {
            done = at + length;
            continue;
        } else {
            let idle = idle(control, appends && draw.appends());
            match idle.or_else(|| erase(control, draw, clean)) {
                Some(length) => done = at + length,
                None => return at,
            }
        }
        over = draw.is_over();
    }
    done
}

/// Erases of the last line what the control says with which `bytes` begin: its length, if that can be done.
fn erase(bytes: &[u8], draw: &mut OverwriteState, clean: &mut Vec<u8>) -> Option<usize> {
    let (erase, length) = erasing(bytes)?;
    draw.erase(erase, clean).then_some(length)
}

/// Whether bytes begin with a carriage return behind which text or a sequence stands that goes over what is there.
fn begins_redraw(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [b'\r', b' '..=b'~', ..] | [b'\r', 0x1b, b'[', b'0'..=b'9' | b'K', ..]
    )
}

/// What the control with which `bytes` begin erases, and its length.
fn erasing(bytes: &[u8]) -> Option<(Erase, usize)> {
    let [0x1b, b'[', rest @ ..] = bytes else {
        return None;
    };
    match rest {
        [b'K', ..] => Some((Erase::Right, 3)),
        [b'0', b'K', ..] => Some((Erase::Right, 4)),
        [b'2', b'K', ..] => Some((Erase::Line, 4)),
        _ => None,
    }
}

/// The length of the control with which `bytes` begin, if it changes nothing of what is printed: colours, links. Where
/// text is added at the end of the last line, also erasing what is behind the cursor, and a carriage return before a
/// line break.
fn idle(bytes: &[u8], appends: bool) -> Option<usize> {
    match bytes {
        [0x1b, b'[', rest @ ..] => {
            let mut body = rest.iter().take(MAX_COLOUR);
            let length = body.position(|byte| !(b' '..=b'?').contains(byte))?;
            let idle = match rest[length] {
                b'm' => true,
                b'K' => appends && matches!(rest[..length], [] | [b'0']),
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
        [b'\r', b'\n', ..] if appends => Some(1),
        [b'\r', b'\r', b'\n', ..] if appends => Some(2),
        _ => None,
    }
}

impl Sanitizer {
    /// Prints what stands from `start` on, up to a control that does more than colouring it or drawing over the last line
    /// in a simple way. Returns where that is.
    pub(super) fn text(
        &mut self,
        text: &str,
        start: usize,
        controls: &mut Controls<'_>,
        out: &mut impl LineSink,
    ) -> usize {
        let end = controls.from(start);
        let appends = self.appends();
        let control = &text.as_bytes()[end..];
        let mut clean = std::mem::take(&mut self.clean);
        clean.clear();
        let draw = match idle(control, appends) {
            Some(_) => Some(self.draw(appends)),
            None if begins_redraw(control) => self.draw_over(&mut clean),
            None => None,
        };
        let Some(mut draw) = draw else {
            self.clean = clean;
            self.plain(&text[start..end], out);
            return end;
        };
        let done = coloured_prefix(text, start, controls, appends, &mut draw, &mut clean);
        // Whole sequences were taken out of what was UTF-8.
        let lossy = |_| String::from_utf8_lossy(&clean);
        let shown = simdutf8::basic::from_utf8(&clean).map_or_else(lossy, Cow::Borrowed);
        self.plain(&shown, out);
        self.end_draw(&draw, &clean);
        self.clean = clean;
        if done == start {
            // It cannot be drawn in this way.
            self.plain(&text[start..end], out);
            return end;
        }
        done
    }

    /// Text without any control but line breaks and tabs.
    pub(super) fn plain(&mut self, text: &str, out: &mut impl LineSink) {
        let mut rest = text;
        let mut first = true;
        while let Some(end) = memchr(b'\n', rest.as_bytes()) {
            self.print(&rest[..end], out);
            self.line_break(out);
            rest = &rest[end + 1..];
            if std::mem::take(&mut first) && self.is_on_new_line() {
                rest = self.whole_lines(rest, out);
            }
        }
        self.print(rest, out);
    }

    /// The cursor is on an empty last line: hands on the lines of `text` that are out of reach
    /// when it has been printed, and returns the rest.
    fn whole_lines<'t>(&mut self, text: &'t str, out: &mut impl LineSink) -> &'t str {
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
            self.evict(out);
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
                self.print(&lines[..end], out);
                self.rows[0].number = self.breaks;
                self.lost = true;
                self.out.row(&self.rows[0], out);
                self.rows[0].clear();
                self.column = Column::End;
                lines = &lines[end + 1..];
            }
        }
        rest
    }

    /// Whether what is printed next is added at the end of the last line.
    pub(super) fn appends(&self) -> bool {
        let row = &self.rows[self.row];
        let last = self.row + 1 == self.rows.len();
        let end = match self.column {
            Column::End => !row.is_edited(),
            Column::At(0) => row.is_empty(),
            Column::At(_) => false,
        };
        last && end && !self.aside
    }
}
