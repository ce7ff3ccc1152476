//! The words of a full-text search, and their form in each database.

use std::collections::BTreeSet;

use crate::database::Dialect;

/// The maximum number of words of a search. The longest come first, since they are the most specific.
const MAX_WORDS: usize = 16;

/// The minimum length of a word that also matches the start of longer words.
const PREFIX_FROM: usize = 4;

/// Words of nearly every text, which are omitted if others remain.
const COMMON: &[&str] = &[
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "did", "do", "does", "for", "from",
    "had", "has", "have", "how", "i", "in", "is", "it", "my", "of", "on", "or", "our", "that",
    "the", "their", "this", "to", "was", "we", "were", "what", "when", "where", "which", "who",
    "why", "with", "you", "your",
];

/// A word in lower case. It consists of letters and digits, so nothing in it is an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term(String);

impl Term {
    /// The word.
    pub(crate) fn word(&self) -> &str {
        &self.0
    }

    /// The word in the query language of a database: FTS5 of SQLite, or `tsquery` of PostgreSQL.
    pub(crate) fn text(&self, dialect: Dialect) -> String {
        let is_prefix = self.0.chars().count() >= PREFIX_FROM;
        match (dialect, is_prefix) {
            (Dialect::Sqlite, true) => format!("\"{}\"*", self.0),
            (Dialect::Sqlite, false) => format!("\"{}\"", self.0),
            (Dialect::Postgres, true) => format!("'{}':*", self.0),
            (Dialect::Postgres, false) => format!("'{}'", self.0),
        }
    }
}

/// The words of `text` that are worth a search, the longest first.
pub(crate) fn terms(text: &str) -> Vec<Term> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: BTreeSet<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let mut telling: Vec<&String> = words
        .iter()
        .filter(|word| !COMMON.contains(&word.as_str()))
        .collect();
    if telling.is_empty() {
        telling = words.iter().collect();
    }
    telling.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let telling = telling.into_iter().take(MAX_WORDS);
    telling.cloned().map(Term).collect()
}

/// A search for texts with any of the words.
pub(crate) fn any(terms: &[Term], dialect: Dialect) -> String {
    joined(terms, dialect, [" OR ", " | "])
}

/// A search for texts with all of the words.
pub(crate) fn all(terms: &[Term], dialect: Dialect) -> String {
    joined(terms, dialect, [" AND ", " & "])
}

fn joined(terms: &[Term], dialect: Dialect, [sqlite, postgres]: [&str; 2]) -> String {
    let texts: Vec<String> = terms.iter().map(|term| term.text(dialect)).collect();
    texts.join(match dialect {
        Dialect::Sqlite => sqlite,
        Dialect::Postgres => postgres,
    })
}

/// `text` in a pattern of `LIKE`, in which `\\` escapes.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_quoted() {
        let check = |text: &str, expect: &[&str]| {
            let found: Vec<String> = terms(text)
                .iter()
                .map(|it| it.text(Dialect::Sqlite))
                .collect();
            assert_eq!(found, expect, "{text:?}");
        };
        check("", &[]);
        check(" \"'()*- ", &[]);
        check("The port", &["\"port\"*"]);
        check("the", &["\"the\""]);
        check("NEAR(a b)", &["\"near\"*", "\"b\""]);
        check("db db DB", &["\"db\""]);
        check("naïve \"x", &["\"naïve\"*", "\"x\""]);
    }

    /// Proves OPS-1: a search has a form for each database.
    #[test]
    fn terms_are_joined_for_each_database() {
        let terms = terms("port db");
        assert_eq!(any(&terms, Dialect::Sqlite), "\"port\"* OR \"db\"");
        assert_eq!(any(&terms, Dialect::Postgres), "'port':* | 'db'");
        assert_eq!(all(&terms, Dialect::Sqlite), "\"port\"* AND \"db\"");
        assert_eq!(all(&terms, Dialect::Postgres), "'port':* & 'db'");
    }
}
