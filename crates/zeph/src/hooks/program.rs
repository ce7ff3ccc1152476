//! One run of a hook: a process below the supervisor, with a time limit. No process of a hook outlives its run.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::future::FutureExt as _;
use tokio_util::sync::CancellationToken;
use zeph_tools::shell::exec::{CommandSandbox, StdioProcess};
use zeph_tools::shell::{CommandSpec, Exit, ServedPrograms};

/// The shell of hooks. It exists on every supported system.
const SHELL: &str = "/bin/sh";
/// The largest output of a hook. More is a failure.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Starts hooks in the directory and the environment of commands.
pub(crate) struct HookPrograms {
    /// The starter of processes.
    pub(crate) programs: ServedPrograms,
    /// The environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub(crate) cwd: PathBuf,
}

/// The end of a hook that ran to its end.
pub(super) struct HookExit {
    pub(super) exit: Exit,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// The reason why a hook did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookFault {
    /// The time limit was reached.
    TimedOut,
    /// The turn was cancelled.
    Cancelled,
    /// It could not be run, for this reason.
    Failed(String),
}

impl HookPrograms {
    /// Runs `command` with `input` on its standard input. On a timeout and on a cancellation, all its processes are ended.
    pub(super) async fn run(
        &self,
        command: &str,
        input: &str,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<HookExit, HookFault> {
        let running = self.run_to_end(command, input).timeout(limit);
        match cancel.run_until_cancelled(running).await {
            None => Err(HookFault::Cancelled),
            Some(Err(_)) => Err(HookFault::TimedOut),
            Some(Ok(ended)) => ended.map_err(HookFault::Failed),
        }
    }

    async fn run_to_end(&self, command: &str, input: &str) -> Result<HookExit, String> {
        let argv = [SHELL, "-c", "--", command];
        let spec = CommandSpec {
            argv: argv.map(OsString::from).to_vec(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            timeout: None,
            readable_folders: Vec::new(),
            sandbox: CommandSandbox::Off,
        };
        let started = self.programs.start(spec).await;
        let StdioProcess {
            input: mut stdin,
            output,
            errors,
            mut process,
            // It has no sandbox.
            unconfined: _,
        } = started.map_err(|error| format!("it cannot be started: {error}"))?;
        let write = async move {
            // A hook may end without reading its input.
            let _ = stdin.write_all(input.as_bytes()).await;
        };
        let exit = async move {
            let exit = process.exited().await;
            // Ends the processes that the hook left behind, which hold its output open.
            drop(process);
            exit
        };
        let ((), exit, stdout, stderr) =
            tokio::join!(write, exit, read_bounded(output), read_bounded(errors));
        let exit = exit.ok_or("the process that runs it died")?;
        let (stdout, is_whole) = stdout.map_err(|error| format!("its output: {error}"))?;
        if !is_whole {
            return Err(format!("it printed more than {MAX_OUTPUT_BYTES} bytes"));
        }
        let (stderr, _) = stderr.unwrap_or_default();
        Ok(HookExit {
            exit,
            stdout,
            stderr,
        })
    }

    /// Ends all hooks, and waits until they are gone.
    pub(super) async fn shutdown(&self) {
        self.programs.shutdown().await;
    }
}

/// Reads a stream to its end. Returns its start, and whether that is all of it.
async fn read_bounded(mut stream: impl AsyncRead + Unpin) -> io::Result<(Vec<u8>, bool)> {
    let mut start = Vec::new();
    let mut rest = [0; 4096];
    let mut is_whole = true;
    loop {
        let count = stream.read(&mut rest).await?;
        if count == 0 {
            return Ok((start, is_whole));
        }
        let room = MAX_OUTPUT_BYTES - start.len();
        is_whole &= count <= room;
        start.extend_from_slice(&rest[..count.min(room)]);
    }
}
