//! Exit codes.

use std::process::ExitCode;

use zeph_core::TurnEnd;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// It failed.
    Failed,
    /// The command line or the configuration is wrong; nothing ran.
    Usage,
    /// A gate refused.
    Refused,
    /// A limit stopped it.
    Limit,
    /// Ctrl-C.
    Interrupted,
    /// As the command that it ran.
    As(u8),
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
            Self::Interrupted => 130,
            Self::As(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<TurnEnd> for Exit {
    fn from(end: TurnEnd) -> Self {
        match end {
            TurnEnd::Done => Self::Done,
            TurnEnd::IterationCap
            | TurnEnd::DoomLoop
            | TurnEnd::ContextBudget
            | TurnEnd::Quota
            | TurnEnd::Budget => Self::Limit,
            TurnEnd::Refused => Self::Refused,
            TurnEnd::Cancelled => Self::Interrupted,
            TurnEnd::Error => Self::Failed,
        }
    }
}
