//! Stores an output in bounded memory: all lines, or head and tail.

use std::collections::VecDeque;

use memchr::{memchr_iter, memrchr};

use crate::blocks::is_ascii;

use super::line::{Line, LineBlock, RawLines, Sink, Span};

/// A line of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputLine {
    /// The number of the line in the raw text, or of the line at whose position it is inserted.
    pub(super) number: u64,
    pub(super) text: String,
    /// True if the line is generated: it represents or reports omitted lines.
    pub(super) ours: bool,
}

/// All lines up to a number of characters, or the first and the last ones.
#[derive(Debug)]
pub(super) struct Kept {
    /// The maximum number of characters, including line breaks.
    budget: usize,
    head: Segment,
    head_full: bool,
    tail: Segment,
    /// True if lines between head and tail, or a part of a line, are omitted.
    cut: bool,
    late: TailBacklog,
}

/// Lines after those of the tail that are not processed yet. Only the last ones will be shown.
#[derive(Debug, Default)]
struct TailBacklog {
    text: String,
    /// The end of each run of lines with consecutive numbers, and the number after the run.
    ends: Vec<(usize, u64)>,
}

impl TailBacklog {
    /// Adds `lines` lines. Each has a line break, except the last one.
    fn push(&mut self, text: &str, first: u64, lines: u64) {
        self.text.push_str(text);
        self.text.push('\n');
        let end = (self.text.len(), first + lines);
        match self.ends.last_mut() {
            Some(last) if last.1 == first => *last = end,
            _ => self.ends.push(end),
        }
    }

    /// Adds the lines of a block.
    fn push_block(&mut self, block: LineBlock<'_>) {
        // Groups lines with consecutive numbers that are adjacent in the text.
        let goes_on = |a: &Span, b: &Span| b.number == a.number + 1 && b.start == a.end + 1;
        for run in block.spans().chunk_by(goes_on) {
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                let text = &block.text()[first.start as usize..last.end as usize];
                self.push(text, first.number, run.len() as u64);
            }
        }
    }
}

/// Bytes of unprocessed lines, and number of runs, up to which processing is deferred.
const MAX_LATE_BYTES: usize = 512 * 1024;
const MAX_RUNS: usize = 4096;

/// Consecutive lines.
#[derive(Debug, Default)]
struct Segment {
    /// The texts of the lines. The part before `start` is removed.
    text: String,
    start: usize,
    lines: VecDeque<Meta>,
    chars: usize,
}

#[derive(Debug, Clone, Copy)]
struct Meta {
    number: u64,
    bytes: u32,
    chars: u32,
    ours: bool,
}

impl Segment {
    fn push(&mut self, number: u64, text: &str, chars: usize, ours: bool) {
        self.text.push_str(text);
        self.chars += chars + 1;
        self.lines.push_back(Meta {
            number,
            bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
            chars: u32::try_from(chars).unwrap_or(u32::MAX),
            ours,
        });
    }

    fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
        (self.start, self.chars) = (0, 0);
    }

    /// Drops lines from the front until at most `budget` characters are left.
    fn shrink(&mut self, budget: usize) -> bool {
        let mut shrunk = false;
        while self.chars > budget
            && let Some(line) = self.lines.pop_front()
        {
            self.start += line.bytes as usize;
            self.chars -= line.chars as usize + 1;
            shrunk = true;
        }
        if self.start > 64 * 1024 && self.start > self.text.len() / 2 {
            self.text.drain(..self.start);
            self.start = 0;
        }
        shrunk
    }

    fn drain_into(self, lines: &mut Vec<OutputLine>) {
        let mut at = self.start;
        for line in self.lines {
            let end = at + line.bytes as usize;
            lines.push(OutputLine {
                number: line.number,
                text: self.text[at..end].to_owned(),
                ours: line.ours,
            });
            at = end;
        }
    }
}

impl Kept {
    /// Creates a store for at most `budget` characters.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            budget,
            head: Segment::default(),
            head_full: false,
            tail: Segment::default(),
            cut: false,
            late: TailBacklog::default(),
        }
    }

    /// Returns true if a part of the output is omitted.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// The number of stored characters, including line breaks.
    pub(super) fn chars(&mut self) -> usize {
        self.look_at_late();
        self.head.chars + self.tail.chars
    }

    fn push(&mut self, number: u64, text: &str, ours: bool) {
        self.look_at_late();
        let chars = chars(text, is_ascii(text.as_bytes()));
        let longest = self.budget / 4;
        if chars > longest {
            self.cut = true;
            let clipped = clip(text, chars, longest);
            let chars = clipped.chars().count();
            self.place(number, &clipped, chars, ours);
        } else {
            self.place(number, text, chars, ours);
        }
    }

    fn place(&mut self, number: u64, text: &str, chars: usize, ours: bool) {
        // Until the output exceeds the budget, the tail uses all of the rest.
        let head_budget = self.budget / 5 * 2;
        if !self.head_full && self.head.chars + chars < head_budget {
            self.head.push(number, text, chars, ours);
            return;
        }
        self.head_full = true;
        self.tail.push(number, text, chars, ours);
        let tail_budget = if self.cut {
            self.budget / 5 * 2
        } else {
            self.budget.saturating_sub(self.head.chars)
        };
        if self.tail.chars > tail_budget {
            let tail_budget = self.budget / 5 * 2;
            self.cut |= self.tail.shrink(tail_budget);
        }
    }

    /// Adds whole lines, with the same result as single lines.
    pub(super) fn keep_whole(&mut self, whole: RawLines<'_>) {
        if self.cut && self.head_full {
            let text = whole.text.strip_suffix('\n').unwrap_or(whole.text);
            self.late.push(text, whole.first, whole.lines);
            self.look_at_many();
            return;
        }
        let mut spans = Vec::with_capacity(usize::try_from(whole.lines).unwrap_or_default());
        let (mut start, mut number) = (0, whole.first);
        for end in memchr_iter(b'\n', whole.text.as_bytes()) {
            spans.push(span(number, start, end));
            (start, number) = (end + 1, number + 1);
        }
        self.keep_block(LineBlock::new(whole.text, &spans));
    }

    fn look_at_many(&mut self) {
        if self.late.text.len() > MAX_LATE_BYTES || self.late.ends.len() > MAX_RUNS {
            self.look_at_late();
        }
    }

    /// Moves the last of the unprocessed lines into the tail.
    fn look_at_late(&mut self) {
        let Some(last) = self.late.text.len().checked_sub(1) else {
            return;
        };
        let mut text = std::mem::take(&mut self.late.text);
        let mut ends = std::mem::take(&mut self.late.ends);
        let is_ascii = is_ascii(text.as_bytes());
        let longest = self.budget / 4;
        let room = self.budget / 5 * 2;
        let mut spans = Vec::new();
        let (mut end, mut number, mut chars) = (last, 0, 0);
        loop {
            if let Some((_, next)) = ends.pop_if(|(at, _)| *at == end + 1) {
                number = next;
            }
            number -= 1;
            let before = memrchr(b'\n', &text.as_bytes()[..end]);
            let start = before.map_or(0, |at| at + 1);
            spans.push(span(number, start, end));
            // A longer line is truncated to about this length.
            chars += self::chars(&text[start..end], is_ascii).min(longest) + 1;
            match before {
                Some(at) if chars <= room => end = at,
                _ => break,
            }
        }
        spans.reverse();
        self.keep_last(LineBlock::new(&text, &spans));
        text.clear();
        ends.clear();
        self.late = TailBacklog { text, ends };
    }

    /// Stores the last of many lines, if something is already omitted.
    fn keep_last(&mut self, block: LineBlock<'_>) {
        let longest = self.budget / 4;
        let mut room = self.budget / 5 * 2;
        let mut shown = 0;
        for span in block.spans().iter().rev() {
            let chars = match block.is_ascii() {
                true => (span.end - span.start) as usize,
                false => block.line(*span).text.chars().count(),
            };
            let chars = match chars > longest {
                true => clip(block.line(*span).text, chars, longest).chars().count(),
                false => chars,
            };
            let Some(left) = room.checked_sub(chars + 1) else {
                break;
            };
            room = left;
            shown += 1;
        }
        if shown < block.spans().len() {
            self.tail.clear();
        }
        for span in block.last(shown).spans() {
            let line = block.line(*span);
            let chars = chars(line.text, block.is_ascii());
            match chars > longest {
                true => {
                    let text = clip(line.text, chars, longest);
                    self.tail
                        .push(line.number, &text, text.chars().count(), false);
                }
                false => self.tail.push(line.number, line.text, chars, false),
            }
        }
        self.tail.shrink(self.budget / 5 * 2);
    }

    /// Returns the lines in the order of their insertion.
    pub(super) fn into_lines(mut self) -> Vec<OutputLine> {
        self.look_at_late();
        let mut lines = Vec::with_capacity(self.head.lines.len() + self.tail.lines.len());
        self.head.drain_into(&mut lines);
        self.tail.drain_into(&mut lines);
        lines
    }
}

impl Sink for Kept {
    fn keep(&mut self, line: Line<'_>) {
        if self.cut && self.head_full {
            self.late.push(line.text, line.number, 1);
            self.look_at_many();
        } else {
            self.push(line.number, line.text, false);
        }
    }

    fn keep_block(&mut self, block: LineBlock<'_>) {
        let mut lines = block.lines();
        while !(self.cut && self.head_full) {
            let Some(line) = lines.next() else {
                return;
            };
            self.keep(line);
        }
        self.late.push_block(block.last(lines.len()));
        self.look_at_many();
    }

    fn say(&mut self, number: u64, text: &str) {
        for text in text.split('\n') {
            self.push(number, text, true);
        }
    }
}

fn span(number: u64, start: usize, end: usize) -> Span {
    Span {
        number,
        start: start as u32,
        end: end as u32,
    }
}

/// The number of characters of a text.
fn chars(text: &str, is_ascii: bool) -> usize {
    match is_ascii {
        true => text.len(),
        false => text.chars().count(),
    }
}

/// Characters of the note in a line with an omitted middle.
const NOTE: usize = 60;

/// Truncates a line of `chars` characters to its first and last ones, with a note between them, at most
/// `longest` in total. If `longest` is less than the note, the result may be longer.
fn clip(text: &str, chars: usize, longest: usize) -> String {
    let half = longest.saturating_sub(NOTE).max(longest / 4) / 2;
    let head = text
        .char_indices()
        .nth(half)
        .map_or(text.len(), |(at, _)| at);
    let tail = text
        .char_indices()
        .nth(chars - half)
        .map_or(0, |(at, _)| at);
    let gone = chars - 2 * half;
    let note = format!("[… {gone} characters truncated …]");
    // The notice on the whole output counts, too.
    match note.len() + NOTE < tail - head {
        true => format!("{}{note}{}", &text[..head], &text[tail..]),
        false => text.to_owned(),
    }
}

/// Inserts the lines `back` (ascending) at their positions: each after the last line that precedes it.
pub(super) fn insert(lines: &mut Vec<OutputLine>, back: Vec<OutputLine>) {
    let old = std::mem::take(lines);
    let mut back = back.into_iter().peekable();
    for line in old {
        while let Some(fact) = back.next_if(|fact| fact.number < line.number) {
            lines.push(fact);
        }
        lines.push(line);
    }
    lines.extend(back);
}

/// The text of the lines.
pub(super) fn joined(lines: &[OutputLine]) -> String {
    let length = lines.iter().map(|line| line.text.len() + 1).sum();
    let mut text = String::with_capacity(length);
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&line.text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(budget: usize, texts: &[&str]) -> (Vec<String>, bool) {
        let mut kept = Kept::new(budget);
        for (number, text) in (1..).zip(texts) {
            kept.keep(Line { number, text });
        }
        let cut = kept.is_cut();
        let texts = kept.into_lines().into_iter().map(|line| line.text);
        (texts.collect(), cut)
    }

    #[test]
    fn what_fits_stays_whole() {
        let check = |budget, texts: &[&str], expect: &[&str], cut| {
            assert_eq!(
                lines(budget, texts),
                (expect.iter().map(|text| text.to_string()).collect(), cut)
            );
        };
        check(40, &[], &[], false);
        check(40, &["a", "b", "c"], &["a", "b", "c"], false);
        let ten = ["aaa"; 10];
        check(40, &ten, &ten, false);
        // Eleven lines of four characters do not fit: 4 lines of the head and 4 of the tail remain.
        let eleven = ["aaa"; 11];
        check(40, &eleven, &["aaa"; 8], true);
    }

    #[test]
    fn a_long_line_is_clipped() {
        let (texts, cut) = lines(400, &[&"ä".repeat(1000)]);
        assert!(cut);
        assert!(
            texts[0].contains("[… 960 characters truncated …]"),
            "{texts:?}"
        );
    }

    proptest::proptest! {
        /// Proves OUT-11: deferred processing has the same result as immediate processing.
        #[test]
        fn many_lines_at_once_are_kept_like_single_ones(
            parts in proptest::collection::vec(
                (0_u8..3, 0_u64..3, proptest::collection::vec("[a-c]{0,9}|(ä|b){0,60}|", 1..40)),
                1..12,
            ),
            budget in 20_usize..400,
            most in 1_usize..2000,
        ) {
            let (mut kept, mut single) = (Kept::new(budget), Kept::new(budget));
            let mut number = 0;
            for (way, gap, lines) in &parts {
                // Lines between them were omitted.
                number += gap;
                if *way == 2 {
                    number += 1;
                    kept.say(number, "ours");
                    single.push(number, "ours", true);
                }
                let first = number + 1;
                for text in lines {
                    number += 1;
                    single.push(number, text, false);
                    if *way != 1 {
                        kept.keep(Line { number, text });
                    }
                }
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                if *way == 1 {
                    kept.keep_whole(RawLines {
                        text: &text,
                        first,
                        lines: lines.len() as u64,
                        blank: 0,
                    });
                }
                if kept.late.text.len() > most {
                    kept.look_at_late();
                }
            }
            proptest::prop_assert_eq!(kept.is_cut(), single.is_cut());
            proptest::prop_assert_eq!(kept.chars(), single.chars());
            proptest::prop_assert_eq!(kept.into_lines(), single.into_lines());
        }
    }
}
