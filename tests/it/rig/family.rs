//! The processes of the binary itself below a run: supervisors, and children that have not become
//! another program yet. They carry neither the directory nor the environment of their home.

use rustix::process::{Pid, Signal, kill_process};

use super::wait_for;

/// A process id that is unique in spite of reuse, because it includes the start time.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    /// The start time in ticks since boot.
    start: String,
}

/// Child processes of a run that execute the binary itself.
#[derive(Debug)]
pub(super) struct Family(Vec<Process>);

impl Family {
    /// Stops a run and lists its children. An ended run has none.
    pub(super) fn of_stopped(pid: Pid) -> Self {
        let parent = pid.as_raw_nonzero().get();
        if kill_process(pid, Signal::STOP).is_err() {
            return Self(Vec::new());
        }
        // Until all threads have stopped, one may start another child.
        wait_for("all threads to stop", || {
            let tasks = std::fs::read_dir(format!("/proc/{parent}/task"));
            let mut states = tasks.into_iter().flatten().flatten().map(|task| {
                let stat = std::fs::read_to_string(task.path().join("stat"));
                stat.map_or('X', |stat| {
                    field(&stat, STATE).chars().next().unwrap_or('X')
                })
            });
            states.all(|state| "TtDZX".contains(state)).then_some(())
        });
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        Self(pids.filter_map(|pid| child_of(pid, parent)).collect())
    }

    /// Waits until each process has ended or executes another program.
    #[track_caller]
    pub(super) fn wait_until_gone(&self) {
        wait_for("the end of supervisors", || {
            let gone = |process: &Process| !is_the_binary(process.pid) || !process.lives();
            self.0.iter().all(gone).then_some(())
        });
    }
}

impl Process {
    fn lives(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid));
        stat.is_ok_and(|stat| field(&stat, START) == self.start)
    }
}

/// Indexes of the fields after the name in `/proc/PID/stat` (proc(5)).
const STATE: usize = 0;
const PARENT: usize = 1;
const START: usize = 19;

fn field(stat: &str, number: usize) -> &str {
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().nth(number).unwrap_or_default()
}

fn child_of(pid: i32, parent: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let is_child = field(&stat, PARENT) == parent.to_string() && is_the_binary(pid);
    is_child.then(|| Process {
        pid,
        start: field(&stat, START).to_owned(),
    })
}

fn is_the_binary(pid: i32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|program| program == std::path::Path::new(env!("CARGO_BIN_EXE_zeph")))
}
