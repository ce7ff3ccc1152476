//! A tool in 20 lines, with the checks and gates of the tool system.
#![allow(clippy::print_stdout)]

use zeph_tools::{Annotations, CallContext, FunctionTool, StackParts, ToolCall, ToolExecutor as _};
use zeph_tools::{schemars, serde, serde_json::json};

/// The parameters are the schema.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "zeph_tools::serde")]
#[schemars(crate = "zeph_tools::schemars")]
struct Params {
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let work = |params: Params| async move { Ok(format!("Hello, {}!", params.name)) };
    let greet = FunctionTool::new("greet", "Greets someone.", Annotations::READ, work);
    let tools = StackParts::new().with_tool(greet).build()?;
    let call = ToolCall::new("call_1", "greet", json!({"name": "Ada"}), "session_1");
    let output = tools
        .execute_tool_call(&call, &CallContext::headless())
        .await?;
    println!("{}", output.unwrap_or_default().summary);
    Ok(())
}

// Prints:
// Hello, Ada!
