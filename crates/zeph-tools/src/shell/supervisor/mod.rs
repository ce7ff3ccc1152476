//! The helper process that is the parent of every shell command.
//!
//! The program re-executes itself as the supervisor at the first command of a session; one end of
//! a socket pair is its standard input. It stands in a session of its own, adopts whatever its
//! descendants orphan, and ends when the socket closes, however the agent ended: then it ends
//! every descendant first. So nothing that a command started outlives the agent.
//!
//! `protocol` says what travels over the socket, `client` is the agent's end, `server` the
//! supervisor's, `spawn` starts one command; `tree` finds and ends processes.

pub(super) mod client;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub(super) mod protocol;
mod server;
mod spawn;
#[cfg(target_os = "linux")]
mod stat;
#[cfg(target_os = "linux")]
#[path = "tree_linux.rs"]
mod tree;
#[cfg(not(target_os = "linux"))]
#[path = "tree_groups.rs"]
mod tree;

use std::ffi::OsString;
use std::path::PathBuf;

pub use server::supervisor_main;

/// The hidden first argument with which a program is asked to be the supervisor.
pub const SUPERVISOR_ARG: &str = "__shell-supervisor";

/// The argument behind it with which a supervisor hides files from commands.
pub(super) const HIDING_ARG: &str = "hiding";

/// The variable by which processes are known as a call's: `<supervisor's pid>.<call>`.
pub(super) const CALL_TAG: &str = "ZEPH_CALL_ID";

/// How the supervisor is started: a program that calls [`supervisor_main`] for these arguments
/// before it does anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorCommand {
    /// The program: usually the running one.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl SupervisorCommand {
    /// `program` with [`SUPERVISOR_ARG`].
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: vec![SUPERVISOR_ARG.into()],
        }
    }
}
