//! The line that says what was left out, and how to read it.

use super::kept::KeptLine;

/// What was left out of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// How many lines.
    pub lines: u64,
    /// Of how many.
    pub of: u64,
    /// The longest run of lines that are left out, by their numbers in the raw text: first and last.
    pub longest: (u64, u64),
}

impl LeftOut {
    /// What is missing of an output of `of` lines, of which those `kept` (by number, in any order) are read;
    /// the last one is number `last`.
    pub(super) fn new(lines: &[KeptLine], of: u64, last: u64) -> Option<Self> {
        let mut numbers: Vec<u64> = lines
            .iter()
            .filter(|line| !line.ours)
            .map(|line| line.number)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let omitted = of
            .checked_sub(numbers.len() as u64)
            .filter(|lines| *lines > 0)?;
        let mut longest = (0, 0);
        let mut before = 0;
        for number in numbers.into_iter().chain([last + 1]) {
            let gap = number - before - 1;
            if gap > 0 && gap > (longest.1 + 1_u64).saturating_sub(longest.0.max(1)) {
                longest = (before + 1, number - 1);
            }
            before = number;
        }
        if longest.0 == 0 {
            longest = (1, last.max(1));
        }
        Some(Self {
            lines: omitted,
            of,
            longest,
        })
    }

    /// The notice; `reference`: under which `read_overflow` finds the raw text.
    #[must_use]
    pub fn notice(&self, reference: Option<&str>) -> String {
        let Self { lines, of, longest } = self;
        match reference {
            Some(id) => format!(
                "[{lines} of {of} lines omitted; read_overflow id={id} lines={}-{}]",
                longest.0, longest.1
            ),
            None => format!("[{lines} of {of} lines omitted]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-7d.
    #[test]
    fn the_longest_gap_is_named() {
        let check = |kept: &[u64], of, expect: Option<(u64, (u64, u64))>| {
            let lines: Vec<KeptLine> = kept
                .iter()
                .map(|number| KeptLine {
                    number: *number,
                    text: String::new(),
                    ours: false,
                })
                .collect();
            let left = LeftOut::new(&lines, of, of);
            assert_eq!(
                left.map(|left| (left.lines, left.longest)),
                expect,
                "{kept:?}"
            );
        };
        check(&[1, 2, 3], 3, None);
        check(&[], 0, None);
        check(&[], 3, Some((3, (1, 3))));
        check(&[1, 2], 9, Some((7, (3, 9))));
        check(&[4, 9], 10, Some((8, (5, 8))));
        check(&[9, 2], 9, Some((7, (3, 8))));
        check(&[5], 6, Some((5, (1, 4))));
    }
}
