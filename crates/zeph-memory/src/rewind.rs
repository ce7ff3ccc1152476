//! Rewind of a session to an earlier message. Nothing is deleted: rewound messages are marked.

use crate::database::{query, repeated};
use crate::error::StoreError;
use crate::messages::StoredMessage;
use crate::store::Store;

/// The statements of a rewind, for session `?1` and message `?2`, in their order.
///
/// A summary of a rewound message is rewound too, and the messages that it replaced are visible again. So the window
/// starts after the last summary that remains. A message that was pinned at that time is the first one of a rewound
/// summary, or it is still pinned.
const REWIND: [&str; 3] = [
    "UPDATE message SET rewound = TRUE WHERE session = ?1 AND seq >= ?2 AND NOT rewound",
    "UPDATE session SET (window_start, pinned) =
         (SELECT w.start,
                 CASE WHEN w.oldest < w.start THEN w.oldest
                      WHEN session.pinned < w.start THEN session.pinned END
          FROM (SELECT coalesce(max(CASE WHEN t.last_seq < ?2 AND t.last_seq >= session.known_from
                                         THEN t.last_seq + 1 END), session.known_from) AS start,
                       min(CASE WHEN t.last_seq >= ?2 THEN t.first_seq END) AS oldest
                FROM summaries t
                WHERE t.session = session.number AND NOT t.rewound AND t.first_seq >= session.known_from) w)
     WHERE number = ?1 AND EXISTS
         (SELECT 1 FROM summaries t
          WHERE t.session = ?1 AND NOT t.rewound AND t.first_seq >= session.known_from AND t.last_seq >= ?2)",
    "UPDATE summaries SET rewound = TRUE
     WHERE session = ?1 AND NOT rewound AND last_seq >= ?2
       AND first_seq >= (SELECT known_from FROM session WHERE number = ?1)",
];

impl Store {
    /// Returns the messages of a session since the last [`Store::clear_window`] that are not rewound, as they were
    /// appended. It includes those that a summary replaces.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn known_messages(&self, session: &str) -> Result<Vec<StoredMessage>, StoreError> {
        let select = query(
            "SELECT m.seq, m.role, m.content, m.created_at,
                    m.input_tokens, m.output_tokens, m.cached_tokens, m.rewound
             FROM session s JOIN message m ON m.session = s.number
                  AND m.seq >= s.known_from AND NOT m.rewound
             WHERE s.id = ?1 ORDER BY m.seq",
        );
        self.read_messages(session, select.bind(session)).await
    }

    /// Removes the messages of a session from number `seq` on from its window, and the summaries that contain them, in
    /// one transaction. The records of read files are deleted.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database; then nothing has changed.
    pub async fn rewind(&self, session: &str, seq: i64) -> Result<(), StoreError> {
        repeated(|| self.try_rewind(session, seq)).await
    }

    async fn try_rewind(&self, session: &str, seq: i64) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let number = self.session_number(transaction.as_mut(), session).await?;
        for statement in REWIND {
            let statement = query(statement).bind(number).bind(seq);
            transaction.fetch(statement).await?;
        }
        // The conversation no longer contains the texts that were read.
        let seen = query("DELETE FROM seen_file WHERE session = ?1").bind(number);
        transaction.fetch(seen).await?;
        transaction.commit().await
    }

    /// The number of the last change of files in the undo journal of a session that was made before message `seq`, or
    /// else 0. Changes with higher numbers were made after that message.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn last_change_before(&self, session: &str, seq: i64) -> Result<i64, StoreError> {
        let select = query(
            "SELECT coalesce(max(u.number), 0) FROM session s JOIN undo_change u ON u.session = s.number
             WHERE s.id = ?1 AND u.after_seq < ?2",
        );
        let rows = self.fetch(select.bind(session).bind(seq)).await?;
        let number = rows.first().map(|row| row.try_get(0)).transpose();
        Ok(number.map_err(|error| self.sql(error))?.unwrap_or(0))
    }
}
