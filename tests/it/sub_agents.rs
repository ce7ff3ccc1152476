//! Sub-agents: the tool `task`, its sessions, permissions, costs and processes.

use serde_json::{Value, json};

use crate::rig::{
    Audit, Editor, Home, OpenAi, Reply, Request, Terminal, assert_has, audit, results_of,
    session_ids,
};

/// The name of the sub-agent that sends a request; `None` for the parent.
fn sub_agent(request: &Request) -> Option<String> {
    let system = request.messages()[0]["content"].as_str()?.to_owned();
    let (_, rest) = system.split_once("You are the sub-agent `")?;
    Some(rest.split_once('`')?.0.to_owned())
}

/// The number of results in a request.
fn results(request: &Request) -> usize {
    results_of(&request.messages()).len()
}

fn task(agent: Option<&str>, prompt: &str) -> (&'static str, Value) {
    let mut params = json!({ "description": "Look", "prompt": prompt });
    if let Some(agent) = agent {
        params["agent"] = agent.into();
    }
    ("task", params)
}

/// A model that starts one sub-agent, which makes these calls one by one and then responds with `found`.
fn with_calls(agent: Option<&'static str>, calls: Vec<(&'static str, Value)>) -> OpenAi {
    OpenAi::start(move |_, request| match sub_agent(request) {
        None if results(request) == 0 => Reply::calls("t", &[task(agent, "Find it.")]),
        None => Reply::text("All done."),
        Some(_) => match calls.get(results(request)) {
            Some(call) => Reply::calls(&results(request).to_string(), std::slice::from_ref(call)),
            None => Reply::text("found: the answer is 42"),
        },
    })
}

fn touch() -> (&'static str, Value) {
    ("bash", json!({ "command": "touch ran" }))
}

/// The entries of sub-agents.
fn of_sub_agents(home: &Home) -> Vec<Audit> {
    let mut entries = audit(&home.database());
    entries.retain(|entry| entry.caller_id.is_some());
    entries
}

/// The text of the result that the parent received.
fn answer(server: &OpenAi) -> String {
    results_of(&server.last().messages()).remove(0).1
}

fn allow_touch() -> &'static str {
    "[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"allow\"\n"
}

/// Proves CLI-12, PERM-13: a sub-agent has a session, a caller and tools of its own; its costs belong to the parent.
#[test]
fn sub_agent_has_its_own_session() {
    let server = with_calls(Some("explore"), vec![("read", json!({ "path": "a.txt" }))]);
    let home = Home::openai(&server);
    home.write("a.txt", "the answer\n");
    let line = ["-p", "go", "--output-format", "stream-json"];
    let output = home.zeph(line).code(0);
    let events = output.json_lines();
    let steps: String = events
        .iter()
        .filter(|event| event["type"] == "tool_output")
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    assert_eq!(steps, "Read a.txt\n");
    let started: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "tool_started")
        .collect();
    assert_eq!(started.len(), 1, "only the call of the parent is an event");
    assert_eq!(answer(&server), "found: the answer is 42");
    // Four requests, and each has 1000 tokens.
    let finished = events.last().unwrap();
    assert_eq!(finished["usage"]["input_tokens"], 4000, "{finished}");
    home.zeph(["--continue", "-p", "/cost"])
        .code(0)
        .prints(&["together: 4 requests"]);

    let requests = server.requests();
    let child = requests.iter().find(|it| sub_agent(it).is_some()).unwrap();
    assert_eq!(sub_agent(child).as_deref(), Some("explore"));
    let child = child.json();
    let tools: Vec<&str> = child["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert!(tools.contains(&"read"), "{tools:?}");
    for tool in ["task", "write", "load_skill"] {
        assert!(!tools.contains(&tool), "{tool}");
    }
    let entries = audit(&home.database());
    let [read, parent] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    assert_eq!((read.tool.as_str(), parent.tool.as_str()), ("read", "task"));
    assert_eq!(read.caller_id.as_deref(), Some("task:explore"));
    assert_eq!(read.phase, "planner");
    assert_eq!(parent.caller_id, None);
    assert_ne!(read.session, parent.session);
    // Only the session of the parent is listed and continued; the other one can be read.
    // A search finds neither the words nor a part of a word in the session of the sub-agent.
    for text in ["answer", "nswe"] {
        let found = home.zeph(["sessions", "search", text]).code(0);
        found.prints(&["no session contains"]);
    }
    let listed = home.zeph(["sessions", "list"]).code(0).stdout;
    assert_eq!(listed.lines().filter(|line| line.contains("go")).count(), 1);
    assert!(!listed.contains(&read.session[..8]), "{listed}");
    home.zeph(["sessions", "show", &read.session])
        .code(0)
        .prints(&["Find it."]);
    // The calls of both sessions are decided again.
    let replayed = home.zeph(["policy", "replay", "--json"]).code(0).json();
    assert_eq!(replayed["calls"], 2, "{replayed:#}");
    let notes = replayed["notes"].to_string();
    assert!(!notes.contains("other directories"), "{notes}");
    home.zeph(["sessions", "rm", &parent.session, "--yes"])
        .code(0);
    assert_eq!(session_ids(&home.database()), Vec::<String>::new());
}

/// Proves CLI-12: a definition can only restrict the mode of the parent, and its tools.
#[test]
fn mode_of_a_sub_agent_only_restricts() {
    let run = |definition: &str, mode: &str, call: (&'static str, Value)| {
        let server = with_calls(Some("helper"), vec![call]);
        let home = Home::openai(&server);
        let folder = home.home().join(".config/zeph/agents");
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\ndescription: Helps\n{definition}\n---\nBe a helper.\n");
        std::fs::write(folder.join("helper.md"), text).unwrap();
        home.zeph(["-p", "go", "--mode", mode]).code(0);
        assert_has(
            server.requests()[1].messages()[0]["content"]
                .as_str()
                .unwrap(),
            &["Be a helper."],
        );
        let entry = of_sub_agents(&home).remove(0);
        (home.has("b.txt"), entry.result)
    };
    let write = || ("write", json!({ "path": "b.txt", "content": "x\n" }));
    let ran = (true, "success".to_owned());
    let blocked = (false, "blocked".to_owned());
    assert_eq!(run("", "auto-edit", write()), ran);
    assert_eq!(run("mode: full", "auto-edit", write()), ran);
    assert_eq!(run("mode: plan", "auto-edit", write()), blocked);
    assert_eq!(run("mode: full", "plan", write()), blocked);
    assert_eq!(run("mode: full", "ask", write()), blocked);
    assert_eq!(run("tools: [read]", "auto-edit", write()), blocked);
}

/// Proves CLI-12, CLI-11: gates and hooks judge the calls of a sub-agent.
#[test]
fn denied_call_of_a_sub_agent_does_not_run() {
    let deny = "[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"\n";
    let hook = format!(
        "{}[[hooks]]\nevent = \"before_call\"\ntools = [\"bash\"]\ncommand = \"cat > seen; echo no >&2; exit 2\"\n",
        allow_touch()
    );
    let block = "[tools.shell]\nblocked_commands = [\"touch\"]\n";
    for config in [deny, &hook, block, ""] {
        let server = with_calls(None, vec![touch()]);
        let home = Home::openai(&server);
        home.more_config(config);
        home.zeph(["-p", "go"]).code(0);
        assert!(!home.has("ran"), "{config}");
        let entries = of_sub_agents(&home);
        assert!(entries.iter().any(|entry| entry.result == "blocked"));
        if config == hook {
            let input: Value = serde_json::from_str(&home.read("seen")).unwrap();
            assert_eq!(input["session"], entries[0].session);
        }
    }
    let server = with_calls(None, vec![touch()]);
    let home = Home::openai(&server);
    home.more_config(allow_touch());
    home.zeph(["-p", "go"]).code(0);
    assert!(home.has("ran"));
}

/// Proves CLI-12: a sub-agent starts no sub-agents, and a call without a model is an error.
#[test]
fn sub_agent_cannot_start_another() {
    let server = with_calls(None, vec![task(Some("explore"), "Deeper.")]);
    let home = Home::openai(&server);
    home.zeph(["-p", "go"]).code(0);
    let entry = of_sub_agents(&home).remove(0);
    assert_eq!(
        (entry.tool.as_str(), entry.result.as_str()),
        ("task", "blocked")
    );
    assert_eq!(server.requests().len(), 4);

    let params = json!({ "description": "x", "prompt": "y" }).to_string();
    let output = home.zeph(["tools", "call", "task", &params]).code(1);
    assert_has(
        &output.stdout,
        &["only the model of a conversation can call `task`"],
    );
    let server = with_calls(Some("exlpore"), Vec::new());
    let home = Home::openai(&server);
    home.zeph(["-p", "go"]).code(0);
    assert_has(&answer(&server), &["did you mean explore?"]);
}

/// Proves CLI-12: sub-agents that only read run concurrently, and a cancellation ends all of them.
#[test]
fn read_only_sub_agents_run_concurrently_until_they_are_cancelled() {
    let server = OpenAi::start(|_, request| match sub_agent(request) {
        None => Reply::calls(
            "t",
            &[task(Some("explore"), "One."), task(Some("explore"), "Two.")],
        ),
        Some(_) => Reply::hang(),
    });
    let home = Home::openai(&server);
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    // Neither gets a response, so both wait at the same time.
    server.wait_for_requests(3);
    terminal.type_keys("\u{3}");
    terminal.prompts("");
    terminal.leaves();
    let entries = audit(&home.database());
    let ended: Vec<_> = entries
        .iter()
        .map(|entry| (entry.tool.as_str(), entry.result.as_str()))
        .collect();
    assert_eq!(ended, [("task", "cancelled"), ("task", "cancelled")]);
}

/// Proves CLI-12: sub-agents that may change files run one by one.
#[test]
fn other_sub_agents_run_in_sequence() {
    let server = OpenAi::start(|_, request| match sub_agent(request) {
        None if results(request) == 0 => {
            Reply::calls("t", &[task(None, "One."), task(None, "Two.")])
        }
        None => Reply::text("All done."),
        Some(_) if results(request) == 0 => {
            Reply::calls("r", &[("read", json!({ "path": "a.txt" }))])
        }
        Some(_) => Reply::text("read"),
    });
    let home = Home::openai(&server);
    home.write("a.txt", "x\n");
    home.zeph(["-p", "go"]).code(0);
    let requests = server.requests();
    let prompts: Vec<String> = requests
        .iter()
        .filter(|request| sub_agent(request).is_some())
        .map(|request| request.messages()[1]["content"].to_string())
        .collect();
    assert_eq!(prompts, ["\"One.\"", "\"One.\"", "\"Two.\"", "\"Two.\""]);
}

/// Proves CLI-12: the user of the parent answers the question of a sub-agent, which names it.
#[test]
fn question_of_a_sub_agent_goes_to_the_user() {
    for (key, ran) in [("1", true), ("4", false)] {
        let server = with_calls(None, vec![touch()]);
        let home = Home::openai(&server);
        let mut terminal = Terminal::start(&home, &[]);
        terminal.prompts("");
        terminal.type_keys("go\r");
        terminal.shows("[sub-agent general]");
        terminal.shows("[1] once");
        terminal.type_keys(key);
        terminal.shows("All done.");
        terminal.prompts("");
        terminal.leaves();
        assert_eq!(home.has("ran"), ran);
        let entry = of_sub_agents(&home).remove(0);
        assert_eq!(entry.result, if ran { "success" } else { "blocked" });
        assert_eq!(entry.approved_by, if ran { "user" } else { "auto" });
    }
}

/// Proves CLI-12: the command of a cancelled sub-agent ends with it.
#[test]
fn cancelled_sub_agent_leaves_no_process() {
    let command = json!({ "command": "touch began; sleep 1000" });
    let server = with_calls(None, vec![("bash", command)]);
    let home = Home::openai(&server);
    let mut terminal = Terminal::start(&home, &["--yes"]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    crate::rig::wait_for("the command", || home.has("began").then_some(()));
    terminal.type_keys("\u{3}");
    terminal.prompts("");
    terminal.leaves();
    home.wait_until_alone();
    assert_eq!(of_sub_agents(&home)[0].result, "cancelled");
}

/// Proves CLI-12, FILE-28: one undo of the parent reverts the changes of its sub-agent.
#[test]
fn undo_of_the_parent_reverts_its_sub_agent() {
    let write = |path: &str| ("write", json!({ "path": path, "content": "x\n" }));
    let server = with_calls(None, vec![write("b.txt"), write("c.txt")]);
    let home = Home::openai(&server);
    home.zeph(["-p", "go", "--mode", "auto-edit"]).code(0);
    assert!(home.has("b.txt") && home.has("c.txt"));
    home.zeph(["--continue", "-p", "/undo"]).code(0);
    assert!(!home.has("b.txt") && !home.has("c.txt"));
}

/// Proves CLI-6, CLI-12: a rewind of the parent restores the files of its sub-agent, and names only
/// the commands.
#[test]
fn rewind_of_the_parent_reverts_its_sub_agent() {
    let rewind = |agent, calls| {
        let server = with_calls(agent, calls);
        let home = Home::openai(&server);
        home.more_config(allow_touch());
        home.write("a.txt", "x\n");
        home.zeph(["-p", "go", "--mode", "auto-edit"]).code(0);
        let rewind = ["--continue", "-p", "/rewind 1"];
        home.zeph(rewind).code(0).stdout
    };
    let done = rewind(Some("explore"), vec![("read", json!({ "path": "a.txt" }))]);
    assert_has(&done, &["is in its state before message 1 (go)"]);
    assert!(!done.contains("undo record"), "{done}");
    let write = ("write", json!({ "path": "b.txt", "content": "x\n" }));
    let plan = rewind(None, vec![write, touch()]);
    let expect = [
        "  removed b.txt\n",
        "  not restored: changes by the command touch ran: commands have no undo record\n",
        "/rewind 1 yes does this",
    ];
    assert_has(&plan, &expect);
    assert_eq!(plan.matches("not restored").count(), 1, "{plan}");
}

/// Proves CLI-12, PERM-40: calls of a sub-agent count to the quota and the budget of the parent.
#[test]
fn limits_of_the_parent_apply_to_its_sub_agents() {
    let read = || ("read", json!({ "path": "a.txt" }));
    let server = with_calls(None, vec![read(), read(), read()]);
    let home = Home::openai(&server);
    home.write("a.txt", "x\n");
    home.more_config("[tools]\nmax_tool_calls_per_session = 3\n");
    home.zeph(["-p", "go"]).run();
    let results: Vec<String> = audit(&home.database())
        .into_iter()
        .filter(|entry| entry.tool == "read")
        .map(|entry| entry.result)
        .collect();
    assert_eq!(results, ["success", "success", "blocked"]);

    // The requests of the parent and of the sub-agent have 1020 tokens each.
    let server = with_calls(None, vec![read(), read(), read()]);
    let home = Home::openai(&server);
    home.write("a.txt", "x\n");
    home.more_config("[agent]\nmax_tokens_per_session = 2500\n");
    home.zeph(["-p", "go"]).code(4);
    assert_eq!(server.requests().len(), 3);
}

/// Proves CLI-12: a sub-agent has its own maximum of rounds, and reports it with its last text.
#[test]
fn rounds_of_a_sub_agent_are_limited() {
    let server = OpenAi::start(|n, request| match sub_agent(request) {
        None if results(request) == 0 => Reply::calls("t", &[task(Some("quick"), "Find it.")]),
        None => Reply::text("All done."),
        Some(_) if request.json()["tool_choice"] == "none" => Reply::text("so far: nothing"),
        Some(_) => Reply::calls(
            &n.to_string(),
            &[("grep", json!({ "pattern": format!("word{n}") }))],
        ),
    });
    let home = Home::openai(&server);
    let folder = home.home().join(".config/zeph/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\ndescription: Quick\nmax_iterations: 2\n---\n";
    std::fs::write(folder.join("quick.md"), text).unwrap();
    home.zeph(["-p", "go"]).code(0);
    assert_has(
        &answer(&server),
        &["so far: nothing", "stopped after 2 rounds of calls"],
    );
    assert_eq!(of_sub_agents(&home).len(), 2);
}

/// Proves CLI-12: agents of a project are used after the user has trusted them, until a file changes.
#[test]
fn agents_of_a_project_need_trust() {
    let server = with_calls(Some("local"), Vec::new());
    let home = Home::openai(&server);
    let file = ".zeph/agents/local.md";
    home.write(
        file,
        "---\ndescription: A local one\nmax_iterations: 7\n---\nBe local.\n",
    );
    let untrusted = home.zeph(["-p", "go"]).code(0);
    assert_has(
        &untrusted.stderr,
        &[
            "the agents of this project are not trusted",
            "zeph agents trust",
        ],
    );
    assert_has(&answer(&server), &["there is no agent \"local\""]);
    home.zeph(["agents", "list"])
        .code(0)
        .prints(&["local", "untrusted", "A local one"]);
    let shown = home.zeph(["agents", "trust", "--yes"]).code(0).stdout;
    let line = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("file ").ends_with(file), "{shown}");
    assert!(line("max_iterations ").ends_with(" 7"), "{shown}");
    assert_has(&shown, &["Be local."]);
    home.zeph(["-p", "go"]).code(0);
    assert_eq!(answer(&server), "found: the answer is 42");
    home.write(file, "---\ndescription: A local one\n---\nBe evil.\n");
    let changed = home.zeph(["-p", "go"]).code(0);
    assert_has(&changed.stderr, &["changed since you trusted them"]);
    home.zeph(["agents", "untrust"]).code(0);
}

/// Proves CLI-12, ACP-3: an editor sees one call, with the steps of the sub-agent.
#[test]
fn editor_shows_a_sub_agent_as_one_call() {
    let server = with_calls(Some("explore"), vec![("read", json!({ "path": "a.txt" }))]);
    let home = Home::openai(&server);
    home.write("a.txt", "the answer\n");
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    let calls: Vec<&Value> = editor
        .seen
        .iter()
        .map(|message| &message["params"]["update"])
        .filter(|update| update["sessionUpdate"] == "tool_call")
        .collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["title"], "Task: Look");
    let all: String = editor.seen.iter().map(Value::to_string).collect();
    assert_has(&all, &["Read a.txt", "found: the answer is 42"]);
    editor.leave();
}
