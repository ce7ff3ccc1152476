//! The start and the end of a long text, and the line between them that describes the omitted part.

use std::ops::Range;

use memchr::memchr_iter;

use super::spill::Spilled;

/// The number of characters that are reserved for the line between start and end.
const NOTE: usize = 400;

/// The part that was omitted between start and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Omitted {
    /// The first line (from 1) with an omitted part.
    pub first_line: u64,
    /// The last line with an omitted part.
    pub last_line: u64,
    /// The number of omitted line breaks.
    pub line_breaks: u64,
    /// The number of omitted bytes.
    pub bytes: u64,
}

impl Omitted {
    /// Describes the omitted part: "lines 5-10 (6 lines, 70 bytes)", or "70 bytes of line 5".
    #[must_use]
    pub fn told(&self) -> String {
        let Self {
            first_line,
            last_line,
            bytes,
            ..
        } = self;
        match last_line - first_line + 1 {
            1 if self.line_breaks == 0 => format!("{bytes} bytes of line {first_line}"),
            1 => format!("line {first_line} ({bytes} bytes)"),
            lines => format!("lines {first_line}-{last_line} ({lines} lines, {bytes} bytes)"),
        }
    }
}

/// A text that was reduced to its start and end, with its complete form and the place of the line between them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TruncatedText {
    /// The omitted part.
    pub omitted: Omitted,
    /// The complete text.
    pub spilled: Spilled,
    /// The place of the line between start and end, without its line break.
    pub(super) note: Range<usize>,
}

impl TruncatedText {
    /// Inserts the line that describes the omitted part into `text`, at byte `at`, which begins a line.
    #[must_use]
    pub fn at(text: &mut String, at: usize, omitted: Omitted, spilled: Spilled) -> Self {
        let line = format!("[… {} left out …]", omitted.told());
        let break_before = if at == text.len() && !text.is_empty() {
            "\n"
        } else {
            ""
        };
        let break_after = if at == text.len() { "" } else { "\n" };
        text.insert_str(at, &format!("{break_before}{line}{break_after}"));
        let start = at + break_before.len();
        Self {
            omitted,
            spilled,
            note: start..start + line.len(),
        }
    }

    /// Replaces the line between start and end in `text` by `note`.
    pub fn note(&self, text: &mut String, note: &str) {
        // Another layer may have changed the text meanwhile.
        if text.get(self.note.clone()).is_some() {
            text.replace_range(self.note.clone(), &format!("[… {note} …]"));
        }
    }

    /// Changes the text before and after the line; `change` returns `None` for text that does not change.
    pub fn rewrite(&mut self, text: &mut String, mut change: impl FnMut(&str) -> Option<String>) {
        let Range { start, end } = self.note.clone();
        let (Some(head), Some(tail)) = (text.get(..start), text.get(end..)) else {
            return;
        };
        let (head, tail) = (change(head), change(tail));
        if let Some(tail) = tail {
            text.replace_range(end.., &tail);
        }
        if let Some(head) = head {
            text.replace_range(..start, &head);
            self.note = head.len()..head.len() + (end - start);
        }
    }
}

/// Returns the number of characters of the start and of the end for a text limit of `threshold`.
pub(super) fn half(threshold: usize) -> usize {
    threshold.saturating_sub(NOTE).max(threshold / 2) / 2
}

/// The number of bytes and line breaks of a complete text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) line_breaks: u64,
}

/// Reduces a text to its start and end, of at most `half` characters each. The text has `size`, starts with
/// `first` and ends with `last`. Both have more than `half` characters, and the text has more than twice as many.
pub(super) fn cut(
    first: &str,
    last: &str,
    size: Size,
    half: usize,
    spilled: Spilled,
) -> (String, TruncatedText) {
    let head = whole_lines_at_start(chars_at_start(first, half));
    let tail = chars_at_end(last, half);
    let begins_a_line = |tail: &str| last[..last.len() - tail.len()].ends_with('\n');
    let tail = if begins_a_line(tail) {
        tail
    } else {
        whole_lines_at_end(tail)
    };
    let (in_head, in_tail) = (line_breaks(head), line_breaks(tail));
    let before_tail = size.line_breaks - in_tail;
    let omitted = Omitted {
        first_line: in_head + 1,
        last_line: before_tail + u64::from(!begins_a_line(tail)),
        line_breaks: before_tail - in_head,
        bytes: size.bytes - (head.len() + tail.len()) as u64,
    };
    let mut text = String::with_capacity(head.len() + tail.len() + NOTE);
    text.push_str(head);
    if !head.is_empty() && !head.ends_with('\n') {
        text.push('\n');
    }
    let start = text.len();
    text.push_str(&format!("[… {} left out …]", omitted.told()));
    let note = start..text.len();
    text.push('\n');
    text.push_str(tail);
    let shortened = TruncatedText {
        omitted,
        spilled,
        note,
    };
    (text, shortened)
}

pub(crate) fn line_breaks(text: &str) -> u64 {
    memchr_iter(b'\n', text.as_bytes()).count() as u64
}

fn chars_at_start(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn chars_at_end(text: &str, count: usize) -> &str {
    match count.checked_sub(1) {
        None => "",
        Some(before) => match text.char_indices().nth_back(before) {
            Some((start, _)) => &text[start..],
            None => text,
        },
    }
}

/// Returns `text` up to its last line break, unless that would remove more than half of it.
pub(crate) fn whole_lines_at_start(text: &str) -> &str {
    match text.rfind('\n') {
        Some(end) if end + 1 >= text.len() / 2 => &text[..=end],
        _ => text,
    }
}

/// Returns `text` after its first line break, unless that would remove more than half of it.
pub(crate) fn whole_lines_at_end(text: &str) -> &str {
    match text.find('\n') {
        Some(end) if end < text.len() / 2 => &text[end + 1..],
        _ => text,
    }
}
