//! Sample histories for the tests of request bodies of all wires.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::request_body::request_body;
use super::wire::Wire;
use crate::message::{Message, MessagePart, Role};
use crate::provider::ChatRequest;
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
    MessagePart::ToolUse(ToolUseRequest::new(id, name, input))
}

/// A call with content of the server at `host`.
pub(crate) fn call_with_content(host: &str) -> MessagePart {
    MessagePart::ToolUse(ToolUseRequest {
        extra_content: Some(json!({ host: {"google": {"thought_signature": "c2ln"}} })),
        ..ToolUseRequest::new("a", "bash", json!({}))
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
    let bytes = request_body(wire, request, None).unwrap();
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
        Just(Some("chat-reasoning:h")),
    ];
    let part = prop_oneof![
        "[a-z\"\\n ]{0,8}".prop_map(|words| text(&words)),
        "[a-z.]{0,3}".prop_map(|id| result(&id, "read")),
        "[a-z.]{0,3}".prop_map(|id| call(&id, "bash", json!({"command": id}))),
        Just(call_with_content("h")),
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

/// Any history.
pub(crate) fn any_history() -> impl Strategy<Value = Vec<Message>> {
    proptest::collection::vec(any_message(), 0..12)
}

/// Checks that a body is a function of its request, and that the body of a longer history begins with the bytes of the
/// shorter one, up to the end of its last message. `marker` may move from one request to the next.
pub(crate) fn check_prefix(
    wire: &impl Wire,
    messages: &[Message],
    marker: &str,
) -> Result<(), TestCaseError> {
    let tools = tools();
    let build = |count: usize, shown: Option<&str>| {
        let request = request(&messages[..count], &tools);
        let body = request_body(wire, request, shown).unwrap();
        assert_eq!(body, request_body(wire, request, shown).unwrap());
        assert!(serde_json::from_slice::<Value>(&body).is_ok());
        let body = String::from_utf8(body.to_vec()).unwrap();
        if marker.is_empty() {
            body
        } else {
            body.replace(marker, "")
        }
    };
    // The fields after the messages have no bracket.
    let messages_of = |body: &str| body[..body.rfind(']').unwrap()].to_owned();
    for count in 0..messages.len() {
        let prefix = messages_of(&build(count, None));
        for next in [build(count, Some("so far")), build(count + 1, None)] {
            prop_assert!(next.starts_with(&prefix), "{prefix}\n{next}");
        }
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
