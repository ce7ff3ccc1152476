//! Concurrent processes with one index, and processes that are killed while they update it.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{has, index, search};
use crate::rig::{Home, Output, Running, cell, wait_for};

/// The number of files, large enough for a slow first index.
const FILES: usize = 600;

fn name(file: usize, version: usize) -> String {
    format!("thing_{file}_v{version}_end")
}

fn write(home: &Home, file: usize, version: usize) {
    let name = name(file, version);
    let more: String = (0..20)
        .map(|n| format!("fn other_{file}_{n}() {{}}\n"))
        .collect();
    home.write(
        &format!("src/m{}/f{file}.rs", file % 10),
        &format!("{more}fn {name}() {{}}\n"),
    );
}

fn fill(home: &Home) {
    for file in 0..FILES {
        write(home, file, 0);
    }
}

fn start(home: &Home, query: &str) -> Running {
    let params = json!({"query": query, "limit": 500}).to_string();
    home.zeph(["tools", "call", "search_code", &params]).start()
}

/// The output of a call that must succeed without messages.
#[track_caller]
fn said(output: Output) -> String {
    let output = output.code(0);
    for word in ["locked", "damaged", "no symbols", "malformed"] {
        assert!(
            !output.stdout.contains(word) && !output.stderr.contains(word),
            "{output}"
        );
    }
    output.stdout
}

/// Asserts that each name is a symbol of its file.
#[track_caller]
fn has_symbol(text: &str, name: &str) {
    assert!(
        text.contains(&format!(": function {name}: fn {name}()")),
        "{name} in {text}"
    );
}

/// Asserts that the database is intact and each symbol belongs to a file.
fn is_whole(home: &Home) {
    assert_eq!(cell(&index(home), "PRAGMA integrity_check"), "ok");
    let lost = "SELECT CAST(count(*) AS TEXT) FROM symbol WHERE file NOT IN (SELECT id FROM file)";
    assert_eq!(cell(&index(home), lost), "0");
}

/// Proves NAT-5.
#[test]
fn concurrent_processes_share_an_index() {
    let home = Home::new();
    fill(&home);
    let all: Vec<Running> = (0..4).map(|n| start(&home, &name(n, 0))).collect();
    for (n, run) in all.into_iter().enumerate() {
        has_symbol(&said(run.wait()), &name(n, 0));
    }
    // A search that starts after a change sees it, regardless of concurrent updates.
    for version in 1..6 {
        let others: Vec<Running> = (0..2).map(|_| start(&home, "thing_")).collect();
        for file in 0..40 {
            write(&home, file, version);
        }
        let runs: Vec<(usize, Running)> = (0..3)
            .map(|n| (n, start(&home, &name(n, version))))
            .collect();
        for (n, run) in runs {
            let text = said(run.wait());
            has_symbol(&text, &name(n, version));
            has(&text, &[], &["stale"]);
        }
        for other in others {
            said(other.wait());
        }
    }
    is_whole(&home);
    let text = search(&home, &json!({"query": "_v5_end", "limit": 500}));
    for file in 0..40 {
        has_symbol(&text, &name(file, 5));
    }
    has(&text, &[], &["_v4_"]);
}

/// Proves NAT-5.
#[test]
fn kill_during_a_scan_leaves_a_valid_index() {
    let home = Home::new();
    fill(&home);
    let began = Instant::now();
    said(start(&home, "thing_").wait());
    let whole = began.elapsed();
    for round in 1..9_u32 {
        // Half of the rounds start without an index.
        if round % 2 == 0 {
            fs::remove_dir_all(index(&home).parent().unwrap()).unwrap();
        }
        let version = usize::try_from(round).unwrap();
        for file in 0..FILES / 3 {
            write(&home, file, version);
        }
        let began = Instant::now();
        let run = start(&home, "thing_");
        let other = (round % 3 == 0).then(|| start(&home, "thing_"));
        let until = whole * round / 9;
        wait_for("the time to kill it", || {
            (began.elapsed() > until).then_some(())
        });
        run.kill();
        if let Some(other) = other {
            said(other.wait());
        }
        let last = FILES / 3 - 1;
        let text = said(start(&home, &format!("v{version}_end")).wait());
        has_symbol(&text, &name(0, version));
        has_symbol(&text, &name(last, version));
        assert_eq!(text.matches(": function ").count(), FILES / 3, "{text}");
        has(&text, &[], &["stale", "partial"]);
        is_whole(&home);
    }
}

/// A damaged index that other processes have open is not deleted.
///
/// Proves NAT-5 in part.
#[test]
fn damaged_index_is_rebuilt_by_the_next_reader() {
    let home = Home::new();
    for file in 0..50 {
        write(&home, file, 0);
    }
    let mut run = home
        .zeph(["tools", "run", "--yes", "-"])
        .open_stdin("")
        .start();
    let call = |run: &mut Running, query: &str| {
        run.say(&json!({"tool": "search_code", "params": {"query": query}}).to_string());
        run.next_line().unwrap()
    };
    assert!(call(&mut run, &name(7, 0)).contains("function thing_7_v0_end"));
    let file = index(&home);
    let mut held = fs::read(&file).unwrap();
    held.fill(0x5a);
    fs::write(&file, &held).unwrap();
    // At least the text is found, and no result is wrong.
    let began = Instant::now();
    let text = home.zeph([
        "tools",
        "call",
        "search_code",
        &json!({"query": name(9, 0)}).to_string(),
    ]);
    let text = text.code(0).stdout;
    assert!(
        text.contains("thing_9_v0_end") && began.elapsed() < Duration::from_secs(10),
        "{text}"
    );
    write(&home, 7, 1);
    assert!(call(&mut run, &name(7, 1)).contains("thing_7_v1_end"));
    run.close_stdin();
    run.wait().code(0);
    has_symbol(&search(&home, &json!({"query": name(8, 0)})), &name(8, 0));
}
