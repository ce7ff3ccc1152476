//! The server over streamable HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::rig::{CALLER, Home, Running, assert_has, audit, text_of, wait_for};

/// The time limit of a response.
const LIMIT: Duration = Duration::from_secs(20);

/// A running server.
struct Server {
    running: Running,
    address: String,
}

/// A response: its status, its headers in lower case, and its messages.
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    /// The value of a header.
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The messages of a body that is JSON or a stream of events.
    fn messages(&self) -> Vec<Value> {
        let lines = self
            .body
            .lines()
            .map(|line| line.strip_prefix("data:").unwrap_or(line));
        lines
            .filter_map(|line| serde_json::from_str(line.trim()).ok())
            .collect()
    }

    #[track_caller]
    fn result(&self) -> Value {
        let found = self
            .messages()
            .into_iter()
            .find(|it| it.get("result").is_some());
        found.unwrap_or_else(|| panic!("{} {}\n{}", self.status, self.head, self.body))["result"]
            .clone()
    }
}

impl Server {
    fn start(home: &Home, args: &[&str]) -> Self {
        let run = home
            .zeph(["mcp", "serve", "--http", "127.0.0.1:0"])
            .args(args);
        let mut running = run.start();
        let url = running.next_line().expect("the server prints its address");
        let address = url.trim().strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        Self { running, address }
    }

    fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }

    /// Sends a request, and reads the response to its end, or up to the first result.
    #[track_caller]
    fn send(&self, head: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let has_host = headers.iter().any(|(name, _)| *name == "Host");
        let mut text = format!(
            "{head} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if !has_host {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        // A server that refuses the head may close the connection before it reads the body.
        let _ = write!(stream, "{text}\r\n{body}");
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut body = String::new();
        reader.read_to_string(&mut body).unwrap_or_default();
        Response {
            status: status.unwrap_or_else(|| panic!("no status: {head:?}")),
            head: head.to_lowercase().replace("\r\n", "\n"),
            body,
        }
    }

    #[track_caller]
    fn post(&self, headers: &[(&str, &str)], message: &Value) -> Response {
        let common = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let headers: Vec<_> = common.iter().chain(headers).copied().collect();
        self.send("POST /mcp", &headers, &message.to_string())
    }

    /// Performs the handshake, and returns the id of the session.
    #[track_caller]
    fn open(&self) -> String {
        let response = self.post(&[], &initialize());
        assert_eq!(response.status, 200, "{}", response.body);
        let session = response.header("mcp-session-id").unwrap().to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let accepted = self.post(&[("Mcp-Session-Id", &session)], &ready);
        assert_eq!(accepted.status, 202, "{}", accepted.body);
        session
    }

    fn stop(self) {
        self.running.signal(Signal::TERM);
        self.running.wait().code(0);
    }
}

fn initialize() -> Value {
    let (name, version) = CALLER.split_once('/').unwrap();
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": name, "version": version } } })
}

fn call(id: i64, tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

/// Proves MCP-10: a session over HTTP has the same tools and gates.
#[test]
fn gates_apply_to_a_session_over_http() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    let server = Server::start(&home, &[]);
    let session = server.open();
    let session = [("Mcp-Session-Id", session.as_str())];
    let read = server.post(&session, &call(2, "read", json!({ "path": "a.txt" })));
    assert!(text_of(&read.result()).contains("hello"));
    let denied = server.post(
        &session,
        &call(3, "bash", json!({ "command": "touch ran" })),
    );
    assert_has(text_of(&denied.result()), &["confirmation_required"]);
    let unknown = server.post(
        &[("Mcp-Session-Id", "no-such-session")],
        &call(4, "read", json!({})),
    );
    assert_eq!(unknown.status, 404);
    server.stop();
    assert!(!home.has("ran"));
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 2);
    assert!(
        entries
            .iter()
            .all(|entry| entry.caller_id.as_deref() == Some(CALLER))
    );
}

/// Proves MCP-10: revision 2026-07-28 has no sessions. The question of a call and the decision are two requests.
#[test]
fn requests_without_a_session_are_served() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let (name, version) = CALLER.split_once('/').unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": name, "version": version },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "bash"),
    ];
    let mut touch = call(1, "bash", json!({ "command": "touch ran" }));
    touch["params"]["_meta"] = meta;
    let asked = server.post(&headers, &touch);
    assert_eq!(asked.status, 200, "{}", asked.body);
    let asked = asked.result();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert!(!home.has("ran"));
    touch["id"] = json!(2);
    touch["params"]["requestState"] = asked["requestState"].clone();
    touch["params"]["inputResponses"] =
        json!({ "confirm": { "action": "accept", "content": { "decision": "once" } } });
    let done = server.post(&headers, &touch).result();
    assert_eq!(done["isError"], false, "{done}");
    assert!(home.has("ran"));
    server.stop();
}

/// Proves MCP-10: many clients without a session do not block a further one.
#[test]
fn many_clients_without_a_session_block_no_other() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "list_directory"),
    ];
    for n in 0..70 {
        let mut list = call(n, "list_directory", json!({ "path": "." }));
        list["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": format!("client-{n}"), "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let done = server.post(&headers, &list).result();
        assert_eq!(done["isError"], false, "{n}: {done}");
    }
    server.stop();
}

/// Proves MCP-10: the end of the connection ends a call of a client without a session.
#[test]
fn closed_connection_ends_the_call() {
    let home = Home::new();
    let server = Server::start(&home, &["--yes"]);
    let mut long = call(1, "bash", json!({ "command": "touch started; sleep 60" }));
    long["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = long.to_string();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: bash\r\nContent-Length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    write!(stream, "{head}{body}").unwrap();
    wait_for("the command", || home.has("started").then_some(()));
    drop(stream);
    let entry = wait_for("the audit entry", || audit(&home.database()).pop());
    assert_eq!(
        entry.error_category.as_deref(),
        Some("cancelled"),
        "{entry:?}"
    );
    assert_eq!(entry.caller_id.as_deref(), Some("unknown"));
    server.stop();
    home.wait_until_alone();
}

/// Proves MCP-10: a request with a foreign `Host` or `Origin` reaches nothing, so no web page does.
#[test]
fn foreign_host_and_origin_are_refused() {
    let home = Home::new();
    let server = Server::start(&home, &["--yes"]);
    let session = server.open();
    let session = ("Mcp-Session-Id", session.as_str());
    let touch = call(2, "bash", json!({ "command": "touch ran" }));
    let other_port = "127.0.0.1:1";
    let refused: [(&str, &str); 7] = [
        ("Host", "evil.example"),
        ("Host", "evil.example:80"),
        ("Host", other_port),
        ("Origin", "http://evil.example"),
        ("Origin", "https://evil.example:443"),
        ("Origin", "http://localhost:1"),
        ("Origin", "null"),
    ];
    for header in refused {
        let response = server.post(&[session, header], &touch);
        assert_eq!(response.status, 403, "{header:?}: {}", response.body);
    }
    assert!(!home.has("ran"));
    let own = format!("http://localhost:{}", server.port());
    let response = server.post(&[session, ("Origin", &own)], &touch);
    assert_eq!(response.result()["isError"], false);
    assert!(home.has("ran"));
    server.stop();
}

/// Proves MCP-10: bad requests over HTTP get an error, and the server continues.
#[test]
fn bad_request_over_http_gets_an_error() {
    let home = Home::new();
    let server = Server::start(&home, &["--yes"]);
    let json = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    assert_eq!(server.send("GET /", &[], "").status, 404);
    assert_eq!(
        server
            .send("POST /", &json, &initialize().to_string())
            .status,
        404
    );
    let statuses = [
        server.send("POST /mcp", &json, "nonsense").status,
        server.send("POST /mcp", &json, &"[".repeat(100_000)).status,
        server
            .send(
                "POST /mcp",
                &[("Accept", "application/json, text/event-stream")],
                "{}",
            )
            .status,
        server
            .send("POST /mcp", &[("Content-Type", "application/json")], "{}")
            .status,
        server.send("PUT /mcp", &json, "{}").status,
        server
            .post(&[], &call(1, "bash", json!({ "command": "touch ran" })))
            .status,
        server
            .send("POST /mcp", &json, &"x".repeat(20 * 1024 * 1024))
            .status,
    ];
    assert!(
        statuses.iter().all(|status| (400..500).contains(status)),
        "{statuses:?}"
    );
    server.open();
    server.stop();
    assert!(!home.has("ran"));
}

/// Proves MCP-10: the server listens on loopback only.
#[test]
fn address_that_is_not_loopback_is_refused() {
    let home = Home::new();
    for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
        let output = home.zeph(["mcp", "serve", "--http", address]).code(2);
        output.says(&["loopback only", address]);
    }
    home.zeph(["mcp", "serve", "--http", "8765"]).code(2);
}
