//! An editor: a client of `zeph acp` that reads with a time limit and validates every message.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Home, Output, Running, Zeph};

/// The JSON Schema of the protocol.
static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../acp/schema.json")).unwrap());

/// Methods and the definitions of their results.
const RESULTS: &[(&str, &str)] = &[
    ("initialize", "InitializeResponse"),
    ("authenticate", "AuthenticateResponse"),
    ("logout", "LogoutResponse"),
    ("session/new", "NewSessionResponse"),
    ("session/load", "LoadSessionResponse"),
    ("session/resume", "ResumeSessionResponse"),
    ("session/fork", "NewSessionResponse"),
    ("session/list", "ListSessionsResponse"),
    ("session/delete", "DeleteSessionResponse"),
    ("session/close", "CloseSessionResponse"),
    ("session/prompt", "PromptResponse"),
    ("session/set_mode", "SetSessionModeResponse"),
    (
        "session/set_config_option",
        "SetSessionConfigOptionResponse",
    ),
];

/// Requests about files and terminals, and the definitions of their parameters.
const REQUESTS: &[(&str, &str)] = &[
    ("fs/read_text_file", "ReadTextFileRequest"),
    ("fs/write_text_file", "WriteTextFileRequest"),
    ("elicitation/create", "CreateElicitationRequest"),
    ("terminal/create", "CreateTerminalRequest"),
    ("terminal/output", "TerminalOutputRequest"),
    ("terminal/wait_for_exit", "WaitForTerminalExitRequest"),
    ("terminal/kill", "KillTerminalRequest"),
    ("terminal/release", "ReleaseTerminalRequest"),
];

/// The response to a question of the agent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decision {
    /// Selects the option with this id.
    Option(&'static str),
    /// The question was cancelled.
    Cancelled,
    /// An error.
    Error,
    /// No response.
    None,
}

/// An editor with a running agent.
pub(crate) struct Editor {
    running: Running,
    last_id: i64,
    /// The methods of requests by id.
    methods: HashMap<i64, String>,
    /// Responses that no one has read.
    responses: HashMap<i64, Value>,
    /// All messages of the agent, in order.
    pub(crate) seen: Vec<Value>,
    /// The response to questions.
    pub(crate) decision: Decision,
}

impl Editor {
    /// Starts the agent without a message to it.
    pub(crate) fn start(run: Zeph) -> Self {
        Self {
            running: run.open_stdin("").start(),
            last_id: 0,
            methods: HashMap::new(),
            responses: HashMap::new(),
            seen: Vec::new(),
            decision: Decision::Option("reject"),
        }
    }

    /// Starts the agent and initializes the connection of a client that shows notices.
    #[track_caller]
    pub(crate) fn open(home: &Home) -> Self {
        Self::with_args(home, &[])
    }

    /// An editor whose agent has these flags.
    #[track_caller]
    pub(crate) fn with_args(home: &Home, args: &[&str]) -> Self {
        let capabilities = json!({ "session": { "notices": {} } });
        Self::with_capabilities(home, args, &capabilities)
    }

    /// An editor with these capabilities, whose agent has these flags.
    #[track_caller]
    pub(crate) fn with_capabilities(home: &Home, args: &[&str], capabilities: &Value) -> Self {
        let mut editor = Self::start(home.zeph(["acp"]).args(args));
        editor.call(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": capabilities }),
        );
        editor
    }

    /// Writes a line.
    #[track_caller]
    pub(crate) fn line(&mut self, line: &str) {
        self.running.say(line);
    }

    /// Writes bytes and a line break.
    #[track_caller]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.running.say_bytes(bytes);
    }

    /// Sends a request, and returns its id.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        self.methods.insert(self.last_id, method.to_owned());
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.line(&request.to_string());
        self.last_id
    }

    /// Sends a notification.
    #[track_caller]
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Reads the next message. A question is answered with the decision.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Value {
        let line = self.running.next_line();
        let line = line.unwrap_or_else(|| panic!("no message came after {:#?}", self.seen.last()));
        let message: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{error}: stdout has {line:?}"));
        self.validate(&message);
        self.seen.push(message.clone());
        if message["method"] == "session/request_permission" {
            self.decide(&message);
        }
        if message.get("method").is_none()
            && let Some(id) = message["id"].as_i64()
        {
            self.responses.insert(id, message.clone());
        }
        message
    }

    fn decide(&mut self, question: &Value) {
        let outcome = match self.decision {
            Decision::None => return,
            Decision::Error => {
                let error = json!({ "code": -32603, "message": "the dialog failed" });
                let response = json!({ "jsonrpc": "2.0", "id": question["id"], "error": error });
                return self.line(&response.to_string());
            }
            Decision::Cancelled => json!({ "outcome": "cancelled" }),
            Decision::Option(id) => json!({ "outcome": "selected", "optionId": id }),
        };
        let result = json!({ "outcome": outcome });
        let response = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
        self.line(&response.to_string());
    }

    /// Answers the last question with an option, which answers later questions too.
    #[track_caller]
    pub(crate) fn choose_last(&mut self, option: &'static str) {
        self.decision = Decision::Option(option);
        let mut asked = self.seen.iter().rev();
        let question = asked.find(|it| it["method"] == "session/request_permission");
        let question = question.expect("a question was asked").clone();
        self.decide(&question);
    }

    /// Reads up to a message that `is_wanted` accepts.
    #[track_caller]
    pub(crate) fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            if is_wanted(&message) {
                return message;
            }
        }
    }

    /// Reads up to an update of this kind.
    #[track_caller]
    pub(crate) fn until_update(&mut self, kind: &str) -> Value {
        let message = self.until(|it| it["params"]["update"]["sessionUpdate"] == kind);
        message["params"]["update"].clone()
    }

    /// Reads up to a question.
    #[track_caller]
    pub(crate) fn until_question(&mut self) -> Value {
        self.until(|it| it["method"] == "session/request_permission")["params"].clone()
    }

    /// Reads up to the response with this id.
    #[track_caller]
    pub(crate) fn response(&mut self, id: i64) -> Value {
        loop {
            if let Some(response) = self.responses.remove(&id) {
                return response;
            }
            self.next();
        }
    }

    /// Sends a request and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_none(), "{method}: {response:#}");
        response["result"].clone()
    }

    /// Sends a request that fails, and returns the code and the message of its error.
    #[track_caller]
    pub(crate) fn fails(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.request(method, params);
        let response = self.response(id);
        let error = &response["error"];
        assert!(error.is_object(), "{method} did not fail: {response:#}");
        (
            error["code"].as_i64().unwrap(),
            error["message"].as_str().unwrap().to_owned(),
        )
    }

    /// Opens a new session in `cwd`, and returns its id.
    #[track_caller]
    pub(crate) fn session(&mut self, cwd: &Path) -> String {
        let result = self.call("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        result["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt with one text, and returns the id of the request.
    #[track_caller]
    pub(crate) fn send_prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        )
    }

    /// Sends a prompt with one text, and returns the stop reason.
    #[track_caller]
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> String {
        let id = self.send_prompt(session, text);
        let response = self.response(id);
        let reason = response["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{response:#}")).to_owned()
    }

    /// Cancels the prompt of a session.
    #[track_caller]
    pub(crate) fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({ "sessionId": session }));
    }

    /// The updates so far of this kind.
    pub(crate) fn updates(&self, kind: &str) -> Vec<Value> {
        let updates = self.seen.iter().map(|it| &it["params"]["update"]);
        let wanted = updates.filter(|update| update["sessionUpdate"] == kind);
        wanted.cloned().collect()
    }

    /// The text of the model so far.
    pub(crate) fn text(&self) -> String {
        let chunks = self.updates("agent_message_chunk");
        let texts = chunks.iter().map(|it| it["content"]["text"].as_str());
        texts.flatten().collect()
    }

    /// The last update of the call with this title.
    #[track_caller]
    pub(crate) fn end_of_call(&self, title: &str) -> Value {
        let calls = self.updates("tool_call");
        let call = calls.iter().rfind(|call| call["title"] == title);
        let call = call.unwrap_or_else(|| panic!("no call {title:?} in {calls:#?}"));
        let updates = self.updates("tool_call_update");
        let last = updates
            .into_iter()
            .rfind(|it| it["toolCallId"] == call["toolCallId"]);
        last.unwrap_or_else(|| panic!("{call:#} has no update"))
    }

    /// Forgets the messages so far.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }

    /// The agent.
    pub(crate) fn agent(&self) -> &Running {
        &self.running
    }

    /// Closes the input of the agent, and waits for its end.
    #[track_caller]
    pub(crate) fn leave(mut self) -> Output {
        self.running.close_stdin();
        self.running.wait()
    }

    #[track_caller]
    fn validate(&self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message:#}");
        let method = message["method"].as_str();
        let (definition, value) = match (method, message.get("result")) {
            (Some("session/update"), _) => ("SessionNotification", &message["params"]),
            (Some("session/request_permission"), _) => {
                ("RequestPermissionRequest", &message["params"])
            }
            (Some("$/cancel_request"), _) => return,
            (Some(other), _) => {
                let known = REQUESTS.iter().find(|(known, _)| *known == other);
                let Some((_, definition)) = known else {
                    panic!("an unknown message {other}: {message:#}");
                };
                (*definition, &message["params"])
            }
            (None, Some(result)) => {
                let id = message["id"].as_i64();
                let method = id.and_then(|id| self.methods.get(&id));
                let known = RESULTS
                    .iter()
                    .find(|(known, _)| method.is_some_and(|it| it == known));
                let Some((_, definition)) = known else {
                    panic!("a response to no request: {message:#}");
                };
                (*definition, result)
            }
            (None, None) => ("Error", &message["error"]),
        };
        let mut schema = SCHEMA.clone();
        schema["$ref"] = json!(format!("#/$defs/{definition}"));
        let validator = jsonschema::validator_for(&schema).unwrap();
        let faults: Vec<_> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{definition}: {faults:?}\n{message:#}");
    }
}
