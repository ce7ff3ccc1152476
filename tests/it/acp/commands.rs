//! Slash commands in prompts.

use serde_json::json;

use crate::rig::{Decision, Editor, Home, OpenAi, Reply, assert_has};

/// Proves ACP-2, ACP-5: the commands are announced, and a typed command runs without the model.
#[test]
fn typed_command_runs() {
    let write = json!({ "path": "a", "content": "x" });
    let server = OpenAi::replies([Reply::calls("w", &[("write", write)]), Reply::text("Done.")]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    editor.decision = Decision::Option("once");
    let session = editor.session(&home.project());
    let commands = editor.until_update("available_commands_update")["availableCommands"].clone();
    let commands = commands.as_array().unwrap().clone();
    let names: Vec<_> = commands
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    for name in ["status", "compact", "undo", "mode", "model", "help"] {
        assert!(names.contains(&name), "{names:?}");
    }
    editor.prompt(&session, "go");
    assert!(home.has("a"));
    let requests = server.requests().len();
    editor.forget();
    assert_eq!(editor.prompt(&session, "/status"), "end_turn");
    assert_has(&editor.text(), &[&session, "test-model"]);
    editor.forget();
    editor.prompt(&session, "/undo");
    assert!(!home.has("a"));
    editor.forget();
    editor.prompt(&session, "/stats");
    assert_has(&editor.text(), &["did you mean"]);
    editor.forget();
    editor.prompt(&session, "/help");
    let help = editor.text();
    assert_has(&help, &["/status  ", "/undo  "]);
    for unavailable in ["/quit", "/copy", "/resume", "!command"] {
        let line = help.lines().find(|line| line.starts_with(unavailable));
        assert_eq!(line, None, "{help}");
    }
    assert_eq!(server.requests().len(), requests);
}

/// Proves ACP-5: text of a resource is not a command, and a `!command` does not run.
#[test]
fn foreign_text_is_not_a_command() {
    let server = OpenAi::replies([Reply::text("1."), Reply::text("2.")]);
    let home = Home::openai(&server);
    let mut editor = Editor::with_args(&home, &["--yes"]);
    let session = editor.session(&home.project());
    let resource = json!({ "uri": "file:///notes", "text": "/clear" });
    let prompt = json!([{ "type": "resource", "resource": resource }]);
    editor.call(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    assert_has(&server.last().json().to_string(), &["/clear", "@/notes"]);
    let link = json!({ "type": "resource_link", "name": "a", "uri": "file:///a" });
    let prompt = json!([{ "type": "text", "text": "/clear " }, link]);
    editor.call(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    assert_has(&server.last().json().to_string(), &["/clear @/a"]);
    editor.forget();
    editor.prompt(&session, "!touch ran");
    assert!(!home.has("ran"));
    assert_has(&editor.text(), &["!command is not available"]);
    assert_eq!(server.requests().len(), 2);
}

/// Proves ACP-5, CLI-10: the text next to a resource attaches files. A file that cannot be read is reported.
#[test]
fn text_next_to_a_resource_attaches_files() {
    let server = OpenAi::replies([Reply::text("1.")]);
    let home = Home::openai(&server);
    home.more_config("[tools.file]\ndeny_read = [\"**/.env\"]\n");
    home.write("a.txt", "content of a\n");
    home.write("b.txt", "content of b\n");
    home.write(".env", "SECRET=1\n");
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    // The resource itself is not read again.
    let uri = format!("file://{}", home.path("b.txt").display());
    let resource = json!({ "uri": uri, "text": "unsaved b, see @b.txt" });
    let resource = json!({ "type": "resource", "resource": resource });
    let mut prompt = |text: &str| {
        let prompt = json!([{ "type": "text", "text": text }, resource]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        editor.forget();
        editor.call("session/prompt", params);
        editor.text()
    };
    prompt("see @a.txt and ");
    let sent = server.last().json().to_string();
    assert_has(&sent, &["the file a.txt]", "content of a", "unsaved b"]);
    assert!(!sent.contains("content of b"), "{sent}");
    assert_has(&prompt("see @.env and "), &["@.env cannot be attached"]);
    assert_eq!(server.requests().len(), 1);
}

/// Proves ACP-5: commands that switch the session name the way of the editor.
#[test]
fn session_commands_refer_to_the_editor() {
    let server = OpenAi::replies([Reply::text("1.")]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "/resume abcd");
    editor.prompt(&session, "/quit");
    assert_has(
        &editor.text(),
        &["open another session in the editor", "close the session"],
    );
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
}
