//! A wrong argument: the call is refused before the function runs, and the error helps the model to correct it.
#![allow(clippy::print_stdout)]

use zeph_tools::{Annotations, CallContext, FunctionTool, StackParts, ToolCall, ToolExecutor as _};
use zeph_tools::{format_for_llm, schemars, serde, serde_json::json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "zeph_tools::serde")]
#[schemars(crate = "zeph_tools::schemars")]
struct Params {
    city: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let work = |params: Params| async move { Ok(format!("rain in {}", params.city)) };
    let weather = FunctionTool::new("weather", "Returns the weather.", Annotations::READ, work);
    let tools = StackParts::new().with_tool(weather).build()?;
    let call = ToolCall::new("call_1", "weather", json!({"town": "Oslo"}), "session_1");
    let context = CallContext::headless();
    if let Err(error) = tools.execute_tool_call(&call, &context).await {
        println!("{}", format_for_llm(&error));
    }
    Ok(())
}

// Prints:
// [tool_error]
// category: invalid_parameters
// error: arguments of weather: `/city` is missing: expects string; `/town` is not a known field; known: city
// suggestion: Correct the arguments and call again.
// retryable: false
