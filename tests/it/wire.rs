//! Requests on the wire: their bytes, their size, their key.

use serde_json::json;

use crate::rig::{Home, KEY, OpenAi, Reply, assert_has, openai_config};

/// Proves EXE-7: the first request of every conversation.
#[test]
fn first_request_snapshot() {
    let server = OpenAi::replies([Reply::text("ok")]);
    let home = Home::openai(&server);
    home.zeph(["-p", "What is here?"]).code(0);
    let request = server.last();
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    let body = serde_json::to_string_pretty(&request.json()).unwrap();
    insta::assert_snapshot!(home.neutral(&body));
}

/// Proves EXE-14.
#[test]
fn first_request_is_small() {
    let server = OpenAi::replies([Reply::text("ok")]);
    let home = Home::openai(&server);
    home.zeph(["-p", "hi"]).code(0);
    let request = server.last();
    assert!(
        request.raw.len() <= 12 * 1024,
        "{} bytes",
        request.raw.len()
    );
    let tools = serde_json::to_vec(&request.json()["tools"]).unwrap().len();
    assert!(tools <= 7 * 1024, "{tools} bytes of definitions");
}

/// Proves EXE-7: `zeph tools list --json` prints the definitions of the first request, and `--catalog` the
/// catalog of its system prompt, for any configuration.
#[test]
fn listed_tools_are_those_of_the_first_request() {
    let check = |more: &str| {
        let server = OpenAi::replies([Reply::text("ok")]);
        let home = Home::openai(&server);
        home.more_config(more);
        home.zeph(["-p", "hi"]).code(0);
        let request = server.last().json();
        let sent = request["tools"].as_array().unwrap();
        let sent: Vec<_> = sent.iter().map(|tool| tool["function"].clone()).collect();
        let listed = home.zeph(["tools", "list", "--json"]).code(0).json();
        assert_eq!(listed, json!(sent), "{more}");
    };
    check("");
    check("[tools.tafc]\nenabled = true\n");
    check("[tools.tafc]\nenabled = true\ncomplexity_threshold = 0.0\n");
    check("[[tools.permissions.bash]]\npattern = \"*\"\naction = \"deny\"\n");
    check("[agent.compaction]\nenabled = false\n");
    let server = OpenAi::replies([Reply::text("ok")]);
    let home = Home::new();
    let keyless = openai_config(&server.url()).replace("api_key_env = \"TEST_KEY\"\n", "");
    home.config(&format!("{keyless}tool_use = false\n"));
    home.zeph(["-p", "hi"]).code(0);
    let request = server.last().json();
    let system = request["messages"][0]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    let catalog = home.zeph(["tools", "list", "--catalog"]).code(0).stdout;
    assert!(
        system.contains(catalog.trim_end()),
        "{system}\n---\n{catalog}"
    );
}

/// Proves EXE-14: a description says when to use the tool, or which tool to use instead.
#[test]
fn descriptions_say_when_to_use_a_tool() {
    let home = Home::new();
    let tools = home.zeph(["tools", "list", "--json"]).code(0).json();
    let description = |name: &str| {
        let mut all = tools.as_array().unwrap().iter();
        let tool = all.find(|tool| tool["name"] == name).unwrap();
        tool["description"].as_str().unwrap().to_owned()
    };
    let words = [
        ("add_task", "only for"),
        ("bash", "not to read or edit"),
        ("compress_context", "when"),
        ("copy_path", "not by bash"),
        ("create_directory", "write makes parents"),
        ("delete_path", "not by bash"),
        ("diagnostics", "not by bash"),
        ("edit", "you read"),
        ("fetch", "not a local"),
        ("find_path", "grep"),
        ("get_current_time", "never guess"),
        ("get_file_tree", "for an overview"),
        ("grep", "find_path"),
        ("list_directory", "find_path"),
        ("list_tasks", "to see"),
        ("memory_save", "no secrets"),
        ("memory_search", "before"),
        ("move_path", "not by bash"),
        ("read", "before an edit"),
        ("read_overflow", "do not run the call again"),
        ("scheduler", "later"),
        ("search_code", "grep"),
        ("task", "details you do not need"),
        ("update_task", "only when"),
        ("web_scrape", "fetch"),
        ("write", "use edit"),
    ];
    assert_eq!(words.len(), tools.as_array().unwrap().len());
    for (name, word) in words {
        assert_has(&description(name), &[word]);
    }
}

/// Proves LLM-6: each request starts with the bytes of the previous one, in other processes too.
#[test]
fn consecutive_requests_share_their_prefix() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::calls("a", &[("list_directory", json!({ "path": "." }))]),
        1 => Reply::calls(
            "b",
            &[
                ("add_task", json!({ "content": "dig" })),
                ("nope", json!({})),
            ],
        ),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    home.zeph(["-p", "go"]).code(0);
    home.zeph(["--continue", "-p", "and \"more\" — ümläut"])
        .code(0);
    home.zeph(["--continue", "-p", "still more"]).code(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    for pair in requests.windows(2) {
        let (old, new) = (&pair[0].raw, &pair[1].raw);
        let shared = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        // The text after the messages may differ.
        let tail = "],\"tool_choice\":\"auto\"}".len();
        assert!(
            shared >= old.len() - tail,
            "the first {shared} of {} bytes are the same, then: {}",
            old.len(),
            String::from_utf8_lossy(&old[shared..])
        );
    }
}

/// Proves LLM-5: a key is neither printed, logged nor stored, even if a server echoes it.
#[test]
fn key_is_absent_from_all_outputs() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::calls(
            "a",
            &[("bash", json!({ "command": "env; echo TEST=$TEST_KEY" }))],
        ),
        1 => Reply::text("Seen."),
        2 => Reply::error(
            401,
            "invalid_api_key",
            &format!("Incorrect API key provided: {KEY}."),
        ),
        _ => Reply::error(400, "bad", &format!("Odd request with {KEY} in it")),
    });
    let home = Home::openai(&server);
    let check = |args: &[&str], code: i32| {
        let output = home.zeph(args).args(["-vvv", "--yes"]).code(code);
        assert!(
            !output.stdout.contains(KEY) && !output.stderr.contains(KEY),
            "{output}"
        );
        output
    };
    check(&["-p", "go"], 0);
    assert!(
        !String::from_utf8_lossy(&server.last().raw).contains(KEY),
        "nor sent to the model"
    );
    let refused = check(&["-p", "go"], 1);
    assert_has(&refused.stderr, &["401", "TEST_KEY"]);
    check(&["-p", "go", "--output-format", "json"], 1);
    check(&["doctor"], 0);
    check(&["config", "show", "--origin"], 0);
    for entry in std::fs::read_dir(home.data().join("zeph")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes
                .windows(KEY.len())
                .any(|window| window == KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }
}

/// Proves D-31.
#[test]
fn base_url_accepts_any_ending() {
    for end in ["", "/", "/v1", "/v1/"] {
        let server = OpenAi::replies([Reply::text("ok")]);
        let home = Home::new();
        home.config(&crate::rig::openai_config(&format!(
            "{}{end}",
            server.url()
        )));
        home.zeph(["-p", "hi"]).code(0);
        assert_eq!(server.last().path, "/v1/chat/completions", "{end:?}");
    }
}
