//! The operating system sandbox around commands, with real commands and the real kernel. If the kernel does
//! not support it, these tests print a message and check nothing. The test binary itself acts as the
//! supervisor: see the ignored function.
#![cfg(all(feature = "shell", target_os = "linux"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_tools::shell::exec::runner::OutputFn;
use zeph_tools::shell::sandbox::probe;
use zeph_tools::shell::{
    CommandOutcome, CommandRunner, CommandSpec, EndReason, Exit, ReadGuard, RunError,
    RunningCommand, SandboxConfig, SandboxMode, ShellConfig, ShellExecutor, SupervisorCommand,
    supervisor_main,
};
use zeph_tools::{
    CallContext, EventSink, ToolCall, ToolError, ToolErrorCategory, ToolEvent, ToolExecutor,
    ToolOutput, UserDecision, format_for_llm,
};

#[test]
#[ignore = "no test: the supervisor process of the tests"]
fn acts_as_supervisor() {
    let _ = supervisor_main();
}

/// Whether this kernel supports the sandbox.
fn enforced() -> bool {
    let found = probe().unwrap();
    let lacks = found.lacks(false);
    if let Some(lacks) = &lacks {
        println!("skipped: {lacks}");
    }
    lacks.is_none()
}

/// Directories of a test: `base/project` (where commands start), `base/tmp` (their temporary directory) and
/// `base/outside`.
struct World {
    executor: ShellExecutor,
    base: PathBuf,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(ShellConfig::default())
    }

    fn with(config: ShellConfig) -> Self {
        Self::built(|_| config)
    }

    fn built(config: impl FnOnce(&PathBuf) -> ShellConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::read_link("/proc/self/cwd").unwrap().join(dir.path());
        for name in ["project", "tmp", "outside"] {
            fs::create_dir(base.join(name)).unwrap();
        }
        let args = ["--ignored", "--exact", "--nocapture", "acts_as_supervisor"];
        let supervisor = SupervisorCommand {
            program: std::env::current_exe().unwrap(),
            args: args.map(OsString::from).to_vec(),
        };
        let env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("TMPDIR".into(), base.join("tmp").into()),
            ("OUT".into(), base.join("outside").into()),
        ];
        let config = config(&base);
        let executor = ShellExecutor::new(
            config,
            base.join("project"),
            env,
            supervisor,
            ReadGuard::default(),
        )
        .unwrap();
        Self {
            executor,
            base,
            _dir: dir,
        }
    }

    async fn run(&self, command: &str) -> Result<ToolOutput, ToolError> {
        self.run_in(command, &CallContext::headless()).await
    }

    async fn run_in(&self, command: &str, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        // In a script, because the blocklist is not tested here and does not inspect scripts.
        let script = self.base.join("script");
        fs::write(&script, command).unwrap();
        let params = json!({ "command": format!("bash {}", script.display()), "timeout_secs": 20 });
        let call = ToolCall::new("call-1", "bash", params, "conversation");
        let output = self.executor.execute_tool_call_confirmed(&call, cx).await;
        output.map(|output| output.expect("bash is the shell's"))
    }

    async fn text(&self, command: &str) -> String {
        let output = self.run(command).await;
        output
            .unwrap_or_else(|error| panic!("{command}: {}", format_for_llm(&error)))
            .summary
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.base.join("outside").join(name)
    }

    /// Runs a command that tries to write outside, and returns the text for the model.
    async fn refused(&self, command: &str) -> String {
        let before = contents(&self.base.join("outside"));
        let result = self.run(command).await;
        assert_eq!(
            contents(&self.base.join("outside")),
            before,
            "{command} wrote"
        );
        match result {
            Ok(output) => output.summary,
            Err(error) => format_for_llm(&error),
        }
    }
}

/// Names and contents of the files of a directory.
fn contents(dir: &PathBuf) -> Vec<(OsString, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (
                entry.file_name(),
                fs::read(entry.path()).unwrap_or_default(),
            )
        })
        .collect();
    found.sort();
    found
}

/// Proves SH-20.
#[tokio::test]
async fn command_cannot_write_outside() {
    if !enforced() {
        return;
    }
    let world = World::new();
    fs::write(world.outside("kept"), "kept").unwrap();
    fs::write(world.base.join("project/inside"), "inside").unwrap();
    std::os::unix::fs::symlink(world.base.join("outside"), world.base.join("project/link"))
        .unwrap();
    for command in [
        "echo x > $OUT/new",
        "echo x >> $OUT/kept",
        "echo x > link/new",
        "echo x > ../outside/new",
        "cd ../outside && echo x > new",
        "cp inside $OUT/new",
        "cp /bin/true $OUT/new",
        "mv inside $OUT/new",
        "ln inside $OUT/new",
        "ln -s inside $OUT/new",
        "ln $OUT/kept stolen && echo x > stolen",
        "rm -f $OUT/kept",
        "mv $OUT/kept taken",
        "mkdir $OUT/new",
        "mkfifo $OUT/new",
        "truncate -s 0 $OUT/kept",
        "sed -i s/kept/x/ $OUT/kept",
        "touch $OUT/new",
        "dd if=inside of=$OUT/new",
        "sh -c 'sh -c \"echo x > $OUT/new\"'",
        "setsid sh -c 'echo x > $OUT/new'",
        "(setsid sh -c 'echo x > $OUT/new' &); sleep 0.2",
        "nohup sh -c 'echo x > $OUT/new' & wait",
        "env -i sh -c \"echo x > $OUT/new\"",
        "find . -name inside -exec cp {} $OUT/new ';'",
        "echo x | tee $OUT/new",
        "exec 7> $OUT/new",
        "echo x > /proc/self/cwd/../outside/new",
        "command -v python3 && python3 -c 'import os; open(os.environ[\"OUT\"] + \"/new\", \"w\")'",
        "command -v perl && perl -e 'open(F, \">\", \"$ENV{OUT}/new\"); print F 1'",
    ] {
        world.refused(command).await;
    }
    assert_eq!(
        fs::read_to_string(world.base.join("project/inside")).unwrap(),
        "inside"
    );
}

/// Proves SH-20.
#[tokio::test]
async fn command_writes_inside_and_reads_everywhere() {
    let world = World::new();
    fs::write(world.outside("readable"), "outside\n").unwrap();
    for command in [
        "echo x > new; mkdir -p a/b/c; echo y > a/b/c/new; mv a/b/c/new a/new; cat a/new new",
        "ln new hard; ln -s new soft; mkfifo pipe; rm -r a pipe hard soft; ls",
        "mkdir d1 d2; touch d1/f; mv d1/f d2/f; ls d2",
        "file=$TMPDIR/by-hand; echo x > $file; mv $file new",
        "mktemp; mktemp -d",
        "cat <<END\ntext\nEND",
        "cat $OUT/readable; head -c 1 /bin/sh; ls / /usr > /dev/null; cat /etc/passwd | wc -l",
        "echo x > /dev/null; echo x > /dev/stdout; echo x > /dev/stderr; echo x > /dev/fd/1",
        "head -c 4 /dev/urandom > four; head -c 4 /dev/zero >> four; wc -c < four",
        "echo x | tee >(cat > teed) > /dev/null; sleep 0.1; cat teed",
        "(flock 9; echo locked) 9> lock",
    ] {
        let output = world.run(command).await;
        let output = output.unwrap_or_else(|error| panic!("{}", format_for_llm(&error)));
        assert!(
            !output.summary.contains("exit code"),
            "{command}: {output:?}"
        );
    }
    assert_eq!(world.text("cat $OUT/readable").await, "outside");
}

/// Proves SH-20.
#[tokio::test]
async fn configured_directories_are_writable() {
    if !enforced() {
        return;
    }
    let config = |mode, base: &PathBuf| ShellConfig {
        allowed_paths: vec!["sub".into()],
        sandbox: SandboxConfig {
            mode,
            writable: vec![base.join("outside/cache"), base.join("outside/file")],
            ..SandboxConfig::default()
        },
        ..ShellConfig::default()
    };
    let world = World::built(|base| {
        fs::create_dir(base.join("project/sub")).unwrap();
        fs::write(base.join("outside/file"), "").unwrap();
        config(SandboxMode::Required, base)
    });
    // The directory does not exist when the session starts.
    fs::create_dir(world.outside("cache")).unwrap();
    world
        .text("echo x > sub/new; echo x > $OUT/cache/new; echo x > $OUT/file; echo x > $TMPDIR/new")
        .await;
    let reported = world.refused("echo x > here").await;
    assert!(reported.contains("policy_blocked"), "{reported}");
    assert!(!world.base.join("project/here").exists());
    world.refused("echo x > $OUT/new").await;

    let off = World::built(|base| config(SandboxMode::Off, base));
    off.text("echo x > $OUT/new").await;
    assert!(off.outside("new").exists());
}

/// Proves SH-20: if a command replaces a writable directory with a link, later commands cannot write to its
/// target.
#[tokio::test]
async fn link_that_replaced_a_writable_directory_is_not_followed() {
    if !enforced() {
        return;
    }
    let world = World::with(ShellConfig {
        allowed_paths: vec![".".into(), "sub".into()],
        ..ShellConfig::default()
    });
    fs::create_dir(world.base.join("project/sub")).unwrap();
    world
        .text("echo x > sub/new; rm -r sub; ln -s $OUT sub")
        .await;
    world.refused("echo x > sub/new").await;
    world.refused("echo x > $OUT/new").await;
}

/// Proves SH-20: a device node in the project would bypass the sandbox.
#[tokio::test]
async fn devices_cannot_be_created() {
    if !enforced() {
        return;
    }
    let world = World::new();
    world.run("mknod null c 1 3; mknod disk b 7 0").await.ok();
    for name in ["null", "disk"] {
        assert!(!world.base.join("project").join(name).exists(), "{name}");
    }
}

/// Proves SH-21.
#[tokio::test]
async fn refused_write_is_reported_to_the_model() {
    if !enforced() {
        return;
    }
    let world = World::new();
    for command in [
        "echo x > $OUT/new",
        "cp /bin/true $OUT/new",
        "touch $OUT/new",
        "cd $OUT/.. && mkdir $OUT/new",
        "command -v python3 >/dev/null || exec touch $OUT/new; \
         python3 -c 'import os; open(os.environ[\"OUT\"] + \"/new\", \"w\")'",
    ] {
        let error = world.run(command).await.unwrap_err();
        let reported = format_for_llm(&error);
        assert_eq!(
            error.category(),
            ToolErrorCategory::PolicyBlocked,
            "{reported}"
        );
        let named = world.outside("new").display().to_string();
        let inside = world.base.join("project").display().to_string();
        for word in [named.as_str(), &inside, "[tools.shell.sandbox] writable"] {
            assert!(error.to_string().contains(word), "{word}: {reported}");
        }
        assert!(
            reported.contains("ermission denied"),
            "the output follows: {reported}"
        );
    }
    // Failures that the sandbox did not cause.
    let error = world.run("cat missing; exit 3").await.unwrap_err();
    assert_eq!(error.category(), ToolErrorCategory::PermanentFailure);
    assert!(world.run("touch $OUT/new || true").await.is_ok());
    let failed = world.run("echo no > here; echo 3 failed; exit 101").await;
    assert!(failed.unwrap().summary.contains("[exit code: 101]"));
}

fn cut() -> ShellConfig {
    ShellConfig {
        allow_network: false,
        ..ShellConfig::default()
    }
}

/// Proves SH-14, SH-20, SH-21.
#[tokio::test]
async fn only_local_sockets_are_available_without_the_network() {
    if !enforced() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");

    let world = World::with(cut());
    let error = world.run(&connect).await.unwrap_err();
    assert_eq!(error.category(), ToolErrorCategory::PolicyBlocked);
    assert!(error.to_string().contains("allow_network"), "{error}");
    world
        .run(&format!("setsid bash -c '{connect}'"))
        .await
        .unwrap_err();
    let _ = world.run("exec 3<>/dev/udp/127.0.0.1/9").await.unwrap_err();
    assert!(listener.accept().is_err(), "something connected");

    let _local = UnixListener::bind(world.base.join("project/local")).unwrap();
    let python = "command -v python3 >/dev/null || { echo no python; exit 0; }; python3 - <<'END'
import ctypes, errno, socket
s = socket.socket(socket.AF_UNIX); s.connect('local'); print('local')
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, 40):
    try: socket.socket(family, socket.SOCK_DGRAM); print('open', family)
    except OSError as e: assert e.errno == errno.EACCES, (family, e)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall(425, 1, 0) == -1 and ctypes.get_errno() == errno.EACCES
END";
    let text = world.text(python).await;
    assert!(text == "local" || text == "no python", "{text}");

    // The same command connects if the network is allowed.
    let open = World::new();
    assert_eq!(open.text(&connect).await, "connected");
    assert!(listener.accept().is_ok());
}

/// Proves SH-20: the restrictions of a command affect neither the supervisor nor the next command.
#[tokio::test]
async fn many_commands_leave_no_threads_and_layers() {
    let world = World::with(cut());
    let supervisor = world.text("echo $PPID").await;
    let threads = || {
        fs::read_dir(format!("/proc/{supervisor}/task"))
            .unwrap()
            .count()
    };
    let before = threads();
    // Landlock allows 16 layers, so a thread that was restricted repeatedly could not start another command.
    for number in 0..60 {
        let text = world.text(&format!("echo {number} > n; cat n")).await;
        assert_eq!(text, number.to_string());
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    while threads() > before {
        assert!(Instant::now() < deadline, "{} threads", threads());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let status = fs::read_to_string(format!("/proc/{supervisor}/status")).unwrap();
    for free in ["NoNewPrivs:\t0", "Seccomp:\t0"] {
        assert!(
            status.contains(free)
                || !fs::read_to_string("/proc/self/status")
                    .unwrap()
                    .contains(free),
            "{status}"
        );
    }
}

/// Proves SH-3, SH-20: a confined command cannot access outside files through other processes.
#[tokio::test]
async fn other_processes_are_inaccessible() {
    if !enforced() {
        return;
    }
    let world = World::new();
    let supervisor = world.text("echo $PPID").await;
    for file in ["mem", "fd/0"] {
        let read = format!("head -c 1 /proc/{supervisor}/{file}");
        let error = world.run(&read).await.unwrap_err();
        let reported = format_for_llm(&error);
        assert!(reported.contains("ermission denied"), "{file}: {reported}");
    }
    // The error does not name the sandbox if a file was only read.
    let error = world.run("cat /proc/1/mem").await.unwrap_err();
    assert_ne!(error.category(), ToolErrorCategory::PolicyBlocked);
    let comm = world.text("cat /proc/$PPID/comm").await;
    assert_eq!(comm, "shell-supervise");
}

#[derive(Default)]
struct Notices(Mutex<Vec<String>>);

impl EventSink for Notices {
    fn emit(&self, event: ToolEvent) {
        if let ToolEvent::Notice { text, .. } = event {
            self.0.lock().unwrap().push(text);
        }
    }
}

/// Proves SH-20: a warning is printed if the system lacks a feature, and only then.
#[tokio::test]
async fn user_is_warned_once_if_the_system_lacks_a_feature() {
    let notices = Arc::new(Notices::default());
    let cx = CallContext::new(
        CancellationToken::new(),
        notices.clone(),
        UserDecision::Nobody,
    );
    let world = World::with(cut());
    for _ in 0..3 {
        world.run_in("true", &cx).await.unwrap();
    }
    let reported = notices.0.lock().unwrap();
    assert_eq!(reported.len(), usize::from(!enforced()), "{reported:?}");
}

/// A runner on a system without the sandbox.
struct Lacking {
    required: bool,
}

#[async_trait::async_trait]
impl CommandRunner for Lacking {
    async fn start(&self, _command: CommandSpec) -> Result<Box<dyn RunningCommand>, RunError> {
        if self.required {
            return Err(RunError::Unconfined("it lacks all".into()));
        }
        Ok(Box::new(Unconfined))
    }

    async fn start_for_user(
        &self,
        _command: CommandSpec,
        _side: Option<std::os::fd::OwnedFd>,
    ) -> Result<Box<dyn RunningCommand>, RunError> {
        Ok(Box::new(Unconfined))
    }

    async fn self_confined(&self, _command: CommandSpec) -> Result<Option<CommandSpec>, RunError> {
        Ok(None)
    }

    async fn enforces_deny_read(&self) -> bool {
        false
    }

    async fn shutdown(&self) {}
}

/// A command that ran without a sandbox.
struct Unconfined;

#[async_trait::async_trait]
impl RunningCommand for Unconfined {
    fn terminal_id(&self) -> Option<&str> {
        None
    }

    async fn started(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    async fn wait(
        &mut self,
        _cancel: &CancellationToken,
        _output: OutputFn<'_>,
    ) -> Result<CommandOutcome, RunError> {
        Ok(CommandOutcome {
            exit: Exit {
                code: 0,
                signal: None,
            },
            cause: EndReason::Finished,
            background: Vec::new(),
            lingering: false,
            unconfined: Some("it lacks all".into()),
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

/// Proves SH-20: on a system without the sandbox, the call runs with a warning or is refused.
#[tokio::test]
async fn system_without_the_sandbox_warns_or_refuses() {
    let run = async |required, times| {
        let notices = Arc::new(Notices::default());
        let cx = CallContext::new(
            CancellationToken::new(),
            notices.clone(),
            UserDecision::Nobody,
        );
        let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let runner = Arc::new(Lacking { required });
        let shell = ShellExecutor::with_runner(
            ShellConfig::default(),
            "/".into(),
            env,
            runner,
            Arc::default(),
        )
        .unwrap();
        let call = ToolCall::new("1", "bash", json!({ "command": "true" }), "c");
        let mut last = None;
        for _ in 0..times {
            last = Some(shell.execute_tool_call(&call, &cx).await);
        }
        let reported = notices.0.lock().unwrap().clone();
        (last.unwrap(), reported)
    };
    let (result, reported) = run(false, 3).await;
    assert!(result.is_ok());
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("it lacks all"), "{reported:?}");
    let (result, reported) = run(true, 1).await;
    let error = result.unwrap_err();
    assert_eq!(error.category(), ToolErrorCategory::PolicyBlocked);
    assert!(error.to_string().contains("it lacks all"), "{error}");
    assert!(reported.is_empty(), "{reported:?}");
}

/// Proves SH-20: the overhead. The limit is generous, because other tests run concurrently.
#[tokio::test]
async fn sandbox_overhead_is_small() {
    let median = async |world: &World| {
        world.text("true").await;
        let mut times = Vec::new();
        for _ in 0..41 {
            let begin = Instant::now();
            world.text("true").await;
            times.push(begin.elapsed());
        }
        times.sort();
        times[times.len() / 2]
    };
    let off = World::with(ShellConfig {
        sandbox: SandboxConfig {
            mode: SandboxMode::Off,
            ..SandboxConfig::default()
        },
        ..ShellConfig::default()
    });
    let (with, without) = (median(&World::with(cut())).await, median(&off).await);
    println!("with the sandbox {with:?}, without {without:?}");
    assert!(with < without + Duration::from_millis(20));
}
