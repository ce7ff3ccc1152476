//! Turns of an agent with tools, hooks and a channel of this process.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_core::{
    AgentBuilder, AgentConfig, Channel, CheckIn, CheckInAnswer, HookReply, LoopbackEvent,
    SessionHooks, TurnEnd, UserAnswer,
};
use zeph_llm::MessagePart;
use zeph_llm::scripted::{Scenario, ScriptedProvider};
use zeph_memory::{Store, Synchronous};
use zeph_tools::question::{ServerAnswer, ServerQuestion};
use zeph_tools::{Annotations, Confirmation, FunctionTool, ResultFormat, StackParts};

/// No parameters.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// The builder of an agent in `folder`, whose model replays `steps`.
async fn builder(folder: &tempfile::TempDir, steps: &str, tools: StackParts) -> AgentBuilder {
    let file = folder.path().join("zeph.db");
    let store = Store::open(&file, Synchronous::Normal).await.unwrap();
    store.ensure_session("s1", folder.path()).await.unwrap();
    let scenario = Scenario::from_toml(steps, BTreeMap::new()).unwrap();
    let model = Arc::new(ScriptedProvider::new("p", scenario));
    AgentBuilder::new(model, tools.build().unwrap(), &store, "s1", folder.path())
}

/// Proves ERR-5: the time of a result is that of its call, not of all concurrent calls.
#[tokio::test]
async fn time_of_a_result_is_that_of_its_call() {
    let steps = "[[steps]]\ncalls = [{ tool = \"slow\" }, { tool = \"quick\" }]\n\
        [[steps]]\ntext = \"Done.\"\n";
    let slow = |_: Nothing| async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok("waited".to_owned())
    };
    let quick = |_: Nothing| async { Ok("done".to_owned()) };
    let tools = StackParts::new()
        .with_tool(FunctionTool::new("slow", "Waits.", Annotations::READ, slow))
        .with_tool(FunctionTool::new(
            "quick",
            "Ends.",
            Annotations::READ,
            quick,
        ));
    let folder = tempfile::tempdir().unwrap();
    let mut builder = builder(&folder, steps, tools).await;
    builder.result_format = ResultFormat::Json;
    let mut agent = builder.build().await.unwrap();
    agent.run_turn("go", &CancellationToken::new()).await;
    let parts = agent.messages().iter().flat_map(|message| &message.parts);
    let times: Vec<u64> = parts
        .filter_map(|part| match part {
            MessagePart::ToolResult { content, .. } => {
                let form: Value = serde_json::from_str(content).unwrap();
                form["metadata"]["execution_time_ms"].as_u64()
            }
            _ => None,
        })
        .collect();
    assert_eq!(times.len(), 2, "{times:?}");
    assert!(times[1] < times[0], "{times:?}");
}

/// Proves CTX-1, CTX-3, AGT-4: if the references to evicted results leave the window too full, a
/// summary follows.
#[tokio::test]
async fn summary_follows_an_eviction_that_frees_too_little() {
    let words = "lorem ends, so it ";
    let calls = "{ tool = \"look\" }, ".repeat(80);
    let steps = format!(
        "[[steps]]\ncalls = [{calls}]\n[[steps]]\ntext = \"Seen.\"\n\
         [[steps]]\ntext = \"The notes.\"\n[[steps]]\ntext = \"Done.\"\n"
    );
    let look = move |_: Nothing| async move { Ok(words.repeat(35)) };
    let look = FunctionTool::new("look", "Looks.", Annotations::READ, look);
    let folder = tempfile::tempdir().unwrap();
    let builder = builder(&folder, &steps, StackParts::new().with_tool(look)).await;
    let builder = builder.with_config(AgentConfig {
        context_budget_tokens: Some(20_000),
        max_calls_per_iteration: 80,
        ..AgentConfig::default()
    });
    let mut agent = builder.build().await.unwrap();
    let cancel = CancellationToken::new();
    // The results take about 14,200 tokens, the references to them 4600, the second prompt 13,600.
    assert_eq!(agent.run_turn("look", &cancel).await.text, "Seen.");
    let outcome = agent.run_turn(&words.repeat(2800), &cancel).await;
    assert_eq!(outcome.end, TurnEnd::Done, "{outcome:?}");
    assert_eq!(outcome.text, "Done.");
}

/// A channel with prompts that the user submitted during the turn.
struct Submitted(Mutex<VecDeque<String>>);

#[async_trait]
impl Channel for Submitted {
    fn emit(&self, _event: LoopbackEvent) {}
    fn can_ask(&self) -> bool {
        false
    }
    fn take_prompt(&self) -> Option<String> {
        self.0.lock().unwrap().pop_front()
    }
    fn return_prompt(&self, text: String) {
        self.0.lock().unwrap().push_front(text);
    }
    async fn confirm(&self, _call: &str, _question: &Confirmation, _params: &Value) -> UserAnswer {
        UserAnswer::No(None)
    }
    async fn check_in(&self, _question: &CheckIn) -> CheckInAnswer {
        CheckInAnswer::Stop
    }
    async fn ask_for_server(&self, _question: &ServerQuestion) -> ServerAnswer {
        ServerAnswer::Decline
    }
}

/// A hook during which the user interrupts the turn, if its prompt is `second`.
struct Interrupted;

#[async_trait]
impl SessionHooks for Interrupted {
    async fn session_start(&self, _session: &str, _cancel: &CancellationToken) -> HookReply {
        HookReply::default()
    }
    async fn prompt(&self, _session: &str, prompt: &str, cancel: &CancellationToken) -> HookReply {
        if prompt == "second" {
            cancel.cancel();
        }
        HookReply::default()
    }
    async fn turn_end(&self, _session: &str, _prompt: &str, _result: Value) -> HookReply {
        HookReply::default()
    }
}

/// Proves CLI-4d: no typed text is lost if the turn is interrupted during the hook of a submitted
/// prompt.
#[tokio::test]
async fn prompt_of_an_interrupted_hook_returns_to_the_queue() {
    let prompts = ["second", "third"].map(str::to_owned);
    let channel = Arc::new(Submitted(Mutex::new(prompts.clone().into())));
    let folder = tempfile::tempdir().unwrap();
    let steps = "[[steps]]\ntext = \"Never said.\"\n";
    let mut builder = builder(&folder, steps, StackParts::new()).await;
    builder.channel = Arc::clone(&channel) as _;
    builder.hooks = Some(Arc::new(Interrupted));
    let mut agent = builder.build().await.unwrap();
    let outcome = agent.run_turn("first", &CancellationToken::new()).await;
    assert_eq!(outcome.end, TurnEnd::Cancelled);
    assert_eq!(*channel.0.lock().unwrap(), prompts);
    assert_eq!(agent.messages().len(), 1);
}
