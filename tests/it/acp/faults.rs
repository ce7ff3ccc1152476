//! Bad input: each has its error, and the connection continues.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use crate::rig::{Editor, Home, OpenAi, Reply, assert_has, execute, session_ids};

fn editor(home: &Home) -> Editor {
    Editor::open(home)
}

/// Reads the error without an id.
#[track_caller]
fn uncorrelated(editor: &mut Editor) -> Value {
    let message = editor.until(|it| it.get("method").is_none() && it["id"].is_null());
    message["error"].clone()
}

/// Proves ACP-7: a malformed line is an error that does not repeat the line.
#[test]
fn malformed_line_is_a_parse_error_without_the_line() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut editor = editor(&home);
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested_params = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{}1{}}}",
        "{\"a\":".repeat(10_000),
        "}".repeat(10_000)
    );
    for line in [
        "{\"secret-marker\"",
        "secret-marker",
        "{]",
        "\"",
        &nested,
        &nested_params,
    ] {
        editor.line(line);
        let error = uncorrelated(&mut editor);
        assert_eq!(error["code"], -32700, "{error}");
        assert!(!error.to_string().contains("secret-marker"), "{error}");
    }
    for line in [
        "17",
        "null",
        "[]",
        "{}",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logout\"}]",
    ] {
        editor.line(line);
        let error = uncorrelated(&mut editor);
        assert_eq!(error["code"], -32600, "{line}: {error}");
    }
    let session = editor.session(&home.project());
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
}

/// Proves ACP-7: a line that is not UTF-8 or too long ends nothing.
#[test]
fn line_that_is_not_utf8_or_too_long_ends_nothing() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut editor = editor(&home);
    editor.bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
    let error = uncorrelated(&mut editor);
    assert_eq!(error["code"], -32700);
    assert!(error.to_string().contains("UTF-8"), "{error}");
    editor.bytes(&vec![b'a'; 64 * 1024 * 1024 + 1]);
    let error = uncorrelated(&mut editor);
    assert_eq!(error["code"], -32700);
    assert!(error.to_string().len() < 300, "{error}");
    editor.line("");
    editor.line("   \r");
    let session = editor.session(&home.project());
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
}

/// Proves ACP-7: invalid parameters, unknown methods, and an error without the parameters.
#[test]
fn invalid_request_has_its_code() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut editor = editor(&home);
    let session = editor.session(&home.project());
    let prompt = |session: Value, prompt: Value| json!({ "sessionId": session, "prompt": prompt });
    let text = json!([{ "type": "text", "text": "go" }]);
    let invalid = [
        ("session/new", json!({})),
        ("session/new", json!({ "cwd": 3, "mcpServers": [] })),
        (
            "session/new",
            json!({ "cwd": ["secret-marker"], "mcpServers": [] }),
        ),
        ("session/load", json!({ "sessionId": session })),
        (
            "session/prompt",
            prompt(json!(session), json!("secret-marker")),
        ),
        (
            "session/prompt",
            prompt(json!(session), json!([{ "type": "text" }])),
        ),
        (
            "session/prompt",
            prompt(json!(session), json!([{ "type": "secret-marker" }])),
        ),
        ("session/prompt", prompt(json!(session), json!([]))),
        ("session/prompt", prompt(json!(7), text.clone())),
        ("session/set_mode", json!({ "sessionId": session })),
        (
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "mode" }),
        ),
        ("session/delete", json!({ "sessionId": {} })),
        ("authenticate", json!({})),
    ];
    for (method, params) in invalid {
        assert_eq!(
            editor.fails(method, params.clone()).0,
            -32602,
            "{method} {params}"
        );
    }
    for method in ["session/foo", "", "tools/list", "fs/read_text_file"] {
        assert_eq!(editor.fails(method, json!({})).0, -32601, "{method}");
    }
    assert_eq!(
        editor
            .fails("session/prompt", prompt(json!("no-such"), text))
            .0,
        -32002
    );
    assert!(
        editor
            .seen
            .iter()
            .all(|it| !it.to_string().contains("secret-marker"))
    );
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
}

/// Proves ACP-7: unknown notifications, responses to no request, and cancellations of no prompt are ignored.
#[test]
fn message_without_a_meaning_is_ignored() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut editor = editor(&home);
    editor.notify("session/foo", json!({}));
    editor.notify("$/progress", json!({}));
    editor.notify("session/cancel", json!({ "sessionId": "no-such" }));
    editor.notify("session/cancel", json!({ "sessionId": 3 }));
    editor.line("{\"jsonrpc\":\"2.0\",\"id\":\"never\",\"result\":{}}");
    editor.line("{\"jsonrpc\":\"2.0\",\"id\":99,\"error\":{\"code\":1,\"message\":\"m\"}}");
    let seen = editor.seen.len();
    let session = editor.session(&home.project());
    let before = editor.seen.len();
    assert_eq!(before, seen + 1, "only the response came");
    editor.cancel(&session);
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
}

/// Proves ACP-7: each request has a response, also if ids are repeated.
#[test]
fn repeated_id_has_a_response_for_each_request() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut editor = editor(&home);
    let id = editor.request("session/list", json!({}));
    let again = json!({ "jsonrpc": "2.0", "id": id, "method": "session/list", "params": {} });
    editor.line(&again.to_string());
    editor.until(|it| it["id"] == json!(id));
    editor.until(|it| it["id"] == json!(id));
}

/// Proves ACP-7: a request before `initialize` is refused.
#[test]
fn request_before_initialize_is_refused() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut editor = Editor::start(home.zeph(["acp"]));
    let new = json!({ "cwd": home.project(), "mcpServers": [] });
    editor.fails("session/new", new.clone());
    editor.call("initialize", json!({ "protocolVersion": 1 }));
    editor.call("session/new", new);
}

/// Proves ACP-7: a client that stops reading is a client that ended. Its conversation is stored and can be continued.
#[test]
fn client_that_stops_reading_is_disconnected() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::text("Hello."),
        // More than a pipe holds.
        1 => Reply::text(&"x".repeat(200_000)),
        _ => Reply::text("Here again."),
    });
    let home = Home::openai(&server);
    home.zeph(["-p", "hello"]).code(0);
    let session = session_ids(&home.database()).remove(0);
    let agent = home.zeph(["acp"]).unread_stdout().open_stdin("");
    let mut agent = agent.env("ZEPH_ACP_UNREAD_TIMEOUT_SECS", "1").start();
    let mut output_end = BufReader::new(agent.take_unread());
    let resume = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "talk" }] });
    for (method, params) in [
        ("initialize", json!({ "protocolVersion": 1 })),
        ("session/resume", resume),
        ("session/prompt", prompt),
    ] {
        let request = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        agent.say(&request.to_string());
        let mut line = String::new();
        // Nothing is read after the prompt.
        while method != "session/prompt" && !line.contains(&format!("\"id\":\"{method}\"")) {
            line.clear();
            output_end.read_line(&mut line).unwrap();
        }
    }
    let output = agent.wait();
    assert_has(
        &output.stderr,
        &[
            "the client does not read",
            "for 1 s",
            "its sessions are stored",
        ],
    );
    assert_eq!(output.code, Some(1), "{output}");
    home.zeph(["--resume", &session, "-p", "again"])
        .code(0)
        .prints(&["Here again."]);
    let sent = json!(server.last().messages()).to_string();
    assert_has(&sent, &["hello", "talk", "again"]);
    home.wait_until_alone();
}

/// Proves ACP-7, ACP-1a: a long conversation is replayed completely, also if it is more than may wait.
#[test]
fn long_conversation_is_replayed_completely() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut first = editor(&home);
    let session = first.session(&home.project());
    first.prompt(&session, "go");
    first.leave();
    let insert = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) \
         INSERT INTO message (session, seq, role, content, created_at) \
         SELECT m.session, 2 + i, 'assistant', '[{\"type\": \"text\", \"text\": \"n' || i || '\"}]', m.created_at \
         FROM n, message m WHERE m.seq = 1";
    execute(&home.database(), insert);
    let mut editor = editor(&home);
    let load = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    editor.call("session/load", load);
    let chunks = editor.updates("agent_message_chunk");
    let texts: String = chunks
        .iter()
        .map(|chunk| chunk["content"]["text"].as_str().unwrap())
        .collect();
    let expect: String = (1..=300).map(|n| format!("n{n}")).collect();
    assert_eq!(texts, format!("hi{expect}"));
}
