//! Number of calls of a session: the table `call_quota`, for `zeph_tools::gate::quota::CallCounter`.

use async_trait::async_trait;
use zeph_tools::gate::quota::{CallCounter, CountError, QuotaResult};

use crate::conversation::{count, integer, unknown};
use crate::database::query;
use crate::error::StoreError;
use crate::store::Store;

/// A counter of calls, in a [`Store`].
#[derive(Debug, Clone)]
pub struct SqliteQuota {
    store: Store,
}

impl SqliteQuota {
    /// Counts in `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

#[async_trait]
impl CallCounter for SqliteQuota {
    async fn take(
        &self,
        conversation: &str,
        calls: u64,
        max: u64,
    ) -> Result<QuotaResult, CountError> {
        let taken = self.store.take_calls(conversation, calls, max).await;
        taken.map_err(failed)
    }

    async fn used(&self, conversation: &str) -> Result<u64, CountError> {
        self.store.calls_used(conversation).await.map_err(failed)
    }
}

fn failed(error: StoreError) -> CountError {
    CountError(error.to_string())
}

impl Store {
    /// Adds `calls` to the count of a session if the sum is at most `max`. It is one statement, so that no other
    /// process interferes.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database; then nothing is counted.
    pub async fn take_calls(
        &self,
        session: &str,
        calls: u64,
        max: u64,
    ) -> Result<QuotaResult, StoreError> {
        let take = query(
            "INSERT INTO call_quota AS q (session, used)
             SELECT number, ?2 FROM session WHERE id = ?1 AND ?2 <= ?3
             ON CONFLICT (session) DO UPDATE SET used = q.used + excluded.used
                 WHERE q.used <= ?3 - excluded.used
             RETURNING used",
        );
        let take = take.bind(session).bind(integer(calls)).bind(integer(max));
        if let Some(row) = self.write(take, 0).await?.first() {
            let used = count(row.try_get(0).map_err(|error| self.sql(error))?);
            return Ok(QuotaResult::Fits { used });
        }
        let used = self.calls_used(session).await?;
        Ok(QuotaResult::Exceeds { used })
    }

    /// The calls of a session that a quota counted since it began or was cleared.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn calls_used(&self, session: &str) -> Result<u64, StoreError> {
        let select = query(
            "SELECT coalesce(q.used, 0) FROM session s
             LEFT JOIN call_quota q ON q.session = s.number WHERE s.id = ?1",
        );
        let rows = self.fetch(select.bind(session)).await?;
        let row = rows.first().ok_or_else(|| unknown(session))?;
        let used = row.try_get(0).map_err(|error| self.sql(error))?;
        Ok(count(used))
    }

    /// Resets the count of calls of a session.
    pub(crate) async fn forget_calls(&self, session: &str) -> Result<(), StoreError> {
        let delete = query(
            "DELETE FROM call_quota WHERE session = (SELECT number FROM session WHERE id = ?1)",
        );
        self.write(delete.bind(session), 0).await.map(drop)
    }
}
