//! `fetch` and `web_scrape` through the binary: refusals before any socket is opened.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::rig::{Home, assert_has, audit};
use crate::tools_call::call;

/// A listener that must receive no connection.
struct Trap(TcpListener);

impl Trap {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    #[track_caller]
    fn has_no_connection(&self) {
        let error = self.0.accept().expect_err("a client connected");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

fn refused(home: &Home, tool: &str, url: &str, expect: &str) {
    let mut params = json!({ "url": url });
    if tool == "web_scrape" {
        params["select"] = "p".into();
    }
    let form = call(home, tool, &params);
    assert_eq!(form["error_category"], "policy_blocked", "{url}: {form}");
    let message = form["error_message"].as_str().unwrap();
    assert!(message.contains(expect), "{url}: {message}");
}

/// Proves WEB-3, WEB-4, WEB-8, and WEB-9 for refused requests.
#[test]
fn non_public_url_is_refused_before_any_socket() {
    let home = Home::new();
    let trap = Trap::new();
    let port = trap.port();
    for tool in ["fetch", "web_scrape"] {
        for (url, expect) in [
            (
                format!("http://127.0.0.1:{port}/"),
                "only https:// is allowed",
            ),
            (
                format!("https://127.0.0.1:{port}/"),
                "127.0.0.1 is not an address",
            ),
            (
                format!("https://0x7f.1:{port}/"),
                "127.0.0.1 is not an address",
            ),
            (
                format!("https://①②⑦.1:{port}/"),
                "127.0.0.1 is not an address",
            ),
            (
                format!("https://[::ffff:7f00:1]:{port}/"),
                "is not an address",
            ),
            (format!("https://localhost:{port}/"), "local network"),
            (format!("https://a@example.org:{port}/"), "user name"),
        ] {
            refused(&home, tool, &url, expect);
        }
    }
    trap.has_no_connection();
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 14);
    assert!(entries.iter().all(|entry| entry.result == "blocked"));
    // The host is recorded, although no request was sent.
    for entry in &entries {
        let source = entry.claim_source.as_deref().unwrap_or_default();
        assert!(source.starts_with("web:"), "{entry:?}");
    }
    assert_eq!(entries[0].claim_source.as_deref(), Some("web:127.0.0.1"));
    assert_eq!(entries[6].claim_source.as_deref(), Some("web:example.org"));
}

/// Proves WEB-3, PERM-6: a URL that is refused in any case is refused before the question, with its source.
#[test]
fn refused_url_needs_no_question() {
    let home = Home::new();
    for (url, category) in [
        ("http://example.org/", "policy_blocked"),
        ("https://127.0.0.1/", "policy_blocked"),
        ("no url", "invalid_parameters"),
        ("https://example.org/", "confirmation_required"),
    ] {
        let params = json!({ "url": url }).to_string();
        let form = home
            .zeph(["tools", "call", "fetch", &params, "--json"])
            .run()
            .json();
        assert_eq!(form["error_category"], category, "{url}: {form}");
    }
    let entries = audit(&home.database());
    let sources = entries.iter().map(|entry| entry.claim_source.as_deref());
    let sources: Vec<Option<&str>> = sources.collect();
    let expect = [Some("web:example.org"), Some("web:127.0.0.1"), None, None];
    assert_eq!(sources, expect);
}

/// Proves WEB-5, WEB-8: no environment variable or setting weakens the rules.
#[test]
fn environment_and_configuration_permit_no_private_address() {
    let home = Home::new();
    let trap = Trap::new();
    home.config("[tools.scrape]\nallowed_domains = [\"127.0.0.1\", \"localhost\"]\n");
    let proxy = format!("http://127.0.0.1:{}", trap.port());
    let url = format!("https://127.0.0.1:{}/", trap.port());
    let params = json!({ "url": url }).to_string();
    let mut zeph = home.zeph(["tools", "call", "fetch", &params, "--json", "--yes"]);
    for name in [
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "HTTP_PROXY",
    ] {
        zeph = zeph.env(name, &proxy);
    }
    let form = zeph.run().json();
    assert_eq!(form["error_category"], "policy_blocked", "{form}");
    trap.has_no_connection();
}

/// Proves WEB-1, WEB-9: both tools are exposed, and the lists of domains are read.
#[test]
fn web_tools_are_exposed_and_configured() {
    let home = Home::new();
    let tools = home.zeph(["tools", "list", "--json"]).code(0).json();
    let named = |name: &str| {
        tools
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == name)
    };
    assert!(named("fetch") && named("web_scrape"), "{tools}");
    let catalog = home.zeph(["tools", "list", "--catalog"]).code(0).stdout;
    assert_has(&catalog, &["- fetch(", "- web_scrape("]);

    // Without `--yes` both need approval, so they do not run unattended.
    let params = json!({ "url": "https://example.org/" }).to_string();
    let form = home
        .zeph(["tools", "call", "fetch", &params, "--json"])
        .code(3)
        .json();
    assert_eq!(form["error_category"], "confirmation_required", "{form}");

    home.config(
        "[tools.scrape]\ndenied_domains = [\"example.org\"]\nallowed_domains = [\"org\"]\n",
    );
    refused(&home, "fetch", "https://www.example.org/", "denied_domains");
    refused(&home, "fetch", "https://example.net/", "allowed_domains");

    home.config("[tools.scrape]\ndenied_domains = [\"https://example.org\"]\n");
    let params = json!({ "url": "https://example.org/" }).to_string();
    let output = home
        .zeph(["tools", "call", "fetch", &params, "--yes"])
        .code(2);
    output.says(&["tools.scrape.denied_domains", "is not a domain"]);
}

/// Proves WEB-1.
#[test]
fn invalid_selector_is_an_argument_error() {
    let home = Home::new();
    let params = json!({ "url": "https://example.org/", "select": "p[" });
    let form = call(&home, "web_scrape", &params);
    assert_eq!(form["error_category"], "invalid_parameters", "{form}");
    assert_eq!(form["raw_response"], Value::Null);
    let message = form["error_message"].as_str().unwrap();
    assert_has(message, &["\"p[\" is no CSS selector"]);
}
