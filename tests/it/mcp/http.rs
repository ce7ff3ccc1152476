//! MCP servers over HTTP.

use serde_json::json;

use super::web::{Answer, Asked, Web, said};
use crate::rig::{Home, Output, assert_has};

const TOKEN: &str = "tok-5f1d7c9e2b3a4d6f";

/// A home with the server as `w` and its tool approved.
fn home(web: &Web, more: &str) -> Home {
    let home = Home::new();
    home.config(&format!(
        "[[mcp.servers]]\nname = \"w\"\nurl = {:?}\n{more}",
        web.url()
    ));
    home
}

fn call(home: &Home) -> Output {
    home.zeph(["--yes", "tools", "call", "mcp_w_echo", "{\"text\":\"hi\"}"])
        .env("WEB_TOKEN", TOKEN)
        .run()
}

fn approve(home: &Home) {
    home.zeph(["mcp", "approve", "w", "--yes"])
        .env("WEB_TOKEN", TOKEN)
        .code(0);
}

/// Proves MCP-1: a server over HTTP, with headers from environment variables that are never shown.
#[test]
fn http_server_receives_hidden_headers() {
    // The result contains the headers of the request.
    let web = Web::start(|asked: &Asked| {
        (asked.body["method"] == "tools/call").then(|| {
            let text = format!("{:?}", asked.headers);
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            said(
                200,
                &json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result }),
            )
        })
    });
    let home = home(
        &web,
        "headers = { Authorization = \"Bearer ${WEB_TOKEN}\", \"X-Mine\" = \"yes\" }\n",
    );
    approve(&home);
    let output = home
        .zeph([
            "--yes",
            "-vv",
            "tools",
            "call",
            "mcp_w_echo",
            "{\"text\":\"a\"}",
        ])
        .env("WEB_TOKEN", TOKEN)
        .run();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_has(&output.stdout, &["\"authorization\", \"Bearer [redacted:"]);
    assert!(!output.stderr.contains(TOKEN) && !output.stdout.contains(TOKEN));
    assert_eq!(web.calls(), 1);
    for asked in web.asked() {
        let header = |name: &str| {
            let found = asked.headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(
            header("authorization"),
            Some(format!("Bearer {TOKEN}").as_str())
        );
        assert_eq!(header("x-mine"), Some("yes"));
    }
}

/// Proves MCP-1: a response may be an event stream.
#[test]
fn responses_can_be_events() {
    let web = Web::start(|asked: &Asked| {
        (asked.body["method"] == "tools/call").then(|| {
            let result = json!({ "content": [{ "type": "text", "text": "by event" }] });
            let message = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result });
            let kind = ("content-type".to_owned(), "text/event-stream".to_owned());
            (
                200,
                vec![kind],
                format!("event: message\ndata: {message}\n\n"),
            )
        })
    });
    let home = home(&web, "");
    approve(&home);
    let output = call(&home);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "by event\n")
    );
}

/// Proves MCP-2, ERR-30: each HTTP status results in its error category.
#[test]
fn statuses_have_their_category() {
    let check = |status: u16, category: &str| {
        let web = Web::start(move |asked: &Asked| {
            let refused: Answer = (
                status,
                vec![("retry-after".to_owned(), "0".to_owned())],
                String::new(),
            );
            (asked.body["method"] == "tools/call").then_some(refused)
        });
        let home = home(&web, "call_timeout_secs = 5\n");
        home.more_config("[tools.retry]\nmax_attempts = 0\n");
        approve(&home);
        let output = call(&home);
        assert_ne!(output.code, Some(0));
        assert_has(&output.stdout, &[&format!("category: {category}")]);
        assert_eq!(web.calls(), 1, "{status}");
    };
    check(429, "rate_limited");
    check(503, "server_error");
    check(401, "policy_blocked");
}

/// Proves MCP-1: a redirect to another server is refused, and the headers are not sent there.
#[test]
fn redirects_to_elsewhere_are_refused() {
    let other = Web::start(|_| None);
    let target = other.url();
    let web = Web::start(move |_| {
        Some((
            307,
            vec![("location".to_owned(), target.clone())],
            String::new(),
        ))
    });
    let home = home(
        &web,
        "headers = { Authorization = \"Bearer ${WEB_TOKEN}\" }\n",
    );
    let listed = home.zeph(["mcp", "list"]).env("WEB_TOKEN", TOKEN).code(0);
    assert_has(
        &listed.stdout,
        &["w: failed: ", "redirects to another server"],
    );
    assert!(other.asked().is_empty());
    // A redirect to the same server is followed.
    let web = Web::start(|asked: &Asked| {
        let is_first = !asked.headers.iter().any(|(name, _)| name == "x-was-there");
        (is_first && asked.body["method"] == "never").then(|| said(200, &json!({})))
    });
    let home = self::home(&web, "");
    approve(&home);
    assert_eq!(call(&home).code, Some(0));
}

/// Proves MCP-1: a server that requires a login is reported, and not retried endlessly.
#[test]
fn missing_login_is_reported() {
    let web = Web::start(|_| {
        Some((
            401,
            vec![("www-authenticate".to_owned(), "Bearer".to_owned())],
            String::new(),
        ))
    });
    let home = home(&web, "");
    let listed = home.zeph(["mcp", "list"]).code(0).stdout;
    assert_has(
        &listed,
        &["w: failed: it requires a login: use `zeph mcp login w`, or set a header in"],
    );
    let unreachable = Home::new();
    unreachable.config(
        "[[mcp.servers]]\nname = \"w\"\nurl = \"http://127.0.0.1:1/mcp?key=secret-in-url\"\n",
    );
    let listed = unreachable.zeph(["mcp", "list"]).code(0).stdout;
    assert_has(&listed, &["w: failed: ", "refused"]);
    assert!(!listed.contains("secret-in-url"), "{listed}");
}

/// Proves MCP-2: a response that is larger than 16 MiB fails, and the next call works.
#[test]
fn response_that_is_too_large_is_refused() {
    let web = Web::start(|asked: &Asked| {
        let is_large = asked.body["params"]["arguments"]["text"] == "large";
        is_large.then(|| {
            let text = "x".repeat(17 << 20);
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            said(
                200,
                &json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result }),
            )
        })
    });
    let home = home(&web, "");
    approve(&home);
    let large = home
        .zeph([
            "--yes",
            "tools",
            "call",
            "mcp_w_echo",
            "{\"text\":\"large\"}",
        ])
        .run();
    assert_ne!(large.code, Some(0));
    assert!(large.stdout.len() < 10_000, "{}", large.stdout.len());
    assert_eq!(call(&home).stdout, "said: hi\n");
}
