//! Search and end of a call's processes on Linux.
//!
//! The supervisor is a subreaper, so it is an ancestor of every process below it. The process group, the session, or
//! the tag in its environment assigns an adopted process to a call.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, set_parent_process_death_signal, waitid, waitpid,
};

use super::CALL_TAG;
use super::stat::{self, Process};
use crate::runner::BackgroundProcess;

/// The time that killed processes may take to disappear.
const DEATH: Duration = Duration::from_secs(1);
/// The time for processes that a shell leaves behind to end on their own before they count as running: the end of a
/// pipeline, a logger, a process that is being started.
const SETTLE: Duration = Duration::from_millis(20);
/// The time to wait for one process before the remaining ones are searched again.
const LONG: Duration = Duration::from_secs(60);
/// The time between two such searches.
const PAUSE: Duration = Duration::from_millis(50);

/// The identification of a call's processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The id of the call.
    pub(super) id: u64,
    /// The first process, and the process group and session that it leads.
    pub(super) leader: i32,
    /// The start time of the first process ([`started`]).
    pub(super) start: u64,
    /// Whether no other call runs, and no later call left processes behind. Then all younger processes without a mark
    /// belong to this call.
    pub(super) alone: bool,
}

/// Makes this process the parent of the orphans of its descendants. It also resumes when the agent dies, because a
/// descendant may have stopped it.
pub(super) fn adopt_orphans() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::CONT))?;
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// The start time of a process, on the clock of [`Mark::start`].
pub(super) fn started(pid: i32) -> u64 {
    stat::read(pid).map_or(u64::MAX, |process| process.start)
}

/// The value of [`CALL_TAG`] for a call.
pub(super) fn tag(id: u64) -> String {
    format!("{}.{id}", own())
}

/// The running processes of an ended call. `leaders` are the first processes of running calls.
pub(super) fn survivors(mark: &Mark, leaders: &[i32]) -> Vec<BackgroundProcess> {
    // Usually there are only running leaders, or processes of earlier calls. Reading all of `/proc` would then cost
    // more than the rest of a call.
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

/// Blocks until no process of an ended call runs.
pub(super) fn wait_until_gone(mark: &Mark) {
    let mut known = HashSet::new();
    loop {
        let alive = of_call(mark, &known);
        let Some(oldest) = alive.first() else { return };
        // A process that restarts its children is the oldest. So `/proc` is not read for each child.
        wait_for_one(std::slice::from_ref(oldest), LONG);
        pause(PAUSE);
        known = alive.iter().map(Process::key).collect();
    }
}

/// Ends the processes of a call: SIGTERM, and SIGKILL for the rest after `grace`. Returns whether all are gone.
pub(super) fn end_call(mark: &Mark, grace: Duration) -> bool {
    end(grace, |known| of_call(mark, known))
}

/// Ends every descendant in the same way.
pub(super) fn end_all(_marks: &[Mark], grace: Duration) -> bool {
    end(grace, |known| {
        stat::members(&stat::all(), own(), known, |_| true)
    })
}

/// Kills the processes that a dead supervisor left behind.
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

/// Blocks until a child has exited, and reaps the children that are not leaders: threads wait for leaders. Returns
/// whether there is any child.
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

/// The living processes of a call, oldest first.
fn of_call(mark: &Mark, known: &HashSet<(i32, u64)>) -> Vec<Process> {
    let tag = tag(mark.id);
    let mut found = stat::members(&stat::all(), own(), known, |process| {
        belongs(mark, &tag, process)
    });
    // Parents come before their children, so a process that restarts its children is stopped first.
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

/// The name of the file that marks the processes with `tag`.
fn mark_name(tag: &str) -> String {
    format!("zeph-call-{tag}")
}

/// Marks this process and its later children with `tag`, also those without an environment: they inherit an open file.
pub(crate) fn mark(tag: &str) -> io::Result<OwnedFd> {
    Ok(memfd_create(mark_name(tag), MemfdFlags::empty())?)
}

/// Ends the processes of this system that have `tag` in their environment or as their mark, and returns whether none is
/// left. Their parent may be any process.
pub(crate) fn end_tagged(tag: &str, grace: Duration) -> bool {
    let (own, name) = (own(), mark_name(tag));
    end(grace, |_| {
        let mut found = stat::all();
        found.retain(|process| {
            let is_other = !process.dead && process.pid != own;
            let has_tag = || stat::variable(process.pid, CALL_TAG).as_deref() == Some(tag);
            is_other && (has_tag() || stat::has_memory_file(process.pid, &name))
        });
        found.sort_unstable_by_key(|process| process.start);
        found
    })
}

/// Sends SIGTERM to the processes that `alive` finds, and SIGKILL after `grace`, until none is found or the time is
/// over. `alive` gets the processes found so far. Their descendants count as long as they live.
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
                // A stopped process handles other signals only after it resumes.
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

/// Sends a signal to this process, never to another one that has its pid now.
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
        // The kernel is older than 5.3.
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
    // If a process is already gone, the wait is over.
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
