//! The questions of a dialog and their answers.

use serde_json::Value;
use zeph_core::{CheckIn, CheckInAnswer, UserAnswer};
use zeph_tools::Confirmation;
use zeph_tools::question::{ServerAnswer, ServerQuestion};

/// A question to the user.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Question {
    /// Whether a call with these arguments may run.
    Confirm(Box<Confirmation>, Value),
    /// Whether a long turn continues.
    CheckIn(CheckIn),
    /// A question of an MCP server.
    Server(Box<ServerQuestion>),
}

impl Question {
    /// Whether permanent rules would apply on other machines too.
    pub(super) fn has_shared_rules(&self) -> bool {
        matches!(self, Self::Confirm(question, _) if question.offer.shared_place.is_some())
    }
}

/// The answer to a [`Question`] of the same kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Confirm(UserAnswer),
    CheckIn(CheckInAnswer),
    Server(ServerAnswer),
}
