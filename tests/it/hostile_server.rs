//! Hostile servers with absurd figures, invalid escapes or endless text, which the session survives.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Zeph, assert_has};

/// A stream with one text and this JSON as its usage.
fn counted(text: &str, usage: &str) -> Reply {
    let delta = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let body = format!(
        "data: {delta}\n\ndata: {end}\n\ndata: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
    );
    Reply::raw(200, "text/event-stream", body)
}

/// Proves LLM-11, AGT-4: a turn with such a usage ends normally, and so do the next ones.
#[test]
fn absurd_usage_does_not_end_the_session() {
    for usage in [
        r#"{"prompt_tokens":-1,"completion_tokens":-20}"#,
        r#"{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615}"#,
        r#"{"prompt_tokens":99999999999999999999999999,"completion_tokens":1e300}"#,
        r#"{"prompt_tokens":9007199254740993,"completion_tokens":9007199254740993,"prompt_tokens_details":{"cached_tokens":-5}}"#,
        r#"{"prompt_tokens":"a lot","completion_tokens":null,"prompt_tokens_details":7}"#,
        r#"{"prompt_tokens":90000000,"completion_tokens":90000000}"#,
        r#"{"prompt_tokens":1.5,"completion_tokens":[1]}"#,
        r#""none""#,
        "[]",
        "null",
    ] {
        let usage = usage.to_owned();
        let server = OpenAi::start(move |_, _| counted("a fine answer", &usage));
        let home = Home::openai(&server);
        for turn in 0..3 {
            let prompt = format!("turn {turn}");
            let mut args = vec!["-p", &prompt];
            if turn > 0 {
                args.insert(0, "--continue");
            }
            let output = home.zeph(args).code(0);
            assert_has(&output.stdout, &["a fine answer"]);
        }
        assert_eq!(server.requests().len(), 3);
    }
}

/// Proves LLM-4: a lone surrogate in text or arguments becomes U+FFFD; the call runs and the session
/// continues.
#[test]
fn lone_surrogates_do_not_end_the_session() {
    let server = OpenAi::start(|at, _| match at {
        0 => {
            let call = r#"{"choices":[{"index":0,"delta":{"content":"half \ud83d here","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"write","arguments":"{\"path\":\"half.txt\",\"content\":\"a\\ud83db\"}"}}]}}]}"#;
            let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
            let body = format!("data: {call}\n\ndata: {end}\n\ndata: [DONE]\n\n");
            Reply::raw(200, "text/event-stream", body)
        }
        1 => Reply::raw(
            200,
            "application/json",
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"whole \udc00 answer"},"finish_reason":"stop"}]}"#,
        ),
        _ => Reply::text("continues"),
    });
    let home = Home::openai(&server);
    let output = home.zeph(["-p", "hi", "--yes"]).code(0);
    assert_has(&output.stdout, &["whole \u{FFFD} answer"]);
    assert_eq!(home.read("half.txt"), "a\u{FFFD}b");
    let output = home.zeph(["--continue", "-p", "more"]).code(0);
    assert_has(&output.stdout, &["continues"]);
    let request: Value = server.last().json();
    assert!(request.to_string().contains("half \u{FFFD} here"));
}

/// Proves LLM-5, AGT-6: an endless response is refused in bounded memory, and the session continues.
#[test]
fn endless_response_is_refused_and_the_session_continues() {
    const MIB: usize = 1 << 20;
    let streamed = {
        let delta = json!({ "choices": [{ "index": 0, "delta": { "content": "x".repeat(MIB) } }] });
        format!("data: {delta}\n\n").repeat(64)
    };
    let document = json!({ "choices": [{ "index": 0, "message": { "role": "assistant", "content": "y".repeat(64 * MIB) }, "finish_reason": "stop" }] });
    let bodies = [
        ("text/event-stream", streamed),
        ("application/json", document.to_string()),
    ];
    for (kind, body) in bodies {
        let server = OpenAi::start(move |at, request| {
            if at < 8 && !request.json().to_string().contains("go on then") {
                Reply::raw(200, kind, body.clone())
            } else {
                Reply::text("continues")
            }
        });
        let home = Home::openai(&server);
        home.more_config("[llm.retry]\nmax_attempts = 1\n");
        // 500,000 KiB of address space are enough for any response.
        let limited = "ulimit -v 500000; exec \"$0\" \"$@\"";
        let run = Zeph::through_bash(&home, limited).args(["-p", "hi"]);
        let output = run.run();
        let said: String = output.stderr.chars().take(2000).collect();
        assert_eq!(output.code, Some(1), "{said}");
        assert!(said.contains("bytes"), "{said}");
        assert!(output.stderr.len() < 20_000, "{said}");
        let output = home.zeph(["--continue", "-p", "go on then"]).code(0);
        assert_has(&output.stdout, &["continues"]);
        let sent = server.last().json().to_string().len();
        assert!(sent < 400_000, "{kind}: {sent} bytes sent again");
    }
}
