//! Memory across sessions: `memory_save`, `memory_search`.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, assert_has, results_of};

fn call(home: &Home, session: &str, tool: &str, params: &Value, code: i32) -> String {
    let params = params.to_string();
    let args = ["tools", "call", tool, &params, "--session", session];
    let output = home.zeph(args).code(code);
    match code {
        0 => output.stdout,
        _ => output.stderr,
    }
}

/// Proves NAT-1: without approval, across sessions and processes, with date and session.
#[test]
fn saved_memory_is_found_in_later_session() {
    let home = Home::new();
    let keep = |content: &str| {
        let params = json!({ "content": content });
        call(&home, "first", "memory_save", &params, 0)
    };
    let kept = keep("The staging database listens on port 5433.");
    assert_has(&kept, &["Stored as memory_1."]);
    keep("Ann reviews changes of the parser.");
    keep("Größenangaben stehen in Pixeln.");
    keep("構成ファイルは settings.toml です");
    let find = |query: &str| {
        let params = json!({ "query": query });
        call(&home, "second", "memory_search", &params, 0)
    };
    let found = find("which port does the staging db use?");
    let year = jiff::Timestamp::now().strftime("%Y-").to_string();
    assert_has(&found, &["memory_1 (", &year, "session first", "port 5433"]);
    assert_eq!(found.lines().count(), 1, "{found}");
    assert_has(&find("reviewed by whom in the parsers"), &["Ann reviews"]);
    assert_has(&find("größenangaben"), &["Pixeln"]);
    assert_has(&find("ファイル"), &["settings.toml"]);
    assert_has(&find("nothing like it xyzzy"), &["No saved fact"]);
    // Operators of the query language are literal words.
    assert_has(&find("port\" OR NEAR(* -staging ^"), &["port 5433"]);
    assert_has(&find("'; DROP TABLE memory; --"), &["No saved fact"]);
    assert_has(&find("%"), &["No saved fact"]);
    assert_has(&find("staging"), &["port 5433"]);
}

/// Proves NAT-1: the best match is first, the number of results is limited, and none is duplicated.
#[test]
fn best_match_comes_first() {
    let home = Home::new();
    let lines = (0..12)
        .map(|at| format!("Note {at} is about the cache."))
        .chain([
            "The cache of the parser is cleared by the parser itself.".to_owned(),
            "The cache of the parser is cleared by the parser itself.".to_owned(),
        ])
        .map(|content| {
            json!({ "tool": "memory_save", "params": { "content": content } }).to_string()
        });
    let lines: Vec<String> = lines.collect();
    home.zeph(["tools", "run", "-"])
        .stdin(lines.join("\n"))
        .code(0);
    let find = |params: Value| call(&home, "s", "memory_search", &params, 0);
    let found = find(json!({ "query": "parser cache" }));
    assert_eq!(found.lines().count(), 10, "{found}");
    assert!(found.starts_with("[fact] memory_13 "), "{found}");
    assert_eq!(found.matches("parser itself").count(), 1, "{found}");
    let found = find(json!({ "query": "cache", "limit": 3 }));
    assert_eq!(found.lines().count(), 3, "{found}");
    let found = find(json!({ "query": "cache", "limit": 50 }));
    assert_eq!(found.lines().count(), 13, "{found}");
}

/// Proves NAT-1: text that cannot be stored is refused with the reason.
#[test]
fn invalid_fact_is_refused() {
    let home = Home::new();
    let refuse = |content: &str, words: &[&str]| {
        let reported = call(&home, "s", "memory_save", &json!({ "content": content }), 1);
        assert_has(&reported, words);
    };
    refuse(" \n", &["nothing to store"]);
    refuse(&"x".repeat(20_000), &["20000 bytes", "16384"]);
    let params = json!({ "query": "x", "limit": 0 });
    let reported = call(&home, "s", "memory_search", &params, 1);
    assert_has(&reported, &["limit"]);
}

/// Proves NAT-1: in a conversation; a fact outlives the session that saved it.
#[test]
fn model_saves_and_finds_facts() {
    let server = OpenAi::replies([
        Reply::calls(
            "a",
            &[(
                "memory_save",
                json!({ "content": "Tests run with `make check`." }),
            )],
        ),
        Reply::text("Kept."),
        Reply::calls(
            "b",
            &[("memory_search", json!({ "query": "how to run the tests" }))],
        ),
        Reply::text("With make check."),
    ]);
    let home = Home::openai(&server);
    let output = home.zeph(["-p", "remember", "--output-format", "json"]);
    let session = output.code(0).json()["session"]
        .as_str()
        .unwrap()
        .to_owned();
    home.zeph(["sessions", "rm", &session]).code(0);
    home.zeph(["-p", "how do I test?"]).code(0);
    let results = results_of(&server.last().messages());
    assert_has(&results[0].1, &["make check", &session]);
}

/// Proves NAT-1: the user lists, searches and removes facts.
#[test]
fn user_lists_searches_and_removes_facts() {
    let home = Home::new();
    home.zeph(["memory", "list"])
        .code(0)
        .prints(&["no facts are stored"]);
    for content in [
        "The port is 5433.",
        "Ann reviews.",
        "Bob \u{1b}[31mdoes not.",
    ] {
        call(&home, "s", "memory_save", &json!({ "content": content }), 0);
    }
    let listed = home.zeph(["memory", "list"]).code(0).stdout;
    let ids: Vec<&str> = listed.lines().map(|line| &line[..8]).collect();
    assert_eq!(ids, ["memory_3", "memory_2", "memory_1"], "{listed}");
    let found = home
        .zeph(["memory", "search", "which", "port", "--json"])
        .code(0);
    assert_eq!(found.json()[0]["content"], "The port is 5433.");
    let one = home.zeph(["memory", "list", "--limit", "1"]).code(0);
    assert_eq!(one.stdout.lines().count(), 1);
    home.zeph(["memory", "rm", "memory_1", "2"])
        .code(0)
        .prints(&["removed memory_1: The port is 5433.", "removed memory_2"]);
    home.zeph(["memory", "rm", "memory_1"])
        .code(1)
        .says(&["no fact memory_1", "zeph memory list"]);
    home.zeph(["memory", "rm", "1; DROP TABLE memory"]).code(1);
    home.zeph(["memory", "search", "port"])
        .code(0)
        .prints(&["no stored fact matches"]);
    assert_eq!(
        home.zeph(["memory", "list"]).code(0).stdout.lines().count(),
        1
    );
    // Numbers are not reused.
    let kept = call(&home, "s", "memory_save", &json!({ "content": "new" }), 0);
    assert_has(&kept, &["memory_4"]);
}

/// Proves NAT-1: the text of earlier conversations of this project is searched, on request that of all
/// projects. Each match has a kind, date and session. Calls, results and the current session are excluded.
#[test]
fn earlier_conversations_are_searched() {
    let search = |query: &str, more: Value| {
        let mut params = json!({ "query": query });
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        Reply::calls("s", &[("memory_search", params)])
    };
    let server = OpenAi::replies([
        Reply::calls("r", &[("read", json!({ "path": "notes.txt" }))]),
        Reply::text("The gateway answers on port 7443 behind the amber proxy."),
        Reply::text("Elsewhere the gateway listens on port 9000."),
        search("gateway port", json!({})),
        search("gateway port", json!({ "all_projects": true })),
        search("gateway port", json!({ "all_projects": true, "limit": 1 })),
        search("zirconium", json!({})),
        search("kumquat", json!({})),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.write("notes.txt", "zirconium is only in a file\n");
    let talk = |home: &Home, prompt: &str| {
        let output = home.zeph(["-p", prompt, "--output-format", "json"]);
        output.code(0).json()["session"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = talk(&home, "Where does the gateway answer?");
    let other = home.root().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let elsewhere = home
        .zeph(["-p", "And elsewhere?", "--output-format", "json"])
        .cwd(other)
        .code(0)
        .json()["session"]
        .as_str()
        .unwrap()
        .to_owned();
    talk(&home, "Search for the kumquat.");
    let results = results_of(&server.last().messages());
    let [here, all, one, file, own] = results.as_slice() else {
        panic!("{results:?}")
    };
    let date = jiff::Timestamp::now().strftime("%Y-").to_string();
    assert_has(
        &here.1,
        &[
            "[conversation] assistant (",
            &date,
            &first,
            "port 7443",
            "[conversation] user (",
        ],
    );
    assert!(!here.1.contains(&elsewhere), "{}", here.1);
    assert_has(&all.1, &[&first, &elsewhere, "port 7443", "port 9000"]);
    assert_eq!(one.1.lines().count(), 1, "{}", one.1);
    assert_has(&file.1, &["No saved fact and no earlier conversation"]);
    assert_has(&own.1, &["No saved fact and no earlier conversation"]);
    // The search does not find a removed session.
    home.zeph(["sessions", "rm", &first]).code(0);
    let params = json!({ "query": "gateway port" });
    let found = call(&home, "later", "memory_search", &params, 0);
    assert_has(&found, &["No saved fact"]);
}
