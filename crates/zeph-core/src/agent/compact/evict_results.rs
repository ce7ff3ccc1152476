//! Eviction of old results: the overflow store has them, and the window shows the reference to read them again.

use std::collections::HashMap;

use zeph_llm::MessagePart;
use zeph_memory::{Compaction, SqliteOverflow, Store};
use zeph_tools::overflow::{NewEntry, OverflowError, OverflowRef, OverflowStore, SpillBuffer};
use zeph_tools::read_overflow::READ_OVERFLOW;

use super::plan::{is_long, movable};
use crate::agent::history::{HistoryError, Row};
use crate::agent::session::Session;
use crate::agent::tokens::message_tokens;

/// Results could not be evicted. The window is unchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum EvictionError {
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Overflow(#[from] OverflowError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The text in place of an image.
const IMAGE: &str = "[an image was removed here; the same call shows it again]";

impl Session {
    /// Evicts old results, or `all`, from the window, if the conversation then has at most `max_tokens`. Returns a report, or
    /// `None` if nothing was evicted.
    pub(super) async fn evict_results(
        &mut self,
        all: bool,
        max_tokens: Option<usize>,
    ) -> Result<Option<String>, EvictionError> {
        let rows = self.history.rows().await?;
        let places = movable(&rows, all);
        let taken = places.iter().filter_map(|at| rows.get(*at));
        let taken: usize = taken.map(|row| message_tokens(&row.message)).sum();
        let before = self.history.estimated_tokens();
        let freed = self.history.estimate().corrected(taken);
        if places.is_empty() || max_tokens.is_some_and(|max| before.saturating_sub(freed) > max) {
            return Ok(None);
        }
        let mut shown = Vec::with_capacity(places.len());
        for (seq, parts) in moved_out(&self.store, self.id(), &rows, &places).await? {
            shown.push((seq, serde_json::to_string(&parts)?));
        }
        let compaction = Compaction {
            shown,
            ..Compaction::default()
        };
        let fixed_bytes = self.history.fixed_bytes();
        self.history.compact(&compaction, fixed_bytes).await?;
        let after = self.history.estimated_tokens();
        Ok(Some(format!(
            "{} old results were moved out of the conversation, about {before} -> {after} tokens; they can be read again",
            places.len()
        )))
    }
}

/// The text in place of an evicted result. `place` says how to read it.
fn replacement(content: &str, place: &str) -> String {
    format!(
        "[moved out of the context: {} lines, {} bytes; {place}]",
        content.lines().count(),
        content.len()
    )
}

/// The parts of the messages at `places` without their long results and images. Results that are not in the overflow store are
/// stored there first.
///
/// # Errors
/// [`OverflowError`]; entries that were stored before remain until they expire.
pub(super) async fn moved_out(
    store: &Store,
    session: &str,
    rows: &[Row],
    places: &[usize],
) -> Result<Vec<(i64, Vec<MessagePart>)>, OverflowError> {
    let overflow = SqliteOverflow::new(store.clone());
    let mut tools: HashMap<&str, &str> = HashMap::new();
    let mut moved = Vec::with_capacity(places.len());
    for (at, row) in rows.iter().enumerate() {
        for request in row.message.tool_uses() {
            tools.insert(&request.id, &request.name);
        }
        if !places.contains(&at) {
            continue;
        }
        let mut parts = Vec::with_capacity(row.message.parts.len());
        for part in &row.message.parts {
            parts.push(match part {
                MessagePart::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } if is_long(content) => {
                    let tool = tools.get(tool_use_id.as_str()).copied();
                    let tool = tool.unwrap_or("unknown");
                    let place = place(&overflow, session, tool, content).await?;
                    MessagePart::ToolResult {
                        tool_use_id: tool_use_id.clone(),
                        content: replacement(content, &place),
                        is_error: *is_error,
                    }
                }
                MessagePart::Image { .. } => continue,
                other => other.clone(),
            });
        }
        let had_image = parts.len() < row.message.parts.len();
        if let Some(MessagePart::ToolResult { content, .. }) = parts.last_mut()
            && had_image
        {
            content.push('\n');
            content.push_str(IMAGE);
        }
        moved.push((row.seq, parts));
    }
    Ok(moved)
}

/// The way to read an evicted result again.
async fn place(
    overflow: &SqliteOverflow,
    session: &str,
    tool: &str,
    content: &str,
) -> Result<String, OverflowError> {
    // Its output is already stored under the reference in its arguments.
    if tool == READ_OVERFLOW {
        return Ok("the same call shows it again".to_owned());
    }
    let reference = match known(overflow, session, tool, content).await? {
        Some(reference) => reference,
        None => {
            let reference = OverflowRef::new();
            let mut text = SpillBuffer::new(u64::MAX);
            text.push(content);
            let entry = NewEntry {
                reference,
                conversation: session.to_owned(),
                tool: tool.to_owned(),
                text: text.finish(),
            };
            overflow.put(entry).await?;
            reference
        }
    };
    Ok(format!("{READ_OVERFLOW} id={reference} shows it"))
}

/// The reference under which the output of this result was stored when the call ended: the only reference in the text, of a whole
/// output of the same tool.
async fn known(
    overflow: &SqliteOverflow,
    session: &str,
    tool: &str,
    content: &str,
) -> Result<Option<OverflowRef>, OverflowError> {
    let Some(reference) = only_reference(content) else {
        return Ok(None);
    };
    let entry = overflow.find(session, reference).await?;
    let whole = |entry: &zeph_tools::overflow::OverflowEntry| entry.cut().is_none();
    Ok(entry
        .filter(|entry| entry.tool == tool && whole(entry))
        .map(|_| reference))
}

/// The reference in a text, if there is exactly one.
fn only_reference(text: &str) -> Option<OverflowRef> {
    const WORD: &str = "overflow:";
    const LENGTH: usize = WORD.len() + 36;
    let found = text.match_indices(WORD);
    let mut found = found.filter_map(|(at, _)| text.get(at..at + LENGTH)?.parse().ok());
    let first: OverflowRef = found.next()?;
    found.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reference_needs_exactly_one() {
        let (one, two) = (OverflowRef::new(), OverflowRef::new());
        let check = |text: String, expect| assert_eq!(only_reference(&text), expect, "{text}");
        check(String::new(), None);
        check("overflow: é overflow:".to_owned(), None);
        check(format!("stored as {one}: {one}"), Some(one));
        check(format!("{one} {two}"), None);
        check(format!("{one}"), Some(one));
    }
}
