//! Errors of the host as JSON-RPC errors.

use agent_client_protocol::v1::schema;
use agent_client_protocol::{Error, ErrorCode};

use crate::host::HostError;

/// The JSON-RPC error of a failure.
pub(super) fn of_host(error: HostError) -> Error {
    let text = error.to_string();
    match error {
        HostError::NoProvider(_) => Error::new(ErrorCode::AUTH_REQUIRED, text),
        HostError::UnknownSession(id) => {
            let mut error: Error = schema::Error::session_not_found(id).into();
            error.message = text;
            error
        }
        HostError::Unavailable(_) => Error::new(ErrorCode::INVALID_REQUEST, text),
        HostError::Invalid(_) => Error::new(ErrorCode::INVALID_PARAMS, text),
        HostError::Failed(_) => Error::new(ErrorCode::INTERNAL_ERROR, text),
    }
}

/// The error of an invalid parameter.
pub(super) fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::INVALID_PARAMS, text)
}

/// The error of a request that the state of the session does not allow.
pub(super) fn unavailable(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::INVALID_REQUEST, text)
}
