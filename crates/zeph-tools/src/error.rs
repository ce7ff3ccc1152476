//! The failure of a call.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::category::{ToolErrorCategory, classify_io_error};
use crate::def::Risk;
use crate::gate::{ApprovalOptions, DisplayPart};
use crate::output::ToolOutput;
use crate::preview::Preview;

/// Whether repeating the same call can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It may pass: retry.
    Transient,
    /// It will not: do not retry.
    Permanent,
}

/// What a person is asked before a call runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// The tool.
    pub tool: String,
    /// What the call is about: the command, the path, the arguments.
    pub subject: String,
    /// How much it can harm.
    pub risk: Risk,
    /// Why it asks.
    pub reason: String,
    /// What would let it run where nobody can be asked.
    pub hint: String,
    /// What identifies the tool and the arguments that are shown; an answer is about these alone.
    pub digest: [u8; 32],
    /// The parts of its command, with what they are judged as.
    pub pieces: Vec<DisplayPart>,
    /// What it would change, where that can be shown.
    pub preview: Option<Preview>,
    /// What an answer for more than this call would hold for.
    pub offer: ApprovalOptions,
}

/// The failure of a call. `Display` is the text for the model; the cause chain
/// ([`std::error::Error::source`]) is for the person.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No executor owns the tool.
    #[error("no tool is named {id:?}{}", near_names(.near))]
    ToolNotFound {
        /// The id as called.
        id: String,
        /// Up to three ids like it.
        near: Vec<String>,
    },
    /// Arguments are missing, unknown or out of range.
    #[error("{message}")]
    InvalidParameters {
        /// The JSON pointer, what was expected, what came.
        message: String,
        /// Whether the arguments were no JSON at all.
        unparsable: bool,
    },
    /// An argument has the wrong JSON type.
    #[error("{message}")]
    TypeMismatch {
        /// The JSON pointer, what was expected, what came.
        message: String,
    },
    /// A gate refused.
    #[error("{reason}")]
    PolicyBlocked {
        /// Which gate and why.
        reason: String,
    },
    /// The session's quota of calls is used up.
    #[error("quota_blocked: {used} of {max} tool calls of this session are used{}", too_many(*.asked))]
    QuotaBlocked {
        /// Calls made.
        used: u64,
        /// Calls allowed.
        max: u64,
        /// Calls that the answer asks for.
        asked: u64,
    },
    /// A person has to agree first.
    #[error("{} needs the user's confirmation: {} {}", .0.tool, .0.reason, .0.hint)]
    ConfirmationRequired(Box<Confirmation>),
    /// A required snapshot could not be made.
    #[error("the snapshot before the command failed: {reason}; the command did not run")]
    SnapshotFailed {
        /// Why.
        reason: String,
    },
    /// A shell command failed in a way that is no plain result.
    #[error("{message}")]
    Shell {
        /// The exit code, `128 + signal` for a killed process.
        exit_code: Option<i32>,
        /// The class.
        category: ToolErrorCategory,
        /// What happened.
        message: String,
        /// What was printed; it follows the feedback block.
        output: Box<ToolOutput>,
    },
    /// It was stopped.
    #[error("{reason}")]
    Cancelled {
        /// By what.
        reason: String,
    },
    /// It took too long.
    #[error("{what} took longer than {limit:?}")]
    Timeout {
        /// What was under way.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The thing asked for does not exist.
    #[error("{message}")]
    Missing {
        /// What, and what is near.
        message: String,
    },
    /// An operating system error.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A failure with something to read beside the message: a diff, the place that came closest.
    #[error("{message}")]
    Explained {
        /// The class.
        category: ToolErrorCategory,
        /// What happened.
        message: String,
        /// What is shown of it; it follows the feedback block.
        output: Box<ToolOutput>,
    },
    /// The other side failed, and says how long to wait before the next try.
    #[error("{message}; it asks to wait {} s", .retry_after.as_secs_f64().ceil())]
    Deferred {
        /// The class.
        category: ToolErrorCategory,
        /// What happened.
        message: String,
        /// What it asks to wait.
        retry_after: Duration,
    },
    /// A failure, and what the stack did about the call.
    #[error("{error} ({note})")]
    Noted {
        /// The failure.
        #[source]
        error: Box<ToolError>,
        /// How often it was tried, why not again, with what it ran.
        note: String,
    },
    /// Any other failure.
    #[error("{message}")]
    Failed {
        /// The class.
        category: ToolErrorCategory,
        /// What happened.
        message: String,
    },
}

impl ToolError {
    /// Arguments that do not fit.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidParameters {
            message: message.into(),
            unparsable: false,
        }
    }

    /// A refusal.
    #[must_use]
    pub fn blocked(reason: impl Into<String>) -> Self {
        Self::PolicyBlocked {
            reason: reason.into(),
        }
    }

    /// A failure that will stay.
    #[must_use]
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::Failed {
            category: ToolErrorCategory::PermanentFailure,
            message: message.into(),
        }
    }

    /// An operating system error while doing `what` to `path`.
    #[must_use]
    pub fn io(what: &str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            what: format!("{what} {}", path.display()),
            source,
        }
    }

    /// The same failure with a note; a refusal stays as it is, for what was noted was not done.
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

    /// The call was stopped by the user.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::Cancelled {
            reason: "the call was cancelled".to_owned(),
        }
    }

    /// The class of the failure.
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

    /// Whether repeating the same call can help.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        if self.category().traits().retryable {
            ErrorKind::Transient
        } else {
            ErrorKind::Permanent
        }
    }

    /// What the other side asks to wait before the next try.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Deferred { retry_after, .. } => Some(*retry_after),
            Self::Noted { error, .. } => error.retry_after(),
            _ => None,
        }
    }

    /// Whether the thing asked for does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Noted { error, .. } => error.is_missing(),
            Self::Missing { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// What the call had yielded when it failed.
    #[must_use]
    pub fn output(&self) -> Option<&ToolOutput> {
        match self {
            Self::Shell { output, .. } | Self::Explained { output, .. } => Some(output),
            Self::Noted { error, .. } => error.output(),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn output_mut(&mut self) -> Option<&mut ToolOutput> {
        match self {
            Self::Shell { output, .. } | Self::Explained { output, .. } => Some(output),
            Self::Noted { error, .. } => error.output_mut(),
            _ => None,
        }
    }

    /// Changes each text of which the error is made; what comes with it stays.
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
            // The note is the stack's own.
            Self::Noted { error, .. } => error.each_text(change),
            Self::PolicyBlocked { reason }
            | Self::SnapshotFailed { reason }
            | Self::Cancelled { reason } => change(reason),
            // A person agrees to what is really done.
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

    /// Whether a gate refused the call, so that it did not run. A `policy_blocked` of the other side, as
    /// a server's 403 or a command's exit 126, is none.
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

/// Why none of several calls ran; nothing for one.
fn too_many(asked: u64) -> String {
    match asked {
        0 | 1 => String::new(),
        asked => format!(", and this answer asks for {asked} more: none of them ran"),
    }
}

/// "; near names: a, b" or nothing.
fn near_names(near: &[String]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", near.join(", "))
    }
}
