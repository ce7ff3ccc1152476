//! Failures of servers and networks, for each provider over HTTP.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use zeph_llm::{ChatResponse, LlmError, LlmErrorKind, RetryConfig, StreamEvent};

use crate::server::{End, Reply, Server};
use crate::wire::{Said, Stop, WIRES, Wire, hi};
use crate::{KEY, ask, notices, shown_text};

fn once() -> RetryConfig {
    RetryConfig {
        max_attempts: Some(1),
        ..RetryConfig::default()
    }
}

/// Sends one request with the usual retry settings.
async fn asked(wire: Wire, server: &Server) -> (Result<ChatResponse, LlmError>, Vec<StreamEvent>) {
    let provider = wire.provider(&server.url, RetryConfig::default());
    ask(&*provider, &hi(), None).await
}

/// Proves LLM-5, LLM-10: `Retry-After` is obeyed, the same bytes are sent again, and a notice says so.
#[tokio::test]
async fn busy_server_is_retried() {
    let busy = |status| Reply::status(status, "{}").header("Retry-After", "0");
    for wire in WIRES {
        let replies = [busy(429), busy(500), busy(503), wire.text_answer("done")];
        let server = Server::start(replies).await;
        let (response, events) = asked(wire, &server).await;
        assert_eq!(response.unwrap().into_message().text(), "done", "{wire:?}");
        assert_eq!(notices(&events).len(), 3);
        assert!(notices(&events)[0].contains("answered 429"), "{events:?}");
        assert!(
            notices(&events)[2].contains("attempt 4 in 0.0 s"),
            "{events:?}"
        );
        let requests = server.requests();
        assert_eq!(requests.len(), 4);
        let first = &requests[0].raw;
        assert!(requests.iter().all(|request| &request.raw == first));
    }
}

/// Proves LLM-5a.
#[tokio::test]
async fn attempts_are_limited() {
    for wire in WIRES {
        let busy = Reply::status(500, "oops").header("Retry-After", "0");
        let server = Server::start(vec![busy; 9]).await;
        let retry = RetryConfig {
            max_attempts: Some(4),
            ..RetryConfig::default()
        };
        let provider = wire.provider(&server.url, retry);
        let error = ask(&*provider, &hi(), None).await.0.unwrap_err();
        assert_eq!(
            (error.kind, error.status),
            (LlmErrorKind::Server, Some(500))
        );
        assert!(
            error.message.contains("oops") && error.message.contains("4 attempts"),
            "{error}"
        );
        assert_eq!(server.requests().len(), 4, "{wire:?}");
    }
}

/// Proves LLM-5a: a wait beyond the budget fails immediately with the time of the next attempt.
#[tokio::test]
async fn long_retry_after_fails_immediately() {
    let limited = |value: &str| Reply::status(429, "{}").header("Retry-After", value);
    let body = json!({"error": {"code": 429, "details": [{"retryDelay": "3600s"}]}});
    let replies = [
        limited("3600"),
        limited("Fri, 31 Dec 2100 23:59:59 GMT"),
        Reply::status(429, body.to_string()),
    ];
    for wire in WIRES {
        for reply in replies.clone() {
            let server = Server::start([reply]).await;
            let began = Instant::now();
            let error = asked(wire, &server).await.0.unwrap_err();
            assert!(began.elapsed() < Duration::from_secs(10));
            assert_eq!(error.kind, LlmErrorKind::RateLimited);
            assert!(error.retry_after.unwrap() >= Duration::from_secs(3600));
            assert!(error.message.contains("try again in"), "{error}");
            assert_eq!(server.requests().len(), 1, "{wire:?}");
        }
    }
}

/// Proves LLM-5, LLM-10: a permanent error is reported immediately, with its fix.
#[tokio::test]
async fn refusals_are_reported_immediately() {
    use LlmErrorKind as Kind;
    for wire in WIRES {
        let own = |kind| wire.refusal(kind);
        let key_echoed =
            format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}."}}}}"#);
        for ((status, body), kind, contains) in [
            (own(Kind::Auth), Kind::Auth, "LOCAL_KEY"),
            ((401, key_echoed), Kind::Auth, "LOCAL_KEY"),
            (
                (403, format!("Forbidden: Bearer {KEY}")),
                Kind::Auth,
                "[key]",
            ),
            (own(Kind::UnknownModel), Kind::UnknownModel, "`test-model`"),
            (
                (404, "<html>Not Found</html>".to_owned()),
                Kind::Config,
                "`base_url`",
            ),
            ((402, String::new()), Kind::NoCredit, "no credit"),
            (own(Kind::NoCredit), Kind::NoCredit, "credit"),
            (own(Kind::BadRequest), Kind::BadRequest, "bad schema"),
            (own(Kind::ContextOverflow), Kind::ContextOverflow, "compact"),
        ] {
            let server = Server::start([Reply::status(status, body)]).await;
            let (response, events) = asked(wire, &server).await;
            let error = response.unwrap_err();
            assert_eq!(
                (error.kind, error.status),
                (kind, Some(status)),
                "{wire:?}: {error}"
            );
            assert!(error.message.contains(contains), "{wire:?}: {error}");
            assert_eq!((server.requests().len(), events.len()), (1, 0));
        }
    }
}

/// A body that is neither a stream nor a response is reported and quoted. Proves LLM-10.
#[tokio::test]
async fn garbage_is_not_a_response() {
    for wire in WIRES {
        for body in [
            "<html><body>Sign in</body></html>",
            "{\"hello\":1}",
            "not an answer",
            "\u{1}\u{2}\u{3} hello",
        ] {
            let server = Server::start([wire.stream(body)]).await;
            let provider = wire.provider(&server.url, once());
            let (response, events) = ask(&*provider, &hi(), None).await;
            let error = response.unwrap_err();
            assert_eq!(
                error.kind,
                LlmErrorKind::Protocol,
                "{wire:?} {body:?}: {error}"
            );
            let quoted = ["Sign in", "hello", "not an answer"];
            assert!(
                quoted.iter().any(|part| error.message.contains(part)),
                "{error}"
            );
            assert_eq!(events, [], "{wire:?} {body:?}");
        }
    }
}

/// An endless error body is read up to a limit.
#[tokio::test]
async fn error_body_is_read_up_to_a_limit() {
    for wire in WIRES {
        let reply = Reply::status(400, vec![b'x'; 1 << 20]).end(End::Hang);
        let server = Server::start([reply]).await;
        let error = asked(wire, &server).await.0.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::BadRequest);
        assert!(error.message.len() < 400, "{error}");
    }
}

/// Redirects are not followed, because they would lose the request or send the key elsewhere.
#[tokio::test]
async fn redirects_are_not_followed() {
    for wire in WIRES {
        let elsewhere = Server::start([wire.text_answer("stolen")]).await;
        let redirect = Reply::status(308, "").header("Location", &elsewhere.url);
        let server = Server::start([redirect]).await;
        let error = asked(wire, &server).await.0.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::Config);
        assert!(error.message.contains(&elsewhere.url), "{error}");
        assert_eq!(elsewhere.requests().len(), 0);
    }
}

/// Proves LLM-5.
#[tokio::test]
async fn refused_connection_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for wire in WIRES {
        let provider = wire.provider(&url, once());
        let error = ask(&*provider, &hi(), None).await.0.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::Network);
        for part in [
            url.as_str(),
            "connection refused",
            "Check that the server is running",
            "`base_url`",
        ] {
            assert!(error.message.contains(part), "{part:?} in {error}");
        }
    }
}

/// Proves LLM-5a: `read_timeout_secs` applies before and during a response.
#[tokio::test]
async fn silence_is_a_timeout() {
    let impatient = RetryConfig {
        read_timeout_secs: 1,
        ..once()
    };
    let mut runs = JoinSet::new();
    for wire in WIRES {
        for body in [String::new(), wire.body(&[Said::Text("Hel")])] {
            runs.spawn(async move {
                let server = Server::start([wire.stream(body).end(End::Hang)]).await;
                let provider = wire.provider(&server.url, impatient);
                let error = ask(&*provider, &hi(), None).await.0.unwrap_err();
                assert_eq!(error.kind, LlmErrorKind::Timeout, "{wire:?}: {error}");
                assert!(error.message.contains("read_timeout_secs"), "{error}");
            });
        }
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}

/// A response with an optional text and a call, as pieces without an end.
fn said_with_call(text: &str) -> Vec<Said<'_>> {
    let mut said = vec![
        Said::Call("a", "bash"),
        Said::Arguments("{\"command\":"),
        Said::Arguments("\"echo ä\"}"),
    ];
    if !text.is_empty() {
        said.insert(0, Said::Text(text));
    }
    said
}

/// Cuts the first response after `at` bytes, in both ways that a connection can end, and completes the second
/// one.
async fn cut_at(
    wire: Wire,
    first: Vec<u8>,
    at: usize,
    end: End,
    second: Reply,
) -> (ChatResponse, Vec<StreamEvent>, Server) {
    let server = Server::start([wire.stream(&first[..at]).end(end), second]).await;
    let (response, events) = asked(wire, &server).await;
    let response = response.unwrap_or_else(|error| panic!("{wire:?} at {at}: {error}"));
    (response, events, server)
}

/// The positions of cuts in a body: at its start, at every boundary of its events, within each event, and
/// within a character.
fn cuts(events: &[String]) -> Vec<usize> {
    let whole = events.concat().into_bytes();
    let umlaut = whole
        .windows(2)
        .position(|pair| pair == "ä".as_bytes())
        .unwrap();
    let mut cuts = vec![0, umlaut + 1];
    let mut begin = 0;
    for event in events {
        cuts.push(begin + 3);
        cuts.push(begin + event.len() / 2);
        begin += event.len();
        cuts.push(begin);
    }
    cuts
}

/// A stream that breaks off before any text was shown is requested again; the response contains nothing of
/// the first attempt. Proves LLM-4, LLM-10.
#[tokio::test]
async fn stream_cut_before_text_is_requested_again() {
    for wire in WIRES {
        let mut said = said_with_call("");
        // A call is ignored if the stream is cut before the end event.
        said.push(Said::End(Stop::Calls));
        let all = wire.events(&said);
        let before_end = wire.unfinished(&said);
        let whole = all.concat().into_bytes();
        let mut runs = JoinSet::new();
        for (at, end) in cuts(&all)
            .into_iter()
            .filter(|at| *at <= before_end + 3)
            .flat_map(|at| [(at, End::Eof), (at, End::Abort)])
        {
            let whole = whole.clone();
            runs.spawn(async move {
                let second = wire.reply(&[
                    Said::Call("b", "bash"),
                    Said::Arguments("{\"command\":\"pwd\"}"),
                    Said::End(Stop::Calls),
                ]);
                let (response, events, server) = cut_at(wire, whole, at, end, second).await;
                let calls: Vec<_> = response.tool_uses().map(|call| &call.input).collect();
                assert_eq!(calls, [&json!({"command": "pwd"})], "{wire:?} cut at {at}");
                assert_eq!(notices(&events).len(), 1);
                let requests = server.requests();
                assert_eq!(requests.len(), 2);
                assert_eq!(requests[0].raw, requests[1].raw, "from the start");
            });
        }
        assert!(runs.len() > 8, "{wire:?}: {}", runs.len());
        while let Some(run) = runs.join_next().await {
            run.unwrap();
        }
    }
}

/// A stream that breaks off after text was shown resumes with a notice. The texts are joined, and the
/// incomplete call is dropped. Proves LLM-4, LLM-10.
#[tokio::test]
async fn stream_cut_after_text_resumes_with_a_notice() {
    for wire in WIRES {
        let mut said = said_with_call("I will wr");
        said.push(Said::End(Stop::Calls));
        let all = wire.events(&said);
        let until = wire.unfinished(&said);
        let from = wire.body(&said[..1]).len();
        let whole = all.concat().into_bytes();
        let mut runs = JoinSet::new();
        for at in cuts(&all)
            .into_iter()
            .filter(|at| (from..=until + 3).contains(at))
        {
            let whole = whole.clone();
            runs.spawn(async move {
                let second = wire.reply(&[
                    Said::Text("ite it."),
                    Said::Call("b", "bash"),
                    Said::Arguments("{\"n\":2}"),
                    Said::End(Stop::Calls),
                ]);
                let (response, events, server) = cut_at(wire, whole, at, End::Eof, second).await;
                assert_eq!(shown_text(&events), "I will write it.");
                let notice = &notices(&events)[0];
                assert!(
                    notice.contains("requests the rest of the response"),
                    "{notice}"
                );
                let message = response.into_message();
                assert_eq!(message.text(), "I will write it.");
                let calls: Vec<_> = message.tool_uses().map(|call| &call.input).collect();
                assert_eq!(calls, [&json!({"n": 2})], "{wire:?} cut at {at}");
                let requests = server.requests();
                let (shown, go_on) = wire.continued(&requests[1].json());
                assert_eq!(shown, "I will wr");
                assert!(
                    go_on.contains("Continue exactly where it stopped"),
                    "{go_on}"
                );
            });
        }
        assert!(runs.len() > 2, "{wire:?}: {}", runs.len());
        while let Some(run) = runs.join_next().await {
            run.unwrap();
        }
    }
}

/// A response that broke off twice is joined to one. Proves LLM-4.
#[tokio::test]
async fn stream_cut_twice_is_joined() {
    for wire in WIRES {
        let cut = |text| wire.reply(&[Said::Text(text)]).end(End::Abort);
        let server = Server::start([cut("a"), cut("b"), wire.text_answer("c")]).await;
        let (response, _) = asked(wire, &server).await;
        assert_eq!(response.unwrap().into_message().text(), "abc");
        assert_eq!(wire.continued(&server.requests()[2].json()).0, "ab");
    }
}

/// Reasoning and calls are parts of a response too: each attempt that breaks off within them costs tokens. Proves LLM-4,
/// LLM-5a.
#[tokio::test]
async fn stream_cut_before_text_is_limited() {
    let mut runs = JoinSet::new();
    for wire in WIRES {
        let mut call = vec![Said::Reasoning("Hm.")];
        if wire != Wire::Ollama {
            // Calls of Ollama arrive in one piece.
            call = said_with_call("");
        }
        let reply = wire.reply(&call).end(End::Abort);
        runs.spawn(async move {
            let server = Server::start(vec![reply; 6]).await;
            let (response, events) = asked(wire, &server).await;
            let error = response.unwrap_err();
            assert_eq!(error.kind, LlmErrorKind::StreamCut, "{wire:?}: {error}");
            assert!(error.message.contains("gave up after 4"), "{error}");
            assert_eq!(server.requests().len(), 4, "{wire:?}");
            assert_eq!(notices(&events).len(), 3, "{wire:?}");
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}

/// A partial JSON document cannot be continued: with a schema the response starts over. Proves LLM-4.
#[tokio::test]
async fn stream_cut_under_a_schema_is_requested_again() {
    for wire in WIRES {
        let first = wire.reply(&[Said::Text("{\"n\":")]).end(End::Abort);
        let server = Server::start([first, wire.text_answer("{\"n\":1}")]).await;
        let schema = json!({"type": "object"});
        let provider = wire.provider(&server.url, RetryConfig::default());
        let (response, events) = ask(&*provider, &hi(), Some(&schema)).await;
        assert_eq!(response.unwrap().into_message().text(), "{\"n\":1}");
        assert!(notices(&events)[0].contains("starts again"), "{events:?}");
        let requests = server.requests();
        assert_eq!(requests[0].raw, requests[1].raw);
    }
}

/// A connection that breaks after the end of the response loses nothing. Proves LLM-4.
#[tokio::test]
async fn break_after_the_end_is_ignored() {
    for wire in WIRES {
        for end in [End::Eof, End::Abort] {
            let reply = wire.text_answer("all").end(end);
            let server = Server::start([reply]).await;
            let (response, events) = asked(wire, &server).await;
            assert_eq!(response.unwrap().into_message().text(), "all");
            assert_eq!(notices(&events).len(), 0, "{wire:?}");
        }
    }
}

/// An error inside a stream has the class of its content. Proves LLM-4, LLM-5, LLM-10.
#[tokio::test]
async fn error_inside_the_stream_is_classified() {
    for wire in WIRES {
        let begun = wire.events(&[Said::Reasoning("Hm.")])[0].clone();
        let error = |kind| wire.stream(begun.clone() + &wire.error_event(kind));
        let replies = [error(LlmErrorKind::Server), wire.text_answer("done")];
        let server = Server::start(replies).await;
        let (response, events) = asked(wire, &server).await;
        assert_eq!(response.unwrap().into_message().text(), "done", "{wire:?}");
        assert_eq!(notices(&events).len(), 1);
        let server = Server::start([error(LlmErrorKind::ContextOverflow)]).await;
        let error = asked(wire, &server).await.0.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::ContextOverflow, "{wire:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

/// Dropping the future closes the connection, so that the server stops.
#[tokio::test]
async fn dropping_the_future_cancels_the_request() {
    for wire in WIRES {
        let server = Server::start([wire.reply(&[Said::Text("Hel")]).end(End::Hang)]).await;
        let provider = wire.provider(&server.url, RetryConfig::default());
        let messages = hi();
        tokio::select! {
            _ = ask(&*provider, &messages, None) => panic!("the answer never ends"),
            () = server.answering() => {}
        }
        tokio::time::timeout(Duration::from_secs(10), server.closed_by_client())
            .await
            .expect("the connection is closed");
    }
}

/// A server that keeps the connection open after the end does not delay the response.
#[tokio::test]
async fn open_connection_after_the_end_causes_no_delay() {
    for wire in WIRES {
        let server = Server::start([wire.text_answer("all").end(End::Hang)]).await;
        let provider = wire.provider(&server.url, once());
        let messages = hi();
        let answer = provider.chat("", &messages);
        let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
        assert_eq!(answer.unwrap().unwrap(), "all", "{wire:?}");
    }
}

/// A long response with many characters in small pieces is complete. Proves LLM-10.
#[tokio::test]
async fn slow_trickle_of_many_characters_is_complete() {
    let text = "Zeph 🌬 weht über das Land. ".repeat(20);
    let characters: Vec<String> = text.chars().map(String::from).collect();
    for wire in WIRES {
        let mut said: Vec<_> = characters.iter().map(|c| Said::Text(c)).collect();
        said.push(Said::End(Stop::Done));
        let server = Server::start([wire.reply(&said).in_pieces(7)]).await;
        let (response, events) = asked(wire, &server).await;
        assert_eq!(response.unwrap().into_message().text(), text);
        assert_eq!(shown_text(&events), text);
    }
}

/// The first byte determines the type of a body, not its header. Proves LLM-3.
#[tokio::test]
async fn content_type_has_no_effect() {
    for wire in WIRES {
        let stream = wire.body(&[Said::Text("all"), Said::End(Stop::Done)]);
        for body in [stream, wire.document("all")] {
            for reply in [
                wire.stream(body.clone()),
                Reply::status(200, body.clone()),
                Reply::status(200, body.clone()).without_content_type(),
                Reply::status(200, body.clone())
                    .without_content_type()
                    .end(End::Eof),
                Reply::status(200, body.clone()).in_pieces(1),
            ] {
                let server = Server::start([reply]).await;
                let (response, events) = asked(wire, &server).await;
                assert_eq!(response.unwrap().into_message().text(), "all", "{wire:?}");
                assert_eq!(shown_text(&events), "all");
            }
        }
    }
}
