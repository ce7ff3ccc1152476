//! The call quota of a session: counted calls, refusals, and resets.

use serde_json::{Value, json};

use crate::rig::{
    Home, OpenAi, Reply, Terminal, assert_has, audit, execute, results_of, session_ids,
};

fn limit(max: u64) -> String {
    format!("[tools]\nmax_tool_calls_per_session = {max}\n")
}

fn echo(n: usize) -> (&'static str, Value) {
    (
        "bash",
        json!({ "command": format!("echo {n} | tee -a ran.txt") }),
    )
}

/// The number of calls that ran.
fn ran(home: &Home) -> usize {
    match home.has("ran.txt") {
        true => home.read("ran.txt").lines().count(),
        false => 0,
    }
}

/// The results and categories of the trail.
fn outcomes(home: &Home) -> Vec<(String, Option<String>)> {
    let entries = audit(&home.database()).into_iter();
    entries
        .map(|entry| (entry.result, entry.error_category))
        .collect()
}

/// Proves PERM-40, AGT-8, D-11, D-17, ERR-6, CLI-3.
#[test]
fn response_over_the_limit_is_blocked_whole_and_ends_the_turn() {
    let server = OpenAi::start(|n, request| {
        if request.json()["tool_choice"] == "none" {
            return Reply::text("As far as I came.");
        }
        Reply::calls(&n.to_string(), &[echo(n), echo(n)])
    });
    let home = Home::openai(&server);
    home.more_config(&limit(5));
    let object = home
        .zeph(["--yes", "-p", "go", "--output-format", "json"])
        .code(4)
        .json();
    assert_eq!(object["stop_reason"], "quota");
    assert_eq!(object["text"], "As far as I came.");
    assert_eq!(object["iterations"], 3);
    let message = object["message"].as_str().unwrap();
    assert_has(message, &["4 of 5", "max_tool_calls_per_session", "/clear"]);
    assert_eq!(ran(&home), 4, "none of the third answer ran");

    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(
        requests[3].json()["tools"],
        requests[0].json()["tools"],
        "the cached prefix survives"
    );
    let results = results_of(&requests[3].messages());
    for (_, content) in &results[4..] {
        assert_has(
            content,
            &[
                "category: policy_blocked",
                "quota_blocked: 4 of 5 tool calls",
                "requests 2 more",
                "retryable: false",
            ],
        );
    }
    let outcomes = outcomes(&home);
    assert_eq!(outcomes.len(), 6);
    let blocked = ("blocked".to_owned(), Some("policy_blocked".to_owned()));
    assert_eq!(outcomes[4..], [blocked.clone(), blocked]);

    // A single call still fits.
    home.zeph(["tools", "call", "list_tasks", "--session"])
        .args([session_ids(&home.database()).remove(0)])
        .code(0);
    // The text for the user.
    let stopped = home.zeph(["--yes", "--continue", "-p", "again"]).code(4);
    stopped.says(&["5 of 5", "max_tool_calls_per_session"]);
    assert_eq!(ran(&home), 4);
}

/// Proves PERM-40, AGT-8: calls within the limit are not affected, including the last one.
#[test]
fn calls_within_the_limit_run() {
    let server = OpenAi::replies([
        Reply::calls("a", &[echo(1), echo(2)]),
        Reply::calls("b", &[echo(3)]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.more_config(&limit(3));
    let object = home
        .zeph(["--yes", "-p", "go", "--output-format", "json"])
        .code(0)
        .json();
    assert_eq!(object["stop_reason"], "done");
    assert_eq!(ran(&home), 3);
}

/// Proves D-11, D-21: unknown, invalid and surplus calls are not counted.
#[test]
fn invalid_calls_are_not_counted() {
    let mut calls: Vec<_> = (0..14).map(echo).collect();
    calls.insert(3, ("bahs", json!({ "command": "true" })));
    calls.insert(5, ("bash", json!({ "cmmand": "true" })));
    let calls: Vec<_> = calls.into_iter().chain((20..23).map(echo)).collect();
    let server = OpenAi::start(move |n, request| match n {
        0 => Reply::calls("a", &calls),
        _ if request.is_reformat() => Reply::text("null"),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    home.more_config(&limit(13));
    home.zeph(["--yes", "-p", "go"]).code(0);
    assert_eq!(ran(&home), 13, "15 calls less two that are none");
    let results = results_of(&server.last().messages());
    assert_has(&results[3].1, &["tool_not_found"]);
    assert_has(&results[5].1, &["invalid_parameters"]);
    let session = session_ids(&home.database()).remove(0);
    let one_more = ["tools", "call", "list_tasks", "--session", &session];
    home.zeph(one_more).code(3).prints(&["13 of 13"]);
}

/// Proves D-11: a call that needs approval is counted once, although the gates run twice; a call that the
/// user refuses is counted too.
#[test]
fn question_is_not_counted_as_a_call() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "bash", input = { command = "echo 1 >> ran.txt" } },
                 { tool = "bash", input = { command = "echo 2 >> ran.txt" } }]
        [[steps]]
        calls = [{ tool = "bash", input = { command = "echo 3 >> ran.txt" } }]
        [[steps]]
        text = "All three."
        "##,
    );
    home.more_config(&limit(3));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    for (command, answer) in [("echo 1", "1"), ("echo 2", "4"), ("echo 3", "1")] {
        // The title of the call precedes the question.
        terminal.shows(&format!("  $ {command}"));
        terminal.shows("[1] once");
        terminal.type_keys(answer);
    }
    terminal.shows("All three.");
    terminal.prompts("");
    assert_eq!(home.read("ran.txt"), "1\n3\n");
    terminal.type_keys("/status\r");
    terminal.shows("3 of 3 calls of the session used");
    terminal.prompts("");
    // Commands of the user are not counted and not refused.
    terminal.type_keys("!echo 4 >> ran.txt\r");
    terminal.prompts("");
    terminal.type_keys("/clear\r");
    terminal.shows("A new conversation starts");
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("0 of 3 calls of the session used");
    terminal.leaves();
    assert_eq!(home.read("ran.txt"), "1\n3\n4\n");
}

/// Proves D-29: the count continues in each process of the session, and each session has its own.
#[test]
fn quota_persists_across_processes() {
    let server = OpenAi::start(|n, request| {
        if request.json()["tool_choice"] == "none" || n % 2 == 1 {
            return Reply::text("Done.");
        }
        Reply::calls(&n.to_string(), &[echo(n)])
    });
    let home = Home::openai(&server);
    home.more_config(&limit(3));
    home.zeph(["--yes", "-p", "go"]).code(0);
    let session = session_ids(&home.database()).remove(0);
    home.zeph(["--yes", "--continue", "-p", "go"]).code(0);
    home.zeph(["tools", "call", "list_tasks", "--session", &session])
        .code(0);
    let stopped = home.zeph(["--yes", "--resume", &session, "-p", "go"]);
    stopped.code(4).says(&["3 of 3"]);
    assert_eq!(ran(&home), 2);
    let more = ["tools", "call", "list_tasks", "{}", "--json", "--session"];
    let refused = home.zeph(more).args([&session]).code(3).json();
    assert_eq!(refused["error_type"], "permission_denied");
    assert_eq!(refused["error_category"], "policy_blocked");
    assert_has(
        refused["error_message"].as_str().unwrap(),
        &["quota_blocked"],
    );
    home.zeph(more).args(["another"]).code(0);

    // Removing a session removes its count.
    home.zeph(["sessions", "rm", &session]).code(0);
    home.zeph(more).args([&session]).code(0);
}

/// Proves PERM-40: concurrent processes never use the same slot.
#[test]
fn concurrent_processes_share_the_limit() {
    let home = Home::new();
    home.config(&limit(5));
    home.zeph(["tools", "call", "list_tasks", "--session", "s"])
        .code(0);
    let running: Vec<_> = (0..10)
        .map(|_| {
            home.zeph(["tools", "call", "list_tasks", "--session", "s"])
                .start()
        })
        .collect();
    let codes: Vec<_> = running
        .into_iter()
        .map(|running| running.wait().code)
        .collect();
    let count = |code| codes.iter().filter(|found| **found == Some(code)).count();
    assert_eq!((count(0), count(3)), (4, 6), "{codes:?}");
}

/// Proves PERM-40: a script is one session; each line is a batch of its own.
#[test]
fn script_reports_calls_over_the_limit() {
    let home = Home::new();
    home.config(&limit(2));
    let line = r#"{"tool": "list_tasks"}"#;
    let output = home
        .zeph(["tools", "run", "-"])
        .stdin([line; 4].join("\n"))
        .code(0);
    let forms = output.json_lines();
    let outcomes: Vec<_> = forms.iter().map(|form| form["success"] == true).collect();
    assert_eq!(outcomes, [true, true, false, false]);
    assert_has(
        forms[2]["data"].as_str().unwrap(),
        &["quota_blocked: 2 of 2 tool calls of this session are used\n"],
    );
    // A limit of 0 is valid.
    let none = ["tools", "call", "list_tasks", "--set"];
    home.zeph(none)
        .args(["tools.max_tool_calls_per_session=0"])
        .code(3)
        .prints(&["quota_blocked: 0 of 0"]);
}

/// Proves PERM-40, EXE-20: if counting fails, the call does not run.
#[test]
fn failed_count_refuses_the_call() {
    let home = Home::new();
    home.config(&limit(5));
    let call = ["tools", "call", "list_tasks", "--session", "s"];
    home.zeph(call).code(0);
    execute(&home.database(), "DROP TABLE call_quota");
    home.zeph(call)
        .code(3)
        .prints(&["policy_blocked", "cannot be counted"]);
    assert_eq!(outcomes(&home)[1].0, "blocked");
    // Without a limit, nothing is counted.
    home.config("");
    home.zeph(call).code(0);
}

/// Proves PERM-40, CFG-1: a project lowers the limit and never raises it.
#[test]
fn project_can_only_lower_the_limit() {
    let home = Home::new();
    let call = ["tools", "call", "list_tasks"];
    home.write(".zeph/config.toml", &limit(0));
    home.zeph(call).code(3).prints(&["quota_blocked"]);
    home.config(&limit(5));
    home.zeph(call).code(3);
    home.write(".zeph/config.toml", &limit(6));
    home.zeph(call)
        .code(2)
        .says(&["config.toml:2", "may only lower it", "6 is more than 5"]);
    home.write(
        ".zeph/config.toml",
        "[tools]\nmax_tool_calls_per_session = -1\n",
    );
    home.zeph(call).code(2).says(&["config.toml:2"]);
}
