//! The messages of the user to which a rewind can return. Pure.

use std::fmt::Write as _;

use zeph_llm::MessagePart;
use zeph_memory::StoredMessage;

use crate::agent::replay::typed_prompt;
use crate::agent::status::minute;

/// Messages that the list shows, the latest ones.
const MAX_LISTED: usize = 50;
/// Characters of a message in the list.
const MAX_TITLE_CHARS: usize = 70;

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RewindPoint {
    /// The number for the user, from 1.
    pub(super) number: usize,
    /// The sequence number in the session.
    pub(super) seq: i64,
    /// The start of the message, on one line.
    pub(super) title: String,
    /// The time in milliseconds since the Unix epoch.
    pub(super) at: i64,
}

/// The messages of the user in a conversation.
pub(super) fn points(messages: &[StoredMessage]) -> Vec<RewindPoint> {
    let prompts = messages.iter().filter_map(|it| Some((it, title(it)?)));
    let points = prompts
        .zip(1..)
        .map(|((message, title), number)| RewindPoint {
            number,
            seq: message.seq,
            title,
            at: message.created_at,
        });
    points.collect()
}

/// The start of a prompt of the user; `None` for other messages.
fn title(message: &StoredMessage) -> Option<String> {
    if message.role != "user" {
        return None;
    }
    let parts: Vec<MessagePart> = serde_json::from_str(&message.content).ok()?;
    let is_result = |part: &MessagePart| matches!(part, MessagePart::ToolResult { .. });
    if parts.iter().any(is_result) {
        return None;
    }
    let text = parts.iter().find_map(|part| match part {
        MessagePart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = text.unwrap_or("(image)");
    let prompt = typed_prompt(text)?;
    let mut words = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(MAX_TITLE_CHARS) {
        words.truncate(end);
        words.push('…');
    }
    Some(words)
}

/// The list of the user's messages.
pub(super) fn list(points: &[RewindPoint]) -> String {
    if points.is_empty() {
        return "there is no message to go back to".to_owned();
    }
    let omitted = points.len().saturating_sub(MAX_LISTED);
    let mut text = String::new();
    // Writing into a string cannot fail.
    if omitted > 0 {
        let _ = writeln!(text, "… {omitted} earlier");
    }
    for point in &points[omitted..] {
        let _ = writeln!(
            text,
            "{:>4}  {}  {}",
            point.number,
            minute(point.at),
            point.title
        );
    }
    text.push_str(
        "/rewind N goes back to the state before message N, and restores the files that tools \
         changed later",
    );
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::agent::tool_runner::undo::UNDO_MARK;

    fn stored(seq: i64, role: &str, parts: &Value) -> StoredMessage {
        StoredMessage {
            seq,
            role: role.to_owned(),
            content: parts.to_string(),
            created_at: 0,
            usage: None,
            rewound: false,
        }
    }

    /// Proves CLI-6: only prompts of the user have a number.
    #[test]
    fn only_prompts_of_the_user_are_listed() {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let messages = [
            stored(1, "user", &text("first\n  prompt")),
            stored(2, "assistant", &text("response")),
            stored(3, "user", &text("[the user ran a command]\n$ ls")),
            stored(4, "user", &text("[reflection] look again")),
            stored(5, "user", &text(UNDO_MARK)),
            stored(
                6,
                "user",
                &json!([{"type": "tool_result", "tool_use_id": "a", "content": "x"}]),
            ),
            stored(7, "user", &text(&"long ".repeat(40))),
        ];
        let found = points(&messages);
        let seqs: Vec<_> = found.iter().map(|it| (it.number, it.seq)).collect();
        assert_eq!(seqs, [(1, 1), (2, 7)]);
        assert_eq!(found[0].title, "first prompt");
        assert_eq!(found[1].title.chars().count(), MAX_TITLE_CHARS + 1);
        let many: Vec<_> = (1..=60)
            .map(|seq| stored(seq, "user", &text("a")))
            .collect();
        let shown = list(&points(&many));
        assert!(shown.starts_with("… 10 earlier\n  11  "), "{shown}");
        assert_eq!(list(&[]), "there is no message to go back to");
    }
}
