//! An MCP server on loopback over HTTP, which records every request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A received request: method, target, headers in lower case, body.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
    pub(super) text: String,
}

impl Asked {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A response: status, headers, body.
pub(super) type Answer = (u16, Vec<(String, String)>, String);

/// The server.
pub(super) struct Web {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Web {
    /// A server that responds with the result of `answer`. If that is `None`, it responds like a server with
    /// the tool `echo`.
    pub(super) fn start(answer: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (kept, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let Some(request) = read(&socket) else { return };
                    kept.lock().unwrap().push(request.clone());
                    let (status, headers, body) =
                        answer(&request).unwrap_or_else(|| usual(&request));
                    let mut head = format!(
                        "HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n",
                        body.len()
                    );
                    for (name, value) in headers {
                        head.push_str(&format!("{name}: {value}\r\n"));
                    }
                    let _ = write!(&socket, "{head}\r\n{body}");
                });
            }
        });
        Self { address, asked }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The number of received calls.
    pub(super) fn calls(&self) -> usize {
        let asked = self.asked();
        asked
            .iter()
            .filter(|one| one.body["method"] == "tools/call")
            .count()
    }
}

/// A response in JSON.
pub(super) fn said(status: u16, body: &Value) -> Answer {
    let kind = ("content-type".to_owned(), "application/json".to_owned());
    (status, vec![kind], body.to_string())
}

fn usual(request: &Asked) -> Answer {
    let result = match (request.method.as_str(), request.body["method"].as_str()) {
        ("POST", Some("initialize")) => json!({
            "protocolVersion": request.body["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" },
        }),
        ("POST", Some("tools/list")) => json!({ "tools": [super::echo()] }),
        ("POST", Some("tools/call")) => {
            let text = request.body["params"]["arguments"]["text"]
                .as_str()
                .unwrap_or_default();
            json!({ "content": [{ "type": "text", "text": format!("said: {text}") }] })
        }
        ("POST", Some("server/discover")) => return (404, Vec::new(), String::new()),
        ("POST", _) => return (202, Vec::new(), String::new()),
        _ => return (405, Vec::new(), String::new()),
    };
    said(
        200,
        &json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": result }),
    )
}

fn read(socket: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(socket);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let text = String::from_utf8_lossy(&body).into_owned();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Asked {
        method,
        target,
        headers,
        body,
        text,
    })
}
