//! Patterns that are searched in every line.

use regex::{RegexSet, RegexSetBuilder};

use super::{MAX_COMPILED, checked_pattern, in_a_line};

/// Compiles `patterns` together.
///
/// # Errors
/// The reason why one of them cannot be used.
pub(super) fn compile(patterns: &[String]) -> Result<RegexSet, String> {
    for pattern in patterns {
        checked_pattern(pattern)?;
    }
    RegexSetBuilder::new(patterns)
        .size_limit(MAX_COMPILED)
        .build()
        .map_err(|error| in_a_line(&error))
}

/// Whether a pattern of `set` matches a text.
///
/// [`RegexSet::is_match`] of regex 1.13 panics for a set of one expression that begins with `^\b`, before a letter beyond
/// ASCII; a search for the patterns that match does not.
pub(super) fn any_matches(set: &RegexSet, text: &str) -> bool {
    match text.is_ascii() {
        true => set.is_match(text),
        false => set.matches(text).matched_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_after_a_non_ascii_start_is_found() {
        for (expression, text, expect) in [
            (r"^\b", "\u{e4}", true),
            (r"^\b", "a", true),
            (r"^\b", "-", false),
            ("b", "\u{e4}", false),
        ] {
            let set = compile(&[expression.to_owned()]);
            let found = set.as_ref().is_ok_and(|set| any_matches(set, text));
            assert_eq!(found, expect, "{expression} {text}");
        }
    }
}
