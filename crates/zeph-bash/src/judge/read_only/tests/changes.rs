//! Runs random commands of the table in a directory of their own, and compares the files before and after.
#![allow(
    clippy::disallowed_methods,
    reason = "the commands of the table write no files"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use super::super::table::{Arity, table};
use super::judge;

/// Programs that write logs or caches, do not end, or take long.
const SKIPPED: &[&str] = &[
    "cargo", "go", "npm", "pip", "pip3", "pnpm", "rustup", "sleep", "uv",
];
/// Values and operands. Some look like options or name files that do not exist.
const WORDS: &[&str] = &[
    "x",
    "1",
    "a.txt",
    "%s",
    "d",
    "HEAD",
    ".",
    "b.txt",
    "out",
    "-",
    "--",
    "+x",
    "d/c.txt",
    "{}",
    "p.gz",
    "p.bz2",
    "p.xz",
    "p.zst",
    "p.tar",
    "p.zip",
    "v1",
    "HEAD:a.txt",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit
    }

    fn word(&mut self) -> String {
        WORDS[self.below(WORDS.len())].to_owned()
    }
}

/// A random command of the row `name`: its words, mostly listed options.
fn command(name: &str, random: &mut Random) -> String {
    let row = table().unwrap().row(&name.split(' ').collect::<Vec<_>>());
    let options: Vec<_> = row.unwrap().options().collect();
    let mut words = vec![name.to_owned()];
    for _ in 0..random.below(5) {
        if options.is_empty() || random.below(5) < 2 {
            words.push(random.word());
            continue;
        }
        let (option, opt) = options[random.below(options.len())];
        let equals = if option.len() > 2 { "=" } else { "" };
        match (opt.arity, random.below(2)) {
            (Arity::Flag, _) | (Arity::Attached, 0) => words.push(option.to_owned()),
            (Arity::Value | Arity::Attached, 1) => {
                words.push(format!("{option}{equals}{}", random.word()));
            }
            (Arity::Value | Arity::Attached, _) => {
                words.extend([option.to_owned(), random.word()]);
            }
            (Arity::Pair, _) => {
                words.extend([option.to_owned(), random.word(), random.word()]);
            }
        }
    }
    words.join(" ")
}

/// The files below a directory: time, size and permissions.
fn files(directory: &Path, into: &mut BTreeMap<String, (SystemTime, u64, bool)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let about = entry.metadata().expect("a file");
        let time = about.modified().expect("a time");
        let state = (time, about.len(), about.permissions().readonly());
        into.insert(entry.path().display().to_string(), state);
        if about.is_dir() {
            files(&entry.path(), into);
        }
    }
}

fn run(script: &str, root: &Path) {
    let settings = [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "diff.autoRefreshIndex"),
        ("GIT_CONFIG_VALUE_0", "false"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
    ];
    let status = Command::new("timeout")
        .args(["-s", "KILL", "5", "bash", "-c", "--", script])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", root)
        .envs(settings)
        .current_dir(root.join("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("bash");
}

/// Proves PERM-9. `ZEPH_READS=RUNS:SEED` sets the number of commands.
#[test]
fn random_commands_of_the_table_change_no_files() {
    let given = std::env::var("ZEPH_READS").unwrap_or_default();
    let (runs, seed) = given.split_once(':').unwrap_or((given.as_str(), "1"));
    let runs: usize = runs.parse().unwrap_or(400);
    let seed: u64 = seed.parse().unwrap_or(1);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let root = tempfile::tempdir().expect("a directory");
    let work = root.path().join("work");
    fs::create_dir_all(work.join("d")).expect("a directory");
    for (name, text) in [
        ("a.txt", "a,b\n1,2\n"),
        ("b.txt", "x\n"),
        ("d/c.txt", "{}\n"),
    ] {
        fs::write(work.join(name), text).expect("a file");
    }
    run(
        "cp a.txt p; gzip -k p; bzip2 -k p; xz -k p; zstd -q p; tar cf p.tar d; zip -qr p.zip d; rm p; git init -q && git add . && git -c user.name=a -c user.email=b commit -qm x && git tag v1",
        root.path(),
    );
    let names: Vec<&str> = table().unwrap().names().collect();
    let mut before = BTreeMap::new();
    files(root.path(), &mut before);
    let mut wrong = Vec::new();
    for _ in 0..runs {
        let name = names[random.below(names.len())];
        let script = command(name, &mut random);
        let program = name.split(' ').next().unwrap_or_default();
        if SKIPPED.contains(&program) || judge(&script).is_err() {
            continue;
        }
        run(&script, root.path());
        let mut after = BTreeMap::new();
        files(root.path(), &mut after);
        if after != before {
            wrong.push(script);
        }
        before = after;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
