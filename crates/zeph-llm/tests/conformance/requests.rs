//! What goes over the wire: paths, headers, bodies, connections.

use serde_json::json;
use zeph_llm::{Message, MessagePart, RetryConfig, Role, ToolUseRequest, build_provider};

use crate::server::{Server, text_answer};
use crate::{KEY, ask, config, provider};

/// Proves LLM-2 (D-31 of the settled readings: `base_url` with or without `/v1` or `/`).
#[tokio::test]
async fn base_url_with_and_without_v1_reach_the_same_path() {
    let server = Server::start(vec![text_answer("ok"); 4]).await;
    for suffix in ["", "/", "/v1", "/v1/"] {
        let provider = provider(&format!("{}{suffix}", server.url), RetryConfig::default());
        provider.chat("", &[Message::user("Hi")]).await.unwrap();
    }
    let requests = server.requests();
    let paths: Vec<&str> = requests
        .iter()
        .map(|request| request.path.as_str())
        .collect();
    assert_eq!(paths, ["/v1/chat/completions"; 4]);
}

/// Proves LLM-2, LLM-10.
#[tokio::test]
async fn headers_carry_the_key_only_when_there_is_one() {
    let server = Server::start(vec![text_answer("ok"); 2]).await;
    provider(&server.url, RetryConfig::default())
        .chat("", &[Message::user("Hi")])
        .await
        .unwrap();
    let mut keyless = config(&server.url);
    keyless.api_key_env = None;
    let keyless = build_provider(&keyless, RetryConfig::default(), None).unwrap();
    keyless.chat("", &[Message::user("Hi")]).await.unwrap();
    let requests = server.requests();
    assert_eq!(
        requests[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(requests[1].header("authorization"), None);
    for request in &requests {
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("accept"), Some("text/event-stream"));
        assert!(request.header("user-agent").unwrap().starts_with("zeph/"));
        assert_eq!(request.header("accept-encoding"), None);
    }
}

/// The body of a whole tool turn as the server gets it. Proves LLM-3, LLM-10.
#[tokio::test]
async fn the_body_of_a_tool_turn() {
    let server = Server::start([text_answer("ok")]).await;
    let call = ToolUseRequest {
        id: "a".to_owned(),
        name: "bash".to_owned(),
        input: json!({"command": "ls"}),
    };
    let result = MessagePart::ToolResult {
        tool_use_id: "a".to_owned(),
        content: "Cargo.toml".to_owned(),
        is_error: false,
    };
    let messages = [
        Message::user("List the files."),
        Message {
            role: Role::Assistant,
            parts: vec![MessagePart::ToolUse(call)],
        },
        Message {
            role: Role::User,
            parts: vec![result],
        },
    ];
    ask(
        &*provider(&server.url, RetryConfig::default()),
        &messages,
        None,
    )
    .await
    .0
    .unwrap();
    insta::assert_json_snapshot!(server.requests()[0].json());
}

/// One connection serves consecutive requests: no handshake per turn.
#[tokio::test]
async fn connections_are_used_again() {
    let server = Server::start(vec![text_answer("ok"); 5]).await;
    let provider = provider(&server.url, RetryConfig::default());
    for _ in 0..5 {
        provider.chat("", &[Message::user("Hi")]).await.unwrap();
    }
    let connections: Vec<usize> = server
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections, [0; 5]);
}
