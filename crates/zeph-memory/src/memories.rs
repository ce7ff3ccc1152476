//! Facts that outlive their session: the table `memory`, searched by words (SQLite's FTS5, ranked by BM25).

use std::collections::BTreeSet;

use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, query};

use crate::conversation::{integer, now, unknown};
use crate::error::StoreError;
use crate::store::Store;

/// The longest fact, in bytes.
pub const LONGEST_MEMORY: usize = 16 * 1024;

/// The most words of a search that count.
const MOST_WORDS: usize = 32;

/// A word of so many characters is also found as the beginning of longer ones.
const PREFIX_FROM: usize = 4;

/// Words that nearly every text has: they are left out where others remain.
const COMMON: &[&str] = &[
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "did", "do", "does", "for", "from",
    "had", "has", "have", "how", "i", "in", "is", "it", "my", "of", "on", "or", "our", "that",
    "the", "their", "this", "to", "was", "we", "were", "what", "when", "where", "which", "who",
    "why", "with", "you", "your",
];

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// `memory_1`, `memory_2`, …
    pub id: String,
    /// What is kept.
    pub content: String,
    /// The session that saved it last.
    pub session: String,
    /// The directory of that session.
    pub project: String,
    /// When it was saved last: milliseconds since the Unix epoch.
    pub saved_at: i64,
}

impl Store {
    /// Keeps a fact. One that is kept already is not kept twice: its date and session become these.
    ///
    /// # Errors
    /// [`StoreError::EmptyMemory`], [`StoreError::LongMemory`], [`StoreError::UnknownSession`], or a
    /// failure of the database.
    pub async fn save_memory(&self, session: &str, content: &str) -> Result<Memory, StoreError> {
        let content = content.trim();
        if content.is_empty() {
            return Err(StoreError::EmptyMemory);
        }
        if content.len() > LONGEST_MEMORY {
            return Err(StoreError::LongMemory {
                bytes: content.len(),
                max: LONGEST_MEMORY,
            });
        }
        let insert = query(
            "INSERT INTO memory (content, session, project, saved_at)
             SELECT ?2, s.id, s.project, ?3 FROM session s WHERE s.id = ?1
             ON CONFLICT (content) DO UPDATE
             SET session = excluded.session, project = excluded.project, saved_at = excluded.saved_at
             RETURNING number, content, session, project, saved_at",
        );
        let insert = insert.bind(session).bind(content).bind(now());
        let rows = self.write(insert, 2 * content.len()).await?;
        self.memory_of(rows.first().ok_or_else(|| unknown(session))?)
    }

    /// The up to `most` facts that fit `text` best, by the words they have in common. Where no word
    /// is found, those that hold the text as it stands.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn search_memory(&self, text: &str, most: u64) -> Result<Vec<Memory>, StoreError> {
        let mut rows = Vec::new();
        let words = match_expression(text);
        if let Some(words) = &words {
            let select = query(
                "SELECT m.number, m.content, m.session, m.project, m.saved_at
                 FROM memory_words w JOIN memory m ON m.number = w.rowid
                 WHERE memory_words MATCH ?1 ORDER BY bm25(memory_words), m.saved_at DESC, m.number LIMIT ?2",
            );
            let select = select.bind(words.as_str()).bind(integer(most));
            rows = self.fetch(select).await?;
        }
        let part = text.trim();
        if rows.is_empty() && !part.is_empty() {
            let select = query(
                "SELECT number, content, session, project, saved_at FROM memory
                 WHERE instr(lower(content), lower(?1)) > 0 ORDER BY saved_at DESC, number LIMIT ?2",
            );
            rows = self.fetch(select.bind(part).bind(integer(most))).await?;
        }
        rows.iter().map(|row| self.memory_of(row)).collect()
    }

    fn memory_of(&self, row: &SqliteRow) -> Result<Memory, StoreError> {
        let read = || -> Result<Memory, sqlx::Error> {
            let number: i64 = row.try_get(0)?;
            Ok(Memory {
                id: format!("memory_{number}"),
                content: row.try_get(1)?,
                session: row.try_get(2)?,
                project: row.try_get(3)?,
                saved_at: row.try_get(4)?,
            })
        };
        read().map_err(|error| self.sql(error))
    }
}

/// The words of `text` as a query of FTS5, any of which may be found; `None` where there is none.
/// Each stands in quotes, so that nothing in it is an operator.
fn match_expression(text: &str) -> Option<String> {
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
    let quoted = telling.into_iter().take(MOST_WORDS).map(|word| {
        let prefix = if word.chars().count() >= PREFIX_FROM {
            "*"
        } else {
            ""
        };
        format!("\"{word}\"{prefix}")
    });
    let expression = quoted.collect::<Vec<_>>().join(" OR ");
    (!expression.is_empty()).then_some(expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(match_expression(text).as_deref(), expect, "{text:?}");
        };
        check("", None);
        check(" \"'()*- ", None);
        check("The port", Some("\"port\"*"));
        check("the", Some("\"the\""));
        check("NEAR(a b)", Some("\"b\" OR \"near\"*"));
        check("db db DB", Some("\"db\""));
        check("naïve \"x", Some("\"naïve\"* OR \"x\""));
    }
}
