//! The undo journal in SQLite: the table `undo_change`, for `zeph_tools::UndoJournal`.

use std::borrow::Cow;
use std::io::{Read as _, Write as _};
use std::path::Path;

use async_trait::async_trait;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use zeph_tools::UndoJournal;
use zeph_tools::undo::{
    Batch, Change, Entry, JournalError, PendingChange, RecordOutcome, too_large,
};

use crate::conversation::{count, integer, now, unknown};
use crate::database::{Row, Statement, Transaction, query, repeated};
use crate::error::StoreError;
use crate::store::Store;

/// Why changes cannot be undone that made room for later ones.
const DROPPED: &str = "dropped from the journal to make room ([tools.undo] max_bytes)";
/// The most bytes that a record is unpacked to, in case it is damaged.
const MAX_UNPACKED_BYTES: u64 = 1 << 32;

/// Stores the undo journals of sessions in the database.
#[derive(Debug, Clone)]
pub struct SqliteUndo {
    store: Store,
    max_bytes: u64,
}

impl SqliteUndo {
    /// Creates journals in `store`, of `max_bytes` for each session.
    #[must_use]
    pub fn new(store: Store, max_bytes: u64) -> Self {
        Self { store, max_bytes }
    }

    async fn insert(&self, draft: PendingChange<'_>) -> Result<RecordOutcome, StoreError> {
        let change = match draft.change {
            Ok(change) => change,
            Err(reason) => return self.lost(draft, reason).await,
        };
        let bytes = change.bytes();
        if bytes > self.max_bytes {
            return self.lost(draft, &too_large(self.max_bytes)).await;
        }
        let row = NewChange {
            draft,
            lost: None,
            bytes,
            packed: Some(self.packed(change)?),
        };
        // While there is room: one statement.
        let written = row.packed.as_ref().map_or(0, Packed::len);
        let rows = self
            .store
            .write(row.insert(Some(self.max_bytes)), written)
            .await?;
        if let Some(number) = rows.first() {
            return Ok(RecordOutcome::Kept(self.number(number)?));
        }
        repeated(|| self.insert_dropping(&row)).await
    }

    async fn lost(
        &self,
        draft: PendingChange<'_>,
        reason: &str,
    ) -> Result<RecordOutcome, StoreError> {
        let row = NewChange {
            draft,
            lost: Some(reason),
            bytes: 0,
            packed: None,
        };
        let rows = self.store.write(row.insert(None), 0).await?;
        let number = rows.first().ok_or_else(|| unknown(draft.session))?;
        Ok(RecordOutcome::Lost(self.number(number)?, reason.to_owned()))
    }

    /// Inserts a row for which the oldest batches have to go; all or nothing.
    async fn insert_dropping(&self, row: &NewChange<'_>) -> Result<RecordOutcome, StoreError> {
        let mut row = Cow::Borrowed(row);
        let draft = row.draft;
        let mut transaction = self.store.begin().await?;
        let too_large = too_large(self.max_bytes);
        while self.total(transaction.as_mut(), draft.session).await? + row.bytes > self.max_bytes {
            let dropped = query(
                "UPDATE undo_change SET lost = ?3, bytes = 0, change = NULL, images = NULL
                 WHERE session = (SELECT number FROM session WHERE id = ?1) AND lost IS NULL
                   AND batch = (SELECT batch FROM undo_change
                                WHERE session = (SELECT number FROM session WHERE id = ?1)
                                  AND bytes > 0 AND batch <> ?2
                                ORDER BY number LIMIT 1)
                 RETURNING number",
            )
            .bind(draft.session)
            .bind(draft.batch)
            .bind(DROPPED);
            let dropped = transaction.fetch(dropped).await?;
            if dropped.is_empty() {
                // Its own batch takes all the room.
                row = Cow::Owned(NewChange {
                    draft,
                    lost: Some(&too_large),
                    bytes: 0,
                    packed: None,
                });
            }
        }
        let rows = transaction.fetch(row.insert(None)).await?;
        transaction.commit().await?;
        let number = self.number(rows.first().ok_or_else(|| unknown(draft.session))?)?;
        Ok(match row.lost {
            None => RecordOutcome::Kept(number),
            Some(reason) => RecordOutcome::Lost(number, reason.to_owned()),
        })
    }

    async fn total(
        &self,
        transaction: &mut dyn Transaction,
        session: &str,
    ) -> Result<u64, StoreError> {
        let select = query(
            "SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM undo_change
             WHERE session = (SELECT number FROM session WHERE id = ?1)",
        );
        let rows = transaction.fetch(select.bind(session)).await?;
        let total = rows.first().map(|row| self.number(row)).transpose()?;
        Ok(count(total.unwrap_or(0)))
    }

    fn number(&self, row: &Row) -> Result<i64, StoreError> {
        row.try_get(0).map_err(|error| self.store.sql(error))
    }

    fn packed(&self, change: &Change) -> Result<Packed, StoreError> {
        let failed = |error: std::io::Error| self.store.sql(sqlx::Error::Encode(Box::new(error)));
        let steps = serde_json::to_vec(change).map_err(|error| failed(error.into()))?;
        Ok(Packed {
            steps: deflated(&steps).map_err(failed)?,
            images: deflated(&change.images).map_err(failed)?,
        })
    }

    async fn entries_since(&self, session: &str, number: i64) -> Result<Vec<Entry>, StoreError> {
        let select = query(
            "SELECT number, tool, what, lost, change, images FROM undo_change
             WHERE session = (SELECT number FROM session WHERE id = ?1) AND number > ?2
             ORDER BY number DESC",
        );
        let rows = self.store.fetch(select.bind(session).bind(number)).await?;
        let entries: Result<Vec<_>, _> = rows.iter().map(entry_of).collect();
        entries.map_err(|error| self.store.sql(error))
    }

    async fn last_batch(&self, session: &str) -> Result<Option<Batch>, StoreError> {
        let select = query(
            "SELECT number, batch, tool, what, lost, change, images FROM undo_change
             WHERE session = (SELECT number FROM session WHERE id = ?1)
               AND batch = (SELECT batch FROM undo_change
                            WHERE session = (SELECT number FROM session WHERE id = ?1)
                            ORDER BY number DESC LIMIT 1)
             ORDER BY number DESC",
        );
        let rows = self.store.fetch(select.bind(session)).await?;
        let Some(first) = rows.first() else {
            return Ok(None);
        };
        let failed = |error| self.store.sql(error);
        let entries: Result<Vec<_>, _> = rows.iter().map(entry_of).collect();
        Ok(Some(Batch {
            id: first.try_get("batch").map_err(failed)?,
            entries: entries.map_err(failed)?,
        }))
    }
}

/// A row to be.
#[derive(Clone)]
struct NewChange<'a> {
    draft: PendingChange<'a>,
    lost: Option<&'a str>,
    bytes: u64,
    packed: Option<Packed>,
}

/// A change as it is stored.
#[derive(Clone)]
struct Packed {
    steps: Vec<u8>,
    images: Vec<u8>,
}

impl Packed {
    fn len(&self) -> usize {
        self.steps.len() + self.images.len()
    }
}

impl<'a> NewChange<'a> {
    /// The statement that inserts the change and returns its number. It inserts nothing if the session does not
    /// exist, or if the journal would then exceed `room`.
    fn insert(&'a self, room: Option<u64>) -> Statement<'a> {
        query(
            "INSERT INTO undo_change (session, batch, created_at, tool, what, lost, bytes, change, images,
                                      after_seq)
             SELECT s.number, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
                    (SELECT coalesce(max(m.seq), 0) FROM message m WHERE m.session = s.number)
             FROM session s
             WHERE s.id = ?1 AND (?10 IS NULL OR ?10 >= ?7 +
                 (SELECT coalesce(sum(u.bytes), 0) FROM undo_change u WHERE u.session = s.number))
             RETURNING number",
        )
        .bind(self.draft.session)
        .bind(self.draft.batch)
        .bind(now())
        .bind(self.draft.tool)
        .bind(self.draft.what)
        .bind(self.lost)
        .bind(integer(self.bytes))
        .bind(self.packed.as_ref().map(|packed| packed.steps.as_slice()))
        .bind(self.packed.as_ref().map(|packed| packed.images.as_slice()))
        .bind(room.map(integer))
    }
}

fn deflated(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn inflated(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    if !bytes.is_empty() {
        DeflateDecoder::new(bytes)
            .take(MAX_UNPACKED_BYTES)
            .read_to_end(&mut out)?;
    }
    Ok(out)
}

fn entry_of(row: &Row) -> Result<Entry, sqlx::Error> {
    let lost: Option<String> = row.try_get("lost")?;
    let change = match lost {
        Some(reason) => Err(reason),
        None => unpacked(row.try_get("change")?, row.try_get("images")?)
            .map_err(|error| format!("the record is damaged ({error})")),
    };
    Ok(Entry {
        number: row.try_get("number")?,
        tool: row.try_get("tool")?,
        what: row.try_get("what")?,
        change,
    })
}

fn unpacked(steps: &[u8], images: &[u8]) -> std::io::Result<Change> {
    let mut change: Change = serde_json::from_slice(&inflated(steps)?)?;
    change.images = inflated(images)?;
    Ok(change)
}

fn journal(error: &StoreError) -> JournalError {
    JournalError(error.to_string())
}

#[async_trait]
impl UndoJournal for SqliteUndo {
    fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    async fn record(&self, draft: PendingChange<'_>) -> Result<RecordOutcome, JournalError> {
        self.insert(draft).await.map_err(|error| journal(&error))
    }

    async fn settle(&self, session: &str, numbers: &[i64]) -> Result<(), JournalError> {
        for number in numbers {
            let delete = query(
                "DELETE FROM undo_change WHERE number = ?2
                 AND session = (SELECT number FROM session WHERE id = ?1)",
            );
            let deleted = self
                .store
                .write(delete.bind(session).bind(*number), 0)
                .await;
            deleted.map_err(|error| journal(&error))?;
        }
        Ok(())
    }

    async fn last(&self, session: &str) -> Result<Option<Batch>, JournalError> {
        self.last_batch(session)
            .await
            .map_err(|error| journal(&error))
    }

    async fn since(&self, session: &str, number: i64) -> Result<Vec<Entry>, JournalError> {
        self.entries_since(session, number)
            .await
            .map_err(|error| journal(&error))
    }
}

/// A recorded change, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredChange {
    /// The batch; changes of one batch are undone together.
    pub batch: String,
    /// The time of the change: milliseconds since the Unix epoch.
    pub created_at: i64,
    /// The tool.
    pub tool: String,
    /// The description of the change for the user.
    pub what: String,
    /// Why it cannot be undone.
    pub lost: Option<String>,
}

impl Store {
    /// The last `limit` changes of a session that are not undone, the latest first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn undo_changes(
        &self,
        session: &str,
        limit: u32,
    ) -> Result<Vec<StoredChange>, StoreError> {
        let select = query(
            "SELECT batch, created_at, tool, what, lost FROM undo_change
             WHERE session = (SELECT number FROM session WHERE id = ?1)
             ORDER BY number DESC LIMIT ?2",
        );
        let rows = self.fetch(select.bind(session).bind(limit)).await?;
        let changes = rows.iter().map(|row| {
            Ok(StoredChange {
                batch: row.try_get(0)?,
                created_at: row.try_get(1)?,
                tool: row.try_get(2)?,
                what: row.try_get(3)?,
                lost: row.try_get(4)?,
            })
        });
        changes
            .collect::<Result<_, sqlx::Error>>()
            .map_err(|error| self.sql(error))
    }

    /// Returns the session of `project` with the latest change that is not undone.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn last_changed_session(&self, project: &Path) -> Result<Option<String>, StoreError> {
        let select = query(
            "SELECT s.id FROM session s
             WHERE s.project = ?1 AND EXISTS (SELECT 1 FROM undo_change u WHERE u.session = s.number)
             ORDER BY (SELECT max(u.number) FROM undo_change u WHERE u.session = s.number) DESC
             LIMIT 1",
        );
        let project = project.to_string_lossy().into_owned();
        let rows = self.fetch(select.bind(project)).await?;
        rows.first()
            .map(|row| row.try_get(0).map_err(|error| self.sql(error)))
            .transpose()
    }
}
