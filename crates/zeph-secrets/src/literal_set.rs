//! Sets of literals that one pass over a text finds.

use aho_corasick::{AhoCorasick, Input, MatchKind};

/// A fixed set of literals.
#[derive(Debug)]
pub(crate) struct LiteralSet {
    /// `None` if the automaton exceeds its size limit; then each position is compared.
    automaton: Option<AhoCorasick>,
    literals: Vec<&'static str>,
}

impl LiteralSet {
    /// The set of `literals`. If several match at one offset, the first of them is found.
    pub(crate) fn new(literals: impl IntoIterator<Item = &'static str>) -> Self {
        let literals: Vec<_> = literals.into_iter().collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(&literals);
        Self {
            automaton: automaton.ok(),
            literals,
        }
    }

    /// The literals, in order.
    pub(crate) fn literals(&self) -> &[&'static str] {
        &self.literals
    }

    /// The first literal at or after `from`: its offset and its index.
    pub(crate) fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        if let Some(automaton) = &self.automaton {
            let input = Input::new(text).range(from.min(text.len())..);
            let found = automaton.find(input)?;
            return Some((found.start(), found.pattern().as_usize()));
        }
        let literal_at = |at: usize| {
            let rest = &text[at..];
            let is_here = |literal: &&str| rest.starts_with(literal.as_bytes());
            Some((at, self.literals.iter().position(is_here)?))
        };
        (from..text.len()).find_map(literal_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_literal_after_an_offset_is_found() {
        let automaton = LiteralSet::new(["key", "k", "://"]);
        let plain = LiteralSet {
            automaton: None,
            literals: automaton.literals.clone(),
        };
        for set in [automaton, plain] {
            let check =
                |text: &str, from, expect| assert_eq!(set.find(text.as_bytes(), from), expect);
            check("a key", 0, Some((2, 0)));
            check("a key", 3, None);
            check("k://key", 0, Some((0, 1)));
            check("k://key", 1, Some((1, 2)));
            check("", 0, None);
            check("k", 2, None);
        }
    }
}
