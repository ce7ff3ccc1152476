//! The ports of the MCP server: the tool system that it serves, and the client of one call.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_tools::{ToolDef, ToolResult};

/// The tool system that the server exposes. The binary implements it.
#[async_trait]
pub trait ToolHost: Send + Sync {
    /// Returns the tools that clients see, sorted by id.
    fn tools(&self) -> Vec<ToolDef>;

    /// Whether a call of this tool changes nothing. An unknown tool counts as one that changes something.
    fn is_read_only(&self, tool: &str) -> bool;

    /// Opens a conversation, and returns its id. Its calls share approvals, read files and long results.
    ///
    /// # Errors
    /// The reason why the conversation cannot be stored.
    async fn open_conversation(&self) -> Result<String, String>;

    /// Runs a call through the gates. `client` decides about questions, and receives the output of commands.
    async fn call(
        &self,
        call: ServedCall,
        client: Arc<dyn CallClient>,
        cancel: &CancellationToken,
    ) -> ToolResult;
}

/// The description of the server that clients show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The name of the program.
    pub name: String,
    /// The name for display.
    pub title: String,
    /// The version of the program.
    pub version: String,
    /// The instructions for the model of a client.
    pub instructions: String,
}

/// A call of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedCall {
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub params: Value,
    /// The conversation.
    pub conversation: String,
    /// The name and the version of the client, as it states them.
    pub caller: String,
}

/// The client of one call, as the tool system sees it.
#[async_trait]
pub trait CallClient: Send + Sync {
    /// Whether the user of the client can be asked.
    fn can_ask(&self) -> bool;

    /// Whether the user of the client can be asked while the call runs.
    fn can_ask_while_running(&self) -> bool;

    /// Asks the user of the client whether the call may run.
    async fn ask(&self, question: CallQuestion) -> CallDecision;

    /// Receives output of a running command. It neither blocks nor fails.
    fn output(&self, text: String);
}

/// A question about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallQuestion {
    /// The text for the user. It hides nothing.
    pub text: String,
    /// The calls that an approval for the session covers; `None` if only this call can be approved.
    pub session: Option<String>,
    /// The digest of the tool and its arguments.
    pub digest: [u8; 32],
    /// The digest of the file contents in the preview of a change.
    pub preview: Option<[u8; 32]>,
}

/// The decision of the user of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallDecision {
    /// This call may run.
    Once,
    /// This call and the calls that the question names may run until the conversation ends.
    Session,
    /// The call may not run, for this reason.
    Reject(String),
}
