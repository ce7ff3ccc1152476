//! What is shown of a change: a unified diff to the person, a few numbered lines to the model.

use std::fmt::Write as _;
use std::time::Duration;

use similar::{Algorithm, TextDiff};

use crate::file::lines::cut;

/// Contents with more bytes are not compared.
const MAX_BYTES: usize = 1 << 20;
/// Contents with more lines are not compared.
const MAX_LINES: usize = 20_000;
/// The time that a comparison may take; what is left then is shown as replaced as a whole.
const TIME: Duration = Duration::from_millis(200);
/// Lines before and after a change that are shown to the model.
const AROUND: usize = 3;
/// Lines that are shown to the model at most.
const MAX_SHOWN: usize = 30;

/// The unified diff from `old` to `new` of the file that `name` names, or the reason why there is
/// none.
pub(super) fn display(name: &str, old: &[u8], new: &[u8]) -> String {
    unified(name, old, new).unwrap_or_else(|| {
        format!(
            "{name}: {} bytes before, {} bytes now; too long to show a diff",
            old.len(),
            new.len()
        )
    })
}

/// The unified diff from `old` to `new` of the file that `name` names; `None` when they are too
/// long to be compared.
#[must_use]
pub fn unified(name: &str, old: &[u8], new: &[u8]) -> Option<String> {
    let too_long = |bytes: &[u8]| {
        bytes.len() > MAX_BYTES || memchr::memchr_iter(b'\n', bytes).count() > MAX_LINES
    };
    if too_long(old) || too_long(new) {
        return None;
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    Some(unified_text(name, &old, &new))
}

/// The unified diff from `old` to `new` of what `name` names.
pub(super) fn unified_text(name: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(TIME)
        .diff_lines(old, new);
    diff.unified_diff()
        .context_radius(AROUND)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}

/// The lines of `content` around the ranges `changed` (first and last line, from 1, in order),
/// numbered as `read` numbers them.
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

/// How many bytes `old` and `new` have in common at the start, and at the end of what is left.
pub(super) fn common(old: &[u8], new: &[u8]) -> (usize, usize) {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(room);
    (same, tail.take_while(|(a, b)| a == b).count())
}

/// The lines of `new` that differ from `old`: first and last, from 1. `None` when they are equal.
pub(super) fn changed_lines(old: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    if old == new {
        return None;
    }
    let (same, tail) = common(old, new);
    let first = memchr::memchr_iter(b'\n', &new[..same]).count() + 1;
    let middle = &new[same..new.len() - tail];
    let middle = middle.strip_suffix(b"\n").unwrap_or(middle);
    Some((first, first + memchr::memchr_iter(b'\n', middle).count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves FILE-24.
    #[test]
    fn a_few_numbered_lines_around_the_change() {
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

    #[test]
    fn the_changed_lines_are_found() {
        let check = |old: &str, new: &str, expect| {
            assert_eq!(
                changed_lines(old.as_bytes(), new.as_bytes()),
                expect,
                "{old:?} {new:?}"
            );
        };
        check("a\nb\nc\n", "a\nb\nc\n", None);
        check("a\nb\nc\n", "a\nx\nc\n", Some((2, 2)));
        check("a\nb\nc\n", "a\nc\n", Some((2, 2)));
        check("a\n", "a\nb\nc\n", Some((2, 3)));
        check("", "a\nb\n", Some((1, 2)));
        check("a", "", Some((1, 1)));
    }

    /// Proves FILE-24.
    #[test]
    fn a_diff_is_unified_and_has_a_cap() {
        let diff = display("f.txt", b"a\nb\nc\n", b"a\nx\nc\n");
        assert_eq!(
            diff,
            "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"
        );
        let long = vec![b'x'; MAX_BYTES + 1];
        assert!(display("f", &long, b"").contains("too long to show a diff"));
        let many = b"\n".repeat(MAX_LINES + 1);
        assert!(display("f", b"", &many).contains("too long to show a diff"));
    }
}
