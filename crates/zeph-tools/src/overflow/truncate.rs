//! The head and the tail of a text, and the line that says what is missing between them.

use std::ops::Range;

use memchr::memchr_iter;

use super::spill::Spilled;

/// Characters that are set aside for the line between head and tail.
const NOTE: usize = 400;

/// What was left out between head and tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omitted {
    /// The first line (from 1) of which something is missing.
    pub first_line: u64,
    /// The last one.
    pub last_line: u64,
    /// Line breaks left out.
    pub line_breaks: u64,
    /// Bytes left out.
    pub bytes: u64,
}

impl Omitted {
    /// "lines 5-10 (6 lines, 70 bytes)", or "70 bytes of line 5".
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

/// A text of which head and tail are left, where all of it is, and where the line between them is.
#[derive(Debug, Clone, PartialEq)]
pub struct TruncatedText {
    /// What was left out.
    pub omitted: Omitted,
    /// All of it.
    pub spilled: Spilled,
    /// The place of the line between head and tail, its line break left out.
    pub(super) note: Range<usize>,
}

impl TruncatedText {
    /// Puts the line that says what was left out into `text`, where the line at byte `at` begins.
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

    /// Puts `note` where `text`, which begins with head and tail, says what was left out.
    pub fn note(&self, text: &mut String, note: &str) {
        // The text is another one when someone has changed it on the way.
        if text.get(self.note.clone()).is_some() {
            text.replace_range(self.note.clone(), &format!("[… {note} …]"));
        }
    }

    /// Changes what stands before and behind that place; `change` returns `None` for what stays.
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

/// Characters of each of head and tail of a text that may have `threshold`.
pub(super) fn half(threshold: usize) -> usize {
    threshold.saturating_sub(NOTE).max(threshold / 2) / 2
}

/// Bytes and line breaks of a whole text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) line_breaks: u64,
}

/// Head and tail, of `half` characters at most, of a text that has `size`, begins with `first` and
/// ends with `last`. Both have more than `half` characters, and the text more than twice as many.
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

/// `text` up to its last line break, unless more than half of it would be lost.
pub(crate) fn whole_lines_at_start(text: &str) -> &str {
    match text.rfind('\n') {
        Some(end) if end + 1 >= text.len() / 2 => &text[..=end],
        _ => text,
    }
}

/// `text` from behind its first line break, unless more than half of it would be lost.
pub(crate) fn whole_lines_at_end(text: &str) -> &str {
    match text.find('\n') {
        Some(end) if end < text.len() / 2 => &text[end + 1..],
        _ => text,
    }
}
