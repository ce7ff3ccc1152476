//! Child processes that use the store: this test binary with a task.

use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use zeph_memory::{Store, Synchronous};

use crate::message;

/// A running child. It is killed when dropped.
pub(crate) struct Other {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// Starts `task` on the database at `path`, as an unprivileged user if `uid` is given.
    pub(crate) fn start(program: &Path, uid: Option<u32>, task: &str, path: &Path) -> Self {
        #[allow(
            clippy::disallowed_methods,
            reason = "the test needs a process to kill"
        )]
        let mut command = Command::new(program);
        command
            .args(["child::child", "--exact", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .current_dir("/");
        if let Some(uid) = uid {
            command.uid(uid);
        }
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{task} {}", path.display()).unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            input,
            output,
        }
    }

    pub(crate) fn run(task: &str, path: &Path) -> Self {
        Self::start(&std::env::current_exe().unwrap(), None, task, path)
    }

    /// The next message of the child without the marker; `None` at the end.
    pub(crate) fn hear(&mut self) -> Option<String> {
        // The test harness may have printed text before the message on the same line.
        self.output
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("child> ").map(|(_, said)| said.to_owned()))
    }

    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[allow(clippy::print_stdout, reason = "it is how the processes talk")]
fn say(what: impl std::fmt::Display) {
    println!("child> {what}");
    std::io::stdout().flush().unwrap();
}

#[test]
#[ignore = "no test: the other process of the tests in this binary"]
fn child() {
    let mut input = std::io::stdin().lines().map_while(Result::ok);
    let Some(line) = input.next() else { return };
    let (task, path) = line.split_once(' ').unwrap();
    let path = Path::new(path);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        match task {
            // Appends this number of messages, or until it is killed.
            "append" | "append-200" => {
                let store = crate::open(path).await;
                let most = if task == "append" { u64::MAX } else { 200 };
                for n in 0..most {
                    let content = format!("{n} {}", "x".repeat(3000));
                    let seq = store.append_message("s", message("user", &content)).await;
                    say(seq.unwrap());
                }
            }
            "lock" => {
                let store = crate::open(path).await;
                let lock = store.lock_session("s").await.unwrap();
                say("locked");
                input.next();
                lock.release().await;
                say("released");
            }
            "open" => match Store::open(path, Synchronous::Normal).await {
                Ok(_) => say("opened"),
                Err(error) => say(error),
            },
            _ => panic!("unknown task {task}"),
        }
    });
}
