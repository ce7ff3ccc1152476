//! Cancellation at each point, and the end of the connection.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::rig::{
    Decision, Editor, Home, OpenAi, Reply, is_running, openai_config, unique_seconds, wait_for,
};

/// A server whose first response is `first`, and whose later responses are texts.
fn server(first: Reply) -> OpenAi {
    OpenAi::start(move |n, _| match n {
        0 => first.clone(),
        _ => Reply::text("Went on."),
    })
}

/// Cancels a prompt at a point, and runs another one.
#[track_caller]
fn cancelled(editor: &mut Editor, session: &str, prompt: i64) {
    editor.cancel(session);
    let response = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    editor.decision = Decision::Option("once");
    assert_eq!(editor.prompt(session, "go on"), "end_turn");
}

/// Proves ACP-7, ACP-5a.
#[test]
fn cancellation_ends_a_streaming_response() {
    for reply in [
        Reply::hang(),
        Reply::text("A story continues.").hang_after("story "),
    ] {
        let server = server(reply);
        let home = Home::openai(&server);
        let mut editor = Editor::open(&home);
        let session = editor.session(&home.project());
        let prompt = editor.send_prompt(&session, "go");
        wait_for("the request", || {
            (!server.requests().is_empty()).then_some(())
        });
        cancelled(&mut editor, &session, prompt);
    }
}

/// Proves ACP-7, ACP-5a: a slash command that asks the model is cancelled.
#[test]
fn cancellation_ends_a_slash_command() {
    let server = OpenAi::start(|n, _| match n {
        1 => Reply::hang(),
        _ => Reply::text("Went on."),
    });
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    assert_eq!(editor.prompt(&session, "one"), "end_turn");
    let prompt = editor.send_prompt(&session, "/compact");
    wait_for("the second request", || {
        (server.requests().len() == 2).then_some(())
    });
    cancelled(&mut editor, &session, prompt);
}

/// Proves ACP-7: the command ends, and its call is failed.
#[test]
fn cancellation_ends_a_running_command() {
    let seconds = unique_seconds();
    let command = format!("touch begun; sleep {seconds}; touch after");
    let server = server(Reply::calls(
        "s",
        &[("bash", json!({ "command": command }))],
    ));
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    editor.decision = Decision::Option("once");
    let session = editor.session(&home.project());
    let prompt = editor.send_prompt(&session, "go");
    editor.until_question();
    wait_for("the command", || {
        (home.has("begun") && is_running(&seconds)).then_some(())
    });
    cancelled(&mut editor, &session, prompt);
    wait_for("the end of the command", || {
        (!is_running(&seconds)).then_some(())
    });
    assert!(!home.has("after"));
    assert_eq!(editor.end_of_call(&command)["status"], "failed");
}

/// Proves ACP-5, ACP-7: a check-in that is open at a cancellation is a failed call for the client.
#[test]
fn cancellation_closes_an_open_check_in() {
    let server = server(Reply::calls(
        "e",
        &[("bash", json!({ "command": "echo 1" }))],
    ));
    let home = Home::new();
    home.config(&format!(
        "[agent]\nmax_tool_iterations = 1\n{}",
        openai_config(&server.url())
    ));
    let mut editor = Editor::open(&home);
    editor.decision = Decision::None;
    let session = editor.session(&home.project());
    let prompt = editor.send_prompt(&session, "go");
    let question = editor.until_question();
    let title = question["toolCall"]["title"].as_str().unwrap().to_owned();
    assert!(title.starts_with("Continue after 1 round"), "{title}");
    cancelled(&mut editor, &session, prompt);
    assert_eq!(editor.end_of_call(&title)["status"], "failed");
}

/// Proves ACP-5, ACP-7: no response at a cancellation is a rejection.
#[test]
fn cancellation_closes_an_open_question() {
    let server = server(Reply::calls(
        "t",
        &[("bash", json!({ "command": "touch ran" }))],
    ));
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    editor.decision = Decision::None;
    let session = editor.session(&home.project());
    let prompt = editor.send_prompt(&session, "go");
    let question = editor.until(|it| it["method"] == "session/request_permission");
    editor.cancel(&session);
    // The answer comes too late.
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "once" } });
    let late = json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome });
    editor.line(&late.to_string());
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "cancelled");
    assert!(!home.has("ran"));
    assert_eq!(editor.prompt(&session, "go on"), "end_turn");
}

/// Proves ACP-1, ACP-7: a second prompt is refused while one runs.
#[test]
fn second_prompt_is_refused_while_one_runs() {
    let server = server(Reply::hang());
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    let prompt = editor.send_prompt(&session, "go");
    let text = json!([{ "type": "text", "text": "again" }]);
    let (code, message) = editor.fails(
        "session/prompt",
        json!({ "sessionId": session, "prompt": text }),
    );
    assert_eq!(code, -32600);
    assert!(message.contains("running"), "{message}");
    cancelled(&mut editor, &session, prompt);
}

/// Proves ACP-7: a session that is closed or deleted ends its prompt.
#[test]
fn closing_a_session_cancels_its_prompt() {
    for method in ["session/close", "session/delete"] {
        let server = server(Reply::hang());
        let home = Home::openai(&server);
        let mut editor = Editor::open(&home);
        let session = editor.session(&home.project());
        let prompt = editor.send_prompt(&session, "go");
        wait_for("the request", || {
            (!server.requests().is_empty()).then_some(())
        });
        editor.call(method, json!({ "sessionId": session }));
        assert_eq!(editor.response(prompt)["result"]["stopReason"], "cancelled");
    }
}

/// Starts a command in a session and returns the session's id.
#[track_caller]
fn with_command(editor: &mut Editor, home: &Home, seconds: &str) -> String {
    let session = editor.session(&home.project());
    editor.decision = Decision::Option("once");
    editor.send_prompt(&session, "go");
    editor.until_question();
    wait_for("the command", || {
        (home.has("begun") && is_running(seconds)).then_some(())
    });
    session
}

#[track_caller]
fn can_continue(home: &Home, session: &str, cwd: &Path) {
    let server = OpenAi::replies([Reply::text("Went on.")]);
    home.config(&openai_config(&server.url()));
    let mut editor = Editor::open(home);
    let load = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
    editor.call("session/load", load);
    let failed = |it: &Value| it["status"] == "failed";
    assert!(editor.updates("tool_call_update").iter().any(failed));
    assert_eq!(editor.prompt(session, "go on"), "end_turn");
}

/// Proves ACP-7: at the end of input everything that runs ends, and the session can be resumed.
#[test]
fn end_of_input_ends_everything() {
    let seconds = unique_seconds();
    let command = format!("touch begun; sleep {seconds}");
    let server = server(Reply::calls(
        "s",
        &[("bash", json!({ "command": command }))],
    ));
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = with_command(&mut editor, &home, &seconds);
    editor.leave().code(0);
    assert!(!is_running(&seconds));
    home.wait_until_alone();
    can_continue(&home, &session, &home.project());
}

/// Proves ACP-7: the same after the process is killed or ended by a signal.
#[test]
fn signal_ends_everything() {
    for signal in [Signal::TERM, Signal::KILL] {
        let seconds = unique_seconds();
        let command = format!("touch begun; sleep {seconds}");
        let server = server(Reply::calls(
            "s",
            &[("bash", json!({ "command": command }))],
        ));
        let home = Home::openai(&server);
        let mut editor = Editor::open(&home);
        let session = with_command(&mut editor, &home, &seconds);
        editor.agent().signal(signal);
        editor.leave();
        wait_for("the end of the command", || {
            (!is_running(&seconds)).then_some(())
        });
        home.wait_until_alone();
        can_continue(&home, &session, &home.project());
    }
}

/// Proves ACP-7: a command does not read the input of the protocol.
#[test]
fn command_does_not_read_the_protocol() {
    let server = server(Reply::calls(
        "c",
        &[("bash", json!({ "command": "cat; echo read" }))],
    ));
    let home = Home::openai(&server);
    let mut editor = Editor::with_args(&home, &["--yes"]);
    let session = editor.session(&home.project());
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let end = editor.end_of_call("cat; echo read");
    assert_eq!(end["content"][0]["content"]["text"], "```\nread\n```");
}
