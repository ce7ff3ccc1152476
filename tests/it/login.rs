//! `zeph login`, `zeph logout`, and the dialog of the first start.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::rig::{Api, Home, OpenAi, Reply, Request, Terminal, assert_has, openai_config};
use crate::tools_call::call;

/// The key that the servers accept.
const GOOD: &str = "sk-good-0123456789abcdefghij";
/// A key that they refuse.
const BAD: &str = "sk-bad-abcdefghij0123456789";

/// Environment variables of a machine without any provider. The servers on this machine are not searched.
fn nothing_here(home: &Home, args: &[&str]) -> crate::rig::Zeph {
    home.zeph(args)
        .env("ZEPH_LLM_LOCAL_SERVERS", "http://127.0.0.1:1")
}

/// A server that lists two models and responds with `text`, for requests with the good key only.
fn vendor(api: Api, text: &'static str) -> OpenAi {
    let script = move |_, request: &Request| match request.path.as_str() {
        _ if api.key(request) != Some(GOOD) => api.error(401, "authentication_error", "bad key"),
        path if path.starts_with("/v1/models") => models(&["model-one", "model-two"]),
        path if path == api.path() => api.text(text),
        _ => Reply::error(404, "not_found", "no such path"),
    };
    OpenAi::start(script).with_scripted_models()
}

/// A server on this machine that takes no key.
fn local(text: &'static str) -> OpenAi {
    let script = move |_, request: &Request| match request.path.as_str() {
        "/v1/models" => models(&["tiny-model", "other-model"]),
        "/v1/chat/completions" => Reply::text(text),
        _ => Reply::error(404, "not_found", "no such path"),
    };
    OpenAi::start(script).with_scripted_models()
}

fn models(names: &[&str]) -> Reply {
    let data: Vec<Value> = names.iter().map(|name| json!({ "id": name })).collect();
    let list = json!({ "object": "list", "data": data });
    Reply::raw(200, "application/json", list.to_string())
}

fn config(home: &Home) -> String {
    std::fs::read_to_string(home.config_file()).unwrap_or_default()
}

/// The records of stored keys.
fn records(home: &Home) -> Vec<PathBuf> {
    let folder = home.data().join("zeph/provider-keys");
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Requests for responses, without those for lists of models.
fn asked(server: &OpenAi, api: Api) -> Vec<Request> {
    let mut requests = server.requests();
    requests.retain(|request| request.path == api.path());
    requests
}

/// Proves CLI-9, LLM-2: a piped key is tested, stored in a private file, used, shown by `doctor` without its value, and
/// removed by `logout`.
#[test]
fn piped_key_is_tested_stored_used_and_removed() {
    let server = vendor(Api::Claude, "Hello from the vendor.");
    let url = server.url();
    let home = Home::new();
    let at_server = |args: &[&str]| nothing_here(&home, args).env("ANTHROPIC_BASE_URL", &url);
    let output = at_server(&["login", "anthropic", "--model", "model-two"])
        .stdin(format!("{GOOD}\n"))
        .code(0);
    assert_has(
        &output.stderr,
        &[
            &format!("{url} responds: 2 models"),
            &format!("stored the key of {url} in the file "),
            "added the provider \"claude\" with the model model-two to ",
        ],
    );
    let [record] = records(&home).try_into().unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&record), mode(record.parent().unwrap())),
        (0o600, 0o700)
    );
    assert_has(&config(&home), &["model = \"model-two\"", &url]);
    assert!(!config(&home).contains("sk-"), "{}", config(&home));

    let answer = nothing_here(&home, &["-p", "hello"]).code(0);
    assert_eq!(answer.stdout, "Hello from the vendor.\n");
    let requests = asked(&server, Api::Claude);
    assert_eq!(Api::Claude.key(requests.last().unwrap()), Some(GOOD));
    let doctor = nothing_here(&home, &["doctor"]).code(0).stdout;
    let line = doctor.lines().find(|line| line.contains("provider "));
    assert_has(line.unwrap(), &["the key is in the file ", "provider-keys"]);
    for text in [&output.stdout, &output.stderr, &answer.stderr, &doctor] {
        assert!(!text.contains(GOOD), "{text}");
    }

    let output = nothing_here(&home, &["logout", "claude"]).code(0);
    assert_eq!(output.stdout, format!("removed the key of {url}\n"));
    assert_eq!(records(&home).len(), 0);
    let gone = nothing_here(&home, &["logout"]).code(1);
    gone.says(&["no key is stored"]);
    let gone = nothing_here(&home, &["logout", "claude"]).code(1);
    assert_eq!(gone.stdout, "");
    gone.says(&[&format!("error: no key of {url} is stored")]);
    nothing_here(&home, &["-p", "hello"])
        .code(1)
        .says(&["bad key"]);
}

/// Proves CLI-9: a refused key changes nothing.
#[test]
fn refused_key_is_not_stored() {
    let server = vendor(Api::Chat, "unused");
    let home = Home::new();
    let output = nothing_here(&home, &["login", "openai"])
        .env("OPENAI_BASE_URL", &server.url())
        .stdin(BAD)
        .code(1);
    assert_has(&output.stderr, &["not stored", "the server refused it"]);
    assert!(!output.stderr.contains(BAD), "{output}");
    assert_eq!((config(&home).as_str(), records(&home).len()), ("", 0));
    for (key, words) in [("", "the key is empty"), ("two words", "not one word")] {
        nothing_here(&home, &["login", "openai"])
            .stdin(key)
            .code(2)
            .says(&[words]);
    }
    // A server that does not respond stores nothing either.
    nothing_here(&home, &["login", "http://127.0.0.1:1"])
        .stdin(GOOD)
        .code(1)
        .says(&["not tested and not stored", "127.0.0.1:1"]);
    assert_eq!(records(&home).len(), 0);
}

/// Proves CLI-9, LLM-2: a variable of the environment takes precedence, and a key is sent to its server only.
#[test]
fn variable_takes_precedence_and_key_belongs_to_one_server() {
    let server = OpenAi::start(|_, request| match request.path.as_str() {
        "/v1/models" => models(&["test-model"]),
        _ => Reply::text("ok"),
    })
    .with_scripted_models();
    let home = Home::openai(&server);
    home.zeph(["login", "local"]).stdin(GOOD).code(0);
    let key_of = |test_key: &str| {
        home.zeph(["-p", "hello"]).env("TEST_KEY", test_key).code(0);
        Api::Chat.key(&server.last()).map(str::to_owned)
    };
    assert_eq!(key_of(crate::rig::KEY).as_deref(), Some(crate::rig::KEY));
    assert_eq!(key_of("").as_deref(), Some(GOOD));
    let doctor = home.zeph(["doctor"]).code(0).stdout;
    assert_has(&doctor, &["the key is from TEST_KEY"]);
    // The same provider at another server has no key.
    let other = OpenAi::start(|_, _| Reply::text("ok"));
    home.config(&openai_config(&other.url()));
    home.zeph(["-p", "hello"])
        .env("TEST_KEY", "")
        .code(1)
        .says(&["it needs a key", "zeph login local", "TEST_KEY"]);
    assert_eq!(other.requests().len(), 0);
}

/// Proves CLI-9, SH-20a: no tool and no command reads a stored key, and no output shows it.
#[test]
fn stored_key_is_hidden_from_tools_and_redacted() {
    let server = vendor(Api::Chat, "unused");
    let home = Home::new();
    home.config(&format!(
        "[tools.file]\nallowed_paths = [{:?}]\n",
        home.root().display().to_string()
    ));
    nothing_here(&home, &["login", &server.url(), "--name", "gate"])
        .stdin(GOOD)
        .code(0);
    let [record] = records(&home).try_into().unwrap();
    let path = record.display().to_string();
    assert!(std::fs::read_to_string(&record).unwrap().contains(GOOD));
    let refused = call(&home, "read", &json!({ "path": path }));
    assert_eq!(refused["success"], false, "{refused:#}");
    let refused = call(&home, "bash", &json!({ "command": format!("cat {path}") }));
    assert_eq!(refused["error_category"], "policy_blocked", "{refused:#}");
    // The path is built by the script, so that only the OS sandbox can refuse the read.
    home.write(
        "find.sh",
        "find \"$1\" -path '*provider*' -type f -exec cat {} +; echo end\n",
    );
    let root = home.root().display().to_string();
    let (first, rest) = root.split_at(root.len() / 2);
    let script = format!("p='{first}'; q='{rest}'; bash find.sh \"$p$q\"");
    let found = call(&home, "bash", &json!({ "command": script }));
    assert_has(&found.to_string(), &["end"]);
    assert!(!found.to_string().contains("sk-good"), "{found:#}");
    // A copy that the user made is readable, and the key in it is redacted.
    home.write("copy.txt", &format!("the key is {GOOD}.\n"));
    for (tool, params) in [
        ("read", json!({ "path": "copy.txt" })),
        ("bash", json!({ "command": "cat copy.txt" })),
        ("grep", json!({ "pattern": "the key", "path": "." })),
    ] {
        let form = call(&home, tool, &params);
        assert_has(&form.to_string(), &["the key is"]);
        assert!(!form.to_string().contains(GOOD), "{tool}: {form:#}");
    }
}

/// Proves CLI-9: a name that cannot be given to the provider is refused before the key is tested or stored.
#[test]
fn name_that_cannot_be_given_is_refused_before_the_key_is_stored() {
    let (first, second) = (vendor(Api::Chat, "unused"), vendor(Api::Chat, "unused"));
    let home = Home::new();
    let login = |url: &str, name: &str| {
        let login = nothing_here(&home, &["login", url, "--name", name]);
        login.stdin(GOOD)
    };
    login(&first.url(), "gate").code(0);
    let before = (config(&home), records(&home));
    let taken = login(&second.url(), "gate").code(2);
    taken.says(&["\"gate\"", "another provider has this name"]);
    assert_eq!(second.requests().len(), 0);
    let renamed = login(&first.url(), "other").code(2);
    renamed.says(&["is configured as \"gate\"", "leave out --name"]);
    assert_eq!((config(&home), records(&home)), before);
    login(&first.url(), "gate").code(0);
}

/// Proves CLI-9: unknown names and missing arguments are usage errors that name the choices.
#[test]
fn unknown_provider_names_the_choices() {
    let home = Home::new();
    nothing_here(&home, &["login", "antropic"])
        .stdin(GOOD)
        .code(2)
        .says(&["\"antropic\"", "anthropic, openai, local", "URL"]);
    let piped = nothing_here(&home, &["login"]).stdin(GOOD).code(2);
    piped.says(&["name the provider", "zeph login anthropic < FILE"]);
    nothing_here(&home, &["login", "local"])
        .code(1)
        .says(&["no server with a model responds", "http://127.0.0.1:1"]);
}

/// Proves CLI-9: an Ollama is recognized, and its model that calls tools is chosen. Other providers and comments stay.
#[test]
fn login_local_adds_the_detected_server() {
    let server = OpenAi::start(|_, request| {
        let json = |value: Value| Reply::raw(200, "application/json", value.to_string());
        match request.path.as_str() {
            "/api/version" => json(json!({ "version": "0.9" })),
            "/api/tags" => json(json!({ "models": [{ "name": "plain" }, { "name": "tooled" }] })),
            "/api/show" if request.json()["model"] == "tooled" => {
                json(json!({ "capabilities": ["completion", "tools"] }))
            }
            "/api/show" => json(json!({ "capabilities": ["completion"] })),
            "/api/chat" => Api::Ollama.text("Hello from Ollama."),
            _ => models(&["plain"]),
        }
    })
    .with_scripted_models();
    let home = Home::new();
    home.config("# my comment\n[agent]\nmax_reflections = 2 # few\n");
    let output = home
        .zeph(["login", "local"])
        .env(
            "ZEPH_LLM_LOCAL_SERVERS",
            &format!("http://127.0.0.1:1,{}", server.url()),
        )
        .code(0);
    output.says(&["added the provider \"ollama\" with the model tooled"]);
    let text = config(&home);
    assert!(
        text.starts_with("# my comment\n[agent]\nmax_reflections = 2 # few\n"),
        "{text}"
    );
    assert_has(
        &text,
        &["type = \"ollama\"", "model = \"tooled\"", &server.url()],
    );
    let answer = home.zeph(["-p", "hello"]).code(0);
    assert_eq!(answer.stdout, "Hello from Ollama.\n");
    // A second provider does not become the default.
    let second = vendor(Api::Chat, "unused");
    let output = home
        .zeph(["login", &second.url(), "--name", "gate"])
        .stdin(GOOD)
        .code(0);
    output.says(&[
        "ollama stays the default",
        "zeph config set llm.default gate",
    ]);
    assert!(
        config(&home).starts_with(text.trim_end()),
        "{}",
        config(&home)
    );
}

/// Proves CLI-9: without a provider, a run without a terminal prints the ways to proceed, and never the dialog.
#[test]
fn dialog_never_appears_without_a_terminal() {
    let server = local("unused");
    let home = Home::new();
    let here = |args: &[&str]| home.zeph(args).env("ZEPH_LLM_LOCAL_SERVERS", &server.url());
    let one_shot = here(&["-p", "hello"]).code(1);
    let piped = here(&[]).stdin("hello").code(1);
    for output in [&one_shot, &piped] {
        assert_has(
            &output.stderr,
            &[
                "no provider is configured",
                "\n  1. zeph login ",
                "\n     export ANTHROPIC_API_KEY",
                "\n  2. start Ollama",
                "\n     zeph login URL",
                "\n  3. zeph demo",
            ],
        );
    }
    for output in [
        one_shot,
        piped,
        here(&["acp"]).run(),
        here(&["mcp", "serve"]).run(),
    ] {
        assert!(!output.to_string().contains("Number (Enter"), "{output}");
    }
    assert_eq!(server.requests().len(), 0);
}

/// A session in an empty home at a terminal.
fn first_start(home: &Home, env: &[(&str, &str)]) -> Terminal {
    std::fs::remove_dir_all(home.home().join(".config")).unwrap();
    let fixed = [("OLLAMA_HOST", "127.0.0.1:1")];
    let env: Vec<_> = fixed
        .iter()
        .chain(env)
        .map(|(name, value)| (*name, Some(*value)))
        .collect();
    Terminal::under(home, &[], &env)
}

/// Waits until the last line is a prompt that begins with `text`.
#[track_caller]
fn asks(terminal: &Terminal, text: &str) {
    terminal.until(&format!("the prompt {text:?}"), |screen| {
        let last = screen.trim_end().lines().last();
        last.is_some_and(|line| line.starts_with(text))
    });
}

/// Proves CLI-9: with a server on this machine, an empty home and the first response are one key apart, and take less
/// than a minute. The next start has no dialog.
#[test]
fn first_start_with_a_local_server_needs_one_key() {
    let start = Instant::now();
    let server = local("Hello from this machine.");
    let home = Home::new();
    let servers = format!("http://127.0.0.1:1,{}", server.url());
    let env = [("ZEPH_LLM_LOCAL_SERVERS", servers.as_str())];
    let mut terminal = first_start(&home, &env);
    terminal.shows("Zeph needs a model.");
    terminal.shows(&format!(
        "1  Server with OpenAI's API at {} (tiny-model, 2 models)",
        server.url()
    ));
    terminal.shows("Number (Enter for 1, q to leave): ");
    terminal.type_keys("9\r");
    terminal.shows("type a number from 1 to 4, or q");
    asks(&terminal, "Number (Enter");
    terminal.type_keys("\r");
    terminal.shows("added the provider \"local\" with the model tiny-model");
    terminal.prompts("");
    terminal.type_keys("hello\r");
    terminal.shows("Hello from this machine.");
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(terminal.leaves().0.code(), Some(0));
    let text = config(&home);
    assert_has(
        &text,
        &["[[llm.providers]]", "name = \"local\"", &server.url()],
    );
    assert_eq!(records(&home).len(), 0, "no key was entered");

    let mut again = Terminal::under(&home, &[], &[("OLLAMA_HOST", Some("127.0.0.1:1"))]);
    again.prompts("");
    assert!(!again.raw().contains("Zeph needs a model"));
    again.type_keys("hello\r");
    again.shows("Hello from this machine.");
    assert_eq!(again.leaves().0.code(), Some(0));
}

/// Proves CLI-9, CLI-5: the first start of the full screen has the same dialog.
#[test]
fn first_start_of_the_full_screen_has_the_dialog() {
    let server = local("Hello from this machine.");
    let home = Home::new();
    let servers = format!("http://127.0.0.1:1,{}", server.url());
    std::fs::remove_dir_all(home.home().join(".config")).unwrap();
    let env = [
        ("OLLAMA_HOST", Some("127.0.0.1:1")),
        ("ZEPH_LLM_LOCAL_SERVERS", Some(servers.as_str())),
    ];
    let mut terminal = Terminal::under(&home, &["--tui"], &env);
    terminal.shows("Number (Enter for 1, q to leave): ");
    assert!(!terminal.is_full_screen());
    terminal.type_keys("\r");
    terminal.shows("? keys");
    terminal.type_keys("hello\r");
    terminal.shows("Hello from this machine.");
    terminal.type_keys("\x04");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves CLI-9: with the key of a vendor, the first response takes less than a minute. The key is not shown, and a
/// refused key can be corrected.
#[test]
fn first_start_with_a_vendor_key_responds_in_a_minute() {
    let start = Instant::now();
    let server = vendor(Api::Claude, "Hello from the vendor.");
    let home = Home::new();
    let url = server.url();
    let env = [
        ("ZEPH_LLM_LOCAL_SERVERS", "http://127.0.0.1:1"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let mut terminal = first_start(&home, &env);
    terminal.shows("1  Anthropic (with a key)");
    for (key, expect) in [(BAD, "the server refused it"), (GOOD, "stored the key of")] {
        asks(&terminal, "Number (Enter");
        terminal.type_keys("1\r");
        asks(&terminal, "Key for http://");
        assert!(terminal.echoes_nothing());
        terminal.type_keys(&format!("{key}\r"));
        terminal.shows(expect);
    }
    terminal.shows("added the provider \"claude\"");
    terminal.prompts("");
    terminal.type_keys("hello\r");
    terminal.shows("Hello from the vendor.");
    assert!(start.elapsed() < Duration::from_secs(60));
    let (status, raw) = terminal.leaves();
    assert_eq!(status.code(), Some(0));
    assert!(!raw.contains("sk-good") && !raw.contains("sk-bad"), "{raw}");
    let requests = asked(&server, Api::Claude);
    assert_eq!(Api::Claude.key(requests.last().unwrap()), Some(GOOD));
    assert!(!config(&home).contains("sk-"));
}

/// Proves CLI-9: the user can leave the dialog; a signal restores the echo of the terminal.
#[test]
fn dialog_can_be_closed() {
    let home = Home::new();
    let env = [("ZEPH_LLM_LOCAL_SERVERS", "http://127.0.0.1:1")];
    let mut terminal = first_start(&home, &env);
    terminal.shows("q to leave");
    terminal.type_keys("q\r");
    terminal.shows("no provider is configured");
    assert_eq!(terminal.ends().0.code(), Some(1));
    assert!(!home.config_file().exists());

    let env = [
        ("ZEPH_LLM_LOCAL_SERVERS", Some("http://127.0.0.1:1")),
        ("OLLAMA_HOST", Some("127.0.0.1:1")),
    ];
    let mut terminal = Terminal::under(&home, &["login"], &env);
    terminal.shows("q to leave");
    terminal.type_keys("1\r");
    asks(&terminal, "Key for https://api.anthropic.com (not shown):");
    assert!(terminal.echoes_nothing());
    terminal.signal(Signal::INT);
    let (status, raw) = terminal.ends();
    assert_eq!(status.code(), Some(130));
    assert!(
        raw.ends_with('\n'),
        "the line of the question ends: {raw:?}"
    );
    assert_eq!(records(&home).len(), 0);
}
