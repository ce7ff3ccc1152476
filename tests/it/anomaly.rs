//! Anomaly detection: tools that fail too often are blocked and unblocked.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Terminal, assert_has, audit, results_of};

/// A `read` call for a missing file, and one for an existing file.
const FAILS: &str = r#"{"tool": "read", "params": {"path": "missing.txt"}}"#;
const WORKS: &str = r#"{"tool": "read", "params": {"path": "a.txt"}}"#;

fn home() -> Home {
    let home = Home::new();
    home.write("a.txt", "here\n");
    home
}

/// Runs these lines in one session. Returns the categories of the results, which are empty for success.
fn run(home: &Home, lines: &[&str]) -> (Vec<String>, Vec<Value>, String) {
    let output = home
        .zeph(["tools", "run", "--yes", "-"])
        .stdin(lines.join("\n"))
        .code(0);
    let forms = output.json_lines();
    let categories = forms
        .iter()
        .map(|form| form["error_category"].as_str().unwrap_or("").to_owned())
        .collect();
    (categories, forms, output.stderr)
}

/// Proves PERM-41: at 14 of 20, and not before the window is full.
#[test]
fn frequently_failing_tool_is_blocked() {
    let home = home();
    let lines = [&[WORKS; 6][..], &[FAILS; 15], &[WORKS]].concat();
    let (categories, forms, stderr) = run(&home, &lines);
    assert!(categories[..6].iter().all(String::is_empty));
    assert!(
        categories[6..20]
            .iter()
            .all(|category| category == "permanent_failure"),
        "{categories:?}"
    );
    assert_eq!(categories[20..], ["policy_blocked", "policy_blocked"]);
    let reported = forms[21]["data"].as_str().unwrap();
    assert_has(
        reported,
        &[
            "read is blocked",
            "14 of its last 20 calls failed (70 %)",
            "/tools unblock read",
            "a new session",
        ],
    );
    assert_has(
        &stderr,
        &["read fails too often, 14 of its last 20 calls failed (70 %): it is blocked"],
    );
    assert_eq!(stderr.matches("fails too often").count(), 1, "{stderr}");
    let entries = audit(&home.database());
    assert_eq!(entries[20].result, "blocked");
    assert_eq!(
        entries[20].error_category.as_deref(),
        Some("policy_blocked")
    );
    // Other tools and other sessions are not affected.
    let (categories, ..) = run(&home, &[WORKS, r#"{"tool": "list_tasks"}"#]);
    assert_eq!(categories, ["", ""]);

    let home = self::home();
    let lines = [&[WORKS; 7][..], &[FAILS; 13], &[WORKS]].concat();
    let (categories, _, stderr) = run(&home, &lines);
    assert_eq!(categories[20], "", "13 of 20 is below 0.7");
    assert!(!stderr.contains("too often"), "{stderr}");
}

/// Proves PERM-41: gate refusals and commands that fail are not tool failures.
#[test]
fn refusals_and_commands_that_fail_do_not_count() {
    let home = home();
    home.config("[tools.anomaly]\nwindow_size = 3\nfailure_threshold = 0.5\n");
    let refused = r#"{"tool": "bash", "params": {"command": "rm -rf /"}}"#;
    let red = r#"{"tool": "bash", "params": {"command": "echo 3 tests failed; exit 1"}}"#;
    let unknown = r#"{"tool": "bash", "params": {"command": "no-such-command-here"}}"#;
    let outside = r#"{"tool": "read", "params": {"path": "/etc/hostname"}}"#;
    let wrong = r#"{"tool": "read", "params": {"paths": 1}}"#;
    let lines = [
        &[refused; 5][..],
        &[red; 5],
        &[unknown; 5],
        &[outside; 5],
        &[wrong; 5],
        &[WORKS],
        &[r#"{"tool": "bash", "params": {"command": "true"}}"#],
    ]
    .concat();
    let (categories, _, stderr) = run(&home, &lines);
    assert_eq!(categories[25..], ["", ""], "{categories:?}");
    assert!(!stderr.contains("too often"), "{stderr}");
    // Commands that time out count.
    let slow = r#"{"tool": "bash", "params": {"command": "sleep 60", "timeout_secs": 1}}"#;
    let (categories, ..) = run(&home, &[slow, slow, slow, red]);
    assert_eq!(categories[..3], ["timeout", "timeout", "timeout"]);
    assert_eq!(categories[3], "policy_blocked");
}

/// Proves PERM-41: without `auto_block` the failures are reported and the tool runs; if disabled, nothing is
/// reported.
#[test]
fn anomaly_detector_can_report_only_or_be_off() {
    let check = |setting: &str, reported: usize| {
        let home = home();
        home.config(&format!("[tools.anomaly]\nwindow_size = 2\n{setting}\n"));
        let (categories, _, stderr) = run(&home, &[FAILS, FAILS, FAILS, WORKS]);
        assert_eq!(categories[3], "", "{setting}");
        assert_eq!(stderr.matches("too often").count(), reported, "{stderr}");
    };
    check("auto_block = false", 1);
    check("enabled = false", 0);
}

/// Proves PERM-41: the model reads the reason, the stream has the warning, and the turn continues.
#[test]
fn block_reason_is_sent_to_the_model() {
    let missing = |n: usize| ("read", json!({ "path": format!("missing{n}.txt") }));
    let server = OpenAi::replies([
        Reply::calls("a", &[missing(0), missing(1)]),
        Reply::calls("b", &[missing(2)]),
        Reply::text("I cannot read."),
    ]);
    let home = Home::openai(&server);
    home.more_config("[tools.anomaly]\nwindow_size = 2\n");
    let output = home
        .zeph(["-p", "go", "--output-format", "stream-json"])
        .code(0);
    let results = results_of(&server.last().messages());
    assert_has(&results[1].1, &["category: permanent_failure"]);
    assert_has(
        &results[2].1,
        &["category: policy_blocked", "read is blocked", "100 %"],
    );
    assert_has(&output.stdout, &["read fails too often"]);
}

/// Proves PERM-41, ERR-23: `/tools` shows blocked tools, `/tools unblock NAME` unblocks one, and `/status`
/// counts invalid calls of the model.
#[test]
fn blocked_tool_is_unblocked_by_name() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "read", input = { path = "missing1" } }, { tool = "read", input = { path = "missing2" } }]
        [[steps]]
        text = "It is gone."
        [[steps]]
        calls = [{ tool = "read", input = { path = "a.txt" } }, { tool = "read", input = { pth = 1 } }, { tool = "raed" }]
        [[steps]]
        expect = { tool_result_contains = "here" }
        text = "Now it is there."
        "##,
    );
    home.write("a.txt", "here\n");
    home.more_config("[tools.anomaly]\nwindow_size = 2\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("/tools unblock\r");
    terminal.shows("no tool is");
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("read fails too often, 2 of its last 2 calls failed (100 %)");
    terminal.shows("It is gone.");
    terminal.prompts("");
    terminal.type_keys("/tools\r");
    terminal.shows("[blocked: 2 of its last 2 calls failed");
    terminal.prompts("");
    terminal.type_keys("/tools unblock reed\r");
    terminal.shows("reed is not blocked; /tools unblock NAME takes one of: read");
    terminal.prompts("");
    terminal.type_keys("/tools unblock read\r");
    terminal.shows("read runs again.");
    terminal.prompts("");
    terminal.type_keys("again\r");
    terminal.shows("Now it is there.");
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("Tool calls     3 calls; raed 0.33 (at least 0.00; 1 of 1 invalid), read");
    terminal.leaves();
}

/// Proves PERM-41, CFG-1: bounds are checked with their place, and a project only tightens.
#[test]
fn bounds_are_checked_at_the_start() {
    let home = home();
    let call = ["tools", "call", "list_tasks"];
    for (setting, words) in [
        ("window_size = 0", "window_size"),
        ("failure_threshold = 0", "failure_threshold"),
        ("failure_threshold = 1.1", "failure_threshold"),
        ("failure_threshold = nan", "failure_threshold"),
        ("failure_treshold = 0.5", "failure_threshold"),
    ] {
        home.config(&format!("[tools.anomaly]\n{setting}\n"));
        home.zeph(call).code(2).says(&["config.toml:2", words]);
    }
    home.config("");
    for (setting, words) in [
        ("enabled = false", "may only select a later value"),
        ("auto_block = false", "may only select a later value"),
        ("failure_threshold = 0.8", "may only lower it"),
        ("window_size = 10", "may not set it"),
    ] {
        home.write(
            ".zeph/config.toml",
            &format!("[tools.anomaly]\n{setting}\n"),
        );
        home.zeph(call).code(2).says(&["config.toml:2", words]);
    }
    home.write(
        ".zeph/config.toml",
        "[tools.anomaly]\nfailure_threshold = 0.5\n",
    );
    home.zeph(call).code(0);
}
