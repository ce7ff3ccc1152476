//! Histories that the tests of all wires write bodies of.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::request_cache::BodyCache;
use super::wire::Wire;
use crate::message::{Message, MessagePart, Role};
use crate::provider::{ChatRequest, HistoryId};
use crate::tool::{ToolChoice, ToolDefinition, ToolUseRequest};

/// One tool.
pub(crate) fn tools() -> Vec<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    vec![ToolDefinition {
        name: "bash".to_owned(),
        description: "Runs a command.".to_owned(),
        parameters: Arc::new(schema),
    }]
}

/// A request of a conversation.
pub(crate) fn request<'a>(messages: &'a [Message], tools: &'a [ToolDefinition]) -> ChatRequest<'a> {
    ChatRequest {
        system: "You are Zeph.",
        messages,
        tools,
        tool_choice: ToolChoice::Auto,
        cache_key: Some("session-1"),
        response_schema: None,
        json_object: false,
        max_output_tokens: None,
        history: None,
    }
}

/// A message of the user.
pub(crate) fn user(parts: Vec<MessagePart>) -> Message {
    let role = Role::User;
    Message { role, parts }
}

/// A message of the model.
pub(crate) fn model(parts: Vec<MessagePart>) -> Message {
    let role = Role::Assistant;
    Message { role, parts }
}

pub(crate) fn text(text: &str) -> MessagePart {
    let text = text.to_owned();
    MessagePart::Text { text }
}

pub(crate) fn image(data: &str) -> MessagePart {
    MessagePart::Image {
        media_type: "image/png".to_owned(),
        data: data.to_owned(),
    }
}

pub(crate) fn call(id: &str, name: &str, input: Value) -> MessagePart {
    MessagePart::ToolUse(ToolUseRequest {
        id: id.to_owned(),
        name: name.to_owned(),
        input,
    })
}

pub(crate) fn result(id: &str, content: &str) -> MessagePart {
    MessagePart::ToolResult {
        tool_use_id: id.to_owned(),
        content: content.to_owned(),
        is_error: false,
    }
}

pub(crate) fn reasoning(text: &str, signature: Option<&str>) -> MessagePart {
    MessagePart::Reasoning {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
    }
}

/// The body of a first request.
pub(crate) fn body_of(wire: &impl Wire, request: ChatRequest<'_>) -> Value {
    let bytes = BodyCache::default().build(wire, request, None).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Any message that the role allows, with reasoning of every API.
pub(crate) fn any_message() -> impl Strategy<Value = Message> {
    let signature = prop_oneof![
        Just(None),
        Just(Some("anthropic-signature:c2ln")),
        Just(Some("anthropic-redacted:c2ln")),
        Just(Some("openai-item:{\"type\":\"reasoning\",\"id\":\"r\"}")),
        Just(Some("openai-item:{broken")),
        Just(Some("ollama-thinking:")),
    ];
    let part = prop_oneof![
        "[a-z\"\\n ]{0,8}".prop_map(|words| text(&words)),
        "[a-z.]{0,3}".prop_map(|id| result(&id, "read")),
        "[a-z.]{0,3}".prop_map(|id| call(&id, "bash", json!({"command": id}))),
        Just(image("AAAA")),
        signature.prop_map(|signature| reasoning("hm", signature)),
    ];
    (any::<bool>(), proptest::collection::vec(part, 0..5)).prop_map(|(is_user, mut parts)| {
        parts.retain(|part| match part {
            MessagePart::ToolUse(_) | MessagePart::Reasoning { .. } => !is_user,
            MessagePart::ToolResult { .. } | MessagePart::Image { .. } => is_user,
            MessagePart::Text { .. } => true,
        });
        if is_user { user(parts) } else { model(parts) }
    })
}

/// A history, and the number of its messages in each of some requests, with their other fields.
#[derive(Debug)]
pub(crate) struct RequestSequence {
    messages: Vec<Message>,
    steps: Vec<(usize, bool, bool, u8)>,
}

pub(crate) fn any_course() -> impl Strategy<Value = RequestSequence> {
    let messages = proptest::collection::vec(any_message(), 0..12);
    let step = (0usize..4, any::<bool>(), any::<bool>(), 0u8..3);
    (messages, proptest::collection::vec(step, 1..8))
        .prop_map(|(messages, steps)| RequestSequence { messages, steps })
}

/// Checks that a continued request body equals a completely new one. The sequence may contain a replaced last
/// message, a broken stream, another tool choice, or other tools.
pub(crate) fn check_continued(
    wire: &impl Wire,
    course: &RequestSequence,
) -> Result<(), TestCaseError> {
    let (tools, history) = (tools(), Some(HistoryId::unique()));
    let mut cache = BodyCache::default();
    let mut sent = 0;
    for (grow, broken, forbidden, variant) in &course.steps {
        sent = (sent + grow).min(course.messages.len());
        let mut window = course.messages[..sent].to_vec();
        if *variant == 1
            && let Some(last) = window.last_mut()
        {
            last.parts.push(text("replaced"));
        }
        let choice = if *forbidden {
            ToolChoice::None
        } else {
            ToolChoice::Auto
        };
        let request = ChatRequest {
            history,
            system: if *variant == 2 { "" } else { "You are Zeph." },
            tool_choice: choice,
            ..request(&window, if *grow == 3 { &[] } else { &tools })
        };
        let shown = broken.then_some("so far");
        let continued = cache.build(wire, request, shown).unwrap();
        let fresh = BodyCache::default().build(wire, request, shown).unwrap();
        let text = String::from_utf8_lossy(&continued).into_owned();
        let is_json = serde_json::from_slice::<Value>(&continued).is_ok();
        prop_assert!(is_json, "{}", text);
        prop_assert_eq!(continued, fresh);
    }
    Ok(())
}

/// Checks that no proper prefix of a stream has a call, and that the complete stream has: `complete` is the number of
/// bytes after which it is complete.
pub(crate) fn check_no_prefix_yields_a_call<W: Wire>(stream: &str, complete: usize) {
    use crate::error::LlmErrorKind;
    for end in 0..=stream.len() {
        match super::test_support::read::<W>([&stream.as_bytes()[..end]]).0 {
            Ok(response) => {
                assert!(end >= complete, "an answer out of {end} bytes");
                let calls: Vec<_> = response.tool_uses().map(|call| &call.input).collect();
                assert_eq!(calls, [&json!({"command": "ls 😀"})], "{end}");
            }
            Err(failure) => {
                assert!(end < complete, "{end}: {}", failure.message);
                let kind = failure.kind;
                assert_eq!(kind, LlmErrorKind::StreamCut, "{end}: {}", failure.message);
            }
        }
    }
}

/// Checks that the chunking of the network changes nothing.
pub(crate) fn check_chunks<W: Wire>(body: &[u8], size: usize) -> Result<(), TestCaseError> {
    let read = |pieces: Vec<&[u8]>| super::test_support::read::<W>(pieces);
    let (whole, shown) = read(vec![body]);
    let (pieces, shown_in_pieces) = read(body.chunks(size).collect());
    let text = |outcome: &Result<crate::ChatResponse, _>| {
        outcome
            .as_ref()
            .ok()
            .map(|answer| answer.clone().into_message().text())
    };
    prop_assert_eq!(text(&whole), text(&pieces));
    prop_assert_eq!(whole.is_ok(), pieces.is_ok());
    prop_assert_eq!(shown, shown_in_pieces);
    Ok(())
}
