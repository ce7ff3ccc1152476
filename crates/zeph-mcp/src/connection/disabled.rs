//! Builds without the protocol connect to nothing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use zeph_tools::{McpError, McpErrorCode, ToolError};

use super::{Address, LACKS};
use crate::failure::About;

/// A placeholder for a connection in builds without the protocol.
pub(crate) struct Link {
    /// Cancelled when it is closed.
    pub(crate) closed: CancellationToken,
}

/// See [`Link`].
pub(crate) struct Connection;

fn lacks(name: &str) -> McpError {
    let about = About {
        server: name,
        tool: None,
    };
    about.connection(LACKS.unwrap_or_default())
}

impl Link {
    /// Connects to nothing.
    pub(crate) async fn open(
        name: &str,
        _address: Address,
        _connect_timeout: Duration,
        _tools_changed: Arc<Notify>,
    ) -> Result<(Self, Connection), McpError> {
        Err(lacks(name))
    }

    /// Lists nothing.
    pub(crate) async fn tools(&self, about: About<'_>) -> Result<(Vec<Value>, bool), McpError> {
        Err(lacks(about.server))
    }

    /// Calls nothing.
    pub(crate) async fn call(
        &self,
        about: About<'_>,
        _arguments: Map<String, Value>,
        _limit: Duration,
        _cancel: &CancellationToken,
    ) -> Result<Value, ToolError> {
        Err(McpError::ToolCall {
            server: about.server.to_owned(),
            tool: about.tool.unwrap_or_default().to_owned(),
            code: McpErrorCode::NotFound,
            message: LACKS.unwrap_or_default().to_owned(),
            retry_after: None,
        }
        .into())
    }
}

impl Connection {
    /// It was never open.
    pub(crate) async fn closed(self) -> String {
        LACKS.unwrap_or_default().to_owned()
    }
}
