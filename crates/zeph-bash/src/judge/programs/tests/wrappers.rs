//! Wrappers against the programs themselves: every legal order of their options in front of a canary.
//!
//! A wrapper that runs the canary must not be allowed while the canary is blocked. Wrappers that are not
//! installed are only judged. `ZEPH_WRAPPERS=all` tries every order instead of a sample.
#![allow(
    clippy::disallowed_methods,
    reason = "the wrappers are the oracle; they run a stub in a temporary directory"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{ShellPolicy, Verdict, WorkingDirState};

/// A wrapper: its options with sample values, and its operands.
struct Wrapper {
    name: &'static str,
    options: &'static [&'static str],
    /// Choices of operands; an empty text has no operand.
    operands: &'static [&'static str],
}

const fn wrapper(
    name: &'static str,
    options: &'static [&'static str],
    operands: &'static [&'static str],
) -> Wrapper {
    Wrapper {
        name,
        options,
        operands,
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper(
        "env",
        &[
            "-i",
            "-u A",
            "-uA",
            "--unset=A",
            "-C .",
            "-0",
            "-v",
            "-",
            "A=1",
            "--ignore-environment",
            "-S 'A=1'",
        ],
        &[""],
    ),
    wrapper(
        "nice",
        &["-n 1", "-n1", "-1", "--adjustment=1", "--adjustment 1"],
        &[""],
    ),
    wrapper(
        "ionice",
        &[
            "-c2",
            "-c 2",
            "-n7",
            "-n 7",
            "-t",
            "--class 2",
            "--class=idle",
            "--classdata=3",
            "--ignore",
        ],
        &[""],
    ),
    wrapper("nohup", &[], &[""]),
    wrapper("setsid", &["-w", "-f", "--wait", "--fork"], &[""]),
    wrapper(
        "stdbuf",
        &["-oL", "-o L", "-e0", "-i 0", "--output=L", "--error 0"],
        &[""],
    ),
    wrapper(
        "timeout",
        &[
            "-k 5",
            "-k5",
            "-s KILL",
            "-sKILL",
            "-v",
            "--foreground",
            "--preserve-status",
            "--kill-after=5",
            "--signal 9",
            "--foreg",
        ],
        &["5", "5s"],
    ),
    wrapper(
        "setarch",
        &[
            "-R",
            "-L",
            "-RL",
            "-B",
            "-v",
            "-3",
            "--addr-no-randomize",
            "--verbose",
            "--uname-2.6",
            "--3gb",
        ],
        &["", "x86_64", "linux64"],
    ),
    wrapper(
        "linux64",
        &["-R", "-v", "--addr-no-randomize", "-RL"],
        &[""],
    ),
    wrapper("linux32", &["-R", "-v", "--3gb"], &[""]),
    wrapper("x86_64", &["-R", "-v"], &[""]),
    wrapper(
        "taskset",
        &["-c", "--cpu-list", "-a", "--all-tasks"],
        &["0", "1", "0x1"],
    ),
    wrapper(
        "chrt",
        &["-o", "-b", "-i", "--other", "--batch", "-v", "--idle", "-R"],
        &["", "0"],
    ),
    wrapper(
        "flock",
        &[
            "-n",
            "-x",
            "-s",
            "-e",
            "-w 1",
            "-w1",
            "-E 3",
            "-o",
            "-F",
            "--nb",
            "--timeout=1",
            "--close",
        ],
        &["f", "."],
    ),
    wrapper(
        "prlimit",
        &[
            "--nofile=64",
            "-n64",
            "--core=0",
            "-c0",
            "--noheadings",
            "-v",
            "--raw",
        ],
        &[""],
    ),
    wrapper(
        "setpriv",
        &[
            "--no-new-privs",
            "--nnp",
            "-d",
            "--keep-groups",
            "--pdeathsig keep",
            "--inh-caps=-all",
            "--clear-groups",
        ],
        &[""],
    ),
    wrapper(
        "unshare",
        &[
            "-r",
            "-f",
            "--map-root-user",
            "-U",
            "-u",
            "--uts",
            "-w .",
            "--fork",
            "-m",
        ],
        &[""],
    ),
    wrapper("choom", &["-n 500", "-n500", "--adjust=500"], &[""]),
    wrapper("uclampset", &["-m 1", "-M 2", "-v", "-R"], &[""]),
    wrapper(
        "xargs",
        &[
            "-n1",
            "-n 1",
            "-t",
            "-0",
            "-P 2",
            "-I {}",
            "-I{}",
            "-L1",
            "--null",
            "--max-args=1",
            "-i",
            "-s 99",
            "-E x",
        ],
        &[""],
    ),
    wrapper(
        "strace",
        &[
            "-f",
            "-q",
            "-o f",
            "-of",
            "-e trace=none",
            "-c",
            "-E A=1",
            "-u root",
            "-s 9",
            "-ttt",
        ],
        &[""],
    ),
    wrapper(
        "script",
        &["-q", "-e", "-f", "-a", "-E never", "--quiet", "-O f"],
        &["-c sudo", "--command sudo", "-csudo"],
    ),
    wrapper("sg", &[], &["root"]),
    wrapper(
        "runuser",
        &[
            "-u root",
            "-uroot",
            "--user=root",
            "-m",
            "-p",
            "--preserve-environment",
        ],
        &[""],
    ),
    wrapper(
        "chroot",
        &[
            "--userspec=0:0",
            "--groups=0",
            "--skip-chdir",
            "--userspec 0",
        ],
        &["/"],
    ),
    wrapper("nsenter", &["-F", "--no-fork", "-w.", "--wd=."], &[""]),
    wrapper("systemd-cat", &["-t x", "-p info", "--identifier=x"], &[""]),
    // These are only judged if they are not installed.
    wrapper(
        "numactl",
        &["-N 0", "-m 0", "--interleave=all", "-l"],
        &[""],
    ),
    wrapper("cgexec", &["-g cpu:x", "--sticky"], &[""]),
    wrapper("catchsegv", &[], &[""]),
    wrapper("chronic", &["-v", "-e"], &[""]),
    wrapper("softlimit", &["-m 9"], &[""]),
    wrapper("unbuffer", &["-p"], &[""]),
    wrapper("caffeinate", &["-d", "-i", "-t 1"], &[""]),
    wrapper("faketime", &["-f"], &["yesterday"]),
];
/// Wrappers that are judged but do not run here: they reach services or take long.
const NOT_RUN: &[&str] = &["systemd-cat"];

/// A directory with the canary as the only program.
struct Cell {
    directory: tempfile::TempDir,
}

impl Cell {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let programs = directory.path().join("bin");
        fs::create_dir(&programs).expect("a directory");
        fs::create_dir(directory.path().join("work")).expect("a directory");
        let canary = programs.join("sudo");
        let mark = directory.path().join("mark");
        fs::write(&canary, format!("#!/bin/sh\n: > {}\n", mark.display())).expect("a stub");
        fs::set_permissions(&canary, fs::Permissions::from_mode(0o755)).expect("executable");
        Self { directory }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Whether the canary ran.
    fn runs(&self, program: &Path, command: &str) -> bool {
        let arguments = command.split_once(' ').map_or("", |(_, rest)| rest);
        let line = format!("exec {} {arguments}", program.display());
        let child = Command::new("/bin/sh")
            .args(["-c", &line])
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.at("bin").display()),
            )
            .env("HOME", self.directory.path())
            .env("SHELL", "/bin/sh")
            .current_dir(self.at("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else { return false };
        let begun = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            if begun.elapsed() > Duration::from_secs(3) {
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        fs::remove_file(self.at("mark")).is_ok()
    }
}

/// The orders of the items.
fn permutations(items: &[&str]) -> Vec<String> {
    if items.is_empty() {
        return vec![String::new()];
    }
    let mut all = Vec::new();
    for (at, first) in items.iter().enumerate() {
        let rest = [&items[..at], &items[at + 1..]].concat();
        all.extend(
            permutations(&rest)
                .iter()
                .map(|tail| format!("{first} {tail}")),
        );
    }
    all
}

/// Commands with none, one or two options and the operands, in every order.
fn commands(wrapper: &Wrapper) -> Vec<String> {
    let options = wrapper.options;
    let mut sets: Vec<Vec<&str>> = vec![Vec::new()];
    for (at, one) in options.iter().enumerate() {
        sets.push(vec![one]);
        sets.extend(options[at + 1..].iter().map(|other| vec![*one, *other]));
    }
    let mut all = Vec::new();
    for set in &sets {
        for operand in wrapper.operands {
            let mut items = set.clone();
            items.extend(Some(*operand).filter(|operand| !operand.is_empty()));
            for order in permutations(&items) {
                all.push(format!("{} {order}sudo x", wrapper.name));
                all.push(format!("{} {order}-- sudo x", wrapper.name));
            }
        }
    }
    all
}

fn installed(name: &str) -> Option<PathBuf> {
    let directories = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
    let mut paths = directories
        .iter()
        .map(|directory| Path::new(directory).join(name));
    paths.find(|path| path.exists() && !NOT_RUN.contains(&name))
}

/// Proves SH-12.
#[test]
fn wrapper_that_runs_the_canary_is_not_allowed() {
    let limit = match std::env::var("ZEPH_WRAPPERS") {
        Ok(_) => usize::MAX,
        Err(_) => 24,
    };
    let cell = Cell::new();
    let start = WorkingDirState {
        cwd: cell.at("work"),
        home: Some(cell.directory.path().to_path_buf()),
        roots: vec![cell.at("work")],
        ..WorkingDirState::default()
    };
    let policy = ShellPolicy::default();
    let (mut ran, mut missed) = (0, Vec::new());
    for wrapper in WRAPPERS {
        let commands = commands(wrapper);
        let step = commands.len().div_ceil(limit).max(1);
        let program = installed(wrapper.name);
        for (at, command) in commands.iter().enumerate() {
            let allowed = policy.decide(command, &start) == Verdict::Allow;
            let tried = at % step == 0 || (allowed && at % 7 == 0);
            let runs = match &program {
                Some(program) => tried && cell.runs(program, command),
                None => true,
            };
            ran += usize::from(runs && program.is_some());
            if runs && allowed {
                missed.push(command.clone());
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} allowed:\n{}",
        missed.len(),
        missed.join("\n")
    );
    assert!(ran > 100, "the wrappers ran the canary {ran} times");
}
