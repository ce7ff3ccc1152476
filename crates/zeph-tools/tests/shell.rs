//! The shell through its executor: real commands, a real supervisor. The test binary itself acts
//! as the supervisor and as an agent that is killed: see the two ignored functions.
#![cfg(all(feature = "shell", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use zeph_tools::shell::{
    ReadGuard, ShellConfig, ShellEnvConfig, ShellExecutor, ShellOutputEnvelope, SupervisorCommand,
    supervisor_main,
};
use zeph_tools::{
    CallContext, EventSink, OutputStream, ToolCall, ToolError, ToolErrorCategory, ToolEvent,
    ToolExecutor, ToolOutput, UserDecision, format_for_llm,
};

#[test]
#[ignore = "no test: the supervisor process of the tests"]
fn acts_as_supervisor() {
    let _ = supervisor_main();
}

#[test]
#[ignore = "no test: an agent process that runs the command on its standard input"]
fn acts_as_agent() {
    let mut command = String::new();
    std::io::stdin().read_to_string(&mut command).unwrap();
    if command.is_empty() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let shell = Shell::new();
    let _ = runtime.block_on(shell.call(json!({"command": command, "timeout_secs": 60})));
}

/// The path of this binary and the arguments that run one of the functions above.
fn this_binary(function: &str) -> (PathBuf, Vec<OsString>) {
    let args = ["--ignored", "--exact", "--nocapture", function];
    (
        std::env::current_exe().unwrap(),
        args.map(OsString::from).to_vec(),
    )
}

#[allow(
    clippy::disallowed_methods,
    reason = "tests start processes of their own"
)]
fn agent(command: &str) -> Child {
    let (program, args) = this_binary("acts_as_agent");
    let mut agent = Command::new(program)
        .args(args)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = agent.stdin.take().unwrap();
    stdin.write_all(command.as_bytes()).unwrap();
    agent
}

struct Shell {
    executor: ShellExecutor,
    dir: tempfile::TempDir,
}

impl Shell {
    fn new() -> Self {
        Self::with(ShellConfig::default(), &[])
    }

    /// The blocklist is not tested here: calls are confirmed.
    fn with(config: ShellConfig, env: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (program, args) = this_binary("acts_as_supervisor");
        let mut base: Vec<(OsString, OsString)> = vec![(
            "PATH".into(),
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
        )];
        base.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
        let cwd = fs::read_link("/proc/self/cwd").unwrap().join(dir.path());
        let supervisor = SupervisorCommand { program, args };
        let executor =
            ShellExecutor::new(config, cwd, base, supervisor, ReadGuard::default()).unwrap();
        Self { executor, dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    async fn call(&self, params: Value) -> Result<ToolOutput, ToolError> {
        self.call_in(params, &CallContext::headless()).await
    }

    async fn call_in(&self, params: Value, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let call = ToolCall::new("call-1", "bash", params, "conversation");
        let output = self.executor.execute_tool_call_confirmed(&call, cx).await;
        output.map(|output| output.expect("bash is the shell's"))
    }

    async fn ok(&self, command: &str) -> ToolOutput {
        self.call(json!({ "command": command })).await.unwrap()
    }

    async fn text(&self, command: &str) -> String {
        self.ok(command).await.summary
    }

    async fn err(&self, params: Value) -> ToolError {
        self.call(params).await.unwrap_err()
    }
}

fn envelope(output: &ToolOutput) -> ShellOutputEnvelope {
    serde_json::from_value(output.raw_response.clone().unwrap()).unwrap()
}

/// Whether a process is alive. Zombies do not count.
fn lives(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit_once(") ").unwrap().1;
        !state.starts_with('Z') && !state.starts_with('X')
    })
}

async fn until(what: &str, limit: Duration, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The pids that a command wrote into files of these names.
async fn pids(dir: &Path, names: &[&str]) -> Vec<i32> {
    let read = |name: &&str| -> Option<i32> {
        let text = fs::read_to_string(dir.join(name)).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    };
    until("all processes started", Duration::from_secs(20), || {
        names.iter().all(|name| read(name).is_some())
    })
    .await;
    names.iter().map(|name| read(name).unwrap()).collect()
}

async fn all_gone(pids: &[i32], limit: Duration) {
    until(&format!("{pids:?} gone"), limit, || {
        !pids.iter().any(|pid| lives(*pid))
    })
    .await;
}

/// A command whose processes try to escape in every known way. They write their pids to files in `$PWD`, and
/// the last file when all are written.
const ESCAPES: &str = r#"
    echo $PPID > supervisor
    echo $$ > shell
    sleep 300 & echo $! > child
    setsid sh -c 'echo $$ > session; exec /bin/sleep 300' &
    (setsid sh -c 'echo $$ > forked; exec /bin/sleep 300' &)
    nohup sh -c 'trap "" HUP; echo $$ > nohup; exec /bin/sleep 300' >/dev/null 2>&1 &
    (setsid bash -c 'trap "" TERM HUP INT; echo $$ > deaf; while :; do sleep 300; done' &)
    (env -i setsid /bin/sh -c 'echo $$ > bare; exec /bin/sleep 300' &)
    sh -c 'echo $$ > stopped; kill -STOP $$; exec /bin/sleep 300' &
    wait
"#;
const ESCAPED: [&str; 8] = [
    "shell", "child", "session", "forked", "nohup", "deaf", "bare", "stopped",
];

/// Proves SH-3.
#[tokio::test]
async fn no_process_survives_a_killed_agent() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = agent(&format!("cd {}\n{ESCAPES}", dir.path().display()));
    let mut started = pids(dir.path(), &ESCAPED).await;
    started.extend(pids(dir.path(), &["supervisor"]).await);
    assert!(started.iter().all(|pid| lives(*pid)));
    agent.kill().unwrap();
    agent.wait().unwrap();
    all_gone(&started, Duration::from_secs(10)).await;
}

/// Proves SH-3.
#[tokio::test]
async fn shell_dies_with_its_supervisor_after_the_agent_is_killed() {
    use rustix::process::{Pid, Signal, kill_process};
    let dir = tempfile::tempdir().unwrap();
    let command = "echo $PPID > supervisor; echo $$ > shell; read x < <(sleep 300)";
    let mut agent = agent(&format!("cd {}\n{command}", dir.path().display()));
    let started = pids(dir.path(), &["supervisor", "shell"]).await;
    let agent_pid = Pid::from_raw(agent.id().try_into().unwrap()).unwrap();
    kill_process(agent_pid, Signal::STOP).unwrap();
    kill_process(Pid::from_raw(started[0]).unwrap(), Signal::KILL).unwrap();
    all_gone(&started, Duration::from_secs(10)).await;
    kill_process(agent_pid, Signal::CONT).unwrap();
    // The agent ends the remaining processes, then itself, because its one call has failed.
    agent.wait().unwrap();
}

/// Proves SH-3.
#[tokio::test]
async fn supervisor_ignores_signals_to_itself_and_the_group() {
    use rustix::process::{Pid, Signal, kill_process};
    let shell = Shell::new();
    let supervisor: i32 = shell.text("echo $PPID").await.parse().unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        kill_process(Pid::from_raw(supervisor).unwrap(), signal).unwrap();
    }
    assert_eq!(shell.text("echo $PPID").await, supervisor.to_string());
    // Commands receive these signals.
    assert_eq!(
        shell.text("trap 'echo got it' TERM; kill -TERM $$").await,
        "got it"
    );
    let sessions = shell
        .text("cut -d' ' -f6 /proc/$PPID/stat /proc/$$/stat")
        .await;
    assert_eq!(sessions, format!("{supervisor}\n{supervisor}"));
    shell.executor.shutdown().await;
    assert!(!lives(supervisor));
}

/// Proves SH-3.
#[tokio::test]
async fn timeout_ends_the_process_tree_and_returns_its_output() {
    let shell = Shell::new();
    let command = format!("echo before; echo warned >&2; {ESCAPES}");
    let begin = Instant::now();
    let error = shell
        .err(json!({"command": command, "timeout_secs": 1}))
        .await;
    let took = begin.elapsed();
    let started = pids(shell.dir.path(), &ESCAPED).await;
    assert_eq!(error.category(), ToolErrorCategory::Timeout);
    let output = error.output().unwrap();
    assert!(output.summary.contains("before\n"), "{}", output.summary);
    let envelope = envelope(output);
    assert_eq!(envelope.stdout, "before\n");
    assert!(
        envelope.stderr.starts_with("warned\n"),
        "{}",
        envelope.stderr
    );
    assert_eq!((envelope.exit_code, envelope.signal), (143, Some(15)));
    // One process ignores SIGTERM: after two seconds it gets SIGKILL.
    assert!(took >= Duration::from_secs(3), "{took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(!started.iter().any(|pid| lives(*pid)));
    // The supervisor still works.
    assert_eq!(shell.text("echo on").await, "on");
}

/// Proves SH-3.
#[tokio::test]
async fn forking_command_that_ignores_sigterm_is_ended() {
    let shell = Shell::new();
    let command = "echo $$ > first; trap '' TERM; \
                   for i in $(seq 300); do (setsid sleep 300 &); sleep 0.005; done; \
                   echo $$ > last; while :; do sleep 300; done";
    let call = shell.err(json!({"command": command, "timeout_secs": 1}));
    let (error, first) = tokio::join!(call, pids(shell.dir.path(), &["first"]));
    assert_eq!(error.category(), ToolErrorCategory::Timeout);
    let text = &error.output().unwrap().summary;
    assert!(!text.contains("could not be ended"), "{text}");
    assert!(!lives(first[0]));
    // The only children of the supervisor are the shell of this command and its tools.
    let children = shell.text("ps -o comm= --ppid $PPID | sort -u").await;
    assert!(!children.contains("sleep"), "{children}");
}

/// Proves SH-3.
#[tokio::test]
async fn cancellation_ends_the_process_tree_and_returns_its_output() {
    let shell = Shell::new();
    let cancel = CancellationToken::new();
    let cx = CallContext::new(
        cancel.clone(),
        Arc::new(Sink::default()),
        UserDecision::Nobody,
    );
    let command = json!({"command": format!("echo before; {ESCAPES}")});
    let (error, started) = tokio::join!(shell.call_in(command, &cx), async {
        let started = pids(shell.dir.path(), &ESCAPED).await;
        cancel.cancel();
        started
    });
    let error = error.unwrap_err();
    assert_eq!(error.category(), ToolErrorCategory::Cancelled);
    assert!(error.output().unwrap().summary.starts_with("before"));
    assert!(!started.iter().any(|pid| lives(*pid)));
    let again = shell.call_in(json!({"command": "echo no"}), &cx).await;
    assert_eq!(again.unwrap_err().category(), ToolErrorCategory::Cancelled);
}

/// Proves SH-3.
#[tokio::test]
async fn dropped_call_is_ended() {
    let shell = Shell::new();
    let call = shell.call(json!({"command": "echo $$ > pid; sleep 300"}));
    let pid = tokio::select! {
        _ = call => panic!("the command ended"),
        pid = pids(shell.dir.path(), &["pid"]) => pid,
    };
    all_gone(&pid, Duration::from_secs(5)).await;
}

/// Proves SH-3a.
#[tokio::test]
async fn command_with_a_background_child_returns_and_reports_it() {
    let shell = Shell::new();
    let begin = Instant::now();
    let text = shell.text("sleep 25 & echo $! > pid; echo started").await;
    assert!(begin.elapsed() < Duration::from_secs(2));
    let pid = pids(shell.dir.path(), &["pid"]).await[0];
    assert_eq!(
        text,
        format!(
            "started\n[a background process still runs: sleep (pid {pid}); it is job-1 and ends \
             with the session]"
        )
    );
    // It does not affect later calls, and continues while they run, also when they time out.
    assert_eq!(shell.text("echo next").await, "next");
    shell
        .err(json!({"command": "sleep 300", "timeout_secs": 1}))
        .await;
    assert!(lives(pid));
    shell.executor.shutdown().await;
    assert!(!lives(pid));
}

/// Proves SH-3a.
#[tokio::test]
async fn printing_background_child_is_neither_blocked_nor_broken() {
    let shell = Shell::new();
    let text = shell
        .text("(head -c 3000000 /dev/zero && sleep 0.1 && echo end && touch done) & echo started")
        .await;
    assert!(text.contains("started"), "{text}");
    let done = shell.file("done");
    until(
        "the child ended on its own",
        Duration::from_secs(10),
        || done.exists(),
    )
    .await;
}

/// Proves SH-4.
#[tokio::test]
async fn last_output_of_a_pipeline_is_not_lost() {
    let shell = Shell::new();
    for _ in 0..20 {
        let text = shell.text("seq 1 2000 > >(tail -n 1)").await;
        assert_eq!(text, "2000");
        let text = shell.text("seq 1 5000").await;
        assert!(text.starts_with("1\n2\n") && text.ends_with("4999\n5000"));
    }
}

/// Proves SH-1.
#[tokio::test]
async fn standard_input_is_closed() {
    let shell = Shell::new();
    assert_eq!(shell.text("cat; echo $?").await, "0");
    assert_eq!(shell.text("read x || echo eof").await, "eof");
}

/// Proves SH-1.
#[tokio::test]
async fn bash_runs_in_the_project_directory() {
    let shell = Shell::new();
    let text = shell.text("[[ $BASH_VERSION ]] && pwd -P").await;
    assert_eq!(text, shell.dir.path().display().to_string());
    let dashed = shell.ok("-nonexistent-option; echo $?").await;
    assert_eq!(
        envelope(&dashed).stdout,
        "127
"
    );
    fs::create_dir(shell.file("sub")).unwrap();
    let output = shell
        .call(json!({"command": "pwd", "cwd": "sub"}))
        .await
        .unwrap();
    assert_eq!(output.summary, shell.file("sub").display().to_string());
    let error = shell.err(json!({"command": "pwd", "cwd": "/"})).await;
    assert_eq!(error.category(), ToolErrorCategory::PolicyBlocked);
    let root = shell.dir.path().display().to_string();
    assert!(error.to_string().contains(&root), "{error}");
}

/// Proves SH-2.
#[tokio::test]
async fn secrets_do_not_reach_commands() {
    let config = ShellConfig {
        env: ShellEnvConfig {
            pass: vec!["WANTED_TOKEN".into()],
            block: vec!["LOCAL_*".into()],
            set: [("CI".into(), "1".into())].into(),
        },
        ..ShellConfig::default()
    };
    let env = [
        ("GITHUB_TOKEN", "hidden-1"),
        ("ANTHROPIC_API_KEY", "hidden-2"),
        ("DB_PASSWORD", "hidden-3"),
        ("LOCAL_NAME", "hidden-4"),
        ("WANTED_TOKEN", "seen-1"),
        ("EDITOR", "seen-2"),
    ];
    let shell = Shell::with(config, &env);
    // The environment of the parent is readable too.
    let everything = "env; tr '\\0' '\\n' < /proc/$PPID/environ || true";
    let text = shell.text(everything).await;
    assert!(!text.contains("hidden"), "{text}");
    assert!(text.contains("WANTED_TOKEN=seen-1\n") && text.contains("EDITOR=seen-2\n"));
    assert!(text.contains("CI=1\n"));
    shell
        .executor
        .set_skill_env(Some([("SKILL_TOKEN".to_owned(), "s".to_owned())].into()));
    assert_eq!(shell.text("echo $SKILL_TOKEN").await, "s");
    shell.executor.set_skill_env(None);
    assert_eq!(shell.text("echo ${SKILL_TOKEN-none}").await, "none");
}

/// Proves SH-5, SH-6, D-6.
#[tokio::test]
async fn exits_are_classified() {
    let shell = Shell::new();
    let plain = shell.ok("echo out; echo err >&2; exit 3").await;
    assert!(
        plain.summary.ends_with("\n[exit code: 3]"),
        "{}",
        plain.summary
    );
    let envelope_of_plain = envelope(&plain);
    assert_eq!(
        (
            envelope_of_plain.stdout.as_str(),
            envelope_of_plain.stderr.as_str()
        ),
        ("out\n", "err\n")
    );
    assert_eq!(
        (envelope_of_plain.exit_code, envelope_of_plain.signal),
        (3, None)
    );
    let success = shell.ok("echo 'Permission denied' >&2").await;
    assert_eq!(success.summary, "Permission denied");
    assert_eq!(shell.text("true").await, "(no output)");
    let killed = shell.ok("kill -KILL $$").await;
    assert_eq!(killed.summary, "[exit code: 137] (killed by SIGKILL)");
    let killed = envelope(&killed);
    assert_eq!((killed.exit_code, killed.signal), (137, Some(9)));

    let check = async |command: &str, code, category, printed: &str| {
        let error = shell.err(json!({ "command": command })).await;
        assert_eq!(error.category(), category, "{command}");
        assert_eq!(envelope(error.output().unwrap()).exit_code, code);
        let text = format_for_llm(&error);
        assert!(text.starts_with("[tool_error]\n"), "{text}");
        assert!(text.contains(printed), "{text}");
        assert!(text.ends_with(&format!("[exit code: {code}]")), "{text}");
    };
    use ToolErrorCategory::{PermanentFailure, PolicyBlocked};
    fs::write(shell.file("script"), "").unwrap();
    check("./script", 126, PolicyBlocked, "Permission denied").await;
    check("surely-no-command", 127, PermanentFailure, "not found").await;
    check("cat /nonexistent", 1, PermanentFailure, "No such file").await;
}

/// Proves SH-3, SH-6.
#[tokio::test]
async fn invalid_command_is_refused_with_a_reason() {
    let shell = Shell::new();
    let check = async |params: Value, category, word: &str| {
        let error = shell.err(params).await;
        assert_eq!(error.category(), category, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    };
    use ToolErrorCategory::{InvalidParameters, PermanentFailure};
    check(json!({"command": " \n"}), InvalidParameters, "/command").await;
    check(json!({"command": "a\0b"}), InvalidParameters, "NUL").await;
    let longest = format!("true {}", "x".repeat(128 * 1024 - 6));
    assert_eq!(shell.text(&longest).await, "(no output)");
    let longer = json!({"command": format!("{longest}x")});
    check(longer, InvalidParameters, "to a file").await;
    check(
        json!({"command": "a", "timeout_secs": 0}),
        InvalidParameters,
        "600",
    )
    .await;
    check(
        json!({"command": "a", "timeout_secs": 601}),
        InvalidParameters,
        "600",
    )
    .await;
    check(
        json!({"command": "a", "cwd": "gone"}),
        PermanentFailure,
        "does not exist",
    )
    .await;
    // A variable over the kernel's limit prevents the start of the shell.
    let crowded = Shell::with(ShellConfig::default(), &[("HUGE", &"x".repeat(200_000))]);
    let error = crowded.err(json!({"command": "true"})).await;
    assert_eq!(error.category(), PermanentFailure);
    assert!(error.to_string().contains("too long"), "{error}");

    let env = vec![("PATH".into(), "/nonexistent".into())];
    let (program, args) = this_binary("acts_as_supervisor");
    let supervisor = SupervisorCommand { program, args };
    let without = ShellExecutor::new(
        ShellConfig::default(),
        "/".into(),
        env,
        supervisor,
        ReadGuard::default(),
    )
    .unwrap();
    let call = ToolCall::new("1", "bash", json!({"command": "true"}), "c");
    let error = without
        .execute_tool_call(&call, &CallContext::headless())
        .await
        .unwrap_err();
    assert_eq!(error.category(), PermanentFailure);
    assert!(error.to_string().contains("neither bash nor sh"), "{error}");
}

/// Proves SH-6: a missing supervisor program does not result in `ToolNotFound`.
#[tokio::test]
async fn supervisor_that_cannot_start_is_a_permanent_failure() {
    let call = ToolCall::new("1", "bash", json!({"command": "true"}), "c");
    let cx = CallContext::headless();
    let run = async |program: &str| {
        let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let supervisor = SupervisorCommand::new(program);
        let shell = ShellExecutor::new(
            ShellConfig::default(),
            "/".into(),
            env,
            supervisor,
            ReadGuard::default(),
        )
        .unwrap();
        shell.execute_tool_call(&call, &cx).await.unwrap_err()
    };
    let missing = run("/nonexistent/zeph").await;
    assert_eq!(missing.category(), ToolErrorCategory::PermanentFailure);
    let wrong = run("/bin/false").await;
    assert_eq!(wrong.category(), ToolErrorCategory::ServerError);
    assert!(wrong.to_string().contains("died"), "{wrong}");
}

/// Proves SH-3.
#[tokio::test]
async fn killed_supervisor_ends_its_commands_and_is_replaced() {
    use rustix::process::{Pid, Signal, kill_process};
    let shell = Shell::new();
    let command = json!({"command": format!("echo before; {ESCAPES}"), "timeout_secs": 60});
    // A process with a cleared environment has no tag by which it could be found afterwards.
    let tagged: Vec<_> = ESCAPED.into_iter().filter(|name| *name != "bare").collect();
    let (error, started) = tokio::join!(shell.call(command), async {
        let started = pids(shell.dir.path(), &tagged).await;
        let supervisor = pids(shell.dir.path(), &["supervisor"]).await[0];
        let bare = pids(shell.dir.path(), &["bare"]).await[0];
        kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
        let _ = kill_process(Pid::from_raw(bare).unwrap(), Signal::KILL);
        started
    });
    let error = error.unwrap_err();
    assert!(error.to_string().contains("died"), "{error}");
    assert!(error.output().unwrap().summary.starts_with("before"));
    all_gone(&started, Duration::from_secs(5)).await;
    let text = shell.text("echo on").await;
    assert!(
        text.starts_with("on\n[the process that runs shell commands had died"),
        "{text}"
    );
    assert_eq!(shell.text("echo on").await, "on");
}

/// Proves SH-4.
#[tokio::test]
async fn invalid_bytes_are_replaced_and_nul_is_removed() {
    let shell = Shell::new();
    let output = shell
        .ok(r"printf 'a\0\0\0\0b\xff\xe2\x82'; sleep 0.05; printf '\xac|\xe2\x82'")
        .await;
    assert_eq!(output.summary, "ab\u{FFFD}€|\u{FFFD}");
    assert_eq!(envelope(&output).stdout, output.summary);
}

#[derive(Default)]
struct Sink {
    events: Mutex<Vec<ToolEvent>>,
}

impl EventSink for Sink {
    fn emit(&self, event: ToolEvent) {
        self.events.lock().unwrap().push(event);
    }
}

impl Sink {
    fn shown(&self) -> Vec<(OutputStream, String)> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter_map(|event| match event {
                ToolEvent::Output { stream, text, .. } => Some((*stream, text.clone())),
                ToolEvent::Notice { .. }
                | ToolEvent::Warning { .. }
                | ToolEvent::Terminal { .. }
                | ToolEvent::Rollback { .. } => None,
            })
            .collect()
    }
}

/// Proves SH-4.
#[tokio::test]
async fn output_is_live_and_in_order_of_arrival() {
    let shell = Shell::new();
    let sink = Arc::new(Sink::default());
    let cx = CallContext::new(CancellationToken::new(), sink.clone(), UserDecision::Nobody);
    // Each step waits until the previous one was shown.
    let command = "echo one; until [ -e go1 ]; do sleep 0.01; done; echo two >&2; \
                   until [ -e go2 ]; do sleep 0.01; done; echo three";
    let shown = |count: usize| {
        let sink = Arc::clone(&sink);
        async move {
            until("shown", Duration::from_secs(10), || {
                sink.shown().len() == count
            })
            .await
        }
    };
    let (output, ()) = tokio::join!(shell.call_in(json!({ "command": command }), &cx), async {
        shown(1).await;
        fs::write(shell.file("go1"), "").unwrap();
        shown(2).await;
        fs::write(shell.file("go2"), "").unwrap();
    });
    let output = output.unwrap();
    assert_eq!(output.summary, "one\ntwo\nthree");
    let envelope = envelope(&output);
    assert_eq!(
        (envelope.stdout.as_str(), envelope.stderr.as_str()),
        ("one\nthree\n", "two\n")
    );
    assert!(!envelope.truncated);
    use OutputStream::{Stderr, Stdout};
    let expect = [(Stdout, "one\n"), (Stderr, "two\n"), (Stdout, "three\n")];
    assert_eq!(
        sink.shown(),
        expect.map(|(stream, text)| (stream, text.to_owned()))
    );
}

/// The peak memory of this process in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// Proves SH-4, SH-5.
#[tokio::test]
async fn flood_of_output_uses_bounded_memory_and_events() {
    let shell = Shell::new();
    let sink = Arc::new(Sink::default());
    let cx = CallContext::new(CancellationToken::new(), sink.clone(), UserDecision::Nobody);
    shell.ok("true").await;
    let before = peak();
    let line = "a line of text ".repeat(8);
    let command = format!(
        "echo first; yes '{line}' | head -c 90000000; \
         head -c 60000000 /dev/zero | tr '\\0' 'x' >&2; echo; echo last"
    );
    let output = shell
        .call_in(json!({ "command": command }), &cx)
        .await
        .unwrap();
    let grown = peak().saturating_sub(before);
    assert!(grown < 48 * 1024, "{grown} KiB");
    assert!(output.summary.len() < 50 * 1024);
    assert!(
        output.summary.starts_with("first\na line"),
        "{}",
        &output.summary[..40]
    );
    assert!(output.summary.contains("left out …]\n"));
    let envelope = envelope(&output);
    assert!(envelope.truncated);
    assert!(envelope.stdout.ends_with("last\n") && envelope.stderr.ends_with("xxx"));
    let shown: usize = sink.shown().iter().map(|(_, text)| text.len()).sum();
    assert!(shown < 40_000_000, "{shown} bytes");
}

/// Proves SH-3, SH-4.
#[tokio::test]
async fn flood_can_be_stopped() {
    let shell = Shell::new();
    let begin = Instant::now();
    let error = shell
        .err(json!({"command": "yes", "timeout_secs": 1}))
        .await;
    assert_eq!(error.category(), ToolErrorCategory::Timeout);
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert!(error.output().unwrap().summary.starts_with("y\ny\n"));
}

/// Proves SH-4.
#[tokio::test]
async fn concurrent_calls_do_not_mix() {
    let shell = Arc::new(Shell::new());
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..16 {
        let shell = Arc::clone(&shell);
        calls.spawn(async move {
            let command = format!("for i in $(seq 200); do echo {number}; done; exit {number}");
            (number, shell.ok(&command).await)
        });
    }
    while let Some(done) = calls.join_next().await {
        let (number, output) = done.unwrap();
        let envelope = envelope(&output);
        assert_eq!(envelope.stdout, format!("{number}\n").repeat(200));
        assert_eq!(envelope.exit_code, number);
        assert!(!output.summary.contains("background"), "{}", output.summary);
    }
}

/// Proves SH-3.
#[tokio::test]
async fn timeout_ends_only_its_own_call() {
    let shell = Shell::new();
    let (stopped, other) = tokio::join!(
        shell.err(json!({"command": "sleep 300", "timeout_secs": 1})),
        shell.text("env -i sh -c 'sleep 1.5' & wait; echo whole"),
    );
    assert_eq!(stopped.category(), ToolErrorCategory::Timeout);
    assert_eq!(other, "whole");
}

/// Proves SH-3: orphaned processes do not stay as zombies.
#[tokio::test]
async fn orphans_are_reaped() {
    let shell = Shell::new();
    let supervisor: i32 = shell.text("echo $PPID").await.parse().unwrap();
    shell
        .ok("for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'exit 7' &); done; exit 0")
        .await;
    let children = format!("/proc/{supervisor}/task");
    until("no zombie left", Duration::from_secs(10), || {
        let tasks = fs::read_dir(&children).unwrap().flatten();
        let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")));
        lists.flatten().all(|list| list.is_empty())
    })
    .await;
    assert_eq!(shell.text("echo on").await, "on");
}

#[tokio::test]
async fn other_tools_are_not_handled_by_the_shell() {
    let shell = Shell::new();
    let call = ToolCall::new("1", "read", json!({"path": "x"}), "c");
    let output = shell
        .executor
        .execute_tool_call(&call, &CallContext::headless())
        .await;
    assert_eq!(output.unwrap(), None);
    assert!(!shell.executor.is_tool_retryable("bash"));
}
