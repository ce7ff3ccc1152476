//! Requests: their connections, redirects, and time limits.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::rig::{Answer, LOOPBACK, PUBLIC, Server, answer, gzip, page, redirect};
use crate::audit::Intent;
use crate::cache::{ResultCacheConfig, ResultCaches};
use crate::category::ToolErrorCategory as Category;
use crate::retry::ToolRetryConfig;
use crate::stack::{self, StackParts};
use crate::web::address::AddressRule;
use crate::web::config::ScrapeConfig;
use crate::{
    AuditEntry, AuditError, AuditSink, AuditTrail, CallContext, Mode, NoEvents, Permissions,
    ToolCall, ToolError, ToolExecutor as _, ToolOutput, UserDecision as UserAnswer,
};

fn failure(result: Result<ToolOutput, ToolError>) -> (Category, String) {
    match result {
        Ok(output) => panic!("no failure: {}", output.summary),
        Err(error) => (error.category(), error.to_string()),
    }
}

/// Proves WEB-5, WEB-8.
#[tokio::test]
async fn a_name_with_one_refused_address_is_refused_before_any_connection() {
    let server = Server::start().await;
    server.on("/", page("secret"));
    let client = server.client(&ScrapeConfig::default(), AddressRule::Public);
    for addresses in [
        vec![LOOPBACK],
        vec![PUBLIC, LOOPBACK],
        vec![LOOPBACK, PUBLIC],
        vec![PUBLIC, "::1".parse().unwrap()],
        vec![PUBLIC, "::ffff:127.0.0.1".parse().unwrap()],
        vec![PUBLIC, "10.0.0.1".parse().unwrap()],
    ] {
        server.names.set("site.test.org", &[&addresses]);
        let url = server.url("/");
        let cx = CallContext::headless();
        let error = client.get(&url, &cx).await.unwrap_err();
        assert_eq!(error.category(), Category::PolicyBlocked, "{addresses:?}");
        let text = error.to_string();
        assert!(text.contains("site.test.org is refused: "), "{text}");
    }
    assert_eq!(server.connections(), 0);
}

/// Proves WEB-5: connections use exactly the checked addresses.
#[tokio::test]
async fn a_name_is_resolved_once_a_hop() {
    let server = Server::start().await;
    server.on("/", page("hello"));
    // A second lookup would return an address without a server.
    let nobody = "127.0.0.2".parse().unwrap();
    server.names.set("site.test.org", &[&[LOOPBACK], &[nobody]]);
    let output = server.fetch(&server.url("/")).await.unwrap();
    assert!(output.summary.contains("hello"), "{}", output.summary);
    assert_eq!(*server.names.asked.lock().unwrap(), ["site.test.org"]);
    let (category, text) = failure(server.fetch(&server.url("/")).await);
    assert_eq!(category, Category::PolicyBlocked, "{text}");
    assert!(text.contains("127.0.0.2"), "{text}");
    assert_eq!(server.connections(), 1);
}

/// Proves WEB-5: spellings of a name that a client would resolve again.
#[tokio::test]
async fn a_trailing_dot_and_capitals_are_pinned_too() {
    let server = Server::start().await;
    server.on("/", page("hello"));
    for host in ["site.test.org.", "SITE.Test.Org", "site。test．org"] {
        let url = format!("https://{host}:{}/", server.port);
        let output = server.fetch(&url).await.unwrap();
        assert!(output.summary.contains("hello"), "{}", output.summary);
    }
    assert!(
        server
            .names
            .asked
            .lock()
            .unwrap()
            .iter()
            .all(|name| name == "site.test.org")
    );
}

/// Proves WEB-6.
#[tokio::test]
async fn redirects_are_followed_three_times() {
    let server = Server::start().await;
    server.on("/1", redirect("2?x=y"));
    server.on("/2?x=y", redirect("/3"));
    let other = format!("//other.test.org:{}/4", server.port);
    server.on("/3", redirect(&other));
    server.on("/4", page("arrived"));
    let output = server.fetch(&server.url("/1")).await.unwrap();
    assert!(output.summary.contains("arrived"));
    let raw = output.raw_response.unwrap();
    assert_eq!(raw["url"], format!("https:{other}"));
    assert_eq!(raw["claim_source"], "web:other.test.org");
    let asked = server.names.asked.lock().unwrap().join(" ");
    assert_eq!(
        asked,
        "site.test.org site.test.org site.test.org other.test.org"
    );
    for head in server.requests.lock().unwrap().iter() {
        for header in ["\r\ncookie:", "\r\nreferer:", "\r\nauthorization:"] {
            assert!(!head.contains(header), "{head}");
        }
    }
    // Each hop has its own connection.
    assert_eq!(server.connections(), 4);

    server.on("/0", redirect("/1"));
    let (category, text) = failure(server.fetch(&server.url("/0")).await);
    assert_eq!(category, Category::PermanentFailure);
    assert!(text.contains("redirect 4, from "), "{text}");
    assert!(text.contains(&other), "{text}");
}

/// Proves WEB-6.
#[tokio::test]
async fn each_redirect_is_judged_as_the_first_url_is() {
    let server = Server::start().await;
    let trap = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let port = trap.local_addr().unwrap().port();
    let rebound = format!("https://inside.test.org:{port}/");
    server
        .names
        .set("inside.test.org", &[&["10.0.0.1".parse().unwrap()]]);
    for (location, expect) in [
        (format!("http://site.test.org:{port}/"), "only https://"),
        (format!("https://localhost:{port}/"), "localhost is a name"),
        (format!("//10.0.0.1:{port}/"), "10.0.0.1 is not an address"),
        (
            format!("https://0x0a.1:{port}/"),
            "10.0.0.1 is not an address",
        ),
        (format!("https://[::1]:{port}/"), "::1 is not an address"),
        (format!("https://u:p@other.test.org:{port}/"), "user name"),
        ("file:///etc/passwd".to_owned(), "only https://"),
        (rebound, "inside.test.org is refused: 10.0.0.1"),
    ] {
        server.on("/", redirect(&location));
        let (category, text) = failure(server.fetch(&server.url("/")).await);
        assert_eq!(category, Category::PolicyBlocked, "{location}: {text}");
        assert!(text.starts_with("redirect 1, to "), "{location}: {text}");
        assert!(text.contains(expect), "{location}: {text}");
        server.on("/before", redirect("/"));
        let (_, text) = failure(server.fetch(&server.url("/before")).await);
        assert!(text.starts_with("redirect 2, to "), "{location}: {text}");
    }
    server.on("/", redirect("https://[/"));
    let (category, text) = failure(server.fetch(&server.url("/")).await);
    assert_eq!(category, Category::PermanentFailure);
    assert!(text.contains("which is no URL"), "{text}");
    let knocked = tokio::time::timeout(Duration::from_millis(50), trap.accept()).await;
    assert!(knocked.is_err(), "a refused redirect was connected to");
}

/// A sink that stores the audit entries.
#[derive(Default)]
struct Trail(Mutex<Vec<AuditEntry>>);

#[async_trait]
impl AuditSink for Trail {
    async fn reserve(&self, _: Intent<'_>) -> Result<(), AuditError> {
        Ok(())
    }

    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        self.0.lock().unwrap().push(entry.clone());
        Ok(())
    }
}

/// Proves WEB-9: the audit entry names the host of the page, also for a failed request.
#[tokio::test]
async fn the_audit_entry_names_the_last_host() {
    let server = Server::start().await;
    let other = |path: &str| format!("https://Other.test.org:{}{path}", server.port);
    server.on("/page", page("<p>hello</p>"));
    server.on("/away", redirect(&other("/page")));
    server.on("/gone", redirect(&other("/missing")));
    server.on(
        "/picture",
        answer("200 OK", &[("content-type", "image/png")], "x"),
    );
    server.on("/forbidden", answer("403 Forbidden", &[], ""));
    server.on("/inside", redirect("https://10.0.0.1/"));
    server.on("/file", redirect("file:///etc/passwd"));
    let trail = Arc::new(Trail::default());
    let client = server.client(&ScrapeConfig::default(), AddressRule::PublicOrTestServer);
    let stack = stack::build(StackParts {
        watchers: Vec::new(),
        secrets: Arc::default(),
        retry: Default::default(),
        executors: vec![(
            "web",
            Arc::new(crate::web::WebScrapeExecutor::with_client(client)),
        )],
        audit: AuditTrail::new(vec![Arc::clone(&trail) as _], false),
        cache: None,
        overflow: None,
        permissions: Permissions::of(Mode::Full),
        ..StackParts::default()
    })
    .unwrap();
    let (site, else_where) = (Some("web:site.test.org"), Some("web:other.test.org"));
    let long = format!("https://{}.org/", "a".repeat(300));
    for (url, result, expect) in [
        (server.url("/page"), "success", site),
        (server.url("/away"), "success", else_where),
        (server.url("/gone"), "error", else_where),
        // A refusal by the server, not by a gate.
        (server.url("/forbidden"), "error", site),
        (server.url("/picture"), "error", site),
        (server.url("/inside"), "blocked", Some("web:10.0.0.1")),
        (server.url("/file"), "blocked", site),
        (
            "https://nobody.test.org./".to_owned(),
            "error",
            Some("web:nobody.test.org"),
        ),
        ("https://[::1]/".to_owned(), "blocked", Some("web:[::1]")),
        ("http://127.1/".to_owned(), "blocked", Some("web:127.0.0.1")),
        ("file:///etc/passwd".to_owned(), "blocked", None),
        ("no url".to_owned(), "error", None),
        (long, "blocked", None),
    ] {
        for tool in ["fetch", "web_scrape"] {
            let mut params = json!({ "url": url });
            if tool == "web_scrape" {
                params["select"] = "p".into();
            }
            let call = ToolCall::new("1", tool, params, "test");
            let _ = stack
                .execute_tool_call(&call, &CallContext::headless())
                .await;
            let entry = trail.0.lock().unwrap().pop().unwrap();
            let found = (entry.result.as_str(), entry.claim_source.as_deref());
            assert_eq!(found, (result, expect), "{tool} {url}");
        }
    }
}

/// Proves OUT-41: a page is requested once, unless its server forbids caching; the audit entry of each call names
/// its host. A change of local files has no effect on it.
#[tokio::test]
async fn a_page_is_answered_from_the_cache() {
    let server = Server::start().await;
    let html = ("content-type", "text/html");
    server.on("/page", page("<p>hello</p>"));
    let other = format!("https://other.test.org:{}/page", server.port);
    server.on("/away", redirect(&other));
    let fresh = [
        ("/never", "no-store"),
        ("/asked", "private, No-Cache"),
        ("/short", "max-age=0"),
    ];
    for (path, said) in fresh {
        let headers = [html, ("cache-control", said)];
        server.on(path, answer("200 OK", &headers, "<p>hello</p>"));
    }
    let trail = Arc::new(Trail::default());
    let client = server.client(&ScrapeConfig::default(), AddressRule::PublicOrTestServer);
    let caches = Arc::new(ResultCaches::new(&ResultCacheConfig::default(), None));
    let stack = stack::build(StackParts {
        watchers: Vec::new(),
        secrets: Arc::default(),
        retry: Default::default(),
        executors: vec![(
            "web",
            Arc::new(crate::web::WebScrapeExecutor::with_client(client)),
        )],
        audit: AuditTrail::new(vec![Arc::clone(&trail) as _], false),
        cache: Some(Arc::clone(&caches)),
        overflow: None,
        permissions: Permissions::of(Mode::Full),
        ..StackParts::default()
    })
    .unwrap();
    for (path, host, kept) in [
        ("/page", "site", true),
        ("/away", "other", true),
        ("/never", "site", false),
        ("/asked", "site", false),
        ("/short", "site", false),
        ("/missing", "site", false),
    ] {
        for tool in ["fetch", "web_scrape"] {
            let mut params = json!({ "url": server.url(path) });
            if tool == "web_scrape" {
                params["select"] = "p".into();
            }
            for again in [false, true] {
                let before = server.connections();
                let call = ToolCall::new("1", tool, params.clone(), "test");
                let cx = CallContext::headless();
                let _ = stack.execute_tool_call(&call, &cx).await;
                let entry = trail.0.lock().unwrap().pop().unwrap();
                let source = format!("web:{host}.test.org");
                assert_eq!(entry.claim_source, Some(source), "{tool} {path}");
                let cached = again && kept;
                assert_eq!(entry.cached, cached, "{tool} {path}");
                assert_eq!(server.connections() == before, cached, "{tool} {path}");
                drop(caches.changing());
            }
        }
    }
}

/// Proves WEB-9: a denied domain is also denied in a redirect.
#[tokio::test]
async fn a_redirect_to_a_denied_domain_is_refused() {
    let server = Server::start().await;
    server.on(
        "/",
        redirect(&format!("https://other.test.org:{}/", server.port)),
    );
    let config = ScrapeConfig {
        denied_domains: vec!["other.test.org".to_owned()],
        ..ScrapeConfig::default()
    };
    let url = json!({ "url": server.url("/") });
    let cx = CallContext::headless();
    let (category, text) = failure(server.call_with(&config, &cx, "fetch", url).await);
    assert_eq!(category, Category::PolicyBlocked);
    assert!(text.contains("denied_domains"), "{text}");
    assert_eq!(server.connections(), 1);
}

/// Proves WEB-7, ERR-10.
#[tokio::test]
async fn statuses_are_classified() {
    let server = Server::start().await;
    for (status, expect) in [
        ("400 Bad Request", Category::InvalidParameters),
        ("401 Unauthorized", Category::PolicyBlocked),
        ("403 Forbidden", Category::PolicyBlocked),
        ("404 Not Found", Category::PermanentFailure),
        ("410 Gone", Category::PermanentFailure),
        ("422 Unprocessable Content", Category::InvalidParameters),
        ("429 Too Many Requests", Category::RateLimited),
        ("500 Internal Server Error", Category::ServerError),
        ("503 Service Unavailable", Category::ServerError),
        ("304 Not Modified", Category::PermanentFailure),
        ("302 Found", Category::PermanentFailure),
    ] {
        server.on("/", answer(status, &[], ""));
        let (category, text) = failure(server.fetch(&server.url("/")).await);
        assert_eq!(category, expect, "{status}");
        assert!(text.contains(&status[..3]), "{text}");
    }
}

/// Proves ERR-20: the delay that a server requests is respected, also after a redirect.
#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let server = Server::start().await;
    let retry = |status, after| answer(status, &[("retry-after", after)], "");
    let limited = "429 Too Many Requests";
    let turns = vec![
        retry("503 Service Unavailable", "0"),
        retry(limited, "1"),
        page("<p>hello</p>"),
    ];
    server.on("/busy", Answer::Turns(turns));
    server.on("/away", redirect("/limited"));
    server.on("/limited", retry(limited, "Thu, 31 Dec 2099 23:59:59 GMT"));
    server.on("/forbidden", retry("403 Forbidden", "1"));
    let trail = Arc::new(Trail::default());
    let client = server.client(&ScrapeConfig::default(), AddressRule::PublicOrTestServer);
    let stack = stack::build(StackParts {
        watchers: Vec::new(),
        secrets: Arc::default(),
        retry: ToolRetryConfig {
            base_ms: 1,
            ..ToolRetryConfig::default()
        },
        executors: vec![(
            "web",
            Arc::new(crate::web::WebScrapeExecutor::with_client(client)),
        )],
        audit: AuditTrail::new(vec![Arc::clone(&trail) as _], false),
        cache: None,
        overflow: None,
        permissions: Permissions::of(Mode::Full),
        ..StackParts::default()
    })
    .unwrap();
    let fetch = async |path: &str| {
        let params = json!({ "url": server.url(path) });
        let call = ToolCall::new("1", "fetch", params, "test");
        let cx = CallContext::headless();
        let result = stack.execute_tool_call(&call, &cx).await;
        let attempts = trail.0.lock().unwrap().pop().unwrap().attempts;
        (result.map(Option::unwrap), attempts)
    };
    let start = Instant::now();
    let (result, attempts) = fetch("/busy").await;
    assert!(result.unwrap().summary.contains("hello"));
    assert_eq!(attempts, 3);
    assert!(start.elapsed() >= Duration::from_secs(1));

    let (result, attempts) = fetch("/away").await;
    let (category, text) = failure(result);
    assert_eq!((category, attempts), (Category::RateLimited, 1), "{text}");
    assert!(text.starts_with("redirect 1, to "), "{text}");
    assert!(text.contains("; try again in "), "{text}");

    let (category, text) = failure(fetch("/forbidden").await.0);
    assert_eq!(category, Category::PolicyBlocked);
    assert!(!text.contains("wait"), "{text}");
}

/// Proves WEB-7.
#[tokio::test]
async fn failures_of_the_network_are_classified() {
    let server = Server::start().await;
    let check = async |url: String, expect: Category, part: &str| {
        let (category, text) = failure(server.fetch(&url).await);
        assert_eq!(category, expect, "{url}: {text}");
        assert!(text.contains(part), "{url}: {text}");
    };
    let port = server.port;
    let network = Category::NetworkError;
    // A name that does not exist; a name without an address.
    check(
        format!("https://none.test.org:{port}/"),
        network,
        "none.test.org has no address",
    )
    .await;
    server.names.set("empty.test.org", &[&[]]);
    check(
        format!("https://empty.test.org:{port}/"),
        network,
        "empty.test.org has no address",
    )
    .await;
    // A certificate for other names.
    server.names.set("wrong.test.org", &[&[LOOPBACK]]);
    check(
        format!("https://wrong.test.org:{port}/"),
        network,
        "ertificate",
    )
    .await;
    // A port without a server.
    let closed = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let free = closed.local_addr().unwrap().port();
    drop(closed);
    check(format!("https://site.test.org:{free}/"), network, "").await;
    // A response that is not HTTP.
    server.on("/", Answer::Bytes(b"hello".to_vec()));
    check(server.url("/"), network, "").await;
    // A body that ends too early.
    let cut = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nabc";
    server.on("/", Answer::Bytes(cut.to_vec()));
    check(server.url("/"), network, "").await;
    // A body that does not match its header.
    let headers = [("content-encoding", "gzip"), ("content-type", "text/plain")];
    server.on("/", answer("200 OK", &headers, "no gzip"));
    check(server.url("/"), Category::PermanentFailure, "").await;
    server.on("/", answer("200 OK", &[("content-encoding", "br")], "x"));
    check(server.url("/"), Category::PermanentFailure, "\"br\"").await;
}

/// Proves WEB-7: a certificate without a known issuer is refused.
#[tokio::test]
async fn an_unknown_certificate_is_a_network_error() {
    let (known, unknown) = (Server::start().await, Server::start().await);
    let url = format!("https://site.test.org:{}/", unknown.port);
    let (category, text) = failure(known.fetch(&url).await);
    assert_eq!(category, Category::NetworkError);
    assert!(text.contains("ertificate"), "{text}");
}

/// Proves WEB-2, WEB-7.
#[tokio::test]
async fn time_is_counted_over_the_whole_request() {
    let server = Server::start().await;
    server.on("/silence", Answer::Silence);
    server.on("/trickle", Answer::Trickle);
    server.on("/redirect", redirect("/trickle"));
    let config = ScrapeConfig {
        timeout: 1,
        ..ScrapeConfig::default()
    };
    for path in ["/silence", "/trickle", "/redirect"] {
        let start = Instant::now();
        let url = json!({ "url": server.url(path) });
        let cx = CallContext::headless();
        let (category, text) = failure(server.call_with(&config, &cx, "fetch", url).await);
        assert_eq!(category, Category::Timeout, "{path}: {text}");
        assert!(text.contains("1s"), "{text}");
        assert!(start.elapsed() >= Duration::from_secs(1), "{path}");
        assert!(start.elapsed() < Duration::from_secs(10), "{path}");
    }
}

/// Proves EXE-13.
#[tokio::test]
async fn a_cancelled_request_ends_at_once() {
    let server = Server::start().await;
    server.on("/", Answer::Silence);
    let cancel = CancellationToken::new();
    let cx = CallContext::new(cancel.clone(), Arc::new(NoEvents), UserAnswer::Nobody);
    let config = ScrapeConfig::default();
    let request = server.call_with(&config, &cx, "fetch", json!({ "url": server.url("/") }));
    let stop = async {
        while server.requests.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        Instant::now()
    };
    let both = async { tokio::join!(request, stop) };
    let ended = tokio::time::timeout(Duration::from_secs(20), both).await;
    let (result, stopped) = ended.expect("the request arrives and ends");
    assert_eq!(failure(result).0, Category::Cancelled);
    assert!(stopped.elapsed() < Duration::from_secs(5));
}

/// Proves WEB-2.
#[tokio::test]
async fn a_body_is_cut_where_its_limit_is_after_decompression() {
    let server = Server::start().await;
    let config = ScrapeConfig {
        max_body_bytes: 10_000,
        ..ScrapeConfig::default()
    };
    let plain = [("content-type", "text/plain")];
    let zipped = [("content-type", "text/plain"), ("content-encoding", "gzip")];
    // 64 MiB, compressed to about 64 KiB.
    let bomb = gzip(&vec![b'a'; 64 << 20]);
    assert!(bomb.len() < 100_000);
    let check = async |answer: Answer, length: usize, cut: bool| {
        server.on("/", answer);
        let cx = CallContext::headless();
        let url = json!({ "url": server.url("/") });
        let output = server.call_with(&config, &cx, "fetch", url).await.unwrap();
        let raw = output.raw_response.unwrap();
        assert_eq!(raw["text"].as_str().unwrap().len(), length);
        assert_eq!(raw["truncated"], cut);
        let said = output
            .summary
            .contains("the page is longer: only its first 10000 bytes were read");
        assert_eq!(said, cut, "{}", output.summary);
    };
    check(answer("200 OK", &plain, vec![b'a'; 9_999]), 9_999, false).await;
    check(answer("200 OK", &plain, vec![b'a'; 10_000]), 10_000, false).await;
    check(answer("200 OK", &plain, vec![b'a'; 10_001]), 10_000, true).await;
    check(
        answer("200 OK", &zipped, gzip(&[b'a'; 10_000])),
        10_000,
        false,
    )
    .await;
    check(answer("200 OK", &zipped, &bomb), 10_000, true).await;
}

/// Proves WEB-3: no socket is opened for a refused URL.
#[tokio::test]
async fn a_refused_url_is_not_connected_to() {
    let server = Server::start().await;
    for url in [
        format!("http://site.test.org:{}/", server.port),
        format!("https://localhost:{}/", server.port),
        format!("https://[::ffff:10.0.0.1]:{}/", server.port),
        format!("https://user@site.test.org:{}/", server.port),
    ] {
        let (category, _) = failure(server.fetch(&url).await);
        assert_eq!(category, Category::PolicyBlocked, "{url}");
    }
    let (category, text) = failure(server.fetch("site.test.org").await);
    assert_eq!(category, Category::InvalidParameters, "{text}");
    assert_eq!(server.connections(), 0);
    assert!(server.names.asked.lock().unwrap().is_empty());
}

/// The part of the next test with proxies in the environment.
#[tokio::test]
#[ignore = "no test: the part of `a_proxy_of_the_environment_is_not_used` with the proxy set"]
async fn a_request_with_a_proxy_in_the_environment() {
    let server = Server::start().await;
    server.on("/", page("straight"));
    let output = server.fetch(&server.url("/")).await.unwrap();
    assert!(output.summary.contains("straight"));
}

/// Proves WEB-5, WEB-8: proxies in the environment have no effect.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the environment is set on a process of its own"
)]
fn a_proxy_of_the_environment_is_not_used() {
    let proxy = std::net::TcpListener::bind((LOOPBACK, 0)).unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let name = "web::tests::requests::a_request_with_a_proxy_in_the_environment";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", name]);
    for variable in [
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "HTTP_PROXY",
    ] {
        command.env(variable, &address);
    }
    let output = command.env("NO_PROXY", "").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
    let error = proxy.accept().expect_err("the proxy was asked");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}
