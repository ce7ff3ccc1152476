//! Failing servers: retries, messages and stored text.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, assert_has, audit, openai_config, results_of};

const QUICK: &str = "[llm.retry]\nmax_attempts = 2\nread_timeout_secs = 1\n";

/// Asserts that a request fails with exit code 1 and this text, after this number of requests.
#[track_caller]
fn fails(reply: &Reply, words: &[&str], requests: usize) {
    let reply = reply.clone();
    let server = OpenAi::start(move |_, _| reply.clone());
    let home = Home::openai(&server);
    home.more_config(QUICK);
    let output = home.zeph(["-p", "hi"]).code(1);
    assert_has(&output.stderr, words);
    assert_eq!(server.requests().len(), requests, "{output}");
    assert!(output.took < Duration::from_secs(8), "{output}");
}

/// Proves LLM-5.
#[test]
fn unreachable_server_is_reported() {
    let home = Home::new();
    let url = OpenAi::replies([]).url();
    home.config(&openai_config(&url));
    home.more_config(QUICK);
    let words = [
        "connection refused",
        &url,
        "Check that the server is running",
    ];
    home.zeph(["-p", "hi"]).code(1).says(&words);
    let export = home.zeph(["sessions", "list"]).code(0);
    export.prints(&["1 message "]);
}

/// Proves LLM-5: permanent errors are not retried, and the message says how to fix them.
#[test]
fn permanent_errors_are_not_retried_and_name_their_fix() {
    fails(
        &Reply::error(401, "invalid_api_key", "Incorrect key"),
        &["401", "TEST_KEY"],
        1,
    );
    let unknown = Reply::error(404, "model_not_found", "The model does not exist");
    fails(&unknown, &["404", "test-model", "correct `model`"], 1);
    let page = Reply::raw(404, "text/html", "<html>not found</html>");
    fails(&page, &["404", "base_url"], 1);
    let long = "This model's maximum context length is 8192 tokens";
    fails(
        &Reply::error(400, "context_length_exceeded", long),
        &["window", "context_window"],
        1,
    );
    let credit = Reply::error(429, "insufficient_quota", "You exceeded your current quota");
    fails(&credit, &["credit", "billing"], 1);
}

/// Proves LLM-5.
#[test]
fn invalid_response_is_reported() {
    let page = Reply::raw(200, "text/html", "<!doctype html><h1>Login</h1>");
    fails(
        &page,
        &["did not respond with Chat Completions", "base_url"],
        1,
    );
    fails(
        &Reply::raw(200, "text/event-stream", "data: {]\n\n"),
        &["not part of a response"],
        1,
    );
    fails(
        &Reply::raw(200, "application/json", "{\"hello\": 1}"),
        &["base_url"],
        1,
    );
}

/// Proves LLM-5: server errors are retried, and the user sees it.
#[test]
fn server_errors_are_retried() {
    let server = OpenAi::replies([
        Reply::error(500, "server_error", "oops"),
        Reply::raw(
            502,
            "text/html",
            "<html><head><title>502 Bad Gateway</title></head><body><p>nginx</p></body></html>",
        ),
        Reply::text("At last."),
    ]);
    let home = Home::openai(&server);
    let output = home.zeph(["-p", "hi"]).code(0);
    assert_eq!(output.stdout, "At last.\n", "{output}");
    let words = [
        "answered 500: oops. It is sent again. (attempt 2 in 0.",
        "502: 502 Bad Gateway. It",
        "(attempt 3 in ",
    ];
    assert_has(&output.stderr, &words);
    assert!(!output.stderr.contains('<'), "{output}");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(server.requests()[0].raw, server.requests()[2].raw);
    fails(
        &Reply::error(500, "server_error", "oops"),
        &["500", "gave up after 2 attempts"],
        2,
    );
}

/// Proves LLM-5, LLM-5a.
#[test]
fn retry_after_is_obeyed_within_the_budget() {
    let busy = Reply::error(429, "rate_limit", "slow down");
    let server = OpenAi::replies([busy.clone().header("Retry-After", "1"), Reply::text("ok")]);
    let home = Home::openai(&server);
    home.zeph(["-p", "hi"]).code(0);
    let requests = server.requests();
    assert!(requests[1].at - requests[0].at >= Duration::from_secs(1));

    let long = busy.header("Retry-After", "3600");
    fails(&long, &["3600 s", "try again in 3600 s, at "], 1);
}

/// Proves LLM-14: without a configured number of attempts, only the budget ends the retries.
#[test]
fn transient_errors_are_retried_until_the_budget_is_used() {
    let server = OpenAi::start(|_, _| Reply::error(529, "overloaded_error", "Overloaded"));
    let home = Home::openai(&server);
    home.more_config("[llm.retry]\nbudget_secs = 2\n");
    let output = home.zeph(["-p", "hi"]).code(1);
    let used = "the 2 s of `[llm.retry] budget_secs` are used up";
    assert_has(&output.stderr, &["answered 529: Overloaded", used]);
    let requests = server.requests();
    let took = requests[requests.len() - 1].at - requests[0].at;
    assert!(took >= Duration::from_millis(1900), "{took:?}");
    assert!(requests.len() >= 4, "{}", requests.len());
}

/// Proves LLM-4: if no text was shown, the request is sent again unchanged.
#[test]
fn stream_cut_before_text_is_requested_again() {
    let server = OpenAi::replies([
        Reply::raw(200, "text/event-stream", ": ping\n\n").cut_after("ping"),
        Reply::text("Whole now."),
    ]);
    let home = Home::openai(&server);
    assert_eq!(home.zeph(["-p", "hi"]).code(0).stdout, "Whole now.\n");
    assert_eq!(server.requests()[0].raw, server.requests()[1].raw);
}

/// Proves LLM-4: if text was shown, the turn resumes with a notice.
#[test]
fn stream_cut_after_text_resumes_with_a_notice() {
    let server = OpenAi::replies([
        Reply::text("The first half, and ").cut_after("half, "),
        Reply::text("the second."),
    ]);
    let home = Home::openai(&server);
    let object = home
        .zeph(["-p", "hi", "--output-format", "stream-json"])
        .code(0);
    let events = object.json_lines();
    let notice = events
        .iter()
        .find(|event| event["type"] == "notice")
        .unwrap();
    assert_has(
        notice["text"].as_str().unwrap(),
        &["requests the rest of the response"],
    );
    let last = events.last().unwrap();
    assert_eq!(last["text"], "The first half, the second.");
    let asked = server.last().messages();
    assert!(
        asked
            .iter()
            .any(|m| m["content"].to_string().contains("The first half")),
        "{asked:?}"
    );
}

/// Proves LLM-4: an incomplete call of a stream never runs.
#[test]
fn incomplete_call_does_not_run() {
    let touch = json!({ "command": "touch ran; touch also-ran" });
    let half = Reply::calls("h", &[("bash", touch)]).cut_after("uch ran");
    let server = OpenAi::replies([half.clone(), half]);
    let home = Home::openai(&server);
    home.more_config(QUICK);
    home.zeph(["--yes", "-p", "hi"])
        .code(1)
        .says(&["broke", "2 attempts"]);
    assert!(!home.has("ran"));
    assert_eq!(audit(&home.database()), []);
}

/// Proves LLM-5a.
#[test]
fn silent_server_times_out() {
    fails(&Reply::hang(), &["read_timeout_secs"], 2);
    let home = Home::new();
    let server = OpenAi::replies([Reply::text("Some words come. ").hang_after("words ")]);
    home.config(&openai_config(&server.url()));
    home.more_config("[llm.retry]\nmax_attempts = 1\nread_timeout_secs = 1\n");
    let output = home.zeph(["-p", "hi"]).code(1);
    assert_has(&output.stdout, &["Some words"]);
    assert_has(&output.stderr, &["read_timeout_secs"]);

    // The shown text is stored with a mark.
    let server = OpenAi::replies([Reply::text("ok")]);
    home.config(&openai_config(&server.url()));
    home.zeph(["--continue", "-p", "go on"]).code(0);
    let said = server.last().messages();
    assert_has(
        said[2]["content"].as_str().unwrap(),
        &["Some words", "[the response ended early]"],
    );
}

/// Proves LLM-4: a response that arrives byte by byte is read correctly.
#[test]
fn response_in_single_bytes_is_complete() {
    let call = Reply::answer(
        "Grüße – ",
        &[(
            "c1".to_owned(),
            "bash",
            json!({ "command": "echo 'ä\"ö'" }).to_string(),
        )],
    );
    let server = OpenAi::replies([call.trickle(1), Reply::text("Fertig: ✓").trickle(3)]);
    let home = Home::openai(&server);
    let object = home
        .zeph(["--yes", "-p", "hi", "--output-format", "json"])
        .code(0)
        .json();
    assert_eq!(object["text"], "Fertig: ✓");
    let messages = server.last().messages();
    assert_eq!(messages[2]["content"], "Grüße – ");
    assert_eq!(results_of(&messages)[0].1, "ä\"ö");
}

/// Proves AGT-6: after an error during a turn, the conversation can continue.
#[test]
fn failed_turn_can_continue() {
    let server = OpenAi::replies([
        Reply::calls("a", &[("bash", json!({ "command": "echo done > a.txt" }))]),
        Reply::error(400, "bad", "no"),
        Reply::text("Went on."),
    ]);
    let home = Home::openai(&server);
    home.zeph(["--yes", "-p", "start"]).code(1);
    home.zeph(["--continue", "-p", "again"])
        .code(0)
        .prints(&["Went on."]);
    let messages = server.last().messages();
    assert_eq!(results_of(&messages).len(), 1);
    assert_eq!(messages.last().unwrap()["content"], "again");
}
