//! Fuzzy matching of names and paths for completion.

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher};

/// The items that match `typed`, the best first. Among equal matches, a shorter item is better.
pub(super) fn ranked<T: AsRef<str>>(
    items: impl IntoIterator<Item = T>,
    typed: &str,
    config: Config,
) -> Vec<T> {
    let mut matcher = Matcher::new(config);
    let kind = AtomKind::Fuzzy;
    let atom = Atom::new(
        typed,
        CaseMatching::Smart,
        Normalization::Smart,
        kind,
        false,
    );
    let mut found = atom.match_list(items, &mut matcher);
    found.sort_by(|(one, one_score), (other, other_score)| {
        let (one, other) = (one.as_ref(), other.as_ref());
        let by_score = other_score.cmp(one_score);
        by_score.then_with(|| (one.len(), one).cmp(&(other.len(), other)))
    });
    found.into_iter().map(|(item, _)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-10: the letters of a path in their order find it, and parts of names are better.
    #[test]
    fn letters_in_order_match() {
        let paths = [
            "src/terminal/screen.rs",
            "src/transport.rs",
            "docs/a.md",
            "target.rs",
        ];
        let check = |typed, expect: &[&str]| {
            assert_eq!(
                ranked(paths, typed, Config::DEFAULT.match_paths()),
                expect,
                "{typed}"
            );
        };
        check("screen", &["src/terminal/screen.rs"]);
        check("srctrans", &["src/transport.rs", "src/terminal/screen.rs"]);
        check("zz", &[]);
        check("docs", &["docs/a.md"]);
        let all = ranked(paths, "", Config::DEFAULT);
        assert_eq!(
            all,
            [
                "docs/a.md",
                "target.rs",
                "src/transport.rs",
                "src/terminal/screen.rs"
            ]
        );
        assert_eq!(
            ranked(paths, "terscr", Config::DEFAULT.match_paths()),
            ["src/terminal/screen.rs"]
        );
    }
}
