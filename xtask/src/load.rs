//! `cargo xtask load`: a store on a PostgreSQL server under load.
//!
//! Several processes work on sessions at the same time, first undisturbed, then while one of them is killed each second, and
//! while the server is killed. Afterwards the store must be complete. A model on loopback chooses each response by the
//! conversation alone, so that any process can continue any session.

mod check;
mod model;
mod workers;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::bench::model::Answer;
use crate::bench::report::{self, Figure, Unit, median};
use crate::bench::subject::Home;
use crate::flags::Load;
use crate::postgres::{Server, programs};
use crate::project::{Project, verdict};
use model::Model;
use workers::{Disturbance, Pool};

/// The calls of a session.
const CALLS: usize = 20;
/// The default number of sessions for each number of processes.
const SESSIONS: u32 = 200;
/// The default number of killed processes.
const ROUNDS: u32 = 200;
/// The numbers of processes.
const PROCESSES: [usize; 4] = [1, 2, 4, 8];
/// The time that the model takes for a response while processes are killed, so that a kill hits a session.
const PACE: Duration = Duration::from_millis(100);
/// The number of pairs of runs that compare the two back ends.
const PAIRS: usize = 5;
/// The target: milliseconds of a turn over one with SQLite.
const MAX_EXTRA_MS: f64 = 5.0;

pub(crate) fn run(project: &Project, flags: &Load) -> Result<()> {
    let binary = binary(project, flags)?;
    let programs = programs(project)?;
    let sessions = flags.sessions.unwrap_or(SESSIONS);
    let seed = flags.seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}");
    let mut figures = Vec::new();
    let mut findings = Vec::new();

    if !flags.kills {
        times(&binary, &programs, sessions, &mut figures, &mut findings)?;
    }
    killed_processes(&binary, &programs, flags, seed, &mut figures, &mut findings)?;
    killed_server(&binary, &programs, sessions, &mut figures, &mut findings)?;
    println!("{}", report::table(&figures));
    findings.extend(figures.iter().filter_map(Figure::finding));
    verdict("load", &findings)
}

/// Measures turns, and the throughput of several processes.
fn times(
    binary: &Path,
    programs: &Path,
    sessions: u32,
    figures: &mut Vec<Figure>,
    findings: &mut Vec<String>,
) -> Result<()> {
    let store = SharedStore::start(programs)?;
    turns(binary, &store, figures)?;
    for processes in PROCESSES {
        let store = SharedStore::start(programs)?;
        let model = Model::start(CALLS, Duration::ZERO)?;
        let pool = Pool::new(binary, &store.url, &model, processes)?;
        let start = Instant::now();
        let run = pool.run(sessions, Disturbance::None)?;
        let seconds = start.elapsed().as_secs_f64();
        if let Some(failure) = run.failure() {
            bail!(failure);
        }
        findings.extend(check::findings(&store, &pool, &run)?);
        let calls = f64::from(run.sessions) * CALLS as f64;
        figures.push(
            Figure::new(
                format!("{processes} processes, calls per second"),
                Unit::Count,
                calls / seconds,
            )
            .beside("sessions", f64::from(run.sessions))
            .beside("seconds", seconds),
        );
    }
    Ok(())
}

/// Kills a process each second. Another one takes over its session.
fn killed_processes(
    binary: &Path,
    programs: &Path,
    flags: &Load,
    seed: u64,
    figures: &mut Vec<Figure>,
    findings: &mut Vec<String>,
) -> Result<()> {
    let rounds = flags.rounds.unwrap_or(ROUNDS);
    let store = SharedStore::start(programs)?;
    let model = Model::start(CALLS, PACE)?;
    let pool = Pool::new(binary, &store.url, &model, 8)?;
    let run = pool.run(0, Disturbance::KillProcesses { rounds, seed })?;
    findings.extend(check::findings(&store, &pool, &run)?);
    findings.extend(run.failure());
    figures.push(
        Figure::new(
            "processes killed with SIGKILL",
            Unit::Count,
            f64::from(run.killed),
        )
        .beside("sessions", f64::from(run.sessions))
        .beside("continued by another process", f64::from(run.taken_over)),
    );
    Ok(())
}

/// Kills the server once, after a third of the sessions, and starts it again.
fn killed_server(
    binary: &Path,
    programs: &Path,
    sessions: u32,
    figures: &mut Vec<Figure>,
    findings: &mut Vec<String>,
) -> Result<()> {
    let mut store = SharedStore::start(programs)?;
    let model = Model::start(CALLS, Duration::ZERO)?;
    let pool = Pool::new(binary, &store.url, &model, 8)?;
    let server = &mut store.server;
    let run = pool.run(
        sessions,
        Disturbance::Once {
            after: sessions / 3,
            action: Box::new(move || server.crash_and_restart()),
        },
    )?;
    findings.extend(check::findings(&store, &pool, &run)?);
    figures.push(
        Figure::new(
            "sessions with one kill of the server",
            Unit::Count,
            f64::from(run.sessions),
        )
        .beside(
            "turns that ended with an error and were continued",
            f64::from(run.failed),
        ),
    );
    Ok(())
}

/// A server with a database of an ordinary role.
pub(crate) struct SharedStore {
    pub(crate) server: Server,
    /// The value of `[memory] url`.
    pub(crate) url: String,
}

impl SharedStore {
    fn start(programs: &Path) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let port_setting = format!("port={port}");
        let settings = ["listen_addresses=127.0.0.1", &port_setting];
        let server = Server::start(programs, &settings)?;
        server.query("postgres", "CREATE ROLE zeph LOGIN")?;
        server.query("postgres", "CREATE DATABASE zeph OWNER zeph")?;
        Ok(Self {
            server,
            url: format!("postgres://zeph@127.0.0.1:{port}/zeph"),
        })
    }
}

/// Measures turns of one session with both back ends, in pairs.
fn turns(binary: &Path, store: &SharedStore, figures: &mut Vec<Figure>) -> Result<()> {
    type Script = fn(usize) -> Answer;
    let kinds: [(&str, Script); 2] = [("read", model::read), ("bash", model::command)];
    for (name, call) in kinds {
        let script = || {
            let calls = (0..100).map(call);
            calls.chain([Answer::text("done")]).collect::<Vec<_>>()
        };
        let (local, shared) = (Home::new()?, Home::new()?);
        let (mut file, mut server) = (Vec::new(), Vec::new());
        for home in [&local, &shared] {
            std::fs::write(home.project().join(model::FILE), model::text())?;
        }
        for _ in 0..PAIRS {
            file.extend(local.run_with(binary, script(), &[])?.turns());
            let url = [("ZEPH_MEMORY_URL", store.url.as_str())];
            server.extend(shared.run_with(binary, script(), &url)?.turns());
        }
        let (file, server) = (median(&file), median(&server));
        figures.push(
            Figure::new(
                format!("{name} turn over one with SQLite"),
                Unit::Ms,
                server - file,
            )
            .at_most(MAX_EXTRA_MS)
            .beside("SQLite", file)
            .beside("PostgreSQL", server),
        );
    }
    Ok(())
}

/// The measured binary, which is built if it was not named.
fn binary(project: &Project, flags: &Load) -> Result<PathBuf> {
    if let Some(binary) = &flags.binary {
        return std::path::absolute(binary).context("--binary");
    }
    project
        .cargo("build --release -p zeph --bin zeph --features postgres")
        .run()?;
    project.release_binary()
}
