//! The search in the conversation.

use super::blocks::Blocks;
use crate::sanitize::pasted_words;
use crate::view::Transcript;

/// The maximum number of matches that are counted.
const MAX_MATCHES: usize = 9999;

/// A search: the words, and the matching lines of the completely expanded conversation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Search {
    query: String,
    matches: Vec<(usize, usize)>,
    at: usize,
}

impl Search {
    /// The words.
    pub(super) fn query(&self) -> &str {
        &self.query
    }

    /// The number of the current match and of all matches; `None` without a match.
    pub(super) fn position(&self) -> Option<(usize, usize)> {
        (!self.matches.is_empty()).then(|| (self.at + 1, self.matches.len()))
    }

    /// Adds a character, and shows the last match.
    pub(super) fn push(&mut self, character: char, all: &Transcript, blocks: &mut Blocks) {
        self.query.push(character);
        self.find(all, blocks);
    }

    /// Adds pasted text without its control characters, and shows the last match.
    pub(super) fn paste(&mut self, text: &str, all: &Transcript, blocks: &mut Blocks) {
        self.query.push_str(&pasted_words(text));
        self.find(all, blocks);
    }

    /// Removes the last character.
    pub(super) fn pop(&mut self, all: &Transcript, blocks: &mut Blocks) {
        self.query.pop();
        self.find(all, blocks);
    }

    /// Shows the next match in a direction, and continues at the other end.
    pub(super) fn go(&mut self, is_forward: bool, all: &Transcript, blocks: &mut Blocks) {
        let count = self.matches.len();
        if count > 0 {
            let step = if is_forward { 1 } else { count - 1 };
            self.at = (self.at + step) % count;
            self.show(all, blocks);
        }
    }

    fn find(&mut self, all: &Transcript, blocks: &mut Blocks) {
        self.matches.clear();
        if !self.query.is_empty() {
            for block in 0..all.blocks().len() {
                let rows = blocks.full_rows(all, block).texts().enumerate();
                let found = rows.filter(|(_, row)| !found_in(row, &self.query).is_empty());
                self.matches.extend(found.map(|(row, _)| (block, row)));
            }
            self.matches.truncate(MAX_MATCHES);
        }
        self.at = self.matches.len().saturating_sub(1);
        self.show(all, blocks);
    }

    fn show(&self, all: &Transcript, blocks: &mut Blocks) {
        if let Some(place) = self.matches.get(self.at) {
            blocks.expand(place.0);
            blocks.show(all, *place);
        }
    }
}

/// The ranges of `query` in `line`, in characters. Case counts only if the query has an upper-case letter.
pub(super) fn found_in(line: &str, query: &str) -> Vec<(usize, usize)> {
    let folds = !query.chars().any(char::is_uppercase);
    let fold = |c: char| match folds {
        true => c.to_lowercase().next().unwrap_or(c),
        false => c,
    };
    let (line, query): (Vec<char>, Vec<char>) = (
        line.chars().map(fold).collect(),
        query.chars().map(fold).collect(),
    );
    let mut found = Vec::new();
    let mut at = 0;
    while !query.is_empty() && at + query.len() <= line.len() {
        if line[at..at + query.len()] == query[..] {
            found.push((at, at + query.len()));
            at += query.len();
        } else {
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Block;

    #[test]
    fn matches_are_found_with_smart_case() {
        let check =
            |line, query, expect: &[(usize, usize)]| assert_eq!(found_in(line, query), expect);
        check("an Apple, an apple", "apple", &[(3, 8), (13, 18)]);
        check("an Apple, an apple", "Apple", &[(3, 8)]);
        check("ÄÖ", "ö", &[(1, 2)]);
        check("aaa", "aa", &[(0, 2)]);
        check("a", "", &[]);
        check("a", "abc", &[]);
    }

    /// Proves CLI-5 for the search: also text that is folded is found, and shown.
    #[test]
    fn folded_text_is_found_and_expanded() {
        let mut all = Transcript::default();
        all.push(Block::Reasoning("one\ntwo\nneedle\nfour".to_owned()));
        for at in 0..50 {
            all.push(Block::Reply(format!("row {at}")));
        }
        let mut blocks = Blocks::default();
        blocks.visible(&all, 40, 5);
        let mut search = Search::default();
        for character in "needle".chars() {
            search.push(character, &all, &mut blocks);
        }
        assert_eq!(search.position(), Some((1, 1)));
        let rows = blocks.visible(&all, 40, 5);
        assert!(
            rows.iter()
                .any(|row| row.line.to_string().contains("needle")),
            "{rows:?}"
        );
        search.push('x', &all, &mut blocks);
        assert_eq!(search.position(), None);
        search.pop(&all, &mut blocks);
        search.go(true, &all, &mut blocks);
        assert_eq!(search.position(), Some((1, 1)));
    }
}
