//! The mark that replaces a value: `[redacted:KIND]`.

/// The prefix of each mark.
pub(super) const MARK: &str = "[redacted:";

/// Returns the placeholders of a text, in order: `[redacted:jwt]`.
pub fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(MARK).filter_map(|(at, _)| {
        let name = &text[at + MARK.len()..];
        let length = name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))?;
        let closed = (1..=64).contains(&length) && name[length..].starts_with(']');
        closed.then(|| &text[at..=at + MARK.len() + length])
    })
}

/// Returns the first placeholder that occurs more often in `new` than in `old`. The author of `new` has copied it in
/// place of a value.
#[must_use]
pub fn added_mark<'t>(old: &str, new: &'t str) -> Option<&'t str> {
    if !new.contains(MARK) {
        return None;
    }
    marks(new).find(|mark| {
        let count = |text: &str| marks(text).filter(|other| other == mark).count();
        count(new) > count(old)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-21.
    #[test]
    fn new_redaction_marks_are_found() {
        let check =
            |old, new, expect: Option<&str>| assert_eq!(added_mark(old, new), expect, "{new}");
        check("a", "b", None);
        check("a", "k=[redacted:jwt]", Some("[redacted:jwt]"));
        check("k=[redacted:jwt]", "l=[redacted:jwt]", None);
        check(
            "k=[redacted:jwt]",
            "[redacted:jwt] [redacted:jwt]",
            Some("[redacted:jwt]"),
        );
        check(
            "[redacted:jwt]",
            "[redacted:a-B_1]",
            Some("[redacted:a-B_1]"),
        );
        check("", "[redacted:] [redacted:a b] [redacted:x", None);
        check("", "[redacted:[redacted:x]", Some("[redacted:x]"));
    }
}
