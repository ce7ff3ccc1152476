//! Copies of sessions.

use std::path::Path;

use crate::conversation::{now, unknown};
use crate::database::{Statement, query, repeated};
use crate::error::StoreError;
use crate::store::Store;

/// The statements that copy the rows of session `?1` to session `?2`. Costs, counts of calls, records of read files,
/// stored outputs and the undo journal belong to the calls of the original, so they are not copied. Nor are rewound messages.
const COPIES: [&str; 5] = [
    "INSERT INTO message (session, seq, role, content, created_at,
                          input_tokens, output_tokens, cached_tokens, shown)
     SELECT ?2, seq, role, content, created_at, input_tokens, output_tokens, cached_tokens, shown
     FROM message WHERE session = ?1 AND NOT rewound ORDER BY seq",
    "INSERT INTO summaries (session, content, compaction_method, first_seq, last_seq, messages,
                            tokens_before, tokens_after, provider, model, created_at)
     SELECT ?2, content, compaction_method, first_seq, last_seq, messages,
            tokens_before, tokens_after, provider, model, created_at
     FROM summaries WHERE session = ?1 AND NOT rewound ORDER BY number",
    "INSERT INTO task (session, number, content, status, created_at, updated_at)
     SELECT ?2, number, content, status, created_at, updated_at FROM task WHERE session = ?1",
    "INSERT INTO result_view (session, seq, view)
     SELECT ?2, seq, view FROM result_view WHERE session = ?1",
    "UPDATE session SET (title, is_renamed, provider, model, window_start, pinned, known_from,
                    offered_tools, chosen_mode, chosen_provider, chosen_model, chosen_effort) =
         (SELECT CASE WHEN title LIKE '% (copy)' THEN title ELSE title || ' (copy)' END, is_renamed, provider, model, window_start, pinned, known_from, offered_tools,
                 chosen_mode, chosen_provider, chosen_model, chosen_effort
          FROM session WHERE number = ?1)
     WHERE number = ?2",
];

impl Store {
    /// Creates the session `copy` for `project` with the conversation of `session`, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database, for example because `copy` exists; then nothing
    /// has changed.
    pub async fn copy_session(
        &self,
        session: &str,
        copy: &str,
        project: &Path,
    ) -> Result<(), StoreError> {
        repeated(|| self.try_copy(session, copy, project)).await
    }

    async fn try_copy(&self, session: &str, copy: &str, project: &Path) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let from = self.session_number(transaction.as_mut(), session).await?;
        let insert = Statement::per_dialect(
            "INSERT INTO session (id, project, created_at, updated_at, activity, audit_floor)
             VALUES (?1, ?2, ?3, ?3,
                     (SELECT coalesce(max(activity), 0) + 1 FROM session),
                     (SELECT coalesce(max(id), 0) FROM tool_audit))
             RETURNING number",
            "INSERT INTO session (id, project, created_at, updated_at, audit_floor)
             VALUES (?1, ?2, ?3, ?3, (SELECT coalesce(max(id), 0) FROM tool_audit))
             RETURNING number",
        );
        let project = project.to_string_lossy().into_owned();
        let insert = insert.bind(copy).bind(project).bind(now());
        let inserted = transaction.fetch(insert).await?;
        let row = inserted.first().ok_or_else(|| unknown(copy))?;
        let to: i64 = row.try_get(0).map_err(|error| self.sql(error))?;
        for statement in COPIES {
            transaction
                .fetch(query(statement).bind(from).bind(to))
                .await?;
        }
        self.index_long(transaction.as_mut(), to).await?;
        transaction.commit().await
    }
}
