//! Interruption by signals: the turn and its processes end, and the session can continue.

use rustix::process::Signal;
use serde_json::json;

use crate::rig::{
    Home, OpenAi, Reply, assert_has, audit, is_running, openai_config, results_of, unique_seconds,
    wait_for,
};

/// Proves EXE-13, AGT-5, EXE-21, CLI-3.
#[test]
fn interrupt_ends_the_command_and_preserves_the_session() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let seconds = unique_seconds();
        let sleep = format!("echo begun; touch begun; sleep {seconds}; touch after");
        let server = OpenAi::replies([Reply::calls(
            "s",
            &[
                ("bash", json!({ "command": sleep })),
                ("bash", json!({ "command": "touch second" })),
                ("read", json!({ "path": "begun" })),
            ],
        )]);
        let home = Home::openai(&server);
        let running = home
            .zeph(["--yes", "-p", "go", "--output-format", "json"])
            .start();
        wait_for("the command", || {
            (home.has("begun") && is_running(&seconds)).then_some(())
        });
        running.signal(signal);
        let object = running.wait().code(130).json();
        assert_eq!(object["stop_reason"], "cancelled");
        wait_for("the end of the command", || {
            (!is_running(&seconds)).then_some(())
        });
        assert!(!home.has("second") && !home.has("after"));
        let results: Vec<_> = audit(&home.database())
            .into_iter()
            .map(|entry| entry.result)
            .collect();
        assert_eq!(
            results,
            ["cancelled", "cancelled", "cancelled"],
            "each is audited"
        );

        let server = OpenAi::replies([Reply::text("Went on.")]);
        home.config(&openai_config(&server.url()));
        home.zeph(["--continue", "-p", "go on"])
            .code(0)
            .prints(&["Went on."]);
        let results = results_of(&server.last().messages());
        assert_eq!(results.len(), 3);
        for (_, content) in &results {
            assert_has(content, &["category: cancelled"]);
        }
        assert_has(&results[0].1, &["begun"]);
    }
}

/// Proves AGT-5: a second signal ends the program immediately, even if the command ignores it.
#[test]
fn second_interrupt_ends_the_program() {
    let seconds = unique_seconds();
    let deaf = format!("trap '' INT TERM HUP; touch begun; sleep {seconds}; sleep {seconds}");
    let server = OpenAi::replies([Reply::calls("s", &[("bash", json!({ "command": deaf }))])]);
    let home = Home::openai(&server);
    let running = home.zeph(["--yes", "-p", "go"]).start();
    wait_for("the command", || {
        (home.has("begun") && is_running(&seconds)).then_some(())
    });
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    running.wait().code(130);
    wait_for("the end of the command", || {
        (!is_running(&seconds)).then_some(())
    });

    let server = OpenAi::replies([Reply::text("Went on.")]);
    home.config(&openai_config(&server.url()));
    home.zeph(["--continue", "-p", "go on"]).code(0);
    assert_has(
        &results_of(&server.last().messages())[0].1,
        &["category: cancelled"],
    );
}

/// Proves AGT-5: the partial response is stored with the mark "interrupted".
#[test]
fn interrupted_response_is_stored() {
    let server = OpenAi::replies([
        Reply::text("A long story begins and continues.").hang_after("begins "),
        Reply::text("Went on."),
    ]);
    let home = Home::openai(&server);
    let mut running = home
        .zeph(["-p", "tell", "--output-format", "stream-json"])
        .start();
    running.until_line("begins");
    running.signal(Signal::INT);
    let last = running.wait().code(130).json_lines().pop().unwrap();
    assert_eq!(
        (&last["type"], &last["stop_reason"]),
        (&json!("finished"), &json!("cancelled"))
    );
    home.zeph(["--continue", "-p", "go on"]).code(0);
    let said = server.last().messages();
    let kept = said[2]["content"].as_str().unwrap();
    assert_has(kept, &["A long story begins", "interrupted by the user"]);
}

/// Proves AGT-5: a request can be interrupted before the first text of the response.
#[test]
fn request_without_a_response_can_be_interrupted() {
    let server = OpenAi::start(|n, _| {
        if n == 0 {
            Reply::hang()
        } else {
            Reply::text("Here.")
        }
    });
    let home = Home::openai(&server);
    let running = home.zeph(["-p", "hello?"]).start();
    server.wait_for_requests(1);
    running.signal(Signal::INT);
    running.wait().code(130);
    home.zeph(["--continue", "-p", "are you there?"])
        .code(0)
        .prints(&["Here."]);
    let said = server.last().messages();
    assert_eq!(said[1]["content"], "hello?");
}

/// Proves LLM-14, AGT-5: a signal ends the wait before the next attempt.
#[test]
fn wait_for_the_next_attempt_can_be_interrupted() {
    let server = OpenAi::start(|_, _| {
        Reply::error(429, "rate_limit", "slow down").header("Retry-After", "50")
    });
    let home = Home::openai(&server);
    let mut running = home
        .zeph(["-p", "hi", "--output-format", "stream-json"])
        .start();
    running.until_line("attempt 2 in 50.0 s");
    running.signal(Signal::INT);
    let output = running.wait().code(130);
    assert!(output.took < std::time::Duration::from_secs(20), "{output}");
    assert_eq!(server.requests().len(), 1);
}

/// Proves EXE-13, EXE-21: `zeph tools call` ends its command.
#[test]
fn tools_call_can_be_interrupted() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let seconds = unique_seconds();
        let home = Home::new();
        let command = json!({ "command": format!("touch begun; sleep {seconds}") });
        let args = [
            "tools",
            "call",
            "bash",
            &command.to_string(),
            "--yes",
            "--json",
        ];
        let running = home.zeph(args).start();
        wait_for("the command", || {
            (home.has("begun") && is_running(&seconds)).then_some(())
        });
        running.signal(signal);
        let output = running.wait();
        assert_eq!(output.code, Some(130), "{output}");
        wait_for("the end of the command", || {
            (!is_running(&seconds)).then_some(())
        });
        assert_eq!(output.json()["error_category"], "cancelled", "{signal:?}");
        let entries = audit(&home.database());
        assert_eq!(entries.len(), 1, "{signal:?}: {entries:?}");
        assert_eq!(entries[0].result, "cancelled");
    }
}

/// Proves EXE-13, CLI-3: after an interruption no further line of a script runs.
#[test]
fn tools_run_can_be_interrupted() {
    let seconds = unique_seconds();
    let home = Home::new();
    let line = |command: String| json!({ "tool": "bash", "params": { "command": command } });
    let first = line(format!("touch begun; sleep {seconds}"));
    let script = format!("{first}\n{}\n", line("touch second".to_owned()));
    let running = home.zeph(["tools", "run", "--yes"]).stdin(script).start();
    wait_for("the command", || {
        (home.has("begun") && is_running(&seconds)).then_some(())
    });
    running.signal(Signal::INT);
    let output = running.wait().code(130);
    assert_eq!(output.json_lines().len(), 1, "{output}");
    home.wait_until_alone();
    assert!(!home.has("second"));
}

/// Proves CLI-2a, CLI-3: each line runs when it arrives, and waiting for the next one can be interrupted.
#[test]
fn script_that_waits_for_its_next_line_can_be_interrupted() {
    let home = Home::new();
    let line = json!({ "tool": "add_task", "params": { "content": "a" } });
    let script = home.zeph(["tools", "run"]).open_stdin(format!("{line}\n"));
    let mut running = script.start();
    running.until_line("task_1");
    running.signal(Signal::INT);
    running.wait().code(130);
}
