//! The tools of servers as an executor, which the gates precede.

use std::sync::Arc;

use serde_json::Value;
use zeph_tools::EffectiveTrust;
use zeph_tools::{
    CallContext, ExecutorResult, McpError, McpErrorCode, SkillEnv, ToolCall, ToolDef, ToolError,
    ToolExecutor, TrustLevel,
};

use crate::connection::Caller;
use crate::failure::About;
use crate::resource_tool::{self, RESOURCE_TOOL, read};
use crate::result::rendered;
use crate::sanitize::line;
use crate::servers::McpServers;
use crate::tool::PREFIX;

/// The most characters of the first line of a failure.
const MAX_REASON_CHARS: usize = 200;

/// An executor of the tools of all servers.
pub struct McpExecutor {
    servers: Arc<McpServers>,
    trust: EffectiveTrust,
}

impl McpExecutor {
    /// An executor of the tools of `servers`.
    #[must_use]
    pub fn new(servers: Arc<McpServers>) -> Self {
        Self {
            servers,
            trust: EffectiveTrust::default(),
        }
    }
}

impl ToolExecutor for McpExecutor {
    async fn execute_tool_call(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        if !call.tool.starts_with(PREFIX) {
            return Ok(None);
        }
        if call.tool == RESOURCE_TOOL {
            return read(&self.servers, call, cx).await;
        }
        tokio::select! {
            () = self.servers.settle_tool(&call.tool) => {}
            () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
        }
        let Some((server, link, known)) = self.servers.find(&call.tool)? else {
            // The server has removed the tool since the tool list was sent to the model.
            return Err(McpError::ToolCall {
                server: "of that name".to_owned(),
                tool: call.tool.clone(),
                code: McpErrorCode::NotFound,
                message: "the server no longer provides this tool".to_owned(),
                retry_after: None,
            }
            .into());
        };
        let Value::Object(arguments) = &call.params else {
            return Err(ToolError::invalid("the arguments are not an object"));
        };
        let about = About {
            server: &server.config.name,
            tool: Some(&known.tool.name),
        };
        let limit = server.config.call_timeout();
        let caller = Arc::new(Caller::of_call(&call.id, cx));
        let result = link
            .call(about, arguments.clone(), limit, &caller, &cx.cancel)
            .await?;
        let rendered = rendered(&result, cx.takes_images);
        if !rendered.failed {
            return Ok(Some(rendered.output));
        }
        let error = McpError::ToolCall {
            server: server.config.name.clone(),
            tool: line(&known.tool.name, MAX_REASON_CHARS),
            code: McpErrorCode::ServerError,
            message: "the tool reports an error".to_owned(),
            retry_after: None,
        };
        Err(ToolError::Explained {
            category: error.code().category(),
            message: error.to_string(),
            output: Box::new(rendered.output),
        })
    }

    async fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        self.execute_tool_call(call, cx).await
    }

    fn tool_definitions(&self) -> Vec<ToolDef> {
        let mut definitions = self.servers.definitions();
        if self.servers.may_have_resources() {
            definitions.push(resource_tool::definition());
        }
        definitions
    }

    fn set_skill_env(&self, _env: Option<SkillEnv>) {}

    fn set_effective_trust(&self, trust: TrustLevel) {
        self.trust.set(trust);
    }

    fn is_tool_retryable(&self, tool_id: &str) -> bool {
        let found = self.servers.owner(tool_id);
        found.is_some_and(|(_, known)| known.tool.def.annotations.idempotent)
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        if call.tool == RESOURCE_TOOL {
            return true;
        }
        let found = self.servers.owner(&call.tool);
        let nature = found.map(|(_, known)| known.tool.def.annotations);
        nature.is_some_and(|nature| self.trust.requires_confirmation(&nature))
    }
}
