//! The port to servers whose tools are used, as far as a conversation may ask of them.

/// Servers that bring tools of their own.
pub trait ToolServers: Send + Sync {
    /// Each of them: how it stands, and which of its tools are out.
    fn listing(&self) -> String;

    /// What of a server's tools is to be agreed to, for a person to read.
    ///
    /// # Errors
    /// Why nothing can be shown.
    fn propose(&self, server: &str) -> Result<String, String>;

    /// A person agrees to what was shown last of this server.
    ///
    /// # Errors
    /// Why not.
    fn agree(&self, server: &str) -> Result<String, String>;
}
