//! The failure of a call.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::category::{ToolErrorCategory, classify_io_error};
use crate::confirmation::Confirmation;
use crate::output::ToolOutput;

/// Whether a repeated call can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The failure may be temporary: retry.
    Transient,
    /// The failure is permanent: do not retry.
    Permanent,
}

/// The failure of a call. `Display` is the text for the model; the cause chain ([`std::error::Error::source`]) is
/// for the user.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No executor owns the tool.
    #[error("no tool is named {id:?}{}", near_names(.near))]
    ToolNotFound {
        /// The id in the call.
        id: String,
        /// Up to three similar ids.
        near: Vec<String>,
    },
    /// Arguments are missing, unknown or out of range.
    #[error("{message}")]
    InvalidParameters {
        /// The JSON pointer, the expected value, and the received one.
        message: String,
        /// Whether the arguments were not JSON.
        unparsable: bool,
    },
    /// An argument has the wrong JSON type.
    #[error("{message}")]
    TypeMismatch {
        /// The JSON pointer, the expected value, and the received one.
        message: String,
    },
    /// A gate refused.
    #[error("{reason}")]
    PolicyBlocked {
        /// The gate and the reason.
        reason: String,
    },
    /// The quota of calls of the session is used up.
    #[error("quota_blocked: {used} of {max} tool calls of this session are used{}", too_many(*.asked))]
    QuotaBlocked {
        /// The number of calls made.
        used: u64,
        /// The maximum number of calls.
        max: u64,
        /// The number of calls that the response requests.
        asked: u64,
    },
    /// The user has to approve the call first.
    #[error("{} needs the user's confirmation: {} {}", .0.tool, .0.reason, .0.hint)]
    ConfirmationRequired(Box<Confirmation>),
    /// A required snapshot could not be made.
    #[error("the snapshot before the command failed: {reason}; the command did not run")]
    SnapshotFailed {
        /// The reason.
        reason: String,
    },
    /// A shell command failed in a way that is not a normal result.
    #[error("{message}")]
    Shell {
        /// The exit code, `128 + signal` for a killed process.
        exit_code: Option<i32>,
        /// The category.
        category: ToolErrorCategory,
        /// The failure.
        message: String,
        /// The output of the command; it follows the feedback block.
        output: Box<ToolOutput>,
    },
    /// The call was stopped.
    #[error("{reason}")]
    Cancelled {
        /// The cause.
        reason: String,
    },
    /// The time limit was exceeded.
    #[error("{what} took longer than {limit:?}")]
    Timeout {
        /// The operation.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The requested item does not exist.
    #[error("{message}")]
    Missing {
        /// The item, and similar ones.
        message: String,
    },
    /// An operating system error.
    #[error("{what}: {source}")]
    Io {
        /// The attempted operation.
        what: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A failure with output in addition to the message: a diff, or the closest match.
    #[error("{message}")]
    Explained {
        /// The category.
        category: ToolErrorCategory,
        /// The failure.
        message: String,
        /// The output; it follows the feedback block.
        output: Box<ToolOutput>,
    },
    /// The remote side failed and requests a delay before the next attempt.
    #[error("{message}; the server requests a wait of {} s", .retry_after.as_secs_f64().ceil())]
    Deferred {
        /// The category.
        category: ToolErrorCategory,
        /// The failure.
        message: String,
        /// The requested delay.
        retry_after: Duration,
    },
    /// A failure, with a note about the handling of the call by the stack.
    #[error("{error} ({note})")]
    Noted {
        /// The failure.
        #[source]
        error: Box<ToolError>,
        /// The number of attempts, the reason against another one, or the arguments that were used.
        note: String,
    },
    /// Any other failure.
    #[error("{message}")]
    Failed {
        /// The category.
        category: ToolErrorCategory,
        /// The failure.
        message: String,
    },
}

impl ToolError {
    /// Creates an error for invalid arguments.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidParameters {
            message: message.into(),
            unparsable: false,
        }
    }

    /// Creates a refusal.
    #[must_use]
    pub fn blocked(reason: impl Into<String>) -> Self {
        Self::PolicyBlocked {
            reason: reason.into(),
        }
    }

    /// Creates a permanent failure.
    #[must_use]
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::Failed {
            category: ToolErrorCategory::PermanentFailure,
            message: message.into(),
        }
    }

    /// Creates an operating system error of the operation `what` on `path`.
    #[must_use]
    pub fn io(what: &str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            what: format!("{what} {}", path.display()),
            source,
        }
    }

    /// Adds a note to a failure; a refusal stays unchanged, because the noted step did not happen.
    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> Self {
        match self {
            refusal if refusal.is_refusal() => refusal,
            error => Self::Noted {
                error: Box::new(error),
                note: note.into(),
            },
        }
    }

    /// Creates the error of a call that the user stopped.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::Cancelled {
            reason: "the call was cancelled".to_owned(),
        }
    }

    /// Returns the category of the failure.
    #[must_use]
    pub fn category(&self) -> ToolErrorCategory {
        match self {
            Self::ToolNotFound { .. } => ToolErrorCategory::ToolNotFound,
            Self::InvalidParameters { .. } => ToolErrorCategory::InvalidParameters,
            Self::TypeMismatch { .. } => ToolErrorCategory::TypeMismatch,
            Self::PolicyBlocked { .. } | Self::QuotaBlocked { .. } => {
                ToolErrorCategory::PolicyBlocked
            }
            Self::ConfirmationRequired(_) => ToolErrorCategory::ConfirmationRequired,
            Self::SnapshotFailed { .. } | Self::Missing { .. } => {
                ToolErrorCategory::PermanentFailure
            }
            Self::Shell { category, .. }
            | Self::Explained { category, .. }
            | Self::Deferred { category, .. }
            | Self::Failed { category, .. } => *category,
            Self::Noted { error, .. } => error.category(),
            Self::Cancelled { .. } => ToolErrorCategory::Cancelled,
            Self::Timeout { .. } => ToolErrorCategory::Timeout,
            Self::Io { source, .. } => classify_io_error(source),
        }
    }

    /// Returns whether a repeated call can help.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        if self.category().traits().retryable {
            ErrorKind::Transient
        } else {
            ErrorKind::Permanent
        }
    }

    /// Returns the delay that the remote side requests before the next attempt.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Deferred { retry_after, .. } => Some(*retry_after),
            Self::Noted { error, .. } => error.retry_after(),
            _ => None,
        }
    }

    /// Whether the requested item does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Noted { error, .. } => error.is_missing(),
            Self::Missing { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Returns the output of the call before its failure.
    #[must_use]
    pub fn output(&self) -> Option<&ToolOutput> {
        match self {
            Self::Shell { output, .. } | Self::Explained { output, .. } => Some(output),
            Self::Noted { error, .. } => error.output(),
            _ => None,
        }
    }

    /// Returns the output of the call before its failure, for changes.
    pub fn output_mut(&mut self) -> Option<&mut ToolOutput> {
        match self {
            Self::Shell { output, .. } | Self::Explained { output, .. } => Some(output),
            Self::Noted { error, .. } => error.output_mut(),
            _ => None,
        }
    }

    /// Changes each text of the error; its output stays unchanged.
    pub fn change_texts(&mut self, mut change: impl FnMut(&mut String)) {
        self.each_text(&mut change);
    }

    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Self::ToolNotFound { id, .. } => change(id),
            Self::InvalidParameters { message, .. }
            | Self::TypeMismatch { message }
            | Self::Missing { message }
            | Self::Shell { message, .. }
            | Self::Explained { message, .. }
            | Self::Deferred { message, .. }
            | Self::Failed { message, .. } => change(message),
            // The note is from the stack itself.
            Self::Noted { error, .. } => error.each_text(change),
            Self::PolicyBlocked { reason }
            | Self::SnapshotFailed { reason }
            | Self::Cancelled { reason } => change(reason),
            // The user approves the real arguments, so they must not change.
            Self::QuotaBlocked { .. } | Self::ConfirmationRequired(_) => {}
            Self::Timeout { what, .. } => change(what),
            Self::Io { what, source } => {
                change(what);
                let said = source.to_string();
                let mut text = said.clone();
                change(&mut text);
                if text != said {
                    *source = io::Error::new(source.kind(), text);
                }
            }
        }
    }

    /// Whether a gate refused the call, so that it did not run. A `policy_blocked` of the remote side, such as a
    /// 403 of a server or exit code 126 of a command, does not count.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::PolicyBlocked { .. }
            | Self::QuotaBlocked { .. }
            | Self::ConfirmationRequired(_)
            | Self::Shell {
                exit_code: None,
                category: ToolErrorCategory::PolicyBlocked,
                ..
            } => true,
            Self::Noted { error, .. } => error.is_refusal(),
            _ => false,
        }
    }
}

/// Returns the reason why none of several calls ran; empty for one call.
fn too_many(asked: u64) -> String {
    match asked {
        0 | 1 => String::new(),
        asked => format!(", and this response requests {asked} more: none of them ran"),
    }
}

/// Returns "; did you mean a, b?", or an empty text.
fn near_names(near: &[String]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", near.join(", "))
    }
}
