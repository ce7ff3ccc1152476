//! Keyword search in the text of earlier conversations: prompts and responses (FTS5 of SQLite, ranked by BM25, or `tsvector` of PostgreSQL).

use serde::Serialize;

use crate::conversation::integer;
use crate::database::{Row, Statement};
use crate::error::StoreError;
use crate::memories::MAX_MEMORY_BYTES;
use crate::message_text::text_of;
use crate::search_terms::{Term, any, escaped, terms};
use crate::store::Store;

/// Characters of an excerpt.
const EXCERPT_CHARS: usize = 500;
/// Characters of an excerpt before the first word that was found.
const CHARS_BEFORE_MATCH: usize = 120;
/// Messages that are compared with the whole text if no word is found.
const MAX_COMPARED: i64 = 200;

/// A message of an earlier conversation that matches a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FoundMessage {
    /// The session.
    pub session: String,
    /// The directory of the session.
    pub project: String,
    /// The place of the message in its session, from 1.
    pub seq: i64,
    /// `user` or `assistant`.
    pub role: String,
    /// The text around the first matching word, on one line.
    pub excerpt: String,
    /// The time of the message: milliseconds since the Unix epoch.
    pub created_at: i64,
}

impl Store {
    /// Returns up to `most` messages that match `text` best, of other sessions than `session` in its project, or in
    /// `all_projects`. If no word matches, it returns messages that contain the text unchanged.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn search_messages(
        &self,
        session: &str,
        text: &str,
        all_projects: bool,
        most: u64,
    ) -> Result<Vec<FoundMessage>, StoreError> {
        let words = terms(text);
        if !words.is_empty() {
            let select = Statement::per_dialect(
                "SELECT s.id, s.project, m.seq, m.role, m.content, m.created_at
                 FROM message_words w JOIN message m ON m.number = w.rowid
                      JOIN session s ON s.number = m.session
                 WHERE message_words MATCH ?1 AND s.id <> ?2
                   AND (?3 OR s.project = (SELECT project FROM session WHERE id = ?2))
                   AND NOT m.rewound
                 ORDER BY bm25(message_words), m.number DESC LIMIT ?4",
                "SELECT s.id, s.project, m.seq, m.role, m.content, m.created_at
                 FROM message m JOIN session s ON s.number = m.session
                 WHERE m.words @@ to_tsquery('zeph', ?1) AND s.id <> ?2
                   AND (?3 OR s.project = (SELECT project FROM session WHERE id = ?2))
                   AND NOT m.rewound
                 ORDER BY ts_rank(m.words, to_tsquery('zeph', ?1)) DESC, m.number DESC LIMIT ?4",
            );
            let select = select.bind(any(&words, self.dialect())).bind(session);
            let rows = self.fetch(select.bind(all_projects).bind(integer(most)));
            let found = self.found(&rows.await?, text)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let part = text.trim();
        if part.is_empty() || part.len() > MAX_MEMORY_BYTES {
            return Ok(Vec::new());
        }
        let select = Statement::per_dialect(
            "SELECT s.id, s.project, m.seq, m.role, m.content, m.created_at
             FROM message m JOIN session s ON s.number = m.session
             WHERE m.content LIKE ?1 ESCAPE '\\' AND s.id <> ?2
               AND (?3 OR s.project = (SELECT project FROM session WHERE id = ?2))
               AND NOT m.rewound
             ORDER BY m.number DESC LIMIT ?4",
            "SELECT s.id, s.project, m.seq, m.role, m.content, m.created_at
             FROM message m JOIN session s ON s.number = m.session
             WHERE m.content ILIKE ?1 ESCAPE '\\' AND s.id <> ?2
               AND (?3 OR s.project = (SELECT project FROM session WHERE id = ?2))
               AND NOT m.rewound
             ORDER BY m.number DESC LIMIT ?4",
        );
        let select = select.bind(format!("%{}%", escaped(part))).bind(session);
        let rows = self.fetch(select.bind(all_projects).bind(MAX_COMPARED));
        let mut found = self.found(&rows.await?, text)?;
        let wanted = part.to_lowercase();
        // The pattern also fits calls and results.
        found.retain(|message| message.excerpt.to_lowercase().contains(&wanted));
        found.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(found)
    }

    fn found(&self, rows: &[Row], text: &str) -> Result<Vec<FoundMessage>, StoreError> {
        let read = |row: &Row| {
            let content: String = row.try_get(4)?;
            Ok(FoundMessage {
                session: row.try_get(0)?,
                project: row.try_get(1)?,
                seq: row.try_get(2)?,
                role: row.try_get(3)?,
                excerpt: excerpt(&spoken(&content), text),
                created_at: row.try_get(5)?,
            })
        };
        let found: Result<_, sqlx::Error> = rows.iter().map(read).collect();
        found.map_err(|error| self.sql(error))
    }
}

/// The text of a message on one line.
fn spoken(content: &str) -> String {
    let text = text_of(content);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The part of `text` around the first word of `query`, with `…` for omitted text.
fn excerpt(text: &str, query: &str) -> String {
    let lower = text.to_lowercase();
    let whole = query.trim().to_lowercase();
    let words = terms(query);
    let words = words.iter().map(Term::word);
    let place = std::iter::once(whole.as_str())
        .chain(words)
        .filter(|word| !word.is_empty())
        .find_map(|word| lower.find(word));
    // Lower case may have another length; the place is near enough.
    let chars = lower[..place.unwrap_or(0)].chars().count();
    let skipped = chars.saturating_sub(CHARS_BEFORE_MATCH);
    let shown: String = text.chars().skip(skipped).take(EXCERPT_CHARS).collect();
    let before = if skipped > 0 { "…" } else { "" };
    let rest = text.chars().count() > skipped + EXCERPT_CHARS;
    format!("{before}{shown}{}", if rest { "…" } else { "" })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_shows_the_first_word_that_fits() {
        let check = |text: &str, query: &str, begins: &str, ends: &str| {
            let shown = excerpt(text, query);
            assert!(shown.starts_with(begins), "{query}: {shown}");
            assert!(shown.ends_with(ends), "{query}: {shown}");
            assert!(shown.chars().count() <= EXCERPT_CHARS + 2, "{query}");
        };
        check("", "x", "", "");
        check("The port is 5433.", "port", "The port", "5433.");
        let long = format!(
            "{} The Port is 5433. {}",
            "a ".repeat(400),
            "b ".repeat(400)
        );
        check(&long, "port", "…", "…");
        assert!(excerpt(&long, "which port").contains("The Port is 5433."));
        check(&long, "nothing", "a a", "…");
        let wide = format!("{}Größe {}", "ß".repeat(300), "İ".repeat(600));
        assert!(excerpt(&wide, "größe").contains("Größe"));
    }
}
