//! How much of an output is unlike what was before, by a sample of its lines.

use super::forms::Forms;
use crate::filter::but_for_digits;

/// Of so many lines one is looked at.
const STEP: u64 = 13;

/// Counts bytes of lines that are like none before but for digits and ids. The number depends on the lines alone, not
/// on the pieces in which they come.
#[derive(Debug)]
pub(super) struct Sample {
    forms: Forms,
    lines: u64,
    unlike: u64,
    /// A line without its ids; its memory is used again.
    masked: Vec<u8>,
}

impl Sample {
    /// `min_words`: lines of fewer words have no shape.
    pub(super) fn new(min_words: usize) -> Self {
        Self {
            forms: Forms::new(min_words),
            lines: 0,
            unlike: 0,
            masked: Vec::new(),
        }
    }

    /// Takes the next line.
    #[inline]
    pub(super) fn take(&mut self, text: &str) {
        self.lines += 1;
        if self.lines.is_multiple_of(STEP) {
            self.look(text);
        }
    }

    fn look(&mut self, text: &str) {
        let hash = but_for_digits::hash_without_ids(text, &mut self.masked)
            .unwrap_or_else(|| but_for_digits::hash(text));
        if !self.forms.knows(text, hash) {
            self.unlike += STEP * text.len() as u64;
        }
    }

    /// Bytes of them, about.
    pub(super) fn unlike(&self) -> u64 {
        self.unlike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: impl Iterator<Item = String>, least: u64, most: u64) {
        let mut sample = Sample::new(1);
        let mut bytes = 0;
        for line in lines {
            bytes += line.len() as u64;
            sample.take(&line);
        }
        let share = sample.unlike() * 100 / bytes;
        assert!((least..=most).contains(&share), "{share} %");
    }

    /// Proves OUT-11.
    #[test]
    fn lines_are_unlike_but_for_digits_and_ids() {
        check((0..9999).map(|line| format!("line {line:05} of it")), 0, 1);
        check((0..9999).map(|line| format!("id 5a{line:05x} of it")), 0, 1);
        let word = |line: usize| "abcdefgh".repeat(1 + line % 997);
        check((0..9999).map(|line| format!("the {}", word(line))), 90, 110);
        // Numbers that may mean something have to be read.
        check(
            (0..9999).map(|line| format!("exit code {:03}", line % 999)),
            90,
            110,
        );
    }
}
