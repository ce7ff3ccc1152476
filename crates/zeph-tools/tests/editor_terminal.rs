//! Commands of a model with an editor that has terminals.
#![cfg(feature = "shell")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use zeph_tools::executor::ToolExecutor as _;
use zeph_tools::shell::exec::{CommandSandbox, OutputFn};
use zeph_tools::shell::{
    CommandOutcome, CommandRunner, CommandSpec, EditorTerminal, EndReason, Exit, RunError,
    RunningCommand, ShellConfig, ShellExecutor, StdStream,
};
use zeph_tools::{
    CallContext, EventSink, ToolCall, ToolError, ToolEvent, ToolOutput, UserDecision,
};

/// A runner that starts nothing and records its commands.
struct Recording {
    /// The id of its terminals; `None` for a runner on this machine.
    terminal: Option<&'static str>,
    /// Whether a command can set up its sandbox itself.
    confines: bool,
    stream: StdStream,
    output: &'static str,
    end: (i32, EndReason),
    started: Mutex<Vec<CommandSpec>>,
}

impl Recording {
    fn new(terminal: Option<&'static str>, confines: bool) -> Self {
        Self {
            terminal,
            confines,
            stream: StdStream::Stdout,
            output: "printed\n",
            end: (0, EndReason::Finished),
            started: Mutex::default(),
        }
    }

    fn started(&self) -> Vec<CommandSpec> {
        std::mem::take(&mut *self.started.lock().unwrap())
    }
}

#[async_trait::async_trait]
impl CommandRunner for Recording {
    async fn start(&self, command: CommandSpec) -> Result<Box<dyn RunningCommand>, RunError> {
        self.started.lock().unwrap().push(command);
        let Self {
            terminal,
            stream,
            output,
            end,
            ..
        } = *self;
        Ok(Box::new(Ended {
            terminal,
            stream,
            output,
            end,
        }))
    }

    async fn start_for_user(
        &self,
        command: CommandSpec,
        _side: Option<OwnedFd>,
    ) -> Result<Box<dyn RunningCommand>, RunError> {
        self.start(command).await
    }

    async fn self_confined(&self, command: CommandSpec) -> Result<Option<CommandSpec>, RunError> {
        let mut argv: Vec<OsString> = vec!["helper".into()];
        argv.extend(command.argv);
        Ok(self.confines.then_some(CommandSpec {
            argv,
            sandbox: CommandSandbox::Off,
            ..command
        }))
    }

    async fn enforces_deny_read(&self) -> bool {
        false
    }

    async fn shutdown(&self) {}
}

struct Ended {
    terminal: Option<&'static str>,
    stream: StdStream,
    output: &'static str,
    end: (i32, EndReason),
}

#[async_trait::async_trait]
impl RunningCommand for Ended {
    fn terminal_id(&self) -> Option<&str> {
        self.terminal
    }

    async fn started(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    async fn wait(
        &mut self,
        _cancel: &CancellationToken,
        output: OutputFn<'_>,
    ) -> Result<CommandOutcome, RunError> {
        output(self.stream, self.output.as_bytes());
        let (code, cause) = self.end;
        Ok(CommandOutcome {
            exit: Exit { code, signal: None },
            cause,
            background: Vec::new(),
            lingering: false,
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

#[derive(Default)]
struct Events(Mutex<Vec<ToolEvent>>);

impl EventSink for Events {
    fn emit(&self, event: ToolEvent) {
        self.0.lock().unwrap().push(event);
    }
}

struct World {
    shell: ShellExecutor,
    local: Arc<Recording>,
    editor: Arc<Recording>,
    events: Arc<Events>,
}

impl World {
    fn new(local: Recording, editor: Recording) -> Self {
        let (local, editor) = (Arc::new(local), Arc::new(editor));
        let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let runner = Arc::clone(&local) as _;
        let shell = ShellExecutor::with_runner(
            ShellConfig::default(),
            "/".into(),
            env,
            runner,
            Arc::default(),
        );
        let terminal = EditorTerminal {
            runner: Arc::clone(&editor) as _,
            timeout: Duration::from_secs(120),
        };
        Self {
            shell: shell.unwrap().with_editor_terminal(Some(terminal)),
            local,
            editor,
            events: Arc::default(),
        }
    }

    async fn run(&self, params: Value) -> Result<ToolOutput, ToolError> {
        let call = ToolCall::new("7", "bash", params, "c");
        let events = Arc::clone(&self.events) as _;
        let cx = CallContext::new(CancellationToken::new(), events, UserDecision::Nobody);
        let result = self.shell.execute_tool_call(&call, &cx).await;
        result.map(Option::unwrap)
    }
}

/// Proves ACP-4: a command that has its sandbox there runs in the terminal of the editor, and only there.
#[tokio::test]
async fn confined_command_runs_in_the_editor() {
    let world = World::new(Recording::new(None, true), Recording::new(Some("t1"), true));
    let output = world.run(json!({"command": "echo hi"})).await.unwrap();
    assert_eq!(output.summary.trim_end(), "printed");
    assert!(world.local.started().is_empty());
    let started = world.editor.started();
    let argv: Vec<_> = started[0]
        .argv
        .iter()
        .map(|arg| arg.to_str().unwrap())
        .collect();
    assert_eq!(argv[0], "helper");
    assert!(argv.ends_with(&["-c", "--", "echo hi"]), "{argv:?}");
    assert_eq!(started[0].env[0].0, "PATH");
    // The editor shows the output.
    let event = ToolEvent::Terminal {
        call_id: "7".to_owned(),
        terminal_id: "t1".to_owned(),
    };
    assert_eq!(*world.events.0.lock().unwrap(), [event]);
}

/// Proves ACP-4, SH-20, SH-40: other commands run on this machine.
#[tokio::test]
async fn other_commands_run_on_this_machine() {
    let world = World::new(
        Recording::new(None, false),
        Recording::new(Some("t1"), true),
    );
    world.run(json!({"command": "echo hi"})).await.unwrap();
    assert_eq!(world.local.started().len(), 1);
    let world = World::new(Recording::new(None, true), Recording::new(Some("t1"), true));
    let job = json!({"command": "echo hi", "background": true});
    world.run(job).await.unwrap();
    assert_eq!(world.local.started().len(), 1);
    assert!(world.editor.started().is_empty());
}

/// Proves ACP-4, SH-10: the blocklist comes first.
#[tokio::test]
async fn blocked_command_does_not_reach_the_editor() {
    let world = World::new(Recording::new(None, true), Recording::new(Some("t1"), true));
    world.run(json!({"command": "rm -rf /"})).await.unwrap_err();
    assert!(world.local.started().is_empty() && world.editor.started().is_empty());
}

/// Proves ACP-4: the shorter limit applies, and the message names its setting.
#[tokio::test]
async fn shorter_time_limit_applies() {
    let timed_out = Recording {
        end: (143, EndReason::TimedOut),
        ..Recording::new(Some("t1"), true)
    };
    let world = World::new(Recording::new(None, true), timed_out);
    let check = async |params: Value, secs: u64, expect: &str| {
        let error = world.run(params).await.unwrap_err();
        let started = world.editor.started();
        assert_eq!(started[0].timeout, Some(Duration::from_secs(secs)));
        assert!(error.to_string().contains(expect), "{error}");
        assert_eq!(
            error.output().unwrap().summary.lines().next(),
            Some("printed")
        );
    };
    check(json!({"command": "sleep 9"}), 30, "`[tools.shell] timeout`").await;
    check(
        json!({"command": "sleep 9", "timeout_secs": 5}),
        5,
        "`timeout_secs`",
    )
    .await;
    let long = json!({"command": "sleep 9", "timeout_secs": 500});
    check(long, 120, "120 s (`[acp] terminal_timeout_secs`)").await;
    check(
        json!({"command": "cargo test"}),
        120,
        "`[acp] terminal_timeout_secs`",
    )
    .await;
}

/// Proves ACP-4, SH-21: the error in the one stream of the terminal is recognized.
#[tokio::test]
async fn failure_is_classified_by_the_whole_output() {
    let failed = |terminal, confines, stream| Recording {
        stream,
        output: "cat: x: Permission denied\n",
        end: (1, EndReason::Finished),
        ..Recording::new(terminal, confines)
    };
    let there = failed(Some("t1"), true, StdStream::Stdout);
    let there = World::new(Recording::new(None, true), there);
    let there = there.run(json!({"command": "cat x"})).await;
    let here = failed(None, false, StdStream::Stderr);
    let here = World::new(here, Recording::new(Some("t1"), true));
    let here = here.run(json!({"command": "cat x"})).await;
    let category = |result: Result<ToolOutput, ToolError>| result.unwrap_err().category();
    let expect = zeph_tools::ToolErrorCategory::PermanentFailure;
    assert_eq!([category(there), category(here)], [expect, expect]);
}
