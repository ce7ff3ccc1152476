//! A tool call in the conversation.

use std::time::{Duration, Instant};

use serde_json::Value;
use zeph_core::call_display::{self, ResultKind};
use zeph_tools::{FileChange, FilterStats, ToolErrorCategory};

use super::OutputTail;

/// A tool call: its action, its output while it runs, and its result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The id in events.
    pub(crate) id: String,
    /// The tool, by the name that the model used.
    pub(crate) tool: String,
    /// The arguments as received.
    pub(crate) params: Value,
    /// The start of the call.
    pub(crate) started: Instant,
    /// The end of the output so far.
    pub(crate) output: OutputTail,
    /// The user saw the output in the terminal itself.
    pub(crate) had_terminal: bool,
    /// The result; `None` while the call runs.
    pub(crate) result: Option<CallResult>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallResult {
    /// The category of the failure; `None` for success.
    pub(crate) failure: Option<ToolErrorCategory>,
    /// The text for the user.
    pub(crate) display: String,
    /// The effect of the output filter.
    pub(crate) filter: Option<FilterStats>,
    /// The texts of changed files, before and after.
    pub(crate) changes: Vec<FileChange>,
    /// The duration without the time in which the user was asked.
    pub(crate) duration: Duration,
}

impl Call {
    /// The action in one line, as received: a view makes it safe for its terminal.
    pub(crate) fn title(&self) -> String {
        call_display::title(&self.tool, &self.params)
    }

    /// The kind of its result.
    pub(crate) fn result_kind(&self) -> ResultKind {
        call_display::result_kind(&self.tool)
    }

    /// Whether the call has not ended.
    pub(crate) fn is_running(&self) -> bool {
        self.result.is_none()
    }
}
