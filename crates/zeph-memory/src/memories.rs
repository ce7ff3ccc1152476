//! Facts that outlive their session: the table `memory`, with a keyword search (FTS5 of SQLite, ranked by BM25, or `tsvector` of PostgreSQL).

use std::collections::BTreeSet;

use serde::Serialize;

use crate::conversation::{integer, now, unknown};
use crate::database::{Row, Statement, query};
use crate::error::StoreError;
use crate::search_terms::{Term, all, any, escaped, terms};
use crate::store::Store;

/// The maximum length of a fact in bytes.
pub const MAX_MEMORY_BYTES: usize = 16 * 1024;

/// The maximum number of frequent words in a search.
const MAX_COMMON: usize = 4;

/// The number of facts from which a word counts as frequent, and does not rank them.
const MANY: i64 = 2000;

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// `memory_1`, `memory_2`, …
    pub id: String,
    /// The text of the fact.
    pub content: String,
    /// The session that saved it last.
    pub session: String,
    /// The directory of that session.
    pub project: String,
    /// The time of the last save: milliseconds since the Unix epoch.
    pub saved_at: i64,
}

impl Memory {
    /// The number in the table.
    pub(crate) fn number(&self) -> Option<i64> {
        self.id.strip_prefix("memory_")?.parse().ok()
    }
}

impl Store {
    /// Stores a fact. If the same fact is already stored, only its date and session are updated.
    ///
    /// # Errors
    /// [`StoreError::EmptyMemory`], [`StoreError::LongMemory`], [`StoreError::UnknownSession`], or a failure of the
    /// database.
    pub async fn save_memory(&self, session: &str, content: &str) -> Result<Memory, StoreError> {
        let content = content.trim();
        if content.is_empty() {
            return Err(StoreError::EmptyMemory);
        }
        if content.len() > MAX_MEMORY_BYTES {
            return Err(StoreError::LongMemory {
                bytes: content.len(),
                max: MAX_MEMORY_BYTES,
            });
        }
        let insert = Statement::per_dialect(
            "INSERT INTO memory (content, session, project, saved_at)
             SELECT ?2, s.id, s.project, ?3 FROM session s WHERE s.id = ?1
             ON CONFLICT (content) DO UPDATE
             SET session = excluded.session, project = excluded.project, saved_at = excluded.saved_at
             RETURNING number, content, session, project, saved_at",
            "INSERT INTO memory (content, session, project, saved_at)
             SELECT ?2, s.id, s.project, ?3 FROM session s WHERE s.id = ?1
             ON CONFLICT (owner, digest) DO UPDATE
             SET session = excluded.session, project = excluded.project, saved_at = excluded.saved_at
             RETURNING number, content, session, project, saved_at",
        );
        let insert = insert.bind(session).bind(content).bind(now());
        let rows = self.write(insert, 2 * content.len()).await?;
        self.memory_of(rows.first().ok_or_else(|| unknown(session))?)
    }

    /// Returns up to `most` facts that match `text` best, by common words. If no word matches, it returns those that
    /// contain the text unchanged.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn search_memory(&self, text: &str, most: u64) -> Result<Vec<Memory>, StoreError> {
        let mut rows = Vec::new();
        let (rare, common) = self.by_frequency(terms(text)).await?;
        if !rare.is_empty() {
            let select = Statement::per_dialect(
                "SELECT m.number, m.content, m.session, m.project, m.saved_at
                 FROM memory_words w JOIN memory m ON m.number = w.rowid
                 WHERE memory_words MATCH ?1 ORDER BY bm25(memory_words), m.saved_at DESC, m.number LIMIT ?2",
                "SELECT m.number, m.content, m.session, m.project, m.saved_at FROM memory m
                 WHERE m.words @@ to_tsquery('zeph', ?1)
                 ORDER BY ts_rank(m.words, to_tsquery('zeph', ?1)) DESC, m.saved_at DESC, m.number LIMIT ?2",
            );
            let words = any(&rare, self.dialect());
            rows = self.fetch(select.bind(words).bind(integer(most))).await?;
        } else if !common.is_empty() {
            rows = self.with_common(&common, most).await?;
        }
        let part = text.trim();
        if rows.is_empty() && !part.is_empty() && part.len() <= MAX_MEMORY_BYTES {
            // Three times as fast as `instr(lower(content), …)`, and the same.
            let select = Statement::per_dialect(
                "SELECT number, content, session, project, saved_at FROM memory
                 WHERE content LIKE ?1 ESCAPE '\\' ORDER BY saved_at DESC, number LIMIT ?2",
                "SELECT number, content, session, project, saved_at FROM memory
                 WHERE content ILIKE ?1 ESCAPE '\\' ORDER BY saved_at DESC, number LIMIT ?2",
            );
            let pattern = format!("%{}%", escaped(part));
            rows = self.fetch(select.bind(pattern).bind(integer(most))).await?;
        }
        rows.iter().map(|row| self.memory_of(row)).collect()
    }

    /// The latest facts that have all of `words`, which are all frequent. If these are too few, the best matches with
    /// any of the words among the latest follow. A single frequent word does not rank facts, so only their age does.
    async fn with_common(&self, words: &[Term], most: u64) -> Result<Vec<Row>, StoreError> {
        let words = words.get(..MAX_COMMON).unwrap_or(words);
        let select = Statement::per_dialect(
            "SELECT m.number, m.content, m.session, m.project, m.saved_at
             FROM (SELECT rowid FROM memory_words WHERE memory_words MATCH ?1 ORDER BY rowid DESC LIMIT ?3) w
             JOIN memory m ON m.number = w.rowid
             ORDER BY m.saved_at DESC, m.number DESC LIMIT ?2",
            "SELECT m.number, m.content, m.session, m.project, m.saved_at
             FROM (SELECT * FROM memory WHERE words @@ to_tsquery('zeph', ?1) ORDER BY number DESC LIMIT ?3) m
             ORDER BY m.saved_at DESC, m.number DESC LIMIT ?2",
        );
        let select = select.bind(all(words, self.dialect())).bind(integer(most));
        let mut rows = self.fetch(select.bind(MANY)).await?;
        if integer(most) > i64::try_from(rows.len()).unwrap_or(i64::MAX) {
            let select = Statement::per_dialect(
                "SELECT m.number, m.content, m.session, m.project, m.saved_at
                 FROM (SELECT rowid, bm25(memory_words) AS fit FROM memory_words
                       WHERE memory_words MATCH ?1 ORDER BY rowid DESC LIMIT ?3) w
                 JOIN memory m ON m.number = w.rowid
                 ORDER BY w.fit, m.saved_at DESC, m.number LIMIT ?2",
                "SELECT m.number, m.content, m.session, m.project, m.saved_at
                 FROM (SELECT * FROM memory WHERE words @@ to_tsquery('zeph', ?1) ORDER BY number DESC LIMIT ?3) m
                 ORDER BY ts_rank(m.words, to_tsquery('zeph', ?1)) DESC, m.saved_at DESC, m.number LIMIT ?2",
            );
            let select = select.bind(any(words, self.dialect())).bind(integer(most));
            let number = |row: &Row| row.try_get::<i64, _>(0).unwrap_or_default();
            let known: BTreeSet<i64> = rows.iter().map(number).collect();
            let more = self.fetch(select.bind(MANY)).await?;
            rows.extend(more.into_iter().filter(|row| !known.contains(&number(row))));
            rows.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        Ok(rows)
    }

    /// The rare and the frequent words. Frequent words alone would require the ranking of nearly every fact. Words
    /// without a match are omitted.
    async fn by_frequency(&self, words: Vec<Term>) -> Result<(Vec<Term>, Vec<Term>), StoreError> {
        let (mut rare, mut common) = (Vec::new(), Vec::new());
        for word in words {
            let select = Statement::per_dialect(
                "SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE memory_words MATCH ?1 LIMIT ?2)",
                "SELECT count(*)
                 FROM (SELECT 1 FROM memory WHERE words @@ to_tsquery('zeph', ?1) LIMIT ?2) AS found",
            );
            let select = select.bind(word.text(self.dialect())).bind(MANY);
            let rows = self.fetch(select).await?;
            let found = rows.first().map(|row| row.try_get::<i64, _>(0));
            let found = found.transpose().map_err(|error| self.sql(error))?;
            match found.unwrap_or(0) {
                0 => {}
                MANY => common.push(word),
                _ => rare.push(word),
            }
        }
        Ok((rare, common))
    }

    /// Up to `most` facts, the latest first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn list_memories(&self, most: u64) -> Result<Vec<Memory>, StoreError> {
        let select = query(
            "SELECT number, content, session, project, saved_at FROM memory
             ORDER BY saved_at DESC, number DESC LIMIT ?1",
        );
        let rows = self.fetch(select.bind(integer(most))).await?;
        rows.iter().map(|row| self.memory_of(row)).collect()
    }

    /// The number of stored facts.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn count_memories(&self) -> Result<u64, StoreError> {
        let rows = self.fetch(query("SELECT count(*) FROM memory")).await?;
        let found = rows.first().map(|row| row.try_get::<i64, _>(0)).transpose();
        let found = found.map_err(|error| self.sql(error))?.unwrap_or(0);
        Ok(found.unsigned_abs())
    }

    /// Removes the fact with this [`Memory::id`], and returns it; `None` if it does not exist.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn remove_memory(&self, id: &str) -> Result<Option<Memory>, StoreError> {
        let number = id.strip_prefix("memory_").unwrap_or(id);
        let Ok(number) = number.parse::<i64>() else {
            return Ok(None);
        };
        let delete = query(
            "DELETE FROM memory WHERE number = ?1
             RETURNING number, content, session, project, saved_at",
        );
        let rows = self.write(delete.bind(number), 0).await?;
        rows.first().map(|row| self.memory_of(row)).transpose()
    }

    pub(crate) fn memory_of(&self, row: &Row) -> Result<Memory, StoreError> {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A word in nearly every fact does not hide the only fact with another word.
    #[tokio::test]
    async fn common_words_hide_no_match() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeph.db");
        let store = Store::open(&path, crate::Synchronous::Normal)
            .await
            .unwrap();
        store.ensure_session("s", folder.path()).await.unwrap();
        let first = "The port of the oldest service is 5433.";
        store.save_memory("s", first).await.unwrap();
        for n in 0..MANY {
            let fact = format!("The service number {n} has a port.");
            store.save_memory("s", &fact).await.unwrap();
        }
        let found = store.search_memory("oldest service port", 3).await.unwrap();
        assert_eq!(found[0].content, first);
        let found = store.search_memory("service port", 3).await.unwrap();
        assert_eq!(found.len(), 3);
        // An old fact with both of two frequent words is found before later ones with one.
        for n in 0..=MANY {
            store.save_memory("s", &format!("Red {n}.")).await.unwrap();
            store.save_memory("s", &format!("Blue {n}.")).await.unwrap();
            if n == 3 {
                store
                    .save_memory("s", "Blue or red, by the moon.")
                    .await
                    .unwrap();
            }
        }
        let found = store.search_memory("red blue", 5).await.unwrap();
        assert_eq!(found[0].content, "Blue or red, by the moon.");
        assert_eq!(found.len(), 5);
        let found = store.search_memory("%_%", 5).await.unwrap();
        assert_eq!(found.len(), 0, "nothing of it is a pattern");
        let found = store.search_memory("service xyzzy", 1).await.unwrap();
        assert_eq!(found.len(), 1, "a word that none has is left out");
    }
}
