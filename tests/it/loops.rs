//! The agent loop: request, calls, results, next request; the stored and the sent messages.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, assert_has, audit, results_of, session_ids};

/// Asserts that each call of a stored conversation has exactly one result, directly after it.
#[track_caller]
fn stored_is_whole(export: &Value) -> usize {
    let mut open: Vec<String> = Vec::new();
    let mut calls = 0;
    for message in export["messages"].as_array().unwrap() {
        for part in message["parts"].as_array().unwrap() {
            let text = |key: &str| part[key].as_str().unwrap().to_owned();
            match part["type"].as_str().unwrap() {
                "tool_use" => {
                    open.push(text("id"));
                    calls += 1;
                }
                "tool_result" => {
                    let id = text("tool_use_id");
                    let place = open.iter().position(|known| *known == id);
                    open.remove(place.unwrap_or_else(|| panic!("{id} has no call: {export:#}")));
                }
                _ => assert!(open.is_empty(), "{open:?} have no result: {export:#}"),
            }
        }
    }
    assert!(open.is_empty(), "{open:?} have no result: {export:#}");
    calls
}

/// Proves AGT-1, AGT-6.
#[test]
fn conversation_reads_edits_and_runs() {
    let server = OpenAi::replies([
        Reply::calls(
            "a",
            &[
                ("read", json!({ "path": "sum.sh" })),
                ("list_directory", json!({ "path": "." })),
            ],
        ),
        Reply::calls(
            "b",
            &[(
                "edit",
                json!({ "path": "sum.sh", "old_string": "$1 - $2", "new_string": "$1 + $2" }),
            )],
        ),
        Reply::calls(
            "c",
            &[(
                "bash",
                json!({ "command": "bash sum.sh 1 2 | tee out.txt" }),
            )],
        ),
        Reply::text("It adds now."),
    ]);
    let home = Home::openai(&server);
    home.write("sum.sh", "echo $(($1 - $2))\n");
    let output = home.zeph(["--yes", "-p", "make it add"]).code(0);
    assert_has(&output.stdout, &["It adds now."]);
    assert_eq!(home.read("sum.sh"), "echo $(($1 + $2))\n");
    assert_eq!(home.read("out.txt"), "3\n");

    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        results_of(&request.messages());
    }
    let results = results_of(&requests[3].messages());
    let ids: Vec<_> = results.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["call_a_0", "call_a_1", "call_b_0", "call_c_0"]);
    assert_has(&results[0].1, &["echo $(($1 - $2))"]);
    assert_has(&results[1].1, &["sum.sh"]);
    assert_eq!(results[3].1, "3");
    let session = session_ids(&home.database()).remove(0);
    assert_eq!(stored_is_whole(&home.export(&session)), 4);
    let mut tools: Vec<_> = audit(&home.database())
        .into_iter()
        .map(|entry| (entry.tool, entry.result))
        .collect();
    // The two readers end in any order.
    tools[..2].sort();
    let done = ["list_directory", "read", "edit", "bash"].map(|t| (t.into(), "success".into()));
    assert_eq!(tools, done);
}

/// Proves AGT-1, EXE-8, EXE-9: invalid calls are reported to the model, and the turn continues.
#[test]
fn invalid_calls_are_reported_and_the_turn_continues() {
    let raw = |tool: &'static str, args: &str| (tool, args.to_owned());
    let calls = [
        raw("raed", "{}"),
        raw("read", "{\"path\": "),
        raw("read", "[]"),
        raw("read", "{\"path\": \"a.txt\", \"lines\": 5}"),
        raw("list_tasks", ""),
    ];
    let server = OpenAi::start(move |n, request| match n {
        0 => Reply::raw_calls("a", &calls),
        _ if request.is_reformat() => Reply::text("null"),
        _ => Reply::text("I see."),
    });
    let home = Home::openai(&server);
    home.write("a.txt", "secret words\n");
    home.zeph(["-p", "go"]).code(0).prints(&["I see."]);
    let results = results_of(&server.last().messages());
    assert_eq!(results.len(), 5, "{results:?}");
    assert_has(&results[0].1, &["category: tool_not_found", "raed", "read"]);
    assert_has(
        &results[1].1,
        &["category: invalid_parameters", "not valid JSON"],
    );
    assert_has(&results[2].1, &["category: type_mismatch", "object"]);
    assert_has(&results[3].1, &["category: invalid_parameters", "/lines"]);
    assert_has(&results[4].1, &["The task list is empty."]);
    assert!(
        !results
            .iter()
            .any(|(_, content)| content.contains("secret words"))
    );
    let session = session_ids(&home.database()).remove(0);
    assert_eq!(stored_is_whole(&home.export(&session)), 5);
    assert_eq!(audit(&home.database()).len(), 5, "each is audited");
}

/// Proves AGT-1: a response without text and calls ends the turn, is reported, and is not part of
/// the history.
#[test]
fn empty_response_ends_the_turn() {
    let reasoning = json!({ "choices": [{
        "index": 0,
        "delta": { "reasoning_content": "Hm." },
        "finish_reason": "stop",
    }] });
    let reasoning = format!("data: {reasoning}\n\ndata: [DONE]\n\n");
    for empty in [
        Reply::text(""),
        Reply::text(" \n"),
        Reply::raw(200, "text/event-stream", reasoning),
    ] {
        let server = OpenAi::replies([empty, Reply::text("Here again.")]);
        let home = Home::openai(&server);
        home.zeph(["-p", "say nothing"])
            .code(0)
            .says(&["the model returned an empty response"]);
        home.zeph(["--continue", "-p", "and now?"])
            .code(0)
            .prints(&["Here again."]);
        let said: Vec<_> = server.last().messages()[1..]
            .iter()
            .map(|m| m["content"].clone())
            .collect();
        assert_eq!(said, ["say nothing", "and now?"]);
    }
}

/// Proves AGT-1: an id that two responses use does not mix up results.
#[test]
fn repeated_call_ids_are_distinguished() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::calls("same", &[("read", json!({ "path": "a.txt" }))]),
        1 => Reply::calls("same", &[("read", json!({ "path": "b.txt" }))]),
        _ => Reply::text("Both read."),
    });
    let home = Home::openai(&server);
    home.write("a.txt", "alpha\n");
    home.write("b.txt", "beta\n");
    home.zeph(["-p", "read both"]).code(0);
    let results = results_of(&server.last().messages());
    assert_has(&results[0].1, &["alpha"]);
    assert_has(&results[1].1, &["beta"]);
    assert_ne!(results[0].0, results[1].0);
}

/// Proves AGT-1: two calls of one response with the same or an empty id do not mix up results.
#[test]
fn calls_of_one_response_with_one_id_are_distinguished() {
    for id in ["same", ""] {
        let calls: Vec<_> = ["a.txt", "b.txt"]
            .map(|name| (id.to_owned(), "read", json!({ "path": name }).to_string()))
            .to_vec();
        let server = OpenAi::replies([Reply::answer("", &calls), Reply::text("Both read.")]);
        let home = Home::openai(&server);
        home.write("a.txt", "alpha\n");
        home.write("b.txt", "beta\n");
        home.zeph(["-p", "read both"]).code(0);
        let results = results_of(&server.last().messages());
        assert_eq!(results.len(), 2, "{id:?}: {results:?}");
        assert_has(&results[0].1, &["alpha"]);
        assert_has(&results[1].1, &["beta"]);
        assert!(
            results[0].0 != results[1].0 && !results[0].0.is_empty(),
            "{results:?}"
        );
        let session = session_ids(&home.database()).remove(0);
        assert_eq!(stored_is_whole(&home.export(&session)), 2);
    }
}
