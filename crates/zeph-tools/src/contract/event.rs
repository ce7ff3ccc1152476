//! The events while a call runs.

use std::fmt;

/// The output stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// An event for the user before the call ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolEvent {
    /// More output of a running command.
    Output {
        /// The call.
        call_id: String,
        /// The stream.
        stream: OutputStream,
        /// The text; valid UTF-8, NUL removed, not yet sanitized.
        text: String,
        /// The number of line breaks that were printed before this text and are not in an event.
        skipped_lines: u64,
    },
    /// Something noteworthy: a repaired argument, a retry.
    Notice {
        /// The call.
        call_id: String,
        /// One sentence.
        text: String,
    },
    /// A message that the user must see even in quiet mode, such as an audit log that cannot be written.
    Warning {
        /// The call.
        call_id: String,
        /// One sentence.
        text: String,
    },
    /// A command runs in a terminal of an editor, which shows its output.
    Terminal {
        /// The call.
        call_id: String,
        /// The id of the terminal.
        terminal_id: String,
    },
    /// A command failed, and its changes of files were rolled back.
    Rollback {
        /// The call.
        call_id: String,
        /// The result of the rollback.
        changes: RolledBack,
    },
}

/// The result of the rollback of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RolledBack {
    /// The number of files, links and directories with restored content, mode or place.
    pub restored: usize,
    /// The number of removed entries that the command had created.
    pub removed: usize,
}

impl fmt::Display for RolledBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.restored, self.removed) {
            (0, 0) => f.write_str("nothing had changed"),
            (restored, removed) => write!(f, "{restored} restored, {removed} removed"),
        }
    }
}

/// A receiver of events. Emitting neither blocks nor fails.
pub trait EventSink: Send + Sync {
    /// Receives an event.
    fn emit(&self, event: ToolEvent);
}

/// A sink that drops every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn emit(&self, _event: ToolEvent) {}
}
