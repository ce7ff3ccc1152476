//! A client of `zeph acp` with files and terminals: it holds unsaved texts, and runs commands.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::rig::{Decision, Editor, Home, Output, is_running, wait_for};

/// A terminal with its process.
struct Terminal {
    child: Child,
    /// The file with its output.
    output: std::path::PathBuf,
    /// The request that waits for its exit.
    waiting: Option<Value>,
}

/// A client that answers the requests of the agent.
pub(crate) struct Client {
    pub(crate) editor: Editor,
    /// Unsaved texts by path.
    pub(crate) texts: BTreeMap<String, String>,
    /// The reason for which it refuses requests about files.
    pub(crate) refuses: Option<&'static str>,
    /// Whether a refusal has the reason as details of an internal error, as of libraries of clients.
    pub(crate) has_details: bool,
    /// Whether commands run until they are killed.
    pub(crate) holds: bool,
    /// The argument of a process that has to end before the exit of a command is reported, as with clients that wait for
    /// the end of the output.
    pub(crate) exits_after: Option<String>,
    /// The requests, without questions.
    pub(crate) requests: Vec<(String, Value)>,
    terminals: Vec<Terminal>,
    directory: tempfile::TempDir,
}

impl Client {
    /// A client that offers files and terminals, and whose agent has these flags.
    #[track_caller]
    pub(crate) fn open(home: &Home, args: &[&str]) -> Self {
        let mut editor = Editor::start(home.zeph(["acp"]).args(args));
        let capabilities = json!({
            "fs": { "readTextFile": true, "writeTextFile": true },
            "terminal": true,
        });
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        editor.call("initialize", params);
        editor.decision = Decision::Option("once");
        Self {
            editor,
            texts: BTreeMap::new(),
            refuses: None,
            has_details: false,
            holds: false,
            exits_after: None,
            requests: Vec::new(),
            terminals: Vec::new(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// Sets the unsaved text of a file.
    pub(crate) fn set_text(&mut self, path: &Path, text: &str) {
        let path = path.display().to_string();
        self.texts.insert(path, text.to_owned());
    }

    /// The unsaved text of a file.
    pub(crate) fn text(&self, path: &Path) -> Option<&str> {
        let text = self.texts.get(&path.display().to_string());
        text.map(String::as_str)
    }

    /// The methods of the requests, in order.
    pub(crate) fn methods(&self) -> Vec<&str> {
        let methods = self.requests.iter();
        methods.map(|(method, _)| method.as_str()).collect()
    }

    /// Answers requests up to a message that `is_wanted` accepts.
    #[track_caller]
    pub(crate) fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.editor.next();
            self.serve(&message);
            if is_wanted(&message) {
                return message;
            }
        }
    }

    /// Answers requests up to the response with this id.
    #[track_caller]
    pub(crate) fn response(&mut self, id: i64) -> Value {
        self.until(|it| it.get("method").is_none() && it["id"] == id)
    }

    /// Sends a prompt and returns the stop reason.
    #[track_caller]
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> String {
        let id = self.editor.send_prompt(session, text);
        let response = self.response(id);
        let reason = response["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{response:#}")).to_owned()
    }

    /// Disconnects, and waits for the end of the agent.
    #[track_caller]
    pub(crate) fn leave(self) -> Output {
        self.editor.leave()
    }

    fn serve(&mut self, message: &Value) {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return;
        };
        if method == "session/request_permission" {
            return;
        }
        let params = message["params"].clone();
        self.requests.push((method.to_owned(), params.clone()));
        let response = match method {
            "fs/read_text_file" => self.read(&params).map(Some),
            "fs/write_text_file" => self.write(&params).map(Some),
            "terminal/create" => Ok(Some(self.create(&params))),
            "terminal/output" => Ok(Some(self.output(&params))),
            "terminal/wait_for_exit" => Ok(self.wait(&params, id)),
            "terminal/kill" => Ok(Some(self.kill(&params))),
            "terminal/release" => Ok(Some(json!({}))),
            other => panic!("an unknown request {other}"),
        };
        match response {
            Ok(Some(result)) => self.answer(id, "result", result),
            Ok(None) => {}
            Err(reason) => {
                let mut error = match self.has_details {
                    true => json!({ "message": "Internal error", "data": { "details": reason } }),
                    false => json!({ "message": reason }),
                };
                error["code"] = json!(-32603);
                self.answer(id, "error", error);
            }
        }
    }

    fn answer(&mut self, id: &Value, kind: &str, value: Value) {
        let mut response = json!({ "jsonrpc": "2.0", "id": id });
        response[kind] = value;
        self.editor.line(&response.to_string());
    }

    fn read(&self, params: &Value) -> Result<Value, String> {
        let path = params["path"].as_str().unwrap();
        if let Some(reason) = self.refuses {
            return Err(reason.to_owned());
        }
        let unsaved = self.texts.get(path).cloned();
        let text = unsaved.or_else(|| std::fs::read_to_string(path).ok());
        let text = text.ok_or_else(|| "no such file".to_owned())?;
        Ok(json!({ "content": text }))
    }

    fn write(&mut self, params: &Value) -> Result<Value, String> {
        if let Some(reason) = self.refuses {
            return Err(reason.to_owned());
        }
        let text = |name: &str| params[name].as_str().unwrap().to_owned();
        self.texts.insert(text("path"), text("content"));
        Ok(json!({}))
    }

    fn create(&mut self, params: &Value) -> Value {
        let words = |name: &str| params[name].as_array().cloned().unwrap_or_default();
        let output = self.directory.path().join(self.terminals.len().to_string());
        let file = std::fs::File::create(&output).unwrap();
        #[allow(
            clippy::disallowed_methods,
            reason = "the client runs commands in its terminals"
        )]
        let mut command = Command::new(params["command"].as_str().unwrap());
        let args = words("args");
        command.args(args.iter().map(|arg| arg.as_str().unwrap()));
        for variable in words("env") {
            command.env(
                variable["name"].as_str().unwrap(),
                variable["value"].as_str().unwrap(),
            );
        }
        let child = command
            .env("OF_THE_TERMINAL", "set")
            .current_dir(params["cwd"].as_str().unwrap())
            .stdin(Stdio::piped())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        self.terminals.push(Terminal {
            child,
            output,
            waiting: None,
        });
        json!({ "terminalId": format!("terminal-{}", self.terminals.len() - 1) })
    }

    fn terminal(&mut self, params: &Value) -> &mut Terminal {
        let id = params["terminalId"].as_str().unwrap();
        let at: usize = id.strip_prefix("terminal-").unwrap().parse().unwrap();
        &mut self.terminals[at]
    }

    /// The output so far of the last terminal.
    pub(crate) fn printed(&self) -> String {
        let last = self.terminals.last();
        last.map_or_else(String::new, |it| {
            std::fs::read_to_string(&it.output).unwrap()
        })
    }

    fn output(&mut self, params: &Value) -> Value {
        let terminal = self.terminal(params);
        let text = std::fs::read_to_string(&terminal.output).unwrap();
        json!({ "output": text, "truncated": false })
    }

    fn wait(&mut self, params: &Value, id: &Value) -> Option<Value> {
        let holds = self.holds;
        let terminal = self.terminal(params);
        if holds {
            let is_killed = terminal.child.try_wait().unwrap().is_some();
            if !is_killed {
                terminal.waiting = Some(id.clone());
                return None;
            }
        }
        if let Some(argument) = &self.exits_after {
            wait_for("the end of the output", || {
                (!is_running(argument)).then_some(())
            });
        }
        Some(exit(&mut self.terminal(params).child))
    }

    fn kill(&mut self, params: &Value) -> Value {
        let terminal = self.terminal(params);
        let _ = terminal.child.kill();
        let result = exit(&mut terminal.child);
        if let Some(waiting) = terminal.waiting.take() {
            self.answer(&waiting, "result", result);
        }
        json!({})
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the exit of a process.
fn exit(child: &mut Child) -> Value {
    use std::os::unix::process::ExitStatusExt as _;
    let status = child.wait().unwrap();
    match status.signal() {
        Some(9) => json!({ "signal": "SIGKILL" }),
        Some(15) => json!({ "signal": "SIGTERM" }),
        Some(signal) => json!({ "signal": signal.to_string() }),
        None => json!({ "exitCode": status.code() }),
    }
}
