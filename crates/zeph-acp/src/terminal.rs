//! Commands in terminals of the client.
//!
//! A terminal is released once, when its command is dropped: after its end, a time limit, a cancellation or an error.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use zeph_tools::shell::exec::{CALL_TAG, OutputFn, end_tagged, exit_of};
use zeph_tools::shell::{
    CommandOutcome, CommandRunner, CommandSpec, EndReason, Exit, RunError, RunningCommand,
    StdStream,
};

/// The output that the client retains, in bytes.
const OUTPUT_BYTES: u64 = 1 << 20;
/// The time in which the client must create a terminal or return its output.
const REPLY_TIME: Duration = Duration::from_secs(10);
/// The time in which a killed command must exit.
const GRACE: Duration = Duration::from_secs(2);
/// The time in which the processes of a killed command may end on their own.
const TERM_TIME: Duration = Duration::from_millis(500);
/// The signal of a killed command that reports none.
const SIGKILL: i32 = 9;
/// The note about output that the client did not retain.
const SHORTENED: &str = "[the terminal retained only the end of the output]\n";

/// A command for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminalCommand {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The directory in which it starts; absolute.
    pub cwd: PathBuf,
    /// The variables that are added to the environment of the terminal.
    pub variables: Vec<(String, String)>,
    /// The output that the client retains, in bytes.
    pub output_bytes: u64,
}

/// The exit of a command as the client reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalExit {
    /// The exit code.
    pub code: Option<u32>,
    /// The name of the signal.
    pub signal: Option<String>,
}

/// The output of a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalOutput {
    /// The retained text.
    pub text: String,
    /// Whether the client has dropped the start.
    pub is_truncated: bool,
}

/// The terminals of the client of one session. An error is a text for the model.
#[async_trait]
pub trait Terminals: Send + Sync {
    /// Creates a terminal, starts the command, and returns the id.
    ///
    /// # Errors
    /// If the client refuses or is disconnected.
    async fn create(&self, command: TerminalCommand) -> Result<String, String>;

    /// Returns the output so far.
    ///
    /// # Errors
    /// As [`Terminals::create`].
    async fn output(&self, id: &str) -> Result<TerminalOutput, String>;

    /// Waits for the exit of the command.
    ///
    /// # Errors
    /// As [`Terminals::create`].
    async fn wait_for_exit(&self, id: &str) -> Result<TerminalExit, String>;

    /// Kills the command. The terminal remains.
    ///
    /// # Errors
    /// As [`Terminals::create`].
    async fn kill(&self, id: &str) -> Result<(), String>;

    /// Requests the release of the terminal, and does not wait. A running command is killed.
    fn release(&self, id: &str);
}

/// Ends the processes with a tag, which have a time to end on their own. Returns whether none is left. It blocks.
type EndTagged = Arc<dyn Fn(&str, Duration) -> bool + Send + Sync>;

/// A runner of commands in terminals of the client.
pub struct TerminalRunner {
    terminals: Arc<dyn Terminals>,
    end_tagged: EndTagged,
}

impl TerminalRunner {
    /// Returns a runner for `terminals`.
    #[must_use]
    pub fn new(terminals: Arc<dyn Terminals>) -> Self {
        Self {
            terminals,
            end_tagged: Arc::new(end_tagged),
        }
    }
}

/// A terminal, which is released when this is dropped.
struct Terminal {
    terminals: Arc<dyn Terminals>,
    id: String,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.terminals.release(&self.id);
    }
}

#[async_trait]
impl CommandRunner for TerminalRunner {
    async fn start(&self, command: CommandSpec) -> Result<Box<dyn RunningCommand>, RunError> {
        let deadline = command.timeout.map(|timeout| Instant::now() + timeout);
        let tag = command.env.iter().find(|(name, _)| name == CALL_TAG);
        let tag = tag.and_then(|(_, tag)| tag.to_str().map(str::to_owned));
        let command = to_terminal_command(command).map_err(RunError::Spawn)?;
        let terminals = Arc::clone(&self.terminals);
        // A task of its own, so that a terminal that is created too late is released.
        let creation = tokio::spawn(async move {
            let id = terminals.create(command).await?;
            Ok::<_, String>(Terminal { terminals, id })
        });
        let terminal = match timeout(REPLY_TIME, creation).await {
            Ok(Ok(Ok(terminal))) => terminal,
            Ok(Ok(Err(reason))) => return Err(RunError::Terminal(reason)),
            Ok(Err(error)) => return Err(RunError::Terminal(error.to_string())),
            Err(_) => {
                return Err(RunError::Terminal(format!(
                    "it was not created within {} s",
                    REPLY_TIME.as_secs()
                )));
            }
        };
        Ok(Box::new(Running {
            terminal,
            deadline,
            processes: tag.map(|tag| Processes {
                tag,
                end_tagged: Arc::clone(&self.end_tagged),
            }),
        }))
    }

    async fn start_for_user(
        &self,
        _command: CommandSpec,
        _side: Option<OwnedFd>,
    ) -> Result<Box<dyn RunningCommand>, RunError> {
        Err(RunError::Terminal(
            "a client terminal does not run commands that the user typed".to_owned(),
        ))
    }

    async fn self_confined(&self, _command: CommandSpec) -> Result<Option<CommandSpec>, RunError> {
        Ok(None)
    }

    async fn enforces_deny_read(&self) -> bool {
        false
    }

    async fn shutdown(&self) {}
}

/// The command with texts instead of strings of the operating system. Variables that are not UTF-8 are left out.
fn to_terminal_command(command: CommandSpec) -> io::Result<TerminalCommand> {
    let text = |word: OsString| {
        word.into_string().map_err(|word| {
            let message = format!("{} is not UTF-8", word.display());
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
    };
    let words: io::Result<Vec<String>> = command.argv.into_iter().map(text).collect();
    let mut words = words?.into_iter();
    let utf8 = |text: &OsStr| text.to_str().map(str::to_owned);
    let variables = command.env.iter();
    let variables = variables.filter_map(|(name, value)| Some((utf8(name)?, utf8(value)?)));
    Ok(TerminalCommand {
        program: words.next().ok_or(io::ErrorKind::InvalidInput)?,
        arguments: words.collect(),
        cwd: command.cwd,
        variables: variables.collect(),
        output_bytes: OUTPUT_BYTES,
    })
}

/// A command that runs in a terminal.
struct Running {
    terminal: Terminal,
    deadline: Option<Instant>,
    /// Its processes; `None` after their end.
    processes: Option<Processes>,
}

/// The processes of a command. The client may know only the first one.
struct Processes {
    tag: String,
    end_tagged: EndTagged,
}

impl Processes {
    /// Ends the processes after `grace`, and returns whether none is left. It blocks.
    fn end(&self, grace: Duration) -> bool {
        let is_gone = (self.end_tagged)(&self.tag, grace);
        if !is_gone {
            tracing::warn!("a process of a command in a terminal of the client does not end");
        }
        is_gone
    }
}

impl Drop for Running {
    /// Ends the processes of a command that was not awaited to its end, and does not wait for them.
    fn drop(&mut self) {
        let Some(processes) = self.processes.take() else {
            return;
        };
        match Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn_blocking(move || processes.end(Duration::ZERO));
            }
            // Without a runtime, no task waits for this thread.
            Err(_) => {
                processes.end(Duration::ZERO);
            }
        }
    }
}

impl Running {
    /// Passes the retained output on.
    async fn pass_output(&self, output: OutputFn<'_>) {
        let Terminal { terminals, id } = &self.terminal;
        match timeout(REPLY_TIME, terminals.output(id)).await {
            Ok(Ok(found)) => {
                if found.is_truncated {
                    output(StdStream::Stdout, SHORTENED.as_bytes());
                }
                output(StdStream::Stdout, found.text.as_bytes());
            }
            Ok(Err(error)) => tracing::warn!(error, "the output of a terminal is missing"),
            Err(_) => tracing::warn!("the client did not return the output of a terminal"),
        }
    }

    /// Kills the command, and waits for its exit. `None` if the client does not report it, or if a process remains.
    ///
    /// A client may report the exit only after the last process closes the output. So the processes end while it waits.
    async fn kill(&mut self) -> Option<TerminalExit> {
        let is_killed = self.request_kill().await;
        let processes = self.processes.take();
        let Terminal { terminals, id } = &self.terminal;
        let exit = async {
            match is_killed {
                true => timeout(GRACE, terminals.wait_for_exit(id)).await.ok()?.ok(),
                false => None,
            }
        };
        let (exit, is_gone) = tokio::join!(exit, end_processes(processes, TERM_TIME));
        exit.filter(|_| is_gone)
    }

    /// Returns whether the client killed the command.
    async fn request_kill(&self) -> bool {
        let Terminal { terminals, id } = &self.terminal;
        matches!(timeout(GRACE, terminals.kill(id)).await, Ok(Ok(())))
    }
}

#[async_trait]
impl RunningCommand for Running {
    fn terminal_id(&self) -> Option<&str> {
        Some(&self.terminal.id)
    }

    async fn started(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    async fn wait(
        &mut self,
        cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<CommandOutcome, RunError> {
        let Terminal { terminals, id } = &self.terminal;
        let end = tokio::select! {
            biased;
            exit = terminals.wait_for_exit(id) => Ok(exit),
            () = cancel.cancelled() => Err(EndReason::Cancelled),
            () = wait_until(self.deadline) => Err(EndReason::TimedOut),
        };
        let (exit, cause) = match end {
            Ok(Ok(exit)) => {
                end_processes(self.processes.take(), Duration::ZERO).await;
                (Some(exit), EndReason::Finished)
            }
            Ok(Err(reason)) => {
                end_processes(self.processes.take(), Duration::ZERO).await;
                self.pass_output(output).await;
                return Err(RunError::Terminal(reason));
            }
            Err(cause) => (self.kill().await, cause),
        };
        self.pass_output(output).await;
        Ok(CommandOutcome {
            lingering: exit.is_none(),
            exit: reported(exit, cause),
            cause,
            background: Vec::new(),
            unconfined: None,
            denials: Vec::new(),
            restarted: false,
        })
    }

    async fn wait_for_rest(
        &mut self,
        _cancel: &CancellationToken,
        _output: OutputFn<'_>,
    ) -> Result<bool, RunError> {
        Ok(true)
    }
}

/// Ends the processes of a command, which have the time `grace` to end on their own. Returns whether none is left.
async fn end_processes(processes: Option<Processes>, grace: Duration) -> bool {
    match processes {
        Some(processes) => spawn_blocking(move || processes.end(grace))
            .await
            .unwrap_or(false),
        None => true,
    }
}

/// The exit of a command that ended for `cause`. A stopped command has a signal.
fn reported(exit: Option<TerminalExit>, cause: EndReason) -> Exit {
    let exit = exit.unwrap_or_default();
    let code = exit.code.and_then(|code| i32::try_from(code).ok());
    match exit_of(code, exit.signal.as_deref()) {
        Some(exit) => exit,
        None if cause == EndReason::Finished => Exit {
            code: 1,
            signal: None,
        },
        None => Exit::by_signal(SIGKILL),
    }
}

/// Waits until `deadline`, or forever without one.
async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A client with one terminal.
    #[derive(Default)]
    struct Client {
        requests: Mutex<Vec<String>>,
        /// The exit; `None` if the command runs until it is killed.
        exit: Option<Result<TerminalExit, String>>,
        refuses_creation: bool,
        killed: tokio::sync::Notify,
    }

    impl Client {
        fn request(&self, name: &str) {
            self.requests.lock().unwrap().push(name.to_owned());
        }
    }

    #[async_trait]
    impl Terminals for Client {
        async fn create(&self, command: TerminalCommand) -> Result<String, String> {
            self.request(&format!(
                "create {} {:?}",
                command.program, command.arguments
            ));
            match self.refuses_creation {
                true => Err("no more terminals".to_owned()),
                false => Ok("t1".to_owned()),
            }
        }

        async fn output(&self, _id: &str) -> Result<TerminalOutput, String> {
            self.request("output");
            Ok(TerminalOutput {
                text: "partial\n".to_owned(),
                is_truncated: true,
            })
        }

        async fn wait_for_exit(&self, _id: &str) -> Result<TerminalExit, String> {
            match &self.exit {
                Some(exit) => exit.clone(),
                None => {
                    self.killed.notified().await;
                    Ok(TerminalExit {
                        code: None,
                        signal: Some("SIGTERM".to_owned()),
                    })
                }
            }
        }

        async fn kill(&self, _id: &str) -> Result<(), String> {
            self.request("kill");
            self.killed.notify_one();
            Ok(())
        }

        fn release(&self, id: &str) {
            self.request(&format!("release {id}"));
        }
    }

    fn spec(timeout: Option<Duration>) -> CommandSpec {
        CommandSpec {
            argv: vec!["sh".into(), "-c".into()],
            cwd: "/".into(),
            env: Vec::new(),
            timeout,
            readable_folders: Vec::new(),
            sandbox: zeph_tools::shell::exec::CommandSandbox::Off,
        }
    }

    /// Runs a command. Returns the result, its output, and the requests after the creation.
    async fn run(
        client: Client,
        timeout: Option<Duration>,
        cancel: &CancellationToken,
    ) -> (Result<CommandOutcome, RunError>, String, Vec<String>) {
        let client = Arc::new(client);
        let runner = TerminalRunner::new(Arc::clone(&client) as _);
        let mut printed = Vec::new();
        let ended = match runner.start(spec(timeout)).await {
            Ok(mut running) => {
                assert_eq!(running.terminal_id(), Some("t1"));
                let mut output = |_: StdStream, bytes: &[u8]| printed.extend_from_slice(bytes);
                running.wait(cancel, &mut output).await
            }
            Err(error) => Err(error),
        };
        let requests = client.requests.lock().unwrap().split_off(1);
        (ended, String::from_utf8(printed).unwrap(), requests)
    }

    /// Proves ACP-4: the exit of a command has a code and, if one ended it, a signal.
    #[tokio::test]
    async fn exit_is_reported_and_the_terminal_released() {
        let check = async |code, signal: Option<&str>, expect: (i32, Option<i32>)| {
            let client = Client {
                exit: Some(Ok(TerminalExit {
                    code,
                    signal: signal.map(str::to_owned),
                })),
                ..Client::default()
            };
            let (ended, printed, requests) = run(client, None, &CancellationToken::new()).await;
            let ended = ended.unwrap();
            assert_eq!((ended.exit.code, ended.exit.signal), expect);
            assert_eq!(ended.cause, EndReason::Finished);
            assert_eq!(printed, format!("{SHORTENED}partial\n"));
            assert_eq!(requests, ["output", "release t1"]);
        };
        check(Some(0), None, (0, None)).await;
        check(Some(3), None, (3, None)).await;
        check(None, Some("SIGKILL"), (137, Some(9))).await;
        check(None, Some("TERM"), (143, Some(15))).await;
        check(Some(130), Some("SIGINT"), (130, Some(2))).await;
        check(None, None, (1, None)).await;
    }

    /// Proves ACP-4, ACP-7: a stopped command is killed, its output is returned, and the terminal is released.
    #[tokio::test(start_paused = true)]
    async fn stopped_command_is_killed_and_released() {
        let limit = Some(Duration::from_secs(120));
        let (ended, printed, requests) =
            run(Client::default(), limit, &CancellationToken::new()).await;
        let ended = ended.unwrap();
        assert_eq!(ended.cause, EndReason::TimedOut);
        assert_eq!(ended.exit, Exit::by_signal(15));
        assert_eq!(printed, format!("{SHORTENED}partial\n"));
        assert_eq!(requests, ["kill", "output", "release t1"]);
        let cancel = CancellationToken::new();
        cancel.cancel();
        let (ended, _, requests) = run(Client::default(), None, &cancel).await;
        assert_eq!(ended.unwrap().cause, EndReason::Cancelled);
        assert_eq!(requests, ["kill", "output", "release t1"]);
    }

    /// Proves ACP-4: a refusal by the client fails the command, and the terminal is released.
    #[tokio::test]
    async fn refusal_by_the_client_fails_the_command() {
        let client = Client {
            exit: Some(Err("it is gone".to_owned())),
            ..Client::default()
        };
        let (ended, _, requests) = run(client, None, &CancellationToken::new()).await;
        assert!(matches!(ended, Err(RunError::Terminal(reason)) if reason == "it is gone"));
        assert_eq!(requests, ["output", "release t1"]);
        let client = Client {
            refuses_creation: true,
            ..Client::default()
        };
        let (ended, _, requests) = run(client, None, &CancellationToken::new()).await;
        assert!(matches!(ended, Err(RunError::Terminal(_))));
        assert_eq!(requests, Vec::<String>::new());
    }

    /// Proves ACP-4: the end of the processes of a command does not block other tasks, whether the command was awaited or
    /// not.
    #[tokio::test]
    async fn end_of_processes_does_not_block_other_tasks() {
        for is_awaited in [true, false] {
            let (go, wait) = std::sync::mpsc::channel();
            let (ended, end) = tokio::sync::oneshot::channel();
            let ports = Mutex::new(Some((wait, ended)));
            let client = Client {
                exit: Some(Ok(TerminalExit::default())),
                ..Client::default()
            };
            let runner = TerminalRunner {
                terminals: Arc::new(client),
                end_tagged: Arc::new(move |tag, _| {
                    let (wait, ended) = ports.lock().unwrap().take().unwrap();
                    let is_free = wait.recv_timeout(Duration::from_secs(10)).is_ok();
                    ended.send((tag.to_owned(), is_free)).unwrap();
                    true
                }),
            };
            let mut tagged = spec(None);
            tagged.env.push((CALL_TAG.into(), "1.2".into()));
            let mut running = runner.start(tagged).await.unwrap();
            let work = async {
                if is_awaited {
                    let cancel = CancellationToken::new();
                    running.wait(&cancel, &mut |_, _| {}).await.unwrap();
                }
                drop(running);
            };
            let other = async {
                tokio::task::yield_now().await;
                go.send(()).unwrap();
            };
            let ((), (), end) = tokio::join!(work, other, end);
            assert_eq!(end.unwrap(), ("1.2".to_owned(), true), "{is_awaited}");
        }
    }

    /// Proves ACP-4: a dropped command releases its terminal.
    #[tokio::test]
    async fn dropped_command_is_released() {
        let client = Arc::new(Client::default());
        let runner = TerminalRunner::new(Arc::clone(&client) as _);
        drop(runner.start(spec(None)).await.unwrap());
        let requests = client.requests.lock().unwrap().clone();
        assert_eq!(requests, ["create sh [\"-c\"]", "release t1"]);
    }
}
