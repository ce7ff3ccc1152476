//! OAuth logins, against an authorization server on loopback. The test takes the part of the browser.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use zeph_tools::audit::chain::hex_digest;

use super::web::{Answer, Asked, Web, said};
use crate::rig::{Home, Output, Running, assert_has};

/// The behaviour of the authorization server.
#[derive(Clone, Default)]
struct Behaviour {
    /// The seconds for which a token is valid.
    expires_in: u64,
    /// The resource that its metadata names, if it is not the server's own.
    resource: Option<String>,
    /// It takes client-metadata documents.
    documents: bool,
    /// The scope that calls need.
    scope: Option<String>,
    /// The address of its login page, if it is not its own.
    page: Option<String>,
}

/// The state of the authorization server.
#[derive(Default)]
struct State {
    challenge: String,
    tokens: usize,
    granted: String,
}

/// A server with a login.
struct Guarded {
    web: Web,
    state: Arc<Mutex<State>>,
}

impl Guarded {
    fn start(behaviour: Behaviour) -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let web = Web::start(move |asked| answer(asked, &behaviour, &mut shared.lock().unwrap()));
        Self { web, state }
    }

    fn issuer(&self) -> String {
        self.web.url().trim_end_matches("/mcp").to_owned()
    }

    /// The requests to a path.
    fn asked(&self, path: &str) -> Vec<Asked> {
        let all = self.web.asked();
        all.into_iter()
            .filter(|asked| asked.target == path)
            .collect()
    }
}

fn answer(asked: &Asked, behaviour: &Behaviour, state: &mut State) -> Option<Answer> {
    let base = format!("http://{}", asked.header("host")?);
    let path = asked.target.split('?').next()?;
    match path {
        "/mcp" => {
            let expect = format!("Bearer at-{}", state.tokens);
            if state.tokens == 0 || asked.header("authorization") != Some(&expect) {
                let challenge = format!(
                    "Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\""
                );
                return Some((
                    401,
                    vec![("www-authenticate".to_owned(), challenge)],
                    String::new(),
                ));
            }
            let is_call = asked.body["method"] == "tools/call";
            if let Some(scope) = behaviour.scope.as_ref().filter(|_| is_call)
                && !state.granted.split(' ').any(|granted| granted == scope)
            {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
                return Some((
                    403,
                    vec![("www-authenticate".to_owned(), challenge)],
                    String::new(),
                ));
            }
            None
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            let own = format!("{base}/mcp");
            let resource = behaviour.resource.clone().unwrap_or(own);
            let form = json!({ "resource": resource, "authorization_servers": [base] });
            Some(said(200, &form))
        }
        "/.well-known/oauth-authorization-server" => Some(said(
            200,
            &json!({
                "issuer": base,
                "authorization_endpoint": behaviour.page.clone().unwrap_or(format!("{base}/authorize")),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"],
                "scopes_supported": ["read", "write"],
                "authorization_response_iss_parameter_supported": true,
                "client_id_metadata_document_supported": behaviour.documents,
            }),
        )),
        "/register" => {
            let mut form = asked.body.clone();
            form["client_id"] = json!("registered-1");
            Some(said(201, &form))
        }
        "/token" => {
            let given = form(&asked.text);
            let is_valid = match given("grant_type").as_deref() {
                Some("authorization_code") => {
                    let digest = hex_digest(given("code_verifier")?.as_bytes());
                    let bytes: Vec<u8> = (0..digest.len())
                        .step_by(2)
                        .map(|at| u8::from_str_radix(&digest[at..at + 2], 16).unwrap())
                        .collect();
                    base64url(&bytes) == state.challenge
                        && given("code").as_deref() == Some("the-code")
                }
                Some("refresh_token") => {
                    given("refresh_token") == Some(format!("rt-{}", state.tokens))
                }
                _ => false,
            };
            if !is_valid || given("resource") != Some(format!("{base}/mcp")) {
                return Some(said(400, &json!({ "error": "invalid_grant" })));
            }
            state.tokens += 1;
            let n = state.tokens;
            Some(said(
                200,
                &json!({
                    "access_token": format!("at-{n}"),
                    "refresh_token": format!("rt-{n}"),
                    "token_type": "Bearer",
                    "expires_in": behaviour.expires_in,
                    "scope": state.granted,
                }),
            ))
        }
        _ => Some((404, Vec::new(), String::new())),
    }
}

/// Bytes in base64 for addresses, without padding.
fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |n: usize| u32::from(*chunk.get(n).unwrap_or(&0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..=chunk.len() {
            text.push(char::from(DIGITS[(group >> (18 - 6 * n)) as usize & 63]));
        }
    }
    text
}

/// The values of a form.
fn form(text: &str) -> impl Fn(&str) -> Option<String> + use<> {
    let pairs: Vec<(String, String)> = text
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect();
    move |key| {
        let found = pairs.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.clone())
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let hex = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap()
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// A value in the query of an address.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn home(guarded: &Guarded, more: &str) -> Home {
    let home = Home::new();
    home.config(&format!(
        "[[mcp.servers]]\nname = \"w\"\nurl = {:?}\n{more}",
        guarded.web.url()
    ));
    home
}

/// Starts a login, and returns the printed address.
fn login(home: &Home) -> (Running, String) {
    let mut running = home.zeph(["mcp", "login", "w", "--no-browser"]).start();
    let line = running.until_line("/authorize?");
    (running, line.trim().split_once('?').unwrap().1.to_owned())
}

/// Returns to the listener as a browser does, and yields the status line.
fn back(guarded: &Guarded, query: &str, change: impl Fn(&str, String) -> String) -> String {
    let given = form(query);
    let mut state = guarded.state.lock().unwrap();
    state.challenge = given("code_challenge").unwrap();
    state.granted = given("scope").unwrap_or_default();
    drop(state);
    assert_eq!(given("code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(given("resource"), Some(guarded.web.url()));
    let redirect = given("redirect_uri").unwrap();
    let address = redirect
        .trim_start_matches("http://")
        .trim_end_matches("/callback");
    let mut query = Vec::new();
    for (key, value) in [
        ("code", "the-code".to_owned()),
        ("state", given("state").unwrap()),
        ("iss", guarded.issuer()),
    ] {
        query.push(format!("{key}={}", encoded(&change(key, value))));
    }
    let mut stream = TcpStream::connect(address).unwrap();
    let query = query.join("&");
    write!(stream, "GET /callback?{query} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

fn same(_: &str, value: String) -> String {
    value
}

fn call(home: &Home) -> Output {
    home.zeph(["--yes", "tools", "call", "mcp_w_echo", "{\"text\":\"hi\"}"])
        .run()
}

/// Proves MCP-1c: discovery, registration, PKCE, and a file of mode 0600; the token is used until the logout.
#[test]
fn login_lasts_until_the_logout() {
    let guarded = Guarded::start(Behaviour {
        expires_in: 3600,
        ..Behaviour::default()
    });
    let home = home(&guarded, "");
    let before = home.zeph(["mcp", "test", "w"]).code(1);
    assert_has(
        &before.stdout,
        &["it requires a login: use `zeph mcp login w`"],
    );
    let (running, url) = login(&home);
    // Another login's return changes nothing.
    let odd = |key: &str, value: String| {
        if key == "state" {
            "other".to_owned()
        } else {
            value
        }
    };
    assert_has(&back(&guarded, &url, odd), &["400"]);
    assert_has(&back(&guarded, &url, same), &["200"]);
    let output = running.wait().code(0);
    assert_has(&output.stdout, &["logged in at the MCP server w"]);
    assert_eq!(guarded.asked("/register").len(), 1);
    let files: Vec<_> = std::fs::read_dir(home.data().join("zeph/mcp-tokens"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "json"))
        .collect();
    assert_eq!(files.len(), 1);
    assert_eq!(
        files[0].metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let record = std::fs::read_to_string(files[0].path()).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["credentials"]["issuer"], guarded.issuer());
    home.zeph(["mcp", "approve", "w", "--yes"]).code(0);
    let output = call(&home);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "said: hi\n")
    );
    home.zeph(["mcp", "logout", "w"]).code(0);
    let after = home.zeph(["mcp", "test", "w"]).code(1);
    assert_has(&after.stdout, &["it requires a login"]);
    assert_has(
        &home.zeph(["mcp", "logout", "w"]).code(0).stdout,
        &["there was no login"],
    );
}

/// Proves MCP-1c: an address that is not one of the web is neither printed nor opened in the browser.
#[test]
fn login_page_that_is_not_of_the_web_is_refused() {
    let guarded = Guarded::start(Behaviour {
        page: Some("file:///etc/passwd".to_owned()),
        ..Behaviour::default()
    });
    let home = home(&guarded, "");
    home.write("browser", "#!/bin/sh\n: > opened\n");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path("browser"), mode).unwrap();
    let browser = home.path("browser").display().to_string();
    let output = home
        .zeph(["mcp", "login", "w"])
        .env("BROWSER", &browser)
        .code(1);
    assert_has(&output.stderr, &["an address that is not http or https"]);
    assert!(!output.stdout.contains("/etc/passwd"), "{}", output.stdout);
    assert!(!home.has("opened"));
}

/// Proves MCP-1c: a return of another issuer, and metadata of another resource, end the login without a token.
#[test]
fn login_of_another_issuer_or_resource_is_refused() {
    let guarded = Guarded::start(Behaviour {
        expires_in: 3600,
        ..Behaviour::default()
    });
    let first = home(&guarded, "");
    let (running, url) = login(&first);
    let odd = |key: &str, value: String| match key {
        "iss" => "https://elsewhere.example".to_owned(),
        _ => value,
    };
    assert_has(&back(&guarded, &url, odd), &["400"]);
    let output = running.wait().code(1);
    assert_has(&output.stderr, &["the login failed", "issuer mismatch"]);
    assert!(guarded.asked("/token").is_empty());
    let guarded = Guarded::start(Behaviour {
        resource: Some("https://elsewhere.example/mcp".to_owned()),
        ..Behaviour::default()
    });
    let output = home(&guarded, "")
        .zeph(["mcp", "login", "w", "--no-browser"])
        .code(1);
    assert_has(&output.stderr, &["cannot begin", "elsewhere.example"]);
}

/// Proves MCP-1c: a token that is over is refreshed, once for all requests.
#[test]
fn token_is_refreshed() {
    let guarded = Guarded::start(Behaviour {
        expires_in: 0,
        ..Behaviour::default()
    });
    let home = home(&guarded, "");
    let (running, url) = login(&home);
    back(&guarded, &url, same);
    running.wait().code(0);
    home.zeph(["mcp", "approve", "w", "--yes"]).code(0);
    assert_eq!(call(&home).stdout, "said: hi\n");
    let refreshed = guarded.asked("/token");
    assert!(refreshed.len() > 1);
    assert!(
        refreshed[1..]
            .iter()
            .all(|asked| asked.text.contains("grant_type=refresh_token"))
    );
}

/// Proves MCP-1c: after a 403 for lack of scope, the next login requests that scope too.
#[test]
fn more_scope_is_requested_after_a_refusal() {
    let guarded = Guarded::start(Behaviour {
        expires_in: 3600,
        scope: Some("admin".to_owned()),
        ..Behaviour::default()
    });
    let home = home(&guarded, "oauth = { scopes = [\"read\"] }\n");
    let (running, url) = login(&home);
    assert_eq!(form(&url)("scope").as_deref(), Some("read"));
    back(&guarded, &url, same);
    running.wait().code(0);
    home.zeph(["mcp", "approve", "w", "--yes"]).code(0);
    let refused = call(&home);
    assert_has(
        &refused.stdout,
        &["it needs the scope admin: `zeph mcp login w` requests it"],
    );
    // A session that runs uses the new login without a restart.
    let script = home.zeph(["--yes", "tools", "run"]).open_stdin("");
    let mut script = script.start();
    let mut in_session = || {
        script.say(&json!({ "tool": "mcp_w_echo", "params": { "text": "hi" } }).to_string());
        let form: Value = serde_json::from_str(&script.next_line().unwrap()).unwrap();
        form["data"].as_str().unwrap().to_owned()
    };
    assert_has(&in_session(), &["`zeph mcp login w` requests it"]);
    let (running, url) = login(&home);
    assert_eq!(form(&url)("scope").as_deref(), Some("admin read"));
    back(&guarded, &url, same);
    running.wait().code(0);
    assert_eq!(in_session(), "said: hi");
    script.close_stdin();
    script.wait().code(0);
    assert_eq!(call(&home).stdout, "said: hi\n");
}

/// Proves MCP-1c: a client-metadata document, or a client that is registered already, replaces the registration.
#[test]
fn client_is_identified_by_a_document_or_an_id() {
    let document = "https://zeph.example/client.json";
    for (more, id) in [
        (
            format!("oauth = {{ client_metadata_url = {document:?} }}\n"),
            document,
        ),
        (
            "oauth = { client_id = \"known-7\" }\n".to_owned(),
            "known-7",
        ),
    ] {
        let guarded = Guarded::start(Behaviour {
            expires_in: 3600,
            documents: true,
            ..Behaviour::default()
        });
        let home = home(&guarded, &more);
        let (running, url) = login(&home);
        assert_eq!(form(&url)("client_id").as_deref(), Some(id));
        back(&guarded, &url, same);
        running.wait().code(0);
        assert!(guarded.asked("/register").is_empty());
    }
}

/// Proves MCP-1c: a server without a login is reported.
#[test]
fn server_without_a_login_is_reported() {
    let home = Home::new();
    home.config("[[mcp.servers]]\nname = \"p\"\ncommand = \"x\"\n");
    let output = home.zeph(["mcp", "login", "p"]).code(1);
    assert_has(
        &output.stderr,
        &["p is a program; only a server with a `url` has a login"],
    );
}
