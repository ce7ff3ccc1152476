//! The scripted provider: scenarios, expectations, faults.

use std::collections::BTreeMap;

use serde_json::json;
use tokio::time::{Duration, Instant};
use zeph_llm::scripted::{Scenario, ScriptedProvider};
use zeph_llm::{
    ChatRequest, ChatResponse, LlmErrorKind, LlmProvider, Message, MessagePart, ProviderConfig,
    ProviderKind, RetryConfig, Role, StopReason, StreamEvent, Usage, build_provider,
};

use crate::{ask, bash};

fn scripted(toml: &str) -> ScriptedProvider {
    ScriptedProvider::new("demo", Scenario::from_toml(toml, BTreeMap::new()).unwrap())
}

fn result(content: &str) -> Message {
    let part = MessagePart::ToolResult {
        tool_use_id: "a".to_owned(),
        content: content.to_owned(),
        is_error: false,
    };
    Message {
        role: Role::User,
        parts: vec![part],
    }
}

const TURN: &str = r#"
description = "Lists files, then reads what an earlier result named."
[vars]
dir = "/from/file"

[[steps]]
expect = { last_user_contains = "files", system_contains = "Zeph", tools_include = ["bash"], tools_exclude = "write", messages = 1, tool_choice = "auto" }
text = "Ich sehe nach: {{dir}}"
chunks = 4
reasoning = "Hm."
calls = [
  { tool = "bash", input = { command = "ls {{dir}}", deep = [{ path = "{{dir}}/x" }] } },
  { tool = "bash", id = "mine", input = "no json" },
]
usage = { input = 100, output = 7, cached = 90 }

[[steps]]
expect = { tool_result_contains = ["id=", "{{dir}}"], tool_result_excludes = "secret" }
capture = { id = 'id=(\w+)' }
text = "Found {{id}}."
repeat = 2

[[steps]]
text = "Still {{id}}."
stop = "max_tokens"
"#;

/// Proves LLM-9.
#[tokio::test]
async fn scenario_is_replayed_step_by_step() {
    let vars = BTreeMap::from([("dir".to_owned(), "/tmp/d".to_owned())]);
    let provider = ScriptedProvider::new("demo", Scenario::from_toml(TURN, vars).unwrap());
    assert_eq!((provider.name(), provider.model()), ("demo", "scripted"));
    let mut messages = vec![Message::user("Which files?")];
    let (response, events) = ask(&provider, &messages, None).await;
    let pieces: Vec<&StreamEvent> = events
        .iter()
        .filter(|event| matches!(event, StreamEvent::TextDelta(_)))
        .collect();
    assert_eq!(pieces.len(), 4);
    let response = response.unwrap();
    assert_eq!(
        response.usage(),
        Usage {
            input_tokens: 100,
            output_tokens: 7,
            cached_tokens: 90,
            cache_write_tokens: 0
        }
    );
    let message = response.into_message();
    assert_eq!(message.text(), "Ich sehe nach: /tmp/d");
    let calls: Vec<_> = message
        .tool_uses()
        .map(|call| (call.id.clone(), call.input.clone()))
        .collect();
    let input = json!({"command": "ls /tmp/d", "deep": [{"path": "/tmp/d/x"}]});
    assert_eq!(
        calls,
        [
            ("call_1".to_owned(), input),
            ("mine".to_owned(), json!("no json"))
        ]
    );
    messages.push(message);
    messages.push(result("id=q7 in /tmp/d"));
    for _ in 0..2 {
        let (response, _) = ask(&provider, &messages, None).await;
        assert_eq!(response.unwrap().into_message().text(), "Found q7.");
    }
    match ask(&provider, &messages, None).await.0.unwrap() {
        ChatResponse::Text { parts, stop, .. } => {
            assert_eq!(
                parts,
                [MessagePart::Text {
                    text: "Still q7.".to_owned()
                }]
            );
            assert_eq!(stop, StopReason::MaxTokens);
        }
        other => panic!("{other:?}"),
    }
    let error = ask(&provider, &messages, None).await.0.unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Scenario);
    assert!(
        error
            .message
            .contains("no step left: all 3 steps were used"),
        "{error}"
    );
    assert!(error.message.contains("id=q7"), "{error}");
}

/// Proves LLM-9: a failed expectation reports the expected and the actual value, and does not consume the
/// step.
#[tokio::test]
async fn failed_expectation_reports_both_values() {
    for (expect, message) in [
        (
            "last_user_contains = 'files'",
            "step 1 of 1: `last_user_contains`: expected \"files\", got \"What?\"",
        ),
        (
            "tool_result_contains = 'x'",
            "`tool_result_contains`: expected \"x\", got \"Cargo.toml\"",
        ),
        (
            "tool_result_excludes = 'Cargo'",
            "`tool_result_excludes`: \"Cargo\" is in \"Cargo.toml\"",
        ),
        (
            "system_contains = ['Zeph', 'y']",
            "`system_contains`: expected \"y\", got \"You are Zeph.\"",
        ),
        (
            "tools_include = ['bash', 'read']",
            "`tools_include`: expected \"read\", got [\"bash\"]",
        ),
        (
            "tools_exclude = 'bash'",
            "`tools_exclude`: \"bash\" is available",
        ),
        ("messages = 7", "`messages`: expected 7, got 2"),
        (
            "tool_choice = 'none'",
            "`tool_choice`: expected None, got Auto",
        ),
    ] {
        let provider = scripted(&format!("[[steps]]\nexpect = {{ {expect} }}\ntext = 'a'"));
        let messages = [Message::user("What?"), result("Cargo.toml")];
        for _ in 0..2 {
            let error = ask(&provider, &messages, None).await.0.unwrap_err();
            assert_eq!(error.kind, LlmErrorKind::Scenario);
            assert!(error.message.contains(message), "{message} in {error}");
        }
    }
    let provider = scripted("[[steps]]\ncapture = { id = 'id=(.)' }\ntext = 'a'");
    let error = ask(&provider, &[Message::user("What?")], None)
        .await
        .0
        .unwrap_err();
    assert!(
        error
            .message
            .contains("`capture.id`: expected a match of \"id=(.)\", got \"What?\""),
        "{error}"
    );
    let provider = scripted("[[steps]]\nexpect = { tool_result_contains = 'x' }\ntext = 'a'");
    let error = ask(&provider, &[Message::user("What?")], None)
        .await
        .0
        .unwrap_err();
    assert!(error.message.contains("got nothing of the kind"), "{error}");
}

/// Proves LLM-9: the last request of a capped turn (D-17 of the settled readings) can be asserted.
#[tokio::test]
async fn tool_choice_can_be_asserted() {
    let provider = scripted(
        "[[steps]]\nexpect = { tool_choice = 'none', tools_include = 'bash' }\ntext = 'a'",
    );
    let tools = bash();
    let messages = [Message::user("Hi")];
    let request = ChatRequest {
        tools: &tools,
        ..ChatRequest::alone("", &messages)
    };
    provider.chat_with_tools(request).await.unwrap();
}

/// Generated ids differ from all ids of the history. Proves LLM-9.
#[tokio::test]
async fn generated_ids_are_new_in_the_history() {
    let scenario = "[[steps]]\ncalls = [{ tool = 'bash' }]";
    let mut messages = vec![Message::user("Hi")];
    for expect in ["call_1", "call_2"] {
        let response = ask(&scripted(scenario), &messages, None).await.0.unwrap();
        assert_eq!(response.tool_uses().next().unwrap().id, expect);
        messages.push(response.into_message());
    }
}

/// Proves LLM-9.
#[test]
fn scenario_mistakes_are_reported_with_their_place() {
    for (toml, expect) in [
        (
            "[[steps]]\ntext = 'a'\ntxt = 'b'",
            vec!["line 3", "unknown field `txt`"],
        ),
        (
            "[[steps]]\ntext = 'a'\nexpect = { user = 'b' }",
            vec!["line 3", "unknown field `user`"],
        ),
        (
            "[[steps]]\nfault = 'flood'",
            vec!["line 2", "unknown variant `flood`"],
        ),
        (
            "[[steps]]\ntext = 'a'\ncapture = { x = '(' }",
            vec!["line 3", "unclosed group"],
        ),
        (
            "[[steps]]\ntext = 'a'\ncapture = { x = 'a' }",
            vec!["line 3", "exactly one group"],
        ),
        ("steps = []", vec!["no `steps`"]),
        (
            "[[steps]]\ntext = 'a'\n[[steps]]\nrepeat = 2",
            vec!["step 2: one of `text`"],
        ),
        (
            "[[steps]]\ntext = 'a'\nfault = 'auth'",
            vec!["step 1: a step with `fault = \"auth\"`"],
        ),
        (
            "[[steps]]\ntext = 'a'\nchunks = 0",
            vec!["`chunks` and `repeat`"],
        ),
        (
            "[[steps]]\ntext = 'a'\nstop = 'tool_use'",
            vec!["needs `calls`"],
        ),
        ("[[steps]]\ntext = '{{who}}'", vec!["step 1: `{{who}}`"]),
        (
            "[[steps]]\ncalls = [{ tool = 'x', input = { a = ['{{who}}'] } }]",
            vec!["step 1: `{{who}}`"],
        ),
        (
            "[[steps]]\ntext = '{{x}}'\n[[steps]]\ncapture = { x = '(a)' }\ntext = 'b'",
            vec!["step 1: `{{x}}`"],
        ),
    ] {
        let message = Scenario::from_toml(toml, BTreeMap::new()).unwrap_err();
        for part in expect {
            assert!(message.contains(part), "{toml}: {part:?} in {message}");
        }
    }
    let message =
        Scenario::from_json("{\"steps\":[\n{\"txt\":\"b\"}]}", BTreeMap::new()).unwrap_err();
    assert!(
        message.contains("unknown field `txt`") && message.contains("line 2"),
        "{message}"
    );
}

/// Proves LLM-9: files in both formats, by extension, through the configuration.
#[tokio::test]
async fn scenarios_come_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let config = |file: &str| ProviderConfig {
        context_window: Some(1000),
        scenario: Some(dir.path().join(file)),
        ..ProviderConfig::new("demo", ProviderKind::Scripted)
    };
    std::fs::write(dir.path().join("a.toml"), "[[steps]]\ntext = 'toml'").unwrap();
    std::fs::write(
        dir.path().join("a.json"),
        r#"{"steps": [{"text": "json"}]}"#,
    )
    .unwrap();
    for kind in ["toml", "json"] {
        let provider =
            build_provider(&config(&format!("a.{kind}")), RetryConfig::default(), None).unwrap();
        assert_eq!(
            provider.chat("", &[Message::user("Hi")]).await.unwrap(),
            kind
        );
        assert_eq!(provider.context_window(), 1000);
    }
    let error = build_provider(&config("none.toml"), RetryConfig::default(), None).unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Scenario);
    assert!(
        error.message.contains("none.toml") && error.message.contains("cannot be read"),
        "{error}"
    );
}

/// Proves LLM-9.
#[tokio::test(start_paused = true)]
async fn delays_apply_before_and_within_a_response() {
    let provider =
        scripted("[[steps]]\ndelay_ms = 5000\nchunk_delay_ms = 100\nchunks = 3\ntext = 'abc'");
    let began = Instant::now();
    assert_eq!(
        provider.chat("", &[Message::user("Hi")]).await.unwrap(),
        "abc"
    );
    assert_eq!(began.elapsed(), Duration::from_millis(5200));
}
