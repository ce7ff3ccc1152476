//! Property test of `search_code`: after any sequence of file changes, its results equal those of a full
//! scan.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::rig::{Home, Running, wait_for};

const FOLDERS: [&str; 4] = ["", "a", "a/b", "c"];
const FILES: [&str; 6] = ["x.rs", "v.rs", "y.py", "u.py", "w.txt", "t.txt"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const PATTERNS: [&str; 6] = ["x.rs", "*.py", "b/", "!x.rs", "/a", "!b/"];

/// A change of the files. An impossible change has no effect.
#[derive(Debug, Clone)]
enum Step {
    /// Writes a file with these names and replaces an existing entry.
    Write(String, Vec<u8>),
    /// Changes a name in the file; size and modification time stay.
    Quietly(String, u8),
    Rename(String, String),
    Delete(String),
    Mode(String, u32),
    /// Replaces the file with a link to the other path.
    Link(String, String),
    /// Replaces the file with a directory.
    Folder(String),
    /// Writes the `.gitignore` of the folder; without lines it is deleted.
    Ignore(&'static str, Vec<&'static str>),
    /// Waits until the change marks of files are trusted.
    Time,
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

fn file() -> impl Strategy<Value = String> {
    let parts = (prop::sample::select(&FOLDERS), prop::sample::select(&FILES));
    parts.prop_map(|(folder, name)| below(folder, name))
}

fn folder() -> impl Strategy<Value = String> {
    let parts = (prop::sample::select(&FOLDERS), prop::sample::select(&NAMES));
    parts.prop_map(|(folder, name)| below(folder, name))
}

fn any_path() -> impl Strategy<Value = String> {
    prop_oneof![3 => file(), 1 => folder()]
}

/// Two paths for files of the same language.
fn renamed() -> impl Strategy<Value = (String, String)> {
    let files = (0..FILES.len() / 2, any::<(bool, bool)>());
    let files = files.prop_map(|(kind, (one, other))| {
        let name = |second: bool| FILES[2 * kind + usize::from(second)];
        (name(one), name(other))
    });
    let folders = (prop::sample::select(&NAMES), prop::sample::select(&NAMES));
    let names = prop_oneof![2 => files, 1 => folders];
    let at = prop::sample::select(&FOLDERS);
    (names, at.clone(), at)
        .prop_map(|((one, other), from, to)| (below(from, one), below(to, other)))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (file(), prop::collection::vec(0..10_u8, 0..4)).prop_map(|(path, names)| Step::Write(path, names)),
        4 => (file(), 0..10_u8).prop_map(|(path, name)| Step::Quietly(path, name)),
        4 => renamed().prop_map(|(from, to)| Step::Rename(from, to)),
        2 => any_path().prop_map(Step::Delete),
        1 => (any_path(), prop::sample::select(vec![0o000, 0o644, 0o755])).prop_map(|(path, mode)| Step::Mode(path, mode)),
        2 => (any_path(), prop_oneof![any_path(), Just(String::new())]).prop_map(|(path, to)| Step::Link(path, to)),
        1 => any_path().prop_map(Step::Folder),
        3 => (prop::sample::select(&FOLDERS), prop::sample::subsequence(&PATTERNS, 0..3))
            .prop_map(|(folder, lines)| Step::Ignore(folder, lines)),
        1 => Just(Step::Time),
    ]
}

/// The content of a file with these names.
fn text(path: &str, names: &[u8]) -> String {
    let line = |name: &u8| match path.rsplit('.').next() {
        Some("rs") => format!("fn sym_{name}() {{}}\n"),
        Some("py") => format!("def sym_{name}(): pass\n"),
        _ => format!("about sym_{name}\n"),
    };
    names.iter().map(line).collect()
}

fn remove(path: &Path) {
    let _ = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        _ => fs::remove_file(path),
    };
}

impl Step {
    fn happens(&self, project: &Path) {
        let at = |path: &str| project.join(path);
        let ready = |path: &PathBuf| {
            let _ = fs::create_dir_all(path.parent().unwrap());
        };
        match self {
            Self::Write(path, names) => {
                let at = at(path);
                ready(&at);
                if !at.symlink_metadata().is_ok_and(|found| found.is_file()) {
                    remove(&at);
                }
                let _ = fs::write(at, text(path, names));
            }
            Self::Quietly(path, name) => {
                let change = || -> std::io::Result<()> {
                    let before = fs::metadata(at(path))?.modified()?;
                    let old = fs::read_to_string(at(path))?;
                    let digit = |c: char| match c.is_ascii_digit() {
                        true => char::from(b'0' + name),
                        false => c,
                    };
                    fs::write(at(path), old.chars().map(digit).collect::<String>())?;
                    fs::File::options()
                        .write(true)
                        .open(at(path))?
                        .set_modified(before)
                };
                let _ = change();
            }
            Self::Rename(from, to) => {
                ready(&at(to));
                let _ = fs::rename(at(from), at(to));
            }
            Self::Delete(path) => remove(&at(path)),
            Self::Mode(path, mode) => {
                let _ = fs::set_permissions(at(path), fs::Permissions::from_mode(*mode));
            }
            Self::Link(path, to) => {
                remove(&at(path));
                ready(&at(path));
                let _ = symlink(project.join(to), at(path));
            }
            Self::Folder(path) => {
                remove(&at(path));
                let _ = fs::create_dir_all(at(path));
            }
            Self::Ignore(folder, lines) => {
                let at = at(folder).join(".gitignore");
                if lines.is_empty() {
                    remove(&at);
                } else {
                    let _ = fs::write(at, lines.join("\n"));
                }
            }
            Self::Time => {
                let began = Instant::now();
                wait_for("the clock of the file system", || {
                    (began.elapsed() > Duration::from_millis(25)).then_some(())
                });
            }
        }
    }
}

/// The symbols and the other lines in the project, each by path, line and name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    symbols: BTreeSet<(String, usize, String)>,
    lines: BTreeSet<(String, usize, String)>,
}

/// Scans everything below `folder`, subject to `rules`: the `.gitignore` lines of its parent folders.
fn all(project: &Path, folder: &str, rules: &[(String, Vec<String>)], found: &mut Found) {
    let mut rules = rules.to_vec();
    let own = fs::read_to_string(project.join(folder).join(".gitignore")).unwrap_or_default();
    rules.push((folder.to_owned(), own.lines().map(str::to_owned).collect()));
    let Ok(entries) = fs::read_dir(project.join(folder)) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().into_string().unwrap();
        let kind = entry.file_type().unwrap();
        if name.starts_with('.') || is_ignored(&rules, folder, &name, kind.is_dir()) {
            continue;
        }
        let path = below(folder, &name);
        if kind.is_dir() {
            all(project, &path, &rules, found);
        } else if kind.is_file() {
            let text = fs::read_to_string(project.join(&path)).unwrap_or_default();
            for (line, text) in (1..).zip(text.lines()) {
                let begins = text.starts_with("fn ") && path.ends_with(".rs")
                    || text.starts_with("def ") && path.ends_with(".py");
                let part = match begins {
                    true => &mut found.symbols,
                    false => &mut found.lines,
                };
                let at = text.find("sym_").unwrap();
                part.insert((path.clone(), line, text[at..at + 5].to_owned()));
            }
        }
    }
}

/// Applies the last matching line of the deepest `.gitignore` that has one.
fn is_ignored(rules: &[(String, Vec<String>)], folder: &str, name: &str, is_dir: bool) -> bool {
    for (place, lines) in rules.iter().rev() {
        for line in lines.iter().rev() {
            let (wanted, line) = match line.strip_prefix('!') {
                Some(line) => (true, line),
                None => (false, line.as_str()),
            };
            let (of_dirs, line) = match line.strip_suffix('/') {
                Some(line) => (true, line),
                None => (false, line),
            };
            let fits = match (line.strip_prefix('/'), line.strip_prefix('*')) {
                (Some(line), _) => folder == place && line == name,
                (_, Some(end)) => name.ends_with(end),
                _ => line == name,
            };
            if fits && (is_dir || !of_dirs) {
                return !wanted;
            }
        }
    }
    false
}

/// Parses the output of the tool.
fn said(text: &str) -> Found {
    let mut found = Found::default();
    let mut is_symbol = true;
    for line in text.lines() {
        if line.starts_with("[from the cache") {
            continue;
        }
        if line.starts_with("Lines with") {
            is_symbol = false;
            continue;
        }
        let mut parts = line.splitn(3, ':');
        let (Some(path), Some(number), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            assert!(line.starts_with("No matches"), "{line:?} in {text}");
            continue;
        };
        let at = rest.find("sym_").unwrap();
        let place = (
            path.to_owned(),
            number.parse().unwrap(),
            rest[at..at + 5].to_owned(),
        );
        let part = match is_symbol {
            true => &mut found.symbols,
            false => &mut found.lines,
        };
        assert!(part.insert(place), "twice: {line:?} in {text}");
        if is_symbol {
            // The name of the symbol, followed by the source line.
            assert_eq!(
                rest.matches(&rest[at..at + 5]).count(),
                2,
                "{line:?} in {text}"
            );
        }
    }
    found
}

fn call(run: &mut Running, params: &Value) -> String {
    run.say(&json!({"tool": "search_code", "params": params}).to_string());
    let line = run.next_line().expect("an answer");
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["success"], true, "{answer}");
    answer["data"].as_str().unwrap().to_owned()
}

fn check(run: &mut Running, home: &Home, part: Option<&str>) {
    let mut expect = Found::default();
    let (start, rules) = match part {
        Some(part) => {
            let above = fs::read_to_string(home.path(".gitignore")).unwrap_or_default();
            let above: Vec<String> = above.lines().map(str::to_owned).collect();
            (part, vec![(String::new(), above)])
        }
        None => ("", Vec::new()),
    };
    all(&home.project(), start, &rules, &mut expect);
    let path = part.unwrap_or(".");
    let text = call(run, &json!({"query": "sym_", "limit": 500, "path": path}));
    assert!(
        !text.contains("stale") && !text.contains("partial"),
        "{text}"
    );
    assert_eq!(said(&text), expect, "below {path:?}: {text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves NAT-5.
    #[test]
    fn index_result_equals_a_full_scan(
        steps in prop::collection::vec((step(), any::<(bool, bool)>()), 1..40),
    ) {
        let home = Home::new();
        let mut run = home.zeph(["tools", "run", "--yes", "-"]).open_stdin("").start();
        let mut before = Found::default();
        for (step, (later, in_part)) in steps {
            step.happens(&home.project());
            if later {
                // After this time, the modification time alone does not reveal a change.
                Step::Time.happens(&home.project());
            }
            let part = home.path("a");
            if in_part && part.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                check(&mut run, &home, Some("a"));
            }
            check(&mut run, &home, None);
            // A name that disappeared in this step is not in any result.
            let mut now = Found::default();
            all(&home.project(), "", &[], &mut now);
            let is_gone = |name: &&String| !now.symbols.iter().chain(&now.lines).any(|found| found.2 == **name);
            if let Some(name) = before.symbols.iter().map(|found| &found.2).find(is_gone) {
                let text = call(&mut run, &json!({ "query": name }));
                prop_assert!(text.contains("No matches"), "{}: {}", name, text);
            }
            before = now;
        }
        run.close_stdin();
        run.wait().code(0);
    }
}
