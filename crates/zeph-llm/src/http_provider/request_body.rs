//! The body of a request as JSON. The APIs have no memory, so each request holds the whole history.

use bytes::Bytes;

use super::error_mapping::Failure;
use super::wire::Wire;
use crate::error::LlmErrorKind;
use crate::message::{Message, MessagePart, Role};
use crate::provider::ChatRequest;

/// Serializes a request. `shown` is the part of a response that a broken stream had already delivered: the body
/// ends with it and the instruction to continue.
///
/// # Errors
/// `BadRequest` for a part in a message whose role cannot have it.
pub(crate) fn request_body(
    wire: &impl Wire,
    request: ChatRequest<'_>,
    shown: Option<&str>,
) -> Result<Bytes, Failure> {
    check_roles(request.messages)?;
    let body = serde_json::to_vec(&wire.body(&request, shown));
    body.map(Bytes::from).map_err(|error| {
        Failure::new(
            LlmErrorKind::BadRequest,
            format!("the request cannot be written as JSON: {error}"),
        )
    })
}

/// Refuses a part in a message whose role cannot have it.
fn check_roles(messages: &[Message]) -> Result<(), Failure> {
    for (at, message) in messages.iter().enumerate() {
        for part in &message.parts {
            let misplaced = match (message.role, part) {
                (Role::Assistant, MessagePart::ToolResult { .. }) => "a tool result",
                (Role::Assistant, MessagePart::Image { .. }) => "an image",
                (Role::User, MessagePart::ToolUse(_)) => "a call",
                _ => continue,
            };
            let role = message.role.as_str();
            return Err(Failure::new(
                LlmErrorKind::BadRequest,
                format!("message {at} has the role {role} but contains {misplaced}"),
            ));
        }
    }
    Ok(())
}
