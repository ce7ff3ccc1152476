//! `--output-format json` and `stream-json`, `--output-schema`: turns for programs.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, assert_has};

const WITH_CALLS: &str = r#"
[[steps]]
text = "I make a note."
chunks = 2
calls = [
  { tool = "bash", input = { command = "echo noted | tee note" } },
  { tool = "read", input = { path = "missing.txt" } },
]
usage = { input = 100, output = 10, cached = 40 }
[[steps]]
text = "Noted."
usage = { input = 200, output = 5, cached = 90 }
"#;

/// Proves CLI-2b.
#[test]
fn json_prints_one_object() {
    let home = Home::scripted(WITH_CALLS);
    let output = home
        .zeph(["--yes", "--output-format", "json", "-p", "note"])
        .code(0);
    assert_eq!(output.stdout.lines().count(), 1, "{output}");
    let object = output.json();
    assert_eq!(object["text"], "Noted.");
    assert_eq!(object["stop_reason"], "done");
    assert_eq!(object["iterations"], 1);
    let usage = json!({
        "input_tokens": 300, "output_tokens": 15, "cached_tokens": 130, "cache_write_tokens": 0,
        "cost_usd": 0.0,
    });
    assert_eq!(object["usage"], usage);
    let calls: Vec<_> = object["tool_calls"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&calls[0]["tool"], &calls[0]["success"]),
        (&json!("bash"), &json!(true))
    );
    assert_eq!(
        calls[1]["error_category"], "permanent_failure",
        "{object:#}"
    );
    let session = object["session"].as_str().unwrap();
    assert_eq!(home.export(session)["session"]["id"], session);
}

/// Proves CLI-2b.
#[test]
fn stream_json_prints_one_valid_event_per_line() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stream-json.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let home = Home::scripted(WITH_CALLS);
    let output = home
        .zeph(["--yes", "--output-format", "stream-json", "-p", "note"])
        .code(0);
    let events = output.json_lines();
    for event in &events {
        assert!(event["ts"].as_i64().unwrap() > 1_600_000_000_000, "{event}");
        if let Err(error) = schema.validate(event) {
            panic!("{event}: {error}");
        }
    }
    let types: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let expect = [
        "session_started",
        "text_delta",
        "text_delta",
        "tool_started",
        "permission",
        "tool_output",
        "tool_finished",
        "tool_started",
        "tool_finished",
        "text_delta",
        "finished",
    ];
    assert_eq!(types, expect, "{output}");
    assert_eq!(events[4]["decision"], "allowed");
    assert_eq!(events[5]["text"], "noted\n");
    assert_eq!(events[10]["text"], "Noted.");
    assert_eq!(events[0]["session"], events[10]["session"]);
    assert!(
        schema
            .validate(&json!({ "type": "no_such", "ts": 1 }))
            .is_err(),
        "it can fail"
    );
}

/// Proves CLI-2b: each outcome prints one object, and `error` has a message.
#[test]
fn failures_are_objects() {
    let fault = "[[steps]]\nfault = \"server\"\n";
    let home = Home::scripted(fault);
    let object = home
        .zeph(["--output-format", "json", "-p", "x"])
        .code(1)
        .json();
    assert_eq!(object["stop_reason"], "error");
    assert_has(object["message"].as_str().unwrap(), &["server"]);

    let home = Home::scripted(fault);
    let events = home
        .zeph(["--output-format", "stream-json", "-p", "x"])
        .code(1)
        .json_lines();
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["stop_reason"]),
        (&json!("finished"), &json!("error"))
    );

    let check = |home: &Home, args: &[&str], exit: i32, words: &[&str]| {
        let object = home
            .zeph(args)
            .args(["--output-format", "json"])
            .code(exit)
            .json();
        assert_eq!(object["stop_reason"], "error", "{object}");
        assert_has(object["message"].as_str().unwrap(), words);
    };
    let bare = Home::new();
    check(&bare, &["-p", "x"], 1, &["OPENAI_API_KEY", "zeph demo"]);
    check(&bare, &["-p", ""], 2, &["prompt is empty"]);
    let outside = ["/no/such/directory", "cannot be entered"];
    check(&bare, &["-C", outside[0], "-p", "x"], 2, &outside);
    check(&bare, &["-C", outside[0], "run", "x"], 2, &outside);
    let line = ["--output-format", "stream-json"];
    let refused = bare.zeph(line).args(["-C", outside[0], "-p", "x"]).code(2);
    let last = refused.json_lines().pop().unwrap();
    assert_eq!(last["type"], "finished");
    assert_has(last["message"].as_str().unwrap(), &outside);
    check(&bare, &["hello"], 2, &["is not a command"]);
    check(&bare, &["!ls"], 2, &["!command is not available"]);
    check(&bare, &["-p", "fix", "it"], 2, &["-p takes one TEXT"]);
    check(&bare, &["--tui"], 2, &["are for one turn"]);
    check(
        &home,
        &["-p", "x", "--resume", "0123456789"],
        1,
        &["no session"],
    );
    bare.config("[agnet]\n");
    check(&bare, &["-p", "x"], 2, &["agnet", "agent"]);
}

/// Proves CLI-2b.
#[test]
fn response_that_violates_its_schema_is_requested_again() {
    let server = OpenAi::replies([
        Reply::text("The sum is 3."),
        Reply::text(r#"{"sum": "3"}"#),
        Reply::text("```json\n{\"sum\": 3}\n```"),
    ]);
    let home = Home::openai(&server);
    let schema =
        r#"{"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}"#;
    home.write("schema.json", schema);
    let args = ["-p", "add 1 and 2", "--output-schema", "schema.json"];
    let output = home.zeph(args).code(0);
    assert_eq!(output.stdout, "{\"sum\": 3}\n", "{output}");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].json()["response_format"]["type"], "json_schema");
    let asked = |n: usize| requests[n].messages().last().unwrap()["content"].to_string();
    assert_has(&asked(1), &["not valid JSON"]);
    assert_has(&asked(2), &["/sum", "integer"]);

    let server = OpenAi::start(|_, _| Reply::text("never JSON"));
    let home = Home::openai(&server);
    home.write("schema.json", schema);
    let failed = home
        .zeph(args)
        .args(["--output-format", "json"])
        .code(1)
        .json();
    assert_eq!(failed["stop_reason"], "error");
    assert_has(
        failed["message"].as_str().unwrap(),
        &["schema", "3 attempts"],
    );
    assert_eq!(server.requests().len(), 3);

    // The counts cover all attempts.
    let server = OpenAi::replies([
        Reply::calls("r", &[("read", json!({ "path": "schema.json" }))]),
        Reply::text("no"),
        Reply::text(r#"{"sum": 3}"#),
    ]);
    let home = Home::openai(&server);
    home.write("schema.json", schema);
    let output = home.zeph(args).args(["--output-format", "json"]).code(0);
    let object = output.json();
    assert_eq!(object["iterations"], 1, "{object}");
    assert_eq!(object["tool_calls"].as_array().unwrap().len(), 1);
}

#[test]
fn invalid_schema_sends_no_request() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    home.write("text.json", "not json");
    home.write("wrong.json", r#"{"type": "strnig"}"#);
    let check = |file: &str, words: &[&str]| {
        let output = home.zeph(["-p", "x", "--output-schema", file]).code(2);
        output.says(&["--output-schema", file]).says(words);
    };
    check("missing.json", &["cannot be read"]);
    check("text.json", &["not valid JSON"]);
    check("wrong.json", &["not a JSON Schema"]);
    assert_eq!(server.requests().len(), 0);
}

/// Proves CLI-2b, CLI-3, MCP-1: a turn reports problems on standard error in every output format.
#[test]
fn problems_of_a_turn_are_on_stderr_in_every_format() {
    const NOTICE: &str = "the model returned an empty response";
    let problems = [
        "warning: not attached, because it does not exist: @no.txt",
        "warning: MCP server bad: failed: ",
    ];
    let check = |format: &str, flags: &[&str], has_notice: bool| {
        let server = OpenAi::start(|_, _| Reply::text(""));
        let home = Home::openai(&server);
        home.more_config("[[mcp.servers]]\nname = \"bad\"\ncommand = \"./no-such-program\"\n");
        let turn = home.zeph(["-p", "see @no.txt", "--output-format", format]);
        let output = turn.args(flags).code(0).says(&problems);
        assert_eq!(output.stderr.contains(NOTICE), has_notice, "{output}");
        output
    };
    check("text", &[], true);
    check("json", &[], true);
    check("json", &["--quiet"], false);
    let events = check("stream-json", &[], false).json_lines();
    let level = |words: &str| {
        let mut notices = events.iter().filter(|event| event["type"] == "notice");
        let found = notices.find(|event| event["text"].as_str().unwrap().contains(words));
        found.unwrap()["level"].clone()
    };
    assert_eq!(level("MCP server bad"), "warning");
    assert_eq!(level("@no.txt"), "warning");
    assert_eq!(level(NOTICE), "info");
}
