//! Sanitized texts of servers: without hidden characters, and with a maximum length.

pub use zeph_tools::hidden::{is_hidden, revealed};

use zeph_tools::hidden::is_control;

/// `text` without hidden characters and controls, of at most `most` characters.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let mut shown = text.chars().filter(|c| !is_hidden(*c) && !is_control(*c));
    let mut out: String = shown.by_ref().take(most).collect();
    if shown.next().is_some() {
        out.pop();
        out.push('…');
    }
    out
}

/// `text` on one line, without hidden and control characters, at most `most` characters long.
#[must_use]
pub fn line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    plain(&words.join(" "), most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Proves MCP-1a.
    #[test]
    fn hidden_characters_are_removed_or_escaped() {
        let check = |text: &str, expect: &str| assert_eq!(plain(text, 12), expect, "{text:?}");
        check("a\u{200b}b\u{202e}c\u{feff}", "abc");
        check("\u{e0041}\u{e0042}x\u{2066}y\u{2069}", "xy");
        check("a\x1b[2Jb\r\n\tc", "a[2Jb\n\tc");
        check("grün 日本", "grün 日本");
        check("123456789012", "123456789012");
        check("1234567890123", "12345678901…");
        assert_eq!(revealed("a\u{200b}\x1b"), "a\\u{200b}\\u{1b}");
        assert_eq!(line(" a\n b ", 9), "a b");
    }

    proptest! {
        /// Proves MCP-1a.
        #[test]
        fn shown_text_has_no_hidden_characters(text in "\\PC*|.*", most in 1usize..40) {
            let shown = plain(&text, most);
            prop_assert!(shown.chars().count() <= most);
            prop_assert!(!shown.chars().any(|c| is_hidden(c) || is_control(c)));
            prop_assert!(!revealed(&text).chars().any(|c| is_hidden(c) || is_control(c)));
        }
    }
}
