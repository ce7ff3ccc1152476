//! An MCP server with one tool, on standard input and output.
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use zeph_mcp::serve::{CallClient, McpServer, ServedCall, ServerIdentity, ToolHost};
use zeph_mcp::{CancellationToken, async_trait};
use zeph_tools::{Annotations, CallContext, FunctionTool, LayeredExecutor, StackParts, ToolCall};
use zeph_tools::{ToolDef, ToolExecutor as _, ToolResult, schemars, serde};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "zeph_tools::serde")]
#[schemars(crate = "zeph_tools::schemars")]
struct Params {
    name: String,
}

struct Host(LayeredExecutor);

#[async_trait]
impl ToolHost for Host {
    fn tools(&self) -> Vec<ToolDef> {
        self.0.tool_definitions()
    }

    fn is_read_only(&self, _tool: &str) -> bool {
        true
    }

    async fn open_conversation(&self) -> Result<String, String> {
        Ok("conversation".to_owned())
    }

    async fn call(
        &self,
        call: ServedCall,
        _client: Arc<dyn CallClient>,
        _cancel: &CancellationToken,
    ) -> ToolResult {
        let call = ToolCall::new("call_1", call.tool, call.params, call.conversation);
        let output = self
            .0
            .execute_tool_call(&call, &CallContext::headless())
            .await?;
        Ok(output.unwrap_or_default())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let work = |params: Params| async move { Ok(format!("Hello, {}!", params.name)) };
    let greet = FunctionTool::new("greet", "Greets someone.", Annotations::READ, work);
    let host = Host(StackParts::new().with_tool(greet).build()?);
    let identity = ServerIdentity {
        name: "greeter".to_owned(),
        title: "Greeter".to_owned(),
        version: "1.0.0".to_owned(),
        instructions: "Greet each user once.".to_owned(),
    };
    let server = McpServer::new(Arc::new(host), identity, 4);
    Ok(server.serve_stdio(CancellationToken::new()).await?)
}

// Reads:
// {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
// {"jsonrpc":"2.0","method":"notifications/initialized"}
// {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}
// Prints:
// {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"greeter","title":"Greeter","version":"1.0.0"},"instructions":"Greet each user once."}}
// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Hello, Ada!"}],"isError":false}}
