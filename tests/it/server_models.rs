//! The models of servers: lists, completion, and windows that servers report.

use serde_json::{Value, json};

use crate::rig::{Api, Home, OpenAi, Reply, Terminal, assert_has, openai_config};

fn reply(value: &Value) -> Reply {
    Reply::raw(200, "application/json", value.to_string())
}

fn list(models: &[Value]) -> Reply {
    reply(&json!({ "object": "list", "data": models }))
}

fn other(kind: &str, url: &str) -> String {
    format!(
        "[[llm.providers]]\nname = \"other\"\ntype = \"{kind}\"\nmodel = \"m\"\nbase_url = \"{url}\"\n"
    )
}

/// Proves LLM-13: `zeph models list` asks the server of each provider and marks the current model. A server without a
/// list has a line with the reason.
#[test]
fn models_of_all_servers_are_listed() {
    let first = OpenAi::replies([]);
    let models = [
        json!({"id": "test-model", "max_model_len": 32768}),
        json!({"id": "bigger"}),
    ];
    first.about_models("/v1/models", list(&models));
    let second = OpenAi::replies([]);
    second.about_models(
        "/api/tags",
        reply(&json!({"models": [{"name": "qwen3:8b"}]})),
    );
    let home = Home::new();
    let gone = "[[llm.providers]]\nname = \"gone\"\ntype = \"claude\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1\"\n";
    let config = openai_config(&first.url()) + &other("ollama", &second.url()) + gone;
    home.config(&format!("llm.default = \"local\"\n{config}"));
    let text = home.zeph(["models", "list"]).code(0).stdout;
    assert_has(
        &text,
        &[
            "no model was downloaded",
            "local (openai)\n  * test-model                       32768 tokens\n    bigger\n",
            "other (ollama)\n    qwen3:8b\n",
            "gone (claude)\n  its models are unknown: cannot connect to http://127.0.0.1:1/v1/models",
        ],
    );
    let output = home.zeph(["models", "list", "--json"]).code(0);
    let all = output.json();
    let expect = json!({"name": "test-model", "provider": "local", "context_window": 32768, "current": true});
    assert_eq!(all[0], expect);
    assert_eq!(all.as_array().unwrap().len(), 3);
    assert_has(&output.stderr, &["the models of \"gone\" are unknown"]);
}

/// Proves LLM-13: `/model` lists the server's models and marks the current one; Tab completes names and efforts.
#[test]
fn models_are_listed_and_completed_in_the_terminal() {
    let server = OpenAi::start(|_, request| {
        Reply::text(&format!(
            "from {}",
            request.json()["model"].as_str().unwrap()
        ))
    });
    let models = ["test-model", "model-of-tomorrow", "another"].map(|name| json!({ "id": name }));
    server.about_models("/v1/models", list(&models));
    let home = Home::openai(&server);
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("/model\r");
    terminal.shows("  * test-model\n    model-of-tomorrow\n    another\n");
    terminal.prompts("");
    terminal.type_keys("/model tomo\t");
    terminal.prompts("/model model-of-tomorrow");
    terminal.type_keys("hi\t");
    terminal.prompts("/model model-of-tomorrow high");
    terminal.type_keys("\r");
    terminal.shows("requests go to model-of-tomorrow (local, effort high) from now on");
    terminal.prompts("");
    terminal.type_keys("hello\r");
    terminal.shows("from model-of-tomorrow");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// The size of the window that `/status` shows after one turn.
fn window(config: &str) -> String {
    let home = Home::new();
    home.config(config);
    // The window matters for long requests only.
    home.write("AGENTS.md", &"Be brief.\n".repeat(1800));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("hello\r");
    terminal.shows("Hello.");
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows(" %), 2 messages");
    terminal.prompts("");
    let text = terminal.text();
    let line = text
        .lines()
        .find(|line| line.starts_with("Context "))
        .unwrap();
    let after = line.split(" of ").nth(1).unwrap();
    after.split(' ').next().unwrap().to_owned()
}

/// Proves LLM-13: a reported window is used, unless one is configured. A server that does not answer costs little.
#[test]
fn reported_context_window_is_used() {
    let props = json!({"default_generation_settings": {"n_ctx": 24576}});
    let show = json!({"model_info": {"qwen3.context_length": 40960}});
    let entry = |key: &str, tokens: usize| list(&[json!({ "id": "m", key: tokens })]);
    for (kind, path, answer, more, expect) in [
        (
            "openai",
            "/v1/models",
            entry("max_model_len", 8192),
            "",
            "8192",
        ),
        (
            "openai",
            "/v1/models",
            entry("context_length", 65536),
            "",
            "65536",
        ),
        ("openai", "/props", reply(&props), "", "24576"),
        (
            "openai",
            "/v1/models",
            entry("max_model_len", 8192),
            "context_window = 9000\n",
            "9000",
        ),
        ("openai", "/none", Reply::hang(), "", "128000"),
        ("openai", "/v1/models", Reply::hang(), "", "128000"),
    ] {
        let server = OpenAi::start(|_, _| Reply::text("Hello."));
        server.about_models(path, answer);
        let found = window(&format!("{}{more}", other(kind, &server.url())));
        assert_eq!(found, expect, "{kind} {path} {more}");
    }
    let api = Api::Ollama;
    let server = OpenAi::start(move |_, _| api.text("Hello."));
    server.about_models("/api/show", reply(&show));
    assert_eq!(window(&other("ollama", &server.url())), "40960");
    assert_eq!(server.last().json()["options"]["num_ctx"], 40960);
}

/// Proves LLM-13, AGT-4: the reported window limits the conversation from its first large request on, in the turn that
/// learns it and in the next process.
#[test]
fn reported_window_is_known_before_compaction() {
    const ROUNDS: usize = 4;
    let server = OpenAi::start(|n, request| {
        let path = json!({ "path": format!("{n}.txt") });
        let reply = match n < ROUNDS {
            true => Api::Ollama.call("", "", "read", &path),
            false => Api::Ollama.text("Done."),
        };
        reply.usage(request.raw.len() / 4)
    });
    let info = json!({"model_info": {"qwen3.context_length": 131_072}});
    server.about_models("/api/show", reply(&info));
    let home = Home::new();
    home.config(&other("ollama", &server.url()));
    for n in 0..ROUNDS {
        let line = format!("file {n} has many short words on each of its lines\n");
        home.write(&format!("{n}.txt"), &line.repeat(500));
    }
    for (prompt, messages) in [("read the files", 9), ("and now", 11)] {
        let args = ["--yes", "--continue", "--output-format", "json"];
        let output = home.zeph(args).stdin(prompt).code(0);
        assert_eq!(output.json()["stop_reason"], "done", "{output}");
        assert!(!output.stderr.contains("compacted"), "{output}");
        let last = server.last();
        let text = last.json()["messages"].to_string();
        assert!(text.len() > ROUNDS * 24_000, "{}", text.len());
        assert!(!text.contains("moved out of the context"), "{prompt}");
        // The system prompt, and all messages so far.
        assert_eq!(last.messages().len(), messages + 1, "{prompt}");
        assert_eq!(last.json()["options"]["num_ctx"], 131_072);
    }
}

/// Proves LLM-13: within a session, the server is asked for its models once; `/model` and the completion share the list.
#[test]
fn list_of_models_is_cached() {
    let server = OpenAi::start(|_, request| match request.path.as_str() {
        "/v1/models" => list(&[
            json!({ "id": "test-model" }),
            json!({ "id": "second-model" }),
        ]),
        _ => Reply::text("Hello."),
    })
    .with_scripted_models();
    let home = Home::openai(&server);
    let mut terminal = Terminal::start(&home, &[]);
    for _ in 0..2 {
        terminal.prompts("");
        terminal.type_keys("/model\r");
        terminal.shows("    second-model\n");
    }
    terminal.prompts("");
    terminal.type_keys("/model sec\t");
    terminal.prompts("/model second-model");
    terminal.type_keys("\r");
    terminal.shows("requests go to second-model (local) from now on");
    assert_eq!(terminal.leaves().0.code(), Some(0));
    let requests = server.requests();
    let lists = requests
        .iter()
        .filter(|request| request.path == "/v1/models");
    assert_eq!(lists.count(), 1);
}
