//! Where in a text of many lines those are that may be a fact, all lines at once.
//!
//! Looked for are the words that a fact has ([`worth`](super::worth)), and what some facts begin with.

use std::sync::LazyLock;

use crate::grams::Grams;

/// The words; of those with an `s` or a `k`, which characters beyond ASCII are the upper case of, the longest part that
/// has none but what its stem has.
const WORDS: &[&str] = &[
    "error",
    "fail",
    "panic",
    "fatal",
    "exception",
    "conflict",
    "abort",
    "not ok",
    "-->",
    "***",
    "egmentation",
    "ummary",
    "t result",
    "passed",
    "undefined",
    "traceba",
    "could not",
    "cannot",
    "denied",
    "uch file",
    "illed",
    "timed out",
    "timedout",
    "time out",
    "timeout",
    "fehler",
    "erreur",
    "plan: ",
    "[err",
    "✖",
    "✕",
    "✗",
    "×",
    "●",
];

/// What a line begins with that is no word: what pytest says, the name of a failing test.
const BEGINNINGS: [&[u8]; 2] = [b"\nE  ", b"\n---"];

static GRAMS: LazyLock<Grams> = LazyLock::new(|| {
    let words = WORDS.iter().map(|word| word.as_bytes());
    Grams::in_any_case(words.chain(BEGINNINGS))
});

/// The first place on the line that begins at `start`, or on one behind it, that may be such a word. That of a
/// beginning is the line break before it.
pub(super) fn next_suspect(text: &[u8], start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    if start == 0 && BEGINNINGS.iter().any(|begin| rest.starts_with(&begin[1..])) {
        return Some(0);
    }
    let (place, _) = GRAMS.find(text, start.saturating_sub(1))?;
    Some(place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::worth::has_word;
    use super::*;

    proptest! {
        /// Proves OUT-7a: no line that may be a fact is passed over.
        #[test]
        fn each_line_with_a_word_is_found(
            lines in proptest::collection::vec(
                "(E   |---- |-+|erro|r|error|FAIL|Panic|fatal|exception|CONFLICT|abort|not ok |segmentation|Summary|test result|passed|undefined|Traceback|could not|cannot|denied|no such file|Killed|timed? ?out|Fehler|erreur|Plan: |×|✖|✕|✗|●|--> |[*]{1,3}| \\[ERR|[a-fx ]{0,9}|é|×){0,4}",
                1..30,
            ),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut at = 0;
            let mut next = next_suspect(text.as_bytes(), 0);
            for line in &lines {
                let end = at + line.len();
                let is_found = next.is_some_and(|next| next < end);
                if has_word(line) || line.starts_with("E   ") {
                    prop_assert!(is_found, "{:?}", line);
                }
                at = end + 1;
                if is_found && at < text.len() {
                    next = next_suspect(text.as_bytes(), at);
                }
            }
        }
    }
}
