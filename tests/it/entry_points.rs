//! Gates at each entry point: a denied call does not run and leaves an audit entry.

use serde_json::json;

use crate::rig::{CALLER, Decision, Editor, Home, McpClient, OpenAi, Reply, Zeph, audit, text_of};

/// Runs an entry point that tries to touch `ran` in mode `plan`.
#[track_caller]
fn is_denied(home: &Home, run: Zeph, category: &str) {
    run.run();
    has_not_run(home, category);
}

/// The call was refused, and has its audit entry.
#[track_caller]
fn has_not_run(home: &Home, category: &str) {
    assert!(!home.has("ran"), "it ran");
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    assert_eq!(
        (entry.tool.as_str(), entry.result.as_str()),
        ("bash", "blocked"),
        "{entry:?}"
    );
    assert_eq!(entry.error_category.as_deref(), Some(category), "{entry:?}");
    assert_eq!(entry.call["command"], "touch ran", "{entry:?}");
    // A turn in mode `plan` has the phase `planner`.
    let phases = ["executor", "planner"];
    assert!(phases.contains(&entry.phase.as_str()), "{entry:?}");
    assert_eq!(entry.caller_id, None, "{entry:?}");
    assert!(
        !entry.session.is_empty() && !entry.call_id.is_empty(),
        "{entry:?}"
    );
}

fn model_that_touches() -> OpenAi {
    let touch = json!({ "command": "touch ran" });
    OpenAi::replies([
        Reply::calls("t", &[("bash", touch)]),
        Reply::text("Refused."),
    ])
}

/// Proves EXE-20, EXE-21, PERM-2, EXE-10, EXE-11.
#[test]
fn gates_apply_to_one_shot() {
    for format in ["text", "json", "stream-json"] {
        let server = model_that_touches();
        let home = Home::openai(&server);
        let run = home.zeph(["-p", "go", "--output-format", format]);
        is_denied(&home, run, "confirmation_required");
        let sent = server.last().messages().pop().unwrap();
        assert!(
            sent["content"]
                .as_str()
                .unwrap()
                .contains("confirmation_required"),
            "{sent}"
        );
    }
    let server = model_that_touches();
    let home = Home::openai(&server);
    is_denied(
        &home,
        home.zeph(["-p", "go", "--yes", "--mode", "plan"]),
        "policy_blocked",
    );
    let server = model_that_touches();
    let home = Home::openai(&server);
    is_denied(
        &home,
        home.zeph::<&str>([]).stdin("go"),
        "confirmation_required",
    );
}

/// Proves EXE-20, EXE-21, PERM-2.
#[test]
fn gates_apply_to_tools_call() {
    let home = Home::new();
    let args = ["tools", "call", "bash", r#"{"command": "touch ran"}"#];
    is_denied(&home, home.zeph(args), "confirmation_required");
    let home = Home::new();
    is_denied(
        &home,
        home.zeph(args).args(["--yes", "--mode", "plan"]),
        "policy_blocked",
    );
}

/// Proves EXE-20, EXE-21, PERM-2.
#[test]
fn gates_apply_to_tools_run() {
    let line = json!({ "tool": "bash", "params": { "command": "touch ran" } }).to_string();
    let home = Home::new();
    is_denied(
        &home,
        home.zeph(["tools", "run"]).stdin(line.clone()),
        "confirmation_required",
    );
    let home = Home::new();
    let args = ["tools", "run", "--yes", "--mode", "plan"];
    is_denied(&home, home.zeph(args).stdin(line), "policy_blocked");
}

/// Proves MCP-10, EXE-10, EXE-11, EXE-20, EXE-21, PERM-2: a denied call of a client does not run, and its entry names the client.
#[test]
fn gates_apply_to_mcp_serve() {
    let table: [(&[&str], &str); 2] = [
        (&[], "confirmation_required"),
        (&["--yes", "--mode", "plan"], "policy_blocked"),
    ];
    for (args, category) in table {
        let home = Home::new();
        let mut client = McpClient::ready(&home, args);
        let result = client.call("bash", json!({ "command": "touch ran" }));
        client.end().code(0);
        assert_eq!(result["isError"], true, "{result}");
        assert!(text_of(&result).contains(category), "{result}");
        assert!(!home.has("ran"), "it ran");
        let entries = audit(&home.database());
        assert_eq!(entries.len(), 1, "{entries:?}");
        let entry = &entries[0];
        assert_eq!(entry.result, "blocked");
        assert_eq!(entry.error_category.as_deref(), Some(category));
        assert_eq!(entry.caller_id.as_deref(), Some(CALLER));
        assert_eq!(entry.phase, "executor");
    }
}

/// Proves EXE-20, EXE-21, PERM-2, ACP-5.
#[test]
fn gates_apply_to_acp() {
    for (args, category) in [
        (&[][..], "policy_blocked"),
        (&["--yes", "--mode", "plan"], "policy_blocked"),
    ] {
        let server = model_that_touches();
        let home = Home::openai(&server);
        let mut editor = Editor::with_args(&home, args);
        editor.decision = Decision::Option("reject");
        let session = editor.session(&home.project());
        editor.prompt(&session, "go");
        assert_eq!(editor.end_of_call("touch ran")["status"], "failed");
        has_not_run(&home, category);
    }
}

/// In `-p`, text that looks like a slash command is a prompt for the model, because a script may insert
/// foreign text.
#[test]
fn no_prompt_of_one_turn_is_a_command() {
    let server = OpenAi::replies([Reply::text("no")]);
    let home = Home::openai(&server);
    home.zeph(["-p", "!touch ran"]).code(0).prints(&["no"]);
    assert!(!home.has("ran"));
    assert!(server.last().json().to_string().contains("!touch ran"));
}

/// Proves PERM-8, SH-20: mode `full` without an OS sandbox needs a second flag.
#[test]
fn full_mode_needs_a_sandbox_or_its_second_flag() {
    let home = Home::new();
    let args = [
        "tools",
        "call",
        "bash",
        r#"{"command": "touch ran"}"#,
        "--mode",
        "full",
    ];
    home.config("[tools.shell.sandbox]\nmode = \"off\"\n");
    home.zeph(args)
        .code(1)
        .says(&["--unsandboxed", "`[tools.shell.sandbox] mode`"]);
    assert!(!home.has("ran"));
    home.zeph(args).arg("--unsandboxed").code(0);
    assert!(home.has("ran"));

    let home = Home::new();
    let doctor = home.zeph(["doctor"]).run();
    let enforced = doctor
        .stdout
        .lines()
        .any(|line| line.starts_with("ok    sandbox"));
    home.zeph(args).code(if enforced { 0 } else { 1 });
    assert_eq!(home.has("ran"), enforced);
}
