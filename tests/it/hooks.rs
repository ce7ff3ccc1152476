//! Hooks: their input, their effect on calls and prompts, and their processes.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Page, Reply, Terminal, assert_has, audit};

/// A hook that writes its input to `file` of the project, and then runs `then`.
fn hook(event: &str, file: &str, then: &str) -> String {
    format!("[[hooks]]\nevent = \"{event}\"\ncommand = '''cat >> {file}; {then}'''\n")
}

/// The inputs that a hook wrote to a file.
fn inputs(home: &Home, file: &str) -> Vec<Value> {
    let text = home.read(file);
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// Proves CLI-11: each event has its input, and the texts of hooks reach the model in labelled blocks.
#[test]
fn hooks_of_a_turn_see_their_events_and_add_context() {
    let server = OpenAi::replies([
        Reply::calls("r", &[("read", json!({ "path": "a.txt" }))]),
        Reply::text("It is read."),
        Reply::text("Again."),
    ]);
    let home = Home::openai(&server);
    home.write("a.txt", "the content\n");
    let context = |text: &str| format!("echo '{{\"context\": \"{text}\"}}'");
    home.more_config(
        &[
            hook("session_start", "start.log", &context("from start")),
            hook("prompt", "prompt.log", &context("from prompt")),
            hook("before_call", "before.log", &context("from before")),
            hook("after_call", "after.log", &context("from after")),
            hook("turn_end", "end.log", ""),
        ]
        .concat(),
    );
    let output = home
        .zeph(["-p", "Read it.", "--output-format", "json"])
        .code(0);
    let object = output.json();
    let session = object["session"].as_str().unwrap().to_owned();
    #[allow(
        clippy::disallowed_methods,
        reason = "the path as the program finds it"
    )]
    let cwd = home.project().canonicalize().unwrap();
    let cwd = cwd.to_str().unwrap();
    let base =
        |event: &str| json!({ "event": event, "session": session, "cwd": cwd, "mode": "ask" });
    let with = |event: &str, fields: Value| {
        let mut all = base(event);
        all.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        vec![all]
    };
    assert_eq!(inputs(&home, "start.log"), [base("session_start")]);
    assert_eq!(
        inputs(&home, "prompt.log"),
        with("prompt", json!({ "prompt": "Read it." }))
    );
    let call = json!({ "tool": "read", "params": { "path": "a.txt" } });
    assert_eq!(inputs(&home, "before.log"), with("before_call", call));
    let after = inputs(&home, "after.log").remove(0);
    assert_eq!(after["result"]["success"], true);
    assert_has(after["result"]["data"].as_str().unwrap(), &["the content"]);
    assert_eq!(after["params"], json!({ "path": "a.txt" }));
    let end = inputs(&home, "end.log").remove(0);
    assert_eq!(
        end["result"],
        json!({ "stop_reason": "done", "text": "It is read." })
    );
    assert_eq!(end["prompt"], "Read it.");

    let requests = server.requests();
    let prompt = requests[0].messages().last().unwrap()["content"].to_string();
    assert_has(
        &prompt,
        &[
            "Read it.",
            "<hook_context event=\\\"session_start\\\">\\nfrom start\\n</hook_context>",
            "<hook_context event=\\\"prompt\\\">\\nfrom prompt\\n</hook_context>",
        ],
    );
    let result = requests[1].messages().last().unwrap()["content"].to_string();
    assert_has(
        &result,
        &[
            "the content",
            "<hook_context event=\\\"before_call\\\">\\nfrom before\\n</hook_context>",
            "<hook_context event=\\\"after_call\\\">\\nfrom after\\n</hook_context>",
        ],
    );
    // Each run has its audit entry, next to that of the call.
    let entries = audit(&home.database());
    let hooks = entries.iter().filter(|entry| entry.tool == "hook");
    let hooks: Vec<(&str, &str)> = hooks
        .map(|entry| (entry.call["event"].as_str().unwrap(), entry.result.as_str()))
        .collect();
    assert_eq!(
        hooks,
        [
            ("session_start", "success"),
            ("prompt", "success"),
            ("before_call", "success"),
            ("after_call", "success"),
            ("turn_end", "success"),
        ]
    );
    home.zeph(["audit", "verify"]).code(0);
    // A resumed conversation shows the prompt of the user, and a second turn is not a second start.
    home.zeph(["-p", "Again.", "--continue"]).code(0);
    assert_eq!(inputs(&home, "prompt.log").len(), 2);
    home.wait_until_alone();
}

/// Proves CLI-11: the text of `turn_end` is sent with the next prompt, and secrets in a text are redacted.
#[test]
fn text_of_a_turn_end_is_sent_with_the_next_prompt_without_secrets() {
    let token = format!("ghp_{}", "q7Rk2mVx9LpTz4WcN8sYb3HdJf6GaE1uXo5i");
    let server = OpenAi::replies([
        Reply::calls("r", &[("read", json!({ "path": "a.txt" }))]),
        Reply::text("First."),
        Reply::text("Second."),
    ]);
    let home = Home::openai(&server);
    home.write("a.txt", "the content\n");
    let context = |text: &str| format!("echo '{{\"context\": \"{text} {token}\"}}'");
    home.more_config(
        &[
            hook("prompt", "prompt.log", &context("at the prompt")),
            hook("before_call", "before.log", &context("before")),
            hook("turn_end", "end.log", &context("at the end")),
        ]
        .concat(),
    );
    let mut terminal = Terminal::start(&home, &[]);
    for text in ["one", "two"] {
        terminal.prompts("");
        terminal.type_keys(&format!("{text}\r"));
        terminal.shows(if text == "one" { "First." } else { "Second." });
    }
    terminal.prompts("");
    terminal.leaves();
    let requests = server.requests();
    let sent = |request: &crate::rig::Request| json!(request.messages()).to_string();
    assert!(!sent(&requests[1]).contains("at the end"));
    let second = requests[2].messages().last().unwrap()["content"].to_string();
    assert_has(
        &second,
        &[
            "two",
            "<hook_context event=\\\"turn_end\\\">\\nat the end ",
            "<hook_context event=\\\"prompt\\\">\\nat the prompt ",
        ],
    );
    assert_has(
        &sent(&requests[1]),
        &["event=\\\"before_call\\\">\\nbefore "],
    );
    for request in &requests {
        assert!(!sent(request).contains(&token), "{}", sent(request));
    }
    let session = crate::rig::session_ids(&home.database()).remove(0);
    assert!(!home.export(&session).to_string().contains(&token));
    let trail = json!(
        audit(&home.database())
            .iter()
            .map(|it| it.call.clone())
            .collect::<Vec<_>>()
    );
    assert!(!trail.to_string().contains(&token), "{trail}");
}

/// Proves CLI-11: the text of `turn_end` is sent with the next prompt after a change of the model
/// and in a copy.
#[test]
fn text_of_a_turn_end_is_sent_after_a_model_change_and_a_fork() {
    let server = OpenAi::replies([Reply::text("First."), Reply::text("Second.")]);
    let home = Home::openai(&server);
    let context = "echo '{\"context\": \"tests fail\"}'";
    home.more_config(&hook("turn_end", "end.log", context));
    let mut terminal = Terminal::start(&home, &[]);
    for (text, shown) in [
        ("one", "First."),
        ("/model other-model", "requests go to other-model"),
        ("/fork", "continues as a copy of"),
        ("two", "Second."),
    ] {
        terminal.prompts("");
        terminal.type_keys(&format!("{text}\r"));
        terminal.shows(shown);
    }
    terminal.prompts("");
    assert_eq!(terminal.leaves().0.code(), Some(0));
    let prompt = server.last().messages().last().unwrap()["content"].to_string();
    assert_has(
        &prompt,
        &[
            "two",
            "<hook_context event=\\\"turn_end\\\">\\ntests fail\\n</hook_context>",
        ],
    );
}

/// Proves CLI-11: a refused prompt is not sent and not stored.
#[test]
fn prompt_that_a_hook_denies_is_not_sent() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    home.more_config(&hook("prompt", "prompt.log", "echo not today >&2; exit 2"));
    let output = home.zeph(["-p", "Read it."]).code(3);
    assert_has(&output.stderr, &["a hook refused the prompt", "not today"]);
    assert_eq!(server.requests().len(), 0);
}

/// Proves CLI-11: the text of a hook that ran before a refused prompt is sent with the next prompt.
#[test]
fn text_before_a_refused_prompt_is_sent_with_the_next_one() {
    let server = OpenAi::replies([Reply::text("It is done.")]);
    let home = Home::openai(&server);
    let context = "echo '{\"context\": \"the branch is main\"}'";
    home.more_config(&hook("session_start", "start.log", context));
    home.more_config(
        "[[hooks]]\nevent = \"prompt\"\ncommand = 'if grep -q unwanted; then echo no >&2; exit 2; fi'\n",
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("unwanted\r");
    terminal.shows("a hook refused the prompt");
    terminal.prompts("");
    terminal.type_keys("please\r");
    terminal.shows("It is done.");
    assert_eq!(terminal.leaves().0.code(), Some(0));
    assert_eq!(server.requests().len(), 1);
    let prompt = server.last().json()["messages"].to_string();
    assert_has(&prompt, &["please", "the branch is main"]);
    assert!(!prompt.contains("unwanted"), "{prompt}");
}

/// Proves CLI-11: the failure of a hook that cannot refuse is reported, and the turn continues.
#[test]
fn failure_of_another_event_is_reported_to_the_user() {
    for event in ["session_start", "prompt", "after_call", "turn_end"] {
        let server = OpenAi::replies([
            Reply::calls("r", &[("read", json!({ "path": "a.txt" }))]),
            Reply::text("It is read."),
        ]);
        let home = Home::openai(&server);
        home.write("a.txt", "x\n");
        home.more_config(&hook(event, "log", "echo broken >&2; exit 7"));
        let output = home.zeph(["-p", "Read it.", "--quiet"]).code(0);
        assert_has(
            &output.stderr,
            &[event, "failed: it exited with code 7: broken"],
        );
        assert_eq!(output.stdout.trim(), "It is read.", "{event}");
    }
}

/// Proves CLI-11: a hook and its background processes end at the time limit, and a large input does not block.
#[test]
fn hook_that_is_too_slow_leaves_no_process() {
    let home = Home::new();
    home.config(
        "[[tools.permissions.write]]\npattern = \"*\"\naction = \"allow\"\n\
         [[hooks]]\nevent = \"before_call\"\ntimeout_secs = 1\n\
         command = \"setsid sleep 1000 & sleep 1000\"\n",
    );
    let params = json!({ "path": "b.txt", "content": "x".repeat(120_000) }).to_string();
    let output = home
        .zeph(["tools", "call", "write", &params, "--json", "--yes"])
        .code(3);
    assert_has(
        output.json()["data"].as_str().unwrap(),
        &["took longer than 1 s"],
    );
    assert!(!home.has("b.txt"));
    home.wait_until_alone();
    let entries = audit(&home.database());
    let results: Vec<&str> = entries.iter().map(|entry| entry.result.as_str()).collect();
    assert_eq!(results, ["timeout", "blocked"]);
    // A hook that leaves a process behind does not wait for it.
    home.config(
        "[[tools.permissions.write]]\npattern = \"*\"\naction = \"allow\"\n\
         [[hooks]]\nevent = \"before_call\"\ncommand = \"sleep 1000 &\"\n",
    );
    home.zeph(["tools", "call", "write", &params]).code(0);
    assert!(home.has("b.txt"));
    home.wait_until_alone();
}

/// Proves CLI-11: a hook sees no call that a gate refuses, and runs once for a call that the user confirms.
#[test]
fn hook_sees_only_calls_that_would_run() {
    let server = OpenAi::replies([
        Reply::calls(
            "a",
            &[
                ("bash", json!({ "command": "rm -rf /" })),
                ("bash", json!({ "command": "touch ran" })),
            ],
        ),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.more_config(&hook("before_call", "before.log", ""));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("[1] once");
    assert!(!home.has("before.log"));
    terminal.type_keys("1");
    terminal.shows("Done.");
    terminal.prompts("");
    terminal.leaves();
    let seen = inputs(&home, "before.log");
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0]["params"]["command"], "touch ran");
    assert!(home.has("ran"));
}

/// Proves CLI-11: Esc or Ctrl-C ends a running hook, and the call does not run.
#[test]
fn cancelled_hook_ends_and_its_call_does_not_run() {
    let server = OpenAi::replies([
        Reply::calls("r", &[("read", json!({ "path": "a.txt" }))]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.write("a.txt", "x\n");
    home.more_config(&hook("before_call", "before.log", "sleep 1000"));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    crate::rig::wait_for("the hook", || home.has("before.log").then_some(()));
    terminal.type_keys("\u{3}");
    terminal.prompts("");
    terminal.leaves();
    home.wait_until_alone();
    let entries = audit(&home.database());
    let results: Vec<(&str, &str)> = entries
        .iter()
        .map(|entry| (entry.tool.as_str(), entry.result.as_str()))
        .collect();
    assert_eq!(results, [("hook", "cancelled"), ("read", "cancelled")]);
}

/// Proves CLI-11: only the user's own configuration has hooks, and each key of a hook is checked.
#[test]
fn hook_of_a_project_is_refused() {
    let home = Home::new();
    home.write(
        ".zeph/config.toml",
        "[[hooks]]\nevent = \"prompt\"\ncommand = \"touch owned\"\n",
    );
    let refused = home.zeph(["tools", "list"]).code(2);
    assert_has(
        &refused.stderr,
        &[".zeph/config.toml:1", "may not set it", "`hooks`"],
    );
    assert!(!home.has("owned"));
    for (config, fault) in [
        ("event = \"prompt\"\ncommand = \" \"", "empty `command`"),
        (
            "event = \"prompt\"\ncommand = \"true\"\ntools = [\"bash\"]",
            "no effect on the event `prompt`",
        ),
        (
            "event = \"before_call\"\ncommand = \"true\"\ntools = [\"a[\"]",
            "`tools` of the before_call hook",
        ),
        ("event = \"before\"\ncommand = \"true\"", "before_call"),
        (
            "event = \"prompt\"\ncommand = \"true\"\ntimeout_secs = 0",
            "at least 1",
        ),
    ] {
        let home = Home::new();
        home.config(&format!("[[hooks]]\n{config}\n"));
        let refused = home.zeph(["tools", "list"]).code(2);
        assert_has(&refused.stderr, &[fault, "config.toml:"]);
    }
}

/// Proves PKG-5, CLI-11: the hook of the page about hooks refuses a push to `main`, and no other command.
#[test]
fn hook_of_the_page_refuses_a_push_to_main() {
    let home = Home::new();
    let page = Page::of(include_str!("../../docs/hooks.md"));
    let block = |language: &str| {
        let mut blocks = page.blocks.iter();
        let found = blocks.find(|(kind, _)| kind == language);
        found.expect(language).1.clone()
    };
    let program = home.home().join("bin/no-push-to-main");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, block("python")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    home.more_config(&block("toml"));
    let call = |command: &str| {
        let params = json!({ "command": command }).to_string();
        home.zeph(["tools", "call", "bash", &params, "--yes"])
    };
    let refused = call("git push origin main").code(3);
    assert_has(&refused.stderr, &["pushes to main need a review"]);
    let allowed = call("echo git push").code(0);
    assert_has(&allowed.stdout, &["git push"]);
}
