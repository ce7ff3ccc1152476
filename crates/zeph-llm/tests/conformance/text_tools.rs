//! Providers over HTTP with `tool_use = false`: calls are parsed from text, and requests have no native
//! tools.

use std::sync::Arc;

use secrecy::SecretString;
use serde_json::json;
use zeph_llm::{LlmProvider, Message, MessagePart, RetryConfig, StreamEvent, build_provider};

use crate::server::{End, Server};
use crate::wire::{Said, Stop, WIRES, Wire, hi};
use crate::{KEY, ask, notices, shown_text};

fn provider(wire: Wire, server: &Server) -> Arc<dyn LlmProvider> {
    let mut config = wire.config(&server.url);
    config.tool_use = Some(false);
    build_provider(
        &config,
        RetryConfig::default(),
        Some(SecretString::from(KEY)),
    )
    .unwrap()
}

/// Proves LLM-8, LLM-10.
#[tokio::test]
async fn blocks_are_calls() {
    let said = "I look.\n```bash\nls\n```\n{}\n```json\n{\"tool_id\":\"bash\",\"params\":{\"command\":\"pwd\"}}\n```";
    for wire in WIRES {
        let (before, after) = said.split_at(14);
        let answer = [Said::Text(before), Said::Text(after), Said::End(Stop::Done)];
        let server = Server::start([wire.reply(&answer), wire.text_answer("Done.")]).await;
        let provider = provider(wire, &server);
        assert!(!provider.supports_tool_use());
        assert_eq!(provider.context_window(), 50_000);
        let mut messages = hi().to_vec();
        let (response, events) = ask(&*provider, &messages, None).await;
        assert_eq!(shown_text(&events), said, "{wire:?}");
        let started = StreamEvent::ToolUseStarted {
            name: "bash".to_owned(),
        };
        assert_eq!(events.iter().filter(|event| **event == started).count(), 2);
        let message = response.unwrap().into_message();
        assert_eq!(message.text(), said);
        let calls: Vec<_> = message.tool_uses().cloned().collect();
        let inputs: Vec<_> = calls.iter().map(|call| call.input.clone()).collect();
        assert_eq!(
            inputs,
            [json!({"command": "ls"}), json!({"command": "pwd"})]
        );
        messages.push(message);
        messages.push(Message {
            parts: calls
                .into_iter()
                .map(|call| MessagePart::ToolResult {
                    tool_use_id: call.id,
                    content: format!("of {}", call.input["command"]),
                    is_error: false,
                })
                .collect(),
            ..Message::user("")
        });
        let (response, _) = ask(&*provider, &messages, None).await;
        assert_eq!(response.unwrap().into_message().text(), "Done.");
        for request in server.requests() {
            let body = String::from_utf8_lossy(&request.raw).into_owned();
            for native in [
                "\"tools\"",
                "tool_use",
                "tool_call",
                "function_call",
                "tool_choice",
            ] {
                assert!(!body.contains(native), "{wire:?}: {native} in {body}");
            }
            assert!(body.contains("- bash(command?: string): Runs a command."));
        }
        let last = String::from_utf8_lossy(&server.requests()[1].raw).into_owned();
        let results = r#"[tool result: bash]\nof \"ls\"\n\n[tool result: bash]\nof \"pwd\""#;
        assert!(last.contains(results), "{wire:?}: {last}");
    }
}

/// Proves LLM-4, LLM-8, LLM-10: a stream that breaks off in a block returns no call; one that breaks off
/// after the block does.
#[tokio::test]
async fn broken_stream_returns_no_call() {
    for wire in WIRES {
        for (first, then, runs) in [
            ("Well.\n```bash\nrm -r a", "bc\n```", 0),
            ("Well.\n```bash\nls\n```\nI wa", "it.", 1),
        ] {
            let replies = [
                wire.reply(&[Said::Text(first)]).end(End::Abort),
                wire.text_answer(then),
            ];
            let server = Server::start(replies).await;
            let (response, events) = ask(&*provider(wire, &server), &hi(), None).await;
            let message = response.unwrap().into_message();
            assert_eq!(message.text(), format!("{first}{then}"), "{wire:?}");
            assert_eq!(message.tool_uses().count(), runs, "{wire:?}: {message:?}");
            let dropped = notices(&events).iter().any(|it| it.contains("dropped"));
            assert_eq!(dropped, runs == 0, "{wire:?}: {events:?}");
        }
        // The block was not closed when the output limit was reached.
        let answer = [Said::Text("```bash\nrm -r a"), Said::End(Stop::Length)];
        let server = Server::start([wire.reply(&answer)]).await;
        let (response, events) = ask(&*provider(wire, &server), &hi(), None).await;
        assert_eq!(response.unwrap().tool_uses().count(), 0);
        assert!(notices(&events)[0].contains("not closed"), "{events:?}");
    }
}

/// Proves LLM-8: a schema is sent to the API only if no call is allowed, because a schema excludes calls.
#[tokio::test]
async fn schema_is_not_sent_if_calls_are_allowed() {
    let schema = json!({"type": "object", "properties": {"unusual": {"type": "string"}}});
    for wire in WIRES {
        let server = Server::start([wire.text_answer("```bash\nls\n```")]).await;
        let provider = provider(wire, &server);
        let (response, _) = ask(&*provider, &hi(), Some(&schema)).await;
        assert_eq!(response.unwrap().tool_uses().count(), 1, "{wire:?}");
        let sent = String::from_utf8_lossy(&server.requests()[0].raw).into_owned();
        assert!(!sent.contains("unusual"), "{wire:?}: {sent}");
    }
}
