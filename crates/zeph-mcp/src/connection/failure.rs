//! Conversion of the protocol library's failures to the messages and classes of this project.

use std::error::Error;
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::ClientInitializeError;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{InsufficientScopeError, StreamableHttpError};
use zeph_tools::{McpError, McpErrorCode};

use crate::failure::About;
use crate::sanitize::line;

/// The most characters of a server's message about a failure.
const MAX_MESSAGE_CHARS: usize = 2000;

impl About<'_> {
    pub(crate) fn protocol(self, message: impl Into<String>) -> McpError {
        McpError::Protocol {
            server: self.server.to_owned(),
            message: message.into(),
        }
    }

    fn call(self, code: McpErrorCode, message: String, wait: Option<Duration>) -> McpError {
        McpError::ToolCall {
            server: self.server.to_owned(),
            tool: self.tool.unwrap_or("the list of tools").to_owned(),
            code,
            message,
            retry_after: wait,
        }
    }

    /// A request that failed.
    pub(super) fn request(self, error: &ServiceError) -> McpError {
        match error {
            ServiceError::McpError(data) => self.answered(data),
            ServiceError::TransportSend(error) => self.transport(error.error.as_ref()),
            ServiceError::Timeout { timeout } => self.timeout(*timeout),
            ServiceError::UnexpectedResponse => {
                self.protocol("its response does not match the request")
            }
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                self.connection("the connection was closed")
            }
            other => self.protocol(line(&other.to_string(), MAX_MESSAGE_CHARS)),
        }
    }

    /// A connection that was not made.
    pub(super) fn initialize(self, error: &ClientInitializeError) -> McpError {
        match error {
            ClientInitializeError::TransportError { error, .. } => {
                self.transport(error.error.as_ref())
            }
            ClientInitializeError::ConnectionClosed(_) => {
                self.connection("it ended before its response")
            }
            ClientInitializeError::JsonRpcError(data) => self.protocol(format!(
                "it refused: {}",
                line(&data.message, MAX_MESSAGE_CHARS)
            )),
            other => self.protocol(line(&other.to_string(), MAX_MESSAGE_CHARS)),
        }
    }

    /// An error in the server's response.
    fn answered(self, data: &ErrorData) -> McpError {
        let code = match data.code {
            ErrorCode::INVALID_PARAMS => McpErrorCode::InvalidInput,
            ErrorCode::METHOD_NOT_FOUND | ErrorCode::RESOURCE_NOT_FOUND => McpErrorCode::NotFound,
            _ => McpErrorCode::ServerError,
        };
        let message = match line(&data.message, MAX_MESSAGE_CHARS) {
            message if message.is_empty() => format!("error {}", data.code.0),
            message => message,
        };
        self.call(code, message, None)
    }

    /// The error of a failed transport.
    fn transport(self, error: &(dyn Error + 'static)) -> McpError {
        let mut cause = Some(error);
        let mut innermost = error;
        while let Some(current) = cause {
            if let Some(error) = current.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                match error {
                    StreamableHttpError::Client(error) => return self.client(error),
                    StreamableHttpError::HttpStatus(status) => {
                        return self.status(status.status, status.retry_after.as_deref());
                    }
                    StreamableHttpError::AuthRequired(_)
                    | StreamableHttpError::Auth(AuthError::AuthorizationRequired) => {
                        return self.auth(&format!(
                            "it requires a login: use `zeph mcp login {}`, or set a header in \
                             `headers`",
                            self.server
                        ));
                    }
                    StreamableHttpError::Auth(error) => {
                        let said = line(&error.to_string(), MAX_MESSAGE_CHARS);
                        return self.connection(format!("its login cannot be renewed: {said}"));
                    }
                    StreamableHttpError::InsufficientScope(error) => {
                        let scope = error
                            .required_scope
                            .as_deref()
                            .unwrap_or("that it does not name");
                        return self.auth(&format!(
                            "it needs the scope {}: `zeph mcp login {}` requests it",
                            line(scope, 200),
                            self.server
                        ));
                    }
                    StreamableHttpError::UnexpectedServerResponse(said)
                        if said.starts_with("HTTP 401") || said.starts_with("HTTP 403") =>
                    {
                        return self
                            .auth("it refuses this login; see `headers` and `zeph mcp login`");
                    }
                    StreamableHttpError::UnexpectedServerResponse(said) => {
                        return self.protocol(line(said, MAX_MESSAGE_CHARS));
                    }
                    _ => {}
                }
            }
            innermost = current;
            cause = current.source();
        }
        self.connection(line(&innermost.to_string(), MAX_MESSAGE_CHARS))
    }

    /// The error of an HTTP client, by its innermost cause. Outer errors contain the URL, which may hold a key.
    fn client(self, error: &reqwest::Error) -> McpError {
        if let Some(status) = error.status() {
            return self.status(status.as_u16(), None);
        }
        let mut innermost: &(dyn Error + 'static) = error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        let said = match innermost.downcast_ref::<reqwest::Error>() {
            Some(error) if error.is_timeout() => "it did not respond in time".to_owned(),
            Some(_) => "the request failed".to_owned(),
            None => line(&innermost.to_string(), MAX_MESSAGE_CHARS),
        };
        self.connection(said)
    }

    pub(super) fn auth(self, message: &str) -> McpError {
        McpError::Auth {
            server: self.server.to_owned(),
            message: message.to_owned(),
        }
    }

    fn status(self, status: u16, wait: Option<&str>) -> McpError {
        let wait = wait.and_then(|wait| wait.trim().parse().ok());
        let wait = wait.map(Duration::from_secs);
        let said = |status: u16| format!("it responded with HTTP status {status}");
        match status {
            401 | 403 => self.auth("it refuses this login; see `headers` and `zeph mcp login`"),
            429 => self.call(McpErrorCode::RateLimited, said(429), wait),
            500.. => self.call(McpErrorCode::ServerError, said(status), wait),
            _ => self.protocol(said(status)),
        }
    }
}

/// The scopes that a refused request lacks.
pub(super) fn scope_of_request(error: &ServiceError) -> Option<String> {
    match error {
        ServiceError::TransportSend(error) => scope(error.error.as_ref()),
        _ => None,
    }
}

/// The scopes that a refused connection lacks.
pub(super) fn scope_of_start(error: &ClientInitializeError) -> Option<String> {
    match error {
        ClientInitializeError::TransportError { error, .. } => scope(error.error.as_ref()),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => scope_of_start(fallback),
        _ => None,
    }
}

fn scope(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(error) = current.downcast_ref::<InsufficientScopeError>() {
            return error.required_scope.clone();
        }
        cause = current.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use rmcp::transport::streamable_http_client::HttpStatusError;

    use super::*;

    const ABOUT: About<'static> = About {
        server: "s",
        tool: Some("t"),
    };

    /// Proves MCP-2, ERR-30.
    #[test]
    fn responses_have_their_codes() {
        let check = |code: i32, expect: McpErrorCode| {
            let data = ErrorData::new(ErrorCode(code), "no\u{200b}", None);
            let error = ABOUT.request(&ServiceError::McpError(data));
            assert_eq!(error.code(), expect, "{code}");
            assert_eq!(error.to_string(), "t of the MCP server s: no");
        };
        check(-32602, McpErrorCode::InvalidInput);
        check(-32601, McpErrorCode::NotFound);
        check(-32603, McpErrorCode::ServerError);
        check(-32000, McpErrorCode::ServerError);
        let closed = ABOUT.request(&ServiceError::TransportClosed);
        assert_eq!(closed.code(), McpErrorCode::Transient);
        let odd = ABOUT.request(&ServiceError::UnexpectedResponse);
        assert_eq!(odd.code(), McpErrorCode::ServerError);
    }

    /// Proves MCP-2, ERR-30.
    #[test]
    fn statuses_have_their_codes() {
        let check = |status: u16, wait: Option<&str>, expect: McpErrorCode| {
            let error: StreamableHttpError<reqwest::Error> =
                HttpStatusError::new(status, wait.map(str::to_owned)).into();
            let error = ABOUT.transport(&error);
            assert_eq!(error.code(), expect, "{status}");
            error
        };
        check(401, None, McpErrorCode::AuthFailure);
        check(403, None, McpErrorCode::AuthFailure);
        check(404, None, McpErrorCode::ServerError);
        check(503, None, McpErrorCode::ServerError);
        let McpError::ToolCall { retry_after, .. } =
            check(429, Some("7"), McpErrorCode::RateLimited)
        else {
            panic!("no call");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
    }
}
