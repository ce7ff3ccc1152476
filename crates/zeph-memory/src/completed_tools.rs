//! Successful tools of a session in the table `completed_tools`, for
//! `zeph_tools::gate::dependencies::CompletedTools`.

use std::collections::HashSet;

use async_trait::async_trait;
use zeph_tools::gate::dependencies::{CompletedError, CompletedTools};

use crate::conversation::unknown;
use crate::database::query;
use crate::error::StoreError;
use crate::store::Store;

/// A store of succeeded tools, in a [`Store`].
#[derive(Debug, Clone)]
pub struct SqliteCompleted {
    store: Store,
}

impl SqliteCompleted {
    /// Stores the tools in `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

#[async_trait]
impl CompletedTools for SqliteCompleted {
    async fn completed(&self, conversation: &str) -> Result<HashSet<String>, CompletedError> {
        let completed = self.store.completed_tools(conversation).await;
        completed.map_err(failed)
    }

    async fn complete(&self, conversation: &str, tool: &str) -> Result<(), CompletedError> {
        let kept = self.store.complete_tool(conversation, tool).await;
        kept.map_err(failed)
    }
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
fn failed(error: StoreError) -> CompletedError {
    CompletedError(error.to_string())
}

impl Store {
    /// The recorded tools that succeeded in a session since it began or was cleared. An unknown session has none.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn completed_tools(&self, session: &str) -> Result<HashSet<String>, StoreError> {
        let select = query(
            "SELECT c.tool FROM completed_tools c JOIN session s ON s.number = c.session WHERE s.id = ?1",
        );
        let rows = self.fetch(select.bind(session)).await?;
        let tools = rows.iter().map(|row| row.try_get(0));
        tools
            .collect::<Result<_, _>>()
            .map_err(|error| self.sql(error))
    }

    /// Records the success of a tool in a session.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn complete_tool(&self, session: &str, tool: &str) -> Result<(), StoreError> {
        let insert = query(
            "INSERT INTO completed_tools (session, tool)
             SELECT number, ?2 FROM session WHERE id = ?1
             ON CONFLICT (session, tool) DO UPDATE SET tool = excluded.tool
             RETURNING tool",
        );
        let rows = self
            .write(insert.bind(session).bind(tool), tool.len())
            .await?;
        match rows.is_empty() {
            true => Err(unknown(session)),
            false => Ok(()),
        }
    }

    /// Deletes the successful tools of a session.
    pub(crate) async fn forget_completed(&self, session: &str) -> Result<(), StoreError> {
        let delete = query(
            "DELETE FROM completed_tools WHERE session = (SELECT number FROM session WHERE id = ?1)",
        );
        self.write(delete.bind(session), 0).await.map(drop)
    }
}
