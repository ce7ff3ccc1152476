//! Runner for commands on this machine, below the supervisor.

use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::confined::{self, Limits, Machine};
use super::denied_files::DeniedFiles;
use super::pipes::Pipes;
use super::runner::{
    BackgroundProcess, CommandOutcome, CommandRunner, CommandSandbox, CommandSpec, EndReason, Exit,
    OutputFn, RunError, RunningCommand,
};
use super::sandbox::{self, Denial, Plan, seatbelt};
use super::supervisor::SupervisorCommand;
use super::supervisor::client::{Connection, GRACE};
use super::supervisor::protocol::Reply;

/// The time after the grace period until a stopped command is abandoned.
const MARGIN: Duration = Duration::from_millis(1500);
/// The time to wait for output when the shell has exited and no known process holds its pipes.
const LAST_OUTPUT: Duration = Duration::from_millis(50);
/// The time that the supervisor may take to end.
const SHUTDOWN: Duration = Duration::from_secs(5);
/// The signal of an abandoned command.
const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();

/// A runner of commands below a supervisor. The first command starts it, and the next one restarts it if it died.
pub struct LocalRunner {
    supervisor: SupervisorCommand,
    tag: Option<OsString>,
    plan: Option<Plan>,
    denied: Option<Arc<dyn DeniedFiles>>,
    next: AtomicU64,
    connection: Mutex<Option<Arc<Connection>>>,
    /// The supervisor of commands of the user, if the first one hides files from its commands.
    of_user: Mutex<Option<Arc<Connection>>>,
    /// Whether the supervisor was restarted, and no command has reported that yet.
    restarted: AtomicBool,
}

impl LocalRunner {
    /// Returns a runner that starts its supervisor with `supervisor`. `tag` is the value of `ZEPH_CALL_ID` in the
    /// agent's own environment, if it runs below another agent.
    #[must_use]
    pub fn new(supervisor: SupervisorCommand, tag: Option<OsString>) -> Self {
        Self {
            supervisor,
            tag,
            plan: None,
            denied: None,
            next: AtomicU64::new(1),
            connection: Mutex::new(None),
            of_user: Mutex::new(None),
            restarted: AtomicBool::new(false),
        }
    }

    /// Sets the sandbox of the commands.
    #[must_use]
    pub fn with_sandbox(mut self, plan: Option<Plan>) -> Self {
        self.plan = plan;
        self
    }

    /// Sets the read rules. Files that they deny are hidden from commands with a sandbox.
    #[must_use]
    pub fn with_denied_files(mut self, denied: Arc<dyn DeniedFiles>) -> Self {
        self.denied = Some(denied);
        self
    }

    /// Whether denied files must be hidden.
    fn is_hiding(&self) -> bool {
        self.plan.is_some()
            && self
                .denied
                .as_ref()
                .is_some_and(|denied| denied.has_rules())
    }

    /// Whether files of Zeph itself are below a writable directory. Landlock does not protect them there.
    fn is_covering(&self) -> bool {
        let is_exposed = |plan: &Plan| self.private().iter().any(|path| plan.allows(path));
        self.plan.as_ref().is_some_and(is_exposed)
    }

    /// Files and directories of the program itself that no command may read.
    fn private(&self) -> &[PathBuf] {
        self.denied.as_ref().map_or(&[], |denied| denied.private())
    }

    /// The parts of a sandbox that this machine enforces. Hiding is checked only if `needs_hiding`, because that starts the
    /// supervisor.
    async fn machine(&self, needs_hiding: bool) -> Machine {
        let found = sandbox::probe();
        Machine {
            confines_writes: found.as_ref().is_ok_and(|found| found.confines_writes()),
            refuses_sockets: found.is_ok_and(|found| found.seccomp),
            hides: needs_hiding && self.supervisor_hides().await,
        }
    }

    async fn supervisor_hides(&self) -> bool {
        match self.connect().await {
            Ok(connection) => connection.enforces_deny_read().await,
            Err(_) => false,
        }
    }

    /// The sandbox plan for a command that starts now, and the part of it that is not possible. For Seatbelt, it adds a
    /// program to the command.
    ///
    /// # Errors
    /// If this part is required.
    async fn plan_now(
        &self,
        command: &mut CommandSpec,
    ) -> Result<(Option<Plan>, Option<String>), RunError> {
        let plan = match (std::mem::take(&mut command.sandbox), &self.plan) {
            (CommandSandbox::Off, _) | (_, None) => return Ok((None, None)),
            (CommandSandbox::Session, Some(plan)) => plan.clone(),
            (CommandSandbox::Plan(plan), Some(_)) => *plan,
        };
        if seatbelt::is_there() {
            let argv = std::mem::take(&mut command.argv);
            command.argv = seatbelt::around(
                argv,
                &plan,
                &self
                    .denied
                    .as_ref()
                    .map_or_else(Vec::new, |denied| denied.globs()),
            );
            return Ok((None, None));
        }
        let Some(denied) = self.denied.clone().filter(|denied| denied.has_rules()) else {
            let covers = self.is_covering() && self.supervisor_hides().await;
            let hidden = covers.then(|| {
                let denied = self.denied.as_ref();
                denied.map_or_else(Vec::new, |denied| denied.private_entries())
            });
            return Ok((Some(Plan { hidden, ..plan }), None));
        };
        let found = tokio::task::spawn_blocking(move || denied.find()).await;
        let found = found.map_err(|error| RunError::Unconfined(error.to_string()))?;
        let stays_readable = |path: &PathBuf| {
            let folders = &command.readable_folders;
            path.iter()
                .any(|name| folders.iter().any(|folder| name == OsStr::new(folder)))
        };
        let mut hidden = found.paths;
        hidden.retain(|path| !stays_readable(path));
        hidden.extend_from_slice(self.private());
        match found.missed {
            Some(missed) if plan.required => Err(RunError::Unconfined(missed)),
            missed => Ok((
                Some(Plan {
                    hidden: Some(hidden),
                    unreadable: Vec::new(),
                    ..plan
                }),
                missed,
            )),
        }
    }

    /// Returns the running supervisor, or starts one.
    async fn connect(&self) -> Result<Arc<Connection>, RunError> {
        self.connect_to(&self.connection, self.is_hiding() || self.is_covering())
            .await
    }

    /// Returns a supervisor that hides no files. A supervisor that hides files may be in a user namespace, in which
    /// programs such as `sudo` do not work.
    async fn connect_for_user(&self) -> Result<Arc<Connection>, RunError> {
        match self.is_hiding() || self.is_covering() {
            true => self.connect_to(&self.of_user, false).await,
            false => self.connect().await,
        }
    }

    async fn connect_to(
        &self,
        connection: &Mutex<Option<Arc<Connection>>>,
        hides: bool,
    ) -> Result<Arc<Connection>, RunError> {
        let mut connection = connection.lock().await;
        if let Some(running) = connection.as_ref().filter(|running| !running.is_ended()) {
            return Ok(Arc::clone(running));
        }
        let started = Connection::start(&self.supervisor, self.tag.as_ref(), hides)
            .map(Arc::new)
            .map_err(RunError::Unavailable)?;
        let before = connection.replace(Arc::clone(&started));
        self.restarted.fetch_or(before.is_some(), Ordering::Relaxed);
        Ok(started)
    }
}

#[async_trait]
impl CommandRunner for LocalRunner {
    async fn start(&self, mut command: CommandSpec) -> Result<Box<dyn RunningCommand>, RunError> {
        let deadline = command.timeout.map(|timeout| Instant::now() + timeout);
        let connection = self.connect().await?;
        let restarted = self.restarted.swap(false, Ordering::Relaxed);
        let (plan, missed) = self.plan_now(&mut command).await?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (pipes, ends) = Pipes::new().map_err(RunError::Spawn)?;
        let replies = connection
            .run(id, &command, plan.as_ref(), ends, None)
            .map_err(RunError::Spawn)?
            .ok_or(RunError::Lost)?;
        Ok(Box::new(Running {
            connection,
            replies,
            id,
            pipes,
            deadline,
            restarted,
            over: false,
            lacks: missed.into_iter().collect(),
        }))
    }

    async fn start_for_user(
        &self,
        command: CommandSpec,
        side: Option<OwnedFd>,
    ) -> Result<Box<dyn RunningCommand>, RunError> {
        let deadline = command.timeout.map(|timeout| Instant::now() + timeout);
        let connection = self.connect_for_user().await?;
        let restarted = self.restarted.swap(false, Ordering::Relaxed);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (pipes, ends) = Pipes::new().map_err(RunError::Spawn)?;
        // At a terminal, no process has the write ends of the pipes, so that they end immediately.
        let replies = match side {
            Some(side) => connection.run_at_terminal(id, &command, side),
            None => connection.run(id, &command, None, ends, None),
        };
        let replies = replies.map_err(RunError::Spawn)?.ok_or(RunError::Lost)?;
        Ok(Box::new(Running {
            connection,
            replies,
            id,
            pipes,
            deadline,
            restarted,
            over: false,
            lacks: Vec::new(),
        }))
    }

    async fn self_confined(
        &self,
        mut command: CommandSpec,
    ) -> Result<Option<CommandSpec>, RunError> {
        let (plan, missed) = self.plan_now(&mut command).await?;
        let machine = match &plan {
            Some(plan) => self.machine(plan.hidden.is_some()).await,
            None => Machine::default(),
        };
        let helper = confined::helper(&self.supervisor.program);
        let limits = Limits { plan, missed };
        Ok(confined::confine(
            command,
            limits,
            machine,
            helper.as_deref(),
        ))
    }

    async fn enforces_deny_read(&self) -> bool {
        self.is_hiding() && (seatbelt::is_there() || self.supervisor_hides().await)
    }

    async fn shutdown(&self) {
        for connection in [&self.connection, &self.of_user] {
            if let Some(connection) = connection.lock().await.take() {
                let _ = timeout(SHUTDOWN, connection.close()).await;
            }
        }
    }
}

/// A requested command. It is ended if this is dropped before its end.
struct Running {
    connection: Arc<Connection>,
    replies: UnboundedReceiver<Reply>,
    id: u64,
    pipes: Pipes,
    deadline: Option<Instant>,
    restarted: bool,
    /// The missing parts of its sandbox.
    lacks: Vec<String>,
    over: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            self.connection.kill(self.id);
        }
        self.connection.forget(self.id);
    }
}

#[async_trait]
impl RunningCommand for Running {
    fn terminal_id(&self) -> Option<&str> {
        None
    }

    async fn started(&mut self) -> Result<(), RunError> {
        match self.replies.recv().await {
            Some(reply) => self.note_start(reply).map_or(Ok(()), Err),
            None => Err(RunError::Lost),
        }
    }

    async fn wait(
        &mut self,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<CommandOutcome, RunError> {
        let ended = self.shell_end(cancel, output).await?;
        self.over = ended.background.is_empty();
        let patience = if self.over {
            LAST_OUTPUT
        } else {
            Duration::ZERO
        };
        self.pipes.drain(patience, output).await;
        Ok(ended)
    }

    async fn wait_for_rest(
        &mut self,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<bool, RunError> {
        let mut limit = None;
        let clean = loop {
            tokio::select! {
                biased;
                reply = self.replies.recv() => match reply {
                    Some(Reply::Quiet { .. }) => break true,
                    Some(Reply::Gone { clean, .. }) => break clean,
                    Some(_) => {}
                    None => {
                        self.pipes.drain(Duration::ZERO, output).await;
                        return Err(RunError::Lost);
                    }
                },
                () = cancel.cancelled(), if limit.is_none() => {
                    self.connection.kill(self.id);
                    limit = Some(Instant::now() + GRACE + MARGIN);
                }
                () = at(limit) => break false,
                () = self.pipes.read(output) => yield_now().await,
            }
        };
        self.over = true;
        self.pipes.drain(LAST_OUTPUT, output).await;
        Ok(clean)
    }
}

/// The known facts about the end of a command.
#[derive(Default)]
struct Progress {
    exit: Option<(Exit, Vec<BackgroundProcess>)>,
    stopped: Option<EndReason>,
    gone: Option<bool>,
    denials: Vec<Denial>,
}

impl Running {
    /// Passes on output until the shell has exited or the command was ended.
    async fn shell_end(
        &mut self,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<CommandOutcome, RunError> {
        let mut progress = Progress::default();
        let mut limit = self.deadline;
        loop {
            let stopped = progress.stopped.is_some();
            tokio::select! {
                biased;
                reply = self.replies.recv() => match reply {
                    Some(Reply::Exited { exit, background, denials, .. }) => {
                        progress.exit = Some((exit, background));
                        progress.denials = denials;
                    }
                    Some(Reply::Gone { clean, .. }) => progress.gone = Some(clean),
                    Some(reply) => match self.note_start(reply) {
                        Some(error) => return Err(error),
                        None => continue,
                    },
                    None => {
                        self.pipes.drain(Duration::ZERO, output).await;
                        return Err(RunError::Lost);
                    }
                },
                () = cancel.cancelled(), if !stopped => {
                    progress.stopped = Some(EndReason::Cancelled);
                }
                () = at(limit) => match progress.stopped {
                    None => progress.stopped = Some(EndReason::TimedOut),
                    Some(_) => progress.gone = Some(false),
                },
                () = self.pipes.read(output) => {
                    // Endless output must not block other tasks.
                    yield_now().await;
                    continue;
                }
            }
            if progress.stopped.is_some() && !stopped {
                self.connection.kill(self.id);
                limit = Some(Instant::now() + GRACE + MARGIN);
            }
            if let Some(mut ended) = progress.end() {
                ended.restarted = self.restarted;
                let is_whole = self.lacks.is_empty();
                ended.unconfined = (!is_whole).then(|| self.lacks.join("; "));
                return Ok(ended);
            }
        }
    }

    /// Records the limits of a command that was started. Returns the reason why the command was not started, if the reply
    /// has one.
    fn note_start(&mut self, reply: Reply) -> Option<RunError> {
        let error = match reply {
            Reply::Started { unconfined, .. } => {
                self.lacks.extend(unconfined);
                return None;
            }
            Reply::Unconfined { message, .. } => RunError::Unconfined(message),
            Reply::Failed { errno, message, .. } => RunError::Spawn(match errno {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::other(message),
            }),
            _ => return None,
        };
        self.over = true;
        Some(error)
    }
}

/// Waits until `moment`; without one, waits forever.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

impl Progress {
    /// The outcome, if it is complete: the exit, and for a stopped command the end of all processes. An abandoned
    /// command counts as killed.
    fn end(&mut self) -> Option<CommandOutcome> {
        let (cause, lingering) = match self.stopped {
            None => (EndReason::Finished, false),
            Some(cause) => (cause, !self.gone?),
        };
        let killed = || (Exit::by_signal(SIGKILL), Vec::new());
        let (exit, background) = match self.exit.take() {
            Some(exit) => exit,
            None if lingering => killed(),
            None => return None,
        };
        Some(CommandOutcome {
            exit,
            cause,
            background: if cause == EndReason::Finished {
                background
            } else {
                Vec::new()
            },
            lingering,
            unconfined: None,
            denials: std::mem::take(&mut self.denials),
            restarted: false,
        })
    }
}
