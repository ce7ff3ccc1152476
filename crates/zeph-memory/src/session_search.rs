//! Search for sessions by the text of their prompts and responses, and by their titles.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use crate::conversation::SessionInfo;
use crate::database::{Row, Statement};
use crate::error::StoreError;
use crate::memories::MAX_MEMORY_BYTES;
use crate::message_text::text_of;
use crate::search_terms::{all, escaped, terms};
use crate::store::Store;

/// Characters of the line that a match shows.
const MAX_LINE_CHARS: usize = 200;
/// Characters of the line before the first word that was found.
const CHARS_BEFORE_MATCH: usize = 60;
/// Matching messages that are read, the latest first.
const MAX_MESSAGES: i64 = 5000;
/// Sessions that are compared by their title.
const MAX_TITLES: u32 = 10_000;

/// A session that matches a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionMatch {
    /// The session.
    pub session: SessionInfo,
    /// The place of the matching message in the session, from 1; `None` if only the title matches.
    pub seq: Option<i64>,
    /// `user` or `assistant`; `None` if only the title matches.
    pub role: Option<String>,
    /// The matching line.
    pub line: String,
}

impl Store {
    /// Up to `limit` sessions, of `project` or of all, with a message or a title that contains all words of `text`, the
    /// latest match first. A text without words is searched unchanged.
    ///
    /// Sessions of sub-agents are not listed anywhere, and a rewound message has left its session, so
    /// neither is found.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn search_sessions(
        &self,
        text: &str,
        project: Option<&Path>,
        limit: usize,
    ) -> Result<Vec<SessionMatch>, StoreError> {
        let words = words_of(text);
        if words.is_empty() || text.len() > MAX_MEMORY_BYTES {
            return Ok(Vec::new());
        }
        let rows = self.messages_with_words(text, project).await?;
        let mut found = self.matches(&rows, &words, limit).await?;
        if found.is_empty() {
            let rows = self.messages_with_text(&words, project).await?;
            found = self.matches(&rows, &words, limit).await?;
        }
        let known: HashSet<String> = found.iter().map(|it| it.session.id.clone()).collect();
        for session in self.list_sessions(project, MAX_TITLES).await? {
            let title = session.title.clone().unwrap_or_default().to_lowercase();
            if found.len() < limit
                && words.iter().all(|word| title.contains(word))
                && !known.contains(&session.id)
            {
                found.push(SessionMatch {
                    line: session.title.clone().unwrap_or_default(),
                    session,
                    seq: None,
                    role: None,
                });
            }
        }
        Ok(found)
    }

    /// The latest match of each session in `rows`, which hold session, place, role and content of messages.
    async fn matches(
        &self,
        rows: &[Row],
        words: &[String],
        limit: usize,
    ) -> Result<Vec<SessionMatch>, StoreError> {
        let read = |row: &Row| -> Result<(String, i64, String, String), sqlx::Error> {
            Ok((
                row.try_get(0)?,
                row.try_get(1)?,
                row.try_get(2)?,
                row.try_get(3)?,
            ))
        };
        let mut found: Vec<SessionMatch> = Vec::new();
        for row in rows {
            let (id, seq, role, content) = read(row).map_err(|error| self.sql(error))?;
            if found.len() == limit {
                break;
            }
            if found.iter().any(|it| it.session.id == id) {
                continue;
            }
            if let Some(line) = matching_line(&text_of(&content), words) {
                found.push(SessionMatch {
                    session: self.session(&id).await?,
                    seq: Some(seq),
                    role: Some(role),
                    line,
                });
            }
        }
        Ok(found)
    }

    /// The messages that contain the words of `text` or words with the same stem, the latest first.
    async fn messages_with_words(
        &self,
        text: &str,
        project: Option<&Path>,
    ) -> Result<Vec<Row>, StoreError> {
        // These omit frequent words. The lines are compared with all words.
        let matched = terms(text);
        if matched.is_empty() {
            return Ok(Vec::new());
        }
        let select = Statement::per_dialect(
            "SELECT s.id, m.seq, m.role, m.content
             FROM message_words w JOIN message m ON m.number = w.rowid
                  JOIN session s ON s.number = m.session
             WHERE message_words MATCH ?1 AND (?2 IS NULL OR s.project = ?2)
               AND s.parent IS NULL AND NOT m.rewound
             ORDER BY m.number DESC LIMIT ?3",
            "SELECT s.id, m.seq, m.role, m.content
             FROM message m JOIN session s ON s.number = m.session
             WHERE m.words @@ to_tsquery('zeph', ?1) AND (?2 IS NULL OR s.project = ?2)
               AND s.parent IS NULL AND NOT m.rewound
             ORDER BY m.number DESC LIMIT ?3",
        );
        let project = project.map(|project| project.to_string_lossy().into_owned());
        let select = select.bind(all(&matched, self.dialect())).bind(project);
        self.fetch(select.bind(MAX_MESSAGES)).await
    }

    /// The messages that contain the longest of `words` at any place, the latest first.
    async fn messages_with_text(
        &self,
        words: &[String],
        project: Option<&Path>,
    ) -> Result<Vec<Row>, StoreError> {
        let project = project.map(|project| project.to_string_lossy().into_owned());
        let longest = words.iter().max_by_key(|word| word.len());
        let pattern = longest.map_or_else(String::new, |word| format!("%{}%", escaped(word)));
        let select = Statement::per_dialect(
            "SELECT s.id, m.seq, m.role, m.content
             FROM message m JOIN session s ON s.number = m.session
             WHERE m.content LIKE ?1 ESCAPE '\\' AND (?2 IS NULL OR s.project = ?2)
               AND s.parent IS NULL AND NOT m.rewound
             ORDER BY m.number DESC LIMIT ?3",
            "SELECT s.id, m.seq, m.role, m.content
             FROM message m JOIN session s ON s.number = m.session
             WHERE m.content ILIKE ?1 ESCAPE '\\' AND (?2 IS NULL OR s.project = ?2)
               AND s.parent IS NULL AND NOT m.rewound
             ORDER BY m.number DESC LIMIT ?3",
        );
        self.fetch(select.bind(pattern).bind(project).bind(MAX_MESSAGES))
            .await
    }
}

/// The words of a search in lower case.
fn words_of(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_lowercase).collect()
}

/// The line of `text` that contains the most of `words`, on one line of bounded length. `None` if a word is missing in
/// `text`.
fn matching_line(text: &str, words: &[String]) -> Option<String> {
    let lower = text.to_lowercase();
    if !words.iter().all(|word| lower.contains(word)) {
        return None;
    }
    let count = |line: &str| {
        let line = line.to_lowercase();
        words.iter().filter(|word| line.contains(*word)).count()
    };
    // `max_by_key` returns the last of several, so the lines are reversed.
    let line = text.lines().rev().max_by_key(|line| count(line))?;
    let line: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = line.to_lowercase();
    let at = words.iter().filter_map(|word| lower.find(word)).min();
    // Lower case may have another length; the place is near enough.
    let chars = lower[..at.unwrap_or(0)].chars().count();
    let total = line.chars().count();
    let skipped = match total > MAX_LINE_CHARS {
        true => chars.saturating_sub(CHARS_BEFORE_MATCH),
        false => 0,
    };
    let shown: String = line.chars().skip(skipped).take(MAX_LINE_CHARS).collect();
    let before = if skipped > 0 { "…" } else { "" };
    let after = if total > skipped + MAX_LINE_CHARS {
        "…"
    } else {
        ""
    };
    Some(format!("{before}{shown}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-6: a match is the line with the most words, and it is bounded.
    #[test]
    fn matching_line_has_the_most_words() {
        let check = |text: &str, words: &str, expect: Option<&str>| {
            let found = matching_line(text, &words_of(words));
            assert_eq!(found.as_deref(), expect, "{text:?} {words:?}");
        };
        check("", "x", None);
        check(
            "one\ntwo parser\nthe Parser  fails",
            "parser fails",
            Some("the Parser fails"),
        );
        check("parser\nparser", "parser", Some("parser"));
        check("a parser\nthat fails", "parser fails", Some("a parser"));
        check("a parser", "parser lexer", None);
        check("f(a::b)", "a::b", Some("f(a::b)"));
        let long = format!("{} needle {}", "ä".repeat(500), "b ".repeat(500));
        let line = matching_line(&long, &words_of("needle")).unwrap_or_default();
        assert!(line.starts_with('…') && line.ends_with('…'), "{line}");
        assert!(line.contains("needle"), "{line}");
        assert_eq!(line.chars().count(), MAX_LINE_CHARS + 2);
    }
}
