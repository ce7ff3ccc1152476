//! Differences between two contents: a unified diff for the user, and the range of changed lines.

use std::time::Duration;

use similar::{Algorithm, TextDiff};

/// Contents with more bytes are not compared.
const MAX_BYTES: usize = 1 << 20;
/// Contents with more lines are not compared.
const MAX_LINES: usize = 20_000;
/// The time limit of a comparison; the rest is then shown as replaced.
const TIME: Duration = Duration::from_millis(200);
/// Unchanged lines before and after a change.
const CONTEXT: usize = 3;

/// Formats the unified diff from `old` to `new` of the file `name`; `None` if a content has more than 1 MiB or 20,000
/// lines.
#[must_use]
pub fn unified_diff(name: &str, old: &[u8], new: &[u8]) -> Option<String> {
    let too_long = |bytes: &[u8]| {
        bytes.len() > MAX_BYTES || memchr::memchr_iter(b'\n', bytes).count() > MAX_LINES
    };
    if too_long(old) || too_long(new) {
        return None;
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let names = (&*format!("a/{name}"), &*format!("b/{name}"));
    Some(text_diff(names, &old, &new, CONTEXT))
}

/// Formats the unified diff from `old` to `new` with the names of both, and `context` unchanged lines around each change.
#[must_use]
pub fn text_diff(names: (&str, &str), old: &str, new: &str, context: usize) -> String {
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(TIME)
        .diff_lines(old, new);
    diff.unified_diff()
        .context_radius(context)
        .header(names.0, names.1)
        .to_string()
}

/// Returns the first and last line of `new`, from 1, that differ from `old`; `None` if both are equal.
#[must_use]
pub fn changed_lines(old: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    if old == new {
        return None;
    }
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(room);
    let tail = tail.take_while(|(a, b)| a == b).count();
    let first = memchr::memchr_iter(b'\n', &new[..same]).count() + 1;
    let middle = &new[same..new.len() - tail];
    let middle = middle.strip_suffix(b"\n").unwrap_or(middle);
    Some((first, first + memchr::memchr_iter(b'\n', middle).count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_cover_every_difference() {
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

    /// Proves FILE-24 in part.
    #[test]
    fn diff_is_unified_and_has_a_size_limit() {
        assert_eq!(
            unified_diff("f.txt", b"a\nb\nc\n", b"a\nx\nc\n").as_deref(),
            Some("--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n")
        );
        assert_eq!(unified_diff("f", &vec![b'x'; MAX_BYTES + 1], b""), None);
        assert_eq!(unified_diff("f", b"", &b"\n".repeat(MAX_LINES + 1)), None);
    }
}
