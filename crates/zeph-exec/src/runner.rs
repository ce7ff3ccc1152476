//! The port through which a command runs: on this machine, or in an editor's terminal.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::sandbox::{Denial, Plan};

/// An output stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A command to run. Its standard input is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program (an absolute path) and its arguments.
    pub argv: Vec<OsString>,
    /// The directory in which it starts; absolute.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The time limit; `None` is unlimited.
    pub timeout: Option<Duration>,
    /// Names of folders, such as `.git`, in which denied files stay readable for this command.
    pub readable_folders: Vec<String>,
    /// Its sandbox.
    pub sandbox: CommandSandbox,
}

impl CommandSpec {
    /// Creates a command without an environment and a time limit, in the sandbox of the session.
    #[must_use]
    pub fn new(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into);
        Self {
            argv: std::iter::once(program.into()).chain(arguments).collect(),
            cwd: cwd.into(),
            env: Vec::new(),
            timeout: None,
            readable_folders: Vec::new(),
            sandbox: CommandSandbox::Session,
        }
    }

    /// Sets the time limit of the command.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds a variable to the environment.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the sandbox of the command.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: CommandSandbox) -> Self {
        self.sandbox = sandbox;
        self
    }
}

/// The sandbox of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CommandSandbox {
    /// The plan of the session, if it has one.
    #[default]
    Session,
    /// This plan. If the session has no plan, the command runs without a sandbox.
    Plan(Box<Plan>),
    /// No sandbox.
    Off,
}

/// The exit of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code; `128 + signal` if a signal ended it.
    pub code: i32,
    /// The signal that ended it, if any.
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

/// The exit with this code or with the signal of this name (`SIGTERM` or `TERM`). `None` if neither is known.
#[must_use]
pub fn exit_of(code: Option<i32>, signal: Option<&str>) -> Option<Exit> {
    let signal = signal.and_then(signal_number);
    match (code, signal) {
        (Some(code), signal) => Some(Exit { code, signal }),
        (None, Some(signal)) => Some(Exit::by_signal(signal)),
        (None, None) => None,
    }
}

/// The number of the signal with this name.
fn signal_number(name: &str) -> Option<i32> {
    const MAX_SIGNAL: i32 = 64;
    let name = name.to_ascii_uppercase();
    let bare = name.strip_prefix("SIG").unwrap_or(&name);
    let is_named = |signal: &i32| {
        let known = signal_hook::low_level::signal_name(*signal);
        known.and_then(|known| known.strip_prefix("SIG")) == Some(bare)
    };
    let number = bare
        .parse()
        .ok()
        .filter(|number| (1..=MAX_SIGNAL).contains(number));
    number.or_else(|| (1..=MAX_SIGNAL).find(is_named))
}

/// The reason why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// It ended on its own.
    Finished,
    /// Its time limit was reached.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
}

/// A process that outlives its command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundProcess {
    /// Its process id.
    pub pid: i32,
    /// Its command's name.
    pub name: String,
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// The exit of the shell.
    pub exit: Exit,
    /// The reason for the end.
    pub cause: EndReason,
    /// The processes that still run. Empty unless the command ended on its own.
    pub background: Vec<BackgroundProcess>,
    /// Whether some processes of a stopped command could not be ended.
    pub lingering: bool,
    /// The part of the wanted sandbox that this machine does not enforce.
    pub unconfined: Option<String>,
    /// The accesses that the sandbox refused, in order. Not all machines report them.
    pub denials: Vec<Denial>,
    /// Whether background processes of earlier commands were lost. Their supervisor had died and was restarted for this
    /// command.
    pub restarted: bool,
}

/// The reason why a command has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program could not be started.
    #[error("the shell could not be started: {0}")]
    Spawn(#[source] io::Error),
    /// The required sandbox is not available.
    #[error("the command was not run: {0}")]
    Unconfined(String),
    /// The supervisor could not be started.
    #[error("the process that runs shell commands could not be started: {0}")]
    Unavailable(#[source] io::Error),
    /// The terminal of an editor failed.
    #[error("the editor's terminal failed: {0}")]
    Terminal(String),
    /// The supervisor died while the command ran.
    #[error(
        "the process that runs shell commands died; the command was killed with it, and the next \
         call starts a new one"
    )]
    Lost,
}

/// A receiver of the output of a command in order of arrival.
pub type OutputFn<'a> = &'a mut (dyn FnMut(StdStream, &[u8]) + Send);

/// A runner of commands.
#[async_trait]
pub trait CommandRunner: Send + Sync {
    /// Requests the start of a command. It does not wait for the start.
    ///
    /// # Errors
    /// [`RunError`] if the command cannot be started.
    async fn start(&self, command: CommandSpec) -> Result<Box<dyn RunningCommand>, RunError>;

    /// Requests the start of a command that the user typed: without a sandbox, and at the terminal `side` if there is one.
    /// Its output is then read from the other side of the terminal.
    ///
    /// # Errors
    /// As [`CommandRunner::start`].
    async fn start_for_user(
        &self,
        command: CommandSpec,
        side: Option<OwnedFd>,
    ) -> Result<Box<dyn RunningCommand>, RunError>;

    /// Returns `command` in a form that sets up its own sandbox, for another terminal on this machine. `None` if a part of
    /// the sandbox is not possible there: then only this runner runs it.
    ///
    /// # Errors
    /// [`RunError`] if the command cannot be run in any way.
    async fn self_confined(&self, command: CommandSpec) -> Result<Option<CommandSpec>, RunError>;

    /// Whether denied files that exist when a command starts are hidden from it.
    async fn enforces_deny_read(&self) -> bool;

    /// Ends all processes that commands left behind, and waits until they are gone.
    async fn shutdown(&self);
}

/// A started command. Dropping it ends all its processes, including those that it left behind.
#[async_trait]
pub trait RunningCommand: Send {
    /// Waits until the command runs.
    ///
    /// # Errors
    /// [`RunError`] if it could not be started.
    async fn started(&mut self) -> Result<(), RunError>;

    /// The id of the terminal of an editor in which the command runs, if it runs in one.
    fn terminal_id(&self) -> Option<&str>;

    /// Waits until the shell exits, the time limit is reached or `cancel` is cancelled. In the latter two cases, all
    /// processes that it started are ended before the return.
    ///
    /// # Errors
    /// [`RunError`] if it could not run. The output until then has been passed on.
    async fn wait(
        &mut self,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<CommandOutcome, RunError>;

    /// Waits until the background processes that [`RunningCommand::wait`] reported have ended. Cancelling `cancel` ends
    /// them. Returns whether all are gone.
    ///
    /// # Errors
    /// [`RunError::Lost`].
    async fn wait_for_rest(
        &mut self,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<bool, RunError>;
}
