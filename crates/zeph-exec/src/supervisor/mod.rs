//! The helper process that is the parent of every shell command.
//!
//! The program re-executes itself as the supervisor at the first command of a session. One end of a socket pair is its
//! standard input. The supervisor has its own session, adopts the orphans of its descendants, and ends when the socket
//! closes. Before that, it ends every descendant. So no process that a command started outlives the agent, regardless
//! of how the agent ends.
//!
//! `protocol` defines the messages on the socket, `client` is the agent's end, and `server` the supervisor's. `spawn`
//! starts one command, and `tree` finds and ends processes.

pub(super) mod client;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod protocol;
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

/// Ends the processes of a command that another program started, which have `tag` as their [`CALL_TAG`] or mark. They get SIGTERM,
/// and SIGKILL after `grace`. Returns whether none is left. It blocks its thread, and finds processes on Linux only.
#[must_use]
pub fn end_tagged(tag: &str, grace: std::time::Duration) -> bool {
    tree::end_tagged(tag, grace)
}

/// Marks this process and its later children for [`end_tagged`], until the result is dropped. A program that replaces this
/// process inherits the mark.
pub(crate) fn mark(tag: &str) -> std::io::Result<impl Sized + use<>> {
    tree::mark(tag)
}

/// The hidden first argument that makes the program the supervisor.
pub const SUPERVISOR_ARG: &str = "__shell-supervisor";

/// The next argument, which makes a supervisor hide files from commands.
pub(super) const HIDING_ARG: &str = "hiding";

/// The variable that identifies the processes of a call: `<supervisor's pid>.<call>`.
pub const CALL_TAG: &str = "ZEPH_CALL_ID";

/// The command that starts the supervisor: a program that calls [`supervisor_main`] for these arguments before any
/// other work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorCommand {
    /// The program, usually the running one.
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
