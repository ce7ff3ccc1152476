//! `/model` and `/resume`: another model for a conversation, or another conversation.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Request, Terminal, execute, session_ids};

/// A provider without a key.
fn provider(name: &str, model: &str, server: &OpenAi) -> String {
    format!(
        "[[llm.providers]]\nname = \"{name}\"\ntype = \"openai\"\nmodel = \"{model}\"\nbase_url = \"{}\"\n",
        server.url()
    )
}

/// The text of the user and the model in a request.
fn said(request: &Request) -> String {
    let messages = request.json()["messages"].clone();
    let messages = messages.as_array().unwrap().iter();
    let texts = messages.filter(|one| one["role"] != "system");
    texts.map(|one| one["content"].to_string() + "\n").collect()
}

fn leave(terminal: Terminal) {
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

fn type_line(terminal: &mut Terminal, line: &str) {
    terminal.prompts("");
    terminal.type_keys(&format!("{line}\r"));
}

/// Proves CMD-1 for `/model`: the conversation continues with its messages at another provider or model; an
/// unusable provider changes nothing. Proves CLI-4c: the status line shows the model.
#[test]
fn conversation_continues_with_another_model() {
    let first = OpenAi::replies([Reply::text("From the first."), Reply::text("First again.")]);
    let second = OpenAi::replies([Reply::text("From the second."), Reply::text("Bigger.")]);
    let home = Home::new();
    home.config(&format!(
        "{}{}[[llm.providers]]\nname = \"keyless\"\ntype = \"claude\"\nmodel = \"m\"\n",
        provider("local", "test-model", &first),
        provider("other", "other-model", &second),
    ));
    let mut terminal = Terminal::start(&home, &[]);
    type_line(&mut terminal, "one");
    terminal.shows("From the first.");
    type_line(&mut terminal, "/model");
    terminal.shows("asked       test-model (local)");
    terminal.shows("other       other-model");
    type_line(&mut terminal, "/model keyless");
    terminal.shows("ANTHROPIC_API_KEY");
    type_line(&mut terminal, "two");
    terminal.shows("First again.");
    type_line(&mut terminal, "/model other");
    terminal.shows("requests go to other-model (other) from now on");
    terminal.shows("other-model · ");
    type_line(&mut terminal, "three");
    terminal.shows("From the second.");
    type_line(&mut terminal, "/model bigger-model");
    terminal.shows("requests go to bigger-model (other) from now on");
    type_line(&mut terminal, "four");
    terminal.shows("Bigger.");
    leave(terminal);
    assert_eq!(first.requests().len(), 2);
    let requests = second.requests();
    let models: Vec<Value> = requests
        .iter()
        .map(|one| one.json()["model"].clone())
        .collect();
    assert_eq!(models, ["other-model", "bigger-model"]);
    let listed = home.zeph(["sessions", "list", "--json"]).code(0).json();
    assert_eq!(listed[0]["model"], "bigger-model");
    assert_eq!(
        said(&requests[1]),
        "\"one\"\n\"From the first.\"\n\"two\"\n\"First again.\"\n\"three\"\n\"From the second.\"\n\"four\"\n"
    );
}

/// Proves CLI-8, CMD-1: the model of a command is one of the provider that the user chose.
#[test]
fn model_of_a_command_belongs_to_the_chosen_provider() {
    let first = OpenAi::replies([]);
    let second = OpenAi::replies([Reply::text("Quickly done.")]);
    let home = Home::new();
    home.config(&format!(
        "{}{}",
        provider("local", "test-model", &first),
        provider("other", "other-model", &second),
    ));
    let folder = home.home().join(".config/zeph/commands");
    std::fs::create_dir_all(&folder).unwrap();
    let command = "---\nmodel: small-model\n---\nBe quick.\n";
    std::fs::write(folder.join("quick.md"), command).unwrap();
    let mut terminal = Terminal::start(&home, &[]);
    type_line(&mut terminal, "/model other");
    terminal.shows("requests go to other-model (other) from now on");
    type_line(&mut terminal, "/quick");
    terminal.shows("Quickly done.");
    leave(terminal);
    assert_eq!(first.requests().len(), 0);
    assert_eq!(second.last().json()["model"], "small-model");
}

/// Proves LLM-12: the configured effort is sent; `/model NAME effort` changes it for the session.
#[test]
fn effort_can_be_changed() {
    let server = OpenAi::start(|n, _| Reply::text(&format!("answer {n}")));
    let home = Home::new();
    home.config(&format!(
        "{}effort = \"low\"\n",
        provider("local", "test-model", &server)
    ));
    let mut terminal = Terminal::start(&home, &[]);
    type_line(&mut terminal, "one");
    terminal.shows("answer 0");
    type_line(&mut terminal, "/model local huge");
    terminal.shows("use one of none, minimal, low, medium, high, xhigh, max");
    type_line(&mut terminal, "/model test-model high");
    terminal.shows("requests go to test-model (local, effort high) from now on");
    type_line(&mut terminal, "two");
    terminal.shows("answer 1");
    type_line(&mut terminal, "/model other-model");
    terminal.shows("requests go to other-model (local) from now on");
    type_line(&mut terminal, "three");
    terminal.shows("answer 2");
    leave(terminal);
    let efforts: Vec<Value> = server
        .requests()
        .iter()
        .map(|one| one.json()["reasoning_effort"].clone())
        .collect();
    assert_eq!(
        efforts,
        [Value::from("low"), Value::from("high"), Value::Null]
    );
    let typo = provider("local", "m", &server) + "effort = \"hihg\"\n";
    home.config(&typo);
    home.zeph(["-p", "hi"])
        .code(2)
        .says(&["\"minimal\"", "did you mean \"high\"?"]);
}

/// Proves CMD-1 for `/resume` with the start of an id. An unknown session, or one that another process uses,
/// changes nothing. A session without messages is not stored.
#[test]
fn another_session_is_resumed() {
    let server = OpenAi::start(|n, _| Reply::text(&format!("answer {n}")));
    let home = Home::new();
    home.config(&provider("local", "test-model", &server));
    home.zeph(["-p", "the old one"]).code(0);
    let id = |home: &Home| {
        let listed = home.zeph(["sessions", "list", "--json"]).code(0).json();
        let ids: Vec<String> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect();
        ids
    };
    let old = id(&home).remove(0);
    let holder = Terminal::start(&home, &["--resume", &old]);
    holder.prompts("");
    let mut terminal = Terminal::start(&home, &[]);
    type_line(&mut terminal, "/resume 00000000");
    terminal.shows("error: ");
    type_line(&mut terminal, &format!("/resume {old}"));
    terminal.shows("in use");
    leave(holder);
    type_line(&mut terminal, "/resume");
    terminal.shows("the old one");
    terminal.type_keys("\x1b");
    terminal.shows("the session stays the same");
    type_line(&mut terminal, &format!("/resume {}", &old[..old.len() - 1]));
    terminal.shows("continues: 2 messages, the old one");
    type_line(&mut terminal, "go on");
    terminal.shows("answer 1");
    leave(terminal);
    assert_eq!(
        said(&server.last()),
        "\"the old one\"\n\"answer 0\"\n\"go on\"\n"
    );
    assert_eq!(id(&home), [old]);
}

/// Proves CLI-4c, CLI-6: after `/resume`, the screen shows the mode, the title and the tasks of the
/// resumed session.
#[test]
fn resumed_session_has_its_own_state_on_the_screen() {
    let task = json!({ "content": "write the parser" });
    let server = OpenAi::replies([
        Reply::text("From the old one."),
        Reply::calls("a", &[("add_task", task)]),
        Reply::text("Planned."),
        Reply::hang(),
    ]);
    let home = Home::new();
    home.config(&provider("local", "test-model", &server));
    home.zeph(["-p", "the old one"]).code(0);
    let old = session_ids(&home.database()).remove(0);
    let chosen = "UPDATE session SET chosen_mode = 'auto-edit'";
    execute(&home.database(), chosen);
    let mut terminal = Terminal::start(&home, &[]);
    type_line(&mut terminal, "plan it");
    terminal.shows("Planned.");
    terminal.shows("Tasks 0/1");
    type_line(&mut terminal, &format!("/resume {old}"));
    terminal.shows("continues: 2 messages, the old one");
    type_line(&mut terminal, "go on");
    terminal.until("the state of the session", |text| {
        text.contains("auto-edit · test-model") && text.matches("Tasks ").count() == 1
    });
    let title = "\x1b]2;zeph: ready: the old one\x07";
    assert!(terminal.raw().contains(title), "{:?}", terminal.raw());
    terminal.type_keys("\x1b");
    terminal.shows("cancelled; the partial response is stored");
    leave(terminal);
}

/// Proves CMD-1, CLI-3: a one-shot turn names the options that switch.
#[test]
fn one_turn_names_the_switching_options() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    for words in ["/model", "/model other", "/resume 0198"] {
        home.zeph(["-p", words])
            .code(1)
            .says(&["--model", "--resume"]);
    }
}
