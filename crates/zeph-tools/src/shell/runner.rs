//! The port through which a command runs: on this machine, or in an editor's terminal.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::event::OutputStream;

/// A command to run. Its standard input is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program (an absolute path) and its arguments.
    pub argv: Vec<OsString>,
    /// The directory in which it starts; absolute.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// After how long it is ended; `None`: never.
    pub timeout: Option<Duration>,
    /// Names of folders, such as `.git`, in which denied files stay readable for this command.
    pub readable_folders: Vec<String>,
}

/// How a process exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code; `128 + signal` when a signal ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Exit {
    /// The exit of a process that `signal` ended.
    #[must_use]
    pub fn by_signal(signal: i32) -> Self {
        Self {
            code: 128 + signal,
            signal: Some(signal),
        }
    }
}

/// Why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// By itself.
    Finished,
    /// Its time was up.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
}

/// A process that a command left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundProcess {
    /// Its process id.
    pub pid: i32,
    /// Its command's name.
    pub name: String,
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// How the shell exited.
    pub exit: Exit,
    /// Why.
    pub cause: EndReason,
    /// What goes on running. Empty unless it finished by itself.
    pub background: Vec<BackgroundProcess>,
    /// Whether something of a stopped command could not be ended.
    pub lingering: bool,
    /// What of the sandbox that is wanted around commands this machine does not enforce.
    pub unconfined: Option<String>,
    /// Whether background processes of earlier commands were lost, because what holds them had
    /// died and was started anew for this command.
    pub restarted: bool,
}

/// Why a command has no end to tell of.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program could not be started.
    #[error("the shell could not be started: {0}")]
    Spawn(#[source] io::Error),
    /// The sandbox that must stand around the command cannot be had.
    #[error("the command was not run: {0}")]
    Unconfined(String),
    /// What runs commands could not be started.
    #[error("the process that runs shell commands could not be started: {0}")]
    Unavailable(#[source] io::Error),
    /// What runs commands died meanwhile.
    #[error(
        "the process that runs shell commands died; the command was killed with it, and the next \
         call starts a new one"
    )]
    Lost,
}

/// Receives what a command prints, in order of arrival.
pub type OutputFn<'a> = &'a mut (dyn FnMut(OutputStream, &[u8]) + Send);

/// Runs commands.
#[async_trait]
pub trait CommandRunner: Send + Sync {
    /// Has a command started. Does not wait for that.
    ///
    /// # Errors
    /// [`RunError`] when it cannot be.
    async fn start(&self, command: CommandSpec) -> Result<Box<dyn RunningCommand>, RunError>;

    /// Whether what may not be read is hidden from commands, as far as it is there when they start.
    async fn hides(&self) -> bool;

    /// Ends everything that commands left behind. Returns when it is gone.
    async fn shutdown(&self);
}

/// A command that was started. Dropping it ends all of it: what runs, and what it left behind.
#[async_trait]
pub trait RunningCommand: Send {
    /// Waits until it runs.
    ///
    /// # Errors
    /// [`RunError`] when it could not be started.
    async fn started(&mut self) -> Result<(), RunError>;

    /// Waits until its shell exits, its time is up or `cancel` is cancelled. In the latter two
    /// cases every process it started is ended before this returns.
    ///
    /// # Errors
    /// [`RunError`] when it could not be run; what it printed until then has been handed over.
    async fn wait(
        &mut self,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<CommandOutcome, RunError>;

    /// After [`RunningCommand::wait`] has told of background processes: waits until all of them
    /// have ended, or `cancel` is cancelled, which ends them. Says whether all are gone.
    ///
    /// # Errors
    /// [`RunError::Lost`].
    async fn wait_for_rest(
        &mut self,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<bool, RunError>;
}
