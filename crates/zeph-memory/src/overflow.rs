//! Outputs that were too long for the model: the tables `tool_overflow` and `tool_overflow_block`, for
//! `zeph_tools::overflow::OverflowStore`.
//!
//! An entry belongs to a session and is deleted with it. It is written in one transaction, and read block by block,
//! so that neither needs memory for all of it.

use async_trait::async_trait;
use zeph_tools::overflow::{
    NewEntry, OverflowEntry, OverflowError, OverflowRef, OverflowStore, StoredBlock,
};

use crate::conversation::{count, integer, now, unknown};
use crate::database::{Row, Statement, query, repeated};
use crate::error::StoreError;
use crate::store::Store;

/// The number of entries that are removed in one transaction, so that other writers can run in between.
const BATCH: i64 = 4;

/// A store of long outputs, in a [`Store`].
#[derive(Debug, Clone)]
pub struct SqliteOverflow {
    store: Store,
}

impl SqliteOverflow {
    /// Stores long outputs in `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

#[async_trait]
impl OverflowStore for SqliteOverflow {
    async fn put(&self, entry: NewEntry) -> Result<(), OverflowError> {
        self.store.put_overflow(&entry).await.map_err(failed)
    }

    async fn find(
        &self,
        conversation: &str,
        reference: OverflowRef,
    ) -> Result<Option<OverflowEntry>, OverflowError> {
        let found = self.store.overflow(Some(conversation), reference).await;
        found.map_err(failed)
    }

    async fn block(
        &self,
        conversation: &str,
        reference: OverflowRef,
        number: usize,
    ) -> Result<Option<StoredBlock>, OverflowError> {
        let found = self.store.overflow_block(conversation, reference, number);
        found.await.map_err(failed)
    }
}

fn failed(error: StoreError) -> OverflowError {
    match error {
        StoreError::UnknownSession { .. } => OverflowError::NoConversation,
        error => OverflowError::Failed(error.to_string()),
    }
}

macro_rules! select_entry {
    ($rest:literal) => {
        concat!(
            "SELECT o.id, s.id, o.tool, o.created_at, o.size, o.lines, o.total_size, o.number
             FROM tool_overflow o JOIN session s ON s.number = o.session ",
            $rest
        )
    };
}

/// The entry without its blocks, and its number.
fn entry_of(row: &Row) -> Result<(OverflowEntry, i64), sqlx::Error> {
    let reference = row.try_get::<&str, _>(0)?.parse();
    let entry = OverflowEntry {
        reference: reference.map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        conversation: row.try_get(1)?,
        tool: row.try_get(2)?,
        created_at: row.try_get(3)?,
        bytes: count(row.try_get(4)?),
        lines: count(row.try_get(5)?),
        total_bytes: count(row.try_get(6)?),
        blocks: Vec::new(),
    };
    Ok((entry, row.try_get(7)?))
}

impl Store {
    /// Stores a long output in one transaction.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], [`StoreError::Spill`], or a failure of the database.
    pub async fn put_overflow(&self, entry: &NewEntry) -> Result<(), StoreError> {
        let written = repeated(|| self.try_overflow(entry)).await?;
        self.wrote(written);
        Ok(())
    }

    /// One attempt to store an output. Returns the number of written bytes.
    async fn try_overflow(&self, entry: &NewEntry) -> Result<usize, StoreError> {
        let text = &entry.text;
        let mut written = 0;
        let mut transaction = self.begin().await?;
        let insert = query(
            "INSERT INTO tool_overflow
                 (id, session, tool, created_at, size, lines, total_size)
             SELECT ?2, number, ?3, ?4, ?5, ?6, ?7 FROM session WHERE id = ?1
             RETURNING number",
        )
        .bind(&entry.conversation)
        .bind(entry.reference.uuid())
        .bind(&entry.tool)
        .bind(now())
        .bind(integer(text.bytes()))
        .bind(integer(text.lines()))
        .bind(integer(text.total_bytes()));
        let rows = transaction.fetch(insert).await?;
        let row = rows.first().ok_or_else(|| unknown(&entry.conversation))?;
        let entry: i64 = row.try_get(0).map_err(|error| self.sql(error))?;
        for (number, block) in (0_i64..).zip(text.blocks()) {
            let content = text.packed(*block).map_err(StoreError::Spill)?;
            written += content.len();
            let insert = query(
                "INSERT INTO tool_overflow_block (entry, number, line, size, content)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )
            .bind(entry)
            .bind(number)
            .bind(integer(block.line))
            .bind(integer(block.bytes as u64))
            .bind(content);
            transaction.fetch(insert).await?;
        }
        transaction.commit().await?;
        Ok(written)
    }

    /// The description of a stored output of `session`, or of any session if none is given.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn overflow(
        &self,
        session: Option<&str>,
        reference: OverflowRef,
    ) -> Result<Option<OverflowEntry>, StoreError> {
        let select = query(select_entry!(
            "WHERE o.id = ?1 AND (?2 IS NULL OR s.id = ?2)"
        ));
        let select = select.bind(reference.uuid()).bind(session);
        let Some((mut entry, number)) = self.overflow_entries(select).await?.pop() else {
            return Ok(None);
        };
        let blocks = query("SELECT line FROM tool_overflow_block WHERE entry = ?1 ORDER BY number");
        for row in self.fetch(blocks.bind(number)).await? {
            let line = row.try_get(0).map_err(|error| self.sql(error))?;
            entry.blocks.push(count(line));
        }
        Ok(Some(entry))
    }

    /// The block `number` (from 0) of a stored output, if it belongs to `session`.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn overflow_block(
        &self,
        session: &str,
        reference: OverflowRef,
        number: usize,
    ) -> Result<Option<StoredBlock>, StoreError> {
        let select = query(
            "SELECT b.size, b.content
             FROM tool_overflow o
             JOIN session s ON s.number = o.session
             JOIN tool_overflow_block b ON b.entry = o.number
             WHERE o.id = ?1 AND s.id = ?2 AND b.number = ?3",
        );
        let select = select
            .bind(reference.uuid())
            .bind(session)
            .bind(integer(number as u64));
        let block = |row: &Row| {
            Ok(StoredBlock {
                bytes: usize::try_from(row.try_get::<i64, _>(0)?).unwrap_or(usize::MAX),
                packed: row.try_get(1)?,
            })
        };
        let rows = self.fetch(select).await?;
        let found = rows.first().map(block).transpose();
        found.map_err(|error| self.sql(error))
    }

    /// Up to `limit` stored outputs, of `session` or of all, the latest first; without blocks.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn list_overflow(
        &self,
        session: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OverflowEntry>, StoreError> {
        let select = query(select_entry!(
            "WHERE ?1 IS NULL OR s.id = ?1 ORDER BY o.created_at DESC, o.number DESC LIMIT ?2"
        ));
        let select = select.bind(session).bind(limit);
        let entries = self.overflow_entries(select).await?;
        Ok(entries.into_iter().map(|(entry, _)| entry).collect())
    }

    /// Removes the user's outputs that were stored before `since` (milliseconds since the Unix epoch), the oldest first
    /// and a few at a time. Returns their number.
    ///
    /// # Errors
    /// A failure of the database; earlier removals stay in force.
    pub async fn expire_overflow(&self, since: i64) -> Result<usize, StoreError> {
        let mut removed = 0;
        loop {
            // A statement that may write would wait for other processes that do.
            let expired = Statement::per_dialect(
                "SELECT 1 FROM tool_overflow WHERE created_at < ?1 LIMIT 1",
                "SELECT 1 FROM tool_overflow WHERE created_at < ?1 AND owner = current_user LIMIT 1",
            );
            if self.fetch(expired.bind(since)).await?.is_empty() {
                return Ok(removed);
            }
            let delete = Statement::per_dialect(
                "DELETE FROM tool_overflow WHERE number IN
                     (SELECT number FROM tool_overflow WHERE created_at < ?1
                      ORDER BY created_at LIMIT ?2)
                 RETURNING size",
                "DELETE FROM tool_overflow WHERE number IN
                     (SELECT number FROM tool_overflow WHERE created_at < ?1 AND owner = current_user
                      ORDER BY created_at LIMIT ?2)
                 RETURNING size",
            );
            let rows = self.write(delete.bind(since).bind(BATCH), 0).await?;
            removed += rows.len();
            if rows.is_empty() {
                return Ok(removed);
            }
        }
    }

    async fn overflow_entries(
        &self,
        select: Statement<'_>,
    ) -> Result<Vec<(OverflowEntry, i64)>, StoreError> {
        let rows = self.fetch(select).await?;
        rows.iter()
            .map(|row| entry_of(row).map_err(|error| self.sql(error)))
            .collect()
    }
}
