//! Limits of the loop: rounds, calls per response, the doom loop, the context.

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, assert_has, audit, results_of};

/// A model that reads another file each time, as long as it may call tools.
fn tireless() -> OpenAi {
    OpenAi::start(|n, request| {
        if request.json()["tool_choice"] == "none" {
            return Reply::text("This is what I found.");
        }
        Reply::calls(
            &n.to_string(),
            &[("bash", json!({ "command": format!("echo {n}") }))],
        )
    })
}

/// A cap that the user sets.
const CAP: [&str; 2] = ["--set", "agent.max_tool_iterations=10"];

/// Proves AGT-2, D-17.
#[test]
fn iteration_cap_sends_final_request_without_tools() {
    let server = tireless();
    let home = Home::openai(&server);
    let args = ["--yes", "-p", "go", "--output-format", "json"];
    let output = home.zeph(args).args(CAP).code(4);
    let object = output.json();
    assert_eq!(object["stop_reason"], "iteration_cap");
    assert_eq!(object["iterations"], 10);
    assert_eq!(object["text"], "This is what I found.");
    assert_has(
        object["message"].as_str().unwrap(),
        &["10", "max_tool_iterations"],
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 11);
    let (first, last) = (requests[0].json(), requests[10].json());
    assert_eq!(last["tools"], first["tools"], "the cached prefix survives");
    assert_eq!(
        (&first["tool_choice"], &last["tool_choice"]),
        (&json!("auto"), &json!("none"))
    );
    results_of(&requests[10].messages());

    // The user sees the reason.
    let server = tireless();
    let home = Home::openai(&server);
    let output = home.zeph(["--yes", "-p", "go"]).args(CAP).code(4);
    assert_has(&output.stdout, &["This is what I found."]);
    assert_has(&output.stderr, &["stopped after 10 rounds"]);
}

/// Proves AGT-2, D-33, CFG-1: a cap that a source sets ends a turn without a user.
#[test]
fn iteration_cap_is_set_by_file_environment_and_flag() {
    let check = |file: &str, env: Option<&str>, flag: Option<&str>, expect: usize| {
        let server = tireless();
        let home = Home::openai(&server);
        home.more_config(file);
        let mut run = home.zeph(["--yes", "-p", "go"]);
        if let Some(value) = env {
            run = run.env("ZEPH_AGENT_MAX_TOOL_ITERATIONS", value);
        }
        if let Some(value) = flag {
            run = run.args(["--set", &format!("agent.max_tool_iterations={value}")]);
        }
        run.code(4);
        assert_eq!(server.requests().len(), expect + 1);
    };
    let file = "[agent]\nmax_tool_iterations = 2\n";
    check(file, None, None, 2);
    check(file, Some("3"), None, 3);
    check(file, Some("3"), Some("1"), 1);
}

/// Proves AGT-2: a model that calls despite `none` gets refusals as results.
#[test]
fn calls_after_the_cap_do_not_run() {
    let server = OpenAi::start(|n, _| {
        let touch = format!("touch ran{n}");
        Reply::calls(&n.to_string(), &[("bash", json!({ "command": touch }))])
    });
    let home = Home::openai(&server);
    home.zeph(["--yes", "-p", "go", "--set", "agent.max_tool_iterations=2"])
        .code(4);
    assert_eq!(server.requests().len(), 3);
    assert!(home.has("ran0") && home.has("ran1") && !home.has("ran2"));
    assert_eq!(audit(&home.database()).last().unwrap().result, "blocked");

    // The stored conversation can be resumed.
    home.zeph([
        "--yes",
        "--continue",
        "-p",
        "more",
        "--set",
        "agent.max_tool_iterations=1",
    ])
    .code(4);
    let results = results_of(&server.last().messages());
    assert_has(&results[2].1, &["policy_blocked", "limit"]);
}

/// Proves D-21, AGT-2.
#[test]
fn sixteenth_call_of_a_response_does_not_run() {
    let calls: Vec<_> = (0..18)
        .map(|n| ("bash", json!({ "command": format!("echo {n} >> ran.txt") })))
        .collect();
    let server = OpenAi::replies([Reply::calls("m", &calls), Reply::text("Enough.")]);
    let home = Home::openai(&server);
    home.zeph(["--yes", "-p", "go"]).code(0);
    assert_eq!(home.read("ran.txt").lines().count(), 15);
    let results = results_of(&server.last().messages());
    assert_eq!(results.len(), 18);
    for (_, content) in &results[..15] {
        assert!(!content.contains("[tool_error]"), "{content}");
    }
    for (_, content) in &results[15..] {
        assert_has(content, &["category: policy_blocked", "first 15 calls"]);
    }
    let blocked = audit(&home.database())
        .iter()
        .filter(|entry| entry.result == "blocked")
        .count();
    assert_eq!(blocked, 3);
}

/// Proves AGT-3.
#[test]
fn three_equal_iterations_are_a_doom_loop() {
    // Only the ids and the printed time differ.
    let server = OpenAi::start(|n, _| {
        let call = ("bash", json!({ "command": "date +%H:%M:%S.%N; echo same" }));
        Reply::calls(&n.to_string(), &[call])
    });
    let home = Home::openai(&server);
    let object = home
        .zeph(["--yes", "-p", "go", "--output-format", "json"])
        .code(4)
        .json();
    assert_eq!(object["stop_reason"], "doom_loop");
    assert_has(object["message"].as_str().unwrap(), &["three times"]);
    assert_eq!(server.requests().len(), 3);
    let stopped = home.zeph(["--yes", "--continue", "-p", "again"]).code(4);
    assert_has(&stopped.stderr, &["three times in a row"]);
    results_of(&server.last().messages());
}

/// Proves AGT-3: regardless of time formats, and if the output is stored because of its length.
#[test]
fn times_and_references_do_not_hide_a_doom_loop() {
    let check = |command: &'static str| {
        let server = OpenAi::start(move |n, request| {
            if request.json()["tool_choice"] == "none" {
                return Reply::text("stuck");
            }
            Reply::calls(&n.to_string(), &[("bash", json!({ "command": command }))])
        });
        let home = Home::openai(&server);
        let args = ["--yes", "-p", "go", "--output-format", "json"];
        let object = home.zeph(args).code(4).json();
        assert_eq!(object["stop_reason"], "doom_loop", "{command}");
    };
    check("date +%s.%N; date --iso-8601=ns; date '+%F %T,%3N INFO'; date +%d/%b/%Y:%T");
    check("echo \"finished in 0.$RANDOM seconds\"; echo \"duration_ms 1.$RANDOM\"");
    check("seq 1 60000");
}

/// Proves AGT-3, D-39: equal results of different calls that only read are a doom loop, but not if a
/// call changed something or waited, or if nothing was found.
#[test]
fn equal_results_of_different_reads_are_a_doom_loop() {
    let check = |commands: [&'static str; 3], stop: &str| {
        let server = OpenAi::start(move |n, _| match commands.get(n) {
            Some(command) => {
                let call = ("bash", json!({ "command": command }));
                Reply::calls(&n.to_string(), &[call])
            }
            None => Reply::text("Done."),
        });
        let home = Home::openai(&server);
        home.write("a.txt", "alpha\n");
        let args = ["--yes", "-p", "go", "--output-format", "json"];
        let object = home.zeph(args).run().json();
        assert_eq!(object["stop_reason"], stop, "{commands:?}");
    };
    check(["cat a.txt", "head a.txt", "tail a.txt"], "doom_loop");
    let changed = ["cat a.txt", "touch b.txt; cat a.txt", "tail a.txt"];
    check(changed, "done");
    let waited = ["cat a.txt", "sleep 0; cat a.txt", "tail a.txt"];
    check(waited, "done");
    let in_vain = ["grep x a.txt", "grep y a.txt", "grep z a.txt"];
    check(in_vain, "done");
}

/// Proves AGT-3: calls with changing results are not a doom loop.
#[test]
fn changing_results_are_not_a_doom_loop() {
    let server = OpenAi::start(|n, _| match n {
        0..=4 => {
            let count = json!({ "command": "echo x >> n; wc -l < n" });
            Reply::calls(&n.to_string(), &[("bash", count)])
        }
        _ => Reply::text("Counted."),
    });
    let home = Home::openai(&server);
    home.zeph(["--yes", "-p", "go"]).code(0);
    assert_eq!(home.read("n").lines().count(), 5);
}

/// Proves AGT-4.
#[test]
fn context_budget_stops_before_a_request() {
    let server = OpenAi::start(|n, request| {
        let print = format!("head -c 9000 /dev/zero | tr '\\0' x; echo {n}");
        let reply = Reply::calls(&n.to_string(), &[("bash", json!({ "command": print }))]);
        reply.usage(request.raw.len() / 4)
    });
    let home = Home::openai(&server);
    home.more_config("[agent]\ncontext_budget_tokens = 9000\ncompaction.enabled = false\n");
    let object = home
        .zeph(["--yes", "-p", "go", "--output-format", "json"])
        .code(4)
        .json();
    assert_eq!(object["stop_reason"], "context_budget");
    assert_has(
        object["message"].as_str().unwrap(),
        &["80 %", "context_budget_tokens"],
    );
    let count = server.requests().len();
    assert!((2..=6).contains(&count), "{count} requests");
    // A conversation over the budget sends no request.
    home.zeph(["--continue", "-p", "more"])
        .code(4)
        .says(&["/clear"]);
    assert_eq!(server.requests().len(), count);
}

/// Proves AGT-4: the token count of the provider replaces the estimate, also when another process continues
/// the conversation.
#[test]
fn context_budget_uses_the_token_count_of_the_provider() {
    let server = OpenAi::start(|n, _| {
        let call = ("bash", json!({ "command": format!("echo {n}") }));
        let reply = match n {
            0 => Reply::text("Hello."),
            _ => Reply::calls(&n.to_string(), &[call]),
        };
        reply.usage(if n == 1 { 85_000 } else { 70_000 })
    });
    let home = Home::openai(&server);
    home.more_config("[agent]\ncontext_budget_tokens = 100000\ncompaction.enabled = false\n");
    let turn = |code: i32| {
        let args = ["--yes", "--continue", "-p", "go", "--output-format", "json"];
        let object = home.zeph(args).code(code).json();
        (object["stop_reason"].clone(), server.requests().len())
    };
    assert_eq!(turn(0), (json!("done"), 1));
    assert_eq!(turn(4), (json!("context_budget"), 2));
    assert_eq!(turn(4), (json!("context_budget"), 2));
}

/// Proves CFG-1, AGT-4: the user's budget applies unchanged; a project's budget can only lower it.
#[test]
fn project_cannot_raise_the_context_budget() {
    let long = "word ".repeat(120_000);
    let check = |project: bool, stop: &str| {
        let server = OpenAi::replies([Reply::text("fits")]);
        let home = Home::openai(&server);
        let budget = "[agent]\ncontext_budget_tokens = 1000000\n";
        if project {
            home.write(".zeph/config.toml", budget);
        } else {
            home.more_config(budget);
        }
        let object = home
            .zeph(["--output-format", "json"])
            .stdin(long.as_bytes())
            .run()
            .json();
        assert_eq!(object["stop_reason"], stop);
    };
    check(false, "done");
    check(true, "context_budget");
}
