//! The behaviour that all providers share, tested for each of them with the same responses.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use zeph_llm::scripted::{Scenario, ScriptedProvider};
use zeph_llm::{
    ChatResponse, LlmErrorKind, LlmProvider, Message, MessagePart, RetryConfig, StopReason,
    StreamEvent, Usage,
};

use crate::server::{End, Reply, Server};
use crate::wire::{Said, Stop, WIRES, Wire};
use crate::{ask, shown_text};

/// A response or a failure that each provider must produce.
#[derive(Clone, Copy, Debug)]
enum Case {
    Text,
    ReasonedText,
    Call,
    TextAndCalls,
    MaxTokens,
    Fault(LlmErrorKind),
}

/// The provider under test, and the values that must live as long.
struct Subject {
    provider: Arc<dyn LlmProvider>,
    context_window: usize,
    _server: Option<Server>,
}

async fn remote(wire: Wire, case: Case) -> Subject {
    let counted = |said: &[Said<'_>], stop| wire.reply(&[said, &[Said::End(stop)]].concat());
    let reply = match case {
        Case::Text => counted(&[Said::Text("Hello, "), Said::Text("wörld")], Stop::Done),
        Case::ReasonedText => counted(&[Said::Reasoning("Hm."), Said::Text("Yes")], Stop::Done),
        Case::Call => counted(
            &[
                Said::Call("a", "bash"),
                Said::Arguments("{\"command\":\"ls\"}"),
            ],
            Stop::Calls,
        ),
        Case::TextAndCalls => counted(
            &[
                Said::Text("I look."),
                Said::Call("a", "bash"),
                Said::Arguments("{\"command\":\"ls\"}"),
                Said::Call("b", "read"),
            ],
            Stop::Calls,
        ),
        Case::MaxTokens => counted(&[Said::Text("Hel")], Stop::Length),
        Case::Fault(LlmErrorKind::StreamCut) => wire
            .reply(&[
                Said::Text("Hel"),
                Said::Call("a", "bash"),
                Said::Arguments("{\"comm"),
            ])
            .end(End::Abort),
        Case::Fault(LlmErrorKind::Protocol) => wire.stream("<html>"),
        Case::Fault(kind) => {
            let (status, body) = wire.refusal(kind);
            Reply::status(status, body)
        }
    };
    let server = Server::start([reply]).await;
    let once = RetryConfig {
        max_attempts: Some(1),
        ..RetryConfig::default()
    };
    Subject {
        provider: wire.provider(&server.url, once),
        context_window: 50_000,
        _server: Some(server),
    }
}

fn scripted(case: Case) -> Subject {
    let usage = "usage = { input = 7, output = 5 }";
    let step = match case {
        Case::Text => format!("text = \"Hello, wörld\"\nchunks = 2\n{usage}"),
        Case::ReasonedText => format!("reasoning = \"Hm.\"\ntext = \"Yes\"\n{usage}"),
        Case::Call => {
            format!("calls = [{{ tool = \"bash\", input = {{ command = \"ls\" }} }}]\n{usage}")
        }
        Case::TextAndCalls => format!(
            "text = \"I look.\"\ncalls = [{{ tool = \"bash\", input = {{ command = \"ls\" }} }}, {{ tool = \"read\" }}]\n{usage}"
        ),
        Case::MaxTokens => format!("text = \"Hel\"\nstop = \"max_tokens\"\n{usage}"),
        Case::Fault(LlmErrorKind::StreamCut) => {
            "text = \"Hel\"\nfault = \"stream_cut\"\ncalls = [{ tool = \"bash\" }]".to_owned()
        }
        Case::Fault(kind) => format!(
            "fault = \"{}\"",
            match kind {
                LlmErrorKind::RateLimited => "rate_limited",
                LlmErrorKind::Server => "server",
                LlmErrorKind::Auth => "auth",
                LlmErrorKind::ContextOverflow => "context_overflow",
                LlmErrorKind::Protocol => "garbage",
                other => panic!("no fault for {other:?}"),
            }
        ),
    };
    let scenario = Scenario::from_toml(&format!("[[steps]]\n{step}"), BTreeMap::new()).unwrap();
    Subject {
        provider: Arc::new(ScriptedProvider::new("local", scenario)),
        context_window: 128_000,
        _server: None,
    }
}

async fn subjects(case: Case) -> Vec<Subject> {
    let mut subjects = vec![scripted(case)];
    for wire in WIRES {
        subjects.push(remote(wire, case).await);
    }
    subjects
}

const COUNTED: Usage = Usage {
    input_tokens: 7,
    output_tokens: 5,
    cached_tokens: 0,
    cache_write_tokens: 0,
};

fn part(text: &str) -> MessagePart {
    MessagePart::Text {
        text: text.to_owned(),
    }
}

/// Proves LLM-1, LLM-10.
#[tokio::test]
async fn text_is_streamed_and_returned_whole() {
    for subject in subjects(Case::Text).await {
        let (response, events) = ask(&*subject.provider, &[Message::user("Hi")], None).await;
        assert!(events.len() > 1, "it comes in pieces");
        assert_eq!(shown_text(&events), "Hello, wörld");
        let expect = ChatResponse::Text {
            parts: vec![part("Hello, wörld")],
            stop: StopReason::EndTurn,
            usage: COUNTED,
        };
        assert_eq!(response.unwrap(), expect);
        assert_eq!(subject.provider.name(), "local");
        assert!(subject.provider.supports_tool_use());
        assert_eq!(subject.provider.context_window(), subject.context_window);
    }
    for subject in subjects(Case::Text).await {
        let text = subject.provider.chat("", &[Message::user("Hi")]).await;
        assert_eq!(text.unwrap(), "Hello, wörld");
    }
}

/// Proves LLM-10.
#[tokio::test]
async fn reasoning_precedes_the_text_and_is_separate() {
    for subject in subjects(Case::ReasonedText).await {
        let (response, events) = ask(&*subject.provider, &[Message::user("Hi")], None).await;
        let reasoning = StreamEvent::ReasoningDelta("Hm.".to_owned());
        assert_eq!(
            events,
            [reasoning, StreamEvent::TextDelta("Yes".to_owned())]
        );
        let message = response.unwrap().into_message();
        assert_eq!(message.text(), "Yes");
        assert_eq!(message.parts.len(), 2);
    }
}

/// Proves LLM-1, LLM-4, LLM-10.
#[tokio::test]
async fn calls_are_announced_and_returned_in_order() {
    for subject in subjects(Case::Call).await {
        let (response, events) = ask(&*subject.provider, &[Message::user("Hi")], None).await;
        let expect = [
            StreamEvent::ToolUseStarted {
                name: "bash".to_owned(),
            },
            StreamEvent::ToolInputDelta("{\"command\":\"ls\"}".to_owned()),
        ];
        assert_eq!(events, expect);
        let response = response.unwrap();
        assert_eq!(response.usage(), COUNTED);
        let call = response.tool_uses().next().unwrap();
        assert_eq!(
            (call.name.as_str(), &call.input),
            ("bash", &json!({"command": "ls"}))
        );
        assert!(!call.id.is_empty());
    }
    for subject in subjects(Case::TextAndCalls).await {
        let (response, _) = ask(&*subject.provider, &[Message::user("Hi")], None).await;
        let message = response.unwrap().into_message();
        assert_eq!(message.parts[0], part("I look."));
        let names: Vec<&str> = message.tool_uses().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["bash", "read"]);
    }
}

/// Proves LLM-10.
#[tokio::test]
async fn output_limit_is_reported() {
    for subject in subjects(Case::MaxTokens).await {
        let (response, _) = ask(&*subject.provider, &[Message::user("Hi")], None).await;
        assert!(
            matches!(
                response,
                Ok(ChatResponse::Text {
                    stop: StopReason::MaxTokens,
                    ..
                })
            ),
            "{response:?}"
        );
    }
}

/// Proves LLM-5, LLM-10.
#[tokio::test]
async fn failures_have_their_class_and_provider_name() {
    for kind in [
        LlmErrorKind::RateLimited,
        LlmErrorKind::Server,
        LlmErrorKind::Auth,
        LlmErrorKind::ContextOverflow,
        LlmErrorKind::Protocol,
        LlmErrorKind::StreamCut,
    ] {
        for subject in subjects(Case::Fault(kind)).await {
            let (response, events) = ask(&*subject.provider, &[Message::user("Hi")], None).await;
            let error = response.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert_eq!(error.provider, "local");
            let cut = kind == LlmErrorKind::StreamCut;
            assert_eq!(shown_text(&events), if cut { "Hel" } else { "" });
        }
    }
}
