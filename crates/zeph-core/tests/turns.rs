//! Turns of an agent with tools of this process.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_core::AgentBuilder;
use zeph_llm::MessagePart;
use zeph_llm::scripted::{Scenario, ScriptedProvider};
use zeph_memory::{Store, Synchronous};
use zeph_tools::{Annotations, FunctionTool, ResultFormat, StackParts};

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
