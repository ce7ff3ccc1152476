//! Processes in `/proc` (`proc_pid_stat(5)`), and the calls to which they belong.

use std::collections::{HashMap, HashSet};
use std::fs;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// The start time in clock ticks since boot. Together with the pid, it identifies a process uniquely.
    pub(super) start: u64,
    /// Whether it is a zombie.
    pub(super) dead: bool,
    pub(super) name: String,
}

impl Process {
    /// The unique identity of the process.
    pub(super) fn key(&self) -> (i32, u64) {
        (self.pid, self.start)
    }
}

/// Parses a line of `/proc/PID/stat`. The name is in parentheses and may contain any character, including parentheses.
pub(super) fn parse(line: &str) -> Option<Process> {
    let (before, after) = line.rsplit_once(')')?;
    let (pid, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    let mut number = || fields.next()?.parse::<i32>().ok();
    Some(Process {
        pid: pid.trim().parse().ok()?,
        parent: number()?,
        group: number()?,
        session: number()?,
        start: fields.nth(15)?.parse().ok()?,
        dead: matches!(state, "Z" | "X"),
        name: name.to_owned(),
    })
}

/// Reads the process with this id.
pub(super) fn read(pid: i32) -> Option<Process> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&line))
}

/// Reads all processes.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// The children of this process, including zombies.
pub(super) fn own_children() -> Vec<i32> {
    from_children_files().unwrap_or_else(|| {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut children = all();
        children.retain(|process| process.parent == own);
        children.iter().map(|process| process.pid).collect()
    })
}

/// The children of this process from `/proc/self/task/*/children`, if the kernel has this file.
fn from_children_files() -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task").ok()? {
        match fs::read_to_string(task.ok()?.path().join("children")) {
            Ok(list) => children.extend(
                list.split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            ),
            // The thread has ended in the meantime.
            Err(_) if fs::exists("/proc/thread-self/children").unwrap_or(false) => {}
            Err(_) => return None,
        }
    }
    Some(children)
}

/// A variable from the environment of a process at its exec.
pub(super) fn variable(pid: i32, name: &str) -> Option<String> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environ.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

/// Whether a process has an open file in memory with this name.
pub(super) fn has_memory_file(pid: i32, name: &str) -> bool {
    let target = format!("/memfd:{name} (deleted)");
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let mut targets = files.flatten().map(|file| fs::read_link(file.path()));
    targets.any(|found| found.is_ok_and(|found| found.as_os_str() == target.as_str()))
}

/// The living processes among `all` that descend from a child of `root` that `belongs`, or from one of `known`. The
/// result includes these processes themselves.
pub(super) fn members(
    all: &[Process],
    root: i32,
    known: &HashSet<(i32, u64)>,
    belongs: impl Fn(&Process) -> bool,
) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut open: Vec<&Process> = all
        .iter()
        .filter(|process| {
            known.contains(&process.key()) || (process.parent == root && belongs(process))
        })
        .collect();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    while let Some(process) = open.pop() {
        if !seen.insert(process.pid) {
            continue;
        }
        open.extend(children.get(&process.pid).into_iter().flatten());
        if !process.dead {
            found.push(process.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_is_parsed_with_any_name() {
        let check = |name: &str| {
            let line =
                format!("42 ({name}) S 7 41 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9999 1 2 3\n");
            let process = parse(&line).unwrap();
            assert_eq!(process.name, name);
            assert_eq!(
                (process.pid, process.parent, process.group, process.session),
                (42, 7, 41, 40)
            );
            assert_eq!((process.start, process.dead), (9999, false));
        };
        check("sleep");
        check("a b");
        check(") R 1 (x");
        check("");
        assert_eq!(parse("42 (x) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn this_process_is_among_all() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let process = read(own).unwrap();
        assert!(all().iter().any(|other| other.key() == process.key()));
    }

    fn process(pid: i32, parent: i32, group: i32) -> Process {
        Process {
            pid,
            parent,
            group,
            session: group,
            start: 0,
            dead: false,
            name: String::new(),
        }
    }

    /// Proves SH-3.
    #[test]
    fn call_owns_its_descendants_and_orphans() {
        let mut all = vec![
            process(10, 1, 10),  // the supervisor
            process(20, 10, 20), // a call
            process(21, 20, 21), // its child, in a group of its own
            process(22, 21, 21),
            process(23, 10, 20), // its orphan, adopted, in its group
            process(24, 23, 99),
            process(30, 10, 30), // another call
            process(31, 30, 30),
            process(40, 1, 20), // not ours, whatever its group
        ];
        let pids = |all: &[Process], known: &[(i32, u64)]| {
            let known = known.iter().copied().collect();
            let mut pids: Vec<_> = members(all, 10, &known, |process| process.group == 20)
                .iter()
                .map(|process| process.pid)
                .collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(&all, &[]), [20, 21, 22, 23, 24]);
        all[1].dead = true;
        assert_eq!(pids(&all, &[]), [21, 22, 23, 24]);
        // Its parents died: the supervisor has adopted it, and it is known.
        all[3].parent = 10;
        all.remove(2);
        assert_eq!(pids(&all, &[]), [23, 24]);
        assert_eq!(pids(&all, &[(22, 0)]), [22, 23, 24]);
        // Another process with the same pid is not a member.
        assert_eq!(pids(&all, &[(22, 5)]), [23, 24]);
    }
}
