//! A request as the tokens that a model reads.

use super::template::{ChatMessage, Template};
use super::vocabulary::Vocabulary;
use crate::message::{Message, MessagePart, Role};

/// Marks in a rendered conversation that enclose the number of a text.
const OPEN: char = '\u{f8f0}';
const CLOSE: char = '\u{f8f1}';

/// The conversation for templates: a system message, then user and assistant in turns. Calls and their results are
/// already text, or are replaced by a remark.
pub(super) fn conversation(system: &str, messages: &[Message]) -> Vec<ChatMessage> {
    let mut chat: Vec<ChatMessage> = Vec::with_capacity(messages.len() + 1);
    if !system.is_empty() {
        chat.push(ChatMessage {
            role: "system",
            content: system.to_owned(),
        });
    }
    for message in messages {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let content = text_of(message);
        match chat.last_mut() {
            Some(last) if last.role == role => {
                last.content.push_str("\n\n");
                last.content.push_str(&content);
            }
            _ => chat.push(ChatMessage { role, content }),
        }
    }
    chat
}

/// The text of a message.
fn text_of(message: &Message) -> String {
    let parts = message.parts.iter().filter_map(|part| match part {
        MessagePart::Text { text } => Some(text.clone()),
        MessagePart::Image { media_type, .. } => {
            Some(format!("[an image of type {media_type}, omitted]"))
        }
        MessagePart::ToolUse(call) => {
            let call = serde_json::json!({ "tool_id": call.name, "params": call.input });
            Some(format!("```json\n{call}\n```"))
        }
        MessagePart::ToolResult { content, .. } => Some(content.clone()),
        MessagePart::Reasoning { .. } => None,
    });
    parts.collect::<Vec<_>>().join("\n\n")
}

/// Renders the conversation with the template and converts it to tokens. The name of a special token inside a text is
/// read as text: only the template decides where a message ends.
///
/// # Errors
/// An error of the template or the tokenizer.
pub(super) fn tokens(
    mut chat: Vec<ChatMessage>,
    template: &Template,
    vocabulary: &Vocabulary,
) -> Result<Vec<u32>, String> {
    let mut texts = Vec::new();
    for message in &mut chat {
        let stands_in = message.content.contains([OPEN, CLOSE]);
        if stands_in || vocabulary.holds_special(&message.content) {
            let mark = format!("{OPEN}{}{CLOSE}", texts.len());
            texts.push(std::mem::replace(&mut message.content, mark));
        }
    }
    let written = template.render(&chat)?;
    if texts.is_empty() {
        return vocabulary.encode(&written, true);
    }
    let mut tokens = Vec::new();
    let mut rest = written.as_str();
    while let Some((before, number, after)) = next_mark(rest) {
        tokens.extend(vocabulary.encode(before, true)?);
        let text = texts.get(number).map_or("", String::as_str);
        tokens.extend(vocabulary.encode(text, false)?);
        rest = after;
    }
    tokens.extend(vocabulary.encode(rest, true)?);
    Ok(tokens)
}

/// The first mark of a text: the text before it, its number, the text after it.
fn next_mark(text: &str) -> Option<(&str, usize, &str)> {
    let (before, rest) = text.split_once(OPEN)?;
    let (number, after) = rest.split_once(CLOSE)?;
    Some((before, number.parse().ok()?, after))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::tool::ToolUseRequest;

    #[test]
    fn roles_take_turns_and_every_part_is_text() {
        let message = |role, parts| Message { role, parts };
        let text = |text: &str| MessagePart::Text {
            text: text.to_owned(),
        };
        let call = MessagePart::ToolUse(ToolUseRequest::new("1", "read", json!({"path": "a"})));
        let result = MessagePart::ToolResult {
            tool_use_id: "1".to_owned(),
            content: "what a holds".to_owned(),
            is_error: false,
        };
        let chat = conversation(
            "sys",
            &[
                Message::user("one"),
                Message::user("two"),
                message(Role::Assistant, vec![text("I look."), call]),
                message(Role::User, vec![result]),
            ],
        );
        let flat: Vec<_> = chat
            .iter()
            .map(|it| (it.role, it.content.as_str()))
            .collect();
        assert_eq!(
            flat,
            [
                ("system", "sys"),
                ("user", "one\n\ntwo"),
                (
                    "assistant",
                    "I look.\n\n```json\n{\"tool_id\":\"read\",\"params\":{\"path\":\"a\"}}\n```"
                ),
                ("user", "what a holds"),
            ]
        );
        assert!(conversation("", &[]).is_empty());
    }

    #[test]
    fn next_mark_is_parsed() {
        for (text, expect) in [
            ("a\u{f8f0}12\u{f8f1}b", Some(("a", 12, "b"))),
            ("no mark", None),
            ("\u{f8f0}x\u{f8f1}", None),
            ("\u{f8f0}1", None),
        ] {
            assert_eq!(next_mark(text), expect, "{text:?}");
        }
    }
}
