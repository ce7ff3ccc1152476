//! `zeph -p`: sources of the prompt, the response on standard output, and resumed sessions.

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, assert_has, session_ids};

const HELLO: &str = r#"
[[steps]]
text = "Hello there."
chunks = 3
"#;

/// Proves CLI-2b, CLI-1.
#[test]
fn only_the_response_is_on_standard_output() {
    let home = Home::scripted(
        r#"
        [[steps]]
        text = "I look. "
        calls = [{ tool = "list_directory", input = { path = "." } }]
        [[steps]]
        text = "Nothing is here."
        "#,
    );
    let output = home.zeph(["-p", "what is here?"]).code(0);
    assert_has(&output.stdout, &["Nothing is here."]);
    assert!(!output.stdout.contains("List ."), "{output}");
    assert!(
        !output.stdout.contains('\x1b') && !output.stderr.contains('\x1b'),
        "{output}"
    );
    assert_has(&output.stderr, &["● List ."]);

    let home = Home::scripted(HELLO);
    assert_eq!(home.zeph(["-p", "hi"]).code(0).stdout, "Hello there.\n");
}

/// Proves CLI-3.
#[test]
fn quiet_mode_prints_only_the_response() {
    let home = Home::scripted(
        r#"
        [[steps]]
        calls = [{ tool = "list_directory", input = { path = "." } }]
        [[steps]]
        text = "Done."
        "#,
    );
    let output = home.zeph(["-q", "-p", "look"]).code(0);
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("Done.\n", ""),
        "{output}"
    );
}

/// Proves CLI-1, D-25.
#[test]
fn prompt_comes_from_the_named_source() {
    let check = |args: &[&str], stdin: &str, expect: &str| {
        let server = OpenAi::replies([Reply::text("ok")]);
        let home = Home::openai(&server);
        home.zeph(args).stdin(stdin).code(0);
        let messages = server.last().messages();
        let user = messages.last().unwrap();
        assert_eq!(user["role"], "user");
        assert_eq!(user["content"], expect, "{args:?}");
    };
    check(&["-p", "from the flag"], "not read", "from the flag");
    check(&["-p", "say", "-"], "both\n", "say\n\nboth\n");
    check(&[], "piped in\n", "piped in\n");
    check(&["run", "from", "words"], "not read", "from words");
    check(&["run"], "piped in", "piped in");
    check(&["run", "-"], "piped in", "piped in");
    check(&["run", "say", "this", "-"], "both", "say this\n\nboth");
    // Piped input may be foreign text, so a slash or shell command in it is not executed.
    check(&[], "/clear", "/clear");
    check(&["run"], "!touch ran", "!touch ran");
}

/// Proves D-25: `-p TEXT` does not wait for an open pipe.
#[test]
fn open_pipe_does_not_block() {
    let home = Home::scripted(HELLO);
    home.zeph(["-p", "hi"])
        .open_stdin("")
        .code(0)
        .prints(&["Hello there."]);
    let home = Home::scripted(HELLO);
    home.zeph(["run", "hi"])
        .open_stdin("")
        .code(0)
        .prints(&["Hello there."]);
}

#[test]
fn empty_prompt_is_refused() {
    let home = Home::scripted(HELLO);
    home.zeph(["-p", "  "]).code(2).says(&["prompt is empty"]);
    home.zeph::<&str>([])
        .stdin("")
        .code(2)
        .says(&["prompt is empty"]);
    home.zeph::<&str>([])
        .stdin(vec![0xff, 0xfe, b'a'])
        .code(2)
        .says(&["not valid UTF-8"]);
}

/// Proves D-26, CLI-1.
#[test]
fn continue_takes_the_last_session_of_this_directory() {
    let server = OpenAi::start(|n, _| Reply::text(&format!("answer {n}")));
    let home = Home::openai(&server);
    let first = home
        .zeph(["-p", "alpha", "--output-format", "json"])
        .code(0)
        .json();
    let other = home.root().join("elsewhere");
    std::fs::create_dir(&other).unwrap();
    home.zeph(["-p", "beta"]).cwd(other).code(0);
    let again = ["--continue", "-p", "gamma", "--output-format", "json"];
    let third = home.zeph(again).code(0).json();
    assert_eq!(third["session"], first["session"]);
    let contents: Vec<_> = server.last().messages()[1..]
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(contents, ["alpha", "answer 0", "gamma"]);

    let empty = home.root().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let new = home.zeph(["--continue", "-p", "delta"]).cwd(empty).code(0);
    assert_has(&new.stderr, &["this directory has no session"]);
    assert_eq!(server.last().messages().len(), 2, "a new one starts");
}

/// Proves CLI-1, CLI-2.
#[test]
fn resume_accepts_the_prefix_of_an_id() {
    let server = OpenAi::start(|n, _| Reply::text(&format!("answer {n}")));
    let home = Home::openai(&server);
    home.zeph(["-p", "alpha"]).code(0);
    home.zeph(["-p", "beta"]).code(0);
    let ids = session_ids(&home.database());
    let shared = ids[0]
        .bytes()
        .zip(ids[1].bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let prefix = &ids[0][..(shared + 1).max(8)];
    home.zeph(["--resume", prefix, "-p", "gamma"]).code(0);
    assert_eq!(server.last().messages()[1]["content"], "alpha");
    assert_eq!(
        home.export(&ids[0])["messages"].as_array().unwrap().len(),
        4
    );
    assert_eq!(
        home.export(&ids[1])["messages"].as_array().unwrap().len(),
        2
    );

    home.zeph(["--resume", "ffffffff-none", "-p", "x"])
        .code(1)
        .says(&["no session", "sessions list"]);
    home.zeph(["--resume", prefix, "--continue", "-p", "x"])
        .code(2)
        .says(&["--continue"]);
    assert_eq!(
        server.requests().len(),
        3,
        "a refused command sends no request"
    );
}

/// Proves CLI-2: sessions are listed, shown, exported and removed.
#[test]
fn sessions_are_listed_shown_exported_and_removed() {
    let home = Home::scripted(
        r#"
        [[steps]]
        calls = [{ tool = "add_task", input = { content = "dig" } }]
        [[steps]]
        text = "Planned."
        "#,
    );
    home.zeph(["-p", "plan it"]).code(0);
    let id = session_ids(&home.database()).remove(0);
    home.zeph(["sessions", "list"])
        .code(0)
        .prints(&[&id, "plan it", "1 call "]);
    let list = home.zeph(["sessions", "list", "--json"]).code(0).json();
    assert_eq!(list[0]["id"], id.as_str());
    let shown = ["plan it", "call add_task", "task_1", "Planned."];
    home.zeph(["sessions", "show", &id]).code(0).prints(&shown);
    let export = home.export(&id);
    let roles: Vec<_> = export["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].clone())
        .collect();
    assert_eq!(
        roles,
        ["user", "assistant", "user", "assistant"],
        "{export:#}"
    );
    home.zeph(["sessions", "rm", &id]).code(0);
    home.zeph(["sessions", "list"])
        .code(0)
        .prints(&["no sessions"]);
    home.zeph(["sessions", "show", &id])
        .code(1)
        .says(&["no session"]);
    let audited = crate::rig::audit(&home.database());
    assert_eq!(audited.len(), 1, "the audit entry remains");
}

/// Proves CLI-1: flags that choose provider and model reach the request.
#[test]
fn provider_and_model_are_chosen_by_flags() {
    let (one, two) = (
        OpenAi::replies([]),
        OpenAi::replies([Reply::text("two says hi")]),
    );
    let home = Home::openai(&one);
    let second = format!(
        "[[llm.providers]]\nname = \"second\"\ntype = \"openai\"\nmodel = \"m\"\nbase_url = \"{}/v1/\"\n",
        two.url()
    );
    let config = std::fs::read_to_string(home.config_file()).unwrap();
    home.config(&format!("{config}\n{second}"));
    let args = ["-p", "hi", "--provider", "second", "--model", "big"];
    home.zeph(args).code(0).prints(&["two says hi"]);
    assert_eq!(one.requests().len(), 0);
    assert_eq!(two.last().json()["model"], "big");
    assert_eq!(two.last().path, "/v1/chat/completions");
    assert_eq!(
        two.last().header("authorization"),
        None,
        "no key goes to a server without one"
    );
}

/// Proves CMD-1: slash commands work and send no request.
#[test]
fn slash_commands_send_no_request() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    home.zeph(["-p", "/help"])
        .code(0)
        .prints(&["/clear", "/status", "/quit"]);
    home.zeph(["-p", "/status"])
        .code(0)
        .prints(&["test-model", "Session"]);
    home.zeph(["-p", "/tools"])
        .code(0)
        .prints(&["bash", "read"]);
    let unknown = home.zeph(["-p", "/hepl"]).code(2);
    assert_has(&unknown.stderr, &["error: ", "did you mean /help"]);
    let json = home
        .zeph(["-p", "/tools", "--output-format", "json"])
        .code(0)
        .json();
    assert_has(json["text"].as_str().unwrap(), &["grep"]);
    assert_eq!(json["stop_reason"], json!("done"));
    assert_eq!(server.requests().len(), 0);
}

/// Proves PERM-8.
#[test]
fn plan_mode_changes_nothing() {
    let home = Home::scripted(
        r#"
        [[steps]]
        calls = [
          { tool = "list_directory", input = { path = "." } },
          { tool = "write", input = { path = "a.txt", content = "x" } },
          { tool = "bash", input = { command = "touch b.txt" } },
        ]
        [[steps]]
        expect = { tool_result_contains = ["plan mode", "seen.txt"] }
        text = "Only looked."
        "#,
    );
    home.write("seen.txt", "");
    home.zeph(["--mode", "plan", "--yes", "-p", "go"])
        .code(0)
        .prints(&["Only looked."]);
    assert!(!home.has("a.txt") && !home.has("b.txt"));
}

/// Proves CMD-1: the model forgets the conversation, the store retains it.
#[test]
fn clear_starts_the_conversation_over() {
    let server = OpenAi::start(|n, _| Reply::text(&format!("answer {n}")));
    let home = Home::openai(&server);
    home.zeph(["-p", "alpha"]).code(0);
    home.zeph(["--continue", "-p", "/clear"]).code(0);
    home.zeph(["--continue", "-p", "beta"]).code(0);
    let said: Vec<_> = server.last().messages()[1..]
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(said, ["beta"]);
    let ids = session_ids(&home.database());
    assert_eq!(ids.len(), 1);
    assert_eq!(
        home.export(&ids[0])["messages"].as_array().unwrap().len(),
        4
    );
}
