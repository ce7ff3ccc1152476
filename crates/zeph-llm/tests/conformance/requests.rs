//! Requests on the wires: paths, headers, bodies, connections.

use serde_json::json;
use zeph_llm::{Effort, Message, MessagePart, RetryConfig, Role, ToolUseRequest, build_provider};

use crate::server::Server;
use crate::wire::{WIRES, Wire, hi};
use crate::{KEY, ask};

/// Proves LLM-2 (D-31 of the settled readings: `base_url` with or without `/v1` or `/`).
#[tokio::test]
async fn every_ending_of_base_url_reaches_the_same_path() {
    for wire in WIRES {
        let server = Server::start(vec![wire.text_answer("ok"); 4]).await;
        for ending in wire.endings() {
            let base_url = format!("{}{ending}", server.url);
            let provider = wire.provider(&base_url, RetryConfig::default());
            provider.chat("", &hi()).await.unwrap();
        }
        let requests = server.requests();
        let paths: Vec<_> = requests.iter().map(|request| &*request.path).collect();
        assert_eq!(paths, [wire.path(); 4]);
    }
}

/// Proves LLM-2, LLM-10.
#[tokio::test]
async fn headers_have_the_key_only_if_configured() {
    for wire in WIRES {
        let server = Server::start(vec![wire.text_answer("ok"); 2]).await;
        let provider = wire.provider(&server.url, RetryConfig::default());
        provider.chat("", &hi()).await.unwrap();
        let mut keyless = wire.config(&server.url);
        keyless.api_key_env = None;
        let keyless = build_provider(&keyless, RetryConfig::default(), None).unwrap();
        keyless.chat("", &hi()).await.unwrap();
        let requests = server.requests();
        assert_eq!(wire.key(&requests[0]), Some(KEY));
        for name in ["authorization", "x-api-key"] {
            assert_eq!(requests[1].header(name), None, "{wire:?}");
        }
        for request in &requests {
            assert_eq!(request.header("content-type"), Some("application/json"));
            assert_eq!(request.header("accept"), Some(wire.accept()));
            assert!(request.header("user-agent").unwrap().starts_with("zeph/"));
            assert_eq!(request.header("accept-encoding"), None);
        }
    }
}

fn call(id: &str, command: &str) -> MessagePart {
    MessagePart::ToolUse(ToolUseRequest::new(id, "bash", json!({"command": command})))
}

fn result(id: &str, content: &str, is_error: bool) -> MessagePart {
    MessagePart::ToolResult {
        tool_use_id: id.to_owned(),
        content: content.to_owned(),
        is_error,
    }
}

fn reasoning(text: &str, signature: Option<&str>) -> MessagePart {
    MessagePart::Reasoning {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
    }
}

/// A tool turn with all kinds of parts of a history: reasoning of every API, a result with an image, a failed
/// call, user text after the results.
fn tool_turn() -> [Message; 4] {
    let image = MessagePart::Image {
        media_type: "image/png".to_owned(),
        data: "AAAA".to_owned(),
    };
    let text = |text: &str| MessagePart::Text {
        text: text.to_owned(),
    };
    let item = "openai-item:{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"gAAA\"}";
    [
        Message::user("List the files."),
        Message {
            role: Role::Assistant,
            parts: vec![
                reasoning("Unsigned.", None),
                reasoning("Signed.", Some("anthropic-signature:c2ln")),
                reasoning("", Some("anthropic-redacted:c2VhbGVk")),
                reasoning("An item.", Some(item)),
                reasoning("Of Ollama.", Some("ollama-thinking:")),
                reasoning("Of this host.", Some("chat-reasoning:127.0.0.1")),
                text("I look."),
                call("a", "ls"),
                call("b", "cat logo.png"),
            ],
        },
        Message {
            role: Role::User,
            parts: vec![
                result("a", "Cargo.toml", false),
                result("b", "no such file", true),
                image,
                text("Go on."),
            ],
        },
        Message {
            role: Role::Assistant,
            parts: vec![text("Done.")],
        },
    ]
}

/// The body of a whole tool turn, as received by the server. Proves LLM-3, LLM-10.
#[tokio::test]
async fn request_body_of_a_tool_turn() {
    for wire in WIRES {
        let server = Server::start([wire.text_answer("ok")]).await;
        let mut config = wire.config(&server.url);
        config.api_key_env = None;
        config.images = Some(true);
        let provider = build_provider(&config, RetryConfig::default(), None).unwrap();
        let schema = json!({"type": "object"});
        let mut messages = tool_turn().to_vec();
        messages.push(Message::user("And now?"));
        ask(&*provider, &messages, Some(&schema)).await.0.unwrap();
        let name = format!("request_body_of_a_tool_turn_{wire:?}").to_lowercase();
        insta::assert_json_snapshot!(name, server.requests()[0].json());
    }
}

/// Proves LLM-12: the effort in the form of each API, and no field without one.
#[tokio::test]
async fn effort_has_the_form_of_each_wire() {
    let enabled = |tokens: u32| json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    let adaptive = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}});
    for (wire, model, effort, expect) in [
        (Wire::Chat, "m", None, json!({})),
        (
            Wire::Chat,
            "m",
            Some(Effort::None),
            json!({"reasoning_effort": "none"}),
        ),
        (
            Wire::Chat,
            "m",
            Some(Effort::Xhigh),
            json!({"reasoning_effort": "xhigh"}),
        ),
        (Wire::Responses, "m", None, json!({})),
        (
            Wire::Responses,
            "m",
            Some(Effort::Low),
            json!({"reasoning": {"effort": "low"}}),
        ),
        (Wire::Claude, "m", None, json!({})),
        (
            Wire::Claude,
            "m",
            Some(Effort::None),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            Wire::Claude,
            "claude-sonnet-4-5",
            Some(Effort::Low),
            enabled(2_048),
        ),
        (
            Wire::Claude,
            "claude-sonnet-4-5",
            Some(Effort::Max),
            enabled(24_000),
        ),
        (
            Wire::Claude,
            "claude-opus-4-6",
            Some(Effort::High),
            adaptive,
        ),
        (Wire::Ollama, "qwen3:8b", None, json!({})),
        (
            Wire::Ollama,
            "qwen3:8b",
            Some(Effort::None),
            json!({"think": false}),
        ),
        (
            Wire::Ollama,
            "qwen3:8b",
            Some(Effort::High),
            json!({"think": true}),
        ),
        (
            Wire::Ollama,
            "gpt-oss:20b",
            Some(Effort::High),
            json!({"think": "high"}),
        ),
    ] {
        let server = Server::start([wire.text_answer("ok")]).await;
        let mut config = wire.config(&server.url);
        config.api_key_env = None;
        config.model = model.to_owned();
        config.effort = effort;
        let provider = build_provider(&config, RetryConfig::default(), None).unwrap();
        provider.chat("", &hi()).await.unwrap();
        let body = server.requests()[0].json();
        let fields = [
            "reasoning_effort",
            "reasoning",
            "thinking",
            "output_config",
            "think",
        ];
        let mut found = serde_json::Map::new();
        for field in fields {
            if let Some(value) = body.get(field) {
                found.insert(field.to_owned(), value.clone());
            }
        }
        assert_eq!(
            serde_json::Value::Object(found),
            expect,
            "{wire:?} {model} {effort:?}"
        );
    }
}

/// One connection serves consecutive requests, without a handshake per turn.
#[tokio::test]
async fn connections_are_reused() {
    for wire in WIRES {
        let server = Server::start(vec![wire.text_answer("ok"); 5]).await;
        let provider = wire.provider(&server.url, RetryConfig::default());
        for _ in 0..5 {
            provider.chat("", &hi()).await.unwrap();
        }
        let requests = server.requests();
        let connections: Vec<_> = requests.iter().map(|request| request.connection).collect();
        assert_eq!(connections, [0; 5], "{wire:?}");
    }
}

/// Proves LLM-1, LLM-7: a model without tool calls receives no tools.
#[tokio::test]
async fn tools_are_omitted_without_tool_use() {
    for wire in WIRES {
        let server = Server::start(vec![wire.text_answer("ok"); 2]).await;
        for tool_use in [None, Some(false)] {
            let mut config = wire.config(&server.url);
            config.api_key_env = None;
            config.tool_use = tool_use;
            let provider = build_provider(&config, RetryConfig::default(), None).unwrap();
            assert_eq!(provider.supports_tool_use(), tool_use.is_none());
            ask(&*provider, &hi(), None).await.0.unwrap();
        }
        let requests = server.requests();
        assert!(requests[0].json().get("tools").is_some(), "{wire:?}");
        let body = requests[1].json();
        assert_eq!(body.get("tools"), None, "{wire:?}");
        assert_eq!(body.get("tool_choice"), None, "{wire:?}");
    }
}
