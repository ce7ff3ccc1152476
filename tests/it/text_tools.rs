//! Text tools: calls in blocks of the response, for models without tool calls, through the same gates.

use serde_json::{Value, json};

use crate::rig::{
    APIS, Api, Home, OpenAi, Reply, Request, Terminal, assert_has, audit, results_of, session_ids,
};

/// A home whose provider replays these texts and supports no tool calls.
fn scripted(texts: &[&str]) -> Home {
    let home = Home::new();
    play(&home, texts);
    home
}

fn play(home: &Home, texts: &[&str]) {
    let steps: Vec<_> = texts.iter().map(|text| json!({ "text": text })).collect();
    let file = home.home().join("scenario.json");
    std::fs::write(&file, json!({ "steps": steps }).to_string()).unwrap();
    let file = file.display();
    home.config(&format!(
        "[[llm.providers]]\nname = \"script\"\ntype = \"scripted\"\nscenario = {:?}\ntool_use = false\n",
        file.to_string()
    ));
}

/// A home with an Ollama provider that supports no tool calls.
fn ollama(server: &OpenAi, more: &str) -> Home {
    let home = Home::new();
    home.config(&format!("{more}\n{}", config(Api::Ollama, server)));
    home
}

fn config(api: Api, server: &OpenAi) -> String {
    format!("{}tool_use = false\n", api.config("local", &server.url()))
}

/// The role and text of each message of a request.
fn said(request: &Request) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = request.messages();
    let pairs = messages
        .iter()
        .map(|message| (text(&message["role"]), text(&message["content"])));
    pairs.collect()
}

/// Proves LLM-8, LLM-7, D-3: blocks of commands and of JSON run in order; results are sent as user messages;
/// the request has no native tools.
#[test]
fn blocks_run_and_their_results_are_sent() {
    let answer = "I look.\n\n```bash\necho from-the-tool-$((40 + 2)) > a; cat a\n```\n\nAnd read:\n\
                  ```json\n{\"tool_id\": \"read\", \"params\": {\"path\": \"a\"}}\n```\n";
    let server = OpenAi::start(move |n, _| match n {
        0 => Api::Ollama.text(answer),
        _ => Api::Ollama.text("Done: 42."),
    });
    let home = ollama(&server, "");
    let output = home.zeph(["--yes", "-p", "go", "--output-format", "json"]);
    let output = output.code(0).json();
    assert_eq!(output["text"], "Done: 42.", "{output:#}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        let body = request.json();
        assert!(body.get("tools").is_none(), "{body:#}");
        assert!(!String::from_utf8_lossy(&request.raw).contains("tool_calls"));
        let system = &said(request)[0].1;
        assert_has(
            system,
            &["You are Zeph", "```bash\n", "- read(path: string"],
        );
    }
    let said = said(&requests[1]);
    let roles: Vec<_> = said.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!(said[2].1, answer);
    let results = &said[3].1;
    assert!(results.starts_with("[tool result: bash]\n"), "{results}");
    assert_has(results, &["from-the-tool-42", "\n\n[tool result: read]\n"]);
    let ran: Vec<_> = audit(&home.database())
        .into_iter()
        .map(|it| it.tool)
        .collect();
    assert_eq!(ran, ["bash", "read"]);
}

/// Proves LLM-8, D-24: blocks that are only examples do not run.
#[test]
fn decoys_do_not_run() {
    let decoys = [
        "Run this:\n\n> ```bash\n> touch ran\n> ```",
        "- first:\n\n  ```bash\n  touch ran\n  ```",
        "````md\n```bash\ntouch ran\n```\n````",
        "~~~bash\ntouch ran\n~~~",
        "<!--\n```bash\ntouch ran\n```\n-->",
        "```sh\ntouch ran\n```",
        "```bash\ntouch ran",
        "So {\"tool_id\": \"bash\", \"params\": {\"command\": \"touch ran\"}}",
        "```json\n{\"tool_id\": \"no_such_tool\", \"params\": {\"command\": \"touch ran\"}}\n```",
    ];
    for decoy in decoys {
        let home = scripted(&[decoy]);
        let output = home.zeph(["--yes", "-p", "go"]).code(0);
        assert_eq!(output.stdout, format!("{decoy}\n"));
        assert!(!home.has("ran"), "{decoy}");
        assert_eq!(audit(&home.database()).len(), 0, "{decoy}");
    }
}

/// Proves LLM-8: for an invalid JSON call, the model reads the error, once.
#[test]
fn malformed_json_gives_a_feedback_block() {
    for answer in [
        "```json\n{\"tool_id\": \"bash\", \"params\": {\"command\": \"touch ran\"\n```",
        "{\"tool_id\": \"bash\", \"params\": {\"command\": \"touch ran\"",
        "```scrape\nhttps://example.org\n```",
    ] {
        let server = OpenAi::start(move |n, _| match n {
            0 => Api::Ollama.text(answer),
            _ => Api::Ollama.text("Well."),
        });
        let home = ollama(&server, "[tools.retry]\nbudget_secs = 0\n");
        home.zeph(["--yes", "-p", "go"]).code(0).prints(&["Well."]);
        let (role, result) = said(&server.last()).pop().unwrap();
        assert_eq!(role, "user");
        let tool = if answer.contains("scrape") {
            "web_scrape"
        } else {
            "bash"
        };
        assert!(
            result.starts_with(&format!("[tool result: {tool}, failed]\n")),
            "{result}"
        );
        assert_has(
            &result,
            &[
                "[tool_error]",
                "category: invalid_parameters",
                "not valid JSON",
                "retryable:",
            ],
        );
        assert_eq!(result.matches("[tool result").count(), 1, "{result}");
        assert!(!home.has("ran"));
        assert_eq!(audit(&home.database()).len(), 1);
    }
}

/// Proves LLM-8, EXE-20, PERM-2: at each entry point the gates apply to calls in a text.
#[test]
fn gates_apply_to_text_calls() {
    let texts = ["```bash\ntouch ran\n```", "Refused."];
    let deny = "[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"\n";
    let check = |home: &Home, category: &str| {
        assert!(!home.has("ran"));
        let entries = audit(&home.database());
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(entries[0].result, "blocked");
        assert_eq!(entries[0].call["command"], "touch ran");
        assert_eq!(entries[0].error_category.as_deref(), Some(category));
    };
    for args in [
        &["-p", "go"][..],
        &["run", "go"],
        &["-p", "go", "--output-format", "stream-json"],
    ] {
        let home = scripted(&texts);
        home.zeph(args).run();
        check(&home, "confirmation_required");
        let home = scripted(&texts);
        home.more_config(deny);
        home.zeph(args).arg("--yes").run();
        check(&home, "policy_blocked");
    }
    let home = scripted(&texts);
    home.more_config(deny);
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("Refused.");
    terminal.prompts("");
    check(&home, "policy_blocked");
}

/// Proves LLM-8, LLM-6: a conversation continues in another process, and each request starts with the
/// previous one, over every API that supports requests without tools.
#[test]
fn text_conversation_continues_in_another_process() {
    for api in APIS {
        let server = OpenAi::start(move |n, _| match n % 3 {
            2 => api.text(&format!("Done with \"{n}\".")),
            _ => api.text(&format!(
                "I look.\n```bash\necho result-$(({n} + 1000))\n```"
            )),
        });
        let home = Home::new();
        home.config(&config(api, &server));
        home.zeph(["--yes", "-p", "one"]).code(0);
        home.zeph(["--yes", "--continue", "-p", "two"]).code(0);
        home.zeph(["--yes", "--continue", "-p", "three"]).code(0);
        let requests = server.requests();
        assert_eq!(requests.len(), 9, "{api:?}");
        let bodies: Vec<String> = requests
            .iter()
            .map(|request| {
                let body = String::from_utf8(request.raw.clone()).unwrap();
                body.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
            })
            .collect();
        for pair in bodies.windows(2) {
            // Without tools, the messages are the end of the request.
            let prefix = pair[0].strip_suffix("]}").unwrap();
            assert!(
                pair[1].starts_with(prefix),
                "{api:?}:\n{prefix}\n{}",
                pair[1]
            );
        }
        let last = bodies.last().unwrap();
        for result in [1000, 1001, 1003, 1004, 1006, 1007] {
            let result = format!("result-{result}");
            assert_eq!(
                last.matches(&result).count(),
                1,
                "{api:?}: {result} in {last}"
            );
        }
        for word in ["tool_use", "tool_call", "function_call", "tool_choice"] {
            assert!(!last.contains(word), "{api:?}: {word} in {last}");
        }
    }
}

/// Proves LLM-8: a session switches between native calls and text calls; in both, each call has one result.
#[test]
fn session_switches_between_native_and_text_calls() {
    let native = OpenAi::start(|n, _| match n {
        0 => Reply::answer(
            "I look.",
            &[(
                "call_1".to_owned(),
                "bash",
                json!({ "command": "echo native-$((1 + 1))" }).to_string(),
            )],
        ),
        1 => Reply::text("Native done."),
        _ => Reply::text("Back."),
    });
    let text = OpenAi::start(|n, _| match n {
        0 => Api::Ollama.text("Me too.\n```bash\necho text-$((2 + 2))\n```"),
        _ => Api::Ollama.text("Text done."),
    });
    let home = Home::openai(&native);
    home.zeph(["--yes", "-p", "one"]).code(0);
    home.config(&config(Api::Ollama, &text));
    home.zeph(["--yes", "--continue", "-p", "two"])
        .code(0)
        .prints(&["Text done."]);
    let sent = said(&text.last());
    let words: Vec<_> = sent[1..].iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!(words[0], "one");
    assert_eq!(words[1], "I look.\n\n```bash\necho native-$((1 + 1))\n```");
    assert_has(words[2], &["[tool result: bash]\n", "native-2"]);
    assert_eq!(
        &words[3..6],
        [
            "Native done.",
            "two",
            "Me too.\n```bash\necho text-$((2 + 2))\n```"
        ]
    );
    assert_has(words[6], &["[tool result: bash]\n", "text-4"]);
    home.config(&crate::rig::openai_config(&native.url()));
    home.zeph(["--yes", "--continue", "-p", "three"])
        .code(0)
        .prints(&["Back."]);
    let results = results_of(&native.last().messages());
    assert_eq!(results.len(), 2, "{results:?}");
    assert_has(&results[0].1, &["native-2"]);
    assert_has(&results[1].1, &["text-4"]);
    assert_eq!(session_ids(&home.database()).len(), 1);
}

/// Proves LLM-8: if calls are not allowed, blocks are text.
#[test]
fn last_response_of_a_capped_turn_calls_nothing() {
    let home = scripted(&["```bash\necho a\n```", "```bash\ntouch ran\n```"]);
    home.more_config("[agent]\nmax_tool_iterations = 1\n");
    let output = home.zeph(["--yes", "-p", "go"]).run();
    assert!(!home.has("ran"), "{output}");
    assert_eq!(audit(&home.database()).len(), 1);
}

/// A scenario for a provider without tools has its calls in its texts.
#[test]
fn scenario_with_native_calls_requires_a_provider_with_tools() {
    let home = scripted(&["x"]);
    let file = home.home().join("scenario.json");
    let steps = json!({ "steps": [{ "text": "x" }, { "calls": [{ "tool": "bash" }] }] });
    std::fs::write(file, steps.to_string()).unwrap();
    home.zeph(["-p", "go"])
        .code(1)
        .says(&["step 2 has `calls`", "tool_use = false"]);
}
