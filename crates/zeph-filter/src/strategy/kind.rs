//! What lines of one shape are, and how many of them are read.

use crate::facts::{Shape, Shapes};

/// Lines of one shape that stay where they are warnings or errors of a log.
const ALIKE: u64 = 5;
/// Lines of one shape that stay where they tell what could not be done.
const COMPLAINTS: u64 = 20;

/// What the lines of a shape are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// Warnings, and errors of a log: a few of them tell it all.
    Alike,
    /// What could not be done with one file after the other.
    Complaint,
    /// Each counts.
    Fact,
}

impl Kind {
    /// What a line is.
    pub(super) fn of(text: &str) -> Self {
        match Shapes::default().of(text) {
            Some(Shape::Chatter | Shape::Warning) => Self::Alike,
            Some(Shape::Complaint) => Self::Complaint,
            Some(_) => Self::Fact,
            None if warns(text) => Self::Alike,
            None => Self::Plain,
        }
    }

    /// Lines of a group that stay where they come.
    pub(super) fn shown(self) -> u64 {
        match self {
            Self::Plain => 1,
            Self::Alike => ALIKE,
            Self::Complaint => COMPLAINTS,
            Self::Fact => u64::MAX,
        }
    }
}

/// Whether a line has one of the words of warnings and errors, in any case.
fn warns(text: &str) -> bool {
    const WORDS: [&str; 6] = ["warn", "fail", "error", "panic", "fatal", "exception"];
    let lower = text.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}
