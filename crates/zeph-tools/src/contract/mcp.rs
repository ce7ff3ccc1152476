//! The failures of tools of MCP servers, in the taxonomy of all tools.

use std::time::Duration;

use serde::Serialize;

use crate::category::ToolErrorCategory;
use crate::error::ToolError;

/// The kind of a failure of an MCP server or of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum McpErrorCode {
    /// The connection failed, or the time limit was exceeded.
    Transient,
    /// Too many requests.
    RateLimited,
    /// The arguments do not fit.
    InvalidInput,
    /// The server requires another identity.
    AuthFailure,
    /// The server failed.
    ServerError,
    /// The server, or the tool on it, does not exist.
    NotFound,
    /// A gate refused.
    PolicyBlocked,
}

impl McpErrorCode {
    /// All codes.
    pub const ALL: [Self; 7] = [
        Self::Transient,
        Self::RateLimited,
        Self::InvalidInput,
        Self::AuthFailure,
        Self::ServerError,
        Self::NotFound,
        Self::PolicyBlocked,
    ];

    /// Returns the category in the table of all failures. An insufficient identity is treated like the HTTP
    /// statuses 401 and 403.
    #[must_use]
    pub const fn category(self) -> ToolErrorCategory {
        match self {
            Self::Transient => ToolErrorCategory::NetworkError,
            Self::RateLimited => ToolErrorCategory::RateLimited,
            Self::InvalidInput => ToolErrorCategory::InvalidParameters,
            Self::AuthFailure | Self::PolicyBlocked => ToolErrorCategory::PolicyBlocked,
            Self::ServerError => ToolErrorCategory::ServerError,
            Self::NotFound => ToolErrorCategory::ToolNotFound,
        }
    }

    /// Whether a repeated call can help.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        self.category().traits().retryable
    }
}

/// The failure of a call to an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The connection failed, or it was interrupted.
    #[error("the MCP server {server} cannot be reached: {message}")]
    Connection {
        /// The name of the server in the configuration.
        server: String,
        /// The reason.
        message: String,
    },
    /// The server did not respond in time.
    #[error("the MCP server {server} did not respond within {limit:?}")]
    Timeout {
        /// The server.
        server: String,
        /// The limit.
        limit: Duration,
    },
    /// The server refuses the identity of the caller.
    #[error("the MCP server {server} requires a new login: {message}")]
    Auth {
        /// The server.
        server: String,
        /// The message of the server.
        message: String,
    },
    /// The response of the server violates the protocol.
    #[error("the MCP server {server} violates the protocol: {message}")]
    Protocol {
        /// The server.
        server: String,
        /// The violation.
        message: String,
    },
    /// No server with this name is configured.
    #[error("no MCP server is called {server:?}")]
    ServerNotFound {
        /// The name.
        server: String,
    },
    /// A gate before the server refused.
    #[error("{reason}")]
    PolicyBlocked {
        /// The gate and the reason.
        reason: String,
    },
    /// The server reported a failure of the call.
    #[error("{tool} of the MCP server {server}: {message}")]
    ToolCall {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The kind of the failure.
        code: McpErrorCode,
        /// The message of the server.
        message: String,
        /// The delay that the server requests, if any.
        retry_after: Option<Duration>,
    },
}

impl McpError {
    /// Returns the kind of the failure.
    #[must_use]
    pub const fn code(&self) -> McpErrorCode {
        match self {
            Self::Connection { .. } | Self::Timeout { .. } => McpErrorCode::Transient,
            Self::Auth { .. } => McpErrorCode::AuthFailure,
            Self::Protocol { .. } => McpErrorCode::ServerError,
            Self::ServerNotFound { .. } => McpErrorCode::NotFound,
            Self::PolicyBlocked { .. } => McpErrorCode::PolicyBlocked,
            Self::ToolCall { code, .. } => *code,
        }
    }
}

impl From<McpError> for ToolError {
    fn from(error: McpError) -> Self {
        let (category, message) = (error.code().category(), error.to_string());
        match error {
            McpError::PolicyBlocked { reason } => Self::PolicyBlocked { reason },
            McpError::ToolCall {
                retry_after: Some(retry_after),
                ..
            } if category.traits().retryable => Self::Deferred {
                category,
                message,
                retry_after,
            },
            _ => Self::Failed { category, message },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use McpErrorCode as Code;
    use ToolErrorCategory as Category;

    /// Proves ERR-30.
    #[test]
    fn each_code_has_its_category() {
        let rows = Code::ALL.map(|code| (code, code.category(), code.is_retryable()));
        assert_eq!(
            rows,
            [
                (Code::Transient, Category::NetworkError, true),
                (Code::RateLimited, Category::RateLimited, true),
                (Code::InvalidInput, Category::InvalidParameters, false),
                (Code::AuthFailure, Category::PolicyBlocked, false),
                (Code::ServerError, Category::ServerError, true),
                (Code::NotFound, Category::ToolNotFound, false),
                (Code::PolicyBlocked, Category::PolicyBlocked, false),
            ]
        );
    }

    fn tool_call(code: Code, retry_after: Option<Duration>) -> McpError {
        McpError::ToolCall {
            server: "s".to_owned(),
            tool: "t".to_owned(),
            code,
            message: "no".to_owned(),
            retry_after,
        }
    }

    /// Proves ERR-30, ERR-2.
    #[test]
    fn each_error_has_its_code_and_becomes_a_tools() {
        let (server, message) = (|| "s".to_owned(), || "m".to_owned());
        let limit = Duration::from_secs(5);
        let check = |error: McpError, code: Code| {
            assert_eq!(error.code(), code, "{error}");
            let text = error.to_string();
            let error = ToolError::from(error);
            assert_eq!(error.category(), code.category(), "{text}");
            assert_eq!(error.to_string(), text);
        };
        let (s, m) = (server(), message());
        check(
            McpError::Connection {
                server: s,
                message: m,
            },
            Code::Transient,
        );
        check(
            McpError::Timeout {
                server: server(),
                limit,
            },
            Code::Transient,
        );
        let (s, m) = (server(), message());
        check(
            McpError::Auth {
                server: s,
                message: m,
            },
            Code::AuthFailure,
        );
        let (s, m) = (server(), message());
        check(
            McpError::Protocol {
                server: s,
                message: m,
            },
            Code::ServerError,
        );
        check(
            McpError::ServerNotFound { server: server() },
            Code::NotFound,
        );
        check(
            McpError::PolicyBlocked { reason: message() },
            Code::PolicyBlocked,
        );
        for code in Code::ALL {
            check(tool_call(code, None), code);
        }
        let wait = Some(limit);
        let error = ToolError::from(tool_call(Code::RateLimited, wait));
        assert_eq!(error.retry_after(), wait);
        let error = ToolError::from(tool_call(Code::InvalidInput, wait));
        assert_eq!(error.retry_after(), None);
    }
}
