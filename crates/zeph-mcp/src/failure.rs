//! The subject of a failure, and the failures that are independent of the protocol.

use std::time::Duration;

use zeph_tools::McpError;

/// The server and the tool of a failure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) server: &'a str,
    /// The tool, if a call failed.
    pub(crate) tool: Option<&'a str>,
}

impl About<'_> {
    pub(crate) fn connection(self, message: impl Into<String>) -> McpError {
        McpError::Connection {
            server: self.server.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn timeout(self, limit: Duration) -> McpError {
        McpError::Timeout {
            server: self.server.to_owned(),
            limit,
        }
    }
}
