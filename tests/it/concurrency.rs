//! Concurrent processes: one database, and one agent per session.

use rustix::process::Signal;
use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, assert_has, audit, openai_config, session_ids};

/// Proves AGT-6, EXE-21: concurrent starts create one complete database and lose no message.
#[test]
fn concurrent_starts_create_one_database() {
    let home = Home::new();
    let params = |n: usize| json!({ "content": format!("task {n}") }).to_string();
    let running: Vec<_> = (0..8)
        .map(|n| {
            home.zeph(["tools", "call", "add_task", &params(n), "--session", "one"])
                .start()
        })
        .collect();
    for child in running {
        child.wait().code(0);
    }
    let list = home
        .zeph(["tools", "call", "list_tasks", "--session", "one"])
        .code(0)
        .stdout;
    for n in 0..8 {
        assert_has(&list, &[&format!("task_{} ", n + 1), &format!("task {n}")]);
    }
    assert_eq!(audit(&home.database()).len(), 9);
}

/// Proves AGT-6: only one agent at a time uses a session, so that its history stays consistent.
#[test]
fn session_in_use_is_refused_until_free() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::text("Begun."),
        1 | 2 => Reply::hang(),
        _ => Reply::text("Went on."),
    });
    let home = Home::openai(&server);
    home.zeph(["-p", "begin"]).code(0);
    let id = session_ids(&home.database()).remove(0);
    let first = home.zeph(["--continue", "-p", "think long"]).start();
    server.wait_for_requests(2);
    for args in [
        ["--continue", "-p", "me too"].as_slice(),
        &["--resume", &id, "-p", "me too"],
    ] {
        home.zeph(args).code(1).says(&["in use", "another session"]);
    }
    // A new session is not in use.
    let second = home.zeph(["-p", "something else"]).start();
    server.wait_for_requests(3);
    second.signal(Signal::INT);
    second.wait().code(130);
    // After a kill, the first process holds no lock.
    first.kill();
    home.zeph(["--resume", &id, "-p", "my turn"])
        .code(0)
        .prints(&["Went on."]);
    let said: Vec<_> = server.last().messages()[1..]
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(said, ["begin", "Begun.", "think long", "my turn"]);
}

/// Proves AGT-1: concurrent agents do not mix their conversations.
#[test]
fn concurrent_agents_do_not_mix() {
    let server = OpenAi::start(|_, request| {
        let messages = request.messages();
        let mine = messages[1]["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match messages.iter().filter(|m| m["role"] == "tool").count() {
            n @ 0..=3 => {
                let echo = json!({ "command": format!("echo {mine} {n} >> {mine}.txt") });
                Reply::calls(&format!("{mine}{n}"), &[("bash", echo)])
            }
            _ => Reply::text(&format!("{mine} is done.")),
        }
    });
    let home = Home::new();
    home.config(&openai_config(&server.url()));
    let names = ["red", "green", "blue", "white"];
    let running: Vec<_> = names
        .iter()
        .map(|name| home.zeph(["--yes", "-p", name]).start())
        .collect();
    for (name, child) in names.iter().zip(running) {
        child.wait().code(0).prints(&[&format!("{name} is done.")]);
        let expect: String = (0..4).map(|n| format!("{name} {n}\n")).collect();
        assert_eq!(home.read(&format!("{name}.txt")), expect);
    }
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 16);
    for entry in entries {
        assert_eq!(entry.result, "success", "{entry:?}");
    }
}

/// Proves CLI-2: a session in use is not removed.
#[test]
fn session_in_use_is_not_removed() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::hang(),
        _ => Reply::text("ok"),
    });
    let home = Home::openai(&server);
    let running = home.zeph(["-p", "think long"]).start();
    server.wait_for_requests(1);
    let id = session_ids(&home.database()).remove(0);
    let output = home.zeph(["sessions", "rm", &id]).code(1);
    assert_has(&output.stderr, &["in use"]);
    running.signal(Signal::INT);
    running.wait().code(130);
    home.zeph(["sessions", "rm", &id]).code(0);
}
