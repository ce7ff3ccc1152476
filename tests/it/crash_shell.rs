//! Process cleanup: commands end when the agent dies.

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, is_running, unique_seconds, wait_for};

/// Runs `command` as a call of the model, kills the agent when `begun` exists, and waits until all processes
/// with `seconds` in their command line have ended.
#[track_caller]
fn no_orphan(command: &str, seconds: &str) {
    let call = json!({ "command": command });
    let server = OpenAi::replies([Reply::calls("s", &[("bash", call)]), Reply::hang()]);
    let home = Home::openai(&server);
    let running = home.zeph(["--yes", "-p", "go"]).start();
    wait_for("the command", || {
        (home.has("begun") && is_running(seconds)).then_some(())
    });
    running.kill();
    wait_for("the end of the command", || {
        (!is_running(seconds)).then_some(())
    });
}

/// Proves SH-3.
#[test]
fn no_orphan_survives_the_death_of_the_agent() {
    let s = unique_seconds();
    no_orphan(&format!("touch begun; sleep {s}; true"), &s);
    let s = unique_seconds();
    no_orphan(
        &format!("trap '' INT TERM HUP; touch begun; sleep {s}; sleep {s}"),
        &s,
    );
    let s = unique_seconds();
    no_orphan(&format!("(sleep {s} & sleep {s}) & touch begun; wait"), &s);
}

/// Proves SH-3, SH-3a: background processes and processes in other process groups end too.
#[test]
fn no_background_process_survives_the_death_of_the_agent() {
    let s = unique_seconds();
    no_orphan(&format!("sleep {s} & touch begun"), &s);
    let s = unique_seconds();
    no_orphan(
        &format!("nohup sleep {s} > /dev/null 2>&1 & touch begun"),
        &s,
    );
    let s = unique_seconds();
    no_orphan(&format!("setsid sleep {s} & touch begun; wait"), &s);
    let s = unique_seconds();
    no_orphan(
        &format!("setsid sh -c 'sleep {s} & sleep {s}' & sleep 0.1; touch begun"),
        &s,
    );
}

/// Proves SH-3a: background processes end with the session.
#[test]
fn background_process_ends_with_the_session() {
    let seconds = unique_seconds();
    let call = json!({ "command": format!("sleep {seconds} & echo started") });
    let server = OpenAi::replies([Reply::calls("s", &[("bash", call)]), Reply::text("ok")]);
    let home = Home::openai(&server);
    home.zeph(["--yes", "-p", "go"]).code(0);
    let sent = server.last().messages().pop().unwrap()["content"].to_string();
    crate::rig::assert_has(
        &sent,
        &["started", "background process still runs", "sleep"],
    );
    wait_for("the end of the sleep", || {
        (!is_running(&seconds)).then_some(())
    });
}

/// Proves SH-3: a command that stops its supervisor is ended at its timeout, the next one runs, and no
/// process remains.
#[test]
fn command_that_stops_its_supervisor_affects_no_other() {
    let seconds = unique_seconds();
    let home = Home::new();
    let command = format!("kill -STOP $PPID; sleep {seconds}");
    let lines = [
        json!({"tool": "bash", "params": {"command": command, "timeout_secs": 1}}).to_string(),
        json!({"tool": "bash", "params": {"command": "echo on"}}).to_string(),
        json!({"tool": "bash", "params": {"command": "kill -STOP $PPID; echo on"}}).to_string(),
    ];
    let begun = std::time::Instant::now();
    let run = home.zeph(["tools", "run", "--yes"]).stdin(lines.join("\n"));
    let forms = run.run().json_lines();
    assert_eq!(forms[0]["error_category"], "timeout", "{forms:#?}");
    assert_eq!(forms[1]["data"], "on");
    assert!(begun.elapsed() < std::time::Duration::from_secs(60));
    assert!(!is_running(&seconds));
}

/// Proves SH-3: a stopped supervisor ends when the agent dies.
#[test]
fn stopped_supervisor_ends_with_the_agent() {
    let s = unique_seconds();
    no_orphan(
        &format!("sleep {s} & kill -STOP $PPID; touch begun; wait"),
        &s,
    );
}
