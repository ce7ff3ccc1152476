//! Calls through an entry point of the built binary, and their observations.

use std::num::NonZeroU16;
use std::sync::Arc;

use serde_json::{Value, json};

use super::case::{Call, Case, Entry, MARK, Say};
use crate::rig::{
    Audit, Decision, Editor, Home, McpClient, OpenAi, Reply, Request, Terminal, audit, text_of,
};

/// The response of the model after its last call.
const END: &str = "That is all.";
/// The session of entry points with a process for each call.
const SESSION: &str = "matrix";

/// The observations of a call.
pub(super) struct Observed {
    /// The entries of the trail since the home was prepared.
    pub(super) entries: Vec<Audit>,
    /// The text that the model reads, if there is a model.
    pub(super) model: Option<String>,
    /// The text that the user reads, on one line.
    pub(super) user_text: String,
    /// The category of the failure in the JSON result, if there is one. `Some(None)` is success.
    pub(super) category: Option<Option<String>>,
    pub(super) code: Option<i32>,
    /// Whether the file of the call exists.
    pub(super) file: bool,
}

/// Makes the calls of a row through an entry point.
#[track_caller]
pub(super) fn run(case: &Case, entry: Entry) -> Observed {
    let home = Arc::new(Home::new());
    home.write("a.txt", &format!("{MARK}\n"));
    let server = server(case, entry, &home);
    let provider = format!(
        "[[llm.providers]]\nname = \"local\"\ntype = \"openai\"\nmodel = \"test-model\"\nbase_url = \"{}\"\n",
        server.url()
    );
    home.config(&format!(
        "{}\n[llm.retry]\nmax_attempts = 1\n{provider}",
        case.config
    ));
    if let Some(prepare) = case.prepare {
        prepare(&home);
    }
    let prepared = entries(&home).len();
    let mut observed = match entry {
        Entry::Terminal | Entry::Typed => at_terminal(case, entry, &home),
        Entry::Tui => on_full_screen(case, &home),
        Entry::Acp => in_editor(case, &home),
        Entry::Text | Entry::Json | Entry::Stream | Entry::SubAgent => one_shot(case, entry, &home),
        Entry::Scheduled => scheduled(case, &home),
        Entry::ToolsCall | Entry::ToolsCallJson => tools_call(case, entry, &home),
        Entry::ToolsRun => tools_run(case, &home),
        Entry::McpServe => mcp_serve(case, &home),
    };
    if entry.has_model() {
        let mut requests = server.requests();
        requests.retain(|request| entry != Entry::SubAgent || is_of_sub_agent(request));
        observed.model = requests.last().and_then(read_last);
    }
    observed.entries = entries(&home).split_off(prepared);
    // The entries of hooks, and of the call that starts a sub-agent, are not those of the tested call.
    observed
        .entries
        .retain(|found| !["hook", "task"].contains(&&*found.tool));
    observed.file = home.has("ran");
    observed
}

/// Whether a sub-agent sends a request.
fn is_of_sub_agent(request: &Request) -> bool {
    let system = request.messages()[0]["content"].to_string();
    system.contains("You are the sub-agent")
}

/// The text of the last result in a request.
fn read_last(request: &Request) -> Option<String> {
    let messages = request.messages();
    let mut results = messages
        .iter()
        .rev()
        .filter(|message| message["role"] == "tool");
    Some(results.next()?["content"].as_str()?.to_owned())
}

fn entries(home: &Home) -> Vec<Audit> {
    match home.database().exists() {
        true => audit(&home.database()),
        false => Vec::new(),
    }
}

/// A server for the model that makes the calls in sequence, the judge, and the argument repair.
fn server(case: &Case, entry: Entry, home: &Arc<Home>) -> OpenAi {
    let (judge, reformat, meanwhile) = (case.judge, case.reformat, case.meanwhile);
    let (before, call, home) = (case.before.clone(), case.call.clone(), Arc::clone(home));
    OpenAi::start(move |_, request| {
        let messages = request.messages();
        let is_about = |word: &str| {
            messages[0]["content"]
                .as_str()
                .is_some_and(|text| text.contains(word))
        };
        let none = || Reply::error(418, "no_reply", "the row has no such answer");
        if request.json().get("tools").is_none() {
            return match is_about("DENY") {
                true => judge.map_or_else(none, |judge| judge()),
                false => reformat.map_or_else(none, |reformat| reformat()),
            };
        }
        let made = messages
            .iter()
            .filter(|message| message["role"] == "tool")
            .count();
        if entry == Entry::SubAgent && !is_of_sub_agent(request) {
            let task = json!({ "description": "Go", "prompt": "go" });
            return match made {
                0 => Reply::calls("sub", &[("task", task)]),
                _ => Reply::text(END),
            };
        }
        match before.get(made) {
            _ if request.json()["tool_choice"] == "none" => Reply::text(END),
            Some(call) => reply(made, call),
            None if made == before.len() && entry.has_model() => {
                if let Some(change) = meanwhile {
                    change(&home);
                }
                reply(made, &call)
            }
            None => Reply::text(END),
        }
    })
}

/// A response with a call. A string is sent as the raw arguments.
fn reply(made: usize, (tool, params): &Call) -> Reply {
    let raw = match params {
        Value::String(text) => text.clone(),
        params => params.to_string(),
    };
    Reply::raw_calls(&made.to_string(), &[(*tool, raw)])
}

/// The command line arguments of a run.
fn args(case: &Case, entry: Entry) -> Vec<&'static str> {
    let is_asked = matches!(entry, Entry::Terminal | Entry::Tui | Entry::Acp);
    let agreed = case.say == Some(Say::Yes) && !is_asked;
    case.args
        .iter()
        .copied()
        .chain(agreed.then_some("--yes"))
        .collect()
}

#[track_caller]
fn at_terminal(case: &Case, entry: Entry, home: &Home) -> Observed {
    let mut terminal = Terminal::start(home, &args(case, entry));
    if case.expected(entry).no_start.is_none() {
        terminal.prompts("");
        if entry.has_model() || !case.before.is_empty() {
            terminal.type_keys("go\r");
            if let (Some(say), Entry::Terminal) = (case.say, entry) {
                terminal.shows("[1] once");
                terminal.type_keys(match say {
                    Say::Yes => "1",
                    Say::No => "4",
                });
            }
            terminal.shows(END);
            terminal.prompts("");
        }
        if entry == Entry::Typed {
            if let Some(change) = case.meanwhile {
                change(home);
            }
            let command = format!("!{}", case.call.1["command"].as_str().unwrap());
            terminal.type_keys(&format!("{command}\r"));
            terminal.shows(&command);
            terminal.prompts("");
        }
    }
    for word in &case.expected(entry).user_text {
        terminal.until(word, |text| one_line(text).contains(word));
    }
    let shown = terminal.text();
    let (status, _) = match case.expected(entry).no_start {
        None => terminal.leaves(),
        Some(_) => terminal.ends(),
    };
    observed(shown, status.code())
}

#[track_caller]
fn on_full_screen(case: &Case, home: &Home) -> Observed {
    // Narrow enough that no panel is next to the conversation.
    let (rows, columns) = (NonZeroU16::new(90).unwrap(), NonZeroU16::new(99).unwrap());
    let args = [vec!["--tui"], args(case, Entry::Tui)].concat();
    let mut terminal = Terminal::sized(home, &args, rows, columns);
    let expect = case.expected(Entry::Tui);
    let mut asked = String::new();
    if expect.no_start.is_none() {
        terminal.shows("? keys");
        terminal.type_keys("go\r");
        if let Some(say) = case.say {
            terminal.shows("[1] once");
            // The dialog disappears after the decision.
            asked = terminal.text().replace('║', "");
            terminal.type_keys(match say {
                Say::Yes => "1",
                Say::No => "4",
            });
        }
        terminal.shows(END);
        terminal.shows("tokens in");
        // Expands all results.
        terminal.type_keys("\x0f");
    }
    let shown = |text: &str| one_line(&format!("{asked}\n{text}"));
    for word in &expect.user_text {
        terminal.until(word, |text| shown(text).contains(word));
    }
    let user_text = shown(&terminal.text());
    if expect.no_start.is_none() {
        terminal.type_keys("\x04");
    }
    observed(user_text, terminal.ends().0.code())
}

#[track_caller]
fn in_editor(case: &Case, home: &Home) -> Observed {
    let mut editor = Editor::with_args(home, &args(case, Entry::Acp));
    editor.decision = Decision::Option(match case.say {
        Some(Say::Yes) => "once",
        Some(Say::No) | None => "reject",
    });
    let new = json!({ "cwd": home.project(), "mcpServers": [] });
    if let Some(code) = case.expected(Entry::Acp).no_start {
        // The process serves other directories, so only the session is refused.
        let (_, message) = editor.fails("session/new", new);
        return observed(message, Some(code));
    }
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    let asks = |it: &&Value| it["method"] == "session/request_permission";
    let is_asked = editor.seen.iter().any(|it| asks(&it));
    assert_eq!(is_asked, case.say.is_some(), "a question");
    let shown: Vec<String> = editor.seen.iter().map(texts).collect();
    let output = editor.leave();
    observed(
        format!("{}\n{}", shown.join("\n"), output.stderr),
        output.code,
    )
}

/// All texts in a message.
fn texts(message: &Value) -> String {
    match message {
        Value::String(text) => format!("{text}\n"),
        Value::Array(values) => values.iter().map(texts).collect(),
        Value::Object(fields) => fields.values().map(texts).collect(),
        _ => String::new(),
    }
}

#[track_caller]
fn one_shot(case: &Case, entry: Entry, home: &Home) -> Observed {
    let format = match entry {
        Entry::Json => "json",
        Entry::Stream => "stream-json",
        _ => "text",
    };
    let output = home
        .zeph(["-p", "go", "--output-format", format])
        .args(args(case, entry))
        .run();
    let starts = case.expected(entry).no_start.is_none();
    let category = |call: &Value| call["error_category"].as_str().map(str::to_owned);
    let category = match entry {
        Entry::Json if starts => {
            let object = output.json();
            let calls = object["tool_calls"].as_array().unwrap();
            calls.last().map(category)
        }
        Entry::Stream if starts => {
            let events = output.json_lines();
            let ended = |event: &&Value| event["type"] == "tool_finished";
            events.iter().rev().find(ended).map(category)
        }
        _ => None,
    };
    let mut observed = observed(format!("{}\n{}", output.stdout, output.stderr), output.code);
    observed.category = category;
    observed
}

#[track_caller]
fn scheduled(case: &Case, home: &Home) -> Observed {
    if case.expected(Entry::Scheduled).no_start.is_none() {
        home.zeph(["scheduler", "add", "now", "go"]).code(0);
    }
    let run = home.zeph(["scheduler", "run", "--once"]);
    let output = run.args(args(case, Entry::Scheduled)).run();
    observed(format!("{}\n{}", output.stdout, output.stderr), output.code)
}

#[track_caller]
fn tools_call(case: &Case, entry: Entry, home: &Home) -> Observed {
    let call = |(tool, params): &Call| {
        let params = match params {
            Value::String(text) => text.clone(),
            params => params.to_string(),
        };
        let json = (entry == Entry::ToolsCallJson).then_some("--json");
        home.zeph(["tools", "call", tool, &params, "--session", SESSION])
            .args(args(case, entry))
            .args(json)
            .run()
    };
    for made in &case.before {
        call(made);
    }
    if let Some(change) = case.meanwhile {
        change(home);
    }
    let output = call(&case.call);
    let starts = case.expected(entry).no_start.is_none();
    let form = (entry == Entry::ToolsCallJson && starts).then(|| output.json());
    let mut observed = observed(output.stderr.clone(), output.code);
    match form {
        Some(form) => {
            observed.category = Some(form["error_category"].as_str().map(str::to_owned));
            observed.model = form["data"].as_str().map(str::to_owned);
        }
        None => observed.model = Some(output.stdout),
    }
    observed
}

#[track_caller]
fn tools_run(case: &Case, home: &Home) -> Observed {
    let line = |(tool, params): &Call| json!({ "tool": tool, "params": params }).to_string();
    let run = home
        .zeph(["tools", "run"])
        .args(args(case, Entry::ToolsRun));
    if case.expected(Entry::ToolsRun).no_start.is_some() {
        let output = run.stdin(line(&case.call)).run();
        return observed(output.stderr, output.code);
    }
    let mut running = run.open_stdin("").start();
    for made in &case.before {
        running.say(&line(made));
        running.next_line().expect("each call has a result");
    }
    if let Some(change) = case.meanwhile {
        change(home);
    }
    running.say(&line(&case.call));
    let form: Value = serde_json::from_str(&running.next_line().expect("a result")).unwrap();
    running.close_stdin();
    let output = running.wait();
    let mut observed = observed(output.stderr, output.code);
    observed.category = Some(form["error_category"].as_str().map(str::to_owned));
    observed.model = form["data"].as_str().map(str::to_owned);
    observed
}

#[track_caller]
fn mcp_serve(case: &Case, home: &Home) -> Observed {
    let args = args(case, Entry::McpServe);
    if case.expected(Entry::McpServe).no_start.is_some() {
        let output = home.zeph(["mcp", "serve"]).args(args).run();
        return observed(output.stderr, output.code);
    }
    let mut client = McpClient::ready(home, &args);
    for (tool, params) in &case.before {
        client.call(tool, params.clone());
    }
    if let Some(change) = case.meanwhile {
        change(home);
    }
    let (tool, params) = &case.call;
    let result = client.call(tool, params.clone());
    let text = text_of(&result).to_owned();
    let output = client.end();
    let mut observed = observed(output.stderr, output.code);
    let category = text
        .lines()
        .find_map(|line| line.strip_prefix("category: "));
    observed.category = Some(
        category
            .filter(|_| result["isError"] == true)
            .map(str::to_owned),
    );
    observed.model = Some(text);
    observed
}

/// The text with all white space replaced by single spaces.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn observed(user_text: String, code: Option<i32>) -> Observed {
    Observed {
        entries: Vec::new(),
        model: None,
        user_text: one_line(&user_text),
        category: None,
        code,
        file: false,
    }
}
