//! MCP servers: their tools and the gates, the user's approval, and server faults.

mod asks;
mod configure;
mod gates;
mod http;
mod lifecycle;
mod login;
mod page;
mod prompts;
mod results;
mod revisions;
mod sandbox;
mod slash;
mod tasks;
mod trust;
mod web;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::rig::{Home, Output, Running, wait_for};

/// The test server, a Python script.
pub(crate) const SERVER: &str = include_str!("server.py");

/// A home with one server called `t`.
pub(super) struct Served {
    pub(super) home: Home,
}

/// A tool without arguments.
pub(super) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": format!("Does {name}."), "inputSchema": { "type": "object" } })
}

/// The tool `echo`.
pub(crate) fn echo() -> Value {
    let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    json!({ "name": "echo", "description": "Says it.", "inputSchema": text })
}

impl Served {
    /// A server with these tools, which are approved.
    pub(super) fn new(tools: &[Value]) -> Self {
        let served = Self::unapproved(tools);
        served.approve();
        served
    }

    /// A server with these tools, which are not approved.
    pub(super) fn unapproved(tools: &[Value]) -> Self {
        Self::in_mode(tools, "", "")
    }

    /// A server in this mode, with additional keys in its table.
    pub(super) fn in_mode(tools: &[Value], mode: &str, more: &str) -> Self {
        let served = Self { home: Home::new() };
        std::fs::create_dir(served.file("")).unwrap();
        std::fs::write(served.file("server.py"), SERVER).unwrap();
        served.tools(tools);
        served.config(mode, more);
        served
    }

    /// Writes the configuration.
    pub(super) fn config(&self, mode: &str, more: &str) {
        let mut args = vec![self.file("server.py"), self.file("")];
        args.extend(mode.split_whitespace().map(PathBuf::from));
        let args: Vec<String> = args.iter().map(|arg| format!("{:?}", arg)).collect();
        self.home.config(&format!(
            "[[mcp.servers]]\nname = \"t\"\ncommand = \"python3\"\nargs = [{}]\n{}{more}",
            args.join(", "),
            match more.contains("writable") || more.contains("sandbox") {
                true => String::new(),
                // The server writes its log there.
                false => format!("writable = [{:?}]\n", self.file("")),
            }
        ));
    }

    /// The path of a file of the server.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.home.root().join("server").join(name)
    }

    /// Changes the list of tools.
    pub(super) fn tools(&self, tools: &[Value]) {
        std::fs::write(self.file("tools.json"), json!(tools).to_string()).unwrap();
    }

    #[track_caller]
    pub(super) fn approve(&self) {
        self.home.zeph(["mcp", "approve", "t", "--yes"]).code(0);
        std::fs::remove_file(self.file("log")).unwrap();
    }

    /// Calls a tool of the server with approval.
    pub(super) fn call(&self, name: &str, params: &Value) -> Output {
        let id = format!("mcp_t_{name}");
        let params = params.to_string();
        self.home
            .zeph(["--yes", "tools", "call", &id, &params])
            .run()
    }

    /// A `zeph tools run` process that receives its lines over time.
    pub(super) fn script(&self) -> Running {
        self.home
            .zeph(["--yes", "tools", "run"])
            .open_stdin(Vec::new())
            .start()
    }

    /// The messages that the server received.
    pub(super) fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.file("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// The number of calls that the server received.
    pub(super) fn calls(&self) -> usize {
        let log = self.log();
        log.iter()
            .filter(|line| line.starts_with("tools/call"))
            .count()
    }

    /// Waits for `count` messages with this prefix.
    #[track_caller]
    pub(super) fn wait_for(&self, begin: &str, count: usize) {
        wait_for(&format!("{count} times {begin}"), || {
            let log = self.log();
            let came = log.iter().filter(|line| line.starts_with(begin)).count();
            (came >= count).then_some(())
        });
    }
}

/// Sends a line to a script and returns the category and data of its result.
#[track_caller]
pub(super) fn says(script: &mut Running, tool: &str, params: &Value) -> (Option<String>, String) {
    script.say(&json!({ "tool": format!("mcp_t_{tool}"), "params": params }).to_string());
    let form: Value = serde_json::from_str(&script.next_line().unwrap()).unwrap();
    let category = form["error_category"].as_str().map(str::to_owned);
    (category, form["data"].as_str().unwrap().to_owned())
}
