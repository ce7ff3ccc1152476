//! The result cache through the binary: which calls it serves.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Running, Terminal, assert_has, audit, results_of, wait_for};

/// A `zeph tools run` process with open input, which runs one call at a time.
struct Script(Running);

impl Script {
    fn start(home: &Home) -> Self {
        let run = home.zeph(["tools", "run", "--yes"]);
        let mut script = Self(run.open_stdin("").start());
        // Files written before this call are older than one clock tick.
        script.call("get_current_time", &json!({}));
        script
    }

    #[track_caller]
    fn call(&mut self, tool: &str, params: &Value) -> Value {
        let line = json!({ "tool": tool, "params": params });
        self.0.say(&line.to_string());
        serde_json::from_str(&self.0.next_line().unwrap()).unwrap()
    }

    /// The result of a call that missed the cache.
    #[track_caller]
    fn is_new(&mut self, tool: &str, params: &Value) -> String {
        let form = self.call(tool, params);
        assert_eq!(form["cached"], false, "{form}");
        form["data"].as_str().unwrap_or_default().to_owned()
    }

    /// The result of a call that hit the cache.
    #[track_caller]
    fn is_cached(&mut self, tool: &str, params: &Value) -> String {
        let form = self.call(tool, params);
        assert_eq!(form["cached"], true, "{form}");
        let data = form["data"].as_str().unwrap();
        let (line, rest) = data.split_once('\n').unwrap();
        assert!(
            line.starts_with("[from the cache, ") && line.ends_with(" s old]"),
            "{data}"
        );
        rest.to_owned()
    }

    fn ends(mut self) {
        self.0.close_stdin();
        self.0.wait().code(0);
    }
}

fn path(path: &str) -> Value {
    json!({ "path": path })
}

/// Proves OUT-40, OUT-41: each cached tool returns equal results twice, the second time from the cache, and
/// both are audited.
#[test]
fn repeated_calls_are_served_from_the_cache() {
    let home = Home::new();
    home.write("src/a.txt", "one\ntwo\n");
    let mut script = Script::start(&home);
    let calls = [
        ("read", path("src/a.txt")),
        ("grep", json!({ "pattern": "one" })),
        ("find_path", json!({ "path": ".", "pattern": "**/*.txt" })),
        ("list_directory", path("src")),
        ("get_file_tree", json!({})),
    ];
    for (tool, params) in &calls {
        let first = script.is_new(tool, params);
        assert_eq!(script.is_cached(tool, params), first, "{tool}");
    }
    // Aliases and argument order do not matter.
    script.is_cached("read_file", &json!({ "file_path": "src/a.txt" }));
    script.is_cached("find_path", &json!({ "pattern": "**/*.txt", "path": "." }));
    // Other arguments are another call.
    script.is_new("read", &json!({ "path": "src/a.txt", "offset": 2 }));
    script.ends();
    let entries = audit(&home.database());
    let cached: Vec<bool> = entries.iter().skip(1).map(|entry| entry.cached).collect();
    let pairs = [false, true].repeat(5);
    assert_eq!(cached[..10], pairs);
    assert_eq!(cached[10..], [true, true, false]);
    assert!(entries.iter().all(|entry| entry.result == "success"));
}

/// Proves OUT-41: each tool that changes files and each command invalidates results that depend on files,
/// also on failure.
#[test]
fn changes_invalidate_the_cache_immediately() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    home.write("b.txt", "two\n");
    let mut script = Script::start(&home);
    let read = path("a.txt");
    let changes = [
        ("bash", json!({ "command": "printf 'two\\n' > a.txt" })),
        ("bash", json!({ "command": "exit 3" })),
        ("bash", json!({ "command": "sleep 5", "timeout": 1 })),
        ("read", path("a.txt")),
        (
            "edit",
            json!({ "path": "a.txt", "old_string": "two", "new_string": "six" }),
        ),
        ("write", json!({ "path": "a.txt", "content": "ten\n" })),
        ("delete_path", path("missing.txt")),
        ("create_directory", path("made")),
        (
            "copy_path",
            json!({ "source": "b.txt", "destination": "c.txt" }),
        ),
        (
            "move_path",
            json!({ "source": "c.txt", "destination": "d.txt" }),
        ),
        ("delete_path", path("d.txt")),
    ];
    for (tool, params) in &changes {
        script.is_new("read", &read);
        script.is_cached("read", &read);
        script.is_new("grep", &json!({ "pattern": "t" }));
        script.call(tool, params);
        let now = script.call("read", &read);
        if *tool != "read" {
            assert_eq!(now["cached"], false, "{tool} {params}: {now}");
        }
        let found = now["data"].as_str().unwrap();
        let expect = home.read("a.txt");
        assert_has(found, &[expect.trim()]);
        script.call("bash", &json!({ "command": "true" }));
    }
    script.ends();
}

/// Tools that may change something, with a call that succeeds.
fn changing_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("add_task", json!({ "content": "dig" })),
        (
            "update_task",
            json!({ "task_id": "task_1", "status": "completed" }),
        ),
        ("bash", json!({ "command": "echo same" })),
        ("write", json!({ "path": "a.txt", "content": "one\n" })),
        (
            "edit",
            json!({ "path": "a.txt", "old_string": "one", "new_string": "two" }),
        ),
        ("create_directory", path("made")),
        (
            "copy_path",
            json!({ "source": "a.txt", "destination": "b.txt" }),
        ),
        (
            "move_path",
            json!({ "source": "b.txt", "destination": "c.txt" }),
        ),
        ("delete_path", path("c.txt")),
        ("memory_save", json!({ "content": "the build takes long" })),
        (
            "scheduler",
            json!({ "task": "look", "when": "in 10 minutes" }),
        ),
    ]
}

/// Proves OUT-41: no result of a listed tool that may change something is cacheable, and none is served from the
/// cache.
#[test]
fn tools_that_change_something_are_never_cached() {
    // `diagnostics` runs a build, but its result is a view of the checked files.
    const CACHED: &str = "diagnostics";
    // They need a conversation.
    const UNCALLED: [&str; 2] = ["compress_context", "task"];
    let home = Home::new();
    let tools = home
        .zeph(["tools", "list", "--json", "--all"])
        .code(0)
        .json();
    let names: Vec<&str> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.len() >= 25, "{names:?}");
    let calls = changing_calls();
    for name in names {
        let def = home.zeph(["tools", "show", name]).code(0).json();
        let changes = def["annotations"]["read_only"] == false;
        if !changes || name == CACHED {
            continue;
        }
        assert_eq!(def["cache"]["is_cacheable"], false, "{name}: {def:#}");
        let is_called = calls.iter().any(|(tool, _)| *tool == name);
        assert!(
            is_called || UNCALLED.contains(&name) || name.starts_with("job_"),
            "{name}"
        );
    }
    let mut script = Script::start(&home);
    for (tool, params) in &calls {
        let first = script.call(tool, params);
        assert_eq!(first["success"], true, "{tool}: {first}");
        script.is_new(tool, params);
    }
    script.ends();
}

/// Proves OUT-41: calls that are not cacheable always run.
#[test]
fn some_tools_are_never_cached() {
    let home = Home::new();
    home.write("long.txt", &"word and word\n".repeat(20_000));
    let mut script = Script::start(&home);
    let long = json!({ "command": "cat long.txt" });
    let shown = script.is_new("bash", &long);
    let reference = shown.split("overflow:").nth(1).unwrap();
    let reference = &reference[..36];
    let calls = [
        ("bash", json!({ "command": "echo same" })),
        ("get_current_time", json!({})),
        ("list_tasks", json!({})),
        ("job_list", json!({})),
        (
            "read_overflow",
            json!({ "reference": reference, "limit": 1 }),
        ),
        ("read", path("missing.txt")),
        ("read", path("/etc/passwd")),
        ("grep", json!({ "pattern": "(" })),
    ];
    for (tool, params) in &calls {
        for _ in 0..3 {
            script.is_new(tool, params);
        }
    }
    script.ends();
}

/// Proves OUT-40, OUT-30: an overflowed result is cached under its reference, until the stored output is
/// deleted.
#[test]
fn stored_output_is_served_until_deleted() {
    let home = Home::new();
    home.more_config("[tools.overflow]\nthreshold = 1000\n");
    home.write("long.txt", &"word and word\n".repeat(1000));
    let mut script = Script::start(&home);
    let first = script.is_new("read", &path("long.txt"));
    let again = script.is_cached("read", &path("long.txt"));
    assert_eq!(first, again);
    let reference = again.split("overflow:").nth(1).unwrap()[..36].to_owned();
    let page = json!({ "reference": reference, "limit": 2 });
    assert_has(&script.is_new("read_overflow", &page), &["word and word"]);
    crate::rig::execute(&home.database(), "DELETE FROM tool_overflow");
    let new = script.is_new("read", &path("long.txt"));
    assert_ne!(new, first, "under another reference");
    script.ends();
}

/// Proves OUT-41: while a job runs, no file-dependent result comes from the cache.
#[test]
fn running_job_disables_the_file_cache() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let mut script = Script::start(&home);
    let read = path("a.txt");
    script.is_new("read", &read);
    script.is_cached("read", &read);
    let waits = "until [ -e go ]; do sleep 0.02; done; echo two > a.txt";
    script.call("bash", &json!({ "command": waits, "background": true }));
    for _ in 0..3 {
        script.is_new("read", &read);
    }
    home.write("go", "");
    wait_for("the job's change", || {
        script.call("read", &read);
        (home.read("a.txt") == "two\n").then_some(())
    });
    assert_has(&script.call("read", &read)["data"].to_string(), &["two"]);
    script.ends();
}

/// Proves OUT-40: every key of the section has its documented effect.
#[test]
fn cache_settings_take_effect() {
    let check = |config: &str, expect: bool| {
        let home = Home::new();
        home.more_config(&format!("[tools.result_cache]\n{config}\n"));
        home.write("a.txt", &"x".repeat(400));
        let mut script = Script::start(&home);
        script.call("read", &path("a.txt"));
        let again = script.call("read", &path("a.txt"));
        assert_eq!(again["cached"], expect, "{config}");
        script.ends();
    };
    check("", true);
    check("enabled = false", false);
    check("ttl_secs = 0", true);
    check("max_bytes = 1000", false);
    check("max_bytes = 100000", true);

    let home = Home::new();
    home.more_config("[tools.result_cache]\nttl_secs = 1\n");
    home.write("a.txt", "x");
    let mut script = Script::start(&home);
    script.is_new("read", &path("a.txt"));
    script.call("bash", &json!({ "command": "true" }));
    script.is_new("read", &path("a.txt"));
    // The reported age is less than the lifetime, and the call runs again after it.
    let began = std::time::Instant::now();
    while began.elapsed().as_millis() < 1500 {
        let form = script.call("read", &path("a.txt"));
        if form["cached"] == true {
            assert_has(
                form["data"].as_str().unwrap(),
                &["[from the cache, 0 s old]"],
            );
        }
    }
    script.ends();
    let reads = audit(&home.database());
    let reads: Vec<bool> = reads
        .iter()
        .filter(|entry| entry.tool == "read")
        .map(|entry| entry.cached)
        .collect();
    let calls = reads.iter().filter(|cached| !**cached).count();
    assert!((3..=4).contains(&calls), "{reads:?}");
}

/// Proves OUT-40, OUT-41: model and user see cache hits, a hit counts as a read for `edit`, and a change
/// between two turns is seen.
#[test]
fn conversation_reports_cache_hits() {
    let read = |seed: &str| Reply::calls(seed, &[("read", path("a.txt"))]);
    let home = Home::new();
    let file = home.path("a.txt");
    let server = OpenAi::start(move |n, _| match n {
        0 => read("a"),
        1 => read("b"),
        2 => {
            // An external editor that preserves size and modification time.
            let old = std::fs::metadata(&file).unwrap().modified().unwrap();
            std::fs::write(&file, "alpha 2\n").unwrap();
            let opened = std::fs::File::options().write(true).open(&file).unwrap();
            opened.set_modified(old).unwrap();
            read("c")
        }
        3 => read("d"),
        4 => Reply::calls(
            "e",
            &[(
                "edit",
                json!({ "path": "a.txt", "old_string": "alpha 2", "new_string": "alpha 3" }),
            )],
        ),
        5 => read("f"),
        _ => Reply::text("done"),
    });
    home.config(&crate::rig::openai_config(&server.url()));
    home.write("a.txt", "alpha 1\n");
    let output = home.zeph(["--yes", "-p", "look"]).code(0);
    let results = results_of(&server.last().messages());
    let texts: Vec<&str> = results.iter().map(|(_, text)| text.as_str()).collect();
    assert_has(texts[0], &["alpha 1"]);
    assert_has(texts[1], &["[from the cache, 0 s old]\n", "alpha 1"]);
    assert_has(texts[2], &["alpha 2"]);
    assert_has(texts[3], &["[from the cache, ", "alpha 2"]);
    assert!(
        texts[4].contains("alpha 3") || !texts[4].contains("category:"),
        "{}",
        texts[4]
    );
    assert_has(texts[5], &["alpha 3"]);
    for fresh in [0, 2, 5] {
        assert!(!texts[fresh].contains("from the cache"), "{}", texts[fresh]);
    }
    assert_has(&output.stderr, &["from the cache"]);
}

/// Proves AGT-3: a cache hit counts as a repetition of the call.
#[test]
fn loop_of_cached_calls_is_a_doom_loop() {
    let server = OpenAi::start(|n, _| Reply::calls(&n.to_string(), &[("read", path("a.txt"))]));
    let home = Home::openai(&server);
    home.write("a.txt", "alpha\n");
    home.zeph(["--yes", "-p", "look"])
        .run()
        .says(&["three times in a row"]);
    assert_eq!(server.requests().len(), 3);
}

/// Proves OUT-40, OUT-41: `/clear`, `/undo` and `/reload` clear the cache, and `/status` counts hits.
#[test]
fn user_commands_invalidate_cache() {
    let read = r#"calls = [{ tool = "read", input = { path = "a.txt" } }]"#;
    let cached = r#"expect = { tool_result_contains = "from the cache" }"#;
    let scenario = format!(
        r#"
        [[steps]]
        {read}
        [[steps]]
        {read}
        [[steps]]
        {cached}
        calls = [{{ tool = "write", input = {{ path = "a.txt", content = "second\n" }} }}]
        [[steps]]
        {read}
        [[steps]]
        {read}
        [[steps]]
        {cached}
        text = "Turn one."
        [[steps]]
        {read}
        [[steps]]
        expect = {{ tool_result_contains = "first" }}
        {read}
        [[steps]]
        {cached}
        text = "Turn two."
        [[steps]]
        {read}
        [[steps]]
        expect = {{ tool_result_contains = "first" }}
        text = "Turn three."
        "#
    );
    let home = Home::scripted(&scenario);
    home.write("a.txt", "first\n");
    let mut terminal = Terminal::start(&home, &["--yes"]);
    terminal.prompts("");
    terminal.type_keys("one\r");
    terminal.shows("Turn one.");
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("2 hits, 2 misses; 1 result");
    terminal.prompts("");
    terminal.type_keys("/undo\r");
    terminal.prompts("");
    terminal.type_keys("two\r");
    terminal.shows("Turn two.");
    terminal.prompts("");
    terminal.type_keys("/clear\r");
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("0 hits, 0 misses; 0 results in 0 kB");
    terminal.prompts("");
    terminal.type_keys("three\r");
    terminal.shows("Turn three.");
    assert_eq!(terminal.leaves().0.code(), Some(0));
    let reads: Vec<bool> = audit(&home.database())
        .iter()
        .filter(|entry| entry.tool == "read")
        .map(|entry| entry.cached)
        .collect();
    assert_eq!(reads, [false, true, false, true, false, true, false]);
}

/// Proves OUT-41: a reload of the configuration clears the cache.
#[test]
fn reload_clears_the_cache() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let mut script = Script::start(&home);
    script.is_new("read", &path("a.txt"));
    script.is_cached("read", &path("a.txt"));
    home.more_config("[tools.shell]\nblocked_commands = [\"echo\"]\n");
    script.is_new("read", &path("a.txt"));
    script.is_cached("read", &path("a.txt"));
    script.ends();
}

/// Proves OUT-41: diagnostics are cached until a file changes.
#[test]
fn diagnostics_are_cached_until_a_file_changes() {
    let home = Home::new();
    home.write(
        "Cargo.toml",
        "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    home.write("src/main.rs", "fn main() {\n    let unused = 1;\n}\n");
    let lines = |tools: &[(&str, Value)]| {
        let lines: Vec<String> = tools
            .iter()
            .map(|(tool, params)| json!({ "tool": tool, "params": params }).to_string())
            .collect();
        lines.join("\n")
    };
    let fixed = "fn main() {\n    let _used = 1;\n}\n";
    let script = lines(&[
        ("diagnostics", json!({})),
        ("diagnostics", json!({})),
        ("diagnostics", json!({})),
        ("read", path("src/main.rs")),
        ("write", json!({ "path": "src/main.rs", "content": fixed })),
        ("diagnostics", json!({})),
        ("diagnostics", json!({})),
    ]);
    let run = home.zeph(["tools", "run", "--yes"]).with_toolchain();
    let forms = run.stdin(script).code(0).json_lines();
    let reported = |at: usize| {
        (
            forms[at]["cached"].as_bool().unwrap(),
            forms[at]["raw_response"]["warnings"].as_u64().unwrap(),
        )
    };
    // A file that changed just before the call is not trusted, so the first result may not be cached.
    assert_eq!(reported(0), (false, 1), "{forms:#?}");
    assert_eq!(reported(2), (true, 1), "{forms:#?}");
    assert_eq!(reported(5), (false, 0), "{forms:#?}");
    assert_eq!(reported(6).1, 0, "{forms:#?}");
}
