//! The tool that reads a resource of a server. The user's `@SERVER:URI` calls it; models are not offered it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};
use zeph_tools::gate::ToolTarget;
use zeph_tools::{
    Annotations, Availability, CallContext, ExecutorResult, InvocationHint, Risk, ToolCall,
    ToolDef, ToolError,
};

use crate::connection::Caller;
use crate::failure::About;
use crate::result::rendered;
use crate::servers::McpServers;

/// The id of the tool. The id of a server's tool has a second `_`, so it cannot be equal.
pub const RESOURCE_TOOL: &str = "mcp_resource";

/// The definition of the tool.
pub(crate) fn definition() -> ToolDef {
    ToolDef {
        id: Cow::Borrowed(RESOURCE_TOOL),
        description: Cow::Borrowed("Reads a resource of an MCP server."),
        parameters: Arc::new(json!({
            "type": "object",
            "properties": {
                "server": { "type": "string", "description": "The name of the server." },
                "uri": { "type": "string", "description": "The address of the resource." },
            },
            "required": ["server", "uri"],
            "additionalProperties": false,
        })),
        invocation: InvocationHint::ToolCall,
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: true,
            risk: Risk::High,
        },
        aliases: &[],
        alias_defaults: &[],
        param_aliases: &[],
        content_params: &[],
        foreign: None,
        about: ToolTarget::Arguments,
        offered: Availability::NotNow,
        cache: zeph_tools::def::CachePolicy::default(),
    }
}

/// Reads the resource that a call names.
pub(crate) async fn read(
    servers: &McpServers,
    call: &ToolCall,
    cx: &CallContext,
) -> ExecutorResult {
    let text = |key: &str| call.params.get(key).and_then(Value::as_str);
    let (Some(server), Some(uri)) = (text("server"), text("uri")) else {
        return Err(ToolError::invalid("`server` and `uri` are required"));
    };
    tokio::select! {
        () = servers.settle(server) => {}
        () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
    }
    let (server, link) = servers.link(server)?;
    let about = About {
        server: &server.config.name,
        tool: Some(uri),
    };
    if !link.has_resources() {
        return Err(about.protocol("it has no resources").into());
    }
    let caller = Arc::new(Caller::of_call(&call.id, cx));
    let limit = server.config.call_timeout();
    let result = link
        .read_resource(about, uri, limit, &caller, &cx.cancel)
        .await?;
    let contents = result.get("contents").and_then(Value::as_array);
    let blocks: Vec<Value> = contents
        .into_iter()
        .flatten()
        .map(|resource| json!({ "type": "resource", "resource": resource }))
        .collect();
    let rendered = rendered(&json!({ "content": blocks }), cx.takes_images);
    Ok(Some(rendered.output))
}
