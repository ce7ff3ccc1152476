//! Access of other users to the rows of a user in a shared store.

use crate::database::query;
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// Lets the role `reader` read the sessions, facts, tasks and audit entries of this user.
    ///
    /// # Errors
    /// [`StoreError::NotShared`] for a SQLite store, or a failure of the database.
    pub async fn grant_access(&self, reader: &str) -> Result<(), StoreError> {
        self.check_shared()?;
        let insert = query("INSERT INTO access (reader) VALUES (?1) ON CONFLICT DO NOTHING");
        self.write(insert.bind(reader).repeatable(), 0)
            .await
            .map(drop)
    }

    /// Ends the access of the role `reader`; whether it had access.
    ///
    /// # Errors
    /// [`StoreError::NotShared`] for a SQLite store, or a failure of the database.
    pub async fn revoke_access(&self, reader: &str) -> Result<bool, StoreError> {
        self.check_shared()?;
        let delete =
            query("DELETE FROM access WHERE owner = current_user AND reader = ?1 RETURNING reader");
        Ok(!self.write(delete.bind(reader), 0).await?.is_empty())
    }

    /// The roles that may read the rows of this user, by name.
    ///
    /// # Errors
    /// [`StoreError::NotShared`] for a SQLite store, or a failure of the database.
    pub async fn granted_access(&self) -> Result<Vec<String>, StoreError> {
        self.check_shared()?;
        let select = query("SELECT reader FROM access WHERE owner = current_user ORDER BY reader");
        self.fetch_as(select, |row| row.try_get(0)).await
    }

    pub(crate) fn check_shared(&self) -> Result<(), StoreError> {
        match self.is_shared() {
            true => Ok(()),
            false => Err(StoreError::NotShared),
        }
    }
}
