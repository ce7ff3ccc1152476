//! Long messages in the search index of SQLite. A trigger adds the short ones.
//!
//! A trigger extracts the text of a message by JSON functions, which need about ten copies of it. The program needs two,
//! and indexes each word of a long text about once: SQLite needs three further copies of the text that it indexes.
//! Searches have only single words, so they find the same messages; the rank of a long message does not depend on
//! repetitions. A PostgreSQL server has an index of its own.

use std::collections::HashSet;

use crate::conversation::{integer, now};
use crate::database::{Transaction, query};
use crate::error::StoreError;
use crate::message_text::text_of;
use crate::messages::NewMessage;
use crate::store::Store;

/// The longest content that the trigger `message_words_of_new` adds to the index.
const MAX_TRIGGER_BYTES: usize = 65_536;
/// The words that are compared with the next one. After more different ones, a word may be indexed again.
const MAX_COMPARED_WORDS: usize = 8192;

impl Store {
    /// Whether the trigger skips a message with this content.
    pub(crate) fn is_long(content: &str) -> bool {
        content.len() > MAX_TRIGGER_BYTES
    }

    /// Appends messages with long ones among them, in one transaction, and returns the sequence number of the first one.
    ///
    /// Each message has a statement of its own, because SQLite copies the values of a statement for several rows once
    /// more. A long message is indexed before it is inserted, so that its text and the copies of its content do not
    /// exist at the same time.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database; then nothing has changed.
    pub(crate) async fn append_long(
        &self,
        session: &str,
        messages: Vec<NewMessage>,
    ) -> Result<i64, StoreError> {
        let mut transaction = self.begin().await?;
        let session = self.session_number(transaction.as_mut(), session).await?;
        let (created_at, mut bytes) = (now(), 0);
        let mut first = None;
        for message in messages {
            bytes += message.content.len();
            let number = self.next_number(transaction.as_mut()).await?;
            if Self::is_long(&message.content) {
                index(transaction.as_mut(), number, &text_of(&message.content)).await?;
            }
            let usage = message.usage;
            let insert = query(
                "INSERT INTO message (session, seq, role, content, created_at,
                                      input_tokens, output_tokens, cached_tokens, number)
                 VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM message WHERE session = ?1),
                         ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 RETURNING seq",
            );
            let insert = insert
                .bind(session)
                .bind(message.role)
                .bind(message.content)
                .bind(created_at)
                .bind(usage.map(|usage| integer(usage.input_tokens)))
                .bind(usage.map(|usage| integer(usage.output_tokens)))
                .bind(usage.map(|usage| integer(usage.cached_tokens)))
                .bind(number);
            let rows = transaction.fetch(insert).await?;
            let Some(row) = rows.first() else {
                continue;
            };
            let seq: i64 = row.try_get(0).map_err(|error| self.sql(error))?;
            first = first.or(Some(seq));
        }
        transaction.commit().await?;
        self.wrote(bytes);
        Ok(first.unwrap_or(1))
    }

    /// The number of the next row of messages, which SQLite would choose.
    async fn next_number(&self, transaction: &mut dyn Transaction) -> Result<i64, StoreError> {
        let select = query("SELECT coalesce(max(number), 0) + 1 FROM message");
        let rows = transaction.fetch(select).await?;
        let number = rows.first().map(|row| row.try_get(0)).transpose();
        Ok(number.map_err(|error| self.sql(error))?.unwrap_or(1))
    }

    /// Adds the long messages of a session that are not in the index, after a statement that inserted rows of messages.
    ///
    /// # Errors
    /// A failure of the database.
    pub(crate) async fn index_long(
        &self,
        transaction: &mut dyn Transaction,
        session: i64,
    ) -> Result<(), StoreError> {
        if self.is_shared() {
            return Ok(());
        }
        let select = query(
            "SELECT number FROM message
             WHERE session = ?1 AND octet_length(content) > ?2
               AND number NOT IN (SELECT id FROM message_words_docsize)",
        );
        let select = select.bind(session).bind(integer(MAX_TRIGGER_BYTES as u64));
        for row in transaction.fetch(select).await? {
            let number: i64 = row.try_get(0).map_err(|error| self.sql(error))?;
            let select = query("SELECT content FROM message WHERE number = ?1").bind(number);
            for row in transaction.fetch(select).await? {
                let content: String = row.try_get(0).map_err(|error| self.sql(error))?;
                index(transaction, number, &text_of(&content)).await?;
            }
        }
        Ok(())
    }
}

/// Adds the words of a message to the index.
async fn index(
    transaction: &mut dyn Transaction,
    number: i64,
    text: &str,
) -> Result<(), StoreError> {
    let words = distinct_words(text);
    if words.is_empty() {
        return Ok(());
    }
    let insert = query("INSERT INTO message_words (rowid, content) VALUES (?1, ?2)");
    transaction.fetch(insert.bind(number).bind(words)).await?;
    Ok(())
}

/// The words of a text without repetitions, in their order.
fn distinct_words(text: &str) -> String {
    let (mut seen, mut words) = (HashSet::new(), String::new());
    for word in text.split_whitespace() {
        if seen.len() == MAX_COMPARED_WORDS {
            seen.clear();
        }
        if seen.insert(word) {
            words.push_str(word);
            words.push(' ');
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_words_are_indexed_once() {
        let check = |text: &str, expect: &str| assert_eq!(distinct_words(text), expect);
        check("", "");
        check(" \n", "");
        check("the fox\nand the\tdog, the dog", "the fox and dog, dog ");
        check("解析器を 解析器を", "解析器を ");
        let many = (0..MAX_COMPARED_WORDS).map(|at| format!("{at} "));
        let many: String = many.collect();
        assert_eq!(distinct_words(&many), many);
        assert_eq!(distinct_words(&format!("{many}0 0")), format!("{many}0 "));
    }
}
