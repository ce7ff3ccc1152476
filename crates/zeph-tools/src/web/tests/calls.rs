//! Calls of the web tools: audit entries, the cache, retries, categories and cancellation.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::server::{Answer, Server, answer, page, redirect};
use crate::audit::Intent;
use crate::cache::{ResultCacheConfig, ResultCaches};
use crate::category::ToolErrorCategory as Category;
use crate::retry::ToolRetryConfig;
use crate::stack::{self, StackParts};
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
async fn audit_entry_names_the_last_host() {
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
    let stack = stack::build(StackParts {
        watchers: Vec::new(),
        secrets: Arc::default(),
        retry: Default::default(),
        executors: vec![("web", Arc::new(server.tools(&ScrapeConfig::default())))],
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
async fn repeated_page_is_served_from_the_cache() {
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
    let caches = Arc::new(ResultCaches::new(&ResultCacheConfig::default(), None));
    let stack = stack::build(StackParts {
        watchers: Vec::new(),
        secrets: Arc::default(),
        retry: Default::default(),
        executors: vec![("web", Arc::new(server.tools(&ScrapeConfig::default())))],
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
async fn redirect_to_a_denied_domain_is_refused() {
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
async fn busy_server_is_retried_after_its_delay() {
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
    let stack = stack::build(StackParts {
        watchers: Vec::new(),
        secrets: Arc::default(),
        retry: ToolRetryConfig {
            base_ms: 1,
            ..ToolRetryConfig::default()
        },
        executors: vec![("web", Arc::new(server.tools(&ScrapeConfig::default())))],
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

/// Proves EXE-13.
#[tokio::test]
async fn cancelled_request_ends_immediately() {
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

/// Proves WEB-2: a cut is reported.
#[tokio::test]
async fn cut_body_is_noted() {
    let server = Server::start().await;
    let config = ScrapeConfig {
        max_body_bytes: 10_000,
        ..ScrapeConfig::default()
    };
    let check = async |length: usize, is_cut: bool| {
        let plain = [("content-type", "text/plain")];
        server.on("/", answer("200 OK", &plain, vec![b'a'; length]));
        let cx = CallContext::headless();
        let url = json!({ "url": server.url("/") });
        let output = server.call_with(&config, &cx, "fetch", url).await.unwrap();
        let raw = output.raw_response.unwrap();
        assert_eq!(raw["text"].as_str().unwrap().len(), 10_000);
        assert_eq!(raw["truncated"], is_cut);
        let note = "the page is longer: only its first 10000 bytes were read (`tools.scrape.max_body_bytes`)";
        let summary = output.summary;
        assert_eq!(summary.contains(note), is_cut, "{summary}");
    };
    check(10_000, false).await;
    check(10_001, true).await;
}

/// Proves WEB-3: no socket is opened for a refused URL.
#[tokio::test]
async fn refused_url_opens_no_connection() {
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
