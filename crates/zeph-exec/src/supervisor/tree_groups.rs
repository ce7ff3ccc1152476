//! Search and end of a call's processes on systems without `/proc` and subreapers: by process group.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::runner::BackgroundProcess;

/// The time that killed processes may take to disappear.
const DEATH: Duration = Duration::from_secs(1);
/// The time for processes that a shell leaves behind to end on their own before they count as running.
const SETTLE: Duration = Duration::from_millis(20);
/// The time between two checks of running processes.
const PAUSE: Duration = Duration::from_millis(200);

/// The identification of a call's processes. Here it is only their group.
#[allow(dead_code, reason = "the twin for Linux uses all fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The id of the call.
    pub(super) id: u64,
    /// The first process, and the process group that it leads.
    pub(super) leader: i32,
    /// Unused on these systems.
    pub(super) start: u64,
    /// Unused on these systems.
    pub(super) alone: bool,
}

/// Does nothing: the init process of the system adopts orphans.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// The start time of a process, which is unknown here.
pub(super) fn started(_pid: i32) -> u64 {
    0
}

/// The value of the tag for a call.
pub(super) fn tag(id: u64) -> String {
    format!("{}.{id}", std::process::id())
}

/// Does nothing: processes are not found by their files here.
pub(crate) fn mark(_tag: &str) -> io::Result<()> {
    Ok(())
}

/// Does nothing: processes are not found by their environment here.
pub(crate) fn end_tagged(_tag: &str, _grace: Duration) -> bool {
    true
}

/// The process group of the call, if it still has members.
pub(super) fn survivors(mark: &Mark, _leaders: &[i32]) -> Vec<BackgroundProcess> {
    if gone_within(&[mark.leader], SETTLE) {
        return Vec::new();
    }
    vec![BackgroundProcess {
        pid: mark.leader,
        name: "process group".to_owned(),
    }]
}

/// Blocks until the process group of the call has no members.
pub(super) fn wait_until_gone(mark: &Mark) {
    while !gone_within(&[mark.leader], Duration::ZERO) {
        pause(PAUSE);
    }
}

/// Ends the process group of a call: SIGTERM, and SIGKILL for the rest after `grace`.
pub(super) fn end_call(mark: &Mark, grace: Duration) -> bool {
    end(&[mark.leader], grace)
}

/// Ends the process groups of all calls in the same way.
pub(super) fn end_all(marks: &[Mark], grace: Duration) -> bool {
    let groups: Vec<_> = marks.iter().map(|mark| mark.leader).collect();
    end(&groups, grace)
}

/// Does nothing, because tags of processes cannot be read.
pub(super) fn sweep(_supervisor: u32) {}

/// Does nothing, because there are no adopted children to reap.
pub(super) fn reap(_is_leader: impl Fn(i32) -> bool) -> bool {
    false
}

fn end(groups: &[i32], grace: Duration) -> bool {
    for (signal, limit) in [(Signal::TERM, grace), (Signal::KILL, DEATH)] {
        for group in groups {
            if let Some(group) = Pid::from_raw(*group) {
                let _ = kill_process_group(group, signal);
            }
        }
        if gone_within(groups, limit) {
            return true;
        }
    }
    false
}

fn gone_within(groups: &[i32], limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    let alive = |group: &i32| {
        Pid::from_raw(*group).is_some_and(|group| test_kill_process_group(group).is_ok())
    };
    while groups.iter().any(alive) {
        if Instant::now() >= deadline {
            return false;
        }
        pause(Duration::from_millis(10));
    }
    true
}

/// Blocks for `length`, which is less than a second.
fn pause(length: Duration) {
    let length = Timespec {
        tv_sec: 0,
        tv_nsec: length.subsec_nanos().into(),
    };
    let _ = poll(&mut [], Some(&length));
}
