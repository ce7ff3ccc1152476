//! The port to MCP servers, limited to the functions that a conversation needs.

/// The MCP servers.
pub trait ToolServers: Send + Sync {
    /// A list of the servers with their state and their unavailable tools.
    fn listing(&self) -> String;

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
}
