//! The notice about omitted lines and access to them.

use super::head_tail::OutputLine;

/// Statistics of the omitted lines of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OmissionStats {
    /// The number of omitted lines.
    pub lines: u64,
    /// The number of all lines.
    pub of: u64,
    /// The longest run of omitted lines, as the first and last line number in the raw text.
    pub longest: (u64, u64),
    /// The byte offset in the filtered text after that run.
    pub place: usize,
}

impl OmissionStats {
    /// Computes the omissions of an output of `of` lines that is reduced to `lines`. `last`: the number of the
    /// last line. Returns `None` if nothing is omitted.
    pub(super) fn new(lines: &[OutputLine], of: u64, last: u64) -> Option<Self> {
        let mut numbers: Vec<u64> = lines
            .iter()
            .filter(|line| !line.ours)
            .map(|line| line.number)
            .collect();
        let shown = numbers.len() as u64;
        numbers.sort_unstable();
        numbers.dedup();
        // Several screen lines of one line in the raw text have its number.
        let shown = if of > last {
            shown
        } else {
            numbers.len() as u64
        };
        let omitted = of.checked_sub(shown).filter(|lines| *lines > 0)?;
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
            place: place(lines, longest.1),
        })
    }

    /// Formats the number of omitted lines.
    #[must_use]
    pub fn omitted(&self) -> String {
        let Self { lines, of, .. } = self;
        format!("{lines} of {of} lines omitted")
    }

    /// Formats the notice without a reference to the raw text.
    #[must_use]
    pub fn notice(&self) -> String {
        format!("[{}]", self.omitted())
    }
}

/// The byte offset of the first line after the gap that ends at line `after`.
fn place(lines: &[OutputLine], after: u64) -> usize {
    let mut bytes = 0;
    for line in lines {
        if !line.ours && line.number > after {
            return bytes;
        }
        bytes += line.text.len() + 1;
    }
    bytes.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-7d.
    #[test]
    fn longest_gap_is_named() {
        let check = |kept: &[u64], of, expect: Option<(u64, (u64, u64))>| {
            let lines: Vec<OutputLine> = kept
                .iter()
                .map(|number| OutputLine {
                    number: *number,
                    text: String::new(),
                    ours: false,
                })
                .collect();
            let left = OmissionStats::new(&lines, of, of);
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
