//! Records of the files that a session has read: the table `seen_file`.

use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use async_trait::async_trait;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use zeph_tools::{ContentDigest, ReadLedger, ReadLedgerError};

use crate::conversation::unknown;
use crate::database::{Statement, query};
use crate::error::StoreError;
use crate::store::Store;

/// The approximate number of bytes of compressed contents that are stored for a session; the oldest are removed.
const MAX_STORED_BYTES: i64 = 64 << 20;
/// The number of records between two checks of the stored size.
const NOTES: i64 = 64;

/// Stores the records of read files in the database.
#[derive(Debug, Clone)]
pub struct SqliteSeenFiles {
    store: Store,
}

impl SqliteSeenFiles {
    /// Stores the records in `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

fn failed(error: impl std::fmt::Display) -> ReadLedgerError {
    ReadLedgerError(error.to_string())
}

/// `path` as the column holds it.
fn key(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// The bounds between which the paths below `path` sort: `/` is followed by `0`.
fn below(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let bound = |end| [key(path), &[end]].concat();
    (bound(b'/'), bound(b'0'))
}

fn compressed(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let room = Vec::with_capacity(content.len() / 3 + 64);
    let mut encoder = DeflateEncoder::new(room, Compression::fast());
    encoder.write_all(content)?;
    encoder.finish()
}

fn restored(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut restored = Vec::with_capacity(content.len() * 4);
    DeflateDecoder::new(content).read_to_end(&mut restored)?;
    Ok(restored)
}

impl Store {
    /// Deletes the records of all files of the session `id`.
    pub(crate) async fn forget_seen(&self, id: &str) -> Result<(), StoreError> {
        let delete = query(
            "DELETE FROM seen_file WHERE session = (SELECT number FROM session WHERE id = ?1)",
        );
        self.write(delete.bind(id), 0).await.map(drop)
    }

    async fn note_seen(
        &self,
        session: &str,
        path: &Path,
        digest: &ContentDigest,
        content: Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let bytes = content.as_ref().map_or(0, Vec::len);
        let insert = Statement::per_dialect(
            "INSERT OR REPLACE INTO seen_file (session, path, digest, content)
             SELECT s.number, ?2, ?3, ?4 FROM session s WHERE s.id = ?1
             RETURNING number",
            "INSERT INTO seen_file (session, path, digest, content)
             SELECT s.number, ?2, ?3, ?4 FROM session s WHERE s.id = ?1
             ON CONFLICT (session, path) DO UPDATE
                 SET number = excluded.number, digest = excluded.digest, content = excluded.content
             RETURNING number",
        )
        .bind(session)
        .bind(key(path))
        .bind(&digest[..])
        .bind(content);
        let rows = self.write(insert, bytes).await?;
        let row = rows.first().ok_or_else(|| unknown(session))?;
        let number: i64 = row.try_get(0).map_err(|error| self.sql(error))?;
        if number % NOTES == 0 {
            self.make_room(session).await?;
        }
        Ok(())
    }

    /// Removes the oldest contents of a session beyond the limit. Their digests stay.
    async fn make_room(&self, session: &str) -> Result<(), StoreError> {
        let update = query(
            "UPDATE seen_file SET content = NULL WHERE number IN (
                 SELECT number FROM (
                     SELECT f.number, sum(length(f.content)) OVER (ORDER BY f.number DESC) AS kept
                     FROM session s JOIN seen_file f ON f.session = s.number
                     WHERE s.id = ?1 AND f.content IS NOT NULL) AS r
                 WHERE kept > ?2)",
        );
        self.write(update.bind(session).bind(MAX_STORED_BYTES), 0)
            .await
            .map(drop)
    }

    /// A column of the session's record of `path`.
    async fn seen(
        &self,
        select: &'static str,
        session: &str,
        path: &Path,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let rows = self
            .fetch(query(select).bind(session).bind(key(path)))
            .await?;
        match rows.first() {
            Some(row) => row.try_get(0).map_err(|error| self.sql(error)),
            None => Ok(None),
        }
    }
}

#[async_trait]
impl ReadLedger for SqliteSeenFiles {
    async fn digest(
        &self,
        conversation: &str,
        path: &Path,
    ) -> Result<Option<ContentDigest>, ReadLedgerError> {
        let select = "SELECT f.digest FROM session s JOIN seen_file f ON f.session = s.number
                      WHERE s.id = ?1 AND f.path = ?2";
        let found = self.store.seen(select, conversation, path).await;
        match found.map_err(failed)? {
            Some(bytes) => bytes.as_slice().try_into().map(Some).map_err(failed),
            None => Ok(None),
        }
    }

    async fn content(
        &self,
        conversation: &str,
        path: &Path,
    ) -> Result<Option<Vec<u8>>, ReadLedgerError> {
        let select = "SELECT f.content FROM session s JOIN seen_file f ON f.session = s.number
                      WHERE s.id = ?1 AND f.path = ?2";
        let found = self.store.seen(select, conversation, path).await;
        let content = found.map_err(failed)?;
        content
            .map(|content| restored(&content).map_err(failed))
            .transpose()
    }

    async fn note(
        &self,
        conversation: &str,
        path: &Path,
        digest: &ContentDigest,
        content: Option<&[u8]>,
    ) -> Result<(), ReadLedgerError> {
        let content = content.map(compressed).transpose().map_err(failed)?;
        let noted = self.store.note_seen(conversation, path, digest, content);
        noted.await.map_err(failed)
    }

    async fn carry(
        &self,
        conversation: &str,
        from: &Path,
        to: &Path,
        moved: bool,
    ) -> Result<(), ReadLedgerError> {
        self.forget(conversation, to).await?;
        let (first, end) = below(from);
        // The operator `||` converts bytes to text without a change.
        let carry = match moved {
            true => Statement::per_dialect(
                "UPDATE OR REPLACE seen_file
                 SET path = CAST(?2 || substr(path, length(?3) + 1) AS BLOB)
                 WHERE session = (SELECT number FROM session WHERE id = ?1)
                   AND (path = ?3 OR (path > ?4 AND path < ?5))",
                "UPDATE seen_file SET path = ?2 || substr(path, length(?3) + 1)
                 WHERE session = (SELECT number FROM session WHERE id = ?1)
                   AND (path = ?3 OR (path > ?4 AND path < ?5))",
            ),
            false => Statement::per_dialect(
                "INSERT OR REPLACE INTO seen_file (session, path, digest, content)
                 SELECT session, CAST(?2 || substr(path, length(?3) + 1) AS BLOB), digest, content
                 FROM seen_file
                 WHERE session = (SELECT number FROM session WHERE id = ?1)
                   AND (path = ?3 OR (path > ?4 AND path < ?5))",
                "INSERT INTO seen_file (session, path, digest, content)
                 SELECT session, ?2 || substr(path, length(?3) + 1), digest, content
                 FROM seen_file
                 WHERE session = (SELECT number FROM session WHERE id = ?1)
                   AND (path = ?3 OR (path > ?4 AND path < ?5))
                 ON CONFLICT (session, path) DO UPDATE
                     SET digest = excluded.digest, content = excluded.content",
            ),
        };
        let carry = carry.bind(conversation).bind(key(to)).bind(key(from));
        let done = self.store.write(carry.bind(first).bind(end), 0).await;
        done.map(drop).map_err(failed)
    }

    async fn forget(&self, conversation: &str, path: &Path) -> Result<(), ReadLedgerError> {
        let (first, end) = below(path);
        let delete = query(
            "DELETE FROM seen_file
             WHERE session = (SELECT number FROM session WHERE id = ?1)
               AND (path = ?2 OR (path > ?3 AND path < ?4))",
        );
        let delete = delete.bind(conversation).bind(key(path));
        let done = self.store.write(delete.bind(first).bind(end), 0).await;
        done.map(drop).map_err(failed)
    }
}
