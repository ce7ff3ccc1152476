//! The refusals of tools that are known before a call, so that the user is not asked about a call that cannot run.

use super::parsed_call::CallSubject;
use crate::context::CallContext;
use crate::error::ToolError;

/// The calls that tools refuse regardless of any approval.
pub trait KnownRefusals: std::fmt::Debug + Send + Sync {
    /// Returns the error with which the tool refuses the call; `None` if no reason to refuse is known.
    fn known_refusal(&self, subject: &CallSubject<'_>, cx: &CallContext) -> Option<ToolError>;
}
