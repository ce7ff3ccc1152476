//! Finding and ending the processes of a call, on Linux.
//!
//! The supervisor is a subreaper: every process below it has it as an ancestor for as long as it
//! lives. Which call an adopted process belongs to is told by its process group, its session, or
//! the tag in its environment.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, set_parent_process_death_signal, waitid, waitpid,
};

use super::CALL_TAG;
use super::stat::{self, Process};
use crate::shell::runner::BackgroundProcess;

/// How long killed processes may take to vanish.
const DEATH: Duration = Duration::from_secs(1);
/// How long what a shell leaves behind may take to end by itself before it counts as running: the
/// end of a pipeline, a logger, a process that is just being started.
const SETTLE: Duration = Duration::from_millis(20);
/// How long one process is waited for before what is left is looked for again.
const LONG: Duration = Duration::from_secs(60);
/// Between two such looks.
const PAUSE: Duration = Duration::from_millis(50);

/// What a call's processes are known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The call.
    pub(super) id: u64,
    /// Its first process, and the group and session that it leads.
    pub(super) leader: i32,
    /// When that started ([`started`]).
    pub(super) start: u64,
    /// Whether no other call runs, or began later and left something behind: then what has no mark
    /// at all and is younger is its.
    pub(super) alone: bool,
}

/// Makes this process the parent of whatever its descendants orphan. One of them may have stopped
/// it: it goes on when the agent dies.
pub(super) fn adopt_orphans() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::CONT))?;
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// When a process started, on the clock of [`Mark::start`].
pub(super) fn started(pid: i32) -> u64 {
    stat::read(pid).map_or(u64::MAX, |process| process.start)
}

/// The value of [`CALL_TAG`] for a call.
pub(super) fn tag(id: u64) -> String {
    format!("{}.{id}", own())
}

/// What of an ended call still runs. `leaders` are the first processes of running calls.
pub(super) fn survivors(mark: &Mark, leaders: &[i32]) -> Vec<BackgroundProcess> {
    // Usually there is nothing but running leaders, or what earlier calls left behind; reading
    // the whole of `/proc` would then cost more than all the rest of a call.
    let own_tag = tag(mark.id);
    let left_behind = stat::own_children()
        .iter()
        .filter(|child| !leaders.contains(child))
        .filter_map(|child| stat::read(*child))
        .any(|process| !process.dead && belongs(mark, &own_tag, &process));
    if !left_behind {
        return Vec::new();
    }
    let deadline = Instant::now() + SETTLE;
    loop {
        let alive = of_call(mark, &HashSet::new());
        let left = deadline.saturating_duration_since(Instant::now());
        if alive.is_empty() || left.is_zero() {
            return alive
                .into_iter()
                .map(|process| BackgroundProcess {
                    pid: process.pid,
                    name: process.name,
                })
                .collect();
        }
        wait_for_one(&alive, left);
    }
}

/// Blocks until nothing of an ended call runs any more.
pub(super) fn wait_until_gone(mark: &Mark) {
    let mut known = HashSet::new();
    loop {
        let alive = of_call(mark, &known);
        let Some(oldest) = alive.first() else { return };
        // What restarts its children is the oldest: all of `/proc` is not read for each of them.
        wait_for_one(std::slice::from_ref(oldest), LONG);
        pause(PAUSE);
        known = alive.iter().map(Process::key).collect();
    }
}

/// Ends a call's processes: SIGTERM, and SIGKILL for what is left after `grace`. Says whether all
/// are gone.
pub(super) fn end_call(mark: &Mark, grace: Duration) -> bool {
    end(grace, |known| of_call(mark, known))
}

/// Ends every descendant likewise.
pub(super) fn end_all(_marks: &[Mark], grace: Duration) -> bool {
    end(grace, |known| {
        stat::members(&stat::all(), own(), known, |_| true)
    })
}

/// Kills what a dead supervisor left behind.
pub(super) fn sweep(supervisor: u32) {
    let prefix = format!("{supervisor}.");
    end(Duration::ZERO, |known| {
        let all = stat::all();
        let tagged: HashSet<_> = all
            .iter()
            .filter(|process| {
                stat::variable(process.pid, CALL_TAG).is_some_and(|tag| tag.starts_with(&prefix))
            })
            .map(Process::key)
            .chain(known.iter().copied())
            .collect();
        stat::members(&all, 0, &tagged, |_| false)
    });
}

/// Blocks until a child has exited, and reaps those that `is_leader` does not claim: threads wait
/// for leaders. Says whether there is any child at all.
pub(super) fn reap(is_leader: impl Fn(i32) -> bool) -> bool {
    let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    match waitid(WaitId::All, exited) {
        Err(rustix::io::Errno::CHILD) => false,
        _ => {
            for child in stat::own_children() {
                if !is_leader(child)
                    && let Some(pid) = Pid::from_raw(child)
                {
                    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
                }
            }
            true
        }
    }
}

fn own() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// The living processes of a call.
fn of_call(mark: &Mark, known: &HashSet<(i32, u64)>) -> Vec<Process> {
    let tag = tag(mark.id);
    let mut found = stat::members(&stat::all(), own(), known, |process| {
        belongs(mark, &tag, process)
    });
    // Parents come before their children: what restarts its children is stopped first.
    found.sort_unstable_by_key(|process| process.start);
    found
}

/// Whether a child of the supervisor belongs to a call.
fn belongs(mark: &Mark, tag: &str, process: &Process) -> bool {
    if process.start < mark.start {
        return false;
    }
    if process.group == mark.leader || process.session == mark.leader {
        return true;
    }
    match stat::variable(process.pid, CALL_TAG) {
        Some(other) => other == tag,
        None => mark.alone,
    }
}

/// SIGTERM to what `alive` finds, SIGKILL after `grace`, until it finds nothing or gives up.
/// `alive` is given the processes found so far, whose descendants count for as long as they live.
fn end(grace: Duration, alive: impl Fn(&HashSet<(i32, u64)>) -> Vec<Process>) -> bool {
    let start = Instant::now();
    let mut known = HashSet::new();
    loop {
        let found = alive(&known);
        if found.is_empty() {
            return true;
        }
        let waited = start.elapsed();
        if waited >= grace + DEATH {
            return false;
        }
        for process in &found {
            if waited >= grace {
                signal(process, Signal::KILL);
            } else if !known.contains(&process.key()) {
                signal(process, Signal::TERM);
                // A stopped process takes no other signal before it goes on.
                signal(process, Signal::CONT);
            }
        }
        known.extend(found.iter().map(Process::key));
        let until = if waited >= grace {
            Duration::from_millis(20)
        } else {
            (grace - waited).min(Duration::from_millis(100))
        };
        wait_for_one(&found, until);
    }
}

/// Sends a signal to this very process, never to another that took its pid.
fn signal(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return;
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => {
            if stat::read(process.pid).is_some_and(|now| now.key() == process.key()) {
                let _ = pidfd_send_signal(fd, signal);
            }
        }
        Err(rustix::io::Errno::SRCH) => {}
        // A kernel before 5.3.
        Err(_) => {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Blocks until one of `processes` has exited, at most for `limit`.
fn wait_for_one(processes: &[Process], limit: Duration) {
    let fds: Vec<OwnedFd> = processes
        .iter()
        .take(64)
        .filter_map(|process| pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok())
        .collect();
    // One that is gone already is what is waited for.
    let limit = if fds.len() < processes.len().min(64) {
        Duration::from_millis(1)
    } else {
        limit
    };
    let mut polled: Vec<_> = fds
        .iter()
        .map(|fd| PollFd::new(fd, PollFlags::IN))
        .collect();
    let _ = poll(&mut polled, Some(&timespec(limit)));
}

/// Blocks for `length`.
fn pause(length: Duration) {
    let _ = poll(&mut [], Some(&timespec(length)));
}

fn timespec(length: Duration) -> Timespec {
    Timespec {
        tv_sec: length.as_secs().try_into().unwrap_or(0),
        tv_nsec: length.subsec_nanos().into(),
    }
}
