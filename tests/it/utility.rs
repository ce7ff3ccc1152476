//! The utility gate: skipped calls, exempt calls, and the messages about them.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Terminal, assert_has, audit, results_of};

const ON: &str = "[tools.utility]\nenabled = true\n";

fn read(path: &str) -> (&'static str, Value) {
    ("read", json!({ "path": path }))
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

/// Runs these calls of the model, one per response, and returns their results.
fn run(config: &str, calls: &[(&'static str, Value)]) -> (Home, Vec<String>) {
    let mut replies: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(n, call)| Reply::calls(&n.to_string(), std::slice::from_ref(call)))
        .collect();
    replies.push(Reply::text("Done."));
    let server = OpenAi::replies(replies);
    let home = Home::openai(&server);
    home.more_config(config);
    home.write("a.txt", "alpha\n");
    home.write("b.txt", "beta\n");
    home.zeph(["--yes", "-p", "go"]).code(0);
    let results = results_of(&server.last().messages());
    (home, results.into_iter().map(|(_, text)| text).collect())
}

fn is_skipped(text: &str) -> bool {
    text.contains("skipped: its utility is")
}

/// Proves PERM-42: a result that was returned twice is not returned again; the refusal has the reason and the
/// numbers.
#[test]
fn repeated_call_is_skipped() {
    let calls = [
        read("a.txt"),
        read("a.txt"),
        read("b.txt"),
        read("a.txt"),
        read("b.txt"),
    ];
    let (home, texts) = run(ON, &calls);
    let skipped: Vec<_> = texts.iter().map(|text| is_skipped(text)).collect();
    assert_eq!(skipped, [false, false, false, true, false], "{texts:#?}");
    assert_has(
        &texts[3],
        &[
            "category: policy_blocked",
            "gain 0.80",
            "redundancy 0.",
            "exploration 0.25",
            "below 0.00 ([tools.utility] threshold)",
            "the same output 2 times",
        ],
    );
    let entry = &audit(&home.database())[3];
    assert_eq!(entry.result, "blocked");
    assert_eq!(entry.error_category.as_deref(), Some("policy_blocked"));
    assert_eq!(entry.call, json!({ "path": "a.txt" }));
}

/// Proves PERM-42: off by default.
#[test]
fn utility_gate_is_off_by_default() {
    let calls = [
        read("a.txt"),
        read("a.txt"),
        read("b.txt"),
        read("a.txt"),
        read("a.txt"),
    ];
    let (_, texts) = run("", &calls);
    assert!(!texts.iter().any(|text| is_skipped(text)), "{texts:#?}");
}

/// Proves PERM-42: after a change, another read is useful.
#[test]
fn change_permits_another_read() {
    let calls = [
        read("a.txt"),
        read("a.txt"),
        bash("echo more >> b.txt"),
        read("a.txt"),
        read("a.txt"),
        read("b.txt"),
        read("a.txt"),
    ];
    let (_, texts) = run(ON, &calls);
    let skipped: Vec<_> = texts.iter().map(|text| is_skipped(text)).collect();
    assert_eq!(
        skipped,
        [false, false, false, false, false, false, true],
        "{texts:#?}"
    );
}

/// Proves PERM-42: also after `/undo`, which is not a call.
#[test]
fn undo_permits_another_read() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "read", input = { path = "a.txt" } }]
        [[steps]]
        calls = [{ tool = "edit", input = { path = "a.txt", old_string = "alpha", new_string = "beta" } }]
        [[steps]]
        calls = [{ tool = "read", input = { path = "a.txt" } }]
        [[steps]]
        calls = [{ tool = "read", input = { path = "a.txt" } }]
        [[steps]]
        expect = { tool_result_contains = "beta" }
        text = "It says beta."
        [[steps]]
        calls = [{ tool = "read", input = { path = "a.txt" } }]
        [[steps]]
        expect = { tool_result_contains = "alpha" }
        text = "It is as it was."
        "##,
    );
    home.more_config(ON);
    home.write("a.txt", "alpha\n");
    let mut terminal = Terminal::start(&home, &["--yes"]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("It says beta.");
    terminal.prompts("");
    terminal.type_keys("/undo\r");
    terminal.prompts("");
    terminal.type_keys("look\r");
    terminal.shows("It is as it was.");
    terminal.leaves();
}

/// Proves PERM-42: also after a command that the user typed, which no gate judges.
#[test]
fn typed_command_permits_another_read() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "read", input = { path = "a.txt" } }]
        [[steps]]
        calls = [{ tool = "read", input = { path = "a.txt" } }]
        [[steps]]
        expect = { tool_result_contains = "alpha" }
        text = "It says alpha."
        [[steps]]
        calls = [{ tool = "read", input = { path = "a.txt" } }]
        [[steps]]
        expect = { tool_result_contains = "beta" }
        text = "Now it has changed."
        "##,
    );
    home.more_config(ON);
    home.write("a.txt", "alpha\n");
    let mut terminal = Terminal::start(&home, &["--yes"]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("It says alpha.");
    terminal.prompts("");
    terminal.type_keys("!echo beta > a.txt\r");
    terminal.prompts("");
    terminal.type_keys("look\r");
    terminal.shows("Now it has changed.");
    terminal.leaves();
}

/// Proves PERM-42: changes and exempt tools are never skipped by their score. All other calls are, below a
/// threshold that no score reaches.
#[test]
fn side_effects_and_exempt_tools_are_not_skipped() {
    let config = format!("{ON}threshold = 1.0\nexempt_tools = [\"grep\"]\n");
    let calls = [
        bash("echo 1 >> ran.txt"),
        bash("echo 1 >> ran.txt"),
        ("write", json!({ "path": "new.txt", "content": "x" })),
        ("add_task", json!({ "content": "think" })),
        ("grep", json!({ "pattern": "alpha" })),
        read("a.txt"),
        ("list_directory", json!({ "path": "." })),
    ];
    let (home, texts) = run(&config, &calls);
    let skipped: Vec<_> = texts.iter().map(|text| is_skipped(text)).collect();
    assert_eq!(
        skipped,
        [false, false, false, false, false, true, true],
        "{texts:#?}"
    );
    assert_eq!(home.read("ran.txt"), "1\n1\n");
    assert_has(&texts[5], &["below 1.00", "redundancy 0.00"]);
    assert!(!texts[5].contains("the same output"), "{}", texts[5]);
}

/// Proves PERM-42: calls of the user run.
#[test]
fn user_calls_are_never_skipped() {
    let home = Home::new();
    home.config(&format!("{ON}threshold = 1.0\n"));
    home.write("a.txt", "alpha\n");
    let line = r#"{"tool": "read", "params": {"path": "a.txt"}}"#;
    let output = home
        .zeph(["tools", "run", "-"])
        .stdin([line; 5].join("\n"))
        .code(0);
    let forms = output.json_lines();
    assert!(forms.iter().all(|form| form["success"] == true), "{output}");
    home.zeph(["tools", "call", "read", r#"{"path": "a.txt"}"#])
        .code(0);
}

/// Proves PERM-42, CFG-1: a threshold that is out of range or not a number stops the start, and a project
/// cannot disable the gate.
#[test]
fn settings_are_checked_at_the_start() {
    let home = Home::new();
    let call = ["tools", "call", "list_tasks"];
    for threshold in ["nan", "inf", "-inf", "1.01", "-2", "\"high\""] {
        home.config(&format!("{ON}threshold = {threshold}\n"));
        home.zeph(call)
            .code(2)
            .says(&["config.toml:3", "threshold"]);
    }
    home.config(ON);
    for (setting, words) in [
        ("enabled = false", "may only select a later value"),
        ("threshold = -1.0", "may not set it"),
        ("exempt_tools = [\"read\"]", "may only remove items"),
    ] {
        home.write(
            ".zeph/config.toml",
            &format!("[tools.utility]\n{setting}\n"),
        );
        home.zeph(call).code(2).says(&["config.toml:2", words]);
    }
    home.config("");
    home.write(".zeph/config.toml", ON);
    home.zeph(call).code(0);
}
