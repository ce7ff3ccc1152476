//! Tool selection: fields for reasoning, the schema filter, and dependencies between tools.

use serde_json::{Value, json};

use crate::rig::{
    Home, OpenAi, Reply, Request, Terminal, assert_has, audit, openai_config, results_of,
};

/// The names of the tools of a request, in their order.
fn offered(request: &Request) -> Vec<String> {
    let tools = request.json()["tools"].clone();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.as_array().unwrap().iter().map(name).collect()
}

/// Proves EXE-14, SH-40: tools for jobs are exposed after the first job starts, at the end of the list, and
/// stay there when the session is resumed.
#[test]
fn job_tools_are_exposed_with_the_first_job() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::calls("a", &[("bash", json!({ "command": "echo x" }))]),
        1 => Reply::calls(
            "b",
            &[("bash", json!({ "command": "sleep 60", "background": true }))],
        ),
        2 => Reply::calls("c", &[("job_kill", json!({ "job_id": "job-1" }))]),
        _ => Reply::text("done"),
    });
    let home = Home::openai(&server);
    home.zeph(["-p", "go", "--yes"]).code(0);
    home.zeph(["--continue", "-p", "go on", "--yes"]).code(0);
    let offers: Vec<Vec<String>> = server.requests().iter().map(offered).collect();
    let first = &offers[0];
    assert!(
        !first.iter().any(|tool| tool.starts_with("job_")),
        "{first:?}"
    );
    assert_eq!(&offers[1], first);
    let (before, new) = offers[2].split_at(first.len());
    assert_eq!(before, first);
    assert_eq!(new, ["job_kill", "job_list", "job_output"]);
    assert!(
        offers[3..].iter().all(|offer| *offer == offers[2]),
        "{offers:?}"
    );
    assert_eq!(offers.len(), 5);
}

fn schema(request: &Request, tool: &str) -> Value {
    let tools = request.json()["tools"].clone();
    let tools = tools.as_array().unwrap();
    let found = tools.iter().find(|one| one["function"]["name"] == tool);
    found.unwrap()["function"]["parameters"].clone()
}

const REASONS: &str = "because-the-moon-is-round";

/// Everything below a directory as text, lossily.
fn everything_in(directory: &std::path::Path, text: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            everything_in(&path, text);
        } else if let Ok(bytes) = std::fs::read(&path) {
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

/// Proves TAFC-2, TAFC-3, TAFC-4.
#[test]
fn reasoning_field_is_stored_nowhere() {
    let server = OpenAi::replies([
        Reply::calls(
            "a",
            &[
                ("read", json!({ "_tafc_think": REASONS, "path": "a.txt" })),
                (
                    "write",
                    json!({ "_tafc_think": REASONS, "_tafc_think_2": { "x": REASONS } }),
                ),
                ("list_tasks", json!({ "_tafc_think": REASONS })),
            ],
        ),
        Reply::raw_calls(
            "b",
            &[(
                "read",
                format!("{{\"_tafc_think\": \"{REASONS}\", \"path\": "),
            )],
        ),
        // The server repairs the arguments once.
        Reply::text(&format!(
            "{{\"_tafc_think\": \"{REASONS}\", \"path\": \"b.txt\"}}"
        )),
        Reply::text("done"),
    ]);
    let home = Home::openai(&server);
    home.write("a.txt", "the old text\n");
    home.write("b.txt", "and there\n");
    home.more_config(
        "[tools.tafc]\nenabled = true\ncomplexity_threshold = 0.0\n[tools.audit]\njsonl = true\n",
    );
    let output = home
        .zeph([
            "-p",
            "look",
            "--output-format",
            "stream-json",
            "--yes",
            "-vv",
        ])
        .env("ZEPH_LOG", "trace")
        .code(0);
    let first = &server.requests()[0];
    let thinking = schema(first, "read");
    let names: Vec<&String> = thinking["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names[0], "_tafc_think");
    assert_eq!(thinking["properties"]["_tafc_think"]["type"], "string");
    assert_eq!(thinking["required"], json!(["path"]));
    let results = results_of(&server.requests()[1].messages());
    assert_has(&results[0].1, &["the old text"]);
    assert_has(&results[1].1, &["only reasoning and no arguments"]);
    assert_has(&results[2].1, &["The task list is empty"]);
    let results = results_of(&server.last().messages());
    assert_has(&results[3].1, &["and there"]);
    // The skipped call has no audit entry.
    let mut tools: Vec<String> = audit(&home.database())
        .into_iter()
        .map(|entry| entry.tool)
        .collect();
    tools.sort();
    assert_eq!(tools, ["list_tasks", "read", "read"]);
    for request in &server.requests()[1..] {
        let body = String::from_utf8_lossy(&request.raw);
        assert!(!body.contains(REASONS), "{body}");
    }
    let mut kept = format!("{}{}", output.stdout, output.stderr);
    everything_in(home.root(), &mut kept);
    assert!(kept.contains("the old text"));
    assert!(!kept.contains(REASONS), "it was kept");
}

/// Proves TAFC-1, TAFC-2, TAFC-5.
#[test]
fn only_complex_native_tools_have_a_think_field() {
    let check = |config: &str, expect: &[&str]| {
        let server = OpenAi::replies([Reply::text("done")]);
        let home = Home::openai(&server);
        home.more_config(config);
        home.zeph(["-p", "look"]).code(0);
        let request = server.last();
        let thinking = offered(&request)
            .into_iter()
            .filter(|tool| schema(&request, tool)["properties"]["_tafc_think"].is_object());
        assert_eq!(thinking.collect::<Vec<_>>(), expect, "{config}");
    };
    check("", &[]);
    // Tools above the default threshold of 0.6, with dependent arguments or many options.
    let complex = [
        "bash",
        "copy_path",
        "edit",
        "find_path",
        "grep",
        "move_path",
        "read_overflow",
        "scheduler",
        "task",
        "update_task",
        "web_scrape",
        "write",
    ];
    check("[tools.tafc]\nenabled = true\n", &complex);
    check(
        "[tools.tafc]\nenabled = true\ncomplexity_threshold = nan\n",
        &complex,
    );
    check(
        "[tools.tafc]\nenabled = true\ncomplexity_threshold = 1.5\n",
        &["edit"],
    );
    check("[tools.tafc]\ncomplexity_threshold = 0.0\n", &[]);
    check(
        "[tools.tafc]\nenabled = true\ncomplexity_threshold = 0.75\n",
        &["edit", "grep", "update_task", "web_scrape"],
    );
}

const FILTER: &str = "[agent.tool_filter]\nenabled = true\ntop_k = 2\nmin_description_words = 0\nalways_on = [\"add_task\"]\n";

/// Proves SCH-1, SCH-2, SCH-5, SCH-6, SCH-7: similar tools are exposed, and stay in their place until
/// `/clear`.
#[test]
fn tools_similar_to_the_prompt_are_exposed() {
    let server = OpenAi::start(|at, _| Reply::text(&format!("answer-{at}")));
    let home = Home::openai(&server);
    let keyless = openai_config(&server.url()).replace("api_key_env = \"TEST_KEY\"\n", "");
    home.config(&format!("{keyless}{FILTER}"));
    let mut terminal = Terminal::start(&home, &[]);
    let mut turn = |words: &str, at: usize| {
        terminal.prompts("");
        terminal.type_keys(&format!("{words}\r"));
        terminal.shows(&format!("answer-{at}"));
        offered(&server.last())
    };
    let first = turn("search the contents of all files by a regex", 0);
    assert_eq!(first.len(), 3, "{first:?}");
    assert!(first.contains(&"add_task".to_owned()), "{first:?}");
    assert!(first.contains(&"grep".to_owned()), "{first:?}");
    let second = turn("rename this directory, then use copy_path", 1);
    assert_eq!(second[..3], first, "exposed tools stay in their place");
    assert!(second.contains(&"move_path".to_owned()), "{second:?}");
    assert!(second.contains(&"copy_path".to_owned()), "{second:?}");
    let third = turn("search the contents of all files by a regex", 2);
    assert_eq!(third, second);
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("Filter: top_k=2, always_on=1, embeddings=0");
    terminal.prompts("");
    terminal.type_keys("/clear\r");
    terminal.shows("A new conversation starts");
    terminal.prompts("");
    terminal.type_keys("search the contents of all files by a regex\r");
    terminal.shows("answer-3");
    assert_eq!(offered(&server.last()), first);
    terminal.leaves();
}

/// Proves SCH-6: exposed tools stay, also when another process resumes the session, until older messages are
/// summarized.
#[test]
fn exposed_tools_are_stored_with_the_session() {
    let server = OpenAi::start(|at, _| Reply::text(&format!("answer-{at}")));
    let home = Home::openai(&server);
    home.more_config(FILTER);
    let turn = |args: &[&str], words: &str| {
        home.zeph([args, &["-p", words]].concat()).code(0);
        offered(&server.last())
    };
    let search = "search the contents of all files by a regex";
    let first = turn(&[], search);
    assert_eq!(first.len(), 3, "{first:?}");
    let second = turn(&["--continue"], "rename this directory, then use copy_path");
    assert_eq!(second[..3], first, "exposed tools stay in their place");
    assert!(second.len() > 3, "{second:?}");
    assert_eq!(turn(&["--continue"], search), second);
    home.zeph(["--continue", "-p", "/compact"])
        .code(0)
        .prints(&["compacted"]);
    assert_eq!(turn(&["--continue"], search), first);
    assert_eq!(
        turn(&["--continue"], "rename this directory, then use copy_path")[..3],
        first
    );
    home.zeph(["--continue", "-p", "/clear"]).code(0);
    assert_eq!(turn(&["--continue"], search), first);
}

/// Proves SCH-3: a hidden tool that the model calls is exposed from then on.
#[test]
fn called_tool_is_exposed() {
    let server = OpenAi::replies([
        Reply::calls("a", &[("list_tasks", json!({}))]),
        Reply::text("done"),
    ]);
    let home = Home::openai(&server);
    home.more_config(FILTER);
    home.zeph(["-p", "search the contents of all files by a regex"])
        .code(0);
    let requests = server.requests();
    let (before, after) = (offered(&requests[0]), offered(&requests[1]));
    assert!(!before.contains(&"list_tasks".to_owned()), "{before:?}");
    assert_eq!(after, [before, vec!["list_tasks".to_owned()]].concat());
}

/// Proves SCH-3: a prompt without known words filters nothing.
#[test]
fn prompt_without_keywords_filters_nothing() {
    let count = |config: &str, words: &str| {
        let server = OpenAi::replies([Reply::text("fine")]);
        let home = Home::openai(&server);
        home.more_config(config);
        home.zeph(["-p", words]).code(0);
        offered(&server.last()).len()
    };
    let all = count("", "xyzzy");
    let on = "[agent.tool_filter]\nenabled = true\ntop_k = 3\n";
    assert_eq!(count(on, "xyzzy"), all);
    assert!(count(on, "read a file") < all);
}

/// Proves SCH-3, SCH-6: for a prompt without known words, the exposed tools stay. Only named or called tools
/// are added, also in a resumed session; a compaction resets the list.
#[test]
fn exposed_tools_stay_for_a_prompt_without_keywords() {
    let server = OpenAi::start(|at, request| {
        let said = request.json().to_string();
        match said.contains("?!") && !said.contains("task list is empty") {
            true => Reply::calls("a", &[("list_tasks", json!({}))]),
            false => Reply::text(&format!("answer-{at}")),
        }
    });
    let home = Home::openai(&server);
    let keyless = openai_config(&server.url()).replace("api_key_env = \"TEST_KEY\"\n", "");
    home.config(&format!("{keyless}{FILTER}"));
    let turn = |args: &[&str], words: &str| {
        home.zeph([args, &["-p", words]].concat()).code(0);
        offered(&server.last())
    };
    let search = "search the contents of all files by a regex";
    let first = turn(&[], search);
    assert_eq!(first.len(), 3, "{first:?}");
    assert_eq!(turn(&["--continue"], "xyzzy"), first);
    let named = turn(&["--continue"], "xyzzy copy_path");
    assert_eq!(named[..3], first);
    assert_eq!(named[3], "copy_path");
    let called = turn(&["--continue"], "?!");
    assert_eq!(called, [&named[..], &["list_tasks".to_owned()]].concat());
    // In one process, with `/compact` in between.
    let mut terminal = Terminal::start(&home, &[]);
    for (words, answer) in [
        (search, "answer-5"),
        ("/compact", "compacted"),
        ("...", "answer-7"),
    ] {
        terminal.prompts("");
        terminal.type_keys(&format!("{words}\r"));
        terminal.shows(answer);
    }
    terminal.leaves();
    assert_eq!(offered(&server.last()), first);
}

const RULES: &str = "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.delete_path]\nrequires = [\"read\", \"list_directory\"]\n";

/// Proves DEP-1, DEP-5: the tool is hidden and refused until all required tools have succeeded.
#[test]
fn tool_is_hidden_until_its_requirements_succeeded() {
    let server = OpenAi::replies([
        Reply::calls("a", &[("read", json!({ "path": "missing.txt" }))]),
        Reply::calls("b", &[("list_directory", json!({ "path": "." }))]),
        Reply::calls("c", &[("delete_path", json!({ "path": "a.txt" }))]),
        Reply::calls("d", &[("read", json!({ "path": "a.txt" }))]),
        Reply::calls("e", &[("delete_path", json!({ "path": "a.txt" }))]),
        Reply::text("done"),
    ]);
    let home = Home::openai(&server);
    home.write("a.txt", "x\n");
    home.more_config(RULES);
    home.zeph(["-p", "tidy up", "--yes"]).code(0);
    let requests = server.requests();
    let has = |at: usize| offered(&requests[at]).contains(&"delete_path".to_owned());
    let seen: Vec<bool> = (0..requests.len()).map(has).collect();
    assert_eq!(seen, [false, false, false, false, true, true]);
    let (before, after) = (offered(&requests[0]), offered(&requests[4]));
    assert_eq!(after[..before.len()], before, "new tools are appended");
    let results = results_of(&server.last().messages());
    assert_has(
        &results[2].1,
        &[
            "policy_blocked",
            "delete_path needs a successful call of read first",
        ],
    );
    assert!(!home.has("a.txt"), "the second call ran");
    let blocked: Vec<_> = audit(&home.database())
        .into_iter()
        .filter(|entry| entry.result == "blocked")
        .collect();
    assert_eq!(blocked.len(), 1);
    assert_eq!(blocked[0].tool, "delete_path");
}

/// Proves DEP-5: it applies across processes and without a model, until `/clear`.
#[test]
fn succeeded_tools_are_stored_with_the_session() {
    let home = Home::new();
    home.config(RULES);
    home.write("a.txt", "x\n");
    home.write("b.txt", "x\n");
    let call = |tool: &str, params: Value, code: i32| {
        home.zeph([
            "tools",
            "call",
            tool,
            &params.to_string(),
            "--session",
            "s",
            "--yes",
        ])
        .code(code)
    };
    let refused = call("delete_path", json!({ "path": "a.txt" }), 3);
    assert_has(&refused.stderr, &["read, list_directory"]);
    assert!(home.has("a.txt"));
    call("read", json!({ "path": "a.txt" }), 0);
    call("delete_path", json!({ "path": "a.txt" }), 3);
    call("list_directory", json!({ "path": "." }), 0);
    call("delete_path", json!({ "path": "a.txt" }), 0);
    assert!(!home.has("a.txt"));
    // Another session starts without successes.
    let other = [
        "tools",
        "call",
        "delete_path",
        r#"{"path": "b.txt"}"#,
        "--session",
        "t",
        "--yes",
    ];
    home.zeph(other).code(3);
    assert!(home.has("b.txt"));
}

/// Proves DEP-3: tools that are always on or named by the user are not hidden; rules that would hide all
/// tools are ignored.
#[test]
fn named_and_always_on_tools_are_not_hidden() {
    let check = |config: &str, words: &str, expect: bool| {
        let server = OpenAi::replies([
            Reply::calls("a", &[("delete_path", json!({ "path": "a.txt" }))]),
            Reply::text("done"),
        ]);
        let home = Home::openai(&server);
        home.write("a.txt", "x\n");
        home.more_config(config);
        home.zeph(["-p", words, "--yes"]).code(0);
        let listed = offered(&server.requests()[0]).contains(&"delete_path".to_owned());
        assert_eq!(
            (listed, home.has("a.txt")),
            (expect, !expect),
            "{config} {words}"
        );
    };
    check(RULES, "tidy up", false);
    check(RULES, "call delete_path now", true);
    let always = format!("{RULES}[agent.tool_filter]\nalways_on = [\"delete_path\"]\n");
    check(&always, "tidy up", true);
    let tools = Home::new()
        .zeph(["tools", "list", "--json", "--all"])
        .code(0)
        .json();
    let mut all = "[tools.dependencies]\nenabled = true\n".to_owned();
    for tool in tools.as_array().unwrap() {
        let id = tool["id"].as_str().or(tool["name"].as_str()).unwrap();
        all.push_str(&format!(
            "[tools.dependencies.rules.{id}]\nrequires = [\"no_such_tool\"]\n"
        ));
    }
    check(&all, "tidy up", true);
}

/// Proves DEP-3a: in mode `explain` the tool list stays the same, and the refusal names the unmet
/// requirements.
#[test]
fn dependency_gate_can_explain_without_hiding() {
    let server = OpenAi::replies([
        Reply::calls("a", &[("delete_path", json!({ "path": "a.txt" }))]),
        Reply::text("done"),
    ]);
    let home = Home::openai(&server);
    home.write("a.txt", "x\n");
    home.more_config(&RULES.replace("enabled = true", "enabled = true\nmode = \"explain\""));
    home.zeph(["-p", "tidy up", "--yes"]).code(0);
    let requests = server.requests();
    assert!(offered(&requests[0]).contains(&"delete_path".to_owned()));
    assert_eq!(offered(&requests[0]), offered(&requests[1]));
    let results = results_of(&server.last().messages());
    assert_has(&results[0].1, &["policy_blocked", "read, list_directory"]);
    assert!(home.has("a.txt"));
}

/// Proves DEP-2: cycles and unknown names are reported at the start, with their members.
#[test]
fn invalid_dependency_rules_are_reported_at_start() {
    let home = Home::new();
    home.write("a.txt", "here\n");
    home.config(
        "[tools.dependencies]\nenabled = true\n\
         [tools.dependencies.rules.read]\nrequires = [\"grep\"]\n\
         [tools.dependencies.rules.grep]\nrequires = [\"read\"]\n\
         [tools.dependencies.rules.write]\nrequires = [\"reed\"]\n",
    );
    let call = ["tools", "call", "read", r#"{"path": "a.txt"}"#, "--yes"];
    let output = home.zeph(call).code(0);
    assert_has(
        &output.stderr,
        &[
            "grep, read require each other",
            "there is no tool \"reed\"; did you mean read?",
        ],
    );
    let write = [
        "tools",
        "call",
        "write",
        r#"{"path": "b.txt", "content": "x"}"#,
        "--yes",
    ];
    home.zeph(write).code(3);
    assert!(!home.has("b.txt"));
}
