//! Argument repair by one model request; the repaired call passes all gates.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, assert_has, audit, results_of};

/// A server whose model calls `tool` with `sent`, and which responds to a repair request with `reformatted`.
fn server(tool: &'static str, sent: Value, reformatted: Reply) -> OpenAi {
    OpenAi::start(move |n, request| match n {
        0 => Reply::calls("a", &[(tool, sent.clone())]),
        _ if request.is_reformat() => reformatted.clone(),
        _ => Reply::text("Done."),
    })
}

/// The only result that the model received.
#[track_caller]
fn result(server: &OpenAi) -> String {
    let mut results = results_of(&server.last().messages());
    assert_eq!(results.len(), 1, "{results:?}");
    results.remove(0).1
}

fn reformats(server: &OpenAi) -> usize {
    let requests = server.requests();
    requests.iter().filter(|r| r.is_reformat()).count()
}

/// Proves ERR-21: the repair request, its outcome, and the reports.
#[test]
fn arguments_are_repaired_by_one_request() {
    let answer = Reply::text("```json\n{\"path\": \"a.txt\"}\n```");
    let server = server("read", json!({ "fiel": "a.txt" }), answer);
    let home = Home::openai(&server);
    home.write("a.txt", "alpha\n");
    let output = home
        .zeph(["-p", "read it", "--output-format", "stream-json"])
        .code(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let asked = requests[1].json();
    let said = asked["messages"].to_string();
    assert_has(
        &said,
        &[
            "The tool read: ",
            "fiel",
            "properties",
            "arguments of read: ",
            "/path",
        ],
    );
    assert!(
        !said.contains("read it"),
        "it is separate from the conversation: {said}"
    );
    assert_eq!(asked["max_tokens"], 4096);

    let result = result(&server);
    let first = result.lines().next().unwrap();
    let expect = "[the arguments did not match the schema; the call ran with {\"path\":\"a.txt\"}]";
    assert_eq!(first, expect);
    assert_has(&result, &["alpha"]);
    let entry = audit(&home.database()).pop().unwrap();
    assert_eq!(entry.call, json!({ "path": "a.txt" }));
    assert_eq!(entry.result, "success");
    assert_has(&entry.repairs.to_string(), &["reformatted by local: "]);
    assert_has(
        &output.stdout,
        &["reformatted by local: ", "(reformatted by local: "],
    );
    let last: Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
    assert_has(&last.to_string(), &["3000"]);
}

/// Proves ERR-21, ERR-6: otherwise the first failure is final, and no other request is sent.
#[test]
fn failed_repair_leaves_the_first_failure() {
    let check = |answer: Reply| {
        let server = server("read", json!({ "path": ["a.txt"] }), answer);
        let home = Home::openai(&server);
        home.more_config("[llm.retry]\nmax_attempts = 1\n");
        home.write("a.txt", "alpha\n");
        home.zeph(["-p", "read it"]).code(0).prints(&["Done."]);
        let result = result(&server);
        assert_has(
            &result,
            &["category: type_mismatch", "/path", "retryable: false"],
        );
        assert_eq!(reformats(&server), 1);
        let entry = audit(&home.database()).pop().unwrap();
        assert_eq!((entry.attempts, entry.repairs), (0, json!([])));
    };
    check(Reply::text("null"));
    check(Reply::text("I cannot."));
    check(Reply::text("{\"path\": [\"a.txt\"]}"));
    check(Reply::text("{\"path\": \"a.txt\"} {\"path\": \"a.txt\"}"));
    check(Reply::text(""));
    check(Reply::calls("b", &[("read", json!({ "path": "a.txt" }))]));
    check(Reply::error(500, "server", "it broke"));
}

/// Proves ERR-21, EXE-20: every gate checks the repaired arguments; an approved call is repaired once,
/// although it passes the gates twice.
#[test]
fn repaired_call_passes_every_gate() {
    let sent = json!({ "comand": "echo ran > out.txt" });
    let good = Reply::text("{\"command\": \"echo ran > out.txt\"}");
    let server_of = || server("bash", sent.clone(), good.clone());
    let refused = server_of();
    let home = Home::openai(&refused);
    home.zeph(["-p", "go"]).code(0);
    assert!(!home.has("out.txt"));
    let text = result(&refused);
    assert_has(&text, &["category: confirmation_required"]);

    let agreed = server_of();
    let home = Home::openai(&agreed);
    home.zeph(["--yes", "-p", "go"]).code(0);
    assert_eq!(home.read("out.txt"), "ran\n");
    assert_eq!(reformats(&agreed), 1);
    let entry = audit(&home.database()).pop().unwrap();
    assert_eq!((entry.approved_by.as_str(), entry.attempts), ("user", 1));

    let evil = Reply::text("{\"command\": \"sudo id > out.txt\"}");
    let blocked = server("bash", sent, evil);
    let home = Home::openai(&blocked);
    home.zeph(["--yes", "-p", "go"]).code(0);
    assert!(!home.has("out.txt"));
    let text = result(&blocked);
    assert_has(
        &text,
        &["category: policy_blocked", "`sudo` is on the blocklist"],
    );
}

/// Proves ERR-21: another provider may be named; an unknown one stops the start.
#[test]
fn repair_provider_can_be_configured() {
    let helper = OpenAi::replies([Reply::text("{\"path\": \"a.txt\"}")]);
    let model = OpenAi::replies([
        Reply::calls("a", &[("read", json!("path: a.txt"))]),
        Reply::text("Done."),
    ]);
    let home = Home::new();
    home.write("a.txt", "alpha\n");
    let providers = format!(
        "{}{}",
        crate::rig::openai_config(&model.url()),
        crate::rig::openai_config(&helper.url()).replace("local", "helper")
    );
    let named = |name: &str| {
        home.config(&format!(
            "[tools.retry]\nparameter_reformat_provider = \"{name}\"\n{providers}"
        ));
    };
    named("helper");
    home.zeph(["-p", "go"]).code(0).prints(&["Done."]);
    assert_has(&result(&model), &["alpha"]);
    assert_eq!(helper.requests().len(), 1);
    let entry = audit(&home.database()).pop().unwrap();
    assert_has(&entry.repairs.to_string(), &["reformatted by helper: "]);

    named("helpr");
    home.zeph(["-p", "go"]).code(2).says(&[
        "config.toml:2:",
        "\"helpr\"",
        "did you mean `helper`?",
    ]);
}

/// Proves ERR-21: without a model and for the user's own arguments, no repair is requested.
#[test]
fn user_arguments_are_not_repaired() {
    let server = OpenAi::replies([Reply::text("{\"path\": \"a.txt\"}")]);
    let home = Home::openai(&server);
    let form = crate::tools_call::call(&home, "read", &json!({ "fiel": "a.txt" }));
    assert_eq!(form["error_category"], "invalid_parameters", "{form:#}");
    assert_eq!(server.requests().len(), 0);
}

/// Proves ERR-21, EXE-13: the time is limited, and a limit of 0 disables the request.
#[test]
fn repair_request_has_a_time_limit() {
    for (budget, asked) in [(1, 1), (0, 0)] {
        let server = server("read", json!({}), Reply::hang());
        let home = Home::openai(&server);
        home.more_config(&format!("[tools.retry]\nbudget_secs = {budget}\n"));
        let start = Instant::now();
        home.zeph(["-p", "go"]).code(0).prints(&["Done."]);
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_has(&result(&server), &["category: invalid_parameters"]);
        assert_eq!(reformats(&server), asked);
    }
}

/// Proves ERR-21, EXE-13: a cancellation ends the request immediately.
#[test]
fn cancellation_ends_the_repair_request() {
    let server = server("read", json!({}), Reply::hang());
    let home = Home::openai(&server);
    let running = home.zeph(["-p", "go"]).start();
    server.wait_for_requests(2);
    running.signal(Signal::INT);
    running.wait().code(130);
    let entry = audit(&home.database()).pop().unwrap();
    assert_eq!(entry.result, "cancelled");
}

/// Proves ERR-21, LLM-9: a scenario may respond to a repair request, or continue as if there was none.
#[test]
fn scenario_can_respond_to_a_repair_request() {
    let wrong = "[[steps]]\ncalls = [{ tool = 'read', input = { fiel = 'a.txt' } }]\n";
    let last = |expect: &str| {
        format!("[[steps]]\nexpect = {{ tool_result_contains = '{expect}' }}\ntext = 'Done.'\n")
    };
    let check = |scenario: String| {
        let home = Home::scripted(&scenario);
        home.write("a.txt", "alpha\n");
        home.zeph(["-p", "go"]).code(0).prints(&["Done."]);
    };
    check(format!("{wrong}{}", last("invalid_parameters")));
    check(format!("{wrong}[[steps]]\ntext = 'Done.'\n"));
    let answer =
        "[[steps]]\nexpect = { last_user_contains = 'fiel' }\ntext = '{\"path\": \"a.txt\"}'\n";
    check(format!("{wrong}{answer}{}", last("alpha")));
}
