//! The built binary as a child process with a minimal environment and a time limit.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Home;
use super::family::Family;

/// The maximum duration of a run before it is killed and the test fails.
const LIMIT: Duration = Duration::from_secs(30);
/// The key of the provider, which must not appear in any output.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

/// The kind of standard input.
enum Stdin {
    Null,
    Bytes(Vec<u8>),
    /// A pipe that stays open and contains only these bytes.
    Open(Vec<u8>),
}

/// A run that has not started yet.
pub(crate) struct Zeph {
    command: Command,
    stdin: Stdin,
    stdout: Stdout,
}

/// The kind of standard output.
enum Stdout {
    Kept,
    /// A pipe without a reader.
    Closed,
    /// A pipe that is open and that no one reads.
    Unread,
    /// A full disk.
    Full,
}

impl Zeph {
    #[allow(clippy::disallowed_methods, reason = "the tests start the binary here")]
    pub(crate) fn new(home: &Home) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zeph"));
        Self::prepare(&mut command, home);
        Self {
            command,
            stdin: Stdin::Null,
            stdout: Stdout::Kept,
        }
    }

    /// The binary through `bash -c`, which may set limits first. `"$0" "$@"` is the command line of the run.
    #[allow(clippy::disallowed_methods, reason = "the tests start the binary here")]
    pub(crate) fn through_bash(home: &Home, script: &str) -> Self {
        let mut command = Command::new("bash");
        command.args(["-c", script, env!("CARGO_BIN_EXE_zeph")]);
        Self::prepare(&mut command, home);
        Self {
            command,
            stdin: Stdin::Null,
            stdout: Stdout::Kept,
        }
    }

    #[allow(clippy::disallowed_methods, reason = "PATH alone is handed on")]
    fn prepare(command: &mut Command, home: &Home) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.home())
            .env("XDG_DATA_HOME", home.data())
            // A closed port, so that no Ollama of this machine is asked.
            .env("OLLAMA_HOST", "127.0.0.1:1")
            .env("TMPDIR", home.tmp())
            .env("TZ", "UTC")
            .env("TEST_KEY", KEY)
            .current_dir(home.project());
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<str>) -> Self {
        self.command.arg(arg.as_ref());
        self
    }

    pub(crate) fn args<S: AsRef<str>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            self.command.arg(arg.as_ref());
        }
        self
    }

    /// Passes the toolchain that builds these tests, for commands that compile.
    #[allow(
        clippy::disallowed_methods,
        reason = "the toolchain that builds the tests is handed on"
    )]
    pub(crate) fn with_toolchain(mut self) -> Self {
        let named = ["RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
        for (name, value) in named
            .into_iter()
            .filter_map(|n| Some((n, std::env::var(n).ok()?)))
        {
            self = self.env(name, &value);
        }
        if std::env::var_os("RUSTUP_HOME").is_none()
            && let Some(home) = std::env::var_os("HOME")
        {
            let rustup = std::path::Path::new(&home).join(".rustup");
            self = self.env("RUSTUP_HOME", &rustup.display().to_string());
        }
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn cwd(mut self, directory: PathBuf) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Pipes `bytes` in, then closes.
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Sets standard input to an open pipe that contains these bytes.
    pub(crate) fn open_stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stdin::Open(bytes.into());
        self
    }

    /// Sets standard output to a pipe without a reader.
    pub(crate) fn closed_stdout(mut self) -> Self {
        self.stdout = Stdout::Closed;
        self
    }

    /// Sets standard output to an open pipe that no one reads.
    pub(crate) fn unread_stdout(mut self) -> Self {
        self.stdout = Stdout::Unread;
        self
    }

    /// Sets standard output to a full disk.
    pub(crate) fn full_stdout(mut self) -> Self {
        self.stdout = Stdout::Full;
        self
    }

    /// Starts the run and returns immediately.
    pub(crate) fn start(mut self) -> Running {
        let (unread, unread_end) = std::io::pipe().unwrap();
        self.command
            .stdin(match self.stdin {
                Stdin::Null => Stdio::null(),
                _ => Stdio::piped(),
            })
            .stdout(match self.stdout {
                Stdout::Kept => Stdio::piped(),
                Stdout::Closed => Stdio::from(std::io::pipe().unwrap().1),
                Stdout::Unread => Stdio::from(unread_end),
                Stdout::Full => Stdio::from(std::fs::File::create("/dev/full").unwrap()),
            })
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the binary starts");
        let mut kept = None;
        if let Some(mut pipe) = child.stdin.take() {
            match self.stdin {
                Stdin::Null => {}
                Stdin::Bytes(bytes) => {
                    // A child may close the pipe without reading it.
                    std::thread::spawn(move || pipe.write_all(&bytes));
                }
                Stdin::Open(bytes) => {
                    pipe.write_all(&bytes).unwrap();
                    kept = Some(pipe);
                }
            }
        }
        let mut running = Running::new(child, kept);
        running.unread = Some(unread);
        running
    }

    /// Runs the process to its end.
    #[track_caller]
    pub(crate) fn run(self) -> Output {
        self.start().wait()
    }

    /// Runs the process to its end and asserts its exit code.
    #[track_caller]
    pub(crate) fn code(self, expect: i32) -> Output {
        self.run().code(expect)
    }
}

/// A running child process. Dropping it kills the process.
pub(crate) struct Running {
    pid: Pid,
    started: Instant,
    ended: Receiver<ExitStatus>,
    status: Option<ExitStatus>,
    lines: Receiver<String>,
    seen: String,
    stderr: Option<JoinHandle<String>>,
    stdin: Option<std::process::ChildStdin>,
    /// The end of a standard output that no one reads.
    unread: Option<std::io::PipeReader>,
}

impl Running {
    fn new(mut child: Child, stdin: Option<std::process::ChildStdin>) -> Self {
        let stdout = child.stdout.take();
        let mut stderr = child.stderr.take().unwrap();
        let (to_lines, lines) = channel();
        std::thread::spawn(move || {
            let Some(stdout) = stdout else { return };
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            while reader
                .read_until(b'\n', &mut line)
                .is_ok_and(|count| count > 0)
            {
                let text = String::from_utf8_lossy(&line).into_owned();
                line.clear();
                if to_lines.send(text).is_err() {
                    // The reader closed the channel.
                    return;
                }
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let pid = Pid::from_child(&child);
        let (to_ended, ended) = channel();
        std::thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = to_ended.send(status);
            }
        });
        Self {
            pid,
            started: Instant::now(),
            ended,
            status: None,
            lines,
            seen: String::new(),
            stderr: Some(stderr),
            stdin,
            unread: None,
        }
    }

    /// The text of `/proc/PID/status`.
    pub(crate) fn status(&self) -> String {
        let file = format!("/proc/{}/status", self.pid.as_raw_nonzero());
        std::fs::read_to_string(file).unwrap_or_default()
    }

    /// Whether the process catches a signal.
    pub(crate) fn listens(&self, signal: Signal) -> bool {
        let status = self.status();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        caught.is_some_and(|caught| caught >> (signal.as_raw() - 1) & 1 == 1)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("the child can be signalled");
    }

    /// Writes a line to standard input, which must be open.
    #[track_caller]
    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        writeln!(stdin, "{line}").unwrap();
    }

    /// Writes bytes and a line break to standard input, which must be open.
    #[track_caller]
    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        stdin.write_all(bytes).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// The end of a standard output that no one reads, which stays open as long as the value.
    pub(crate) fn take_unread(&mut self) -> std::io::PipeReader {
        self.unread.take().expect("the output is unread")
    }

    /// Closes standard input.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The next line of standard output; `None` at its end.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let line = self.lines.recv_timeout(LIMIT).ok()?;
        self.seen.push_str(&line);
        Some(line)
    }

    /// Reads standard output up to a line that contains `word`.
    #[track_caller]
    pub(crate) fn until_line(&mut self, word: &str) -> String {
        loop {
            match self.next_line() {
                Some(line) if line.contains(word) => return line,
                Some(_) => {}
                None => panic!("{word:?} was not printed:\n{}", self.seen),
            }
        }
    }

    /// Kills the process and waits for its end and that of its supervisor, which may be starting a command.
    #[track_caller]
    pub(crate) fn kill(mut self) {
        self.end_now();
    }

    #[track_caller]
    fn end_now(&mut self) {
        // The process may have ended on its own.
        let family = Family::of_stopped(self.pid);
        let _ = kill_process(self.pid, Signal::KILL);
        self.status = self.ended.recv_timeout(LIMIT).ok();
        assert!(self.status.is_some(), "a killed process goes");
        family.wait_until_gone();
    }

    /// Kills the process like `kill` and returns the printed text.
    #[track_caller]
    pub(crate) fn kill_and_read(mut self) -> String {
        self.end_now();
        while let Ok(line) = self.lines.recv_timeout(LIMIT) {
            self.seen.push_str(&line);
        }
        std::mem::take(&mut self.seen)
    }

    /// Waits for the end of the process; kills it and fails after the time limit.
    #[track_caller]
    pub(crate) fn wait(self) -> Output {
        self.wait_within(LIMIT)
    }

    /// Waits for the end of the process with another time limit.
    #[track_caller]
    pub(crate) fn wait_within(mut self, limit: Duration) -> Output {
        let left = limit.saturating_sub(self.started.elapsed());
        let Ok(status) = self.ended.recv_timeout(left) else {
            let _ = kill_process(self.pid, Signal::KILL);
            while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(1)) {
                self.seen.push_str(&line);
            }
            panic!("no end within {limit:?}; stdout so far:\n{}", self.seen);
        };
        self.status = Some(status);
        let took = self.started.elapsed();
        while let Ok(line) = self.lines.recv() {
            self.seen.push_str(&line);
        }
        Output {
            code: status.code(),
            signal: status.signal(),
            stdout: std::mem::take(&mut self.seen),
            stderr: self.stderr.take().unwrap().join().unwrap(),
            took,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Output {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn code(self, expect: i32) -> Self {
        assert_eq!(self.code, Some(expect), "{self}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Every line of standard output as JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}: {self}"))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// Asserts that standard error contains these texts.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{word:?} is not on stderr: {self}"
            );
        }
        self
    }

    /// Asserts that standard output contains these texts.
    #[track_caller]
    pub(crate) fn prints(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stdout.contains(word),
                "{word:?} is not on stdout: {self}"
            );
        }
        self
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            code,
            signal,
            stdout,
            stderr,
            took,
        } = self;
        write!(
            f,
            "exit {code:?}, signal {signal:?}, after {took:?}\n── stdout\n{stdout}\n── stderr\n{stderr}"
        )
    }
}

/// The `PATH` of the tests, for runs with additional directories.
#[allow(clippy::disallowed_methods, reason = "PATH alone is handed on")]
pub(crate) fn search_path() -> String {
    std::env::var("PATH").unwrap()
}
