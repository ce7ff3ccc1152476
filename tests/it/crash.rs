//! `kill -9` at many points of a conversation: `--continue` resumes it, no call runs twice, and completed
//! calls are recorded.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::rig::{
    Home, OpenAi, Reply, Request, Running, assert_has, audit, openai_config, results_of,
    session_ids,
};

/// A server that responds by the progress of the conversation: three rounds of calls with side effects, then
/// text. Each call appends a line of its own to `done.txt`.
fn working() -> OpenAi {
    OpenAi::start(|_, request| round_of(request))
}

fn round_of(request: &Request) -> Reply {
    let answers = request
        .messages()
        .iter()
        .filter(|message| message["tool_calls"].is_array())
        .count();
    let line = |name: &str| json!({ "command": format!("echo {name} >> done.txt") });
    match answers {
        0 => Reply::answer(
            "First I work. ",
            &[
                ("call_a".into(), "bash", line("a").to_string()),
                ("call_b".into(), "bash", line("b").to_string()),
            ],
        ),
        1 => Reply::calls(
            "c",
            &[
                ("write", json!({ "path": "new.txt", "content": "new\n" })),
                ("bash", line("c")),
                ("read", json!({ "path": "new.txt" })),
            ],
        ),
        2 => Reply::calls(
            "d",
            &[("bash", line("d")), ("add_task", json!({ "content": "t" }))],
        ),
        _ => Reply::text("All is done."),
    }
}

fn start(home: &Home) -> Running {
    home.zeph(["--yes", "-p", "work", "--output-format", "stream-json"])
        .start()
}

/// Resumes after a kill with another server and checks all invariants. Returns the number of results that say
/// "interrupted".
#[track_caller]
fn goes_on(home: &Home) -> usize {
    home.wait_until_alone();
    let server = OpenAi::start(|_, _| Reply::text("Went on."));
    home.config(&openai_config(&server.url()));
    let before = lines(home);
    home.zeph(["--yes", "--continue", "-p", "go on"])
        .code(0)
        .prints(&["Went on."]);
    assert_eq!(lines(home), before, "nothing was run again");
    let unique: HashSet<_> = before.iter().collect();
    assert_eq!(unique.len(), before.len(), "nothing ran twice: {before:?}");

    // The history is complete: `results_of` checks that each call has one result.
    let messages = server.last().messages();
    assert_eq!(messages.last().unwrap()["content"], "go on");
    let results = results_of(&messages);
    let entries = audit(&home.database());
    let mut interrupted = 0;
    for (id, content) in &results {
        if content.contains("interrupted: the program ended") {
            assert_has(
                content,
                &["[tool_error]", "category: cancelled", "not run again"],
            );
            interrupted += 1;
        } else {
            let entry = entries.iter().find(|entry| entry.call_id == *id);
            assert!(
                entry.is_some(),
                "{id} has a result and no audit entry: {entries:?}"
            );
        }
    }
    // Each executed call is in the stored history, because the history is written first.
    let asked = serde_json::to_string(&messages).unwrap();
    for line in &before {
        assert!(
            asked.contains(&format!("echo {line} >>")),
            "{line} ran and is not in the history"
        );
    }
    interrupted
}

fn lines(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.path("done.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Proves AGT-6, D-14, D-18, EXE-21.
#[test]
fn kill_during_an_open_request_loses_nothing() {
    for open in 0..4 {
        let server = OpenAi::start(move |n, request| {
            if n == open {
                Reply::hang()
            } else {
                round_of(request)
            }
        });
        let home = Home::openai(&server);
        let running = start(&home);
        server.wait_for_requests(open + 1);
        running.kill();
        home.wait_until_alone();
        let done = ["a", "b", "c", "d"];
        let expect = [0, 2, 3, 4][open];
        assert_eq!(lines(&home), done[..expect], "request {open}");
        assert_eq!(
            goes_on(&home),
            0,
            "request {open}: every call had its result"
        );
        let stored = home.export(&session_ids(&home.database())[0]);
        assert_eq!(stored["messages"][0]["parts"][0]["text"], "work");
    }
}

/// Kills after the n-th line of output, for each of these numbers.
fn kill_after_lines(numbers: impl Iterator<Item = usize>) {
    for number in numbers {
        let server = working();
        let home = Home::openai(&server);
        let mut running = start(&home);
        for _ in 0..number {
            if running.next_line().is_none() {
                break;
            }
        }
        running.kill();
        goes_on(&home);
    }
}

/// Proves AGT-6, D-14, D-18, EXE-21.
#[test]
fn kill_at_any_early_event_loses_nothing() {
    kill_after_lines(0..9);
}

/// Proves AGT-6, D-14, D-18, EXE-21.
#[test]
fn kill_at_any_middle_event_loses_nothing() {
    kill_after_lines(9..18);
}

/// Proves AGT-6, D-14, D-18, EXE-21.
#[test]
fn kill_at_any_late_event_loses_nothing() {
    kill_after_lines(18..27);
}

/// Proves AGT-6: a session survives repeated kills.
#[test]
fn session_survives_repeated_kills() {
    let server = OpenAi::start(|_, request| {
        let asked = request
            .messages()
            .iter()
            .filter(|m| m["role"] == "user")
            .count();
        let echo =
            json!({ "command": format!("echo {asked} >> done.txt; touch begun{asked}; sleep 9") });
        Reply::calls(&format!("k{asked}"), &[("bash", echo)])
    });
    let home = Home::openai(&server);
    for round in 1..=4 {
        let mut args = vec!["--yes", "-p", "again"];
        if round > 1 {
            args.push("--continue");
        }
        let running = home.zeph(args).start();
        let begun = format!("begun{round}");
        crate::rig::wait_for("the command", || home.has(&begun).then_some(()));
        running.kill();
    }
    assert_eq!(lines(&home), ["1", "2", "3", "4"]);
    assert_eq!(
        goes_on(&home),
        4,
        "each of the four was interrupted, and none ran again"
    );
    assert_eq!(session_ids(&home.database()).len(), 1);
}

/// Proves D-18: the stored history is complete after `--continue` and contains the interrupted result.
#[test]
fn interrupted_call_is_stored_as_interrupted() {
    let seconds = crate::rig::unique_seconds();
    let command = format!("echo a >> done.txt; touch begun; sleep {seconds}");
    let server = OpenAi::replies([Reply::calls(
        "s",
        &[("bash", json!({ "command": command }))],
    )]);
    let home = Home::openai(&server);
    let running = start(&home);
    crate::rig::wait_for("the command", || home.has("begun").then_some(()));
    running.kill();
    crate::rig::wait_for("its end", || {
        (!crate::rig::is_running(&seconds)).then_some(())
    });
    assert_eq!(goes_on(&home), 1);
    let stored: Value = home.export(&session_ids(&home.database())[0]);
    let text = stored.to_string();
    assert_eq!(
        text.matches("interrupted: the program ended").count(),
        1,
        "{stored:#}"
    );
}

/// Proves EXE-21, D-14: each result that a script printed is in the trail, regardless of when the process is
/// killed.
#[test]
fn killed_script_has_audited_every_printed_result() {
    let line = |n: usize| {
        let echo = json!({ "command": format!("echo {n} >> done.txt") });
        json!({ "tool": "bash", "params": echo }).to_string() + "\n"
    };
    let script: String = (0..12).map(line).collect();
    for printed in [0, 1, 2, 5, 8, 11] {
        let home = Home::new();
        let mut running = home
            .zeph(["tools", "run", "--yes"])
            .stdin(script.clone())
            .start();
        for _ in 0..printed {
            running.next_line().unwrap();
        }
        running.kill();
        home.wait_until_alone();
        if printed > 0 {
            let entries = audit(&home.database());
            assert!(
                entries.len() >= printed,
                "{printed} printed, {} audited",
                entries.len()
            );
            assert!(
                entries.iter().all(|entry| entry.result == "success"),
                "{entries:?}"
            );
            // One further call may have run before its entry was written.
            let done = lines(&home).len();
            assert!(
                (entries.len()..=entries.len() + 1).contains(&done),
                "{done} done"
            );
        }
        // The data folder is still usable.
        home.zeph(["tools", "call", "list_tasks"]).code(0);
    }
}
