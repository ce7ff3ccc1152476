//! Programs that communicate over their standard input and output. A separate supervisor is their parent, so that no
//! process outlives the agent.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::denied_files::DeniedFiles;
use super::runner::{CommandSandbox, CommandSpec, Exit, RunError};
use super::sandbox::{Plan, seatbelt};
use super::supervisor::SupervisorCommand;
use super::supervisor::client::Connection;
use super::supervisor::protocol::Reply;

/// The time that the supervisor may take to end.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// A starter of long-running programs. The first one starts the supervisor.
pub struct ServedPrograms {
    supervisor: SupervisorCommand,
    tag: Option<OsString>,
    next: AtomicU64,
    denied: Option<Arc<dyn DeniedFiles>>,
    connection: Mutex<Option<Arc<Connection>>>,
    /// The supervisor of programs from which files are hidden. It may be in a user namespace, in which programs such as
    /// `sudo` do not work, so programs without a sandbox have another one.
    hiding: Mutex<Option<Arc<Connection>>>,
}

/// A running program.
pub struct StdioProcess {
    /// Its standard input.
    pub input: Sender,
    /// Its standard output.
    pub output: Receiver,
    /// Its standard error.
    pub errors: Receiver,
    /// The part of its sandbox that this machine does not enforce; `None` if it has its whole sandbox.
    pub unconfined: Option<String>,
    /// Its processes.
    pub process: ServedProcess,
}

/// The processes of a program. Dropping it ends them.
pub struct ServedProcess {
    connection: Arc<Connection>,
    replies: UnboundedReceiver<Reply>,
    id: u64,
}

impl ServedPrograms {
    /// Returns a starter for programs below a supervisor, which `supervisor` starts. `tag` is the value of
    /// `ZEPH_CALL_ID` in the agent's own environment.
    #[must_use]
    pub fn new(supervisor: SupervisorCommand, tag: Option<OsString>) -> Self {
        Self {
            supervisor,
            tag,
            next: AtomicU64::new(1),
            denied: None,
            connection: Mutex::new(None),
            hiding: Mutex::new(None),
        }
    }

    /// Sets the read rules. Files that they deny are hidden from programs with a sandbox.
    #[must_use]
    pub fn with_denied_files(mut self, denied: Arc<dyn DeniedFiles>) -> Self {
        self.denied = denied.has_rules().then_some(denied);
        self
    }

    /// Returns the running supervisor, or starts one.
    async fn connect(&self, hides: bool) -> io::Result<Arc<Connection>> {
        let mut connection = match hides {
            true => self.hiding.lock().await,
            false => self.connection.lock().await,
        };
        if let Some(running) = connection.as_ref().filter(|running| !running.is_ended()) {
            return Ok(Arc::clone(running));
        }
        let started = Connection::start(&self.supervisor, self.tag.as_ref(), hides)?;
        Ok(Arc::clone(connection.insert(Arc::new(started))))
    }

    /// Starts a program in its sandbox. The timeout of `command` is ignored. These programs do not share a plan:
    /// [`CommandSandbox::Session`] counts as [`CommandSandbox::Off`].
    ///
    /// # Errors
    /// [`RunError`] if it cannot be started, or if its required sandbox is missing.
    pub async fn start(&self, mut command: CommandSpec) -> Result<StdioProcess, RunError> {
        let mut missed = None;
        let plan = match std::mem::take(&mut command.sandbox) {
            CommandSandbox::Plan(plan) if seatbelt::is_there() => {
                let argv = std::mem::take(&mut command.argv);
                let denied = self.denied.as_ref();
                let globs = denied.map_or_else(Vec::new, |denied| denied.globs());
                command.argv = seatbelt::around(argv, &plan, &globs);
                None
            }
            CommandSandbox::Plan(plan) => {
                let (plan, not_found) = self.hiding_denied(*plan).await?;
                missed = not_found;
                Some(plan)
            }
            CommandSandbox::Session | CommandSandbox::Off => None,
        };
        let hides = plan.as_ref().is_some_and(|plan| plan.hidden.is_some());
        let connection = self.connect(hides).await;
        let connection = connection.map_err(RunError::Unavailable)?;
        let (stdin, input) = io::pipe().map_err(RunError::Spawn)?;
        let (output, stdout) = io::pipe().map_err(RunError::Spawn)?;
        let (errors, stderr) = io::pipe().map_err(RunError::Spawn)?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let ends = [stdout.into(), stderr.into()];
        let replies = connection
            .run(id, &command, plan.as_ref(), ends, Some(stdin.into()))
            .map_err(RunError::Spawn)?
            .ok_or(RunError::Lost)?;
        let mut process = ServedProcess {
            connection,
            replies,
            id,
        };
        let unconfined = process.started().await?.or(missed);
        Ok(StdioProcess {
            unconfined,
            input: Sender::from_owned_fd(input.into()).map_err(RunError::Spawn)?,
            output: Receiver::from_owned_fd(output.into()).map_err(RunError::Spawn)?,
            errors: Receiver::from_owned_fd(errors.into()).map_err(RunError::Spawn)?,
            process,
        })
    }

    /// The plan in which denied files are hidden, and the reason why some of them may not be.
    ///
    /// # Errors
    /// If they may not be, and the sandbox is required.
    async fn hiding_denied(&self, plan: Plan) -> Result<(Plan, Option<String>), RunError> {
        let Some(denied) = self.denied.clone() else {
            return Ok((plan, None));
        };
        let found = tokio::task::spawn_blocking(move || denied.find()).await;
        let found = found.map_err(|error| RunError::Unconfined(error.to_string()))?;
        match found.missed {
            Some(missed) if plan.required => Err(RunError::Unconfined(missed)),
            missed => {
                let hidden = Some(found.paths);
                Ok((Plan { hidden, ..plan }, missed))
            }
        }
    }

    /// Ends all programs, and waits until they are gone.
    pub async fn shutdown(&self) {
        let connections = [
            self.connection.lock().await.take(),
            self.hiding.lock().await.take(),
        ];
        for connection in connections.into_iter().flatten() {
            let _ = timeout(SHUTDOWN, connection.close()).await;
        }
    }
}

impl ServedProcess {
    /// Waits until the program runs. Returns the part of its sandbox that is not enforced.
    async fn started(&mut self) -> Result<Option<String>, RunError> {
        match self.replies.recv().await {
            Some(Reply::Unconfined { message, .. }) => Err(RunError::Unconfined(message)),
            Some(Reply::Failed { errno, message, .. }) => Err(RunError::Spawn(match errno {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::other(message),
            })),
            Some(Reply::Started { unconfined, .. }) => Ok(unconfined),
            Some(_) => Ok(None),
            None => Err(RunError::Lost),
        }
    }

    /// Waits until the first process has exited. `None` if the supervisor is lost.
    pub async fn exited(&mut self) -> Option<Exit> {
        loop {
            match self.replies.recv().await? {
                Reply::Exited { exit, .. } => return Some(exit),
                _ => continue,
            }
        }
    }
}

impl Drop for ServedProcess {
    fn drop(&mut self) {
        self.connection.kill(self.id);
        self.connection.forget(self.id);
    }
}
