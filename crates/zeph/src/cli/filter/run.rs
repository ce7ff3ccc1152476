//! `zeph filter run`: runs a command and prints its filtered output.
//!
//! Both streams of the command use one pipe, so that their order is preserved. The command inherits our standard
//! input, and signals of the terminal reach it directly. This process ends after the command, to print its output.

use std::ffi::OsString;
use std::io::{Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use zeph_tools::layers::now_ms;
use zeph_tui::signals::Handles;

use super::super::Exit;
use super::super::args::GlobalArgs;
use super::{PIECE, Reader, note_gain, show};
use crate::assemble::filters;
use crate::config::{Environment, Loaded};
use crate::output::stderr_line;

/// How long reading continues after the command has ended, if another process holds its output open.
const GRACE: Duration = Duration::from_secs(2);

/// Runs the command `words`. `tee` stores the raw output, in the given file or a new temporary one.
pub(super) async fn run(
    global: &GlobalArgs,
    loaded: &Loaded,
    env: &Environment,
    tee: Option<Option<PathBuf>>,
    words: &[OsString],
) -> anyhow::Result<Exit> {
    let Some((program, arguments)) = words.split_first() else {
        return Ok(Exit::Usage);
    };
    let mut tee = match tee {
        None => None,
        Some(path) => Some(Tee::create(path, loaded)?),
    };
    let filters = filters(loaded, env, global.quiet);
    let mut reader = Reader::new(&filters, &command_line(words), loaded, env);
    // Installed before the command starts: from then on they are the command's.
    let _handles = Handles::signals();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (output, input) = std::io::pipe().context("a pipe cannot be created")?;
    #[allow(
        clippy::disallowed_methods,
        reason = "the user's own command, run in the foreground as a shell would"
    )]
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .stdout(input.try_clone()?)
        .stderr(input);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            stderr_line(&format!(
                "error: {} cannot be run: {error}",
                program.display()
            ));
            return Ok(Exit::As(match error.kind() {
                std::io::ErrorKind::NotFound => 127,
                _ => 126,
            }));
        }
    };
    // It holds the write ends of the pipe.
    drop(command);
    let mut pieces = pieces(output);
    let mut status = None;
    let mut is_interrupted = false;
    loop {
        let grace = async {
            match status {
                None => std::future::pending().await,
                Some(_) => tokio::time::sleep(GRACE).await,
            }
        };
        tokio::select! {
            piece = pieces.recv() => match piece {
                None => break,
                Some(piece) => {
                    if let Some(tee) = &mut tee {
                        tee.write(&piece)?;
                    }
                    reader.push(&piece);
                }
            },
            ended = child.wait(), if status.is_none() => {
                status = Some(ended.context("the command cannot be waited for")?);
            }
            // A terminal sends it to the command as well.
            _ = interrupt.recv() => {
                is_interrupted = true;
                if !is_in_foreground() {
                    pass_on(child.id(), Signal::INT);
                }
            },
            _ = terminate.recv() => {
                is_interrupted = true;
                pass_on(child.id(), Signal::TERM);
            },
            _ = hangup.recv() => {
                is_interrupted = true;
                pass_on(child.id(), Signal::HUP);
            },
            () = grace => break,
        }
    }
    let status = match status {
        Some(status) => status,
        None => child
            .wait()
            .await
            .context("the command cannot be waited for")?,
    };
    // A command that a forwarded signal ended was interrupted; one that exits on its own keeps its code.
    is_interrupted &= status.signal().is_some();
    let code = code(status);
    let (filtered, warning) = reader.finish(Some(code));
    show(
        &filtered,
        warning.as_deref(),
        tee.as_ref().map(|tee| tee.path.as_path()),
    )?;
    note_gain(loaded, &filters).await;
    Ok(match is_interrupted {
        true => Exit::Interrupted,
        false => Exit::As(u8::try_from(code).unwrap_or(1)),
    })
}

/// Reads the pipe in a separate thread: polling it would need `unsafe`.
fn pieces(mut output: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(4);
    std::thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        loop {
            match output.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) if sender.blocking_send(buffer[..bytes].to_vec()).is_err() => break,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    });
    receiver
}

/// Sends a signal to the command, unless it has ended.
fn pass_on(id: Option<u32>, signal: Signal) {
    let pid = id.and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        // It may have ended by now.
        let _ = kill_process(pid, signal);
    }
}

/// Whether the terminal, if there is one, sends the signals of its keys to this process and its command.
fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// The exit code as in a shell: `128 + signal` after a signal.
fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Quotes the words as a command line, so that no word is misread.
fn command_line(words: &[OsString]) -> String {
    let quoted = |word: &OsString| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:@%+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The file that gets all of the output.
struct Tee {
    path: PathBuf,
    file: std::fs::File,
}

impl Tee {
    fn create(path: Option<PathBuf>, loaded: &Loaded) -> anyhow::Result<Self> {
        let path = match path {
            Some(path) => path,
            None => named(&loaded.paths.data_dir)?,
        };
        let file = std::fs::File::create(&path)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self { path, file })
    }

    fn write(&mut self, piece: &[u8]) -> anyhow::Result<()> {
        self.file
            .write_all(piece)
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

/// A new name in the data directory.
fn named(data_dir: &Path) -> anyhow::Result<PathBuf> {
    let directory = data_dir.join("raw");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("{} cannot be created", directory.display()))?;
    Ok(directory.join(format!("{}-{}.log", now_ms(), std::process::id())))
}
