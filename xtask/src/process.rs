//! Processes with a deadline.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// The time limit for a server to end on its own.
const GRACE: Duration = Duration::from_secs(3);

/// The output of a program.
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// Runs a program to its end.
///
/// # Errors
/// It fails, or does not end within `limit`.
pub(crate) fn within(command: Command, limit: Duration) -> Result<Printed> {
    let called = format!("{command:?}");
    let printed = ended(command, limit)?;
    ensure!(
        printed.code == Some(0),
        "{called} failed: {}",
        last_lines(&printed.stderr)
    );
    Ok(printed)
}

/// Runs a program to its end like `within`, with any exit code.
pub(crate) fn ended(mut command: Command, limit: Duration) -> Result<Printed> {
    let called = format!("{command:?}");
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| called.clone())?;
    let stdout = child.stdout.take().map(in_the_background);
    let stderr = child.stderr.take().map(in_the_background);
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("{called} did not end within {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let text = |text: Option<mpsc::Receiver<String>>| {
        text.and_then(|text| text.recv_timeout(GRACE).ok())
            .unwrap_or_default()
    };
    Ok(Printed {
        stdout: text(stdout),
        stderr: text(stderr),
        code: status.code(),
    })
}

/// Reads to the end in a thread, so that the program never blocks on a full pipe.
fn in_the_background(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // The text before an error counts.
        let _ = from.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// The last lines of an error output.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

/// A server that is ended when it is dropped.
pub(crate) struct Server {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(crate) address: String,
}

impl Server {
    /// Starts the server and waits for the line with its address.
    ///
    /// # Errors
    /// It ends, or prints nothing within `limit`.
    pub(crate) fn start(name: &str, mut command: Command, limit: Duration) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().with_context(|| name.to_owned())?;
        let mut server = Self {
            child,
            address: String::new(),
        };
        let stdout = server.child.stdout.take().context("no standard output")?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            let _ = sender.send(read.map(|_| line));
        });
        let line = receiver.recv_timeout(limit);
        let line =
            line.with_context(|| format!("{name} did not answer in {} s", limit.as_secs()))?;
        line?.trim().clone_into(&mut server.address);
        ensure!(
            server.address.starts_with("http://127.0.0.1:"),
            "{name} did not start"
        );
        println!(
            "{name} (process {}) at {}",
            server.child.id(),
            server.address
        );
        Ok(server)
    }
}

impl Drop for Server {
    /// Closes the standard input of the server, and kills the server if it does not end.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let start = Instant::now();
        while start.elapsed() < GRACE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn hanging_process_is_ended_and_failure_is_reported() {
        let check = |script: &str, limit: u64| {
            within(shell(script), Duration::from_millis(limit))
                .map(|printed| printed.stdout)
                .map_err(|error| format!("{error:#}"))
        };
        assert_eq!(check("echo hello", 20_000).unwrap(), "hello\n");
        let failed = check("echo why >&2; exit 3", 20_000).unwrap_err();
        assert!(failed.ends_with("failed: why"), "{failed}");
        let hung = check("exec sleep 60", 50).unwrap_err();
        assert!(hung.contains("did not end within"), "{hung}");
    }

    #[test]
    fn dropped_server_ends_its_process() {
        let start = |script: &str, limit: u64| {
            Server::start("it", shell(script), Duration::from_millis(limit))
        };
        let server = start("echo http://127.0.0.1:1; exec cat", 20_000).unwrap();
        let process = format!("/proc/{}", server.child.id());
        assert_eq!(server.address, "http://127.0.0.1:1");
        drop(server);
        assert!(!std::path::Path::new(&process).exists());
        assert!(start("exit 1", 20_000).is_err());
        assert!(start("exec sleep 60", 50).is_err());
    }
}
