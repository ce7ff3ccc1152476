//! Conversations over every API, and the choice of the provider without an explicit one.

use std::path::Path;

use serde_json::{Value, json};

use crate::rig::{APIS, Api, Home, KEY, OpenAi, Reply, assert_has};

fn home(api: Api, server: &OpenAi) -> Home {
    let home = Home::new();
    home.config(&api.config("local", &server.url()));
    home
}

/// Proves LLM-1, LLM-3, LLM-7, LLM-10: text, a call that runs, its result, a response.
#[test]
fn tool_conversation_works_over_every_api() {
    for api in APIS {
        let server = OpenAi::start(move |n, _| match n {
            0 => api.call(
                "I look.",
                "call_1",
                "bash",
                &json!({ "command": "echo from-the-tool-$((40 + 2))" }),
            ),
            _ => api.text("Done: 42."),
        });
        let home = home(api, &server);
        let output = home.zeph(["--yes", "-p", "go", "--output-format", "json"]);
        let answer = output.code(0).json();
        assert_eq!(answer["text"], "Done: 42.", "{api:?}: {answer:#}");
        let cached = if api == Api::Ollama { 0 } else { 1200 };
        let mut usage = json!({
            "input_tokens": 2000, "output_tokens": 40, "cached_tokens": cached, "cache_write_tokens": 0,
        });
        // The price of another server is unknown.
        if api == Api::Ollama {
            usage["cost_usd"] = json!(0.0);
        }
        assert_eq!(answer["usage"], usage, "{api:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "{api:?}");
        for request in &requests {
            assert_eq!(
                (request.path.as_str(), api.key(request)),
                (api.path(), Some(KEY))
            );
        }
        let (of, text) = api.last_result(&requests[1]).unwrap();
        let expect = if api == Api::Ollama { "bash" } else { "call_1" };
        assert_eq!(of, expect, "{api:?}");
        assert!(text.contains("from-the-tool-42"), "{api:?}: {text}");
    }
}

/// Reasoning is sent back to the API that it came from, also by another process, and to no other API.
/// Proves LLM-1, LLM-3.
#[test]
fn reasoning_is_returned_to_its_provider() {
    for api in APIS {
        let server = OpenAi::start(move |n, _| match n {
            0 => api.call("I look.", "call_1", "bash", &json!({ "command": "true" })),
            _ => api.text("Done."),
        });
        let home = home(api, &server);
        home.zeph(["--yes", "-p", "go"]).code(0);
        home.zeph(["--continue", "-p", "more"]).code(0);
        let request = server.last();
        let sent = String::from_utf8_lossy(&request.raw).into_owned();
        let expect = match api {
            Api::Chat => continue,
            Api::Claude => r#"{"type":"thinking","thinking":"Hm.","signature":"c2ln"}"#,
            Api::Responses => {
                r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAseal"}"#
            }
            Api::Ollama => r#""thinking":"Hm.""#,
        };
        assert_eq!(sent.matches(expect).count(), 2, "{api:?}: {sent}");
        let other = APIS[(APIS.iter().position(|it| *it == api).unwrap() + 1) % 4];
        let elsewhere = OpenAi::start(move |_, _| other.text("Here."));
        home.config(&other.config("local", &elsewhere.url()));
        home.zeph(["--continue", "-p", "still more"]).code(0);
        let sent = String::from_utf8_lossy(&elsewhere.last().raw).into_owned();
        for seal in ["c2ln", "gAAAseal", "\"Hm.\""] {
            assert!(
                !sent.contains(seal),
                "{api:?} to {other:?}: {seal} in {sent}"
            );
        }
        assert!(sent.contains("still more"));
    }
}

/// Proves LLM-6: in twenty turns with a process each, each request starts with the previous one up to the end
/// of its messages. On the Messages API the cache breakpoints are ignored.
#[test]
fn twenty_turns_share_their_prefix() {
    for api in APIS {
        let server = OpenAi::start(move |n, _| match n % 2 {
            1 => api.text(&format!("Done with \"{n}\" — ümläut.")),
            _ => {
                let command = format!("echo {n}");
                let id = format!("call_{n}");
                api.call("I look.", &id, "bash", &json!({ "command": command }))
            }
        });
        let home = home(api, &server);
        for turn in 0..20 {
            let prompt = format!("turn {turn}\n\tof \"twenty\"");
            let again: &[&str] = if turn > 0 { &["--continue"] } else { &[] };
            home.zeph(["--yes", "-p", &prompt]).args(again).code(0);
        }
        let requests = server.requests();
        assert_eq!(requests.len(), 40, "{api:?}");
        let bodies: Vec<String> = requests
            .iter()
            .map(|request| {
                let body = String::from_utf8(request.raw.clone()).unwrap();
                let breakpoints = body.matches("\"cache_control\"").count();
                assert_eq!(breakpoints > 0, api == Api::Claude);
                assert!(breakpoints <= 4, "{breakpoints} breakpoints");
                body.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
            })
            .collect();
        for pair in bodies.windows(2) {
            let (old, new) = (&pair[0], &pair[1]);
            let prefix = old.strip_suffix(api.tail());
            let prefix = prefix.unwrap_or_else(|| panic!("{api:?} ends otherwise: {old}"));
            assert!(
                new.starts_with(prefix),
                "{api:?}:\n{prefix}\nis no beginning of\n{new}"
            );
            assert!(new.len() > old.len());
        }
    }
}

/// Every file below a directory.
fn files(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

/// Proves LLM-5: over every API the key is neither printed, logged nor stored, nor sent to the model, even if
/// a server echoes it.
#[test]
fn key_is_absent_from_all_outputs() {
    for api in APIS {
        let server = OpenAi::start(move |n, _| match n {
            0 => api.call(
                "",
                "call_1",
                "bash",
                &json!({ "command": "env; echo TEST=$TEST_KEY" }),
            ),
            1 => api.text("Seen."),
            2 => api.error(401, "authentication_error", &format!("Bad key: {KEY}.")),
            3 => api.error(400, "invalid_request_error", &format!("Odd: {KEY} in it")),
            _ => Reply::raw(200, "text/plain", format!("<html>{KEY}</html>")),
        });
        let home = home(api, &server);
        home.more_config("[tools.audit]\njsonl = true\n");
        let check = |args: &[&str], code: i32| {
            let output = home.zeph(args).args(["-vvv", "--yes"]).code(code);
            assert!(
                !output.stdout.contains(KEY) && !output.stderr.contains(KEY),
                "{api:?}: {output}"
            );
            output
        };
        check(&["-p", "go"], 0);
        let sent = server.last();
        assert_eq!(api.key(&sent), Some(KEY));
        assert!(!String::from_utf8_lossy(&sent.raw).contains(KEY), "{api:?}");
        let refused = check(&["-p", "go"], 1);
        assert_has(&refused.stderr, &["401", "TEST_KEY"]);
        check(&["-p", "go", "--output-format", "json"], 1);
        check(&["-p", "go"], 1);
        check(&["config", "show", "--origin"], 0);
        assert_eq!(server.requests().len(), 5);
        let mut found = Vec::new();
        files(home.root(), &mut found);
        for name in ["zeph.db", "audit.jsonl"] {
            assert!(
                found.iter().any(|path| path.ends_with(name)),
                "{name}: {found:?}"
            );
        }
        for path in found {
            let bytes = std::fs::read(&path).unwrap();
            let is_there = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
            assert!(!is_there, "{api:?}: the key is in {}", path.display());
        }
    }
}

/// Proves LLM-2: without configuration the key of Anthropic has priority over that of OpenAI.
#[test]
fn anthropic_key_takes_precedence_without_configuration() {
    let claude = OpenAi::start(|_, _| Api::Claude.text("I am Claude."));
    let openai = OpenAi::start(|_, _| Api::Chat.text("I am of OpenAI."));
    let ollama = ollama(json!([{ "name": "a" }]), |_| json!(["completion", "tools"]));
    let home = Home::new();
    let address = ollama.url().replace("http://", "");
    let run = |keys: &[&str], args: &[&str]| {
        let urls = [
            ("ANTHROPIC_BASE_URL", claude.url()),
            ("OPENAI_BASE_URL", openai.url()),
            ("OLLAMA_HOST", address.clone()),
        ];
        let mut zeph = home.zeph(["-p", "hi"]).args(args);
        for (name, url) in urls {
            zeph = zeph.env(name, &url);
        }
        for key in keys {
            zeph = zeph.env(key, &format!("sk-of-{key}"));
        }
        zeph.code(0).stdout
    };
    let (first, second) = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY");
    assert_eq!(run(&[first, second], &[]).trim(), "I am Claude.");
    let request = claude.last();
    assert_eq!(request.header("x-api-key"), Some("sk-of-ANTHROPIC_API_KEY"));
    assert_eq!(
        run(&[first], &["--model", "claude-mine"]).trim(),
        "I am Claude."
    );
    assert_eq!(claude.last().json()["model"], "claude-mine");
    assert_eq!(run(&[second], &[]).trim(), "I am of OpenAI.");
    assert_eq!(run(&[], &[]).trim(), "I am a.");
    assert_eq!((claude.requests().len(), openai.requests().len()), (2, 1));
}

/// A server like Ollama, with these models and their capabilities.
fn ollama(models: Value, can: impl Fn(&str) -> Value + Send + 'static) -> OpenAi {
    OpenAi::start(move |_, request| {
        let document = |value: Value| Reply::raw(200, "application/json", value.to_string());
        match request.path.as_str() {
            "/api/tags" => document(json!({ "models": models })),
            "/api/show" => {
                let body = request.json();
                let capabilities = can(body["model"].as_str().unwrap());
                document(json!({"details": {}, "capabilities": capabilities}))
            }
            "/api/chat" => {
                let body = request.json();
                Api::Ollama.text(&format!("I am {}.", body["model"].as_str().unwrap()))
            }
            other => panic!("{other}"),
        }
    })
    .with_scripted_models()
}

/// Proves LLM-2: a local Ollama is the provider, with its first model that supports tools.
#[test]
fn local_ollama_is_the_default_provider() {
    let models =
        json!([{"name": "embed"}, {"name": "plain"}, {"name": "tools:8b"}, {"name": "later"}]);
    let server = ollama(models, |model| match model {
        "embed" => json!(["embedding"]),
        "plain" => json!(["completion"]),
        "later" => panic!("it is not checked"),
        _ => json!(["completion", "tools", "vision"]),
    });
    let home = Home::new();
    let ask = |server: &OpenAi, args: &[&str]| {
        let zeph = home.zeph(args).env("OLLAMA_HOST", &server.url());
        zeph.code(0).stdout
    };
    assert_eq!(ask(&server, &["-p", "hi"]).trim(), "I am tools:8b.");
    let body = server.last().json();
    assert!(!body["tools"].as_array().unwrap().is_empty());
    assert_eq!(body["options"]["num_ctx"], 16_384);
    assert_has(
        &ask(&server, &["doctor"]),
        &["ollama (tools:8b)", &server.url()],
    );
    // A named model is used, with its capabilities.
    let named = ask(&server, &["-p", "hi", "--model", "plain"]);
    assert_eq!(named.trim(), "I am plain.");
    assert_eq!(server.last().json().get("tools"), None);
    // A model without tools is better than none; an embedding model is not considered.
    let server = ollama(
        json!([{"name": "embed"}, {"name": "plain"}]),
        |model| match model {
            "embed" => json!(["embedding"]),
            _ => json!(["completion"]),
        },
    );
    assert_eq!(ask(&server, &["-p", "hi"]).trim(), "I am plain.");
    let server = ollama(json!([]), |_| json!([]));
    home.zeph(["-p", "hi"])
        .env("OLLAMA_HOST", &server.url())
        .code(1)
        .says(&["no provider is configured", "ollama pull"]);
}

/// Proves LLM-2: if another program listens on the port, or does not respond, this ends soon with a list of
/// alternatives.
#[test]
fn other_program_on_the_ollama_port_is_ignored() {
    for reply in [
        Reply::raw(200, "text/html", "<html>Hello</html>"),
        Reply::raw(404, "text/plain", "{\"models\":[{\"name\":\"a\"}]}"),
        Reply::raw(200, "application/json", "{\"models\":7}"),
        Reply::hang(),
    ] {
        let server = OpenAi::start(move |_, _| reply.clone());
        let home = Home::new();
        let began = std::time::Instant::now();
        home.zeph(["-p", "hi"])
            .env("OLLAMA_HOST", &server.url())
            .code(1)
            .says(&[
                "no provider is configured",
                "ANTHROPIC_API_KEY",
                "zeph demo",
            ]);
        assert!(began.elapsed() < std::time::Duration::from_secs(10));
        assert_eq!(server.requests().len(), 1);
    }
    // A server on another machine is not probed, regardless of its variable.
    let home = Home::new();
    home.zeph(["-p", "hi"])
        .env("OLLAMA_HOST", "203.0.113.1:11434")
        .code(1)
        .says(&["no provider is configured"]);
}

/// Proves LLM-7: a model without tool calls receives no tools; the error has the hint.
#[test]
fn model_without_tool_calls_receives_no_tools() {
    let server = OpenAi::start(|n, _| match n {
        0 => Api::Ollama.error(
            400,
            "",
            "registry.ollama.ai/library/m does not support tools",
        ),
        _ => Api::Ollama.text("Plain."),
    });
    let home = home(Api::Ollama, &server);
    home.zeph(["-p", "hi"])
        .code(1)
        .says(&["does not support tools", "tool_use = false"]);
    home.config(&format!(
        "{}tool_use = false\n",
        Api::Ollama.config("local", &server.url())
    ));
    home.zeph(["-p", "hi"]).code(0).prints(&["Plain."]);
    assert_eq!(server.last().json().get("tools"), None);
}

/// A configuration of provider `a` with its fallbacks `b` and `c` in this order.
fn with_fallback(apis: [Api; 3], servers: [&OpenAi; 3]) -> String {
    let names = ["a", "b", "c"].iter();
    let each = names.zip(apis).zip(servers);
    let providers: String = each
        .map(|((name, api), server)| api.config(name, &server.url()))
        .collect();
    format!(
        "[llm]\ndefault = \"a\"\nfallback = [\"a\", \"b\", \"c\"]\n[llm.retry]\nmax_attempts = 1\n{providers}"
    )
}

/// Proves LLM-2: after a permanent failure the next provider is used, over another API and in a running
/// conversation. A message says so, and the choice lasts for the turn.
#[test]
fn next_provider_replaces_a_failed_one() {
    let refused = OpenAi::start(|_, _| Api::Chat.error(401, "invalid_api_key", "no"));
    let poor = OpenAi::start(|n, _| match n {
        0 => Api::Claude.call(
            "I look.",
            "toolu_1",
            "bash",
            &json!({ "command": "echo hi" }),
        ),
        _ => Api::Claude.error(
            400,
            "invalid_request_error",
            "Your credit balance is too low.",
        ),
    });
    let last = OpenAi::start(|_, _| Api::Responses.text("Done by the third."));
    let home = Home::new();
    let apis = [Api::Chat, Api::Claude, Api::Responses];
    home.config(&with_fallback(apis, [&refused, &poor, &last]));
    let output = home.zeph(["--yes", "-p", "go"]).code(0);
    assert_has(&output.stdout, &["Done by the third."]);
    assert_has(
        &output.stderr,
        &[
            "401",
            "The request goes to b (test-model) instead",
            "credit",
            "The request goes to c (test-model)",
        ],
    );
    let asked = [&refused, &poor, &last].map(|server| server.requests().len());
    assert_eq!(asked, [1, 2, 1]);
    let (of, text) = Api::Responses.last_result(&last.last()).unwrap();
    assert_eq!(of, "toolu_1");
    assert!(text.contains("hi"), "{text}");
}

/// Proves LLM-2: an invalid request has no fallback, and another model does not continue a partial response.
#[test]
fn some_failures_are_final() {
    for first in [
        Api::Chat.error(400, "invalid_request_error", "bad schema"),
        Api::Chat.text("Hello there").cut_after("Hello"),
    ] {
        let first = OpenAi::start(move |_, _| first.clone());
        let other = OpenAi::start(|_, _| Api::Chat.text("not asked"));
        let home = Home::new();
        home.config(&with_fallback([Api::Chat; 3], [&first, &other, &other]));
        home.zeph(["-p", "go"]).code(1);
        assert_eq!(other.requests().len(), 0);
    }
}

/// Proves LLM-2, CFG-5: an unknown provider name is reported; `zeph doctor` checks the fallbacks.
#[test]
fn fallbacks_are_checked() {
    let server = OpenAi::replies([]);
    let gone = OpenAi::replies([]).url();
    let home = Home::new();
    let local = Api::Chat.config("local", &server.url());
    home.config(&format!("[llm]\nfallback = [\"lokal\"]\n{local}"));
    home.zeph(["-p", "go"])
        .code(2)
        .says(&["no provider called \"lokal\"", "did you mean `local`"]);
    let other = Api::Claude.config("other", &gone);
    home.config(&format!("[llm]\nfallback = [\"other\"]\n{local}{other}"));
    let output = home.zeph(["doctor"]).code(1);
    assert_has(
        &output.stdout,
        &[
            "ok    provider",
            "FAIL  fallback",
            "other (test-model)",
            &gone,
        ],
    );
}

/// Proves LLM-2, CFG-5: a fallback without a key is skipped with a warning; the default provider needs its
/// key.
#[test]
fn fallback_without_its_key_is_skipped() {
    let busy = OpenAi::start(|_, _| Api::Chat.error(401, "invalid_api_key", "no"));
    let last = OpenAi::start(|_, _| Api::Chat.text("By the last."));
    let home = Home::new();
    let keyless = "[[llm.providers]]\nname = \"keyless\"\ntype = \"claude\"\nmodel = \"m\"\n";
    let config = |default: &str| {
        let first = Api::Chat.config("first", &busy.url());
        let last = Api::Chat.config("last", &last.url());
        format!(
            "[llm]\ndefault = \"{default}\"\nfallback = [\"keyless\", \"last\"]\n{first}{keyless}{last}"
        )
    };
    home.config(&config("first"));
    let warning = "warning: [llm] fallback skips \"keyless\": it needs a key: run zeph login keyless, or export ANTHROPIC_API_KEY";
    let output = home.zeph(["-p", "go"]).code(0).prints(&["By the last."]);
    assert_eq!(output.stderr.matches(warning).count(), 1, "{output}");
    assert_has(
        &output.stderr,
        &["The request goes to last (test-model) instead"],
    );
    let output = home.zeph(["-q", "-p", "go"]).code(0);
    assert!(!output.stderr.contains("keyless"), "{output}");
    assert_has(
        &home.zeph(["doctor"]).code(0).stdout,
        &[
            "warn  fallback",
            "keyless (m) is skipped",
            "ANTHROPIC_API_KEY",
            "ok    fallback",
        ],
    );
    // With its key it is used again, without a warning.
    let output = home
        .zeph(["doctor"])
        .env("ANTHROPIC_API_KEY", "sk-a")
        .code(0);
    assert!(!output.stdout.contains("passed over"), "{output}");
    home.config(&config("keyless"));
    home.zeph(["-p", "go"])
        .code(1)
        .says(&["provider \"keyless\" cannot be used", "ANTHROPIC_API_KEY"]);
    // Other faults are reported.
    home.config(&config("first").replace("model = \"m\"", "model = \"\""));
    home.zeph(["-p", "go"])
        .code(2)
        .says(&["keyless", "`model` is missing"]);
}

/// Proves CFG-5: the configured model must exist.
#[test]
fn doctor_checks_the_model_of_an_ollama() {
    let server = ollama(json!([{"name": "test-model:latest"}]), |_| json!([]));
    let home = home(Api::Ollama, &server);
    assert_has(
        &home.zeph(["doctor"]).code(0).stdout,
        &["local (test-model) at"],
    );
    let server = ollama(json!([{"name": "other"}]), |_| json!([]));
    home.config(&Api::Ollama.config("local", &server.url()));
    let output = home.zeph(["doctor"]).code(1);
    assert_has(
        &output.stdout,
        &["FAIL  provider", "ollama pull test-model"],
    );
}
