//! Lines on their way out: numbers never go back, runs of blank lines become one.

use memchr::{memchr_iter, memrchr};

use super::super::line::{LineBlock, LineSink, RawLines, Span};
use super::places::BareBreaks;
use super::terminal_line::TerminalLine;

/// Bytes of lines that are handed on together at most, but for the last one.
const TOGETHER: usize = 64 * 1024;

/// What was handed on.
#[derive(Debug, Default)]
pub(super) struct LineEmitter {
    /// The last line was blank.
    blank: bool,
    number: u64,
    /// Lines of the screen that are to be handed on, each with a line break.
    pending: String,
    pending_spans: Vec<Span>,
    /// Lines of a block; its memory is used again.
    spans: Vec<Span>,
}

impl LineEmitter {
    /// Hands on a line of the screen, unless it goes on a run of blank ones; not before it is [flushed](Self::flush).
    pub(super) fn row(&mut self, row: &TerminalLine, out: &mut impl LineSink) {
        let start = self.pending.len();
        match row.plain() {
            Some(text) => self.pending.push_str(text),
            None => row.render(&mut self.pending),
        }
        self.number = self.number.max(row.number).max(1);
        let blank = is_blank(&self.pending[start..]);
        if blank && self.blank {
            self.pending.truncate(start);
            return;
        }
        self.blank = blank;
        self.pending_spans.push(Span {
            number: self.number,
            start: start as u32,
            end: self.pending.len() as u32,
        });
        self.pending.push('\n');
        if self.pending.len() > TOGETHER {
            self.flush(out);
        }
    }

    /// Hands on the lines of the screen that still are to be.
    pub(super) fn flush(&mut self, out: &mut impl LineSink) {
        if !self.pending_spans.is_empty() {
            out.block(LineBlock::new(&self.pending, &self.pending_spans));
            self.pending.clear();
            self.pending_spans.clear();
        }
    }

    /// Hands on whole lines, of which the first one has this number, in the same way; returns how many lines
    /// there are.
    pub(super) fn block(&mut self, first: u64, text: &str, out: &mut impl LineSink) -> u64 {
        self.flush(out);
        let (mut next, mut start) = (first, 0);
        while self.number <= next && out.takes_whole() && start < text.len() {
            let rest = &text[start..];
            let Some(blank) = blank_lines(rest, self.blank) else {
                break;
            };
            let lines = &rest[..blank.end];
            if !lines.is_empty() {
                let whole = RawLines {
                    text: lines,
                    first: next,
                    lines: memchr_iter(b'\n', lines.as_bytes()).count() as u64,
                    blank: blank.lines,
                };
                if !out.whole(whole) {
                    break;
                }
                next += whole.lines;
                self.number = next - 1;
                self.blank = blank.at_end;
            }
            start += blank.end;
            // One that goes on a run of blank ones is left out.
            if let Some(end) = blank.surplus {
                start += end - blank.end;
                next += 1;
            }
        }
        if start == text.len() && next > first {
            return next - first;
        }
        self.spans.clear();
        let behind = start;
        for end in memchr_iter(b'\n', &text.as_bytes()[start..]).map(|end| behind + end) {
            self.number = self.number.max(next).max(1);
            let blank = is_blank(&text[start..end]);
            if !(blank && self.blank) {
                self.spans.push(Span {
                    number: self.number,
                    start: start as u32,
                    end: end as u32,
                });
            }
            self.blank = blank;
            start = end + 1;
            next += 1;
        }
        out.block(LineBlock::new(text, &self.spans));
        next - first
    }
}

/// Blank lines of a text.
struct Blank {
    lines: u64,
    /// The last line is one.
    at_end: bool,
    /// Up to here it was looked at.
    end: usize,
    /// Where a blank line ends that begins there and follows another one.
    surplus: Option<usize>,
}

/// The blank lines of a text of whole lines, up to the first one that follows another, the last one `before` it
/// included; none where the first of them to be told from others holds more than blanks and tabs.
fn blank_lines(text: &str, before: bool) -> Option<Blank> {
    let bytes = text.as_bytes();
    let mut lines = 0;
    // Where the line behind the last blank one begins.
    let mut behind = before.then_some(0);
    for end in BareBreaks::of(bytes) {
        let start = memrchr(b'\n', &bytes[..end]).map_or(0, |at| at + 1);
        let line = &text[start..end];
        if line.bytes().all(|byte| matches!(byte, b' ' | b'\t')) {
            if behind == Some(start) {
                return Some(Blank {
                    lines,
                    at_end: true,
                    end: start,
                    surplus: Some(end + 1),
                });
            }
            lines += 1;
            behind = Some(end + 1);
        } else if is_blank(line) {
            return None;
        }
    }
    Some(Blank {
        lines,
        at_end: lines > 0 && behind == Some(bytes.len()),
        end: bytes.len(),
        surplus: None,
    })
}

fn is_blank(text: &str) -> bool {
    // Most lines begin with something to be seen.
    let shown = text.as_bytes().first().is_some_and(u8::is_ascii_graphic);
    !shown && text.chars().all(char::is_whitespace)
}
