//! The start of one command.
//!
//! A separate thread starts a command with a sandbox. It restricts itself first, which cannot be undone, so it does no
//! other work. It lives as long as the command, because the parent-death signal of the command is bound to it.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use super::protocol::Run;
use super::{CALL_TAG, tree};
use crate::runner::Exit;
use crate::sandbox::{self, ApplyError, Denials, Listener, Plan};
use crate::sys;

/// The pipe ends of a command. Without `stdin`, its standard input is closed.
#[derive(Debug)]
pub(super) struct ChildStdio {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// The first process of a command.
#[derive(Debug)]
pub(super) struct Leader {
    pub(super) child: Child,
    /// The part of its sandbox that is not enforced.
    pub(super) unconfined: Option<String>,
    /// The accesses that its sandbox refused so far.
    pub(super) denials: Denials,
    /// Ends the thread that started it when it is dropped.
    _starter: Option<mpsc::Sender<()>>,
}

/// The reason why a command was not started.
#[derive(Debug)]
pub(super) enum SpawnError {
    /// The system refused.
    System(io::Error),
    /// The required sandbox is missing.
    Unconfined(ApplyError),
}

impl From<io::Error> for SpawnError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// A message of the thread that starts a command.
enum Progress {
    /// The thread is restricted, and its denials are to be watched.
    Restricted(Listener),
    /// The command runs, or was not started.
    Started(Result<(Child, Option<String>), SpawnError>),
}

/// Starts a command as the leader of a process group or of a session, in its sandbox if it has one.
pub(super) fn spawn(mut run: Run, ends: ChildStdio) -> Result<Leader, SpawnError> {
    let Some(plan) = run.confinement.take().map(Plan::from) else {
        return Ok(Leader {
            child: start(run, ends)?,
            unconfined: None,
            denials: Denials::default(),
            _starter: None,
        });
    };
    let (sender, progress) = mpsc::channel();
    let (starter, over) = mpsc::channel();
    let applied = plan.clone();
    thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(move || {
            let _ = sender.send(Progress::Started(start_restricted(
                &applied, run, ends, &sender,
            )));
            // No message is ever sent. The call returns when the sender is dropped.
            let _ = over.recv();
        })?;
    let mut denials = Denials::default();
    loop {
        match progress.recv() {
            // If the watcher cannot start, the reported system calls fail, and the command with them.
            Ok(Progress::Restricted(listener)) => denials = listener.watch(plan.clone())?,
            Ok(Progress::Started(started)) => {
                let (child, unconfined) = started?;
                return Ok(Leader {
                    child,
                    unconfined,
                    denials,
                    _starter: Some(starter),
                });
            }
            Err(_) => {
                let ended = "the thread that starts the command ended";
                return Err(io::Error::other(ended).into());
            }
        }
    }
}

/// Restricts the calling thread, and starts the command.
fn start_restricted(
    plan: &Plan,
    run: Run,
    ends: ChildStdio,
    progress: &mpsc::Sender<Progress>,
) -> Result<(Child, Option<String>), SpawnError> {
    let applied = sandbox::apply(plan).map_err(SpawnError::Unconfined)?;
    if let Some(listener) = applied.listener {
        progress
            .send(Progress::Restricted(listener))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
    }
    Ok((start(run, ends)?, applied.unconfined))
}

fn start(run: Run, ends: ChildStdio) -> io::Result<Child> {
    let mut argv = run.argv.into_iter().map(OsString::from);
    let program = argv.next().ok_or(io::ErrorKind::InvalidInput)?;
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place where commands start: as leaders of their groups, with the \
                  environment that was chosen, below the supervisor"
    )]
    let mut command = Command::new(program);
    if run.terminal {
        sys::lead_session(&mut command);
    } else {
        command.process_group(0);
    }
    command
        .args(argv)
        .current_dir(OsString::from(run.cwd))
        .env_clear()
        .envs(
            run.env
                .into_iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value))),
        )
        .env(CALL_TAG, tree::tag(run.id))
        .stdin(ends.stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(ends.stdout)
        .stderr(ends.stderr);
    sys::die_with_parent(&mut command);
    command.spawn()
}

/// The exit of a process. A process that was waited for has a code or a signal.
pub(super) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit { code, signal: None },
        (None, signal) => Exit::by_signal(signal.unwrap_or(0)),
    }
}
