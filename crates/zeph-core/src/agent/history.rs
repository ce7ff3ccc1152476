//! The conversation in memory and in the store.
//!
//! Every message is in the store before it is in memory. A loaded history is repaired: a call without a result gets
//! one that says that it was interrupted, and is never run again automatically.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;
use zeph_llm::message::signs_text;
use zeph_llm::{Message, MessagePart, Role, Usage};
use zeph_memory::{Compaction, NewMessage, Store, StoreError};
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::{ToolError, format_for_llm};

use super::tokens::TokenEstimate;

/// A stored conversation could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored message is damaged.
    #[error(
        "message {seq} of session {session} is damaged: {reason}; \
         start a new session, or remove this one with `zeph sessions rm {session}`"
    )]
    Damaged {
        /// The session.
        session: String,
        /// The sequence number of the message.
        seq: i64,
        /// The reason.
        reason: String,
    },
}

/// The history of one conversation, in memory and in the store.
pub struct History {
    store: Store,
    session: String,
    /// Identifies the window. A window only grows until it is compacted or cleared.
    id: Uuid,
    messages: Vec<Message>,
    estimate: TokenEstimate,
    fixed_bytes: usize,
    /// The known secrets that are removed from messages.
    secrets: Arc<SecurityPatterns>,
}

/// A message of the window as it is stored, with one row for each result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// The sequence number in the session.
    pub(super) seq: i64,
    /// The message as requests contain it.
    pub(super) message: Message,
    /// The token count of the request before this response.
    pub(super) counted: Option<TokenCount>,
}

/// The provider's token count of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TokenCount {
    input_tokens: u64,
    /// The time in milliseconds since the Unix epoch.
    at: i64,
}

impl History {
    /// Loads and repairs the conversation of an existing session. `fixed_bytes` is the size of the other parts of
    /// every request.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub async fn open(
        store: Store,
        session: &str,
        fixed_bytes: usize,
    ) -> Result<Self, HistoryError> {
        Self::resume(store, session, fixed_bytes, i64::MAX).await
    }

    /// Loads a conversation as [`History::open`] does. Token counts after `since` (milliseconds since the Unix epoch)
    /// correct the estimate.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub(super) async fn resume(
        store: Store,
        session: &str,
        fixed_bytes: usize,
        since: i64,
    ) -> Result<Self, HistoryError> {
        let mut history = Self {
            store,
            session: session.to_owned(),
            id: Uuid::new_v4(),
            messages: Vec::new(),
            estimate: TokenEstimate::new(fixed_bytes),
            fixed_bytes,
            secrets: Arc::default(),
        };
        history.load(since).await?;
        Ok(history)
    }

    /// Removes the known values of `secrets` from messages that are appended.
    #[must_use]
    pub(super) fn with_redaction(mut self, secrets: Arc<SecurityPatterns>) -> Self {
        self.secrets = secrets;
        self
    }

    /// The known secrets that are removed from messages.
    pub(super) fn secrets(&self) -> &Arc<SecurityPatterns> {
        &self.secrets
    }

    /// The stored messages of the window.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub(super) async fn rows(&self) -> Result<Vec<Row>, HistoryError> {
        let mut rows = Vec::new();
        for stored in self.store.messages(&self.session).await? {
            let damaged = |reason: String| HistoryError::Damaged {
                session: self.session.clone(),
                seq: stored.seq,
                reason,
            };
            let role = match stored.role.as_str() {
                "user" => Role::User,
                "assistant" => Role::Assistant,
                other => return Err(damaged(format!("role {other:?}"))),
            };
            let parts: Vec<MessagePart> = serde_json::from_str(&stored.content)
                .map_err(|error| damaged(error.to_string()))?;
            rows.push(Row {
                seq: stored.seq,
                message: Message { role, parts },
                counted: stored.usage.map(|usage| TokenCount {
                    input_tokens: usage.input_tokens,
                    at: stored.created_at,
                }),
            });
        }
        Ok(rows)
    }

    /// Loads the window from the store, as for a resumed session. Token counts after `since` correct the estimate.
    async fn load(&mut self, since: i64) -> Result<(), HistoryError> {
        let mut messages: Vec<Message> = Vec::new();
        let rows = self.rows().await?;
        self.estimate.restart(self.fixed_bytes);
        for row in rows {
            if let Some(counted) = row.counted.filter(|counted| counted.at > since) {
                self.estimate.correct(Usage {
                    input_tokens: counted.input_tokens,
                    ..Usage::default()
                });
            }
            self.estimate.add(&row.message);
            join(&mut messages, row.message);
        }
        let missing = repair_results(&mut messages);
        self.id = Uuid::new_v4();
        self.messages = messages;
        if let Some(results) = missing {
            self.push(results, None).await?;
        }
        Ok(())
    }

    /// Changes the view of the conversation in the store, then loads the window. `fixed_bytes` is the new size of the
    /// other parts of every request.
    ///
    /// # Errors
    /// [`HistoryError`]; then the window is unchanged.
    pub(super) async fn compact(
        &mut self,
        compaction: &Compaction,
        fixed_bytes: usize,
    ) -> Result<(), HistoryError> {
        let compacted = self.store.compact_window(&self.session, compaction);
        compacted.await?;
        self.reload(fixed_bytes).await
    }

    /// Loads the window after a change of the stored messages. `fixed_bytes` is the new size of the other parts of
    /// every request.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub(super) async fn reload(&mut self, fixed_bytes: usize) -> Result<(), HistoryError> {
        self.fixed_bytes = fixed_bytes;
        self.load(i64::MAX).await
    }

    /// Appends a message to the store, then to the window. Known secrets are replaced first. Returns the sequence
    /// number.
    ///
    /// # Errors
    /// [`HistoryError::Store`]; then the window is unchanged.
    pub async fn push(
        &mut self,
        mut message: Message,
        usage: Option<Usage>,
    ) -> Result<i64, HistoryError> {
        let seq = self.record(&mut message, usage).await?;
        self.append(message);
        Ok(seq)
    }

    /// Appends a message to the store only. Known secrets in it are replaced first. Returns the sequence number.
    ///
    /// # Errors
    /// [`HistoryError::Store`].
    pub(super) async fn record(
        &self,
        message: &mut Message,
        usage: Option<Usage>,
    ) -> Result<i64, HistoryError> {
        for part in &mut message.parts {
            withhold(&self.secrets, part);
        }
        let content = serde_json::to_string(&message.parts).map_err(|error| {
            // Strings and JSON values always serialize, but the error is handled.
            HistoryError::Damaged {
                session: self.session.clone(),
                seq: -1,
                reason: error.to_string(),
            }
        })?;
        let message = NewMessage {
            role: message.role.as_str().to_owned(),
            content,
            usage: usage.map(|usage| zeph_memory::Usage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cached_tokens: usage.cached_tokens,
            }),
        };
        Ok(self.store.append_message(&self.session, message).await?)
    }

    /// The text of a message without known secrets.
    pub(super) fn text_of(&self, message: &Message) -> String {
        let mut text = message.text();
        if let Cow::Owned(redacted) = self.secrets.redact_known(&text) {
            text = redacted;
        }
        text
    }

    /// Appends a stored message to the window.
    pub(super) fn append(&mut self, message: Message) {
        self.estimate.add(&message);
        join(&mut self.messages, message);
    }

    /// Repairs the window after a turn that ended between calls and their results, for example because a result could
    /// not be stored.
    ///
    /// # Errors
    /// [`HistoryError::Store`].
    pub async fn repair_orphaned_calls(&mut self) -> Result<(), HistoryError> {
        if is_settled(&self.messages) {
            return Ok(());
        }
        self.id = Uuid::new_v4();
        if let Some(results) = repair_results(&mut self.messages) {
            self.push(results, None).await?;
        }
        Ok(())
    }

    /// Clears the window. The store keeps all messages.
    ///
    /// # Errors
    /// [`HistoryError::Store`].
    pub async fn clear(&mut self) -> Result<(), HistoryError> {
        self.store.clear_window(&self.session).await?;
        self.id = Uuid::new_v4();
        self.messages.clear();
        self.estimate = TokenEstimate::new(self.fixed_bytes);
        Ok(())
    }

    /// Sets the size of the other parts of every request, after the window was cleared.
    pub(super) fn begin_with(&mut self, fixed_bytes: usize) {
        self.fixed_bytes = fixed_bytes;
        self.estimate = TokenEstimate::new(fixed_bytes);
    }

    /// The messages that requests contain.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether a prompt or a result contains `word`.
    pub(super) fn has_text(&self, word: &str) -> bool {
        let said = |part: &MessagePart| match part {
            MessagePart::Text { text } => text.contains(word),
            MessagePart::ToolResult { content, .. } => content.contains(word),
            _ => false,
        };
        let messages = self.messages.iter().filter(|it| it.role == Role::User);
        messages.flat_map(|it| &it.parts).any(said)
    }

    /// The id of the window. The messages sent under it only grow; at most the last one is replaced.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The session's id.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Returns the usage of the last request, without implausible figures.
    #[must_use]
    pub fn plausible(&self, usage: Usage) -> Usage {
        self.estimate.plausible(usage)
    }

    /// Corrects the estimate by the provider's token count of the last request.
    pub fn correct(&mut self, usage: Usage) {
        self.estimate.correct(usage);
    }

    /// Estimated tokens of the next request.
    #[must_use]
    pub fn estimated_tokens(&self) -> usize {
        self.estimate.total()
    }

    /// The estimator, for the size of single parts.
    pub(super) fn estimate(&self) -> &TokenEstimate {
        &self.estimate
    }

    /// The size of the other parts of every request.
    pub(super) fn fixed_bytes(&self) -> usize {
        self.fixed_bytes
    }
}

/// Replaces known secrets in a part of a message.
fn withhold(secrets: &SecurityPatterns, part: &mut MessagePart) {
    let (text, signature) = match part {
        MessagePart::Text { text } => (text, None),
        MessagePart::ToolResult { content, .. } => (content, None),
        MessagePart::Reasoning { text, signature } => (text, Some(signature)),
        MessagePart::ToolUse(request) => return secrets.redact_known_json(&mut request.input),
        MessagePart::Image { .. } => return,
    };
    if let Cow::Owned(redacted) = secrets.redact_known(text) {
        *text = redacted;
        // A signature of the text belongs to the original one.
        if let Some(signature) = signature.filter(|it| it.as_deref().is_some_and(signs_text)) {
            *signature = None;
        }
    }
}

/// Appends a message. Results of one batch, and text after results, are joined into one message, because some APIs
/// require alternating roles.
fn join(messages: &mut Vec<Message>, message: Message) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User && message.role == Role::User && has_result(last) => {
            last.parts.extend(message.parts);
        }
        _ => messages.push(message),
    }
}

pub(super) fn has_result(message: &Message) -> bool {
    message.parts.iter().any(is_result)
}

fn is_result(part: &MessagePart) -> bool {
    matches!(part, MessagePart::ToolResult { .. })
}

fn is_image(part: &MessagePart) -> bool {
    matches!(part, MessagePart::Image { .. })
}

/// Whether the last calls of a window have their results.
fn is_settled(messages: &[Message]) -> bool {
    let Some(at) = messages
        .iter()
        .rposition(|message| message.role == Role::Assistant)
    else {
        return true;
    };
    let has_result = |id: &str| {
        messages[at + 1..].iter().flat_map(|message| &message.parts).any(|part| {
            matches!(part, MessagePart::ToolResult { tool_use_id, .. } if tool_use_id == id)
        })
    };
    messages[at]
        .tool_uses()
        .all(|request| has_result(&request.id))
}

/// Gives every call exactly one result. Results without a call and duplicates are removed. A missing result in the
/// middle is inserted; missing results at the end are returned, so that they can be stored.
fn repair_results(messages: &mut Vec<Message>) -> Option<Message> {
    let mut at = 0;
    let mut open: Vec<String> = Vec::new();
    while let Some(message) = messages.get_mut(at) {
        if message.role == Role::Assistant {
            if !open.is_empty() {
                let results = interrupted(&open);
                open = ids_of_calls(message);
                messages.insert(at, results);
                at += 1;
            } else {
                open = ids_of_calls(message);
            }
            at += 1;
            continue;
        }
        let mut seen = HashSet::new();
        // An image belongs to the result before it.
        let mut stays = true;
        message.parts.retain(|part| {
            match part {
                MessagePart::ToolResult { tool_use_id, .. } => {
                    stays = open.contains(tool_use_id) && seen.insert(tool_use_id.clone());
                }
                MessagePart::Image { .. } => {}
                _ => stays = true,
            }
            stays
        });
        open.retain(|id| !seen.contains(id));
        let is_last = at + 1 == messages.len();
        if let Some(message) = messages.get_mut(at)
            && !open.is_empty()
            && (!is_last
                || !message
                    .parts
                    .iter()
                    .all(|part| is_result(part) || is_image(part)))
        {
            // Results come before text.
            let results = interrupted(&open).parts;
            open.clear();
            let last = message.parts.iter().rposition(is_result);
            let place = last.map_or(0, |last| {
                let images = message.parts[last + 1..].iter();
                last + 1 + images.take_while(|part| is_image(part)).count()
            });
            message.parts.splice(place..place, results);
        }
        at += 1;
    }
    messages.retain(|message| !message.parts.is_empty());
    if open.is_empty() {
        return None;
    }
    Some(interrupted(&open))
}

fn ids_of_calls(message: &Message) -> Vec<String> {
    message
        .tool_uses()
        .map(|request| request.id.clone())
        .collect()
}

fn interrupted(ids: &[String]) -> Message {
    let content = format_for_llm(&ToolError::Cancelled {
        reason: "interrupted: the program ended before this call had a result; \
                 it may have taken effect, and was not run again"
            .to_owned(),
    });
    Message {
        role: Role::User,
        parts: ids
            .iter()
            .map(|id| MessagePart::ToolResult {
                tool_use_id: id.clone(),
                content: content.clone(),
                is_error: true,
            })
            .collect(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use zeph_llm::ToolUseRequest;

    use super::*;

    fn calls(ids: &[&str]) -> Message {
        let parts = ids
            .iter()
            .map(|id| MessagePart::ToolUse(ToolUseRequest::new(*id, "read", json!({}))));
        Message {
            role: Role::Assistant,
            parts: parts.collect(),
        }
    }

    fn results(ids: &[&str]) -> Message {
        let parts = ids.iter().map(|id| MessagePart::ToolResult {
            tool_use_id: (*id).to_owned(),
            content: "ok".to_owned(),
            is_error: false,
        });
        Message {
            role: Role::User,
            parts: parts.collect(),
        }
    }

    /// Whether every call has exactly one result right after it, and every result has a call.
    fn is_whole(messages: &[Message]) -> bool {
        let mut open: Vec<String> = Vec::new();
        for message in messages {
            if message.role == Role::Assistant {
                if !open.is_empty() {
                    return false;
                }
                open = ids_of_calls(message);
                continue;
            }
            for part in &message.parts {
                if let MessagePart::ToolResult { tool_use_id, .. } = part {
                    let Some(at) = open.iter().position(|id| id == tool_use_id) else {
                        return false;
                    };
                    open.remove(at);
                }
            }
            if !open.is_empty() {
                return false;
            }
        }
        open.is_empty()
    }

    /// Proves AGT-1, D-18.
    #[test]
    fn call_without_a_result_gets_one() {
        let mut messages = vec![Message::user("go"), calls(&["a", "b"])];
        join(&mut messages, results(&["a"]));
        let missing = repair_results(&mut messages).unwrap();
        join(&mut messages, missing);
        assert!(is_whole(&messages), "{messages:?}");
        let MessagePart::ToolResult {
            content, is_error, ..
        } = &messages[2].parts[1]
        else {
            unreachable!("{messages:?}")
        };
        assert!(content.contains("category: cancelled") && content.contains("interrupted"));
        assert!(is_error);
    }

    #[tokio::test]
    async fn turn_without_results_is_repaired_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeph.db");
        let store = Store::open(&path, zeph_memory::Synchronous::Normal)
            .await
            .unwrap();
        store.ensure_session("s", folder.path()).await.unwrap();
        let mut history = History::open(store.clone(), "s", 0).await.unwrap();
        history.push(Message::user("go"), None).await.unwrap();
        history.push(calls(&["a", "b"]), None).await.unwrap();
        history.push(results(&["a"]), None).await.unwrap();
        history.repair_orphaned_calls().await.unwrap();
        assert!(is_whole(history.messages()), "{:?}", history.messages());
        let id = history.id();
        history.push(Message::user("on"), None).await.unwrap();
        history.repair_orphaned_calls().await.unwrap();
        assert_eq!(history.id(), id, "a complete window is unchanged");
        let read = History::open(store, "s", 0).await.unwrap();
        assert_eq!(read.messages(), history.messages());
    }

    /// An image remains with its result, and is removed with it.
    #[test]
    fn images_belong_to_the_results_before_them() {
        let image = |data: &str| Message {
            role: Role::User,
            parts: vec![MessagePart::Image {
                media_type: "image/png".to_owned(),
                data: data.to_owned(),
            }],
        };
        let mut messages = vec![Message::user("go"), calls(&["a", "b"])];
        for message in [results(&["a"]), image("A"), results(&["a"]), image("again")] {
            join(&mut messages, message);
        }
        let mut stored = messages.clone();
        let missing = repair_results(&mut stored).unwrap();
        assert_eq!(
            missing.parts.len(),
            1,
            "it is stored, because it is the last"
        );
        join(&mut stored, missing);
        assert!(is_whole(&stored), "{stored:?}");
        assert_eq!(stored[2].parts.len(), 3);
        assert!(is_image(&stored[2].parts[1]) && is_result(&stored[2].parts[2]));

        join(&mut messages, Message::user("and?"));
        assert_eq!(repair_results(&mut messages), None);
        let kinds: Vec<_> = messages[2]
            .parts
            .iter()
            .map(|part| (is_result(part), is_image(part)))
            .collect();
        let (result, image) = ((true, false), (false, true));
        assert_eq!(kinds, [result, image, result, (false, false)]);
    }

    #[test]
    fn complete_history_is_unchanged() {
        let mut messages = vec![Message::user("go"), calls(&["a"]), results(&["a"])];
        messages.push(Message::assistant("done"));
        let before = messages.clone();
        assert_eq!(repair_results(&mut messages), None);
        assert_eq!(messages, before);
    }

    proptest! {
        /// A history that was interrupted at any point is whole after loading.
        #[test]
        fn repairs_any_history_prefix(kinds in proptest::collection::vec(0u8..5, 0..12)) {
            let mut messages = Vec::new();
            for kind in kinds {
                join(&mut messages, match kind {
                    0 => Message::user("hi"),
                    1 => Message::assistant("ho"),
                    2 => calls(&["a", "b"]),
                    3 => results(&["a"]),
                    _ => results(&["b", "stray"]),
                });
            }
            if let Some(missing) = repair_results(&mut messages) {
                join(&mut messages, missing);
            }
            prop_assert!(is_whole(&messages), "{:?}", messages);
        }
    }
}
