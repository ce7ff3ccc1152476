//! The results as the user saw them, for a conversation that is shown again.

use std::collections::HashMap;

use crate::database::query;
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// Stores the view of the result in message `seq` of a session; the store does not parse it.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn set_result_view(
        &self,
        session: &str,
        seq: i64,
        view: &str,
    ) -> Result<(), StoreError> {
        let insert = query(
            "INSERT INTO result_view (session, seq, view)
             SELECT number, ?2, ?3 FROM session WHERE id = ?1
             ON CONFLICT (session, seq) DO UPDATE SET view = ?3 RETURNING seq",
        );
        self.write_to_session(session, insert.bind(session).bind(seq).bind(view))
            .await
    }

    /// The views of the results of a session without rewound messages, by the number of their message.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn result_views(&self, session: &str) -> Result<HashMap<i64, String>, StoreError> {
        let select = query(
            "SELECT v.seq, v.view FROM session s JOIN result_view v ON v.session = s.number
             WHERE s.id = ?1 AND NOT EXISTS
                 (SELECT 1 FROM message m WHERE m.session = v.session AND m.seq = v.seq AND m.rewound)",
        );
        let rows = self.fetch(select.bind(session)).await?;
        let views = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        views
            .collect::<Result<_, sqlx::Error>>()
            .map_err(|error| self.sql(error))
    }
}
