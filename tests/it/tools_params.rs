//! Invalid arguments, which are repaired or refused with a helpful message.

use serde_json::{Value, json};

use crate::rig::{Home, assert_has, audit};
use crate::tools_call::call;

/// Proves EXE-8, D-30.
#[test]
fn invalid_argument_is_refused_and_its_field_named() {
    let home = Home::new();
    home.write("a.txt", "a\n");
    let check = |tool: &str, params: Value, category: &str, words: &[&str]| {
        let form = call(&home, tool, &params);
        assert_eq!(form["success"], false, "{form:#}");
        assert_eq!(form["error_category"], category, "{form:#}");
        assert_has(form["data"].as_str().unwrap(), words);
    };
    let (invalid, mismatch) = ("invalid_parameters", "type_mismatch");
    check("read", json!({}), invalid, &["/path", "missing"]);
    check(
        "read",
        json!({ "path": ["a.txt"] }),
        mismatch,
        &["/path", "string", "array"],
    );
    check(
        "read",
        json!({ "path": "a.txt", "limit": "x" }),
        mismatch,
        &["/limit", "integer", "\"x\""],
    );
    check(
        "read",
        json!({ "path": "a.txt", "offset": 0 }),
        invalid,
        &["/offset", "at least 1"],
    );
    check(
        "read",
        json!({ "path": "a.txt", "limt": 1 }),
        invalid,
        &["/limt", "limit"],
    );
    check(
        "bash",
        json!({ "command": "touch ran", "tiemout_secs": 1 }),
        invalid,
        &["timeout_secs"],
    );
    assert!(!home.has("ran"), "nothing runs before its arguments fit");
    check("read", json!([1]), mismatch, &["object", "array"]);
}

/// Proves EXE-8a: unambiguous faults are repaired, and noted in display and audit.
#[test]
fn repairs_unambiguous_arguments_and_reports_them() {
    let home = Home::new();
    home.write("a.txt", "one\ntwo\nthree\n");
    let check = |tool: &str, params: Value, data: &str, note: &str| {
        let form = call(&home, tool, &params);
        assert_eq!(form["success"], true, "{form:#}");
        assert_has(form["data"].as_str().unwrap(), &[data]);
        assert_has(form["display"].as_str().unwrap(), &["repaired", note]);
        assert!(
            !form["data"].as_str().unwrap().contains("repaired"),
            "{form:#}"
        );
        let entry = audit(&home.database()).pop().unwrap();
        assert_has(&entry.repairs.to_string(), &[note]);
        entry
    };
    let entry = check(
        "read",
        json!({ "file_path": "a.txt" }),
        "three",
        "`file_path`",
    );
    assert_eq!(
        entry.call["path"], "a.txt",
        "the audit has what ran: {entry:?}"
    );
    check(
        "read",
        json!({ "path": "a.txt", "limit": "1" }),
        "one",
        "/limit",
    );
    check(
        "read",
        json!({ "path": "a.txt", "limit": null }),
        "two",
        "/limit",
    );
    check("bash", json!({ "cmd": "echo mended" }), "mended", "`cmd`");
    let quoted = Value::String(json!({ "path": "a.txt" }).to_string());
    check("read", quoted, "one", "JSON string");
}

/// Proves D-1, EXE-7.
#[test]
fn tool_aliases_work() {
    let home = Home::new();
    home.write("src/lib.rs", "fn main() {}\n");
    let form = call(&home, "glob", &json!({ "path": ".", "pattern": "**/*.rs" }));
    assert_has(form["data"].as_str().unwrap(), &["src/lib.rs"]);
    let form = call(&home, "glob", &json!({ "pattern": "**/*.rs" }));
    assert_has(form["data"].as_str().unwrap(), &["src/lib.rs"]);
    let form = call(&home, "find_path", &json!({ "pattern": "**/*.rs" }));
    assert_eq!(form["error_category"], "invalid_parameters");
    let form = call(&home, "read_file", &json!({ "path": "src/lib.rs" }));
    assert_has(form["data"].as_str().unwrap(), &["fn main"]);
    let tools: Vec<_> = audit(&home.database())
        .into_iter()
        .map(|entry| entry.tool)
        .collect();
    assert_eq!(tools, ["find_path", "find_path", "find_path", "read"]);
}

/// Proves EXE-9: an unknown tool is reported with similar names.
#[test]
fn unknown_tool_lists_similar_names() {
    let home = Home::new();
    let form = call(&home, "raed", &json!({}));
    assert_eq!(form["error_category"], "tool_not_found");
    assert_has(form["data"].as_str().unwrap(), &["raed", "read"]);
    let entry = audit(&home.database()).pop().unwrap();
    assert_eq!(
        entry.error_category.as_deref(),
        Some("tool_not_found"),
        "{entry:?}"
    );
}

/// Proves NAT-4.
#[test]
fn tasks_are_stored_with_the_session() {
    let home = Home::new();
    let task = |tool: &str, params: Value| {
        let params = params.to_string();
        let args = ["tools", "call", tool, &params, "--session", "s1"];
        home.zeph([&args[..], &["--json", "--yes"]].concat())
            .run()
            .json()
    };
    assert_has(
        task("add_task", json!({ "content": "dig" }))["data"]
            .as_str()
            .unwrap(),
        &["task_1"],
    );
    assert_has(
        task("add_task", json!({ "content": "fill" }))["data"]
            .as_str()
            .unwrap(),
        &["task_2"],
    );
    let done = json!({ "task_id": "task_1", "status": "in_progress" });
    assert_eq!(task("update_task", done)["success"], true);
    let list = task("list_tasks", json!({}));
    let lines: Vec<_> = list["data"].as_str().unwrap().lines().collect();
    assert_eq!(lines, ["task_1 [in_progress] dig", "task_2 [pending] fill"]);
    assert_has(list["display"].as_str().unwrap(), &["dig", "fill"]);
    let longest = task("add_task", json!({ "content": "ü".repeat(4000) }));
    assert_eq!(longest["success"], true);
    for length in [4001, 60_000] {
        let long = task("add_task", json!({ "content": "ü".repeat(length) }));
        assert_eq!(long["error_category"], "invalid_parameters", "{long}");
        assert_has(
            long["error_message"].as_str().unwrap(),
            &[&format!("{length} characters"), "limit 4000"],
        );
        let later = task(
            "scheduler",
            json!({ "task": "dig", "when": "9".repeat(length) }),
        );
        assert_eq!(later["error_category"], "invalid_parameters", "{later}");
        let message = later["error_message"].as_str().unwrap();
        assert_has(message, &["/when", "at most 200 characters"]);
        assert!(message.len() < 1000, "{message}");
    }
    let later = task(
        "scheduler",
        json!({ "task": "x".repeat(100_000), "when": "now" }),
    );
    assert_has(
        later["error_message"].as_str().unwrap(),
        &["/task", "at most 16384 bytes"],
    );

    let unknown = task(
        "update_task",
        json!({ "task_id": "task_9", "status": "completed" }),
    );
    assert_eq!(unknown["success"], false);
    assert_has(unknown["error_message"].as_str().unwrap(), &["task_9"]);
    let status = task(
        "update_task",
        json!({ "task_id": "task_1", "status": "finished" }),
    );
    assert_eq!(status["error_category"], "invalid_parameters");
    assert_has(
        status["error_message"].as_str().unwrap(),
        &["finished", "completed", "pending"],
    );
}

#[test]
fn current_time_has_an_offset() {
    let home = Home::new();
    let form = call(&home, "get_current_time", &json!({}));
    let data = form["data"].as_str().unwrap();
    let time = data
        .split_whitespace()
        .find(|word| word.contains('T') && word.len() > 18);
    let time = time.unwrap_or_else(|| panic!("{form:#}"));
    let time: jiff::Timestamp = time.split('[').next().unwrap().parse().unwrap();
    let now = jiff::Timestamp::now();
    assert!(
        now.duration_since(time).as_secs().abs() < 60,
        "{time} is not about {now}"
    );
}
