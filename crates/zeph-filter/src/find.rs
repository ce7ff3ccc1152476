//! Short texts in lines.
//!
//! What the standard library prepares to find a text of some characters takes longer than most lines
//! have; here one byte of it is looked for, and compared with what is around.

use memchr::{memchr_iter, memrchr_iter};

/// Finds short texts.
pub(super) trait Find {
    /// Whether it begins with one of these; most lines begin with another byte.
    fn begins_with_any(&self, starts: &[&str]) -> bool;

    /// Where `what` begins first.
    fn place_of(&self, what: &str) -> Option<usize>;

    /// Where `what` begins last.
    fn last_place_of(&self, what: &str) -> Option<usize>;

    /// What is before the first `what`, and what is behind it.
    fn cut_at(&self, what: &str) -> Option<(&str, &str)>;

    /// What is before the last `what`, and what is behind it.
    fn cut_at_last(&self, what: &str) -> Option<(&str, &str)>;
}

/// The place in `what` of the byte that is looked for: none that most lines are full of.
fn rare(what: &[u8]) -> usize {
    let common = |byte: &u8| *byte == b' ' || byte.is_ascii_lowercase();
    what.iter().position(|byte| !common(byte)).unwrap_or(0)
}

/// Whether `what` stands in `text` where its byte number `rare` was found at `at`.
fn begins(text: &[u8], what: &[u8], rare: usize, at: usize) -> Option<usize> {
    let start = at.checked_sub(rare)?;
    text[start..].starts_with(what).then_some(start)
}

impl Find for str {
    fn begins_with_any(&self, starts: &[&str]) -> bool {
        let first = self.as_bytes().first();
        let fits = |start: &&str| start.as_bytes().first() == first && self.starts_with(*start);
        starts.iter().any(fits)
    }

    fn place_of(&self, what: &str) -> Option<usize> {
        let (text, what) = (self.as_bytes(), what.as_bytes());
        let rare = rare(what);
        let byte = *what.get(rare)?;
        memchr_iter(byte, text).find_map(|at| begins(text, what, rare, at))
    }

    fn last_place_of(&self, what: &str) -> Option<usize> {
        let (text, what) = (self.as_bytes(), what.as_bytes());
        let rare = rare(what);
        let byte = *what.get(rare)?;
        memrchr_iter(byte, text).find_map(|at| begins(text, what, rare, at))
    }

    fn cut_at(&self, what: &str) -> Option<(&str, &str)> {
        let at = self.place_of(what)?;
        Some((&self[..at], &self[at + what.len()..]))
    }

    fn cut_at_last(&self, what: &str) -> Option<(&str, &str)> {
        let at = self.last_place_of(what)?;
        Some((&self[..at], &self[at + what.len()..]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_found_as_the_standard_library_finds_it(text in "[a:ä -]{0,40}", what in "[a:ä -]{1,4}") {
            prop_assert_eq!(text.place_of(&what), text.find(&what));
            // `rfind` is the last place, also where it overlaps one before.
            prop_assert_eq!(text.last_place_of(&what), text.rfind(&what));
            prop_assert_eq!(text.cut_at(&what), text.split_once(&what));
            prop_assert_eq!(text.cut_at_last(&what), text.rsplit_once(&what));
        }
    }
}
