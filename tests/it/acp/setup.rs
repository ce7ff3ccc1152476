//! The start of a connection: version, capabilities, authentication, and the streams of the process.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::rig::{Editor, Home, OpenAi, Reply, assert_has};

/// Proves ACP-1: any version gets version 1.
#[test]
fn initialize_reports_version_1_and_the_capabilities() {
    for version in [1, 2, 99] {
        let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
        let mut editor = Editor::start(home.zeph(["acp"]));
        let result = editor.call("initialize", json!({ "protocolVersion": version }));
        assert_eq!(result["protocolVersion"], 1, "{version}");
        let capabilities = &result["agentCapabilities"];
        assert_eq!(capabilities["loadSession"], true);
        assert_eq!(capabilities["promptCapabilities"]["embeddedContext"], true);
        for name in [
            "list",
            "delete",
            "resume",
            "close",
            "fork",
            "additionalDirectories",
        ] {
            assert!(
                capabilities["sessionCapabilities"][name].is_object(),
                "{name}"
            );
        }
        assert_eq!(result["agentInfo"]["name"], "zeph");
        assert_eq!(result["authMethods"], json!([]));
        editor.leave().code(0);
    }
}

/// Proves ACP-1: a client may write its next requests before it has the response to `initialize`.
#[test]
fn requests_directly_after_initialize_are_answered_in_order() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    // The requests are there when the agent starts to read.
    for params in [json!({ "protocolVersion": 1 }), json!({})] {
        let is_valid = params != json!({});
        let mut editor = Editor::start(home.zeph(["acp"]));
        let first = editor.request("initialize", params);
        let new = json!({ "cwd": home.project(), "mcpServers": [] });
        let requests = [
            editor.request("session/list", json!({})),
            editor.request("session/new", new),
        ];
        assert_eq!(editor.response(first)["error"].is_null(), is_valid);
        for id in requests {
            let response = editor.response(id);
            assert_eq!(response["error"].is_null(), is_valid, "{response:#}");
        }
        editor.leave().code(0);
    }
}

/// Proves ACP-1: without a provider, initialize succeeds and a session needs authentication.
#[test]
fn session_without_a_provider_requires_authentication() {
    let home = Home::new();
    let mut editor = Editor::start(home.zeph(["acp"]));
    let result = editor.call("initialize", json!({ "protocolVersion": 1 }));
    // This client cannot show a terminal.
    assert_eq!(result["authMethods"], json!([]));
    let new = json!({ "cwd": home.project(), "mcpServers": [] });
    let (code, message) = editor.fails("session/new", new.clone());
    assert_eq!(code, -32000);
    assert!(message.contains("ANTHROPIC_API_KEY"), "{message}");

    let mut editor = Editor::start(home.zeph(["acp"]));
    let capabilities = json!({ "auth": { "terminal": true } });
    let result = editor.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": capabilities }),
    );
    let method = &result["authMethods"][0];
    assert_eq!(
        (&method["type"], &method["args"]),
        (&json!("terminal"), &json!(["--setup"]))
    );
    // The client appends the arguments to its command for the agent.
    let args = method["args"].as_array().unwrap().iter();
    let args: Vec<_> = args.map(|it| it.as_str().unwrap()).collect();
    let printed = home.zeph(["acp"]).args(args).code(1);
    assert_has(&printed.stdout, &["FAIL  provider", "ANTHROPIC_API_KEY"]);
    let id = json!({ "methodId": method["id"] });
    assert_eq!(editor.fails("authenticate", id.clone()).0, -32000);
    assert_eq!(
        editor.fails("authenticate", json!({ "methodId": "x" })).0,
        -32602
    );
    // The user configures a provider in the terminal.
    home.scenario("[[steps]]\ntext = \"hi\"\n");
    editor.call("authenticate", id);
    editor.call("session/new", new);
}

/// Proves ACP-1: with an invalid configuration, initialize succeeds and reports it, also if output should be quiet. A login
/// does not help.
#[test]
fn invalid_configuration_is_reported() {
    let home = Home::new();
    home.config("[tools]\nunknown_key = 1\n");
    let mut editor = Editor::start(home.zeph(["acp", "--quiet"]));
    let result = editor.call("initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(result["authMethods"], json!([]));
    let (_, message) = editor.fails("authenticate", json!({ "methodId": "any" }));
    assert!(message.contains("unknown_key"), "{message}");
    // The next request reads the corrected file.
    home.scenario("[[steps]]\ntext = \"hi\"\n");
    editor.call("authenticate", json!({ "methodId": "any" }));
    let output = editor.leave().code(0);
    assert_has(&output.stderr, &["config.toml:2", "unknown_key"]);
}

/// Proves ACP-1: a provider without its key requires authentication.
#[test]
fn provider_without_its_key_requires_authentication() {
    let server = OpenAi::replies([Reply::text("hi")]);
    let home = Home::openai(&server);
    let mut editor = Editor::start(home.zeph(["acp"]).env("TEST_KEY", ""));
    editor.call("initialize", json!({ "protocolVersion": 1 }));
    let new = json!({ "cwd": home.project(), "mcpServers": [] });
    let (code, message) = editor.fails("session/new", new);
    assert_eq!(code, -32000);
    assert!(message.contains("export TEST_KEY"), "{message}");
}

/// Proves ACP-1.
#[test]
fn session_after_logout_requires_authentication() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.call("logout", json!({}));
    let new = json!({ "cwd": home.project(), "mcpServers": [] });
    assert_eq!(editor.fails("session/new", new.clone()).0, -32000);
    let prompt = json!([{ "type": "text", "text": "go" }]);
    let prompt = json!({ "sessionId": session, "prompt": prompt });
    assert_eq!(editor.fails("session/prompt", prompt).0, -32000);
    editor.call("authenticate", json!({ "methodId": "any" }));
    editor.call("session/new", new);
}

/// Proves ACP-1: standard output carries only protocol messages, and logs go to a file of the user.
#[test]
fn logs_go_to_a_file() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let state = home.root().join("state");
    let run = home
        .zeph(["acp", "-vv"])
        .env("XDG_STATE_HOME", &state.display().to_string());
    let mut editor = Editor::start(run);
    editor.call("initialize", json!({ "protocolVersion": 1 }));
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    let output = editor.leave().code(0);
    // `leave` returns the complete standard output, and every line of it is a message.
    assert!(
        output
            .stdout
            .lines()
            .all(|line| line.starts_with("{\"jsonrpc\""))
    );
    let file = state.join("zeph/zeph.log");
    assert!(!std::fs::read_to_string(&file).unwrap().is_empty());
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
