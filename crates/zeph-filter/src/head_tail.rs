//! Stores an output in bounded memory: all lines, or head and tail.

use std::collections::VecDeque;

use super::line::{Line, Sink};

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
}

/// Consecutive lines.
#[derive(Debug, Default)]
struct Segment {
    /// The lines with their lengths in characters.
    lines: VecDeque<(OutputLine, usize)>,
    /// Characters of all lines, line breaks included.
    chars: usize,
}

impl Segment {
    fn push(&mut self, line: OutputLine, chars: usize) {
        self.chars += chars + 1;
        self.lines.push_back((line, chars));
    }

    /// Drops lines from the front until at most `budget` characters are left.
    fn shrink(&mut self, budget: usize) -> bool {
        let mut shrunk = false;
        while self.chars > budget
            && let Some((_, chars)) = self.lines.pop_front()
        {
            self.chars -= chars + 1;
            shrunk = true;
        }
        shrunk
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
        }
    }

    /// Returns true if a part of the output is omitted.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Its characters, line breaks included.
    pub(super) fn chars(&self) -> usize {
        self.head.chars + self.tail.chars
    }

    fn push(&mut self, number: u64, text: &str, ours: bool) {
        let chars = text.chars().count();
        let longest = self.budget / 4;
        if chars > longest {
            self.cut = true;
            let text = clip(text, chars, longest);
            let chars = text.chars().count();
            self.place(OutputLine { number, text, ours }, chars);
        } else {
            let text = text.to_owned();
            self.place(OutputLine { number, text, ours }, chars);
        }
    }

    fn place(&mut self, line: OutputLine, chars: usize) {
        // Until the first line is dropped, the tail may use the whole budget that the head leaves.
        let head_budget = self.budget / 5 * 2;
        if !self.head_full && self.head.chars + chars < head_budget {
            self.head.push(line, chars);
            return;
        }
        self.head_full = true;
        self.tail.push(line, chars);
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

    /// The stored lines in the order of insertion.
    pub(super) fn into_lines(self) -> Vec<OutputLine> {
        let lines = self.head.lines.into_iter().chain(self.tail.lines);
        lines.map(|(line, _)| line).collect()
    }
}

impl Sink for Kept {
    fn keep(&mut self, line: Line<'_>) {
        self.push(line.number, line.text, false);
    }

    fn say(&mut self, number: u64, text: &str) {
        for text in text.split('\n') {
            self.push(number, text, true);
        }
    }
}

/// Characters of the note in a line whose middle is left out.
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
    fn lines_within_the_budget_are_unchanged() {
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
    fn long_line_is_clipped() {
        let (texts, cut) = lines(400, &[&"ä".repeat(1000)]);
        assert!(cut);
        assert!(
            texts[0].contains("[… 960 characters truncated …]"),
            "{texts:?}"
        );
    }
}
