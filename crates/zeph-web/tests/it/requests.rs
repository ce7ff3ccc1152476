//! Requests: their connections, redirects, and time limits.

use std::io::Write as _;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use zeph_web::testing::AddressRule;
use zeph_web::{HopRules, HttpPage, RequestErrorKind, Url, UrlRefusal, WebConfig, WebError};

use super::server::{Answer, LOOPBACK, PUBLIC, Server, answer, page, redirect};

impl Server {
    async fn fetch_with(&self, config: &WebConfig, url: &str) -> Result<HttpPage, WebError> {
        let client = self.client(config, AddressRule::PublicOrTestServer);
        client.get(url).await
    }

    async fn fetch(&self, url: &str) -> Result<HttpPage, WebError> {
        self.fetch_with(&WebConfig::default(), url).await
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Whether a rule refuses the URL of the request or of a redirect.
fn is_refusal(error: &WebError) -> bool {
    match error {
        WebError::Refused(refusal) => !matches!(refusal, UrlRefusal::Invalid { .. }),
        WebError::RefusedName { .. } => true,
        WebError::Redirect { error, .. } => is_refusal(error),
        _ => false,
    }
}

/// Proves WEB-5, WEB-8.
#[tokio::test]
async fn name_with_one_refused_address_is_refused_before_any_connection() {
    let server = Server::start().await;
    server.on("/", page("secret"));
    let client = server.client(&WebConfig::default(), AddressRule::Public);
    for addresses in [
        vec![LOOPBACK],
        vec![PUBLIC, LOOPBACK],
        vec![LOOPBACK, PUBLIC],
        vec![PUBLIC, "::1".parse().unwrap()],
        vec![PUBLIC, "::ffff:127.0.0.1".parse().unwrap()],
        vec![PUBLIC, "10.0.0.1".parse().unwrap()],
    ] {
        server.names.set("site.test.org", &[&addresses]);
        let error = client.get(&server.url("/")).await.unwrap_err();
        assert!(is_refusal(&error), "{addresses:?}");
        let text = error.to_string();
        assert!(text.contains("site.test.org is refused: "), "{text}");
    }
    assert_eq!(server.connections(), 0);
}

/// Proves WEB-5: connections use exactly the checked addresses.
#[tokio::test]
async fn name_is_resolved_once_per_hop() {
    let server = Server::start().await;
    server.on("/", page("hello"));
    // A second lookup would return an address without a server.
    let nobody = "127.0.0.2".parse().unwrap();
    server.names.set("site.test.org", &[&[LOOPBACK], &[nobody]]);
    let page = server.fetch(&server.url("/")).await.unwrap();
    assert_eq!(page.text(), "hello");
    assert_eq!(*server.names.asked.lock().unwrap(), ["site.test.org"]);
    let error = server.fetch(&server.url("/")).await.unwrap_err();
    assert!(is_refusal(&error), "{error}");
    assert!(error.to_string().contains("127.0.0.2"), "{error}");
    assert_eq!(server.connections(), 1);
}

/// Proves WEB-5: spellings of a name that a client would resolve again.
#[tokio::test]
async fn trailing_dot_and_capitals_are_pinned() {
    let server = Server::start().await;
    server.on("/", page("hello"));
    for host in ["site.test.org.", "SITE.Test.Org", "site。test．org"] {
        let url = format!("https://{host}:{}/", server.port);
        assert_eq!(server.fetch(&url).await.unwrap().text(), "hello");
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
    let page = server.fetch(&server.url("/1")).await.unwrap();
    assert_eq!(page.text(), "arrived");
    assert_eq!(page.url.as_str(), format!("https:{other}"));
    assert_eq!(page.host(), "other.test.org");
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
    let error = server.fetch(&server.url("/0")).await.unwrap_err();
    let WebError::TooManyRedirects { number, to, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((number, to), (4, format!("https:{other}")));
}

/// Proves WEB-6.
#[tokio::test]
async fn each_redirect_is_judged_like_the_first_url() {
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
        let error = server.fetch(&server.url("/")).await.unwrap_err();
        let text = error.to_string();
        assert!(is_refusal(&error), "{location}: {text}");
        assert!(text.starts_with("redirect 1, to "), "{location}: {text}");
        assert!(text.contains(expect), "{location}: {text}");
        server.on("/before", redirect("/"));
        let error = server.fetch(&server.url("/before")).await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("redirect 2, to "), "{location}: {text}");
    }
    server.on("/", redirect("https://[/"));
    let error = server.fetch(&server.url("/")).await.unwrap_err();
    assert!(matches!(error, WebError::InvalidRedirect { .. }), "{error}");
    let knocked = tokio::time::timeout(Duration::from_millis(50), trap.accept()).await;
    assert!(knocked.is_err(), "a refused redirect was connected to");
}

/// The rules of a test: they record visited URLs and refuse one path.
#[derive(Default)]
struct Visits(std::sync::Mutex<Vec<String>>);

impl HopRules for Visits {
    fn visit(&self, url: &Url) {
        self.0.lock().unwrap().push(url.path().to_owned());
    }

    fn check_redirect(&self, url: &Url) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match url.path() {
            "/forbidden" => Err("not this one".into()),
            _ => Ok(()),
        }
    }
}

/// Proves WEB-6: rules of the caller see each hop, and refuse a redirect before its request.
#[tokio::test]
async fn rules_of_the_caller_refuse_a_redirect() {
    let server = Server::start().await;
    server.on("/1", redirect("/2"));
    server.on("/2", redirect("/forbidden"));
    let client = server.client(&WebConfig::default(), AddressRule::PublicOrTestServer);
    let visits = Visits::default();
    let error = client
        .get_with(&server.url("/1"), &visits)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("redirect 2, to https://site."), "{text}");
    assert!(text.ends_with("/forbidden: not this one"), "{text}");
    let visited = visits.0.lock().unwrap().join(" ");
    assert_eq!(visited, "/1 /1 /2 /2 /forbidden");
    assert_eq!(server.connections(), 2);
}

/// Proves WEB-7.
#[tokio::test]
async fn statuses_other_than_success_are_errors() {
    let server = Server::start().await;
    let check = async |status: &str, wait: Option<&str>| {
        let headers: Vec<_> = wait.map(|wait| ("retry-after", wait)).into_iter().collect();
        server.on("/", answer(status, &headers, ""));
        let error = server.fetch(&server.url("/")).await.unwrap_err();
        let WebError::Status {
            status: found,
            retry_after,
            ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!(found.to_string(), status);
        assert_eq!(retry_after.as_deref(), wait);
    };
    check("404 Not Found", None).await;
    check("503 Service Unavailable", Some("120")).await;
    // Without a target.
    check("302 Found", None).await;
}

/// Proves WEB-7.
#[tokio::test]
async fn failures_of_the_network_are_classified() {
    let server = Server::start().await;
    let check = async |url: String, expect: RequestErrorKind, part: &str| {
        let error = server.fetch(&url).await.unwrap_err();
        let WebError::Request {
            kind, ref cause, ..
        } = error
        else {
            panic!("{url}: {error}")
        };
        assert_eq!(kind, expect, "{url}: {error}");
        assert!(cause.contains(part), "{url}: {error}");
    };
    let port = server.port;
    let network = RequestErrorKind::Network;
    // A name that does not exist; a name without an address.
    server.names.set("empty.test.org", &[&[]]);
    for (name, expect) in [
        ("none.test.org", Some("name does not exist")),
        ("empty.test.org", None),
    ] {
        let error = server.fetch(&format!("https://{name}:{port}/")).await;
        let WebError::NoAddress { reason, .. } = error.unwrap_err() else {
            panic!("{name}")
        };
        assert_eq!(reason.as_deref(), expect, "{name}");
    }
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
    check(server.url("/"), RequestErrorKind::Invalid, "").await;
    server.on("/", answer("200 OK", &[("content-encoding", "br")], "x"));
    let error = server.fetch(&server.url("/")).await.unwrap_err();
    assert!(
        matches!(&error, WebError::Coding { coding, .. } if coding == "br"),
        "{error}"
    );
}

/// Proves WEB-7: a certificate without a known issuer is refused.
#[tokio::test]
async fn unknown_certificate_is_a_network_error() {
    let (known, unknown) = (Server::start().await, Server::start().await);
    let url = format!("https://site.test.org:{}/", unknown.port);
    let error = known.fetch(&url).await.unwrap_err();
    assert!(error.to_string().contains("ertificate"), "{error}");
}

/// Proves WEB-2, WEB-7.
#[tokio::test]
async fn time_limit_covers_the_whole_request() {
    let server = Server::start().await;
    server.on("/silence", Answer::Silence);
    server.on("/trickle", Answer::Trickle);
    server.on("/redirect", redirect("/trickle"));
    let config = WebConfig {
        timeout: Duration::from_secs(1),
        ..WebConfig::default()
    };
    for path in ["/silence", "/trickle", "/redirect"] {
        let start = Instant::now();
        let error = server.fetch_with(&config, &server.url(path)).await;
        let error = error.unwrap_err();
        assert!(matches!(error, WebError::Timeout { .. }), "{path}: {error}");
        assert!(
            error.to_string().ends_with("took longer than 1s"),
            "{error}"
        );
        assert!(start.elapsed() >= Duration::from_secs(1), "{path}");
        assert!(start.elapsed() < Duration::from_secs(10), "{path}");
    }
}

/// Proves WEB-2.
#[tokio::test]
async fn body_is_truncated_at_its_limit_after_decompression() {
    let server = Server::start().await;
    let config = WebConfig {
        max_body_bytes: 10_000,
        ..WebConfig::default()
    };
    let plain = [("content-type", "text/plain")];
    let zipped = [("content-type", "text/plain"), ("content-encoding", "gzip")];
    // 64 MiB, compressed to about 64 KiB.
    let bomb = gzip(&vec![b'a'; 64 << 20]);
    assert!(bomb.len() < 100_000);
    let check = async |answer: Answer, length: usize, cut: bool| {
        server.on("/", answer);
        let page = server.fetch_with(&config, &server.url("/")).await.unwrap();
        assert_eq!((page.body.len(), page.is_cut), (length, cut));
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
async fn refused_url_opens_no_connection() {
    let server = Server::start().await;
    for url in [
        format!("http://site.test.org:{}/", server.port),
        format!("https://localhost:{}/", server.port),
        format!("https://[::ffff:10.0.0.1]:{}/", server.port),
        format!("https://user@site.test.org:{}/", server.port),
    ] {
        let error = server.fetch(&url).await.unwrap_err();
        assert!(is_refusal(&error), "{url}: {error}");
    }
    let error = server.fetch("site.test.org").await.unwrap_err();
    assert!(
        matches!(error, WebError::Refused(UrlRefusal::Invalid { .. })),
        "{error}"
    );
    assert_eq!(server.connections(), 0);
    assert!(server.names.asked.lock().unwrap().is_empty());
}

/// The part of the next test with proxies in the environment.
#[tokio::test]
#[ignore = "no test: the part of `proxy_of_the_environment_is_not_used` with the proxy set"]
async fn request_with_a_proxy_in_the_environment() {
    let server = Server::start().await;
    server.on("/", page("straight"));
    let page = server.fetch(&server.url("/")).await.unwrap();
    assert_eq!(page.text(), "straight");
}

/// Proves WEB-5, WEB-8: proxies in the environment have no effect.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the environment is set on a process of its own"
)]
fn proxy_of_the_environment_is_not_used() {
    let proxy = std::net::TcpListener::bind((LOOPBACK, 0)).unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let name = "requests::request_with_a_proxy_in_the_environment";
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
