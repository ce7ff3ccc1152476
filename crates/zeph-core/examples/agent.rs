//! An agent of 60 lines: a model, a tool, a stored conversation, and events.
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use zeph_core::{AgentBuilder, CancellationToken, EventChannel, LoopbackEvent};
use zeph_llm::scripted::{Scenario, ScriptedProvider};
use zeph_memory::{SqliteAudit, Store, Synchronous};
use zeph_tools::{Annotations, FunctionTool, StackParts, schemars, serde};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "zeph_tools::serde")]
#[schemars(crate = "zeph_tools::schemars")]
struct Params {
    city: String,
}

/// The model. With a server, it is `zeph_llm::build_provider(…)`.
const SCENARIO: &str = r#"
[[steps]]
text = "I check the weather."
calls = [{ tool = "weather", input = { city = "Oslo" } }]
[[steps]]
text = "Take an umbrella."
"#;

fn show(event: LoopbackEvent) {
    match event {
        LoopbackEvent::ToolStarted { tool, params, .. } => println!("call: {tool} {params}"),
        LoopbackEvent::ToolFinished { display, .. } => println!("result: {display}"),
        _ => {}
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("zeph-agent-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let store = Store::open(&folder.join("agent.db"), Synchronous::Normal).await?;
    store.ensure_session("s1", &folder).await?;

    let work = |params: Params| async move { Ok(format!("rain in {}", params.city)) };
    let weather = FunctionTool::new("weather", "Returns the weather.", Annotations::READ, work);
    let tools = StackParts::new()
        .with_tool(weather)
        .with_audit(vec![Arc::new(SqliteAudit::new(store.clone()))], true)
        .build()?;
    let model = ScriptedProvider::new("script", Scenario::from_toml(SCENARIO, Default::default())?);
    let mut agent = AgentBuilder::new(Arc::new(model), tools, &store, "s1", &folder)
        .with_channel(EventChannel::new(show))
        .with_instructions("You know the weather.")
        .build()
        .await?;

    let outcome = agent
        .run_turn("Do I need an umbrella?", &CancellationToken::new())
        .await;
    println!("response: {}", outcome.text);
    println!("stored messages: {}", store.messages("s1").await?.len());
    store.close().await?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

// Prints:
// call: weather {"city":"Oslo"}
// result: rain in Oslo
// response: Take an umbrella.
// stored messages: 4
