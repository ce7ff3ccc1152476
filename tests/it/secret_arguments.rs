//! Secrets in call arguments and in text of the model and the user. No output, log or store contains the key
//! of a provider, and patterns of secrets are shown only in questions to the user.

use serde_json::{Value, json};

use crate::rig::{Home, KEY, OpenAi, Output, Reply, Terminal};

/// A token in the format of a code host, assembled here so that no file contains one.
fn token() -> String {
    format!("gh{}{}", "p_", "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6")
}

/// The key as it is, and in reversible forms: encoded, escaped, split.
fn forms() -> Vec<String> {
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![
        KEY.to_owned(),
        // `printf %s "$KEY" | base64`, without the last characters, which depend on what follows.
        "c2stdGVzdC0wMTIzNDU2Nzg5YWJjZGVm".to_owned(),
        hex.to_uppercase(),
        hex,
        format!("{}\n{}", &KEY[..12], &KEY[12..]),
        format!("{}\\\n  {}", &KEY[..9], &KEY[9..]),
    ]
}

/// Calls with the secrets in each argument: calls that run, are refused, or are invalid.
fn calls() -> Vec<(&'static str, Value)> {
    let token = token();
    let both = format!("{KEY} {token}");
    let mut named = json!({ "path": "a.txt" });
    named[KEY] = json!(1);
    named[token.as_str()] = json!({ "x": both });
    let mut calls = vec![
        ("bash", json!({ "command": format!(": {both}") })),
        (
            "bash",
            json!({ "command": format!("echo {both}; echo {both} >&2; exit 3") }),
        ),
        ("bash", json!({ "command": format!("sudo echo {both}") })),
        (
            "bash",
            json!({ "command": format!("curl -H 'Authorization: Bearer {KEY}' http://127.0.0.1:1/{token}") }),
        ),
        ("bash", json!({ "command": [both] })),
        ("bash", json!({ "command": format!("'{both}") })),
        ("bash", json!({ "cmd": both, "cwd": both })),
        ("bash", json!(both)),
        ("read", json!({ "path": both })),
        ("read", json!({ "path": [both] })),
        ("read", named),
        (
            "edit",
            json!({ "path": "a.txt", "old_string": both, "new_string": both }),
        ),
        (
            "write",
            json!({ "path": format!("{token}.txt"), "content": "x" }),
        ),
        ("write", json!({ "path": "/etc/zeph-no", "content": both })),
        (
            "grep",
            json!({ "pattern": format!("({both}"), "path": "." }),
        ),
        (
            "fetch",
            json!({ "url": format!("http://127.0.0.1:1/?key={KEY}&token={token}") }),
        ),
        ("fetch", json!({ "url": both })),
        (
            "memory_save",
            json!({ "content": format!("the key is {both}") }),
        ),
        ("add_task", json!({ "content": both })),
        ("scheduler", json!({ "task": both, "when": both })),
        ("read_overflow", json!({ "id": both })),
        ("no_such_tool", json!({ "x": both })),
        ("list_directory", json!({ "path": both, "depth": both })),
    ];
    for form in forms() {
        calls.push(("bash", json!({ "command": format!(": \"{form}\"") })));
    }
    calls
}

/// Asserts that the text contains no form of the key, with raw and JSON-escaped line breaks.
#[track_caller]
fn holds_no_key(what: &str, text: &str) {
    let joined: String = text
        .replace("\\n", "\n")
        .split(['\n', '\\', ' ', '│'])
        .collect();
    for (text, kind) in [(text, "as it is"), (&joined, "without line breaks")] {
        for form in forms() {
            assert!(
                !text.contains(&form),
                "{what} holds {form:?}, {kind}:\n{}",
                around(text, &form)
            );
        }
    }
}

/// Asserts that the text contains neither the key nor the token.
#[track_caller]
fn holds_nothing(what: &str, text: &str) {
    holds_no_key(what, text);
    let token = token();
    assert!(
        !text.contains(&token),
        "{what} holds {token}:\n{}",
        around(text, &token)
    );
}

fn around(text: &str, found: &str) -> String {
    let at = text.find(found).unwrap_or_default();
    let begin = text[..at]
        .char_indices()
        .rev()
        .nth(300)
        .map_or(0, |(at, _)| at);
    text[begin..].chars().take(700).collect()
}

/// All files of the data folder, as text.
fn stored(home: &Home) -> String {
    let mut text = String::new();
    let mut directories = vec![home.data(), home.tmp()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.path().is_dir() {
                directories.push(entry.path());
            } else if let Ok(bytes) = std::fs::read(entry.path()) {
                text.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }
    text
}

/// Checks the output of the commands that show stored data.
#[track_caller]
fn no_output_has_the_key(home: &Home) {
    holds_no_key("the data folder", &stored(home));
    let listed = home.zeph(["sessions", "list", "--all", "--json"]).code(0);
    let mut commands: Vec<Vec<String>> = [
        "sessions list --all",
        "sessions list --all --json",
        "audit query --limit 1000",
        "audit query --limit 1000 --json",
        "audit tail --lines 1000",
        "memory list",
        "memory list --json",
        "scheduler list",
        "scheduler list --json",
        "overflow list",
        "undo --list",
        "policy replay",
        "policy replay --json",
        "filter gain --json",
    ]
    .iter()
    .map(|line| line.split(' ').map(str::to_owned).collect())
    .collect();
    for session in listed.json().as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        for command in ["show", "export"] {
            commands.push(["sessions", command, id].map(str::to_owned).to_vec());
        }
    }
    for command in commands {
        let output = home.zeph(&command).arg("-vvv").run();
        holds_nothing(&format!("the output of {command:?}"), &output.stdout);
        holds_nothing(&format!("the log of {command:?}"), &output.stderr);
    }
}

#[track_caller]
fn output_holds_nothing(what: &str, output: &Output) {
    holds_nothing(&format!("{what}: standard output"), &output.stdout);
    holds_nothing(&format!("{what}: standard error"), &output.stderr);
}

/// A server whose model makes all calls in sequence and writes the key in its text.
fn server() -> OpenAi {
    let calls = calls();
    let mut next = 0;
    OpenAi::start(move |n, request| {
        if request.is_reformat() {
            return Reply::text("{}");
        }
        next += 1;
        match calls.get(next - 1) {
            Some((tool, params)) => Reply::calls(&format!("c{n}"), &[(*tool, params.clone())]),
            None => Reply::text(&format!("The key is {KEY}.")),
        }
    })
}

fn home(server: &OpenAi) -> Home {
    let home = Home::openai(server);
    home.more_config(
        "[agent]\nmax_tool_iterations = 100\n[tools.audit]\njsonl = true\n[tools.anomaly]\nenabled = false\n",
    );
    home.write("a.txt", "x\n");
    home
}

/// Proves OUT-21, D-22, CLI-2b: one turn in each format, unattended and with `--yes`, with all logs.
#[test]
fn one_turn_shows_no_secret_of_its_calls() {
    for format in ["text", "json", "stream-json"] {
        for yes in [&[][..], &["--yes"]] {
            let server = server();
            let home = home(&server);
            let prompt = format!("use {KEY} and {}", token());
            let output = home
                .zeph(["-p", &prompt, "-vvv", "--output-format", format])
                .args(yes)
                .run();
            let what = format!("{format} {yes:?}");
            output_holds_nothing(&what, &output);
            assert!(
                output
                    .stdout
                    .contains("The key is [redacted:known_secret]."),
                "{what}: {output}"
            );
            for (n, request) in server.requests().iter().enumerate() {
                // A repair request quotes only the arguments.
                if request.is_reformat() {
                    continue;
                }
                let text = String::from_utf8_lossy(&request.raw);
                holds_no_key(&format!("{what}: request {n}"), &text);
            }
            no_output_has_the_key(&home);
        }
    }
}

/// Proves OUT-21, D-22: calls without a model.
#[test]
fn calls_of_the_user_show_no_secret() {
    let server = server();
    let home = home(&server);
    let mut script = String::new();
    for (tool, params) in calls() {
        script.push_str(&format!("{}\n", json!({ "tool": tool, "params": params })));
        for json in [&[][..], &["--json"]] {
            for yes in [&[][..], &["--yes"]] {
                let params = params.to_string();
                let output = home
                    .zeph(["tools", "call", tool, &params, "--session", "s", "-vvv"])
                    .args(json)
                    .args(yes)
                    .run();
                output_holds_nothing(&format!("{tool} {params} {json:?} {yes:?}"), &output);
            }
        }
    }
    let output = home
        .zeph(["tools", "run", "-", "--yes", "-vvv"])
        .stdin(script)
        .code(0);
    output_holds_nothing("tools run", &output);
    let wrong = format!("{{\"tool\": \"{KEY}\", \"{}\": 1}}\n", token());
    let output = home.zeph(["tools", "run", "-"]).stdin(wrong).code(2);
    output_holds_nothing("a wrong line", &output);
    for args in [
        &["tools", "show", KEY][..],
        &["sessions", "show", KEY],
        &["policy", "explain", "bash", KEY],
        &["policy", "explain", "--json", "bash", KEY],
        &["--resume", KEY, "-p", "x"],
        &["--set", KEY, "-p", "x"],
        &["--no-such-flag", KEY],
        &["sessions", "list", "--no-such-flag", KEY],
        &["-C", KEY, "tools", "list"],
        &["overflow", "get", KEY],
        &["audit", "query", "--since", KEY],
        &["-p", "x", "--output-schema", KEY],
    ] {
        output_holds_nothing(&format!("{args:?}"), &home.zeph(args).run());
    }
    no_output_has_the_key(&home);
}

/// Proves OUT-21: errors before the configuration is loaded, with tokens in arguments and in a variable with an ordinary
/// name.
#[test]
fn error_before_the_configuration_shows_no_secret() {
    let home = Home::new();
    let key = ["sk", "other", "0123456789abcdefghij"].join("-");
    for (secret, variable) in [
        (token(), "ZEPH_TEST_UNUSED"),
        (token(), "SETTINGS"),
        (key, "SETTINGS"),
    ] {
        let assigned = format!("{secret}=1");
        let option = format!("--{secret}");
        let key = format!("tools.{secret}=1");
        let number = format!("tools.shell.timeout={secret}");
        for args in [
            &["--set", &secret, "-p", "x"][..],
            &["--set", &assigned, "-p", "x"],
            &["--set", &key, "-p", "x"],
            &["--set", &number, "-p", "x"],
            &["-C", &secret, "tools", "list"],
            &["--mode", &secret, "-p", "x"],
            &[&secret],
            &[&option],
            &["tools", &secret],
            &["tools", "list", &option],
            &["completions", &secret],
        ] {
            let output = home.zeph(args).env(variable, &secret).run();
            let text = format!("{}{}", output.stdout, output.stderr);
            assert!(!text.contains(&secret), "{args:?}: {output}");
            assert!(text.contains("[redacted:"), "{args:?}: {output}");
        }
    }
}

/// Proves OUT-21, D-22, PERM-7: the question shows the command without the key; a permanent approval is not
/// available if it would store a secret.
#[test]
fn question_shows_the_call_without_the_key() {
    let token = token();
    let command = format!("touch made-{KEY}; : {token}");
    let calls = [
        ("bash", json!({ "command": command })),
        (
            "write",
            json!({ "path": "b.txt", "content": format!("key = {KEY}\n") }),
        ),
    ];
    let server = OpenAi::start(move |n, _| match calls.get(n) {
        Some((tool, params)) => Reply::calls(&format!("c{n}"), &[(*tool, params.clone())]),
        None => Reply::text("Done."),
    });
    let home = home(&server);
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys(&format!("use {KEY}\r"));
    terminal.shows("[1] once");
    terminal.shows(&format!("$ touch made-[redacted:known_secret]; : {token}"));
    terminal.shows("[3] always is not available: the call contains a secret");
    terminal.type_keys("1");
    terminal.shows("+key = [redacted:known_secret]");
    terminal.type_keys("1");
    terminal.shows("Done.");
    assert!(
        home.has(&format!("made-{KEY}")),
        "the call that runs is the call that was made"
    );
    assert_eq!(home.read("b.txt"), format!("key = {KEY}\n"));
    terminal.prompts("");
    terminal.type_keys("/sessions\r");
    terminal.shows("use [redacted:known_secret]");
    let (_, raw) = terminal.leaves();
    // The line that the user typed is the user's own.
    assert_eq!(
        raw.matches(&format!("touch made-{KEY}")).count(),
        0,
        "{raw}"
    );
    let history = home.data().join("zeph/history.txt");
    let typed = std::fs::read_to_string(&history).unwrap();
    assert!(!typed.contains(KEY), "{typed}");
    no_output_has_the_key(&home);
}
