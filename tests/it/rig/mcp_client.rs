//! A client of `zeph mcp serve` on standard input and output.

use serde_json::{Value, json};

use super::{Home, Output, Running, Zeph};

/// The client's name and version, as the audit entries show them.
pub(crate) const CALLER: &str = "test-client/1.2";

/// A connection to the server.
pub(crate) struct McpClient {
    running: Running,
    next_id: i64,
    /// Requests and notifications of the server, in order of arrival.
    pub(crate) received: Vec<Value>,
    /// Responses that arrived before they were awaited.
    responses: Vec<Value>,
    /// `_meta` of each request, for revisions without a handshake.
    meta: Option<Value>,
}

impl McpClient {
    /// Starts the server with these additional arguments.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        Self::of(home.zeph(["mcp", "serve"]).args(args))
    }

    /// Starts a server.
    pub(crate) fn of(zeph: Zeph) -> Self {
        Self {
            running: zeph.open_stdin("").start(),
            next_id: 0,
            received: Vec::new(),
            responses: Vec::new(),
            meta: None,
        }
    }

    /// A connection of revision 2025-11-25 without capabilities of the client.
    pub(crate) fn ready(home: &Home, args: &[&str]) -> Self {
        let mut client = Self::start(home, args);
        client.initialize("2025-11-25", &json!({}));
        client
    }

    /// Performs the handshake, and returns its result.
    pub(crate) fn initialize(&mut self, version: &str, capabilities: &Value) -> Value {
        let (name, number) = CALLER.split_once('/').unwrap();
        let result = self.result(
            "initialize",
            json!({
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": { "name": name, "version": number },
            }),
        );
        self.notify("notifications/initialized", json!({}));
        result
    }

    /// Sends all later requests with the metadata of revision 2026-07-28.
    pub(crate) fn stateless(&mut self, capabilities: &Value) {
        let (name, number) = CALLER.split_once('/').unwrap();
        self.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": name, "version": number },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
    }

    /// Sends a request, and returns its id.
    pub(crate) fn send(&mut self, method: &str, mut params: Value) -> i64 {
        self.next_id += 1;
        if let Some(meta) = &self.meta {
            let sent = params["_meta"].take();
            params["_meta"] = meta.clone();
            if let (Some(all), Value::Object(sent)) = (params["_meta"].as_object_mut(), sent) {
                all.extend(sent);
            }
        }
        let id = self.next_id;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a call, and returns the id of its request.
    pub(crate) fn send_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.send(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Responds to a request of the server.
    pub(crate) fn respond(&mut self, id: &Value, result: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.running.say(&message.to_string());
    }

    /// Sends a line that need not be a message.
    pub(crate) fn say_raw(&mut self, line: &str) {
        self.running.say(line);
    }

    /// The next message of the server.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Value {
        let line = self
            .running
            .next_line()
            .expect("the server sends a message");
        let message: Value = serde_json::from_str(&line).expect("each line is JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// The response to a request.
    #[track_caller]
    pub(crate) fn response(&mut self, id: i64) -> Value {
        if let Some(at) = self.responses.iter().position(|known| known["id"] == id) {
            return self.responses.remove(at);
        }
        loop {
            let message = self.next();
            if message.get("method").is_some() {
                self.received.push(message);
            } else if message["id"] == id {
                return message;
            } else {
                self.responses.push(message);
            }
        }
    }

    /// The next request or notification of the server with this method.
    #[track_caller]
    pub(crate) fn until(&mut self, method: &str) -> Value {
        if let Some(at) = self.received.iter().position(|it| it["method"] == method) {
            return self.received.remove(at);
        }
        loop {
            let message = self.next();
            if message["method"] == method {
                return message;
            } else if message.get("method").is_some() {
                self.received.push(message);
            } else {
                self.responses.push(message);
            }
        }
    }

    /// Sends a request, and returns its result.
    #[track_caller]
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    }

    /// Sends a request, and returns the code and the message of its error.
    #[track_caller]
    pub(crate) fn error(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.send(method, params);
        error_of(&self.response(id))
    }

    /// Makes a call, and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// The server process.
    pub(crate) fn process(&self) -> &Running {
        &self.running
    }

    /// Ends the input, and waits for the end of the server. Each line of its output is a message.
    #[track_caller]
    pub(crate) fn end(mut self) -> Output {
        self.running.close_stdin();
        let output = self.running.wait();
        for message in output.json_lines() {
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
        }
        output
    }

    /// Waits for the end of the server without an end of its input.
    #[track_caller]
    pub(crate) fn wait(self) -> Output {
        self.running.wait()
    }
}

/// The code and the message of an error response.
#[track_caller]
pub(crate) fn error_of(response: &Value) -> (i64, String) {
    let error = &response["error"];
    let code = error["code"].as_i64();
    let code = code.unwrap_or_else(|| panic!("not an error: {response}"));
    (code, error["message"].as_str().unwrap().to_owned())
}

/// The text of a result.
#[track_caller]
pub(crate) fn text_of(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {result}"))
}
