//! Reflection after a failed call, and warnings about calls that may be hallucinated.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, assert_has, audit};

/// The reflection prompts of a request.
fn reflections(messages: &[Value]) -> Vec<String> {
    let texts = messages.iter().filter(|it| it["role"] == "user");
    let texts = texts.filter_map(|it| it["content"].as_str());
    let found = texts.filter(|text| text.starts_with("[reflection] "));
    found.map(str::to_owned).collect()
}

/// The reflections in the last request after a model made `calls`, one per response.
fn after(calls: Vec<(&'static str, Value)>, more: &str) -> Vec<String> {
    let replies = calls.into_iter().zip(0..);
    let replies = replies.map(|(call, n)| Reply::calls(&n.to_string(), &[call]));
    let server = OpenAi::replies(replies.chain([Reply::text("Done.")]).collect::<Vec<_>>());
    let home = Home::openai(&server);
    home.more_config(&format!("[tools.retry]\nbudget_secs = 0\n{more}"));
    home.write("a.txt", "text\n");
    home.zeph(["--yes", "-p", "go"]).code(0);
    reflections(&server.last().messages())
}

/// Proves ERR-22: after invalid arguments only.
#[test]
fn invalid_arguments_cause_a_reflection() {
    let edit = || {
        (
            "edit",
            json!({ "path": "a.txt", "old_string": "nope", "new_string": "x" }),
        )
    };
    let read = || ("read", json!({ "path": "a.txt" }));
    let found = after(vec![read(), edit()], "");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_has(&found[0], &["`edit`", "were wrong"]);
    let unknown_field = ("read", json!({ "path": "a.txt", "colour": 1 }));
    assert_eq!(after(vec![unknown_field], "").len(), 1);
    // Refusals of gates, missing items, external failures and success.
    let check = |call: (&'static str, Value), more: &str| {
        let found = after(vec![call], more);
        assert_eq!(found, Vec::<String>::new());
    };
    check(("bash", json!({ "command": "sudo reboot" })), "");
    let denied = "[[tools.permissions.read]]\npattern = \"**\"\naction = \"deny\"\n";
    check(("read", json!({ "path": "a.txt" })), denied);
    check(("no_such_tool", json!({})), "");
    check(("read", json!({ "path": "none.txt" })), "");
    check(("fetch", json!({ "url": "http://127.0.0.1:9/" })), "");
    check(("bash", json!({ "command": "sleep 9", "timeout": 1 })), "");
    check(("bash", json!({ "command": "exit 3" })), "");
    check(read(), "");
}

/// Proves ERR-22: limited in each turn, and disabled by a setting.
#[test]
fn reflections_are_limited() {
    let bad = |n: u32| ("read", json!({ "path": "a.txt", "colour": n }));
    let check = |more: &str, expect: usize| {
        let found = after((0..4).map(bad).collect(), more);
        assert_eq!(found.len(), expect, "{more}: {found:?}");
    };
    check("", 2);
    check("[agent]\nmax_reflections = 0\n", 0);
    check("[agent]\nmax_reflections = 9\n", 4);
}

/// The notice about a call of `read`, and its audit entry.
fn reported(path: &str, more: &str, reasoning: bool) -> (String, Value) {
    let reasoning = if reasoning {
        "reasoning = \"Hm.\"\n"
    } else {
        ""
    };
    let home = Home::scripted(&format!(
        "[[steps]]\n{reasoning}calls = [{{ tool = \"read\", input = {{ path = \"{path}\" }} }}]\n\
         [[steps]]\ntext = \"Done.\"\n"
    ));
    home.more_config(more);
    home.write("there.txt", "text\n");
    let output = home
        .zeph(["--quiet", "-p", "look at mentioned.txt"])
        .code(0);
    (output.stderr, audit(&home.database())[0].repairs.clone())
}

/// Proves AGT-7: a warning to the user and in the audit trail, never a refusal; disabled by default.
#[test]
fn suspected_hallucination_is_reported() {
    let on = "[agent]\nhallucination_detection = true\n";
    let reasoning = "[agent]\nreasoning_model_detection = true\n";
    let check = |path: &str, more: &str, reasons: bool, expect: bool| {
        let (stderr, noted) = reported(path, more, reasons);
        let words = format!("warning: HallucinationSuspect: read: \"{path}\" does not exist");
        assert_eq!(stderr.contains(&words), expect, "{path} {more}: {stderr}");
        assert!(!stderr.contains("error:"), "{stderr}");
        assert_eq!(
            noted.to_string().contains("HallucinationSuspect"),
            expect,
            "{noted}"
        );
    };
    check("engine.rs", "", true, false);
    check("engine.rs", on, false, true);
    check("there.txt", on, false, false);
    check("mentioned.txt", on, false, false);
    check("engine.rs", reasoning, false, false);
    check("engine.rs", reasoning, true, true);
}

/// Proves AGT-7: an id that appears only in the call is reported; the call still runs.
#[test]
fn unknown_id_is_reported() {
    let command = json!({ "command": "echo 9e8d7c6b5a > made.txt" });
    let server = OpenAi::replies([
        Reply::calls("a", &[("bash", command)]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.more_config("[agent]\nhallucination_detection = true\n");
    let lines = home
        .zeph(["--yes", "-p", "go", "--output-format", "stream-json"])
        .code(0)
        .json_lines();
    let notice = lines.iter().find(|line| line["type"] == "notice").unwrap();
    assert_has(
        &notice.to_string(),
        &["HallucinationSuspect: bash", "9e8d7c6b5a"],
    );
    assert_eq!(notice["level"], "warning");
    assert_eq!(home.read("made.txt"), "9e8d7c6b5a\n");
    assert_eq!(audit(&home.database())[0].result, "success");
}

/// Proves EXE-10: each call site sets its phase, and the audit entry contains it.
#[test]
fn calls_have_the_phase_of_their_call_site() {
    let read = |more: Value| {
        let mut params = json!({ "path": "a.txt" });
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        ("read", params)
    };
    let good = || read(json!({}));
    let bad = || read(json!({ "colour": 1 }));
    let check = |args: &[&str], calls: Vec<(&'static str, Value)>, more: &str, expect: &[&str]| {
        let replies = calls.into_iter().zip(0..);
        let replies = replies.map(|(call, n)| Reply::calls(&n.to_string(), &[call]));
        let server = OpenAi::replies(replies.chain([Reply::text("Done.")]).collect::<Vec<_>>());
        let home = Home::openai(&server);
        home.more_config(&format!("[tools.retry]\nbudget_secs = 0\n{more}"));
        home.write("a.txt", "text\n");
        home.zeph([args, &["-p", "go"]].concat()).code(0);
        let phases = audit(&home.database()).into_iter().map(|entry| entry.phase);
        assert_eq!(phases.collect::<Vec<_>>(), expect, "{args:?} {more}");
    };
    check(&[], vec![good(), good()], "", &["executor", "executor"]);
    // After a reflection the phase is `verifier`, for one response.
    check(
        &[],
        vec![bad(), good(), good()],
        "",
        &["executor", "verifier", "executor"],
    );
    check(
        &[],
        vec![bad(), good()],
        "[agent]\nmax_reflections = 0\n",
        &["executor", "executor"],
    );
    check(&["--mode", "plan"], vec![good()], "", &["planner"]);
    check(
        &["--mode", "plan"],
        vec![bad(), good()],
        "",
        &["planner", "planner"],
    );
}
