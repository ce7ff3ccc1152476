//! Conformance tests of all providers, against a local server that controls each byte of the wire format and
//! injects faults.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod dialects;
mod docs;
mod embeddings;
mod faults;
mod requests;
mod scripted;
mod server;
mod text_tools;
mod wire;

use std::sync::Arc;

use serde_json::{Value, json};
use zeph_llm::{
    ChatRequest, ChatResponse, LlmError, LlmProvider, Message, StreamEvent, ToolChoice,
    ToolDefinition,
};

/// The key of the tests, which must not appear in any text.
const KEY: &str = "sk-test-0123456789abcdef";

fn bash() -> Vec<ToolDefinition> {
    vec![ToolDefinition {
        name: "bash".to_owned(),
        description: "Runs a command.".to_owned(),
        parameters: Arc::new(
            json!({"type": "object", "properties": {"command": {"type": "string"}}}),
        ),
    }]
}

/// Sends a request with one tool and collects the events of the sink.
async fn ask(
    provider: &dyn LlmProvider,
    messages: &[Message],
    schema: Option<&Value>,
) -> (Result<ChatResponse, LlmError>, Vec<StreamEvent>) {
    let tools = bash();
    let request = ChatRequest {
        system: "You are Zeph.",
        messages,
        tools: &tools,
        tool_choice: ToolChoice::Auto,
        cache_key: Some("session"),
        response_schema: schema,
        json_object: false,
        max_output_tokens: None,
    };
    let mut events = Vec::new();
    let outcome = provider
        .chat_stream(request, &mut |event| events.push(event))
        .await;
    if let Err(error) = &outcome {
        assert!(
            !format!("{error} {error:?}").contains(KEY),
            "a key in {error}"
        );
    }
    assert!(!format!("{events:?}").contains(KEY), "a key in {events:?}");
    (outcome, events)
}

fn notices(events: &[StreamEvent]) -> Vec<String> {
    let texts = events.iter().filter_map(|event| match event {
        StreamEvent::Notice(text) => Some(text.clone()),
        StreamEvent::Retry(retry) => Some(retry.to_string()),
        _ => None,
    });
    texts.collect()
}

fn shown_text(events: &[StreamEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        StreamEvent::TextDelta(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
