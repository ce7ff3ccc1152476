//! MCP servers of the client: approved once, for one session, and never in the way of it.

use serde_json::{Value, json};

use crate::mcp::{Served, echo};
use crate::rig::{
    Decision, Editor, Home, OpenAi, Reply, assert_has, is_running, openai_config, unique_seconds,
    wait_for,
};

/// The test server as the client passes it.
fn served(served: &Served) -> Value {
    json!({
        "name": "t",
        "command": "python3",
        "args": [served.file("server.py"), served.file("")],
        "env": [],
    })
}

fn new(home: &Home, servers: &[Value]) -> Value {
    json!({ "cwd": home.project(), "mcpServers": servers })
}

#[track_caller]
fn open(editor: &mut Editor, home: &Home, servers: &[Value]) -> String {
    let result = editor.call("session/new", new(home, servers));
    result["sessionId"].as_str().unwrap().to_owned()
}

fn asks(editor: &Editor) -> usize {
    let asks = |it: &&Value| it["method"] == "session/request_permission";
    editor.seen.iter().filter(asks).count()
}

fn offers(server: &OpenAi) -> bool {
    server.last().json()["tools"]
        .to_string()
        .contains("mcp_t_echo")
}

/// Proves ACP-8: one approval per definition; the server ends with its session, and other sessions do not see it.
#[test]
fn server_of_the_client_is_approved_once_and_ends_with_its_session() {
    let served_tools = Served::unapproved(&[echo()]);
    let home = &served_tools.home;
    let call = || Reply::calls("e", &[("mcp_t_echo", json!({ "text": "hello" }))]);
    let model = OpenAi::replies([
        call(),
        Reply::text("1."),
        Reply::text("2."),
        Reply::text("3."),
        Reply::text("4."),
    ]);
    home.config(&openai_config(&model.url()));
    let mark = served_tools.file("server.py").display().to_string();
    let mut editor = Editor::open(home);
    editor.decision = Decision::Option("trust");
    let session = open(&mut editor, home, &[served(&served_tools)]);
    assert_eq!(asks(&editor), 0, "the session does not wait for the answer");
    let question = editor.until_question();
    assert!(question["toolCall"].to_string().contains("server.py"));
    editor.until_update("tool_call_update");
    editor.decision = Decision::Option("once");
    editor.prompt(&session, "go");
    assert!(
        editor
            .end_of_call("mcp_t_echo")
            .to_string()
            .contains("hello")
    );
    let log = home.data().join("zeph/mcp-servers/t/log");
    let log = std::fs::read_to_string(log).unwrap();
    let calls = log.lines().filter(|line| line.starts_with("tools/call"));
    assert_eq!(calls.count(), 1, "{log}");
    // Another session of the same process.
    let other = open(&mut editor, home, &[]);
    editor.prompt(&other, "go");
    assert!(!offers(&model));
    editor.call("session/close", json!({ "sessionId": session }));
    wait_for("the end of the server", || {
        (!is_running(&mark)).then_some(())
    });
    // The same definition needs no other approval, and another definition does.
    editor.forget();
    let again = open(&mut editor, home, &[served(&served_tools)]);
    editor.prompt(&again, "go");
    assert!(offers(&model));
    assert_eq!(asks(&editor), 0);
    editor.call("session/close", json!({ "sessionId": again }));
    let mut changed = served(&served_tools);
    changed["args"].as_array_mut().unwrap().push(json!("more"));
    editor.decision = Decision::Option("reject");
    let rejected = open(&mut editor, home, &[changed]);
    editor.until_question();
    editor.until_update("tool_call_update");
    editor.prompt(&rejected, "go");
    assert!(!offers(&model));
    editor.leave().code(0);
    assert!(!is_running(&mark));
}

/// Approves the server of the client in a new session, runs a prompt, and closes the session.
#[track_caller]
fn use_once(editor: &mut Editor, home: &Home, server: &Value) {
    editor.decision = Decision::Option("trust");
    let session = open(editor, home, std::slice::from_ref(server));
    editor.until_question();
    editor.until_update("tool_call_update");
    editor.prompt(&session, "go");
    editor.call("session/close", json!({ "sessionId": session }));
    editor.forget();
}

/// Proves ACP-8, MCP-1a: `zeph mcp forget` removes the approval of a definition with that of its tools.
#[test]
fn forgotten_server_needs_another_approval() {
    let served_tools = Served::unapproved(&[echo()]);
    let home = &served_tools.home;
    let model = OpenAi::replies([Reply::text("1."), Reply::text("2.")]);
    home.config(&openai_config(&model.url()));
    let mut editor = Editor::open(home);
    use_once(&mut editor, home, &served(&served_tools));
    assert!(offers(&model));
    let forgotten = home.zeph(["mcp", "forget", "t"]).code(0);
    assert_has(&forgotten.stdout, &["is approved any longer"]);
    editor.decision = Decision::Option("reject");
    let session = open(&mut editor, home, &[served(&served_tools)]);
    editor.until_question();
    editor.until_update("tool_call_update");
    editor.prompt(&session, "go");
    assert!(!offers(&model));
}

/// Proves ACP-8, MCP-1a: another program under the name of an approved server has no approved tool.
#[test]
fn approved_tools_belong_to_one_definition() {
    let served_tools = Served::unapproved(&[echo()]);
    let home = &served_tools.home;
    let model = OpenAi::replies([Reply::text("1."), Reply::text("2.")]);
    home.config(&openai_config(&model.url()));
    let mut editor = Editor::open(home);
    use_once(&mut editor, home, &served(&served_tools));
    assert!(offers(&model));
    // The configuration has another server of this name, which lists the same tools.
    let folder = served_tools.file("");
    home.more_config(&format!(
        "[[mcp.servers]]\nname = \"t\"\ncommand = \"python3\"\nargs = [{:?}, {folder:?}]\nwritable = [{folder:?}]\n",
        served_tools.file("server.py")
    ));
    let listed = home.zeph(["mcp", "list"]).code(0);
    assert_has(
        &listed.stdout,
        &["t: connected", "echo is not available: not approved yet"],
    );
}

/// Proves ACP-8: approvals by `--yes` are not stored.
#[test]
fn approval_by_yes_ends_with_the_session() {
    let served_tools = Served::unapproved(&[echo()]);
    let home = &served_tools.home;
    let model = OpenAi::replies([Reply::text("1.")]);
    home.config(&openai_config(&model.url()));
    let mut editor = Editor::with_args(home, &["--yes"]);
    let session = open(&mut editor, home, &[served(&served_tools)]);
    editor.until_update("available_commands_update");
    editor.prompt(&session, "go");
    assert!(offers(&model));
    editor.leave().code(0);
    let stored = std::fs::read_dir(home.data().join("zeph/mcp-trust"));
    let stored: Vec<_> = stored.into_iter().flatten().collect();
    assert!(stored.is_empty(), "{stored:?}");
}

/// Proves ACP-8, PERM-7: a server that is approved during a session does not end the approvals for the session.
#[test]
fn later_server_leaves_the_approvals_for_the_session() {
    let served_tools = Served::unapproved(&[echo()]);
    let home = &served_tools.home;
    let touch = || Reply::calls("t", &[("bash", json!({ "command": "touch ran" }))]);
    let model = OpenAi::replies([touch(), Reply::text("1."), touch(), Reply::text("2.")]);
    home.config(&openai_config(&model.url()));
    let mut editor = Editor::open(home);
    editor.decision = Decision::None;
    let session = open(&mut editor, home, &[served(&served_tools)]);
    editor.until_question();
    let about_server = editor.seen.last().unwrap()["id"].clone();
    let first = editor.send_prompt(&session, "go");
    editor.until_question();
    editor.choose_last("session");
    editor.response(first);
    assert!(!offers(&model));
    let result = json!({ "outcome": { "outcome": "selected", "optionId": "trust" } });
    let answer = json!({ "jsonrpc": "2.0", "id": about_server, "result": result });
    editor.line(&answer.to_string());
    editor.until_update("tool_call_update");
    editor.decision = Decision::Option("reject");
    editor.prompt(&session, "go");
    assert!(offers(&model));
    assert_eq!(asks(&editor), 2);
}

/// Proves ACP-8: without an approval, the program does not start.
#[test]
fn server_does_not_start_without_an_approval() {
    for decision in [
        Decision::Option("reject"),
        Decision::Option("once"),
        Decision::Cancelled,
        Decision::Error,
    ] {
        let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
        let mut editor = Editor::open(&home);
        editor.decision = decision;
        let touch =
            json!({ "name": "t", "command": "touch", "args": [home.path("ran")], "env": [] });
        let session = open(&mut editor, &home, &[touch]);
        editor.until_question();
        editor.until_update("tool_call_update");
        editor.prompt(&session, "go");
        editor.leave().code(0);
        assert!(!home.has("ran"), "{decision:?}");
    }
}

/// Proves ACP-8: an unresponsive server delays neither the session nor its prompts for long, and ends with it.
#[test]
fn unresponsive_server_does_not_delay_the_session() {
    let seconds = unique_seconds();
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n[[steps]]\ntext = \"again\"\n");
    home.more_config("[mcp]\nstart_wait_ms = 60000\n");
    let mut editor = Editor::open(&home);
    editor.decision = Decision::Option("trust");
    let sleep = json!({ "name": "t", "command": "sleep", "args": [seconds], "env": [] });
    let session = open(&mut editor, &home, std::slice::from_ref(&sleep));
    editor.until_question();
    editor.until_update("tool_call_update");
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    assert!(is_running(&seconds));
    editor.call("session/close", json!({ "sessionId": session }));
    wait_for("the end of the server", || {
        (!is_running(&seconds)).then_some(())
    });
    let again = open(&mut editor, &home, &[sleep]);
    assert_eq!(editor.prompt(&again, "go"), "end_turn");
    assert_eq!(asks(&editor), 1);
}

/// Proves ACP-8: a server with the name of another one, or with a variable of the user, is not used.
#[test]
fn unusable_server_is_reported() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    home.more_config("[[mcp.servers]]\nname = \"own\"\ncommand = \"true\"\n");
    let mut editor = Editor::open(&home);
    let own = json!({ "name": "own", "command": "touch", "args": ["ran"], "env": [] });
    let env = json!([{ "name": "A", "value": "${TEST_KEY}" }]);
    let leaks = json!({ "name": "leaks", "command": "touch", "args": ["ran"], "env": env });
    let session = open(&mut editor, &home, &[own, leaks]);
    editor.prompt(&session, "go");
    let notices: Vec<_> = editor.updates("notice");
    let text = json!(notices).to_string();
    assert!(text.contains("another server has this name"), "{text}");
    assert!(text.contains("a value contains"), "{text}");
    assert_eq!(asks(&editor), 0);
}
