//! Commands on this machine, below the supervisor.

use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::os_sandbox::{Plan, seatbelt};
use super::reads::Reads;
use super::runner::{
    BackgroundProcess, Cause, CommandRunner, CommandSpec, Ended, Exit, OutputFn, RunError,
};
use super::supervisor::SupervisorCommand;
use super::supervisor::client::{Connection, GRACE};
use super::supervisor::protocol::Reply;
use crate::event::OutputStream;

/// How long a stopped command may take beyond the grace time before it is given up.
const MARGIN: Duration = Duration::from_millis(1500);
/// How long output is waited for when the shell has exited and nothing known holds its pipes.
const LAST_OUTPUT: Duration = Duration::from_millis(50);
/// How long the supervisor may take to end.
const SHUTDOWN: Duration = Duration::from_secs(5);
/// The signal that what is given up has been sent.
const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();
/// Bytes read at once: what a pipe holds.
const PIECE: usize = 64 * 1024;

/// Runs commands below a supervisor, which is started at the first one and again when it died.
pub struct LocalRunner {
    supervisor: SupervisorCommand,
    tag: Option<OsString>,
    plan: Option<Plan>,
    reads: Arc<Reads>,
    next: AtomicU64,
    connection: Mutex<Option<Arc<Connection>>>,
    /// Whether a supervisor had died and no command has told of it yet.
    restarted: AtomicBool,
}

impl LocalRunner {
    /// A runner whose supervisor is started by `supervisor`. `tag` is the value of `ZEPH_CALL_ID`
    /// in the agent's own environment, when it runs below another agent.
    #[must_use]
    pub fn new(supervisor: SupervisorCommand, tag: Option<OsString>) -> Self {
        Self {
            supervisor,
            tag,
            plan: None,
            reads: Arc::default(),
            next: AtomicU64::new(1),
            connection: Mutex::new(None),
            restarted: AtomicBool::new(false),
        }
    }

    /// The same with a sandbox around each command.
    #[must_use]
    pub fn confined(mut self, plan: Option<Plan>) -> Self {
        self.plan = plan;
        self
    }

    /// The same with what `reads` denies hidden from commands, where there is a sandbox around them.
    #[must_use]
    pub fn hiding(mut self, reads: Arc<Reads>) -> Self {
        self.reads = reads;
        self
    }

    /// Whether something is to be hidden.
    fn is_hiding(&self) -> bool {
        self.plan.is_some() && self.reads.denies()
    }

    async fn supervisor_hides(&self) -> bool {
        match self.connect().await {
            Ok(connection) => connection.hides().await,
            Err(_) => false,
        }
    }

    /// The plan for a command that starts now, and what of it cannot be had. Seatbelt's is a program
    /// around the command.
    ///
    /// # Errors
    /// When it must be had.
    async fn plan_now(
        &self,
        command: &mut CommandSpec,
    ) -> Result<(Option<Plan>, Option<String>), RunError> {
        let Some(plan) = self.plan.clone() else {
            return Ok((None, None));
        };
        if seatbelt::is_there() {
            let argv = std::mem::take(&mut command.argv);
            command.argv = seatbelt::around(argv, &plan, self.reads.globs());
            return Ok((None, None));
        }
        if !self.is_hiding() {
            return Ok((Some(plan), None));
        }
        let reads = Arc::clone(&self.reads);
        let found = tokio::task::spawn_blocking(move || reads.find()).await;
        let found = found.map_err(|error| RunError::Unconfined(error.to_string()))?;
        match found.missed {
            Some(missed) if plan.required => Err(RunError::Unconfined(missed)),
            missed => Ok((
                Some(Plan {
                    hidden: Some(found.paths),
                    ..plan
                }),
                missed,
            )),
        }
    }

    /// The supervisor.
    async fn connect(&self) -> Result<Arc<Connection>, RunError> {
        let mut connection = self.connection.lock().await;
        if let Some(running) = connection.as_ref().filter(|running| !running.is_ended()) {
            return Ok(Arc::clone(running));
        }
        let started = Connection::start(&self.supervisor, self.tag.as_ref(), self.is_hiding())
            .map(Arc::new)
            .map_err(RunError::Unavailable)?;
        let before = connection.replace(Arc::clone(&started));
        self.restarted.fetch_or(before.is_some(), Ordering::Relaxed);
        Ok(started)
    }
}

#[async_trait]
impl CommandRunner for LocalRunner {
    async fn run(
        &self,
        mut command: CommandSpec,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<Ended, RunError> {
        let deadline = Instant::now() + command.timeout;
        let connection = self.connect().await?;
        let restarted = self.restarted.swap(false, Ordering::Relaxed);
        let (plan, missed) = self.plan_now(&mut command).await?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (mut pipes, ends) = Pipes::new().map_err(RunError::Spawn)?;
        let mut running = Running {
            replies: connection
                .run(id, &command, plan.as_ref(), ends)
                .map_err(RunError::Spawn)?
                .ok_or(RunError::Lost)?,
            connection,
            id,
            over: false,
        };
        let mut ended = running.wait(&mut pipes, deadline, cancel, output).await?;
        ended.restarted = restarted;
        let lacks: Vec<String> = ended.unconfined.take().into_iter().chain(missed).collect();
        ended.unconfined = (!lacks.is_empty()).then(|| lacks.join("; "));
        running.over = true;
        let patience = if ended.background.is_empty() {
            LAST_OUTPUT
        } else {
            Duration::ZERO
        };
        pipes.drain(patience, output).await;
        // What still runs may print: it must neither be stopped by a full pipe nor by a closed one.
        if !ended.background.is_empty() && pipes.is_open() {
            tokio::spawn(pipes.discard());
        }
        Ok(ended)
    }

    async fn hides(&self) -> bool {
        self.is_hiding() && (seatbelt::is_there() || self.supervisor_hides().await)
    }

    async fn shutdown(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            let _ = timeout(SHUTDOWN, connection.close()).await;
        }
    }
}

/// A command that was asked for. It is ended when this is dropped before its end was seen.
struct Running {
    connection: Arc<Connection>,
    replies: UnboundedReceiver<Reply>,
    id: u64,
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

/// What is known of a command's end.
#[derive(Default)]
struct Progress {
    exit: Option<(Exit, Vec<BackgroundProcess>)>,
    stopped: Option<Cause>,
    gone: Option<bool>,
    unconfined: Option<String>,
}

impl Running {
    /// Hands over the output until the command has ended, or was ended.
    async fn wait(
        &mut self,
        pipes: &mut Pipes,
        deadline: Instant,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<Ended, RunError> {
        let mut progress = Progress::default();
        let mut limit = deadline;
        loop {
            let stopped = progress.stopped.is_some();
            tokio::select! {
                biased;
                reply = self.replies.recv() => match reply {
                    Some(Reply::Exited { exit, background, unconfined, .. }) => {
                        progress.exit = Some((exit, background));
                        progress.unconfined = unconfined;
                    }
                    Some(Reply::Unconfined { message, .. }) => {
                        self.over = true;
                        return Err(RunError::Unconfined(message));
                    }
                    Some(Reply::Gone { clean, .. }) => progress.gone = Some(clean),
                    Some(Reply::Hides { .. }) => {}
                    Some(Reply::Failed { errno, message, .. }) => {
                        self.over = true;
                        return Err(RunError::Spawn(match errno {
                            Some(errno) => io::Error::from_raw_os_error(errno),
                            None => io::Error::other(message),
                        }));
                    }
                    None => {
                        pipes.drain(Duration::ZERO, output).await;
                        return Err(RunError::Lost);
                    }
                },
                () = cancel.cancelled(), if !stopped => {
                    progress.stopped = Some(Cause::Cancelled);
                }
                () = sleep_until(limit) => match progress.stopped {
                    None => progress.stopped = Some(Cause::TimedOut),
                    Some(_) => progress.gone = Some(false),
                },
                () = pipes.read(output) => continue,
            }
            if progress.stopped.is_some() && !stopped {
                self.connection.kill(self.id);
                limit = Instant::now() + GRACE + MARGIN;
            }
            if let Some(ended) = progress.end() {
                return Ok(ended);
            }
        }
    }
}

impl Progress {
    /// The end, once all of it is known: the exit, and for a stopped command that all is gone. A
    /// stopped command that was given up counts as killed.
    fn end(&mut self) -> Option<Ended> {
        let (cause, lingering) = match self.stopped {
            None => (Cause::Finished, false),
            Some(cause) => (cause, !self.gone?),
        };
        let killed = || (Exit::by_signal(SIGKILL), Vec::new());
        let (exit, background) = match self.exit.take() {
            Some(exit) => exit,
            None if lingering => killed(),
            None => return None,
        };
        Some(Ended {
            exit,
            cause,
            background: if cause == Cause::Finished {
                background
            } else {
                Vec::new()
            },
            lingering,
            unconfined: self.unconfined.take(),
            restarted: false,
        })
    }
}

/// The read ends of a command's two pipes.
struct Pipes {
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    buffer: Box<[u8]>,
}

impl Pipes {
    /// The pipes, and the ends that are written to.
    fn new() -> io::Result<(Self, [OwnedFd; 2])> {
        let (stdout, stdout_end) = io::pipe()?;
        let (stderr, stderr_end) = io::pipe()?;
        let pipes = Self {
            stdout: Some(Receiver::from_owned_fd(stdout.into())?),
            stderr: Some(Receiver::from_owned_fd(stderr.into())?),
            buffer: vec![0; PIECE].into_boxed_slice(),
        };
        Ok((pipes, [stdout_end.into(), stderr_end.into()]))
    }

    fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Waits until one of them can be read and reads each once; never returns when both ended.
    /// Nothing is lost when this is dropped.
    async fn read(&mut self, output: OutputFn<'_>) {
        tokio::select! {
            () = readable(self.stdout.as_ref()) => {}
            () = readable(self.stderr.as_ref()) => {}
        }
        self.read_each(Receiver::try_read, output);
    }

    /// Reads each once with `read`. Says whether there was something.
    fn read_each(
        &mut self,
        read: impl Fn(&Receiver, &mut [u8]) -> io::Result<usize>,
        output: OutputFn<'_>,
    ) -> bool {
        let mut progress = false;
        for (stream, pipe) in [
            (OutputStream::Stdout, &mut self.stdout),
            (OutputStream::Stderr, &mut self.stderr),
        ] {
            let Some(open) = pipe else { continue };
            match read(open, &mut self.buffer) {
                Ok(count @ 1..) => {
                    output(stream, &self.buffer[..count]);
                    progress = true;
                }
                Err(error) if is_passing(&error) => {}
                Ok(_) | Err(_) => *pipe = None,
            }
        }
        progress
    }

    /// Reads what has been written, and for `patience` what may still come.
    async fn drain(&mut self, patience: Duration, output: OutputFn<'_>) {
        let deadline = Instant::now() + patience;
        let mut left = 2 * 1024 * 1024 / PIECE;
        loop {
            // A process that never stops printing must not keep this from ending.
            while left > 0 && self.read_each(read_now, output) {
                left -= 1;
            }
            if left == 0 || !self.is_open() {
                return;
            }
            tokio::select! {
                biased;
                () = readable(self.stdout.as_ref()) => {}
                () = readable(self.stderr.as_ref()) => {}
                () = sleep_until(deadline) => return,
            }
            self.read_each(Receiver::try_read, output);
        }
    }

    /// Reads and forgets until both have ended.
    async fn discard(mut self) {
        while self.is_open() {
            self.read(&mut |_, _| {}).await;
        }
    }
}

/// Reads what is there, whatever the runtime knows of it yet.
fn read_now(pipe: &Receiver, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(pipe, buffer)?)
}

/// Waits until the pipe can be read or has ended; for ever when there is none.
async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        Some(pipe) => {
            // An error shows when it is read.
            let _ = pipe.readable().await;
        }
        None => pending().await,
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
