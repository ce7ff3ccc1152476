//! Differential test of the blocklist against bash. Generated scripts run in bash with only harmless stubs in
//! `PATH`. The policy must not allow a script that runs the stub of a blocked program.
//!
//! Each script is judged twice: with constructs evaluated, which is the default, and with all constructs refused.
//! `ZEPH_SCRIPTS` sets the number of scripts (docs/testing.md).
#![allow(
    clippy::disallowed_methods,
    reason = "bash is what the policy is held against; it runs in a directory of its own"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::grammar::Scripts;
use crate::{BlocklistOptions, FOUNDING, Parsed, ShellPolicy, Verdict, WorkingDirState, read_only};

/// Commands that a script must not be allowed to call.
pub(super) const BLOCKED: &[&str] = &[
    "sudo",
    "su",
    "doas",
    "mkfs.ext4",
    "reboot",
    "fdisk",
    "halt",
    "pkexec",
    "rmmod",
];
/// System commands that run others or move text. The rest of the system is out of reach.
const REAL: &[&str] = &[
    "env", "xargs", "nice", "nohup", "stdbuf", "bash", "sh", "dash", "cat", "find", "true", "tr",
    "rev", "sed", "head", "printf", "awk", "time", "flock", "ls", "grep", "base64",
];

/// The number of scripts after which processes outside of their process group are killed.
const SWEEP_EVERY: usize = 500;
/// The number of scripts after which a long run prints its progress.
const PROGRESS_EVERY: usize = 5000;

/// A temporary directory in which scripts run.
struct Cell {
    _directory: tempfile::TempDir,
    programs: PathBuf,
    home: PathBuf,
    work: PathBuf,
    mark: PathBuf,
}

impl Cell {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let cell = Self {
            programs: at("bin"),
            home: at("home"),
            work: at("work"),
            mark: at("mark"),
            _directory: directory,
        };
        for path in [&cell.programs, &cell.home, &cell.work] {
            fs::create_dir(path).expect("a directory");
        }
        let stub = format!(
            "#!/bin/sh\necho \"${{0##*/}}\" >> {}\n",
            cell.mark.display()
        );
        for name in BLOCKED {
            let path = cell.programs.join(name);
            fs::write(&path, &stub).expect("a stub");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        }
        // Stubs of these two, because the originals leave the process group, which the cleanup kills.
        // As for the originals, `-` is an operand, `--` ends the options, and long options can be abbreviated.
        let options = "while :; do case $1 in --) shift; break;; -) break;; --[ks]*=*) shift;; -[ks]|--[ks]*) shift 2;; -*) shift;; *) break;; esac; done";
        for (name, operands) in [("timeout", "shift; "), ("setsid", "")] {
            let path = cell.programs.join(name);
            fs::write(
                &path,
                format!("#!/bin/sh\n{options}\n{operands}exec \"$@\"\n"),
            )
            .expect("a stub");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        }
        for name in REAL {
            let found = ["/usr/bin", "/bin"]
                .iter()
                .map(|dir| Path::new(dir).join(name));
            if let Some(real) = found.into_iter().find(|path| path.exists()) {
                std::os::unix::fs::symlink(real, cell.programs.join(name)).expect("a link");
            }
        }
        cell
    }

    fn start(&self) -> WorkingDirState {
        WorkingDirState {
            cwd: self.work.clone(),
            home: Some(self.home.clone()),
            roots: vec![self.work.clone()],
            ..WorkingDirState::default()
        }
    }

    /// Returns the blocked programs that bash runs for `script`, and removes all traces of it.
    fn run(&self, script: &str) -> String {
        let child = Command::new("bash")
            .args(["-c", script])
            .env_clear()
            .env("PATH", &self.programs)
            .env("HOME", &self.home)
            .env("LC_ALL", "C.UTF-8")
            .current_dir(&self.work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let Ok(mut child) = child else {
            // An argument cannot contain a NUL.
            return String::new();
        };
        let begun = Instant::now();
        // The check does not reap the process. Until then, no other process can get its number.
        while !has_ended(child.id()) && begun.elapsed() < Duration::from_millis(1500) {
            std::thread::sleep(Duration::from_micros(150));
        }
        if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        child.wait().expect("a child");
        let ran = fs::read_to_string(&self.mark).unwrap_or_default();
        if !ran.is_empty() {
            fs::remove_file(&self.mark).expect("the mark");
        }
        for entry in fs::read_dir(&self.work).into_iter().flatten().flatten() {
            let path = entry.path();
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        ran
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.sweep();
    }
}

impl Cell {
    /// Kills processes of this cell that left their process group (`set -m`).
    fn sweep(&self) {
        let path = format!("PATH={}", self.programs.display());
        let of_cell = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry.starts_with(path.as_bytes()))
        };
        // A process may start another one during the cleanup.
        for _ in 0..50 {
            let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            let left: Vec<u32> = pids.filter(of_cell).collect();
            if left.is_empty() {
                return;
            }
            for pid in left
                .iter()
                .filter_map(|pid| Pid::from_raw(pid.cast_signed()))
            {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Whether the process has ended. It may still be a zombie.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    matches!(state, None | Some('Z' | 'X'))
}

/// The results of many scripts.
#[derive(Debug, Default)]
struct Count {
    scripts: usize,
    /// The scripts for which bash ran a blocked program.
    ran: usize,
    /// The scripts that the default policy allows.
    allowed: usize,
    /// The scripts with a canonical text that ran too.
    canonical: usize,
    /// The scripts that the default policy blocks although bash ran no blocked program.
    needless: usize,
    /// The scripts that only read.
    reads: usize,
    /// The scripts that were allowed or only read, and ran a blocked program.
    missed: Vec<String>,
}

fn run_many(seed: u64, scripts: usize) -> Count {
    let cell = Cell::new();
    let start = cell.start();
    let founding = BlocklistOptions {
        blocked_constructs: vec![FOUNDING.to_owned()],
        ..BlocklistOptions::default()
    };
    let policies = [
        ShellPolicy::default(),
        ShellPolicy::new(&founding).expect("a known name"),
    ];
    let mut source = Scripts::new(seed, cell.programs.to_str().expect("UTF-8"));
    let mut count = Count::default();
    for _ in 0..scripts {
        let script = source.script();
        let verdicts = policies
            .each_ref()
            .map(|policy| policy.decide(&script, &start));
        let reads = read_only(&Parsed::new(&script), &start).is_ok();
        count.reads += usize::from(reads);
        let ran = cell.run(&script);
        // The shell runs the canonical text, so that text must not run a command that was not judged.
        if verdicts.contains(&Verdict::Allow)
            && let Some(text) = Parsed::new(&script).canonical()
            && text != script
        {
            count.canonical += 1;
            let run = || cell.run(text);
            if !run().is_empty() && !run().is_empty() {
                count
                    .missed
                    .push(format!("{script:?}\n    as {text:?}: {verdicts:?}"));
            }
        }
        count.scripts += 1;
        if count.scripts.is_multiple_of(SWEEP_EVERY) {
            cell.sweep();
        }
        if count.scripts.is_multiple_of(PROGRESS_EVERY) {
            println!("{} scripts, {} missed", count.scripts, count.missed.len());
        }
        count.ran += usize::from(!ran.is_empty());
        count.allowed += usize::from(verdicts[0] == Verdict::Allow);
        let refused = matches!(verdicts[0], Verdict::Block { .. });
        count.needless += usize::from(refused && ran.is_empty());
        // The script runs twice, because a process of the previous script may have made the mark.
        let admitted = reads || verdicts.contains(&Verdict::Allow);
        if !ran.is_empty() && admitted && !cell.run(&script).is_empty() {
            count
                .missed
                .push(format!("{script:?}\n    ran {ran:?}: {verdicts:?}"));
        }
    }
    count
}

fn check(seed: u64, scripts: usize) {
    let threads: Vec<_> = [seed, seed + 1]
        .map(|seed| std::thread::spawn(move || run_many(seed, scripts / 2)))
        .into_iter()
        .collect();
    let mut missed = Vec::new();
    for thread in threads {
        let count = thread.join().expect("a run");
        println!(
            "{} scripts: {} ran something blocked, {} were allowed, {} ran in canonical form too, {} were refused and ran nothing blocked, {} only read",
            count.scripts, count.ran, count.allowed, count.canonical, count.needless, count.reads
        );
        assert!(
            count.ran * 20 > count.scripts,
            "the scripts try too little: {count:?}"
        );
        assert!(
            count.allowed * 50 > count.scripts,
            "everything is refused: {count:?}"
        );
        missed.extend(count.missed);
    }
    let shown: Vec<&str> = missed.iter().take(40).map(String::as_str).collect();
    assert!(
        missed.is_empty(),
        "{} allowed:\n{}",
        missed.len(),
        shown.join("\n")
    );
}

/// Proves SH-11, SH-12. `ZEPH_SCRIPTS=COUNT:SEED` sets the number of scripts and the seed.
#[test]
fn any_script_is_decided_as_bash_runs_it() {
    let asked = std::env::var("ZEPH_SCRIPTS").unwrap_or_else(|_| "1200:1".to_owned());
    let (count, seed) = asked.split_once(':').expect("COUNT:SEED");
    check(
        seed.parse().expect("a seed"),
        count.parse().expect("a count"),
    );
}
