//! Summaries of older messages, and the messages that a model still sees: the table `summaries`.

use serde::Serialize;

use crate::conversation::{count, integer, now};
use crate::database::{Row, Statement, query, repeated};
use crate::error::StoreError;
use crate::store::Store;

/// The reason for a summary of older messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompressionStrategy {
    /// The conversation took too much of its budget, or of the model's window.
    Triggered,
    /// The user requested it.
    Manual,
    /// The model requested it.
    Autonomous,
}

impl CompressionStrategy {
    /// All strategies.
    pub const ALL: [Self; 3] = [Self::Triggered, Self::Manual, Self::Autonomous];

    /// Returns the name in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Triggered => "triggered",
            Self::Manual => "manual",
            Self::Autonomous => "autonomous",
        }
    }
}

/// A new summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSummary {
    /// The text.
    pub content: String,
    /// The method of the summary.
    pub method: CompressionStrategy,
    /// The first message that it replaces.
    pub first_seq: i64,
    /// The last message that it replaces.
    pub last_seq: i64,
    /// The number of messages that it replaces.
    pub messages: u64,
    /// Estimated tokens of the conversation before.
    pub tokens_before: u64,
    /// Estimated tokens of the conversation after.
    pub tokens_after: u64,
    /// The provider of the summary.
    pub provider: String,
    /// Its model.
    pub model: String,
}

/// A stored summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredSummary {
    /// The text.
    pub content: String,
    /// `triggered`, `manual` or `autonomous`.
    pub compaction_method: String,
    /// The first message that it replaces.
    pub first_seq: i64,
    /// The last one.
    pub last_seq: i64,
    /// The number of messages that it replaces.
    pub messages: u64,
    /// Estimated tokens of the conversation before.
    pub tokens_before: u64,
    /// Estimated tokens of the conversation after.
    pub tokens_after: u64,
    /// The provider of the summary.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// The time: milliseconds since the Unix epoch.
    pub created_at: i64,
    /// The user went back to a message before its end, so it is not part of the conversation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rewound: bool,
}

/// A compaction: a change of the messages of a session that a model receives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compaction {
    /// The summary that replaces the messages before `window_start`, except `pinned`.
    pub summary: Option<NewSummary>,
    /// The first remaining message; `None` leaves the start of the window unchanged.
    pub window_start: Option<i64>,
    /// A message before `window_start` that remains in the window.
    pub pinned: Option<i64>,
    /// Replacement texts of messages, by their numbers.
    pub shown: Vec<(i64, String)>,
}

fn summary_of(row: &Row) -> Result<StoredSummary, sqlx::Error> {
    Ok(StoredSummary {
        content: row.try_get(0)?,
        compaction_method: row.try_get(1)?,
        first_seq: row.try_get(2)?,
        last_seq: row.try_get(3)?,
        messages: count(row.try_get(4)?),
        tokens_before: count(row.try_get(5)?),
        tokens_after: count(row.try_get(6)?),
        provider: row.try_get(7)?,
        model: row.try_get(8)?,
        created_at: row.try_get(9)?,
        rewound: row.try_get(10)?,
    })
}

impl Store {
    /// Changes the messages of a session that a model sees, in one transaction. No message is deleted.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database; then nothing has changed.
    pub async fn compact_window(
        &self,
        session: &str,
        compaction: &Compaction,
    ) -> Result<(), StoreError> {
        let written = repeated(|| self.try_compaction(session, compaction)).await?;
        self.wrote(written);
        Ok(())
    }

    /// One attempt to change the window. Returns the number of written bytes.
    async fn try_compaction(
        &self,
        session: &str,
        compaction: &Compaction,
    ) -> Result<usize, StoreError> {
        let mut written = 0;
        let mut transaction = self.begin().await?;
        let number = self.session_number(transaction.as_mut(), session).await?;
        let mut statements: Vec<Statement<'_>> = Vec::new();
        for (seq, shown) in &compaction.shown {
            written += shown.len();
            let update = query("UPDATE message SET shown = ?3 WHERE session = ?1 AND seq = ?2");
            statements.push(update.bind(number).bind(*seq).bind(shown));
        }
        if let Some(summary) = &compaction.summary {
            written += summary.content.len();
            let insert = query(
                "INSERT INTO summaries (session, content, compaction_method, first_seq, last_seq,
                                        messages, tokens_before, tokens_after, provider, model,
                                        created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            );
            let insert = insert
                .bind(number)
                .bind(&summary.content)
                .bind(summary.method.as_str())
                .bind(summary.first_seq)
                .bind(summary.last_seq)
                .bind(integer(summary.messages))
                .bind(integer(summary.tokens_before))
                .bind(integer(summary.tokens_after))
                .bind(&summary.provider)
                .bind(&summary.model)
                .bind(now());
            statements.push(insert);
        }
        if let Some(start) = compaction.window_start {
            // The provider's cache is invalid anyway, so the catalog of tools may change.
            let update = query(
                "UPDATE session SET window_start = ?2, pinned = ?3, offered_tools = NULL
                 WHERE number = ?1",
            );
            statements.push(update.bind(number).bind(start).bind(compaction.pinned));
        }
        for statement in statements {
            transaction.fetch(statement).await?;
        }
        transaction.commit().await?;
        Ok(written)
    }

    /// The summaries that replace messages outside the window, in order, since the last [`Store::clear_window`].
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn summaries(&self, session: &str) -> Result<Vec<StoredSummary>, StoreError> {
        let select = query(
            "SELECT t.content, t.compaction_method, t.first_seq, t.last_seq, t.messages,
                    t.tokens_before, t.tokens_after, t.provider, t.model, t.created_at, t.rewound
             FROM session s JOIN summaries t ON t.session = s.number AND t.first_seq >= s.known_from
                  AND NOT t.rewound
             WHERE s.id = ?1 ORDER BY t.number",
        );
        self.read_summaries(select.bind(session)).await
    }

    /// Returns all summaries of a session, in order, including those before [`Store::clear_window`].
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn all_summaries(&self, session: &str) -> Result<Vec<StoredSummary>, StoreError> {
        let select = query(
            "SELECT t.content, t.compaction_method, t.first_seq, t.last_seq, t.messages,
                    t.tokens_before, t.tokens_after, t.provider, t.model, t.created_at, t.rewound
             FROM session s JOIN summaries t ON t.session = s.number
             WHERE s.id = ?1 ORDER BY t.number",
        );
        self.read_summaries(select.bind(session)).await
    }

    /// Returns the number of messages of the window that are sent in a shorter form.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn moved_out(&self, session: &str) -> Result<u64, StoreError> {
        let select = query(
            "SELECT count(*) FROM session s JOIN message m ON m.session = s.number
                  AND (m.seq >= s.window_start OR m.seq = s.pinned) AND NOT m.rewound
                  AND m.shown IS NOT NULL
             WHERE s.id = ?1",
        );
        let rows = self.fetch(select.bind(session)).await?;
        let found = rows.first().map(|row| row.try_get(0)).transpose();
        Ok(count(found.map_err(|error| self.sql(error))?.unwrap_or(0)))
    }

    async fn read_summaries(
        &self,
        select: Statement<'_>,
    ) -> Result<Vec<StoredSummary>, StoreError> {
        let rows = self.fetch(select).await?;
        let summaries: Result<Vec<_>, sqlx::Error> = rows.iter().map(summary_of).collect();
        summaries.map_err(|error| self.sql(error))
    }
}
