//! The file tools in another agent: the model sees their definitions, and their calls pass the gates.
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use zeph_tools::file::{FileExecutor, Sandbox};
use zeph_tools::serde_json::json;
use zeph_tools::{CallContext, Mode, Permissions, StackParts, ToolCall, ToolExecutor as _};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("zeph-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("a.txt"), "one\ntwo\n")?;

    // Files below this folder only, and reading only.
    let sandbox = Sandbox::new(std::slice::from_ref(&folder), &folder)?;
    let tools = StackParts::new()
        .with_executor("file", FileExecutor::new(Arc::new(sandbox)))
        .with_permissions(Permissions::of(Mode::Plan))
        .build()?;
    let offered = tools.tool_definitions();
    println!(
        "read is offered: {}",
        offered.iter().any(|def| def.id == "read")
    );

    let calls = [
        ("grep", json!({"pattern": "two"})),
        ("read", json!({"path": "../../etc/passwd"})),
        ("write", json!({"path": "b.txt", "content": "three\n"})),
    ];
    for (tool, params) in calls {
        let call = ToolCall::new("call_1", tool, params, "session_1");
        match tools
            .execute_tool_call(&call, &CallContext::headless())
            .await
        {
            Ok(output) => println!(
                "{tool}: {}",
                output.unwrap_or_default().summary.contains("two")
            ),
            Err(error) => println!("{tool}: {:?}", error.category()),
        }
    }
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

// Prints:
// read is offered: true
// grep: true
// read: PolicyBlocked
// write: PolicyBlocked
