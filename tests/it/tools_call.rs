//! `zeph tools list`, `show` and `call`: tools without a model, through all gates.

use serde_json::{Value, json};

use crate::rig::{Home, assert_has, audit, session_ids};

/// The JSON result of a call with `--yes`.
#[track_caller]
pub(crate) fn call(home: &Home, tool: &str, params: &Value) -> Value {
    home.zeph([
        "tools",
        "call",
        tool,
        &params.to_string(),
        "--json",
        "--yes",
    ])
    .run()
    .json()
}

/// Proves ERR-5, CLI-2a.
#[test]
fn json_result_of_a_success_has_every_field() {
    let home = Home::new();
    home.write("notes.txt", "one\ntwo\n");
    let params = json!({ "path": "notes.txt" }).to_string();
    let output = home
        .zeph(["tools", "call", "read", &params, "--json"])
        .code(0);
    let form = output.json();
    let names: Vec<_> = form
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expect = [
        "tool",
        "session",
        "success",
        "data",
        "error_message",
        "error_type",
        "error_category",
        "display",
        "raw_response",
        "filter",
        "cached",
        "metadata",
    ];
    assert_eq!(names, expect);
    assert_eq!(form["tool"], "read");
    assert_eq!(form["success"], true);
    assert_has(form["data"].as_str().unwrap(), &["one", "two"]);
    assert_eq!(form["error_message"], Value::Null);
    assert_eq!(form["error_type"], "none");
    assert_eq!(form["error_category"], Value::Null);
    assert_eq!(form["cached"], false);
    assert!(form["metadata"]["timestamp"].as_i64().unwrap() > 1_600_000_000_000);
    assert!(form["metadata"]["execution_time_ms"].is_u64());
    let size = form["data"].as_str().unwrap().len();
    assert_eq!(form["metadata"]["data_size_bytes"], size);
    assert_eq!(
        session_ids(&home.database()),
        [form["session"].as_str().unwrap()]
    );
}

/// Proves ERR-5, CLI-2a.
#[test]
fn each_failure_has_its_category_and_exit_code() {
    let home = Home::new();
    let check = |tool: &str, params: Value, exit: i32, category: &str, kind: &str| {
        let params = params.to_string();
        let output = home
            .zeph(["tools", "call", tool, &params, "--json"])
            .code(exit);
        let form = output.json();
        assert_eq!(form["success"], false, "{output}");
        assert_eq!(form["error_category"], category, "{output}");
        assert_eq!(form["error_type"], kind, "{output}");
        let message = form["error_message"].as_str().unwrap();
        assert!(!message.is_empty());
        let data = form["data"].as_str().unwrap();
        assert!(
            data.starts_with(&format!("[tool_error]\ncategory: {category}\nerror: ")),
            "{data}"
        );
        assert_has(data, &["\nsuggestion: ", "\nretryable: false"]);
    };
    check("reed", json!({}), 1, "tool_not_found", "not_found");
    check(
        "read",
        json!({}),
        1,
        "invalid_parameters",
        "validation_failed",
    );
    check(
        "read",
        json!({ "path": 5 }),
        1,
        "type_mismatch",
        "validation_failed",
    );
    check(
        "read",
        json!({ "path": "none.txt" }),
        1,
        "permanent_failure",
        "not_found",
    );
    check(
        "read",
        json!({ "path": "/etc/passwd" }),
        3,
        "policy_blocked",
        "permission_denied",
    );
    let write = json!({ "path": "new.txt", "content": "x" });
    check(
        "write",
        write,
        3,
        "confirmation_required",
        "permission_denied",
    );
    let nope = json!({ "command": "no-such-program-here" });
    check(
        "bash",
        nope.clone(),
        3,
        "confirmation_required",
        "permission_denied",
    );
    let failed = home
        .zeph([
            "tools",
            "call",
            "bash",
            &nope.to_string(),
            "--json",
            "--yes",
        ])
        .code(1);
    assert_eq!(
        failed.json()["error_category"],
        "permanent_failure",
        "{failed}"
    );
    assert_eq!(failed.json()["raw_response"]["exit_code"], 127, "{failed}");

    // Arguments that are not JSON.
    let form = home
        .zeph(["tools", "call", "read", "path=x", "--json"])
        .code(2)
        .json();
    assert_eq!(form["error_category"], "invalid_parameters");
    assert_eq!(form["error_type"], "parse_error");
}

/// Proves CLI-2a, SH-5: a command's own exit code is a result.
#[test]
fn exit_code_of_a_command_is_in_its_envelope() {
    let home = Home::new();
    let form = call(
        &home,
        "bash",
        &json!({ "command": "echo out; echo err >&2; exit 7" }),
    );
    assert_eq!(form["success"], true, "{form}");
    assert_eq!(form["raw_response"]["exit_code"], 7);
    assert_eq!(form["raw_response"]["stdout"], "out\n");
    assert_eq!(form["raw_response"]["stderr"], "err\n");
    assert_has(
        form["data"].as_str().unwrap(),
        &["out", "err", "[exit code: 7]"],
    );
}

/// Proves PERM-2, EXE-21, CLI-2a.
#[test]
fn question_without_yes_is_an_audited_refusal() {
    let home = Home::new();
    let params = json!({ "path": "new.txt", "content": "x" }).to_string();
    let denied = home.zeph(["tools", "call", "write", &params]).code(3);
    denied.prints(&["category: confirmation_required", "--yes"]);
    assert!(!home.has("new.txt"), "it did not run");
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(
        (entries[0].tool.as_str(), entries[0].result.as_str()),
        ("write", "blocked")
    );
    assert_eq!(
        entries[0].error_category.as_deref(),
        Some("confirmation_required")
    );

    home.zeph(["tools", "call", "write", &params, "--yes"])
        .code(0);
    assert_eq!(home.read("new.txt"), "x");
    let entries = audit(&home.database());
    assert_eq!(entries.last().unwrap().result, "success", "{entries:?}");
    assert_eq!(entries.last().unwrap().approved_by, "user");
}

/// Proves PERM-8, CLI-2a: `--yes` approves, but lifts no denial.
#[test]
fn yes_overrides_no_denial() {
    let home = Home::new();
    let write = json!({ "path": "new.txt", "content": "x" }).to_string();
    let plan = ["tools", "call", "write", &write, "--yes", "--mode", "plan"];
    home.zeph(plan)
        .code(3)
        .prints(&["policy_blocked", "plan mode"]);
    assert!(!home.has("new.txt"));
    let outside = json!({ "path": home.root().join("outside.txt"), "content": "x" }).to_string();
    home.zeph(["tools", "call", "write", &outside, "--yes"])
        .code(3)
        .prints(&["policy_blocked"]);
    assert!(!home.root().join("outside.txt").exists());
}

/// Proves CLI-2a.
#[test]
fn unknown_session_is_created() {
    let home = Home::new();
    let args = [
        "tools",
        "call",
        "add_task",
        r#"{"content": "a"}"#,
        "--session",
        "mine",
        "--json",
    ];
    assert_eq!(home.zeph(args).code(0).json()["session"], "mine");
    assert_eq!(session_ids(&home.database()), ["mine"]);
    let again = ["tools", "call", "list_tasks", "--session", "mine"];
    home.zeph(again).code(0).prints(&["task_1"]);
    home.zeph(["tools", "call", "list_tasks", "--session", "other"])
        .code(0)
        .prints(&["empty"]);
}

#[test]
fn arguments_can_come_from_standard_input() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    let run = home
        .zeph(["tools", "call", "read", "-"])
        .stdin(r#"{"path": "a.txt"}"#);
    run.code(0).prints(&["hello"]);
}

/// Proves EXE-7: equal sets render to equal bytes, in one order.
#[test]
fn lists_are_sorted_and_stable() {
    let home = Home::new();
    let list = || home.zeph(["tools", "list"]).code(0).stdout;
    let first = list();
    assert_eq!(first, list());
    let names: Vec<_> = first
        .lines()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert!(names.is_sorted(), "{names:?}");
    for tool in [
        "bash",
        "edit",
        "find_path",
        "grep",
        "list_directory",
        "read",
        "write",
    ] {
        assert!(names.contains(&tool), "{tool} is not in {names:?}");
    }
    assert!(
        !names.contains(&"glob") && !names.contains(&"read_file"),
        "aliases are hidden"
    );

    let catalog = home.zeph(["tools", "list", "--catalog"]).code(0).stdout;
    assert!(
        catalog.starts_with("<tools>") && catalog.trim_end().ends_with("</tools>"),
        "{catalog}"
    );
    assert_has(&catalog, &names);
    assert_has(&catalog, &["```bash"]);
}

/// Proves EXE-14.
#[test]
fn tool_definitions_are_small() {
    let home = Home::new();
    let tools = home.zeph(["tools", "list", "--json"]).code(0).json();
    let wire: Vec<_> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| json!({ "type": "function", "function": tool }))
        .collect();
    let bytes = serde_json::to_vec(&wire).unwrap().len();
    assert!(bytes <= 7 * 1024, "{bytes} bytes of definitions");
}

/// Proves EXE-1.
#[test]
fn show_prints_the_definition_of_a_tool() {
    let home = Home::new();
    let def = home.zeph(["tools", "show", "write"]).code(0).json();
    assert_eq!(def["id"], "write", "{def:#}");
    assert_eq!(def["annotations"]["read_only"], false, "{def:#}");
    assert_eq!(
        def["parameters"]["required"],
        json!(["path", "content"]),
        "{def:#}"
    );
    let def = home.zeph(["tools", "show", "grep"]).code(0).json();
    assert_eq!(def["annotations"]["read_only"], true, "{def:#}");
    home.zeph(["tools", "show", "raed"])
        .code(1)
        .says(&["raed", "read"]);
}

/// Proves CLI-3: a closed pipe is not an error.
#[test]
fn closed_pipe_is_silent() {
    let home = Home::new();
    for args in [
        &["tools", "list"][..],
        &["tools", "list", "--json"],
        &["config", "init", "--print"],
    ] {
        let output = home.zeph(args).closed_stdout().run();
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{args:?}: {output}"
        );
    }
    // The exit code of a call still reports its outcome.
    home.zeph(["tools", "call", "bash", r#"{"command": "touch ran"}"#])
        .closed_stdout()
        .code(3);
    assert!(!home.has("ran"));
}

/// Proves CLI-2a, SH-6: a command that ran was not refused by a gate, regardless of its exit code.
#[test]
fn command_that_cannot_be_executed_is_not_a_gate_refusal() {
    let home = Home::new();
    let params = json!({ "command": "exit 126" }).to_string();
    let output = home
        .zeph(["tools", "call", "bash", &params, "--json", "--yes"])
        .code(1);
    let form = output.json();
    assert_eq!(form["error_category"], "policy_blocked");
    assert_eq!(form["raw_response"]["exit_code"], 126);
}

/// Proves ERR-5: an existing path of the wrong kind is not reported as missing.
#[test]
fn working_directory_that_is_a_file_is_not_missing() {
    let home = Home::new();
    home.write("file", "");
    let check = |cwd: &str, kind: &str| {
        let form = call(&home, "bash", &json!({ "command": "pwd", "cwd": cwd }));
        assert_eq!(form["error_category"], "permanent_failure", "{form:#}");
        assert_eq!(form["error_type"], kind, "{form:#}");
    };
    check("file", "io_error");
    check("none", "not_found");
}

/// Proves FILE-4, FILE-26, FILE-27: the read rules apply in the binary, a project's rules are added to the
/// user's, and an invalid glob stops the start.
#[test]
fn read_rules_apply_and_are_checked() {
    let home = Home::new();
    home.config("[tools.file]\ndeny_read = ['~/.ssh', '**/*.pem']\n");
    home.write(
        ".zeph/config.toml",
        "[tools.file]\ndeny_read = ['**/vault']\n",
    );
    home.write("vault/f", "hidden-1");
    home.write("key.pem", "hidden-2");
    home.write("open", "shown");
    for (tool, params) in [
        ("read", json!({ "path": "vault/f" })),
        ("read", json!({ "path": "key.pem" })),
        (
            "move_path",
            json!({ "source": "key.pem", "destination": "key" }),
        ),
        (
            "copy_path",
            json!({ "source": "vault", "destination": "copy" }),
        ),
    ] {
        let form = call(&home, tool, &params);
        assert_eq!(form["error_category"], "policy_blocked", "{form}");
        assert_has(&form.to_string(), &["deny_read"]);
        assert!(!form.to_string().contains("hidden-"), "{form}");
    }
    let form = call(&home, "grep", &json!({ "pattern": "hidden|shown" }));
    assert_eq!(form["data"], "open:1:shown", "{form}");
    let ends = json!({ "source": "open", "destination": "new/open" });
    assert_eq!(call(&home, "move_path", &ends)["success"], true);
    assert_eq!(home.read("new/open"), "shown");
    let gone = call(&home, "delete_path", &json!({ "path": "new" }));
    assert_eq!(gone["success"], true, "{gone}");
    assert!(!home.has("new") && home.has("key.pem") && home.has("vault/f"));

    home.config("[tools.file]\ndeny_read = ['secrets/**']\n");
    let output = home.zeph(["tools", "list"]).code(2);
    assert_has(
        &output.stderr,
        &[
            "config.toml:2:13",
            "deny_read",
            "secrets/**",
            "begin it with",
        ],
    );
}
