//! The refusals of tools that are known before a call, so that the user is not asked about a call that cannot run.

use async_trait::async_trait;

use super::parsed_call::CallSubject;
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::error::ToolError;

/// The calls that tools refuse regardless of any approval.
#[async_trait]
pub trait KnownRefusals: std::fmt::Debug + Send + Sync {
    /// Returns the error with which the tool refuses the call; `None` if no reason to refuse is known.
    fn known_refusal(&self, subject: &CallSubject<'_>, cx: &CallContext) -> Option<ToolError>;

    /// Returns the error with which the tool refuses to change a file that the conversation has not
    /// read; `None` for any other call.
    async fn unread_refusal(&self, _call: &ToolCall) -> Option<ToolError> {
        None
    }
}
