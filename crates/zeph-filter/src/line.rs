//! The types of lines that strategies receive and emit.

/// A line of sanitized output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'t> {
    /// The line of the raw text where it ends; the first is 1.
    pub number: u64,
    /// Its text, without the line break and without escapes.
    pub text: &'t str,
}

/// A receiver of the lines that a strategy retains or generates.
pub trait Sink {
    /// Passes on a line of the output unchanged.
    fn keep(&mut self, line: Line<'_>);

    /// Passes on a generated line that represents omitted lines. Its position is that of line `number`.
    fn say(&mut self, number: u64, text: &str);
}

/// The exit of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExitInfo {
    /// The exit code; `None` if it is unknown or a signal ended the command.
    pub exit_code: Option<i32>,
    /// The number of printed lines.
    pub lines: u64,
}

impl ExitInfo {
    /// Returns true if the exit code is known and is not 0.
    #[must_use]
    pub fn failed(self) -> bool {
        self.exit_code.is_some_and(|code| code != 0)
    }

    /// Returns true if the exit code is 0.
    #[must_use]
    pub fn succeeded(self) -> bool {
        self.exit_code == Some(0)
    }
}

/// A line with its own copy of the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedLine {
    /// [`Line::number`].
    pub number: u64,
    /// [`Line::text`].
    pub text: String,
}

impl OwnedLine {
    /// Replaces the content by `line`, and reuses the memory.
    pub(super) fn set(&mut self, line: Line<'_>) {
        self.number = line.number;
        self.text.clear();
        self.text.push_str(line.text);
    }

    /// Stores `line` in `held`. An earlier line is replaced, and its memory is reused.
    pub(super) fn put(held: &mut Option<Self>, line: Line<'_>) {
        held.get_or_insert_default().set(line);
    }

    /// Borrows the line.
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
