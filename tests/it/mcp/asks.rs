//! Questions of servers to the user, and progress.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{Served, tool};
use crate::rig::{OpenAi, Reply, Terminal, assert_has, openai_config, wait_for};

fn form() -> Value {
    json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "title": "Your\u{200b} name", "minLength": 2 },
        "age": { "type": "integer", "minimum": 1, "description": "In years." },
        "colour": { "type": "string", "enum": ["red", "green"] },
        "news": { "type": "boolean", "default": false },
    }})
}

/// A session at a terminal in which the model calls the tool `name`.
fn session(mode: &str, name: &str, params: &Value) -> (Served, OpenAi, Terminal) {
    session_with(&[], mode, name, params)
}

/// As [`session`], with arguments of the command line.
fn session_with(
    args: &[&str],
    mode: &str,
    name: &str,
    params: &Value,
) -> (Served, OpenAi, Terminal) {
    let served = Served::in_mode(&[tool(name)], mode, "call_timeout_secs = 3\n");
    served.approve();
    let id = format!("mcp_t_{name}");
    let server = OpenAi::replies([
        Reply::calls("c", &[(&id, params.clone())]),
        Reply::text("That is all."),
    ]);
    served.home.more_config(&format!(
        "{}\n[[tools.permissions.{id}]]\npattern = \"*\"\naction = \"allow\"\n",
        openai_config(&server.url())
    ));
    // The browser is a program that records its argument.
    let (browser, opened) = (
        served.home.root().join("browser"),
        served.home.root().join("opened"),
    );
    let text = format!(
        "#!/bin/sh\nprintf %s \"$1\" > {0}.tmp; mv {0}.tmp {0}\n",
        opened.display()
    );
    std::fs::write(&browser, text).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut terminal = Terminal::under(&served.home, args, &[("BROWSER", browser.to_str())]);
    match args.contains(&"--tui") {
        true => terminal.shows("? keys"),
        false => terminal.prompts(""),
    }
    terminal.type_keys("go\r");
    (served, server, terminal)
}

/// The text that the model received for the call.
fn result(server: &OpenAi) -> String {
    let requests = server.requests();
    let messages = requests[1].json()["messages"].clone();
    messages.as_array().unwrap().last().unwrap()["content"].to_string()
}

/// Proves MCP-1b: a form is filled in at the terminal, field by field, with checks. The time limit of the call does not run
/// meanwhile.
#[test]
fn form_is_filled_in_at_the_terminal() {
    for mode in ["", "new"] {
        let params = json!({ "message": "Who\u{202e} are you?", "schema": form() });
        let (_served, server, mut terminal) = session(mode, "ask", &params);
        terminal.shows("The MCP server t requests input:");
        terminal.shows("Who\\u{202e} are you?");
        terminal.shows("[y] fill in  [n] decline  [Esc] cancel");
        terminal.type_keys("y");
        terminal.shows("Your\\u{200b} name: ");
        terminal.type_keys("A\r");
        terminal.shows("invalid: at least 2 characters are required");
        terminal.type_keys("da\r");
        terminal.shows("In years.");
        #[allow(
            clippy::disallowed_methods,
            reason = "the time limit of the call has to pass"
        )]
        std::thread::sleep(std::time::Duration::from_millis(3200));
        terminal.type_keys("x\r");
        terminal.shows("invalid: a whole number is required");
        terminal.type_keys("\x157\r");
        terminal.shows("1. red");
        terminal.type_keys("2\r");
        terminal.shows("yes or no");
        terminal.type_keys("\r");
        terminal.shows("That is all.");
        let result = result(&server);
        let expect = r#"{\"action\": \"accept\", \"content\": {\"age\": 7, \"colour\": \"green\", \"name\": \"Ada\", \"news\": false}}"#;
        assert_has(&result.replace("\\\\", "\\"), &["answered: ", expect]);
        assert_eq!(terminal.leaves().0.code(), Some(0));
    }
}

/// Proves MCP-1b, CLI-5: a form is a dialog of the full screen; a refused value is edited again.
#[test]
fn form_is_filled_in_on_the_full_screen() {
    let params = json!({ "message": "Who\u{202e} are you?", "schema": form() });
    let (_served, server, mut terminal) = session_with(&["--tui"], "", "ask", &params);
    terminal.shows("The MCP server t requests input:");
    terminal.shows("Who\\u{202e} are you?");
    terminal.shows("[y] fill in");
    terminal.type_keys("y");
    terminal.shows("Your\\u{200b} name: ");
    terminal.type_keys("A\r");
    terminal.shows("invalid: at least 2 characters are required");
    terminal.type_keys("da\r");
    terminal.shows("In years.");
    terminal.type_keys("x\r");
    terminal.shows("invalid: a whole number is required");
    terminal.type_keys("\x157\r");
    terminal.shows("1. red");
    terminal.type_keys("2\r");
    terminal.shows("yes or no");
    terminal.type_keys("\r");
    terminal.shows("That is all.");
    let result = result(&server);
    let expect = r#"{\"action\": \"accept\", \"content\": {\"age\": 7, \"colour\": \"green\", \"name\": \"Ada\", \"news\": false}}"#;
    assert_has(&result.replace("\\\\", "\\"), &["answered: ", expect]);
    terminal.type_keys("\x04");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves MCP-1b: the user may decline or cancel.
#[test]
fn form_is_declined_or_cancelled() {
    for (key, action) in [("n", "decline"), ("\x1b", "cancel")] {
        let params = json!({ "schema": form() });
        let (_served, server, mut terminal) = session("", "ask", &params);
        terminal.shows("[y] fill in");
        terminal.type_keys(key);
        terminal.shows("That is all.");
        assert_has(&result(&server), &[action]);
        assert!(!result(&server).contains("content"), "{}", result(&server));
        assert_eq!(terminal.leaves().0.code(), Some(0));
    }
}

/// Proves MCP-1b: if no user can answer, the request is declined, also with `--yes`.
#[test]
fn question_is_declined_without_a_user() {
    for mode in ["", "new"] {
        let served = Served::in_mode(&[tool("ask"), tool("visit")], mode, "");
        served.approve();
        let output = served.call("ask", &json!({ "schema": form() }));
        assert_eq!(
            output.stdout, "answered: {\"action\": \"decline\"}\n",
            "{mode}"
        );
        let output = served.call("visit", &json!({ "url": "https://e.org" }));
        assert_has(&output.stdout, &["\"action\": \"decline\""]);
        if mode == "new" {
            assert_has(&served.log().join("\n"), &["state s-1"]);
        }
    }
}

/// Proves MCP-1b: an address is opened in the browser after the user has seen it, and only an address of the web.
#[test]
fn address_is_opened_after_consent() {
    let url = "https://login.example.org/start?id=7";
    for mode in ["", "new"] {
        let (served, server, mut terminal) = session(mode, "visit", &json!({ "url": url }));
        let opened = served.home.root().join("opened");
        terminal.shows(&format!("opens {url}"));
        assert!(!opened.exists());
        terminal.type_keys("y");
        terminal.shows("That is all.");
        assert_has(&result(&server), &["accept"]);
        wait_for("the browser", || opened.exists().then_some(()));
        assert_eq!(std::fs::read_to_string(&opened).unwrap(), url);
        assert_eq!(terminal.leaves().0.code(), Some(0));
    }
    let (_served, server, terminal) = session("", "visit", &json!({ "url": "file:///etc/passwd" }));
    terminal.shows("is not http or https");
    terminal.shows("That is all.");
    assert_has(&result(&server), &["decline"]);
}

/// Proves MCP-1b: a server that fails because it needs the user at an address gets the call again after the user opened
/// the address.
#[test]
fn call_is_sent_again_after_the_user_opened_a_required_address() {
    let url = "https://login.example.org/first";
    let check = |params: Value, key: &str, expect: &[&str]| {
        let (served, server, mut terminal) = session("", "login", &params);
        terminal.shows("Log in first.");
        terminal.shows(&format!("opens {url}"));
        terminal.type_keys(key);
        terminal.shows("That is all.");
        assert_has(&result(&server), expect);
        let calls = served.log();
        let calls = calls.iter().filter(|line| line.starts_with("tools/call"));
        assert_eq!(calls.count(), if key == "y" { 2 } else { 1 }, "{params}");
        assert_eq!(terminal.leaves().0.code(), Some(0));
    };
    check(json!({ "url": url }), "y", &["logged in"]);
    let declined = ["did not open this address", url];
    check(json!({ "url": url }), "n", &declined);
    let unfinished = ["call it again after that", url];
    check(json!({ "url": url, "always": true }), "y", &unfinished);
}

/// Proves MCP-1b: progress is shown, on one line and without hidden characters.
#[test]
fn progress_is_shown() {
    for mode in ["", "new"] {
        let (_served, _server, terminal) = session(mode, "progress", &json!({}));
        terminal.shows("MCP server t: 1 of 4: halfway");
        terminal.shows("That is all.");
        assert_eq!(terminal.leaves().0.code(), Some(0));
    }
}

/// Proves MCP-1b: sampling is declined unless the server may sample, also without a question.
#[test]
fn sampling_is_declined_by_default() {
    for mode in ["", "new"] {
        let (_served, server, terminal) = session(mode, "think", &json!({}));
        terminal.shows("That is all.");
        assert_has(
            &result(&server),
            &["does not allow sampling for this server"],
        );
        assert_eq!(server.requests().len(), 2);
        drop(terminal);
    }
}

/// Proves MCP-1b: with `sampling = true`, the session's model responds after the user has seen the request and agreed.
#[test]
fn sampling_uses_the_session_model_after_a_question() {
    for mode in ["", "new"] {
        for (key, is_agreed) in [("y", true), ("n", false)] {
            let served = Served::in_mode(&[tool("think")], mode, "sampling = true\n");
            served.approve();
            let mut replies = vec![Reply::calls("c", &[("mcp_t_think", json!({}))])];
            if is_agreed {
                replies.push(Reply::text("Seven."));
            }
            replies.push(Reply::text("That is all."));
            let server = OpenAi::replies(replies);
            served.home.more_config(&format!(
                "{}\n[[tools.permissions.mcp_t_think]]\npattern = \"*\"\naction = \"allow\"\n",
                openai_config(&server.url())
            ));
            let mut terminal = Terminal::start(&served.home, &[]);
            terminal.prompts("");
            terminal.type_keys("go\r");
            terminal.shows("a response of test-model");
            terminal.shows("system: Be\\u{200b} brief.");
            terminal.shows("user: Say a number.");
            terminal.type_keys(key);
            terminal.shows("That is all.");
            let requests = server.requests();
            let last = requests.last().unwrap().json()["messages"].to_string();
            if is_agreed {
                let sampled = requests[1].json();
                assert_eq!(
                    sampled["messages"].as_array().unwrap().len(),
                    2,
                    "{sampled}"
                );
                assert!(sampled.get("tools").is_none_or(Value::is_null), "{sampled}");
                assert_has(&last, &["Seven."]);
            } else {
                assert_eq!(requests.len(), 2);
                assert_has(&last, &["the user declined"]);
            }
            assert_eq!(terminal.leaves().0.code(), Some(0));
        }
    }
}
