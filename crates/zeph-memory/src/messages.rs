//! The messages of a session.

use std::fmt::Write as _;
use std::ops::Range;

use serde::Serialize;

use crate::conversation::{count, integer, now, unknown};
use crate::database::{Row, Statement, query};
use crate::error::StoreError;
use crate::store::Store;

/// The most messages in one statement: SQLite takes 32766 values.
const MAX_BATCH: usize = 4096;

/// Tokens of one request, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// The part of `input_tokens` that came from the provider's cache.
    pub cached_tokens: u64,
}

/// A message to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Who speaks: `user`, `assistant`, …
    pub role: String,
    /// The content; the store does not parse it.
    pub content: String,
    /// The usage of the request, for a response of a model.
    pub usage: Option<Usage>,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredMessage {
    /// Its place in the session: 1, 2, 3, …
    pub seq: i64,
    /// Who speaks.
    pub role: String,
    /// The content.
    pub content: String,
    /// When it was appended: milliseconds since the Unix epoch.
    pub created_at: i64,
    /// The usage of the request.
    pub usage: Option<Usage>,
    /// The user went back to an earlier message, so it is not part of the conversation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rewound: bool,
}

fn message_of(row: &Row) -> Result<StoredMessage, sqlx::Error> {
    let usage = match row.try_get::<Option<i64>, _>(4)? {
        Some(input) => Some(Usage {
            input_tokens: count(input),
            output_tokens: count(row.try_get(5)?),
            cached_tokens: count(row.try_get(6)?),
        }),
        None => None,
    };
    Ok(StoredMessage {
        seq: row.try_get(0)?,
        role: row.try_get(1)?,
        content: row.try_get(2)?,
        created_at: row.try_get(3)?,
        usage,
        rewound: row.try_get(7)?,
    })
}

/// The statement that appends `count` messages: `?1` session, `?2` time, then five values each. In a shared store, the last value
/// is the holder of leases: nothing is appended to a session that another one has.
fn insert_messages(count: usize, is_shared: bool) -> String {
    let mut sql = String::from(
        "INSERT INTO message (session, seq, role, content, created_at,
                              input_tokens, output_tokens, cached_tokens)
         SELECT s.number,
                (SELECT coalesce(max(seq), 0) FROM message WHERE session = s.number) + v.column1,
                v.column2, v.column3, ?2, v.column4, v.column5, v.column6
         FROM session s, (VALUES ",
    );
    for place in 0..count {
        let first = 3 + 5 * place;
        let comma = if place == 0 { "" } else { "," };
        // Writing into a string cannot fail.
        let _ = write!(
            sql,
            "{comma}({},?{first},?{},?{},?{},?{})",
            place + 1,
            first + 1,
            first + 2,
            first + 3,
            first + 4
        );
    }
    sql.push_str(") v WHERE s.id = ?1");
    if is_shared {
        let holder = 3 + 5 * count;
        let _ = write!(
            sql,
            " AND NOT EXISTS (SELECT 1 FROM session_lease l WHERE l.session = s.number AND l.holder <> ?{holder})"
        );
    }
    sql.push_str(" RETURNING seq");
    sql
}

impl Store {
    /// Starts a new window: [`Store::messages`] returns only later messages. No message is deleted. Records of read
    /// files and summaries are deleted with the window, and the count of calls restarts.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn clear_window(&self, id: &str) -> Result<(), StoreError> {
        self.forget_seen(id).await?;
        self.forget_calls(id).await?;
        self.forget_completed(id).await?;
        let update = query(
            "UPDATE session SET (window_start, known_from) =
                 (SELECT coalesce(max(m.seq), 0) + 1, coalesce(max(m.seq), 0) + 1
                  FROM message m WHERE m.session = session.number),
                 pinned = NULL, offered_tools = NULL
             WHERE id = ?1 RETURNING number",
        );
        self.write_to_session(id, update.bind(id)).await
    }

    /// Appends one message and returns its place in the session.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn append_message(
        &self,
        session: &str,
        message: NewMessage,
    ) -> Result<i64, StoreError> {
        Ok(self.append_messages(session, vec![message]).await?.start)
    }

    /// Appends messages in their order, all or none, and returns their places in the session.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], [`StoreError::BatchTooLarge`], or a failure of the
    /// database.
    pub async fn append_messages(
        &self,
        session: &str,
        messages: Vec<NewMessage>,
    ) -> Result<Range<i64>, StoreError> {
        let count = messages.len();
        if count > MAX_BATCH {
            return Err(StoreError::BatchTooLarge {
                count,
                max: MAX_BATCH,
            });
        }
        if count == 0 {
            let next = "SELECT coalesce(max(m.seq), 0) + 1 FROM session s
                        LEFT JOIN message m ON m.session = s.number WHERE s.id = ?1 GROUP BY s.number";
            let rows = self.fetch(query(next).bind(session)).await?;
            let row = rows.first().ok_or_else(|| unknown(session))?;
            let next = row.try_get(0).map_err(|error| self.sql(error))?;
            return Ok(next..next);
        }
        if !self.is_shared()
            && messages
                .iter()
                .any(|message| Self::is_long(&message.content))
        {
            let first = self.append_long(session, messages).await?;
            return Ok(first..first + integer(count as u64));
        }
        // Only small batches are common enough to be worth a prepared statement each.
        let created_at = now();
        let mut insert = query(insert_messages(count, self.is_shared()))
            .prepared(count <= 16)
            .bind(session)
            .bind(created_at);
        let mut bytes = 0;
        for message in &messages {
            bytes += message.content.len();
            let usage = message.usage;
            insert = insert
                .bind(&message.role)
                .bind(&message.content)
                .bind(usage.map(|usage| integer(usage.input_tokens)))
                .bind(usage.map(|usage| integer(usage.output_tokens)))
                .bind(usage.map(|usage| integer(usage.cached_tokens)));
        }
        if self.is_shared() {
            insert = insert.bind(self.holder().name());
        }
        let rows = match self.write(insert, bytes).await {
            Err(lost @ StoreError::ConnectionLost { .. }) => {
                return match self.find_appended(session, created_at, &messages).await? {
                    Some(range) => Ok(range),
                    None => Err(lost),
                };
            }
            rows => rows?,
        };
        let mut range: Option<Range<i64>> = None;
        for row in &rows {
            let seq: i64 = row.try_get(0).map_err(|error| self.sql(error))?;
            range = Some(match range {
                Some(range) => range.start.min(seq)..range.end.max(seq + 1),
                None => seq..seq + 1,
            });
        }
        match range {
            Some(range) => Ok(range),
            None if self.is_shared() => Err(self.refused_append(session).await),
            None => Err(unknown(session)),
        }
    }

    /// The places of `messages`, if a write whose connection was lost stored them after all. Only one process appends to a
    /// session, so the last messages show it.
    async fn find_appended(
        &self,
        session: &str,
        created_at: i64,
        messages: &[NewMessage],
    ) -> Result<Option<Range<i64>>, StoreError> {
        let select = query(
            "SELECT m.seq, m.role, m.content FROM session s JOIN message m ON m.session = s.number
             WHERE s.id = ?1 AND m.created_at = ?2 ORDER BY m.seq DESC LIMIT ?3",
        );
        let select = select.bind(session).bind(created_at);
        let select = select.bind(integer(messages.len() as u64));
        let read = |row: Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        let found: Vec<(i64, String, String)> = self.fetch_as(select, read).await?;
        let is_same = found.len() == messages.len()
            && found
                .iter()
                .rev()
                .zip(messages)
                .all(|((_, role, content), message)| {
                    *role == message.role && *content == message.content
                });
        let ends = found.last().zip(found.first());
        Ok(ends
            .filter(|_| is_same)
            .map(|(first, last)| first.0..last.0 + 1))
    }

    /// Returns the messages of the session's window, in order and as a model receives them: those after the last
    /// [`Store::clear_window`] that no [`Store::compact_window`] and no [`Store::rewind`] removed.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn messages(&self, session: &str) -> Result<Vec<StoredMessage>, StoreError> {
        let select = query(
            "SELECT m.seq, m.role, coalesce(m.shown, m.content), m.created_at,
                    m.input_tokens, m.output_tokens, m.cached_tokens, m.rewound
             FROM session s JOIN message m ON m.session = s.number
                  AND (m.seq >= s.window_start OR m.seq = s.pinned) AND NOT m.rewound
             WHERE s.id = ?1 ORDER BY m.seq",
        );
        self.read_messages(session, select.bind(session)).await
    }

    /// Returns all messages of a session as they were appended, in order, including those before its window.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn all_messages(&self, session: &str) -> Result<Vec<StoredMessage>, StoreError> {
        let select = query(
            "SELECT m.seq, m.role, m.content, m.created_at,
                    m.input_tokens, m.output_tokens, m.cached_tokens, m.rewound
             FROM session s JOIN message m ON m.session = s.number
             WHERE s.id = ?1 ORDER BY m.seq",
        );
        self.read_messages(session, select.bind(session)).await
    }

    pub(crate) async fn read_messages(
        &self,
        session: &str,
        select: Statement<'_>,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let messages = self.fetch_as(select, |row| message_of(&row)).await?;
        if messages.is_empty() {
            self.session(session).await?;
        }
        Ok(messages)
    }
}
