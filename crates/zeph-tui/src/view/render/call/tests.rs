//! Tests of the lines of calls.

use std::time::Instant;

use serde_json::json;
use zeph_tools::ToolErrorCategory;

use super::*;
use crate::view::OutputTail;

fn call(tool: &str, params: Value) -> Call {
    Call {
        id: "1".to_owned(),
        tool: tool.to_owned(),
        params,
        started: Instant::now(),
        output: OutputTail::default(),
        had_terminal: false,
        result: None,
    }
}

fn with_result(mut call: Call, display: &str) -> Call {
    call.result = Some(CallResult {
        failure: None,
        display: display.to_owned(),
        filter: None,
        changes: Vec::new(),
        duration: Duration::from_millis(5),
    });
    call
}

fn bash(display: &str) -> Call {
    with_result(call("bash", json!({"command": "x"})), display)
}

fn shown(call: &Call, detail: Detail) -> String {
    let lines: Vec<String> = call_result(call, 80, detail)
        .iter()
        .map(ToString::to_string)
        .collect();
    lines.join("\n")
}

fn check(call: &Call, expect: &str) {
    assert_eq!(shown(call, Detail::Excerpt), expect);
}

/// Proves CLI-4b: each call is one line that describes its action.
#[test]
fn title_describes_the_action() {
    let check = |tool, params, width, expect: &str| {
        assert_eq!(call_title(&call(tool, params), width).to_string(), expect);
    };
    check(
        "bash",
        json!({"command": "cargo test\nrm x"}),
        80,
        "● $ cargo test …",
    );
    check(
        "read",
        json!({"path": "src/lib.rs"}),
        80,
        "● Read src/lib.rs",
    );
    check("mcp_x", json!({"path": "a", "n": 1}), 80, "● mcp_x a");
    check("mcp_x", json!({"n": [1]}), 80, "● mcp_x {\"n\":[1]}");
    check("mcp_x", json!({}), 80, "● mcp_x");
    check(
        "bash",
        json!({"command": "echo 漢字漢字"}),
        14,
        "● $ echo 漢字…",
    );
    check(
        "bash",
        json!({"command": "a\u{1b}[2K\r\u{202e}b"}),
        80,
        "● $ a\\u{1b}[2K\\u{d}\\u{202e}b",
    );
}

/// Proves CLI-4: the end of the output is shown while a command runs.
#[test]
fn running_call_shows_its_last_lines() {
    let mut running = call("bash", json!({"command": "x"}));
    check(&running, "");
    running.output.push("10%\r50%\r\x1b[1m100%\x1b[0m\r\n", 0);
    check(&running, "  │ 100%");
    running.output.push("2\n3\n4\n5\n6\n7\n", 0);
    check(
        &running,
        "  │ … 2 earlier lines\n  │ 3\n  │ 4\n  │ 5\n  │ 6\n  │ 7",
    );
    running.had_terminal = true;
    check(&running, "");
}

/// Proves CLI-4b: short results are complete; long ones show their end, their errors and their true length.
#[test]
fn result_shows_its_end_and_its_errors() {
    check(&bash(""), "  ⎿ done");
    check(&bash("one"), "  ⎿ one");
    check(&bash("a\nb"), "  ⎿ a\n    b");
    check(&bash("a\n[exit code: 1]"), "  ⎿ a · exit code: 1");
    check(&bash("[1, 2]"), "  ⎿ [1, 2]");
    check(
        &bash("a\nb\n[exit code: 137] (killed by SIGKILL)"),
        "  ⎿ 2 lines · exit code: 137 (killed by SIGKILL)\n    a\n    b",
    );
    let mut seq = bash("1\n2\n[… lines 3-99998 left out …]\n99999\n100000");
    seq.output.push("1\n", 0);
    seq.output.push("100000\n", 99_998);
    seq.result.as_mut().unwrap().duration = Duration::from_millis(1500);
    let expect = "  ⎿ 100000 lines · 1.5 s\n    … 99995 lines (Ctrl-O expands)\n    1\n    2\n    [… lines 3-99998 left out …]\n    99999\n    100000";
    check(&seq, expect);
    let mut lines = vec!["ok"; 30];
    lines[3] = "error: it broke";
    let long = bash(&lines.join("\n"));
    let last = "\n    ok".repeat(8);
    check(
        &long,
        &format!(
            "  ⎿ 30 lines\n    … 3 lines (Ctrl-O expands)\n    error: it broke\n    … 18 lines{last}"
        ),
    );
    assert_eq!(shown(&long, Detail::Full).lines().count(), 31);
}

#[test]
fn result_of_a_search_is_counted() {
    let read = with_result(call("read", json!({"path": "a"})), &"line\n".repeat(30));
    check(&read, "  ⎿ 30 lines (Ctrl-O expands)");
    assert_eq!(shown(&read, Detail::Full).lines().count(), 31);
    let cached = format!("{}\n{}", zeph_tools::cache::note(12), "line\n".repeat(30));
    let cached = with_result(call("read", json!({"path": "a"})), &cached);
    check(
        &cached,
        "  ⎿ 30 lines (Ctrl-O expands) · from the cache, 12 s old",
    );
}

/// Proves CLI-4c: the result of a call about the task list is not printed, as the list is a block.
#[test]
fn task_list_is_not_printed_twice() {
    let tasks = with_result(call("list_tasks", json!({})), "[{\"id\": \"task_1\"}]");
    check(&tasks, "  ⎿ done");
}

/// Proves OUT-9 for the interfaces: the effect of a filter is shown.
#[test]
fn filter_note_is_shown() {
    let mut filtered = bash("a\nb");
    filtered.output.push(&"x\n".repeat(100), 0);
    filtered.result.as_mut().unwrap().filter = Some(FilterStats {
        rule: "r".to_owned(),
        lines_before: 100,
        lines_after: 2,
        bytes_before: 200,
        bytes_after: 4,
        confidence: "full".to_owned(),
    });
    check(
        &filtered,
        "  ⎿ 100 lines · [shell] 100 lines -> 2 lines, 98.0% filtered\n    … 98 lines (Ctrl-O expands)\n    a\n    b",
    );
}

#[test]
fn failure_shows_its_message_first() {
    let mut failed = bash("it failed\nprinted before");
    failed.result.as_mut().unwrap().failure = Some(ToolErrorCategory::Timeout);
    check(&failed, "  ⎿ it failed\n    printed before");
    failed.had_terminal = true;
    check(&failed, "  ⎿ it failed");
}

/// Proves CLI-4b: a diff is shown once, with bounded length.
#[test]
fn diff_is_shown_once() {
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n";
    let edit = with_result(call("edit", json!({"path": "x"})), diff);
    check(&edit, "  ⎿ changed\n    @@ -1 +1 @@\n    -old\n    +new");
    let long = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n{}", "+a\n".repeat(100));
    let edit = with_result(call("edit", json!({"path": "x"})), &long);
    assert!(shown(&edit, Detail::Excerpt).ends_with("    … 61 more lines (Ctrl-O shows all)"));
}
