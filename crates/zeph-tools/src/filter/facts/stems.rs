//! Where in a text of many lines those are that may be a fact, all lines at once.
//!
//! Looked for are the stems of words ([`worth`](super::worth)), and what some facts begin with: of the text and of
//! these the bit is set that tells the case of letters, so that each has one form.

use std::sync::LazyLock;

use aho_corasick::packed::{Config, MatchKind, Searcher};
use memchr::memmem;

use super::worth::STEMS;

/// The bit that tells the case.
const CASE: u8 = 0x20;
/// What a line begins with that is no word: what pytest says, the name of a failing test.
const BEGINNINGS: [&[u8]; 2] = [b"\nE  ", b"\n---"];
/// Looked for by itself, `×`: the others have three bytes and more, and are found by these.
const SHORT: &[u8] = b"\xc3\x97";

/// Finds them; none where the processor has no instructions for it.
static SEARCHER: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let stems = STEMS.iter().copied().flatten().map(|stem| behind_any(stem));
    let stems = stems.filter(|stem| *stem != SHORT).chain(BEGINNINGS);
    let mut builder = Config::new().match_kind(MatchKind::LeftmostFirst).builder();
    for stem in stems {
        builder.add(stem.iter().map(|byte| byte | CASE).collect::<Vec<u8>>());
    }
    builder.build()
});

/// A stem without the bytes before it that may be any.
fn behind_any(stem: &'static [u8; 4]) -> &'static [u8] {
    let any = stem.iter().take_while(|byte| **byte == b'?').count();
    &stem[any..]
}

/// A text whose lines are looked at.
pub(super) struct Stems<'t> {
    text: &'t [u8],
    folded: &'t [u8],
    searcher: &'static Searcher,
    /// Where [`SHORT`] is next; `None` before it was looked for.
    short: Option<Option<usize>>,
}

impl<'t> Stems<'t> {
    /// Those of `text`; `folded`: memory that is used again. `None` where each line has to be looked at.
    pub(super) fn new(text: &'t str, is_ascii: bool, folded: &'t mut Vec<u8>) -> Option<Self> {
        let searcher = SEARCHER.as_ref()?;
        let text = text.as_bytes();
        folded.clear();
        folded.extend_from_slice(text);
        let (words, rest) = folded.as_chunks_mut::<8>();
        for word in words {
            *word = (u64::from_ne_bytes(*word) | u64::from_ne_bytes([CASE; 8])).to_ne_bytes();
        }
        rest.iter_mut().for_each(|byte| *byte |= CASE);
        Some(Self {
            text,
            folded,
            searcher,
            short: is_ascii.then_some(None),
        })
    }

    /// The first place on the line that begins at `start`, or on one behind it, that may be a stem. That of a
    /// beginning is the line break before it.
    pub(super) fn next(&mut self, start: usize) -> Option<usize> {
        let rest = &self.text[start..];
        if start == 0 && BEGINNINGS.iter().any(|begin| rest.starts_with(&begin[1..])) {
            return Some(0);
        }
        let from = start.saturating_sub(1);
        let found = self
            .searcher
            .find_in(self.folded, (from..self.folded.len()).into());
        let found = found.map(|found| found.start());
        if self
            .short
            .is_none_or(|short| short.is_some_and(|at| at < from))
        {
            let short = memmem::find(&self.text[from..], SHORT);
            self.short = Some(short.map(|at| from + at));
        }
        match (found, self.short.flatten()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::worth::has_stem_of_word;
    use super::*;

    proptest! {
        /// Proves OUT-7a: no line that may be a fact is passed over.
        #[test]
        fn each_line_with_a_stem_is_found(
            lines in proptest::collection::vec(
                "(E   |---- |-+|erro|r|error|FAIL|not ok |×|✖|✕|✗|●|--> |[*]{1,3}| \\[ERR|[a-fx ]{0,9}|é|×){0,4}",
                1..30,
            ),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut folded = Vec::new();
            let Some(mut stems) = Stems::new(&text, text.is_ascii(), &mut folded) else {
                return Ok(());
            };
            let mut at = 0;
            let mut next = stems.next(0);
            for line in &lines {
                let end = at + line.len();
                let is_found = next.is_some_and(|next| next < end);
                if has_stem_of_word(line) || line.starts_with("E   ") {
                    prop_assert!(is_found, "{:?}", line);
                }
                at = end + 1;
                if is_found && at < text.len() {
                    next = stems.next(at);
                }
            }
        }
    }
}
