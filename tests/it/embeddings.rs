//! Embeddings: their provider, the requested texts, and one request per description.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Request, Terminal, assert_has, execute, openai_config};

const FILTER: &str =
    "[agent.tool_filter]\nenabled = true\ntop_k = 2\nmin_description_words = 0\nalways_on = []\n";

/// Keywords with a meaning. Each row is one dimension of an embedding.
const MEANINGS: [&[&str]; 3] = [
    &["regex", "pattern", "needle"],
    &["delete", "deletes", "remove", "rubbish"],
    &["task"],
];

/// The embedding of a text: the number of keywords per meaning, and a constant one third.
fn vector(text: &str) -> Vec<f32> {
    let text = text.to_lowercase();
    let count = |words: &[&str]| -> f32 {
        let found = words.iter().map(|word| text.matches(word).count());
        u16::try_from(found.sum::<usize>()).unwrap().into()
    };
    let mut vector: Vec<f32> = MEANINGS.iter().map(|words| count(words)).collect();
    vector.push(1.0 / 3.0);
    vector
}

fn is_embedding(request: &Request) -> bool {
    !request.path.contains("chat")
}

/// The response to an embedding request.
fn vectors(request: &Request) -> Reply {
    let inputs = request.json()["input"].as_array().unwrap().clone();
    let vectors = inputs.iter().map(|text| vector(text.as_str().unwrap()));
    let body = if request.path == "/api/embed" {
        json!({ "embeddings": vectors.collect::<Vec<_>>(), "prompt_eval_count": 7 })
    } else {
        let item = |(at, vector)| json!({ "index": at, "embedding": vector });
        let data: Vec<Value> = vectors.enumerate().map(item).collect();
        // Not in the order of the inputs.
        let data: Vec<Value> = data.into_iter().rev().collect();
        json!({ "data": data, "usage": { "prompt_tokens": 7, "total_tokens": 7 } })
    };
    Reply::raw(200, "application/json", body.to_string())
}

/// A server that computes embeddings and responds to all other requests with text.
fn server() -> OpenAi {
    OpenAi::start(|_, request| match is_embedding(request) {
        true => vectors(request),
        false => Reply::text("as you wish"),
    })
}

fn config(url: &str) -> String {
    openai_config(url).replacen("model = ", "embedding_model = \"vec-1\"\nmodel = ", 1)
}

/// The texts of each embedding request.
fn asked(server: &OpenAi) -> Vec<Vec<String>> {
    let requests = server.requests();
    let requests = requests.iter().filter(|request| is_embedding(request));
    let texts = requests.map(|request| request.json()["input"].clone());
    texts
        .map(|texts| serde_json::from_value(texts).unwrap())
        .collect()
}

fn offered(server: &OpenAi) -> Vec<String> {
    let requests = server.requests();
    let chat = requests.iter().rfind(|request| !is_embedding(request));
    let tools = chat.unwrap().json()["tools"].clone();
    let names = tools.as_array().unwrap().iter();
    names
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Proves SCH-2, SCH-4: similar tools are exposed. A description is embedded once per model, across sessions.
/// Stored embeddings equal the received ones bit for bit.
#[test]
fn description_is_embedded_once() {
    let server = server();
    let home = Home::new();
    home.config(&format!("{FILTER}{}", config(&server.url())));
    home.zeph(["-p", "find the needle"]).code(0);
    let first = asked(&server).concat();
    assert_eq!(first[0], "find the needle");
    let descriptions = &first[1..];
    assert!(descriptions.len() > 15, "{descriptions:?}");
    assert!(descriptions.iter().any(|text| text.starts_with("grep: ")));
    let found = offered(&server);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&"grep".to_owned()), "{found:?}");
    let count = asked(&server).len();
    // Another session reuses all embeddings.
    home.zeph(["-p", "throw the rubbish away"]).code(0);
    assert_eq!(asked(&server)[count..], [["throw the rubbish away"]]);
    let found = offered(&server);
    assert!(found.contains(&"delete_path".to_owned()), "{found:?}");
    kept_as_they_came(&home, descriptions);
    // Another model reuses none.
    let other = config(&server.url()).replace("vec-1", "vec-2");
    home.config(&format!("{FILTER}{other}"));
    let count = asked(&server).len();
    home.zeph(["-p", "find the needle"]).code(0);
    assert_eq!(asked(&server)[count..].concat(), first);
    // A changed text would be embedded again; TAFC changes none.
    home.more_config("[tools.tafc]\nenabled = true\ncomplexity_threshold = 0.0\n");
    let count = asked(&server).len();
    home.zeph(["-p", "find the needle"]).code(0);
    assert_eq!(asked(&server)[count..], [["find the needle"]]);
}

#[track_caller]
fn kept_as_they_came(home: &Home, descriptions: &[String]) {
    let kept = crate::rig::vectors(&home.database());
    let mut expect: Vec<(String, Vec<u8>)> = descriptions
        .iter()
        .map(|text| {
            let digest = zeph_tools::audit::chain::hex_digest(text.as_bytes());
            let bytes = vector(text)
                .iter()
                .flat_map(|it| it.to_le_bytes())
                .collect();
            (digest, bytes)
        })
        .collect();
    expect.sort();
    assert_eq!(kept, expect);
}

/// Proves LLM-2, SCH-5: another provider computes the embeddings, as `/status` and `zeph doctor` report. It
/// does not receive the key of the first.
#[test]
fn another_provider_can_embed() {
    let (chat, ollama) = (server(), server());
    let home = Home::new();
    let embed = format!(
        "[[llm.providers]]\nname = \"near\"\ntype = \"ollama\"\nmodel = \"nomic\"\nembedding_model = \"nomic\"\nbase_url = \"{}\"\n",
        ollama.url()
    );
    let keyless = openai_config(&chat.url()).replace("api_key_env = \"TEST_KEY\"\n", "");
    home.config(&format!(
        "llm.embed_provider = \"near\"\n{FILTER}{keyless}{embed}"
    ));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("Filter: top_k=2, always_on=0, embeddings=0 (nomic of near)");
    terminal.prompts("");
    terminal.type_keys("find the needle\r");
    terminal.shows("as you wish");
    let count = asked(&ollama).concat().len();
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows(&format!("embeddings={} (nomic of near)", count - 1));
    terminal.prompts("");
    terminal.type_keys("/cost\r");
    terminal.shows("near (nomic): 1 request, 7 tokens in");
    terminal.prompts("");
    // In the same session only the new prompt is embedded.
    terminal.type_keys("throw the rubbish away\r");
    terminal.until("the second answer", |text| {
        text.matches("as you wish").count() == 2
    });
    terminal.leaves();
    assert_eq!(asked(&ollama)[1..], [["throw the rubbish away"]]);
    assert_eq!(asked(&chat), [[""; 0]; 0]);
    for request in ollama.requests() {
        assert_eq!(request.path, "/api/embed");
        assert_eq!(request.header("authorization"), None);
    }
    let doctor = home.zeph(["doctor"]).run();
    assert_has(
        &doctor.stdout,
        &["embeddings", "near (nomic)", &ollama.url()],
    );
}

/// Proves SCH-5: if embeddings fail, keyword matching is used and one warning is printed. The turn continues,
/// and no embedding is requested until `/clear`.
#[test]
fn failed_embedding_does_not_fail_the_turn() {
    let broken = Arc::new(Mutex::new(true));
    let state = Arc::clone(&broken);
    let server = OpenAi::start(move |at, request| match is_embedding(request) {
        true if *state.lock().unwrap() => Reply::error(404, "model_not_found", "no such model"),
        true => vectors(request),
        false => Reply::text(&format!("answer-{at}")),
    });
    let home = Home::new();
    let keyless = config(&server.url()).replace("api_key_env = \"TEST_KEY\"\n", "");
    home.config(&format!("{FILTER}{keyless}"));
    let mut terminal = Terminal::start(&home, &[]);
    // `at` is the number of the last request of the turn.
    let turn = |terminal: &mut Terminal, words: &str, at: usize| {
        terminal.prompts("");
        terminal.type_keys(&format!("{words}\r"));
        terminal.shows(&format!("answer-{at}"));
        assert_eq!(server.requests().len(), at + 1);
    };
    turn(
        &mut terminal,
        "search the contents of all files by a regex",
        1,
    );
    assert!(offered(&server).contains(&"grep".to_owned()));
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("(keyword search with BM25, because vec-1 of");
    turn(&mut terminal, "search again by a regex", 2);
    *broken.lock().unwrap() = false;
    terminal.prompts("");
    terminal.type_keys("/clear\r");
    terminal.shows("A new conversation starts");
    turn(&mut terminal, "find the needle", 4);
    assert!(offered(&server).contains(&"grep".to_owned()));
    terminal.leaves();
    // In one-shot mode: one warning and the response.
    *broken.lock().unwrap() = true;
    home.config(&format!(
        "{FILTER}{}",
        config(&server.url()).replace("vec-1", "vec-3")
    ));
    let output = home
        .zeph(["-p", "search the contents of all files by a regex"])
        .code(0);
    assert_has(&output.stdout, &["answer-"]);
    let warning = "there are no embeddings, so tools are selected by keywords";
    assert_eq!(
        output.stderr.matches(warning).count(),
        1,
        "{}",
        output.stderr
    );
    assert_has(
        &output.stderr,
        &["correct `embedding_model`", "/v1/embeddings"],
    );
}

/// Proves SCH-4: if stored embeddings have another length, all are computed again in one request.
#[test]
fn embeddings_of_another_length_are_computed_again() {
    let server = server();
    let home = Home::new();
    home.config(&format!("{FILTER}{}", config(&server.url())));
    home.zeph(["-p", "find the needle"]).code(0);
    let all = asked(&server).concat();
    execute(
        &home.database(),
        "UPDATE embedding SET vector = x'0000803f0000' WHERE number % 2 = 0",
    );
    let count = asked(&server).len();
    home.zeph(["-p", "find the needle"]).code(0);
    let again = asked(&server)[count..].concat();
    assert_eq!(again[0], all[0]);
    assert_eq!(again[1..], all[1..]);
    kept_as_they_came(&home, &all[1..]);
    assert!(offered(&server).contains(&"grep".to_owned()));
}

/// Proves SCH-5: an unknown provider name stops the start, even if no embedding is needed. A project file
/// cannot send the user's text to another recipient.
#[test]
fn embedding_provider_is_chosen_only_by_the_user() {
    let server = server();
    let stolen = self::server();
    let home = Home::new();
    let fails = |config: &str, words: &[&str]| {
        home.config(config);
        let output = home.zeph(["-p", "find the needle"]).run();
        assert_ne!(output.code, Some(0));
        assert_has(&output.stderr, words);
        assert_eq!(server.requests().len(), 0);
    };
    let good = config(&server.url());
    fails(
        &format!("llm.embed_provider = \"nobody\"\n{good}"),
        &["there is no provider called \"nobody\"", "config.toml:1"],
    );
    let without = good.replace("embedding_model = \"vec-1\"\n", "");
    let name = without
        .split("name = \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    fails(
        &format!("llm.embed_provider = \"{name}\"\n{without}"),
        &["creates no embeddings", "`embedding_model`"],
    );
    fails(
        &format!(
            "agent.max_cost_usd = 1.0\n{FILTER}{good}prices = {{ input = 1.0, output = 1.0 }}\n[[llm.providers]]\nname = \"dear\"\ntype = \"openai\"\nmodel = \"m\"\nembedding_model = \"e\"\nbase_url = \"{}\"\n[llm]\nembed_provider = \"dear\"\n",
            stolen.url()
        ),
        &["max_cost_usd", "dear"],
    );
    home.config(&format!("{FILTER}{good}"));
    for line in [
        "[llm]\nembed_provider = \"other\"\n".to_owned(),
        format!(
            "[[llm.providers]]\nname = \"other\"\ntype = \"ollama\"\nmodel = \"m\"\nembedding_model = \"m\"\nbase_url = \"{}\"\n",
            stolen.url()
        ),
    ] {
        home.write(".zeph/config.toml", &line);
        let output = home.zeph(["-p", "find the needle"]).run();
        assert_ne!(output.code, Some(0), "{line}");
        assert_has(&output.stderr, &["a project's file may not set it"]);
    }
    assert_eq!(stolen.requests().len() + server.requests().len(), 0);
}

/// Proves NAT-1: facts are found by meaning, not only by keywords. Each is embedded once, and distant facts
/// are not found.
#[test]
fn facts_are_found_by_meaning() {
    let calls = |n: usize| match n {
        0 => Reply::calls(
            "a",
            &[
                (
                    "memory_save",
                    json!({ "content": "A needle is what is looked for." }),
                ),
                (
                    "memory_save",
                    json!({ "content": "Each task is done on a Monday." }),
                ),
            ],
        ),
        1 | 2 => Reply::calls(
            "b",
            &[("memory_search", json!({ "query": "which regex?" }))],
        ),
        _ => Reply::text("done"),
    };
    let counter = std::sync::atomic::AtomicUsize::new(0);
    let server = OpenAi::start(move |_, request| match is_embedding(request) {
        true => vectors(request),
        false => calls(counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst)),
    });
    let home = Home::new();
    home.config(&config(&server.url()));
    home.zeph(["-p", "go", "--yes"]).code(0);
    let sent = server.last().json().to_string();
    assert_eq!(sent.matches("): A needle is what").count(), 2, "{sent}");
    assert!(!sent.contains("): Each task"), "{sent}");
    let asked = asked(&server);
    assert_eq!(asked[0].len(), 3, "{asked:?}");
    assert_eq!(asked[1], ["which regex?"]);
    assert_eq!(asked.len(), 2);
    // Outside a conversation only keywords are compared.
    let query = json!({ "query": "which regex?" }).to_string();
    let found = home
        .zeph(["tools", "call", "memory_search", &query])
        .code(0)
        .stdout;
    assert_has(&found, &["No saved fact"]);
}

/// Proves NAT-1: calls without a model find facts by meaning too, with the provider of `embed_provider`.
/// Without it, or if it fails, keywords are compared.
#[test]
fn call_without_a_model_finds_by_meaning() {
    let server = server();
    let home = Home::new();
    let config = config(&server.url());
    home.config(&config);
    let call = |tool: &str, params: Value| home.zeph(["tools", "call", tool, &params.to_string()]);
    for content in ["rubbish is for Monday", "a task for the day after"] {
        let saved = call("memory_save", json!({ "content": content }));
        saved.code(0);
    }
    let search = || call("memory_search", json!({ "query": "what may I remove" }));
    let none = "No saved fact";
    assert_has(&search().code(0).stdout, &[none]);
    assert_eq!(asked(&server), [[""; 0]; 0]);
    home.config(&format!("llm.embed_provider = \"local\"\n{config}"));
    let found = search().code(0);
    assert_has(&found.stdout, &["rubbish is for Monday"]);
    assert!(!found.stdout.contains("a task"), "{}", found.stdout);
    // Without a key, keywords are compared and a warning is printed.
    let found = search().env("TEST_KEY", "").code(0);
    assert_has(&found.stdout, &[none]);
    assert_has(
        &found.stderr,
        &["falling back to keyword matching", "TEST_KEY"],
    );
}

/// Proves NAT-1: the oldest of 1501 facts is found by meaning. One search computes at most a thousand missing
/// embeddings, each once. A removed fact is not found.
#[test]
fn oldest_fact_is_found_by_meaning() {
    let server = server();
    let home = Home::new();
    let config = config(&server.url());
    home.config(&format!("llm.embed_provider = \"local\"\n{config}"));
    let call = |tool: &str, params: Value| {
        let call = home.zeph(["tools", "call", tool, &params.to_string()]);
        call.code(0).stdout
    };
    let search = || call("memory_search", json!({ "query": "what may I remove" }));
    call("memory_save", json!({ "content": "rubbish is for Monday" }));
    assert_has(&search(), &["rubbish is for Monday"]);
    assert_eq!(asked(&server).concat().len(), 2);
    // The fact is now the oldest of many, in a database without embeddings.
    execute(&home.database(), "DELETE FROM memory_model");
    execute(
        &home.database(),
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1500)
         INSERT INTO memory (content, session, project, saved_at)
         SELECT 'task ' || n || iif(n % 2, ' regex', ''), 's', '/p', n FROM n",
    );
    let before = asked(&server).concat().len();
    let none = "No saved fact";
    assert_has(&search(), &[none]);
    assert_eq!(asked(&server).concat().len(), before + 1001);
    assert_has(&search(), &["rubbish is for Monday"]);
    assert_eq!(asked(&server).concat().len(), before + 1001 + 502);
    assert_has(&search(), &["rubbish is for Monday"]);
    let texts = asked(&server).concat();
    assert_eq!(texts.len(), before + 1001 + 502 + 1);
    let again = texts.iter().filter(|text| text.ends_with("Monday"));
    assert_eq!(again.count(), 2);
    home.zeph(["memory", "rm", "memory_1"]).code(0);
    assert_has(&search(), &[none]);
}
