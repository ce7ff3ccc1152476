//! Calls of tools that run only as a task (`taskSupport` in revision 2025-11-25): the server creates a task, and responds to
//! `tasks/result` when it has ended.
//!
//! The protocol library drops `taskSupport` from the list of tools. A server refuses an ordinary call of such a tool as an
//! unknown method, and does not run it, so the call is then sent again as a task. The official TypeScript library puts this
//! refusal into the text of a result.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{ClientRequest, CustomRequest, ServerResult};
use rmcp::service::PeerRequestOptions;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use zeph_tools::{ToolError, ToolErrorCategory};

use super::call::CANCEL_TIMEOUT;
use super::client::Link;
use super::running::Caller;
use crate::failure::About;

/// The revision that has such tools. The next one lets the server decide, for clients that declare an extension.
const REVISION: &str = "2025-11-25";
/// The start of a refusal as the text of a result.
const REFUSAL_TEXT: &str = "MCP error -32601:";

/// The outcome of a request.
type Outcome = Result<ServerResult, ToolError>;

impl Link {
    /// Whether the tool of a call with this outcome may run only as a task.
    pub(super) fn may_need_task(&self, outcome: &Outcome) -> bool {
        self.revision == REVISION
            && match outcome {
                Err(error) => error.category() == ToolErrorCategory::ToolNotFound,
                Ok(ServerResult::CallToolResult(result)) => {
                    let text = result.content.first().and_then(|first| first.as_text());
                    result.is_error == Some(true)
                        && text.is_some_and(|text| text.text.starts_with(REFUSAL_TEXT))
                }
                Ok(_) => false,
            }
    }

    /// Calls a tool as a task after its ordinary call had the outcome `refusal`, and waits for the result. The outcome remains
    /// if the server does not create a task.
    ///
    /// # Errors
    /// The failure of the task, which is cancelled.
    pub(super) async fn call_as_task(
        &self,
        about: About<'_>,
        arguments: Map<String, Value>,
        (limit, refusal): (Duration, Outcome),
        caller: &Arc<Caller>,
        cancel: &CancellationToken,
    ) -> Outcome {
        let began = Instant::now();
        let create = |_, _| {
            let tool = about.tool.unwrap_or_default();
            custom(
                "tools/call",
                json!({ "name": tool, "arguments": arguments, "task": {} }),
            )
        };
        let created = match self.request(about, create, limit, caller, cancel).await {
            Ok(created) => created,
            Err(error) if is_refusal(&error) => return refusal,
            Err(error) => return Err(error),
        };
        let ServerResult::CustomResult(task) = &created else {
            return Ok(created);
        };
        let Some(id) = task.0["task"]["taskId"].as_str() else {
            return Ok(created);
        };
        let task = json!({ "taskId": id });
        let result = |_, _| custom("tasks/result", task.clone());
        let limit = limit.saturating_sub(began.elapsed());
        let ended = self.request(about, result, limit, caller, cancel).await;
        if ended.is_err() {
            let request = custom("tasks/cancel", task.clone());
            let options = PeerRequestOptions::no_options();
            let sent = self.peer.send_cancellable_request(request, options);
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, sent).await;
        }
        ended
    }
}

fn custom(method: &str, params: Value) -> ClientRequest {
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

/// Whether the server refused the request itself.
fn is_refusal(error: &ToolError) -> bool {
    matches!(
        error.category(),
        ToolErrorCategory::ToolNotFound | ToolErrorCategory::InvalidParameters
    )
}
