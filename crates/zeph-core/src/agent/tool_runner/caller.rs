//! The caller of the calls of one conversation.

use zeph_tools::{Origin, Phase};

/// The caller of the calls of one conversation.
#[derive(Debug, Clone)]
pub struct CallerIdentity {
    /// The conversation.
    pub conversation: String,
    /// The caller's id in the channel; `None` for the user of the command line.
    pub caller_id: Option<String>,
    /// The phase of the work.
    pub phase: Phase,
    /// The origin of the calls.
    pub origin: Origin,
}
