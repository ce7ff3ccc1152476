//! What lines of one shape are, and how many of them are read.

use memchr::memchr2_iter;

use crate::filter::facts::{Shape, Shapes, may_have_stem};

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
        let bytes = text.as_bytes();
        let may_be_fact = bytes.starts_with(b"E   ") || bytes.starts_with(b"----");
        if !may_be_fact && !may_have_stem(bytes) {
            return match has_warn(bytes) {
                true => Self::Alike,
                false => Self::Plain,
            };
        }
        match Shapes::default().of(text) {
            Some(Shape::Chatter) => Self::Alike,
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

fn warns(text: &str) -> bool {
    const WORDS: [&[u8]; 5] = [b"fail", b"error", b"panic", b"fatal", b"exception"];
    let bytes = text.as_bytes();
    has_warn(bytes)
        || bytes.iter().enumerate().any(|(at, byte)| {
            matches!(byte | 0x20, b'f' | b'e' | b'p')
                && WORDS.iter().any(|word| is_at(bytes, at, word))
        })
}

fn has_warn(bytes: &[u8]) -> bool {
    memchr2_iter(b'w', b'W', bytes).any(|at| is_at(bytes, at, b"warn"))
}

/// Whether a word stands at a place, in whatever case.
fn is_at(bytes: &[u8], at: usize, word: &[u8]) -> bool {
    let found = bytes.get(at..at + word.len());
    found.is_some_and(|found| found.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_look_at_stems_tells_the_same(text in "(warn|WARN|fail|Error|panic|fatal|Exception|exceptio|E   |----|err|[a-z]{1,9}| |×|É){0,9}") {
            let words = ["warn", "fail", "error", "panic", "fatal", "exception"];
            let lower = text.to_ascii_lowercase();
            let warns = words.iter().any(|word| lower.contains(word));
            let expect = match Shapes::default().of(&text) {
                Some(Shape::Chatter) => Kind::Alike,
                Some(Shape::Complaint) => Kind::Complaint,
                Some(_) => Kind::Fact,
                None if warns => Kind::Alike,
                None => Kind::Plain,
            };
            proptest::prop_assert_eq!(Kind::of(&text), expect, "{:?}", text);
        }
    }
}
