//! Checks that everyday scripts have the same effects in their original and canonical forms.
#![allow(
    clippy::disallowed_methods,
    reason = "bash runs harmless scripts in a directory of its own"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::command;
use crate::Parsed;

/// The effects of a script: its exit code, its output, and the files that it leaves.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    stdout: String,
    files: BTreeMap<String, String>,
}

fn files(directory: &Path, into: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("r") {
            files(&path, into);
        } else {
            let text = fs::read(&path).unwrap_or_default();
            into.insert(
                path.display().to_string(),
                String::from_utf8_lossy(&text).into_owned(),
            );
        }
    }
}

fn run(script: &str, root: &Path) -> Outcome {
    let work = root.join("work");
    fs::create_dir_all(work.join("dir/sub")).expect("a directory");
    for (name, text) in [
        ("lines.txt", "one\ntwo\nthree\n"),
        ("words.txt", "a b\nc d\n"),
        ("nums.txt", "3\n1\n10\n"),
        ("dir/inner.txt", "inner\n"),
        ("dir/sub/deep.txt", "deep\n"),
    ] {
        fs::write(work.join(name), text).expect("a file");
    }
    let output = Command::new("timeout")
        .args(["-s", "KILL", "10", "bash", "-c", "--", script])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", root)
        .env("LC_ALL", "C.UTF-8")
        .current_dir(&work)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .expect("bash");
    let mut left = BTreeMap::new();
    files(&work, &mut left);
    left.retain(|name, _| !name.ends_with(".tar"));
    fs::remove_dir_all(&work).expect("removed");
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        files: left,
    }
}

/// Proves SH-12a.
#[test]
fn everyday_scripts_do_the_same_in_canonical_form() {
    let scripts: Vec<String> = include_str!("everyday.txt").lines().map(command).collect();
    assert!(scripts.len() > 300);
    let half = scripts.len() / 2;
    let check = |scripts: &[String]| {
        let root = tempfile::tempdir().expect("a directory");
        let (mut wrong, mut unread) = (Vec::new(), Vec::new());
        for script in scripts {
            let parsed = Parsed::new(script);
            let Some(canonical) = parsed.canonical() else {
                unread.push(format!("{script:?}: {:?}", parsed.tree().err()));
                continue;
            };
            let (one, two) = (run(script, root.path()), run(canonical, root.path()));
            if one != two {
                wrong.push(format!("{script:?}\n  {canonical:?}\n  {one:?}\n  {two:?}"));
            }
        }
        (wrong, unread)
    };
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| check(&scripts[..half]));
        let second = check(&scripts[half..]);
        (first.join().expect("a run"), second)
    });
    let (wrong, unread) = ([first.0, second.0].concat(), [first.1, second.1].concat());
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        unread.len() < 8,
        "{} unread:\n{}",
        unread.len(),
        unread.join("\n")
    );
}
