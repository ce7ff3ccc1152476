//! The presentation of a change in a result: a unified diff for the user, a few numbered lines for the model.

use std::fmt::Write as _;

use zeph_edit::unified_diff;

use crate::file::lines::cut;

/// Lines before and after a change that the model sees.
const AROUND: usize = 3;
/// Lines that the model sees in total.
const MAX_SHOWN: usize = 30;

/// The unified diff from `old` to `new` of the file called `name`, or a line with the sizes of a long content.
pub(super) fn display(name: &str, old: &[u8], new: &[u8]) -> String {
    unified_diff(name, old, new).unwrap_or_else(|| {
        format!(
            "{name}: {} bytes before, {} bytes now; too long to show a diff",
            old.len(),
            new.len()
        )
    })
}

/// The lines of `content` around the ranges `changed` (first and last line, from 1, in order), with the line numbers of
/// `read`.
pub(super) fn numbered(content: &[u8], changed: &[(usize, usize)]) -> String {
    let mut text = String::new();
    let mut shown = 0;
    let mut next = 1;
    let mut ranges = changed.iter().peekable();
    let mut lines = content.split(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        let last_and_empty = line.is_empty() && lines.peek().is_none();
        while ranges
            .peek()
            .is_some_and(|(_, last)| last + AROUND < number)
        {
            ranges.next();
        }
        let Some((first, _)) = ranges.peek() else {
            break;
        };
        if number + AROUND < *first || last_and_empty {
            continue;
        }
        if shown == MAX_SHOWN {
            text.push_str("     …\n");
            break;
        }
        if number > next && shown > 0 {
            text.push_str("     …\n");
        }
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        let (line, more) = cut(&line);
        let _ = writeln!(text, "{number:>6}\t{line}{}", if more { " …" } else { "" });
        shown += 1;
        next = number + 1;
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves FILE-24.
    #[test]
    fn change_is_shown_with_a_few_numbered_lines() {
        let text: String = (1..=20).map(|line| format!("l{line}\n")).collect();
        let check = |changed: &[(usize, usize)], expect: &[usize]| {
            let shown = numbered(text.as_bytes(), changed);
            let numbers: Vec<usize> = shown
                .lines()
                .filter_map(|line| line.trim().split('\t').next()?.parse().ok())
                .collect();
            assert_eq!(numbers, expect, "{shown}");
        };
        check(&[(10, 10)], &[7, 8, 9, 10, 11, 12, 13]);
        check(&[(1, 2)], &[1, 2, 3, 4, 5]);
        check(&[(20, 20)], &[17, 18, 19, 20]);
        check(
            &[(2, 2), (18, 18)],
            &[1, 2, 3, 4, 5, 15, 16, 17, 18, 19, 20],
        );
        check(&[(2, 2), (3, 3)], &[1, 2, 3, 4, 5, 6]);
        assert_eq!(numbered(b"", &[(1, 1)]), "");
        assert_eq!(numbered(b"a\r\nb", &[(1, 1)]), "     1\ta\n     2\tb");
    }

    #[test]
    fn many_lines_are_capped() {
        let text = "x\n".repeat(1000);
        let shown = numbered(text.as_bytes(), &[(1, 1000)]);
        assert_eq!(shown.lines().count(), MAX_SHOWN + 1);
        assert!(shown.ends_with('…'));
    }

    /// Proves FILE-24.
    #[test]
    fn diff_of_a_long_content_is_replaced_by_sizes() {
        let long = vec![b'x'; (1 << 20) + 1];
        assert_eq!(
            display("f", &long, b""),
            "f: 1048577 bytes before, 0 bytes now; too long to show a diff"
        );
    }
}
