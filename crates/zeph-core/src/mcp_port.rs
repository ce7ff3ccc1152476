//! The port to MCP servers, limited to the functions that a conversation needs.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use zeph_tools::EventSink;
use zeph_tools::question::QuestionPort;

/// The port to the MCP servers of the program.
#[async_trait]
pub trait ToolServers: Send + Sync {
    /// A list of the servers with their state and their unavailable tools.
    fn listing(&self) -> String;

    /// Waits until every server is connected or has failed, at most for the configured time.
    async fn wait(&self);

    /// Messages for the user that were not returned before: unavailable servers, and tools that wait for approval.
    fn new_notices(&self) -> Vec<String>;

    /// Returns the tools of a server that need an approval, as a text for the user.
    ///
    /// # Errors
    /// The reason why there is nothing to approve.
    fn propose(&self, server: &str) -> Result<String, String>;

    /// Approves the tools of this server that were shown last.
    ///
    /// # Errors
    /// The reason why they are not approved.
    fn agree(&self, server: &str) -> Result<String, String>;

    /// Whether a server has this name.
    fn has_server(&self, name: &str) -> bool;

    /// The id of the tool that reads a resource by `server` and `uri`.
    fn resource_tool(&self) -> &str;

    /// The slash commands of the servers' prompts, with their descriptions.
    fn prompts(&self) -> Vec<(String, String)>;

    /// The text of a server's prompt. `arguments` is the rest of the command. `user` receives notices, and answers questions
    /// if that is possible.
    ///
    /// # Errors
    /// The prompt does not exist, an argument is missing, or the server fails.
    async fn prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: &str,
        user: (Arc<dyn EventSink>, Option<Arc<dyn QuestionPort>>),
        cancel: &CancellationToken,
    ) -> Result<String, String>;
}
