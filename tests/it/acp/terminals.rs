//! Commands in terminals of the client.

use serde_json::{Value, json};

use super::client::Client;
use crate::os_sandbox::enforced;
use crate::rig::{Home, OpenAi, Reply, is_running, unique_seconds, wait_for};

fn server(command: &str) -> OpenAi {
    let command = json!({ "command": command });
    OpenAi::start(move |n, _| match n {
        0 => Reply::calls("b", &[("bash", command.clone())]),
        _ => Reply::text("Went on."),
    })
}

/// The text of the last update of a call.
fn text(end: &Value) -> &str {
    end["content"][0]["content"]["text"].as_str().unwrap()
}

/// The number of requests with this method.
fn count(client: &Client, method: &str) -> usize {
    client.methods().iter().filter(|it| **it == method).count()
}

/// Proves ACP-4: the update shows the terminal, the end has the text, and the environment is that of local commands.
#[test]
fn command_runs_in_a_terminal_of_the_client() {
    let command = "echo said; echo ${OF_THE_TERMINAL-none} ${ZEPH_COMMAND_LIMITS-none}; cat";
    let server = server(command);
    let home = Home::openai(&server);
    let mut client = Client::open(&home, &["--yes"]);
    let session = client.editor.session(&home.project());
    assert_eq!(client.prompt(&session, "go"), "end_turn");
    let updates = client.editor.updates("tool_call_update");
    let terminal = json!([{ "type": "terminal", "terminalId": "terminal-0" }]);
    assert!(
        updates.iter().any(|it| it["content"] == terminal),
        "{updates:#?}"
    );
    let end = client.editor.end_of_call(command);
    assert_eq!(end["status"], "completed");
    assert_eq!(text(&end), "```\nsaid\nnone none\n```");
    let (_, created) = &client.requests[0];
    assert_eq!(created["cwd"], json!(home.project()));
    assert!(created["outputByteLimit"].as_u64().unwrap() > 0);
    assert_eq!(
        client.methods(),
        [
            "terminal/create",
            "terminal/wait_for_exit",
            "terminal/output",
            "terminal/release"
        ]
    );
    // The replay has the text alone.
    client
        .editor
        .call("session/close", json!({ "sessionId": session }));
    client.editor.forget();
    let load = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    client.editor.call("session/load", load);
    let replay = client.editor.seen.iter().map(Value::to_string);
    let replay: String = replay.collect();
    assert!(
        replay.contains("said") && !replay.contains("terminal-0"),
        "{replay}"
    );
}

/// Proves ACP-4, SH-2: the exit code and the signal reach the model.
#[test]
fn exit_code_and_signal_are_reported() {
    for (command, expect) in [
        ("echo out; exit 3", "[exit code: 3]"),
        ("kill -TERM $$", "[exit code: 143] (killed by SIGTERM)"),
    ] {
        let server = server(command);
        let home = Home::openai(&server);
        let mut client = Client::open(&home, &["--yes"]);
        let session = client.editor.session(&home.project());
        client.prompt(&session, "go");
        let sent = server.requests()[1].json().to_string();
        assert!(sent.contains(expect), "{sent}");
        assert_eq!(count(&client, "terminal/release"), 1);
    }
}

/// Proves ACP-4, ACP-7: a client may kill only the first process of a command. The others end too, after a cancellation and
/// after the command, also without the environment of the command.
#[test]
fn command_leaves_no_process_in_a_terminal() {
    for (is_cancelled, starter) in [
        (true, ""),
        (false, ""),
        (true, "env -i "),
        (false, "env -i "),
    ] {
        let seconds = unique_seconds();
        let wait = if is_cancelled { "wait" } else { "true" };
        let server = server(&format!("{starter}sleep {seconds} & echo started; {wait}"));
        let home = Home::openai(&server);
        let mut client = Client::open(&home, &["--yes"]);
        client.holds = is_cancelled;
        let session = client.editor.session(&home.project());
        let id = client.editor.send_prompt(&session, "go");
        if is_cancelled {
            client.until(|it| it["method"] == "terminal/wait_for_exit");
            wait_for("the command", || {
                (client.printed().contains("started") && is_running(&seconds)).then_some(())
            });
            client.editor.cancel(&session);
        }
        let stop = client.response(id)["result"]["stopReason"].clone();
        let expect = if is_cancelled {
            "cancelled"
        } else {
            "end_turn"
        };
        assert_eq!(stop, expect);
        wait_for("the end of the process", || {
            (!is_running(&seconds)).then_some(())
        });
    }
}

/// Proves ACP-4: at the time limit, the command is killed, its partial output is returned, and the terminal is released.
#[test]
fn command_is_killed_at_the_time_limit() {
    let command = "echo partial; sleep 100";
    let server = server(command);
    let home = Home::openai(&server);
    home.more_config("[acp]\nterminal_timeout_secs = 1\n");
    let mut client = Client::open(&home, &["--yes"]);
    client.holds = true;
    let session = client.editor.session(&home.project());
    assert_eq!(client.prompt(&session, "go"), "end_turn");
    let end = client.editor.end_of_call(command);
    assert_eq!(end["status"], "failed");
    let sent = server.requests()[1].json().to_string();
    assert!(sent.contains("partial"), "{sent}");
    assert!(sent.contains("[acp] terminal_timeout_secs"), "{sent}");
    assert_eq!(count(&client, "terminal/kill"), 1);
    assert_eq!(client.methods().last(), Some(&"terminal/release"));
    assert_eq!(count(&client, "terminal/release"), 1);
}

/// Proves ACP-4, ACP-7: a cancellation kills the command, and the next prompt works.
#[test]
fn cancel_kills_and_releases() {
    let server = server("echo begun; sleep 100");
    let home = Home::openai(&server);
    let mut client = Client::open(&home, &["--yes"]);
    client.holds = true;
    let session = client.editor.session(&home.project());
    let prompt = client.editor.send_prompt(&session, "go");
    client.until(|it| it["method"] == "terminal/wait_for_exit");
    client.editor.cancel(&session);
    let response = client.response(prompt);
    assert_eq!(response["result"]["stopReason"], "cancelled");
    assert_eq!(count(&client, "terminal/kill"), 1);
    assert_eq!(count(&client, "terminal/release"), 1);
    assert_eq!(client.prompt(&session, "go on"), "end_turn");
}

/// Proves ACP-4, ACP-7: a client that reports the exit of a killed command only after the last process of the command does
/// not delay the cancellation.
#[test]
fn cancel_does_not_wait_for_the_output_of_left_processes() {
    let seconds = unique_seconds();
    let server = server(&format!("echo begun; sleep {seconds}; true"));
    let home = Home::openai(&server);
    let mut client = Client::open(&home, &["--yes"]);
    client.holds = true;
    client.exits_after = Some(seconds.clone());
    let session = client.editor.session(&home.project());
    let prompt = client.editor.send_prompt(&session, "go");
    client.until(|it| it["method"] == "terminal/wait_for_exit");
    wait_for("the command", || is_running(&seconds).then_some(()));
    client.editor.cancel(&session);
    let response = client.response(prompt);
    assert_eq!(response["result"]["stopReason"], "cancelled");
    assert_eq!(client.prompt(&session, "go on"), "end_turn");
    let sent = server.last().json().to_string();
    assert!(
        sent.contains("begun") && !sent.contains("could not be stopped"),
        "{sent}"
    );
}

/// Proves ACP-4, ACP-7: the end of the connection ends the agent while a terminal runs, and the call is complete.
#[test]
fn disconnect_ends_the_agent() {
    let server = server("echo begun; sleep 100");
    let home = Home::openai(&server);
    let mut client = Client::open(&home, &["--yes"]);
    client.holds = true;
    let session = client.editor.session(&home.project());
    client.editor.send_prompt(&session, "go");
    client.until(|it| it["method"] == "terminal/wait_for_exit");
    wait_for("the command", || {
        client.printed().contains("begun").then_some(())
    });
    client.leave().code(0);
    let mut client = Client::open(&home, &["--yes"]);
    let load = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    client.editor.call("session/load", load);
    let updates = client.editor.updates("tool_call_update");
    assert_eq!(updates.last().unwrap()["status"], "failed", "{updates:#?}");
}

/// Proves ACP-4, SH-10, PERM-8: a refused command does not reach the client, with each kind of gate.
#[test]
fn refused_command_does_not_reach_the_client() {
    for (config, command) in [
        ("", "rm -rf /"),
        (
            "[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"\n",
            "touch ran",
        ),
        ("[tools]\nmode = \"plan\"\n", "touch ran"),
    ] {
        let server = server(command);
        let home = Home::openai(&server);
        home.more_config(config);
        let mut client = Client::open(&home, &["--yes"]);
        let session = client.editor.session(&home.project());
        client.prompt(&session, "go");
        assert_eq!(client.methods(), Vec::<&str>::new(), "{command}");
        assert!(!home.has("ran"));
    }
}

/// Proves ACP-4, SH-20, SH-23, PERM-9: a command has its sandbox in the terminal too.
#[test]
fn command_is_confined_in_the_terminal() {
    if !enforced() {
        return;
    }
    let check = |mode: &str, args: &[&str], command: &dyn Fn(&Home) -> String| {
        let home = Home::new();
        let command = command(&home);
        let server = server(&command);
        home.config(&crate::rig::openai_config(&server.url()));
        home.more_config(&format!("[tools]\nmode = \"{mode}\"\n"));
        home.write("inside", "text of the project\n");
        let mut client = Client::open(&home, args);
        client.editor.decision = crate::rig::Decision::Option("reject");
        let session = client.editor.session(&home.project());
        client.prompt(&session, "go");
        assert_eq!(count(&client, "terminal/create"), 1, "{command}");
        (home, server.requests()[1].json().to_string())
    };
    // A command that only reads runs without a question.
    let (_, sent) = check("ask", &[], &|_| "cat inside".to_owned());
    assert!(sent.contains("text of the project"), "{sent}");
    // An approved command and one of mode `auto` write in the project alone.
    for (mode, args) in [("ask", &["--yes"] as &[&str]), ("auto", &[])] {
        let (home, sent) = check(mode, args, &|home| {
            let outside = home.home().join("outside");
            format!("touch written; touch {}", outside.display())
        });
        assert!(home.has("written"), "{mode}: {sent}");
        assert!(!home.home().join("outside").exists(), "{mode}: {sent}");
    }
}

/// Proves ACP-4, SH-20a: a denied file that the command does not name is hidden in the terminal.
#[test]
fn denied_file_is_hidden_in_the_terminal() {
    if !enforced() {
        return;
    }
    let server = server("grep -r . .; echo end");
    let home = Home::openai(&server);
    home.more_config("[tools.file]\ndeny_read = [\"**/secret.txt\"]\n");
    home.write("secret.txt", "hidden text\n");
    let mut client = Client::open(&home, &["--yes"]);
    let session = client.editor.session(&home.project());
    client.prompt(&session, "go");
    assert_eq!(count(&client, "terminal/create"), 1);
    for message in &client.editor.seen {
        assert!(!message.to_string().contains("hidden text"), "{message:#}");
    }
    let sent = server.requests()[1].json().to_string();
    assert!(
        sent.contains("end") && !sent.contains("hidden text"),
        "{sent}"
    );
}

/// Proves ACP-4: the helper runs nothing without its limits.
#[test]
fn helper_without_limits_runs_nothing() {
    let home = Home::new();
    let helper = home.zeph(["__confined-command", "/bin/echo", "ran"]);
    let output = helper.run().code(126);
    let output = output.says(&["the editor did not pass the environment"]);
    assert!(!output.stdout.contains("ran"));
}
