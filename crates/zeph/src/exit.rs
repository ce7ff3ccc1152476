//! Exit codes: one function maps every outcome of every command to its code.

use std::io;
use std::process::ExitCode;

use zeph_core::TurnEnd;
use zeph_core::schedule::ScheduleError;
use zeph_memory::StoreError;
use zeph_tools::file::SandboxError;
use zeph_tools::web::DomainError;
use zeph_tools::{ToolErrorCategory, ToolResult};
use zeph_tui::signals::INTERRUPTED;

use crate::config::ConfigErrors;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Done,
    /// It failed.
    Failed,
    /// The command line, its input or the configuration is wrong; nothing ran.
    Usage,
    /// A gate refused.
    Refused,
    /// A limit stopped it.
    Limit,
    /// A signal interrupted it.
    Interrupted,
    /// The exit code of the command that ran.
    As(u8),
}

/// The outcome of a command.
pub(crate) enum Outcome<'o> {
    /// The end of a turn.
    Turn(TurnEnd),
    /// The result of one call.
    Call(&'o ToolResult),
    /// An error of the program.
    Error(&'o anyhow::Error),
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Limit => 4,
            Self::Interrupted => INTERRUPTED,
            Self::As(code) => code,
        }
    }

    /// The way in which an outcome ends the program.
    pub(crate) fn of(outcome: Outcome<'_>) -> Self {
        match outcome {
            Outcome::Turn(end) => match end {
                TurnEnd::Done => Self::Done,
                TurnEnd::IterationCap
                | TurnEnd::DoomLoop
                | TurnEnd::ContextBudget
                | TurnEnd::Quota
                | TurnEnd::Budget => Self::Limit,
                TurnEnd::Refused => Self::Refused,
                TurnEnd::Cancelled => Self::Interrupted,
                TurnEnd::Error => Self::Failed,
            },
            Outcome::Call(Ok(_)) => Self::Done,
            Outcome::Call(Err(error)) if error.is_refusal() => Self::Refused,
            Outcome::Call(Err(error)) => match error.category() {
                ToolErrorCategory::Cancelled => Self::Interrupted,
                _ => Self::Failed,
            },
            // The reader closed the pipe, which is not an error.
            Outcome::Error(error) if is_closed_pipe(error) => Self::Done,
            Outcome::Error(error) if is_usage(error) => Self::Usage,
            Outcome::Error(_) => Self::Failed,
        }
    }
}

/// A mistake in the command line or in an input that it names.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// An error that ends the program with the code of wrong usage.
pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// Whether the command line, its input or the configuration is wrong.
fn is_usage(error: &anyhow::Error) -> bool {
    error.downcast_ref::<UsageError>().is_some()
        || error.downcast_ref::<ConfigErrors>().is_some()
        || error
            .downcast_ref::<StoreError>()
            .is_some_and(StoreError::is_configuration)
        || error.downcast_ref::<SandboxError>().is_some()
        || error.downcast_ref::<DomainError>().is_some()
        || matches!(
            error.downcast_ref::<ScheduleError>(),
            Some(ScheduleError::When(_) | ScheduleError::Empty | ScheduleError::Long)
        )
}

/// Whether the reader of the output closed the pipe.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().map(io::Error::kind)
    };
    error
        .chain()
        .any(|cause| kind(cause) == Some(io::ErrorKind::BrokenPipe))
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};
    use zeph_tools::{ToolError, ToolOutput};

    use super::*;

    /// Proves CLI-3: every kind of outcome has its code.
    #[test]
    fn outcomes_have_their_exit_codes() {
        let turn = |end, code| assert_eq!(Exit::of(Outcome::Turn(end)).code(), code, "{end:?}");
        turn(TurnEnd::Done, 0);
        turn(TurnEnd::Error, 1);
        turn(TurnEnd::Refused, 3);
        for end in [
            TurnEnd::IterationCap,
            TurnEnd::DoomLoop,
            TurnEnd::ContextBudget,
            TurnEnd::Quota,
            TurnEnd::Budget,
        ] {
            turn(end, 4);
        }
        turn(TurnEnd::Cancelled, 130);
        let call = |result: ToolResult, code| {
            assert_eq!(Exit::of(Outcome::Call(&result)).code(), code, "{result:?}");
        };
        call(Ok(ToolOutput::text("x")), 0);
        call(Err(ToolError::permanent("x")), 1);
        call(Err(ToolError::blocked("x")), 3);
        let reason = "x".to_owned();
        call(Err(ToolError::Cancelled { reason }), 130);
        let error = |error: anyhow::Error, code| {
            assert_eq!(Exit::of(Outcome::Error(&error)).code(), code, "{error:?}");
        };
        error(anyhow!("x"), 1);
        error(usage("x"), 2);
        error(usage("x").context("y"), 2);
        let missing = || Err::<(), _>(io::Error::from(io::ErrorKind::NotFound));
        error(missing().context("x").unwrap_err(), 1);
        error(
            missing().context(UsageError("x".to_owned())).unwrap_err(),
            2,
        );
        let closed = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe));
        error(closed.context("x").unwrap_err(), 0);
    }
}
