//! `zeph tools run`: a script of calls, in order, in one session.

use serde_json::json;

use crate::rig::{Home, assert_has, audit, session_ids};

/// Proves CLI-2a.
#[test]
fn script_runs_in_order_in_one_session() {
    let home = Home::new();
    let lines = [
        json!({ "tool": "write", "params": { "path": "a.txt", "content": "one\n" } }),
        json!({ "tool": "edit", "params": { "path": "a.txt", "old_string": "one", "new_string": "two" } }),
        json!({ "tool": "bash", "params": { "command": "cat a.txt" } }),
        json!({ "tool": "nothing" }),
        json!({ "tool": "list_tasks" }),
    ];
    let script = lines.map(|line| line.to_string()).join("\n\n");
    let output = home.zeph(["tools", "run", "--yes"]).stdin(script).code(0);
    let forms = output.json_lines();
    let outcomes: Vec<_> = forms
        .iter()
        .map(|form| {
            (
                form["tool"].as_str().unwrap(),
                form["success"].as_bool().unwrap(),
            )
        })
        .collect();
    let expect = [
        ("write", true),
        ("edit", true),
        ("bash", true),
        ("nothing", false),
        ("list_tasks", true),
    ];
    assert_eq!(outcomes, expect, "{output}");
    assert_eq!(forms[2]["raw_response"]["stdout"], "two\n");
    let sessions = session_ids(&home.database());
    assert_eq!(sessions.len(), 1);
    assert!(
        forms
            .iter()
            .all(|form| form["session"] == sessions[0].as_str())
    );
    let audited: Vec<_> = audit(&home.database())
        .into_iter()
        .map(|entry| entry.tool)
        .collect();
    assert_eq!(audited, ["write", "edit", "bash", "nothing", "list_tasks"]);
}

/// Proves CLI-2a: an invalid line ends the script; the lines before it ran.
#[test]
fn invalid_line_ends_the_script() {
    let home = Home::new();
    let check = |bad: &str, kind: &str, words: &[&str]| {
        let home = Home::new();
        let good = r#"{"tool": "write", "params": {"path": "a.txt", "content": "x"}}"#;
        let after = r#"{"tool": "write", "params": {"path": "b.txt", "content": "x"}}"#;
        let run = home
            .zeph(["tools", "run", "-", "--yes"])
            .stdin(format!("{good}\n{bad}\n{after}\n"));
        let output = run.code(2).says(&["line 2"]).says(words);
        assert_eq!(output.json_lines().len(), 2, "{output}");
        assert_eq!(output.json_lines()[1]["error_type"], kind, "{output}");
        assert!(home.has("a.txt") && !home.has("b.txt"), "{output}");
    };
    check("not json", "parse_error", &["JSON"]);
    check("[1, 2]", "validation_failed", &["object"]);
    let wrong = "validation_failed";
    check(r#"{"toool": "read"}"#, wrong, &["tool", "params"]);
    check(
        r#"{"tool": "read", "parms": {}}"#,
        wrong,
        &["parms", "params"],
    );
    check(r#"{"tool": 5}"#, wrong, &["tool"]);
    home.zeph(["tools", "run", "missing.jsonl"])
        .code(2)
        .says(&["missing.jsonl", "cannot be read"]);
}

/// Proves CLI-2a: output appears line by line, so that a program can react to it.
#[test]
fn script_file_is_executed_completely() {
    let home = Home::new();
    let mut script = String::new();
    for n in 0..40 {
        let line = json!({ "tool": "add_task", "params": { "content": format!("step {n}") } });
        script += &format!("{line}\n");
    }
    home.write("script.jsonl", script.trim_end());
    let args = ["tools", "run", "script.jsonl", "--session", "long"];
    let forms = home.zeph(args).code(0).json_lines();
    assert_eq!(forms.len(), 40);
    assert_has(forms[39]["data"].as_str().unwrap(), &["task_40"]);
}
