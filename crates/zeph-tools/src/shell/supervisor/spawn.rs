//! Starting one command, on the thread that then waits for it.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::protocol::Run;
use super::{CALL_TAG, tree};
use crate::shell::runner::Exit;
use crate::shell::sys;

/// Starts a command as the leader of a process group. Its standard input is closed.
pub(super) fn spawn(run: Run, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Child> {
    let mut argv = run.argv.into_iter().map(OsString::from);
    let program = argv.next().ok_or(io::ErrorKind::InvalidInput)?;
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place where commands start: as leaders of their groups, with the \
                  environment that was chosen, below the supervisor"
    )]
    let mut command = Command::new(program);
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
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
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
