//! Ending the processes of a call where there is no `/proc` and no subreaper: by process group.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::shell::runner::BackgroundProcess;

/// How long killed processes may take to vanish.
const DEATH: Duration = Duration::from_secs(1);
/// How long what a shell leaves behind may take to end by itself before it counts as running.
const SETTLE: Duration = Duration::from_millis(20);
/// Between two looks at what goes on running.
const PAUSE: Duration = Duration::from_millis(200);

/// What a call's processes are known by; the group alone says it here.
#[allow(dead_code, reason = "the twin for Linux uses all fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The call.
    pub(super) id: u64,
    /// Its first process, and the group that it leads.
    pub(super) leader: i32,
    /// Not used here.
    pub(super) start: u64,
    /// Not used here.
    pub(super) alone: bool,
}

/// Orphans go to the first process of the system here.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// The same for all processes here.
pub(super) fn started(_pid: i32) -> u64 {
    0
}

/// The value of the tag for a call.
pub(super) fn tag(id: u64) -> String {
    format!("{}.{id}", std::process::id())
}

/// The call's group, if it still has members.
pub(super) fn survivors(mark: &Mark, _leaders: &[i32]) -> Vec<BackgroundProcess> {
    if gone_within(&[mark.leader], SETTLE) {
        return Vec::new();
    }
    vec![BackgroundProcess {
        pid: mark.leader,
        name: "process group".to_owned(),
    }]
}

/// Blocks until the call's group has no members.
pub(super) fn wait_until_gone(mark: &Mark) {
    while !gone_within(&[mark.leader], Duration::ZERO) {
        pause(PAUSE);
    }
}

/// Ends a call's group: SIGTERM, and SIGKILL for what is left after `grace`.
pub(super) fn end_call(mark: &Mark, grace: Duration) -> bool {
    end(&[mark.leader], grace)
}

/// Ends the groups of all calls likewise.
pub(super) fn end_all(marks: &[Mark], grace: Duration) -> bool {
    let groups: Vec<_> = marks.iter().map(|mark| mark.leader).collect();
    end(&groups, grace)
}

/// Without tags that can be read there is nothing to find.
pub(super) fn sweep(_supervisor: u32) {}

/// There are no adopted children to reap here.
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
