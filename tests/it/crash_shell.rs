//! The death of the agent takes its commands along.

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, is_running, unique_seconds, wait_for};

/// Runs `command` as a call of the model, kills the agent when `begun` is there, and waits for
/// the end of all whose command line holds `seconds`.
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

/// Proves SH-3, SH-3a: nor does what was left behind, or has left its process group.
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

/// Proves SH-3a: nor the end of the session.
#[test]
fn a_background_process_ends_with_the_session() {
    let seconds = unique_seconds();
    let call = json!({ "command": format!("sleep {seconds} & echo started") });
    let server = OpenAi::replies([Reply::calls("s", &[("bash", call)]), Reply::text("ok")]);
    let home = Home::openai(&server);
    home.zeph(["--yes", "-p", "go"]).code(0);
    let told = server.last().messages().pop().unwrap()["content"].to_string();
    crate::rig::assert_has(
        &told,
        &["started", "background process still runs", "sleep"],
    );
    wait_for("the end of the sleep", || {
        (!is_running(&seconds)).then_some(())
    });
}
