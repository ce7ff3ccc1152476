//! The measured binary, with its own home directory and a minimal environment.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use xshell::TempDir;

use super::model::{Answer, Exchange, Model};

/// The time limit of a run.
const LIMIT: Duration = Duration::from_secs(120);
/// A kibibyte, the unit of `/proc`.
const KIB: u64 = 1024;
/// The unit of processor times in `/proc`.
const TICK: Duration = Duration::from_millis(10);

/// A home directory with a project and a configuration. Dropping it deletes the files.
pub(crate) struct Home {
    dir: TempDir,
}

/// A run, as observed by the server and the process table.
pub(crate) struct Run {
    /// The time just before the process was created.
    pub(super) started: Instant,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) first_body: Vec<u8>,
    pub(super) connections: usize,
    /// The memory at each held response.
    pub(super) memory: Vec<Memory>,
    /// The processor time of the process and its helpers, from start to exit; 0 on systems without `/proc`.
    pub(super) processor: Duration,
}

/// The resident memory of a process in bytes; all 0 on systems without `/proc`.
#[derive(Clone, Copy, Default)]
pub(super) struct Memory {
    /// The peak of the process.
    pub(super) peak: u64,
    /// The current value of the process.
    pub(super) now: u64,
    /// The sum of the peaks of running descendants.
    pub(super) helpers: u64,
}

impl Home {
    pub(crate) fn new() -> Result<Self> {
        let dir = xshell::Shell::new()?.create_temp_dir()?;
        std::fs::create_dir_all(dir.path().join(".config/zeph"))?;
        std::fs::create_dir(dir.path().join("project"))?;
        Ok(Self { dir })
    }

    /// The working directory of the binary.
    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// A program with this home and a minimal environment.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Writes the configuration that names this model.
    pub(super) fn configure(&self, model: &Model) -> Result<()> {
        let config = format!(
            "[agent]\nmax_tool_iterations = 300\ncontext_budget_tokens = 100000000\n\
             [[llm.providers]]\nname = \"bench\"\ntype = \"openai\"\nmodel = \"bench\"\ncontext_window = 128000\n\
             base_url = \"http://{}\"\n",
            model.address()
        );
        Ok(std::fs::write(
            self.dir.path().join(".config/zeph/config.toml"),
            config,
        )?)
    }

    /// `zeph -p hi` against a model that follows `script`. Every call of the script must succeed.
    pub(super) fn run(&self, binary: &Path, script: Vec<Answer>) -> Result<Run> {
        self.run_with(binary, script, &[])
    }

    /// Does the same with more environment variables.
    pub(crate) fn run_with(
        &self,
        binary: &Path,
        script: Vec<Answer>,
        env: &[(&str, &str)],
    ) -> Result<Run> {
        let calls = script.len() - 1;
        let model = Model::start(script)?;
        self.configure(&model)?;
        let (stdout, stderr) = (self.dir.path().join("out"), self.dir.path().join("err"));
        let mut command = self.command(binary);
        command
            .args(["--yes", "--output-format", "json", "-p", "hi"])
            .envs(env.iter().copied())
            .stdout(std::fs::File::create(&stdout)?)
            .stderr(std::fs::File::create(&stderr)?);
        let before = processor_of_children();
        let started = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let mut memory = Vec::new();
        let status = wait(&mut child, started, |limit, pid| {
            if model.next_held(limit).is_some() {
                memory.push(Memory::of(pid));
                model.release();
            }
        })?;
        let processor = processor_of_children().saturating_sub(before);
        let printed = std::fs::read_to_string(&stdout)?;
        let told = std::fs::read_to_string(&stderr)?;
        ensure!(status.success(), "zeph -p: {status}\n{printed}\n{told}");
        all_succeeded(&printed, calls).with_context(|| format!("zeph -p wrote {told:?}"))?;
        let observed = model.observed()?;
        Ok(Run {
            started,
            exchanges: observed.exchanges,
            first_body: observed.first_body,
            connections: observed.connections,
            memory,
            processor,
        })
    }
}

impl Run {
    /// The time from process start to the first byte of the first request.
    pub(super) fn to_first_request(&self) -> Duration {
        self.exchanges.first().map_or(Duration::ZERO, |first| {
            first.arrived.saturating_duration_since(self.started)
        })
    }

    /// The times from each response to the first byte of the next request.
    pub(crate) fn turns(&self) -> Vec<Duration> {
        turns(&self.exchanges)
    }
}

pub(super) fn turns(exchanges: &[Exchange]) -> Vec<Duration> {
    exchanges
        .windows(2)
        .map(|pair| pair[1].arrived.saturating_duration_since(pair[0].answered))
        .collect()
}

/// Waits for the process. `look` receives the remaining time and the process id. A process over the limit is
/// killed.
fn wait(
    child: &mut Child,
    started: Instant,
    mut look: impl FnMut(Duration, u32),
) -> Result<ExitStatus> {
    loop {
        look(Duration::from_millis(20), child.id());
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if started.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("zeph did not end within {LIMIT:?}");
        }
    }
}

/// Checks that all calls succeeded, because the time of failed calls is useless.
fn all_succeeded(printed: &str, expected: usize) -> Result<()> {
    let result: Value = serde_json::from_str(printed)
        .with_context(|| format!("the result of zeph -p: {printed}"))?;
    let calls = result["tool_calls"].as_array();
    let calls = calls.with_context(|| format!("no `tool_calls` in {printed}"))?;
    ensure!(
        calls.len() == expected,
        "{} calls ran, the script has {expected}",
        calls.len()
    );
    match calls.iter().find(|call| call["success"] != true) {
        Some(failed) => bail!("a call failed: {failed}"),
        None => Ok(()),
    }
}

impl Memory {
    pub(super) fn of(pid: u32) -> Self {
        let status = |pid: u32, field: &str| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            kibibytes(&text, field).unwrap_or(0) * KIB
        };
        let mut helpers = 0;
        let mut pending = children(pid);
        while let Some(child) = pending.pop() {
            helpers += status(child, "VmHWM");
            pending.extend(children(child));
        }
        Self {
            peak: status(pid, "VmHWM"),
            now: status(pid, "VmRSS"),
            helpers,
        }
    }
}

/// The processor time of all children that ended.
fn processor_of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    ended_children(&stat).unwrap_or_default()
}

/// `cutime` and `cstime` of `/proc/self/stat`. The name of the program precedes them, which can contain blanks.
fn ended_children(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(13).take(2);
    let ticks: u32 = times.map(|ticks| ticks.parse().unwrap_or(0)).sum();
    Some(TICK * ticks)
}

fn kibibytes(status: &str, field: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|ids| {
            let ids: Vec<u32> = ids
                .split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect();
            ids
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_or_missing_call_is_an_error() {
        let check = |printed: &str, expected: usize, expect: Option<&str>| {
            let found = all_succeeded(printed, expected)
                .err()
                .map(|error| format!("{error:#}"));
            match (found, expect) {
                (None, None) => {}
                (Some(found), Some(part)) => assert!(found.contains(part), "{found}"),
                (found, expect) => panic!("{printed}: {found:?}, not {expect:?}"),
            }
        };
        check(r#"{"tool_calls":[{"success":true}]}"#, 1, None);
        check(r#"{"tool_calls":[]}"#, 1, Some("0 calls ran"));
        check(
            r#"{"tool_calls":[{"success":false}]}"#,
            1,
            Some("a call failed"),
        );
        check("{}", 0, Some("no `tool_calls`"));
        check("", 0, Some("the result of"));
    }

    #[test]
    fn processor_time_of_children_is_parsed() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4 0 0 0 0 500 600 12 3 20 0 1 0 99";
        assert_eq!(ended_children(stat), Some(Duration::from_millis(150)));
        assert_eq!(ended_children(""), None);
    }

    #[test]
    fn status_fields_are_parsed() {
        let status = "Name:\tx\nVmHWM:\t   12 kB\nVmRSS:\t 7 kB\n";
        assert_eq!(kibibytes(status, "VmHWM"), Some(12));
        assert_eq!(kibibytes(status, "VmRSS"), Some(7));
        assert_eq!(kibibytes(status, "Vm"), None);
        assert_eq!(kibibytes("", "VmRSS"), None);
    }
}
