//! Several calls in one response: concurrent readers, mutations in order, results in call order.

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, assert_has, results_of};

/// Proves EXE-12.
#[test]
fn batch_with_a_mutation_runs_in_order() {
    let server = OpenAi::replies([
        Reply::calls(
            "a",
            &[
                ("bash", json!({ "command": "sleep 0.2; echo one > a.txt" })),
                ("read", json!({ "path": "a.txt" })),
                ("bash", json!({ "command": "echo two > a.txt" })),
                ("read", json!({ "path": "a.txt" })),
            ],
        ),
        Reply::text("ok"),
    ]);
    let home = Home::openai(&server);
    home.zeph(["--yes", "-p", "go"]).code(0);
    let results = results_of(&server.last().messages());
    assert_has(&results[1].1, &["one"]);
    assert_has(&results[3].1, &["two"]);
}

/// Proves EXE-12: results are in call order, regardless of the order in which readers end.
#[test]
fn results_of_readers_are_in_call_order() {
    let home_files: Vec<_> = (0..12).map(|n| format!("{n}.txt")).collect();
    let calls: Vec<_> = home_files
        .iter()
        .map(|name| ("read", json!({ "path": name })))
        .collect();
    let server = OpenAi::replies([Reply::calls("r", &calls), Reply::text("ok")]);
    let home = Home::openai(&server);
    for (n, name) in home_files.iter().enumerate() {
        // The first files are the long ones.
        let lines = if n < 4 { 1500 } else { 1 };
        home.write(name, &format!("file {n} begins\n").repeat(lines));
    }
    home.zeph(["-p", "go"]).code(0);
    for (n, (id, content)) in results_of(&server.last().messages()).iter().enumerate() {
        assert_eq!(*id, format!("call_r_{n}"));
        assert_has(content, &[&format!("file {n} begins")]);
    }
}

/// Proves EXE-12: the second reader starts before the first one has ended.
#[test]
fn readers_run_concurrently() {
    let calls: Vec<_> = (0..6)
        .map(|n| {
            (
                "grep",
                json!({ "pattern": format!("word{n}"), "path": "." }),
            )
        })
        .collect();
    let server = OpenAi::replies([Reply::calls("g", &calls), Reply::text("ok")]);
    let home = Home::openai(&server);
    for n in 0..200 {
        home.write(
            &format!("dir{n}/file.txt"),
            &"word0 word1 word5\n".repeat(50),
        );
    }
    let events = home
        .zeph(["-p", "go", "--output-format", "stream-json"])
        .code(0)
        .json_lines();
    let types: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .filter(|kind| kind.starts_with("tool_"))
        .collect();
    let begun = types
        .iter()
        .take_while(|kind| **kind == "tool_started")
        .count();
    assert!(begun >= 2, "{types:?}");

    // Readers run one at a time if so configured.
    let server = OpenAi::replies([Reply::calls("g", &calls), Reply::text("ok")]);
    home.config(&crate::rig::openai_config(&server.url()));
    let args = ["-p", "go", "--output-format", "stream-json"];
    let one = home
        .zeph(args)
        .args(["--set", "agent.max_parallel_calls=1"])
        .code(0)
        .json_lines();
    let types: Vec<_> = one
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .filter(|kind| kind.starts_with("tool_"))
        .collect();
    assert_eq!(types, ["tool_started", "tool_finished"].repeat(6));
}
