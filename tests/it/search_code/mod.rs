//! `search_code` through the binary: symbols and text, with an index that follows the files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::rig::Home;

mod follows;
mod hostile;
mod processes;

fn search(home: &Home, params: &Value) -> String {
    let text = params.to_string();
    home.zeph(["tools", "call", "search_code", &text])
        .code(0)
        .stdout
}

/// The path of the index.
fn index(home: &Home) -> PathBuf {
    let mut folders = vec![home.data()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.parent().unwrap().ends_with("code-index")
                && path.extension().is_some_and(|ending| ending == "db")
            {
                return path;
            }
        }
    }
    panic!("there is no index");
}

#[track_caller]
fn has(text: &str, words: &[&str], lacks: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is missing:\n{text}");
    }
    for word in lacks {
        assert!(!text.contains(word), "{word:?} is there:\n{text}");
    }
}

/// Proves NAT-5.
#[test]
fn symbols_and_text_follow_the_files() {
    let home = Home::new();
    home.write(
        "src/a.rs",
        "struct Parser;\nimpl Parser {\n    pub fn parse_config(&self) {}\n}\n",
    );
    home.write(
        "src/b.py",
        "def parse(x):\n    return x  # parse_config is elsewhere\n",
    );
    home.write("notes.txt", "parse_config is described here\n");
    let query = json!({"query": "parse_config"});
    let text = search(&home, &query);
    has(
        &text,
        &[
            "src/a.rs:3: method parse_config in Parser: pub fn parse_config(&self) {}",
            "Lines with the text:",
            "notes.txt:1: parse_config is described here",
            "src/b.py:2:",
        ],
        &["partial", "stale"],
    );
    let text = search(&home, &json!({"query": "function parse", "limit": 1}));
    has(
        &text,
        &["src/b.py:1: function parse", "there are more"],
        &["a.rs"],
    );
    has(
        &search(&home, &json!({"query": "Parser::parse"})),
        &["src/a.rs:3: method parse_config in Parser"],
        &["function parse"],
    );
    let text = search(&home, &json!({"query": "fn pc", "path": "src/a.rs"}));
    has(&text, &["method parse_config"], &["b.py"]);
    // Changed, renamed, removed, new.
    home.write("src/a.rs", "\nfn parse_configs() {}\n");
    fs::rename(
        home.project().join("src/b.py"),
        home.project().join("src/c.py"),
    )
    .unwrap();
    home.write("src/d.go", "package d\n\nfunc parse_config() {}\n");
    let text = search(&home, &query);
    has(
        &text,
        &[
            "src/d.go:3: function parse_config",
            "src/a.rs:2: function parse_configs",
            "src/c.py:2:",
        ],
        &["a.rs:3", "b.py"],
    );
    fs::remove_file(home.project().join("src/d.go")).unwrap();
    has(&search(&home, &query), &["parse_configs"], &["d.go"]);
    let none = search(&home, &json!({"query": "zzzz"}));
    has(&none, &["No matches"], &[]);
}

/// Proves NAT-5 in part, FILE-4 in part.
#[test]
fn unreadable_file_is_neither_found_nor_indexed() {
    let home = Home::new();
    home.write("src/open.rs", "fn hidden_thing_open() {}\n");
    home.write("private/key.rs", "fn hidden_thing_key() {}\n");
    home.write(".gitignore", "ignored/\n");
    home.write("ignored/x.rs", "fn hidden_thing_ignored() {}\n");
    let query = json!({"query": "hidden_thing"});
    has(&search(&home, &query), &["open.rs", "key.rs"], &["ignored"]);
    home.config("[tools.file]\ndeny_read = [\"**/private\"]\n");
    has(
        &search(&home, &query),
        &["open.rs"],
        &["key", "private", "ignored"],
    );
    let held = fs::read(index(&home)).unwrap();
    assert!(
        !held
            .windows(20)
            .any(|piece| piece == b"hidden_thing_ignored")
    );
    let denied = json!({"query": "hidden", "path": "private"}).to_string();
    home.zeph(["tools", "call", "search_code", &denied]).code(3);
    let outside = json!({"query": "hidden", "path": "/etc"}).to_string();
    home.zeph(["tools", "call", "search_code", &outside])
        .code(3);
}

/// Proves NAT-5 in part.
#[test]
fn index_is_private_and_rebuilt_if_damaged() {
    let home = Home::new();
    home.write("a.rs", "fn findable() {}\n");
    let query = json!({"query": "findable"});
    let first = search(&home, &query);
    let file = index(&home);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    fs::write(
        &file,
        "no database at all, but long enough to be taken for one".repeat(100),
    )
    .unwrap();
    assert_eq!(search(&home, &query), first);
    let mut held = fs::read(&file).unwrap();
    let half = held.len() / 2;
    held[100..half].fill(0x5a);
    fs::write(&file, held).unwrap();
    assert_eq!(search(&home, &query), first);
}

/// Proves NAT-5 in part.
#[test]
fn invalid_arguments_are_reported() {
    let home = Home::new();
    for (params, words) in [
        (json!({"query": " "}), "query"),
        (json!({"query": "a\nb"}), "query"),
        (json!({"query": "a", "max_results": 0}), "limit"),
    ] {
        let output = home
            .zeph(["tools", "call", "search_code", &params.to_string()])
            .code(1);
        assert!(format!("{output}").contains(words), "{output}");
    }
}
