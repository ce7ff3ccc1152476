//! The order of names for a query.

/// Ranks a name for a query; lower is better, and `None` means that it does not match.
///
/// The ranks are: equal, equal without regard to case, a prefix, the initials of its parts, a substring, and all
/// letters in their order. Of two names with the same rank the shorter one is better.
#[must_use]
pub fn rank(query: &str, name: &str) -> Option<(u8, usize)> {
    let (low_query, low) = (query.to_lowercase(), name.to_lowercase());
    let rank = if query == name {
        0
    } else if low_query == low {
        1
    } else if name.starts_with(query) {
        2
    } else if low.starts_with(&low_query) {
        3
    } else if low_query.len() > 1 && initials(name).starts_with(&low_query) {
        4
    } else if low.contains(&low_query) {
        5
    } else {
        let mut left = low.chars();
        let mut query = low_query.chars().filter(|c| *c != '_');
        if !query.all(|wanted| left.any(|c| c == wanted)) {
            return None;
        }
        6
    };
    Some((rank, name.len()))
}

/// The first letters of the parts of a name, in lower case: `gcr` for `getCodeRank`.
fn initials(name: &str) -> String {
    let mut before = '_';
    let mut initials = String::new();
    for character in name.chars() {
        let begins = before == '_' || (character.is_uppercase() && !before.is_uppercase());
        if begins && character != '_' {
            initials.extend(character.to_lowercase());
        }
        before = character;
    }
    initials
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves NAT-5 in part.
    #[test]
    fn better_fitting_names_come_first() {
        let names = [
            "parse",
            "Parse",
            "parse_config",
            "ParseConfig",
            "reparse",
            "prepare_use",
            "other",
        ];
        let mut found: Vec<_> = names
            .iter()
            .filter_map(|name| rank("parse", name).map(|rank| (rank, *name)))
            .collect();
        found.sort();
        let found: Vec<_> = found.into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, names[..6]);
        let check = |query, name, expect| {
            assert_eq!(
                rank(query, name).map(|rank| rank.0),
                expect,
                "{query} {name}"
            );
        };
        check("gcr", "getCodeRank", Some(4));
        check("gcr", "get_code_rank", Some(4));
        check("hs", "HTTPServer", Some(6));
        check("coderank", "getCodeRank", Some(5));
        check("get_rank", "getCodeRank", Some(6));
        check("x", "getCodeRank", None);
        check("straße", "STRASSE", None);
        check("é", "É", Some(1));
    }
}
