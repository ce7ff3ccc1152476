//! The processes under load: each place is a machine with its own home directory, and works on one session after the other.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use xshell::TempDir;

use super::model::{self, Model};

/// Between two kills.
const EACH: Duration = Duration::from_secs(1);
/// Between two looks at a process.
const LOOK: Duration = Duration::from_millis(2);
/// The time limit of a process.
const LIMIT: Duration = Duration::from_secs(120);
/// The attempts of a session.
const MAX_ATTEMPTS: u32 = 50;

/// The event that disturbs the processes.
pub(super) enum Disturbance<'d> {
    /// None.
    None,
    /// Kills a random process each second. The sessions are as many as the kills take.
    KillProcesses {
        /// The number of kills.
        rounds: u32,
        /// The seed of the choice.
        seed: u64,
    },
    /// Does `action` after so many sessions.
    Once {
        /// The number of complete sessions.
        after: u32,
        /// The action.
        action: Box<dyn FnOnce() -> Result<()> + 'd>,
    },
}

/// The results of a run.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Complete sessions.
    pub(super) sessions: u32,
    /// Killed processes.
    pub(super) killed: u32,
    /// Sessions that another place continued.
    pub(super) taken_over: u32,
    /// Processes that failed without a kill.
    pub(super) failed: u32,
    /// The output of the last failed process.
    pub(super) last_error: String,
}

impl Run {
    /// The text about failed processes; `None` if there are none.
    pub(super) fn failure(&self) -> Option<String> {
        (self.failed > 0).then(|| format!("{} processes failed: {}", self.failed, self.last_error))
    }
}

/// A session that a process works on, or will.
struct Job {
    number: u32,
    attempts: u32,
    /// The place of the last attempt.
    last: Option<usize>,
}

/// A running process.
struct Running {
    child: Child,
    is_killed: bool,
}

/// The state that all places share.
#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    running: Vec<Option<Running>>,
    next: u32,
    /// Whether `next` is the last session.
    is_last: bool,
    run: Run,
    error: Option<String>,
}

/// Places with their directories.
pub(super) struct Pool<'p> {
    binary: &'p Path,
    url: &'p str,
    dir: TempDir,
    places: usize,
}

impl<'p> Pool<'p> {
    /// Creates `places` homes whose model is `model` and whose store is at `url`.
    pub(super) fn new(
        binary: &'p Path,
        url: &'p str,
        model: &Model,
        places: usize,
    ) -> Result<Self> {
        let dir = xshell::Shell::new()?.create_temp_dir()?;
        let config = format!(
            "[agent]\nmax_tool_iterations = 300\ncontext_budget_tokens = 100000000\n\
             [[llm.providers]]\nname = \"load\"\ntype = \"openai\"\nmodel = \"load\"\ncontext_window = 128000\n\
             base_url = \"http://{}\"\n",
            model.address()
        );
        for place in 0..places {
            let folder = dir.path().join(format!("home-{place}/.config/zeph"));
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join("config.toml"), &config)?;
        }
        Ok(Self {
            binary,
            url,
            dir,
            places,
        })
    }

    /// The directory of a session. All places know it by the same path.
    pub(super) fn project(&self, number: u32) -> PathBuf {
        self.dir.path().join(format!("project-{number}"))
    }

    /// The binary at a place.
    pub(super) fn command(&self, place: usize) -> Command {
        let mut command = Command::new(self.binary);
        command
            .current_dir(self.dir.path())
            .env_clear()
            .env("HOME", self.dir.path().join(format!("home-{place}")))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("ZEPH_MEMORY_URL", self.url)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Completes `sessions` sessions, or as many as the disturbance takes.
    pub(super) fn run(&self, sessions: u32, disturbance: Disturbance<'_>) -> Result<Run> {
        let state = Mutex::new(State {
            running: (0..self.places).map(|_| None).collect(),
            ..State::default()
        });
        let is_open = matches!(disturbance, Disturbance::KillProcesses { .. });
        let limit = match is_open {
            true => u32::MAX,
            false => sessions,
        };
        std::thread::scope(|scope| {
            for place in 0..self.places {
                let state = &state;
                scope.spawn(move || {
                    if let Err(error) = self.work(place, limit, state) {
                        lock(state).error.get_or_insert(format!("{error:#}"));
                    }
                });
            }
            if let Err(error) = disturb(&state, disturbance) {
                lock(&state).error.get_or_insert(format!("{error:#}"));
            }
        });
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.error {
            Some(error) => bail!("{error}"),
            None => Ok(state.run),
        }
    }

    /// Works on sessions until all are complete.
    fn work(&self, place: usize, limit: u32, state: &Mutex<State>) -> Result<()> {
        loop {
            let mut shared = lock(state);
            if shared.error.is_some() {
                return Ok(());
            }
            let Some(job) = shared.take(place, limit) else {
                if shared.is_over(limit) {
                    return Ok(());
                }
                drop(shared);
                std::thread::sleep(LOOK);
                continue;
            };
            drop(shared);
            self.attempt(place, job, state)?;
        }
    }

    /// Runs one process on a session.
    fn attempt(&self, place: usize, mut job: Job, state: &Mutex<State>) -> Result<()> {
        let project = self.project(job.number);
        let mut command = self.command(place);
        command.args(["--yes", "-q", "-p", "work"]);
        if job.attempts == 0 {
            std::fs::create_dir(&project)?;
            std::fs::write(project.join(model::FILE), model::text())?;
        } else {
            command.arg("--continue");
        }
        let errors = self.dir.path().join(format!("stderr-{place}"));
        command
            .current_dir(&project)
            .stderr(std::fs::File::create(&errors)?);
        let child = command.spawn().context("the binary does not start")?;
        let start = Instant::now();
        lock(state).running[place] = Some(Running {
            child,
            is_killed: false,
        });
        let (status, is_killed) = loop {
            std::thread::sleep(LOOK);
            let mut shared = lock(state);
            let running = shared.running[place].as_mut().context("no process")?;
            if let Some(status) = running.child.try_wait()? {
                let is_killed = running.is_killed;
                shared.running[place] = None;
                break (status, is_killed);
            }
            if start.elapsed() > LIMIT {
                running.child.kill()?;
                bail!("a process did not end within {LIMIT:?}");
            }
        };
        let mut shared = lock(state);
        if status.success() {
            shared.run.sessions += 1;
            return Ok(());
        }
        job.attempts += 1;
        ensure!(
            job.attempts < MAX_ATTEMPTS,
            "session {} does not complete",
            job.number
        );
        job.last = Some(place);
        if !is_killed {
            shared.run.failed += 1;
            shared.run.last_error = std::fs::read_to_string(errors)?;
        }
        shared.waiting.push_back(job);
        Ok(())
    }
}

impl State {
    /// The next session for a place: one that another place left, or a new one.
    fn take(&mut self, place: usize, limit: u32) -> Option<Job> {
        let is_single = self.running.len() == 1;
        let left = self
            .waiting
            .iter()
            .position(|job| is_single || job.last != Some(place));
        if let Some(job) = left.and_then(|at| self.waiting.remove(at)) {
            self.run.taken_over += u32::from(job.last != Some(place));
            return Some(job);
        }
        if self.is_last || self.next >= limit {
            return None;
        }
        self.next += 1;
        Some(Job {
            number: self.next,
            attempts: 0,
            last: None,
        })
    }

    fn is_over(&self, limit: u32) -> bool {
        (self.is_last || self.next >= limit)
            && self.waiting.is_empty()
            && self.run.sessions == self.next
    }
}

/// Disturbs the processes, and returns when that is over.
fn disturb(state: &Mutex<State>, disturbance: Disturbance<'_>) -> Result<()> {
    match disturbance {
        Disturbance::None => Ok(()),
        Disturbance::KillProcesses { rounds, seed } => {
            let killed = kill_processes(state, rounds, seed);
            lock(state).is_last = true;
            killed
        }
        Disturbance::Once { after, action } => {
            loop {
                let shared = lock(state);
                if shared.error.is_some() {
                    return Ok(());
                }
                if shared.run.sessions >= after {
                    break;
                }
                drop(shared);
                std::thread::sleep(LOOK);
            }
            action()
        }
    }
}

fn kill_processes(state: &Mutex<State>, rounds: u32, seed: u64) -> Result<()> {
    let mut random = seed | 1;
    let mut due = Instant::now();
    while lock(state).run.killed < rounds {
        due += EACH;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut shared = lock(state);
        if shared.error.is_some() {
            return Ok(());
        }
        let first = usize::try_from(random % 1024)?;
        let places = shared.running.len();
        let mut victims = (0..places).map(|at| (first + at) % places);
        let victim = victims.find(|&at| shared.running[at].is_some());
        let Some(running) = victim.and_then(|at| shared.running[at].as_mut()) else {
            continue;
        };
        // A process that has just ended is not killed.
        if running.child.try_wait()?.is_none() {
            running.child.kill()?;
            running.is_killed = true;
            shared.run.killed += 1;
        }
    }
    Ok(())
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
