//! What happens while a call runs.

use std::fmt;

/// Which stream of a process printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Something that a person may want to see before the call ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolEvent {
    /// More output of a running command.
    Output {
        /// The call.
        call_id: String,
        /// Which stream.
        stream: OutputStream,
        /// The text; valid UTF-8, NUL removed, not yet sanitized.
        text: String,
        /// Line breaks that were printed before this text and are in no event.
        skipped_lines: u64,
    },
    /// Something noteworthy: a repaired argument, a retry.
    Notice {
        /// The call.
        call_id: String,
        /// One sentence.
        text: String,
    },
    /// Something that a person has to know, however quiet it is to be: an audit log that cannot be
    /// written.
    Warning {
        /// The call.
        call_id: String,
        /// One sentence.
        text: String,
    },
    /// A command failed, and the files are what they were before it.
    Rollback {
        /// The call.
        call_id: String,
        /// What was done.
        changes: RolledBack,
    },
}

/// What taking a command back came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RolledBack {
    /// Files, links and directories that have their old content, mode or place again.
    pub restored: usize,
    /// Those that the command had created.
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

/// Receives events. Emitting neither blocks nor fails.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: ToolEvent);
}

/// Drops every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn emit(&self, _event: ToolEvent) {}
}
