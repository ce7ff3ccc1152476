//! Regular expressions that are looked for together.

use regex::RegexSet;

/// Whether one of them is found in a text.
///
/// [`RegexSet::is_match`] of regex 1.13 panics for a set of one expression that begins with `^\b`, before a letter beyond
/// ASCII; what tells which of them match does not.
pub(crate) fn any_matches(set: &RegexSet, text: &str) -> bool {
    match text.is_ascii() {
        true => set.is_match(text),
        false => set.matches(text).matched_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_begins_beyond_ascii_is_found() {
        for (expression, text, expect) in [
            (r"^\b", "\u{e4}", true),
            (r"^\b", "a", true),
            (r"^\b", "-", false),
            ("b", "\u{e4}", false),
        ] {
            let set = RegexSet::new([expression]);
            let found = set.as_ref().is_ok_and(|set| any_matches(set, text));
            assert_eq!(found, expect, "{expression} {text}");
        }
    }
}
