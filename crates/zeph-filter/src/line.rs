//! Lines on their way through the filters.

/// A line of sanitized output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'t> {
    /// The line of the raw text where it ends; the first is 1.
    pub number: u64,
    /// Its text, without the line break and without escapes.
    pub text: &'t str,
}

/// Where a strategy puts what it keeps.
pub trait Sink {
    /// A line of the output, as it was.
    fn keep(&mut self, line: Line<'_>);

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
