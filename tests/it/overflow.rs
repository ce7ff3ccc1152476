//! Overflow: output that is too long for the model is stored, referenced and read back.

use serde_json::{Value, json};

use crate::rig::{
    Home, OpenAi, Output, Reply, Zeph, assert_has, count, execute, openai_config, results_of,
};

/// A call with `--yes` in a session.
fn call(home: &Home, session: &str, tool: &str, params: &Value) -> Output {
    let params = params.to_string();
    let args = ["tools", "call", tool, &params, "--json", "--yes"];
    home.zeph(args).args(["--session", session]).run()
}

fn bash(home: &Home, session: &str, command: &str) -> Value {
    call(home, session, "bash", &json!({ "command": command })).json()
}

fn data(form: &Value) -> &str {
    form["data"].as_str().unwrap()
}

/// The reference that a text names.
#[track_caller]
fn reference(text: &str) -> String {
    let start = text.find("overflow:").unwrap_or_else(|| panic!("{text}"));
    text[start..start + "overflow:".len() + 36].to_owned()
}

#[track_caller]
fn read(home: &Home, session: &str, params: &Value) -> String {
    let output = call(home, session, "read_overflow", params).code(0);
    data(&output.json()).to_owned()
}

fn numbers(count: usize) -> String {
    (1..=count).map(|n| format!("{n}\n")).collect()
}

/// Proves SH-4, OUT-30, OUT-32, CLI-2.
#[test]
fn many_stored_lines_are_read_by_line() {
    let home = Home::new();
    let form = bash(&home, "mine", "seq 200000");
    let text = data(&form);
    assert!(text.starts_with("1\n2\n3\n") && text.ends_with("\n199999\n200000"));
    let chars = text.chars().count();
    assert!((40_000..=50_000).contains(&chars), "{chars} characters");
    let id = reference(text);
    let omitted = text.lines().find(|line| line.starts_with('[')).unwrap();
    assert_has(
        omitted,
        &["[… lines ", " bytes) omitted; all of it is stored as", &id],
    );
    assert_eq!(form["raw_response"]["truncated"], true);
    assert!(form["raw_response"]["stdout"].as_str().unwrap().len() < 60_000);

    let lines = read(
        &home,
        "mine",
        &json!({"id": id, "offset": 123_456, "limit": 3}),
    );
    assert_eq!(
        lines,
        "123456\t123456\n123457\t123457\n123458\t123458\n(76542 more lines; continue with offset=123459)"
    );
    // With the line range of a notice.
    let named = read(&home, "mine", &json!({"id": id, "lines": "123456-123458"}));
    assert_eq!(named, lines);
    for wrong in ["x", "0-3", "9-3", "3-x"] {
        let params = json!({"id": id, "lines": wrong});
        call(&home, "mine", "read_overflow", &params).code(1);
    }
    let lines = read(
        &home,
        "mine",
        &json!({"id": id, "pattern": "^1999(0[0-9]|10)$"}),
    );
    let expect: Vec<_> = (199_900..=199_910).map(|n| format!("{n}\t{n}")).collect();
    assert_eq!(lines, expect.join("\n"));
    // The UUID alone suffices, and no mode needs approval. The returned text is bounded.
    let params = json!({"id": id.trim_start_matches("overflow:")}).to_string();
    let args = [
        "tools",
        "call",
        "read_overflow",
        &params,
        "--session",
        "mine",
    ];
    let output = home.zeph(args).args(["--mode", "plan"]).code(0);
    assert!(output.stdout.starts_with("1\t1\n2\t2\n"));
    assert!(output.stdout.chars().count() <= 50_001);
    assert_has(&output.stdout, &["more lines; continue with offset="]);

    // Another session gets the same error as for an unknown reference.
    let other = call(&home, "other", "read_overflow", &json!({ "id": id })).code(1);
    let never = "overflow:00000000-0000-4000-8000-000000000000";
    let unknown = call(&home, "other", "read_overflow", &json!({ "id": never })).code(1);
    let reported = |output: &Output, id: &str| {
        let form = output.json();
        assert_eq!(form["error_type"], "not_found");
        (
            form["error_category"].clone(),
            data(&form).replace(id, "REF"),
        )
    };
    assert_eq!(reported(&other, &id), reported(&unknown, never));
    let wrong = call(&home, "mine", "read_overflow", &json!({"id": "' OR 1=1"})).code(1);
    assert_eq!(wrong.json()["error_category"], "invalid_parameters");

    // The user can print all of it, byte for byte.
    let whole = home.zeph(["overflow", "get", &id]).code(0);
    assert!(whole.stdout == numbers(200_000));
    assert_eq!(whole.stderr, "");
    home.zeph(["overflow", "get", &id, "--session", "mine"])
        .code(0);
    let error = home.zeph(["overflow", "get", &id, "--session", "other"]);
    error
        .code(1)
        .says(&["there is no overflow:", "session other"]);
    home.zeph(["overflow", "get", never])
        .code(1)
        .says(&["zeph overflow list"]);
    home.zeph(["overflow", "get", "nonsense"]).code(2);
    let list = home.zeph(["overflow", "list"]).code(0).stdout;
    assert_has(&list, &[&id, "200000 lines", "bash", "session mine"]);
    let list = home
        .zeph(["overflow", "list", "--session", "other"])
        .code(0);
    assert_eq!(list.stdout, "nothing is stored\n");
}

/// Proves OUT-30: for output of each tool. A call without `--session` creates one and names it in the JSON
/// result.
#[test]
fn long_output_of_any_tool_is_stored() {
    let home = Home::new();
    home.write(
        "long.txt",
        &"a line of some length, as there are many\n".repeat(2000),
    );
    for (tool, params) in [
        ("read", json!({"path": "long.txt"})),
        ("grep", json!({"pattern": "line", "max_results": 2000})),
    ] {
        let params = params.to_string();
        let form = home
            .zeph(["tools", "call", tool, &params, "--json"])
            .code(0)
            .json();
        assert!(data(&form).chars().count() <= 50_000);
        let id = reference(data(&form));
        let session = form["session"].as_str().unwrap();
        let lines = read(
            &home,
            session,
            &json!({"id": id, "offset": 1000, "limit": 1}),
        );
        assert_has(&lines, &["1000\t", "a line of some length"]);
    }
    // In text mode the hint is on standard error.
    let output = home
        .zeph(["tools", "call", "read", r#"{"path": "long.txt"}"#])
        .code(0);
    let id = reference(&output.stdout);
    assert_has(&output.stderr, &["complete output: zeph overflow get", &id]);
    let output = home.zeph(["tools", "call", "read", r#"{"path": "long.txt"}"#, "-q"]);
    assert_eq!(output.code(0).stderr, "");
}

/// Proves SH-4, SH-3, OUT-30.
#[test]
fn output_of_a_stopped_or_failed_command_is_stored() {
    let home = Home::new();
    let params = json!({"command": "seq 100000; sleep 60", "timeout_secs": 2});
    let form = call(&home, "s", "bash", &params).code(1).json();
    assert_eq!(form["error_category"], "timeout");
    let whole = home
        .zeph(["overflow", "get", &reference(data(&form))])
        .code(0);
    assert!(whole.stdout == numbers(100_000));
    let form = bash(&home, "s", "seq 100000 >&2; ls /none");
    assert_eq!(form["error_category"], "permanent_failure");
    assert_has(data(&form), &["[tool_error]", "[exit code: 2]", "none"]);
    let id = reference(data(&form));
    let lines = read(&home, "s", &json!({"id": id, "offset": 99_999}));
    assert_has(&lines, &["99999\t99999\n100000\t100000\n100001\t", "none"]);
}

/// Proves OUT-30, SH-4.
#[test]
fn overflow_limits_are_configurable() {
    let home = Home::new();
    home.config("[tools.overflow]\nthreshold = 2000\nmax_overflow_bytes = 100000\n");
    let text = "ä".repeat(2000);
    home.write("text", &text);
    assert_eq!(data(&bash(&home, "s", "cat text")), text);
    let form = bash(&home, "s", "seq 100000");
    assert!(data(&form).chars().count() <= 2000);
    assert!(data(&form).ends_with("\n100000"));
    assert_has(
        data(&form),
        &["the first 99996 of 588895 bytes (lines 1-18517) are stored"],
    );
    let id = reference(data(&form));
    let whole = home.zeph(["overflow", "get", &id]).code(0);
    assert!(whole.stdout == numbers(18_517));
    assert_has(&whole.stderr, &["the first 99996 of 588895 bytes"]);
    let lines = read(&home, "s", &json!({"id": id, "offset": 18_517}));
    assert_has(&lines, &["18517\t18517\n(it was cut before it was stored"]);
    home.config("[tools.overflow]\nmax_overflow_bytes = 0\n");
    let form = bash(&home, "s", "seq 1500000");
    let whole = home
        .zeph(["overflow", "get", &reference(data(&form))])
        .code(0);
    assert!(whole.stdout == numbers(1_500_000));
}

/// Proves OUT-34.
#[test]
fn failing_store_loses_the_middle_and_not_the_call() {
    let home = Home::new();
    bash(&home, "s", "true");
    execute(
        &home.database(),
        "CREATE TRIGGER broken BEFORE INSERT ON tool_overflow
         BEGIN SELECT RAISE(ABORT, 'out of order'); END",
    );
    let output = call(&home, "s", "bash", &json!({"command": "seq 200000"})).code(0);
    let form = output.json();
    let text = data(&form);
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n200000"));
    assert!(text.chars().count() <= 50_000);
    assert_has(text, &["omitted; they could not be stored and are lost"]);
    assert!(!text.contains("overflow:"));
    execute(
        &home.database(),
        "DROP TRIGGER broken; DROP TABLE tool_overflow",
    );
    let form = call(&home, "s", "bash", &json!({"command": "seq 200000"}))
        .code(0)
        .json();
    assert_has(data(&form), &["could not be stored and are lost"]);
}

/// Proves OUT-34: on a full disk the call still has its result and its entry.
#[test]
fn full_disk_loses_the_middle_and_not_the_call() {
    let home = Home::new();
    bash(&home, "s", "true");
    let limited = r#"trap "" XFSZ; ulimit -f 200; exec "$0" "$@""#;
    let params = json!({"command": "head -c 600000 /dev/urandom | base64"}).to_string();
    let args = [
        "tools",
        "call",
        "bash",
        &params,
        "--json",
        "--yes",
        "--session",
        "s",
    ];
    let form = Zeph::through_bash(&home, limited)
        .args(args)
        .run()
        .code(0)
        .json();
    assert_has(data(&form), &["could not be stored and are lost"]);
    assert_eq!(count(&home.database(), "tool_overflow"), 0);
    assert_eq!(count(&home.database(), "tool_audit"), 2);
    let form = bash(&home, "s", "seq 100000");
    reference(data(&form));
}

/// Proves OUT-30, OUT-33.
#[test]
fn stored_output_is_removed_by_age_and_with_its_session() {
    let home = Home::new();
    let day_ago = "UPDATE tool_overflow SET created_at = created_at - 86400000";
    bash(&home, "s", "seq 100000");
    for days in 1..=8 {
        execute(&home.database(), day_ago);
        bash(&home, "s", "true");
        let left = i64::from(days < 7);
        assert_eq!(
            count(&home.database(), "tool_overflow"),
            left,
            "{days} days"
        );
    }
    assert_eq!(count(&home.database(), "tool_overflow_block"), 0);
    bash(&home, "s", "seq 100000");
    home.zeph([
        "--set",
        "tools.overflow.retention_days=0",
        "tools",
        "call",
        "list_tasks",
    ])
    .code(0);
    assert_eq!(count(&home.database(), "tool_overflow"), 0);

    bash(&home, "s", "seq 100000");
    bash(&home, "t", "seq 100000");
    home.zeph(["sessions", "rm", "s"]).code(0);
    assert_eq!(count(&home.database(), "tool_overflow"), 1);
    let blocks = count(&home.database(), "tool_overflow_block");
    home.zeph(["sessions", "rm", "t"]).code(0);
    assert_eq!(count(&home.database(), "tool_overflow_block"), 0);
    assert!(blocks > 0);
}

/// Proves OUT-30, OUT-32, OUT-33: the model finds the referenced output; only the short text is sent and
/// stored in the history.
#[test]
fn model_reads_stored_output() {
    let server = OpenAi::start(|n, request| {
        let last = request.messages().pop().unwrap();
        match n {
            0 => Reply::calls("a", &[("bash", json!({"command": "seq 200000"}))]),
            1 => {
                let id = reference(last["content"].as_str().unwrap());
                let params = json!({"id": id, "pattern": "^77777$"});
                Reply::calls("b", &[("read_overflow", params)])
            }
            _ => Reply::text("Found."),
        }
    });
    let home = Home::openai(&server);
    let output = home
        .zeph(["-p", "look", "--yes", "--output-format", "json"])
        .code(0);
    let messages = server.last().messages();
    let read = messages.last().unwrap()["content"].as_str().unwrap();
    assert_eq!(read, "77777\t77777");
    let form = output.json();
    let export = home.export(form["session"].as_str().unwrap()).to_string();
    assert!(export.len() < 60_000, "{} bytes", export.len());
    assert_has(&export, &["omitted; all of it is stored as overflow:"]);
}

/// Proves SH-4: memory is bounded for any amount of output.
#[test]
fn flood_of_output_uses_bounded_memory() {
    // Incompressible output is the worst case.
    let command = "base64 /dev/urandom | head -c 80000000";
    let (quiet, before) = highest("true");
    let (loud, after) = highest(command);
    assert_eq!(quiet["success"], true);
    assert_has(
        data(&loud),
        &["of 80000000 bytes", "are stored as overflow:"],
    );
    let grown = after.saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB over {before} KiB");
}

/// The result of a command, and the peak memory of the process in KiB.
fn highest(command: &str) -> (Value, u64) {
    let home = Home::new();
    let params = json!({ "command": command }).to_string();
    let args = ["tools", "call", "bash", &params, "--json", "--yes"];
    let running = home.zeph(args).start();
    let mut peak = 0;
    // The status of an ended process has no memory fields.
    loop {
        let status = running.status();
        let Some(line) = status.lines().find(|line| line.starts_with("VmHWM:")) else {
            break;
        };
        peak = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    (running.wait().json(), peak)
}

/// Proves D-37: with the setting, a model summarizes long output; if it fails, only the summary is missing.
#[test]
fn model_summarizes_long_output_next_to_its_reference() {
    for (setting, fails) in [
        ("[tools.overflow]\nsummarize = true\n", false),
        ("[tools]\nsummarize_output = true\n", false),
        ("[tools.overflow]\nsummarize = true\n", true),
        ("[tools.overflow]\nsummarize = false\n", false),
    ] {
        let summarizes = setting.contains("true");
        let server = OpenAi::start(move |n, request| {
            let is_summary = request.json()["messages"][0]["content"]
                .as_str()
                .is_some_and(|system| system.starts_with("You summarize the output of a tool"));
            match n {
                _ if is_summary && fails => Reply::text(""),
                _ if is_summary => Reply::text("All 200000 numbers in order."),
                0 => Reply::calls("a", &[("bash", json!({ "command": "seq 200000" }))]),
                _ => Reply::text("Done."),
            }
        });
        let home = Home::new();
        home.config(&format!("{}\n{setting}", openai_config(&server.url())));
        let output = home.zeph(["-p", "count", "--yes"]).code(0);
        assert_eq!(output.stdout.trim(), "Done.", "{output}");
        let results = results_of(&server.last().messages());
        let (_, text) = &results[0];
        assert_has(text, &["1\n2\n3\n", "199999\n200000", "overflow:"]);
        let has_summary = text.contains("All 200000 numbers in order.");
        assert_eq!(has_summary, summarizes && !fails, "{setting}: {text}");
        let requests = server.requests();
        assert_eq!(requests.len(), if summarizes { 3 } else { 2 });
        if summarizes {
            let asked = requests[1].json();
            assert!(
                asked["tools"].as_array().is_none_or(Vec::is_empty),
                "{asked}"
            );
        }
        if fails {
            output.says(&["was not summarized"]);
        }
    }
    // A call without a conversation has a summary if a provider is configured, and works without one.
    let server = OpenAi::replies([Reply::text("Numbers.")]);
    let home = Home::new();
    let summarize = "[tools.overflow]\nsummarize = true\n";
    let call = json!({ "command": "seq 200000" }).to_string();
    home.config(&format!("{}\n{summarize}", openai_config(&server.url())));
    home.zeph(["tools", "call", "bash", &call, "--yes"])
        .code(0)
        .prints(&["Numbers.", "overflow:"]);
    home.config(summarize);
    home.zeph(["tools", "call", "bash", &call, "--yes"])
        .code(0)
        .prints(&["overflow:"]);
}
