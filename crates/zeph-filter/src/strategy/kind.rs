//! Kinds of lines with one shape, and the number of such lines that are shown.

use crate::facts::{Shape, Shapes};

/// Shown lines of one shape that are warnings or errors of a log.
const MAX_SHOWN_WARNINGS: u64 = 5;
/// Shown lines of one shape that report failed operations.
const MAX_SHOWN_FAILURES: u64 = 20;

/// The kind of lines with one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// Warnings, and errors of a log. A few of them are sufficient.
    Alike,
    /// Failed operations, for example one per file.
    Complaint,
    /// Lines that are all shown.
    Fact,
}

impl Kind {
    /// The kind of a line.
    pub(super) fn of(text: &str) -> Self {
        match Shapes::default().of(text) {
            Some(Shape::Chatter | Shape::Warning) => Self::Alike,
            Some(Shape::Complaint) => Self::Complaint,
            Some(_) => Self::Fact,
            None if has_warning_keyword(text) => Self::Alike,
            None => Self::Plain,
        }
    }

    /// The number of lines in a group that are shown at their positions.
    pub(super) fn shown(self) -> u64 {
        match self {
            Self::Plain => 1,
            Self::Alike => MAX_SHOWN_WARNINGS,
            Self::Complaint => MAX_SHOWN_FAILURES,
            Self::Fact => u64::MAX,
        }
    }
}

/// Returns true if a line contains a keyword of warnings and errors, in any case.
fn has_warning_keyword(text: &str) -> bool {
    const WORDS: [&str; 6] = ["warn", "fail", "error", "panic", "fatal", "exception"];
    let lower = text.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}
