//! What happens while a call runs.

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
    },
    /// Something noteworthy: a repaired argument, a retry, an audit log that cannot be written.
    Notice {
        /// The call.
        call_id: String,
        /// One sentence.
        text: String,
    },
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
