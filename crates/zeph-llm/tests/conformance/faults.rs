//! What the OpenAI provider does when the server or the network fails.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use zeph_llm::{ChatResponse, LlmErrorKind, Message, RetryConfig, StreamEvent};

use crate::server::{End, Reply, Server, call, event, finish, more_arguments, say, text_answer};
use crate::{KEY, ask, notices, provider, shown_text};

fn once() -> RetryConfig {
    RetryConfig {
        max_attempts: 1,
        ..RetryConfig::default()
    }
}

/// Proves LLM-5: `Retry-After` is obeyed, the same bytes are sent again, and a notice says so.
#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let busy = |status| Reply::status(status, "{}").header("Retry-After", "0");
    let replies = [busy(429), busy(500), busy(503), text_answer("done")];
    let server = Server::start(replies).await;
    let (response, events) = ask(
        &*provider(&server.url, RetryConfig::default()),
        &[Message::user("Hi")],
        None,
    )
    .await;
    assert_eq!(response.unwrap().into_message().text(), "done");
    assert_eq!(notices(&events).len(), 3);
    assert!(notices(&events)[0].contains("answered 429"), "{events:?}");
    assert!(notices(&events)[2].contains("attempt 4 of 4"), "{events:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert!(
        requests
            .iter()
            .all(|request| request.raw == requests[0].raw)
    );
}

/// Proves LLM-5a.
#[tokio::test]
async fn attempts_are_limited() {
    let busy = Reply::status(500, "oops").header("Retry-After", "0");
    let server = Server::start(vec![busy; 9]).await;
    let (response, _) = ask(
        &*provider(&server.url, RetryConfig::default()),
        &[Message::user("Hi")],
        None,
    )
    .await;
    let error = response.unwrap_err();
    assert_eq!(
        (error.kind, error.status),
        (LlmErrorKind::Server, Some(500))
    );
    assert!(
        error.message.contains("oops") && error.message.contains("4 attempts"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 4);
}

/// Proves LLM-5a: a wait beyond the budget fails at once and says when to try again.
#[tokio::test]
async fn a_long_retry_after_fails_at_once() {
    let date = "Fri, 31 Dec 2100 23:59:59 GMT";
    for value in ["3600", date] {
        let server = Server::start([Reply::status(429, "{}").header("Retry-After", value)]).await;
        let began = Instant::now();
        let (response, _) = ask(
            &*provider(&server.url, RetryConfig::default()),
            &[Message::user("Hi")],
            None,
        )
        .await;
        let error = response.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(10));
        assert_eq!(error.kind, LlmErrorKind::RateLimited);
        assert!(error.retry_after.unwrap() >= Duration::from_secs(3600));
        assert!(error.message.contains("try again in"), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}

/// Proves LLM-5: what no retry can mend is told at once, and how to mend it.
#[tokio::test]
async fn refusals_are_told_at_once() {
    let key_echoed = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {KEY}.","code":"invalid_api_key"}}}}"#
    );
    let plain_echo = format!("Forbidden: Bearer {KEY}");
    for (status, body, kind, contains) in [
        (401, key_echoed.as_str(), LlmErrorKind::Auth, "LOCAL_KEY"),
        (403, &plain_echo, LlmErrorKind::Auth, "[key]"),
        (
            404,
            r#"{"error":{"message":"The model does not exist","code":"model_not_found"}}"#,
            LlmErrorKind::UnknownModel,
            "`test-model`",
        ),
        (
            404,
            "<html>Not Found</html>",
            LlmErrorKind::Config,
            "`base_url`",
        ),
        (402, "", LlmErrorKind::NoCredit, "no credit"),
        (
            429,
            r#"{"error":{"message":"quota","type":"insufficient_quota"}}"#,
            LlmErrorKind::NoCredit,
            "quota",
        ),
        (
            400,
            r#"{"error":{"message":"bad schema"}}"#,
            LlmErrorKind::BadRequest,
            "bad schema",
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 5 tokens"}}"#,
            LlmErrorKind::ContextOverflow,
            "compact",
        ),
    ] {
        let server = Server::start([Reply::status(status, body)]).await;
        let (response, events) = ask(
            &*provider(&server.url, RetryConfig::default()),
            &[Message::user("Hi")],
            None,
        )
        .await;
        let error = response.unwrap_err();
        assert_eq!((error.kind, error.status), (kind, Some(status)), "{error}");
        assert!(error.message.contains(contains), "{error}");
        assert_eq!((server.requests().len(), events.len()), (1, 0));
    }
}

/// An endless error body is read up to a cap.
#[tokio::test]
async fn an_error_body_is_read_with_a_cap() {
    let server = Server::start([Reply::status(400, vec![b'x'; 1 << 20]).end(End::Hang)]).await;
    let (response, _) = ask(
        &*provider(&server.url, once()),
        &[Message::user("Hi")],
        None,
    )
    .await;
    let error = response.unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::BadRequest);
    assert!(error.message.len() < 400, "{error}");
}

/// A redirect would lose the request or carry the key elsewhere.
#[tokio::test]
async fn redirects_are_not_followed() {
    let redirect = Reply::status(308, "").header("Location", "http://127.0.0.1:1/elsewhere");
    let server = Server::start([redirect]).await;
    let (response, _) = ask(
        &*provider(&server.url, RetryConfig::default()),
        &[Message::user("Hi")],
        None,
    )
    .await;
    let error = response.unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Config);
    assert!(
        error.message.contains("http://127.0.0.1:1/elsewhere"),
        "{error}"
    );
}

/// Proves LLM-5.
#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (response, _) = ask(&*provider(&url, once()), &[Message::user("Hi")], None).await;
    let error = response.unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Network);
    for part in [
        url.as_str(),
        "connection refused",
        "Is the server running",
        "`base_url`",
    ] {
        assert!(error.message.contains(part), "{part:?} in {error}");
    }
}

/// Proves LLM-5a: `read_timeout_secs` covers the silence before and within an answer.
#[tokio::test]
async fn silence_is_a_timeout() {
    let impatient = RetryConfig {
        read_timeout_secs: 1,
        ..once()
    };
    for body in [String::new(), say("Hel")] {
        let server = Server::start([Reply::stream(body).end(End::Hang)]).await;
        let (response, _) = ask(
            &*provider(&server.url, impatient),
            &[Message::user("Hi")],
            None,
        )
        .await;
        let error = response.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::Timeout, "{error}");
        assert!(error.message.contains("read_timeout_secs"), "{error}");
    }
}

/// The events of an answer with a text (if any) and a call.
fn events_with_call(text: &str) -> Vec<String> {
    let mut events = vec![event(
        &json!({"delta": {"role": "assistant", "content": ""}}),
    )];
    if !text.is_empty() {
        events.push(say(text));
    }
    events.push(call("a", "bash", ""));
    events.push(more_arguments("{\"command\":"));
    events.push(more_arguments("\"echo ä\"}"));
    events
}

/// Cuts the first answer after `at` bytes, in both ways that a connection can end, and lets the
/// second be whole.
async fn cut_at(
    first: Vec<u8>,
    at: usize,
    end: End,
    second: Reply,
) -> (ChatResponse, Vec<StreamEvent>, Server) {
    let server = Server::start([Reply::stream(&first[..at]).end(end), second]).await;
    let (response, events) = ask(
        &*provider(&server.url, RetryConfig::default()),
        &[Message::user("Hi")],
        None,
    )
    .await;
    (response.unwrap(), events, server)
}

/// A stream that breaks off before any text was shown is sent again from the start; nothing of
/// the first attempt is in the answer. Proves LLM-4.
#[tokio::test]
async fn cut_before_any_text_at_every_boundary_and_inside_a_character() {
    let events = events_with_call("");
    let whole = events.concat().into_bytes();
    let umlaut = whole
        .windows(2)
        .position(|pair| pair == "ä".as_bytes())
        .unwrap();
    let mut cuts: Vec<usize> = vec![0, 3, umlaut + 1];
    cuts.extend(events.iter().scan(0, |end, event| {
        *end += event.len();
        Some(*end)
    }));
    let mut runs = JoinSet::new();
    for (at, end) in cuts
        .into_iter()
        .flat_map(|at| [(at, End::Eof), (at, End::Abort)])
    {
        let whole = whole.clone();
        runs.spawn(async move {
            let second =
                Reply::stream(call("b", "bash", "{\"command\":\"pwd\"}") + &finish("tool_calls"));
            let (response, events, server) = cut_at(whole, at, end, second).await;
            let calls: Vec<_> = response
                .tool_uses()
                .map(|call| (call.id.as_str(), &call.input))
                .collect();
            assert_eq!(calls, [("b", &json!({"command": "pwd"}))], "cut at {at}");
            assert_eq!(notices(&events).len(), 1);
            let requests = server.requests();
            assert_eq!(requests.len(), 2);
            assert_eq!(requests[0].raw, requests[1].raw, "from the start");
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}

/// A stream that breaks off after text was shown goes on where it stopped, with a notice; the
/// texts are joined, and the cut call is none. Proves LLM-4.
#[tokio::test]
async fn cut_after_text_goes_on_with_a_notice() {
    let events = events_with_call("I will wr");
    let whole = events.concat().into_bytes();
    let from = events[0].len() + events[1].len();
    let mut runs = JoinSet::new();
    for at in [from, from + 5, whole.len() - 4, whole.len()] {
        let whole = whole.clone();
        runs.spawn(async move {
            let second =
                Reply::stream(say("ite it.") + &call("b", "bash", "{}") + &finish("tool_calls"));
            let (response, events, server) = cut_at(whole, at, End::Eof, second).await;
            assert_eq!(shown_text(&events), "I will write it.");
            assert!(
                notices(&events)[0].contains("go on where the text stopped"),
                "{events:?}"
            );
            let message = response.into_message();
            assert_eq!(message.text(), "I will write it.");
            assert_eq!(
                message
                    .tool_uses()
                    .map(|call| call.id.as_str())
                    .collect::<Vec<_>>(),
                ["b"]
            );
            let requests = server.requests();
            let sent = requests[1].json();
            let messages = sent["messages"].as_array().unwrap();
            let [.., shown, go_on] = messages.as_slice() else {
                panic!("{messages:?}")
            };
            assert_eq!(shown, &json!({"role": "assistant", "content": "I will wr"}));
            assert_eq!(go_on["role"], "user");
            assert!(
                go_on["content"]
                    .as_str()
                    .unwrap()
                    .contains("Continue exactly where it stopped")
            );
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}

/// An answer that broke off twice is one answer in the end. Proves LLM-4.
#[tokio::test]
async fn cut_twice() {
    let cut = |text| Reply::stream(say(text)).end(End::Abort);
    let server = Server::start([cut("a"), cut("b"), text_answer("c")]).await;
    let (response, _) = ask(
        &*provider(&server.url, RetryConfig::default()),
        &[Message::user("Hi")],
        None,
    )
    .await;
    assert_eq!(response.unwrap().into_message().text(), "abc");
    assert_eq!(server.requests()[2].json()["messages"][2]["content"], "ab");
}

/// Half a JSON document cannot be continued: under a schema the answer starts over. Proves LLM-4.
#[tokio::test]
async fn cut_under_a_schema_starts_over() {
    let first = Reply::stream(say("{\"n\":")).end(End::Abort);
    let server = Server::start([first, text_answer("{\"n\":1}")]).await;
    let schema = json!({"type": "object"});
    let (response, events) = ask(
        &*provider(&server.url, RetryConfig::default()),
        &[Message::user("Hi")],
        Some(&schema),
    )
    .await;
    assert_eq!(response.unwrap().into_message().text(), "{\"n\":1}");
    assert!(notices(&events)[0].contains("starts over"), "{events:?}");
    let requests = server.requests();
    assert_eq!(requests[0].raw, requests[1].raw);
}

/// A connection that breaks after the answer's end loses nothing. Proves LLM-4.
#[tokio::test]
async fn a_break_after_the_end_is_no_break() {
    let done = event(&json!({"delta": {}, "finish_reason": "stop"}));
    for end in [End::Eof, End::Abort] {
        let server = Server::start([Reply::stream(say("all") + &done).end(end)]).await;
        let (response, events) = ask(
            &*provider(&server.url, RetryConfig::default()),
            &[Message::user("Hi")],
            None,
        )
        .await;
        assert_eq!(response.unwrap().into_message().text(), "all");
        assert_eq!(notices(&events).len(), 0);
    }
}

/// An error inside the stream is treated as what it says. Proves LLM-4, LLM-5.
#[tokio::test]
async fn an_error_inside_the_stream() {
    let error =
        |code: &str| format!("data: {{\"error\":{{\"message\":\"m\",\"code\":{code}}}}}\n\n");
    let server = Server::start([Reply::stream(error("503")), text_answer("done")]).await;
    let (response, _) = ask(
        &*provider(&server.url, RetryConfig::default()),
        &[Message::user("Hi")],
        None,
    )
    .await;
    assert_eq!(response.unwrap().into_message().text(), "done");
    let server = Server::start([Reply::stream(error("\"context_length_exceeded\""))]).await;
    let (response, _) = ask(
        &*provider(&server.url, RetryConfig::default()),
        &[Message::user("Hi")],
        None,
    )
    .await;
    assert_eq!(response.unwrap_err().kind, LlmErrorKind::ContextOverflow);
}

/// Dropping the future closes the connection, so that the server stops.
#[tokio::test]
async fn dropping_the_future_cancels_the_request() {
    let server = Server::start([Reply::stream(say("Hel")).end(End::Hang)]).await;
    let provider = provider(&server.url, RetryConfig::default());
    let messages = [Message::user("Hi")];
    tokio::select! {
        _ = ask(&*provider, &messages, None) => panic!("the answer never ends"),
        () = server.answering() => {}
    }
    tokio::time::timeout(Duration::from_secs(10), server.closed_by_client())
        .await
        .expect("the connection is closed");
}

/// A server that keeps the connection open after `[DONE]` does not hold the answer back.
#[tokio::test]
async fn an_open_connection_after_the_end_is_not_waited_for() {
    let server = Server::start([Reply::stream(say("all") + &finish("stop")).end(End::Hang)]).await;
    let answer = provider(&server.url, once());
    let answer = tokio::time::timeout(
        Duration::from_secs(10),
        answer.chat("", &[Message::user("Hi")]),
    )
    .await;
    assert_eq!(answer.unwrap().unwrap(), "all");
}
