//! The format of the plugin pytest-sugar: progress signs `✓` and `⨯` with a bar, failures below rules of `―`,
//! and its own summary.

use super::pytest::rule;

/// The minimum number of signs in a rule.
const WIDE: usize = 10;

/// Returns true for the line that starts a session.
pub(super) fn starts(text: &str) -> bool {
    text.starts_with("Test session starts (platform: ")
}

/// Parses the title from `――――― test_a[1] ―――――`.
pub(super) fn title(text: &str) -> Option<&str> {
    let title = rule(text, '―')?;
    let signs = (text.len() - title.len()) / '―'.len_utf8();
    (signs >= WIDE).then_some(title)
}

/// Returns true for the start of the summary: `Results (0.56s):`.
pub(super) fn results(text: &str) -> bool {
    text.strip_prefix("Results (")
        .and_then(|rest| rest.strip_suffix("s):"))
        .is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()))
}

/// The length of the text without the trailing spaces and blocks, `▁` to `▏`.
fn before_bar(mut text: &[u8]) -> usize {
    while let [rest @ .., b' '] | [rest @ .., 0xe2, 0x96, 0x81..=0x8f] = text {
        text = rest;
    }
    text.len()
}

/// Parses a progress line, ` tests/test_a.py ✓✓⨯  41% ████▏`, and returns whether a test failed.
pub(super) fn progress(text: &str) -> Option<bool> {
    let body = text.strip_prefix(' ')?;
    let body = &body[..before_bar(body.as_bytes())];
    let body = body.strip_suffix('%')?;
    let number = body.bytes().rev().take_while(u8::is_ascii_digit).count();
    let signs = &body[..body.len() - number];
    if number == 0 || !signs.ends_with([' ', '✓', '⨯']) && !signs.is_empty() {
        return None;
    }
    let last = signs
        .split_ascii_whitespace()
        .next_back()
        .unwrap_or_default();
    last.chars()
        .all(|sign| matches!(sign, '✓' | '⨯' | '✗' | 's' | 'x' | 'X' | 'E' | 'R'))
        .then(|| last.contains(['⨯', '✗', 'E']))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn progress_bar_is_removed_from_the_end(text in "[a%✓ ▀▁▏█▐]{0,8}") {
            let before = text.trim_end_matches(|c| c == ' ' || ('▁'..='▏').contains(&c));
            prop_assert_eq!(&text[..before_bar(text.as_bytes())], before);
        }
    }

    #[test]
    fn lines_are_read() {
        let check = |text: &str, expect: Option<bool>| assert_eq!(progress(text), expect, "{text}");
        check(" tests/test_a.py ✓✓✓    20% ██", Some(false));
        check("                 ✓✓✓✓✓ 100% ██████████", Some(false));
        check(" tests/test_a.py ⨯✓     41% ████▎     ", Some(true));
        check(" tests/test_a.py::test_b[x y] ⨯  4%           ", Some(true));
        check(" tests/test_a.py sx     46% ████▋", Some(false));
        check("                        44% ████▌     ", Some(false));
        check(" about 44%", None);
        check("tests/test_a.py 44%", None);
        check(" reached 100 %", None);
        assert_eq!(title("―――――――――― test_a[1] ――――――――――"), Some("test_a[1]"));
        assert_eq!(title("― a ―"), None);
        assert!(results("Results (0.56s):") && !results("Results (two):"));
    }
}
