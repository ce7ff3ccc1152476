//! Lines on their way through the filters.

use crate::blocks::is_ascii;

/// A line of sanitized output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'t> {
    /// The line of the raw text where it ends; the first is 1.
    pub number: u64,
    /// Its text, without the line break and without escapes.
    pub text: &'t str,
}

/// What takes lines as they come.
pub(super) trait LineSink {
    /// The next lines.
    fn block(&mut self, block: LineBlock<'_>);

    /// The next lines, if it needs not look at each; returns whether it took them.
    fn whole(&mut self, whole: RawLines<'_>) -> bool {
        let _ = whole;
        false
    }

    /// Whether it may take lines as a whole.
    fn takes_whole(&self) -> bool {
        false
    }
}

/// Takes them one by one.
pub(super) struct LineAdapter<'f, F>(pub(super) &'f mut F);

impl<F: FnMut(Line<'_>)> LineSink for LineAdapter<'_, F> {
    fn block(&mut self, block: LineBlock<'_>) {
        block.lines().for_each(&mut self.0);
    }
}

/// Lines that follow one another in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineBlock<'t> {
    /// At most 4 GiB.
    text: &'t str,
    spans: &'t [Span],
    is_ascii: bool,
}

/// Whole lines of which no blank ones follow one another.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawLines<'t> {
    /// Each of them ends with a line break.
    pub(super) text: &'t str,
    /// The number of the first one.
    pub(super) first: u64,
    /// How many there are.
    pub(super) lines: u64,
    /// How many of them are blank.
    pub(super) blank: u64,
}

/// Where a line of a block is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// [`Line::number`].
    pub(super) number: u64,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl<'t> LineBlock<'t> {
    /// The lines of `text` that are at `spans`.
    pub(super) fn new(text: &'t str, spans: &'t [Span]) -> Self {
        Self {
            text,
            spans,
            is_ascii: is_ascii(text.as_bytes()),
        }
    }

    /// The text that they are in.
    pub(super) fn text(self) -> &'t str {
        self.text
    }

    /// Its lines.
    pub(super) fn lines(self) -> impl ExactSizeIterator<Item = Line<'t>> {
        self.spans.iter().map(move |span| self.line(*span))
    }

    /// Where they are.
    pub(super) fn spans(self) -> &'t [Span] {
        self.spans
    }

    /// One of its lines.
    pub(super) fn line(self, span: Span) -> Line<'t> {
        Line {
            number: span.number,
            text: &self.text[span.start as usize..span.end as usize],
        }
    }

    /// Some of its lines.
    pub(super) fn of(self, spans: &'t [Span]) -> Self {
        Self { spans, ..self }
    }

    /// The last few of them.
    pub(super) fn last(self, count: usize) -> Self {
        self.of(&self.spans[self.spans.len().saturating_sub(count)..])
    }

    /// Whether all characters are ASCII.
    pub(super) fn is_ascii(self) -> bool {
        self.is_ascii
    }
}

/// Where a strategy puts what it keeps.
pub trait Sink {
    /// A line of the output, as it was.
    fn keep(&mut self, line: Line<'_>);

    /// Lines of the output, as they were.
    fn keep_block(&mut self, block: LineBlock<'_>) {
        block.lines().for_each(|line| self.keep(line));
    }

    /// A line of our own that stands for others; it belongs where line `number` was.
    fn say(&mut self, number: u64, text: &str);
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExitInfo {
    /// Its exit code; `None` where it is not known, or a signal ended the command.
    pub exit_code: Option<i32>,
    /// The lines that it printed.
    pub lines: u64,
}

impl ExitInfo {
    /// Whether it is known to have failed.
    #[must_use]
    pub fn failed(self) -> bool {
        self.exit_code.is_some_and(|code| code != 0)
    }

    /// Whether it is known to have succeeded.
    #[must_use]
    pub fn succeeded(self) -> bool {
        self.exit_code == Some(0)
    }
}

/// A line that is held back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedLine {
    /// [`Line::number`].
    pub number: u64,
    /// [`Line::text`].
    pub text: String,
}

impl OwnedLine {
    /// Becomes this line; its memory is used again.
    pub(super) fn set(&mut self, line: Line<'_>) {
        self.number = line.number;
        self.text.clear();
        self.text.push_str(line.text);
    }

    /// Puts a line in the place of one that is held, in its memory.
    pub(super) fn put(held: &mut Option<Self>, line: Line<'_>) {
        held.get_or_insert_default().set(line);
    }

    /// The line.
    #[must_use]
    pub fn line(&self) -> Line<'_> {
        Line {
            number: self.number,
            text: &self.text,
        }
    }
}

impl From<Line<'_>> for OwnedLine {
    fn from(line: Line<'_>) -> Self {
        Self {
            number: line.number,
            text: line.text.to_owned(),
        }
    }
}
