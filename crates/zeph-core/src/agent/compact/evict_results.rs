//! Results that make room: the window shows where they can be read again, the overflow store has them.

use std::collections::HashMap;

use zeph_llm::MessagePart;
use zeph_memory::{Compaction, SqliteOverflow, Store};
use zeph_tools::overflow::{NewEntry, OverflowError, OverflowRef, OverflowStore, SpillBuffer};
use zeph_tools::read_overflow::READ_OVERFLOW;

use super::plan::{is_long, movable};
use crate::agent::Agent;
use crate::agent::history::Row;
use crate::agent::tokens::message_tokens;
use crate::channel::LoopbackEvent;

/// What stands in place of an image.
const IMAGE: &str = "[an image was here; the same call shows it again]";

impl Agent {
    /// Moves old results out, or `all`, where the conversation then takes no more than `most`. Whether it did.
    pub(super) async fn move_out(&mut self, all: bool, most: Option<usize>) -> bool {
        match self.try_to_move_out(all, most).await {
            Ok(moved) => moved,
            Err(why) => {
                let told = format!("old results were not moved out of the conversation: {why}");
                self.channel.emit(LoopbackEvent::Notice(told));
                false
            }
        }
    }

    async fn try_to_move_out(&mut self, all: bool, most: Option<usize>) -> Result<bool, String> {
        let rows = self
            .history
            .rows()
            .await
            .map_err(|error| error.to_string())?;
        let places = movable(&rows, all);
        let taken = places.iter().filter_map(|at| rows.get(*at));
        let taken: usize = taken.map(|row| message_tokens(&row.message)).sum();
        let before = self.history.estimated_tokens();
        let freed = self.history.estimate().corrected(taken);
        if places.is_empty() || most.is_some_and(|most| before.saturating_sub(freed) > most) {
            return Ok(false);
        }
        let session = self.history.session().to_owned();
        let moved = moved_out(&self.store, &session, &rows, &places).await;
        let moved = moved.map_err(|error| error.to_string())?;
        let mut shown = Vec::with_capacity(moved.len());
        for (seq, parts) in moved {
            let parts = serde_json::to_string(&parts).map_err(|error| error.to_string())?;
            shown.push((seq, parts));
        }
        let compaction = Compaction {
            shown,
            ..Compaction::default()
        };
        let fixed = self.history.fixed_bytes();
        let compacted = self.history.compact(&compaction, fixed).await;
        compacted.map_err(|error| error.to_string())?;
        let after = self.history.estimated_tokens();
        self.channel.emit(LoopbackEvent::Notice(format!(
            "{} old results were moved out of the conversation, about {before} -> {after} tokens; they can be read again",
            places.len()
        )));
        Ok(true)
    }
}

/// What is shown of a result after `place` says where it is.
fn told(content: &str, place: &str) -> String {
    format!(
        "[moved out of the window: {} lines, {} bytes; {place}]",
        content.lines().count(),
        content.len()
    )
}

/// The parts of the messages at `places` without their long results and images, as they are to be shown. What
/// is not in the overflow store yet is put there first.
///
/// # Errors
/// [`OverflowError`]; then what was stored so far is of no use, and goes as all overflow does.
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
                        content: told(content, &place),
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

/// Where a result can be read again.
async fn place(
    overflow: &SqliteOverflow,
    session: &str,
    tool: &str,
    content: &str,
) -> Result<String, OverflowError> {
    // What it read is stored under the reference that it was asked for.
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

/// The reference under which the output of this result was stored when it was made: the only one in its text,
/// of an output of the same tool.
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
    fn one_reference_is_told_from_many() {
        let (one, two) = (OverflowRef::new(), OverflowRef::new());
        let check = |text: String, expect| assert_eq!(only_reference(&text), expect, "{text}");
        check(String::new(), None);
        check("overflow: é overflow:".to_owned(), None);
        check(format!("stored as {one}: {one}"), Some(one));
        check(format!("{one} {two}"), None);
        check(format!("{one}"), Some(one));
    }
}
