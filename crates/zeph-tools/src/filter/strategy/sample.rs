//! How much of an output is unlike what was before, by a sample of its lines.

use super::forms::Forms;
use crate::filter::but_for_digits;

/// Of so many lines one is looked at.
const STEP: u64 = 13;

/// Says when there were too many bytes of lines that are like none before but for digits and ids. That depends on the
/// lines alone, not on the pieces in which they come.
#[derive(Debug)]
pub(super) struct Sample {
    forms: Forms,
    lines: u64,
    /// Bytes of them so far, about.
    unlike: u64,
    most: u64,
    /// A line without its ids; its memory is used again.
    masked: Vec<u8>,
}

impl Sample {
    /// `min_words`: lines of fewer words have no shape; `most`: bytes that are not too many.
    pub(super) fn new(min_words: usize, most: u64) -> Self {
        Self {
            forms: Forms::new(min_words),
            lines: 0,
            unlike: 0,
            most,
            masked: Vec::new(),
        }
    }

    /// Takes the next line; whether there were too many bytes.
    #[inline]
    pub(super) fn take(&mut self, text: &str) -> bool {
        self.lines += 1;
        if self.lines.is_multiple_of(STEP) {
            self.look(text);
        }
        self.unlike > self.most
    }

    fn look(&mut self, text: &str) {
        let hash = but_for_digits::hash_without_ids(text, &mut self.masked)
            .unwrap_or_else(|| but_for_digits::hash(text));
        if !self.forms.knows(text, hash) {
            self.unlike += STEP * text.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: impl Iterator<Item = String>, least: u64, most: u64) {
        let mut sample = Sample::new(1, 100_000);
        let mut bytes = 0;
        for line in lines {
            bytes += line.len() as u64;
            assert_eq!(sample.take(&line), sample.unlike > 100_000);
        }
        let share = sample.unlike * 100 / bytes;
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
