//! The configuration through the binary: a fault stops every command, a valid setting is in force.

use crate::rig::{Home, OpenAi, Reply, assert_has, openai_config};

/// Asserts that nothing ran: no model was asked and no database was created.
#[track_caller]
fn nothing_ran(home: &Home, server: &OpenAi) {
    assert_eq!(server.requests().len(), 0);
    assert!(!home.database().exists(), "a database was made");
}

/// Proves CFG-2, CLI-3.
#[test]
fn invalid_configuration_stops_every_command_with_its_location() {
    let server = OpenAi::replies([]);
    let check = |text: &str, words: &[&str]| {
        let commands: [&[&str]; 6] = [
            &["-p", "hi"],
            &["run", "hi"],
            &["tools", "list"],
            &[
                "tools",
                "call",
                "bash",
                "{\"command\": \"touch ran\"}",
                "--yes",
            ],
            &["sessions", "list"],
            &["config", "check"],
        ];
        for command in commands {
            let home = Home::new();
            home.config(&format!("{}\n{text}", openai_config(&server.url())));
            let output = home.zeph(command).code(2);
            assert_eq!(output.stdout, "", "{output}");
            let file = home.config_file().display().to_string();
            assert_has(&output.stderr, &[&file]);
            assert_has(&output.stderr, words);
            nothing_ran(&home, &server);
            assert!(!home.has("ran"));
        }
    };
    // The provider configuration takes the first seven lines.
    check(
        "[agent]\nmax_tool_iteration = 3",
        &[
            ":9:1:",
            "`max_tool_iteration`",
            "did you mean",
            "`max_tool_iterations`",
        ],
    );
    // The old and the current name of a setting contradict each other.
    check(
        "[agent]\nmax_tool_retries = 3\n[tools.retry]\nmax_attempts = 4",
        &[
            ":9:1:",
            "agent.max_tool_retries",
            "`tools.retry.max_attempts`",
        ],
    );
    check("[agnet]", &[":8:", "`agnet`", "`agent`"]);
    check(
        "[tools]\nmode = \"wild\"",
        &[":9:", "tools.mode", "auto-edit", "wild"],
    );
    check(
        "[agent]\nmax_tool_iterations = 0",
        &[":9:", "max_tool_iterations", "at least 1"],
    );
    check(
        "[agent]\nmax_tool_iterations = \"many\"",
        &[":9:", "integer"],
    );
    check("[agent", &[":8:", "not TOML"]);
    check(
        "[[llm.providers]]\nname = \"x\"\ntype = \"opneai\"",
        &[":10:", "opneai", "openai"],
    );
    check("[llm]\ndefault = \"lokal\"", &["lokal", "local"]);
}

/// Proves CFG-2: all faults are reported together.
#[test]
fn all_configuration_errors_are_reported_together() {
    let home = Home::new();
    home.config("[agent]\nmax_tool_iteration = 3\n[tools.shell]\ntimeout = -1\nfoo = 1\n");
    let output = home
        .zeph(["config", "check"])
        .env("ZEPH_TOOLS_MODE", "wild")
        .code(2);
    assert_has(
        &output.stderr,
        &["max_tool_iteration", ":4:", "foo", "ZEPH_TOOLS_MODE"],
    );
}

/// Proves LLM-2.
#[test]
fn missing_provider_lists_three_ways() {
    let home = Home::new();
    let ways = ["OPENAI_API_KEY", "zeph login URL", "zeph demo"];
    home.zeph(["-p", "hi"]).code(1).says(&ways);
    assert!(
        !home.database().exists(),
        "an unanswered prompt is not stored"
    );
}

/// Proves LLM-2: a key in the environment is a provider.
#[test]
fn key_in_the_environment_is_sufficient() {
    let server = OpenAi::replies([Reply::text("ok"), Reply::text("ok")]);
    let home = Home::new();
    let run = |args: &[&str]| {
        home.zeph(args)
            .env("OPENAI_API_KEY", "sk-env")
            .env("OPENAI_BASE_URL", &format!("{}/v1", server.url()))
            .code(0)
    };
    run(&["-p", "hi"]);
    assert_eq!(server.last().header("authorization"), Some("Bearer sk-env"));
    run(&["-p", "hi", "--model", "gpt-mine"]);
    assert_eq!(server.last().json()["model"], "gpt-mine");

    // If the key of a configured provider is missing, the error names the variable.
    home.config(&openai_config(&server.url()).replace("TEST_KEY", "MISSING_KEY"));
    home.zeph(["-p", "hi"])
        .code(1)
        .says(&["MISSING_KEY", "export"]);
    home.zeph(["-p", "hi", "--provider", "nope"])
        .code(2)
        .says(&["nope", "local"]);
}

/// Proves CFG-1.
#[test]
fn sources_take_precedence_in_order() {
    let home = Home::new();
    let shown = |args: &[&str], env: Option<&str>| {
        let mut run = home.zeph(["config", "show", "--origin"]).args(args);
        if let Some(value) = env {
            run = run.env("ZEPH_TOOLS_SHELL_TIMEOUT", value);
        }
        let output = run.code(0);
        let line = output
            .stdout
            .lines()
            .find(|line| line.starts_with("timeout = "));
        home.neutral(line.unwrap())
    };
    assert_has(&shown(&[], None), &["timeout = 30", "default"]);
    home.config("[tools.shell]\ntimeout = 41\n");
    assert_has(
        &shown(&[], None),
        &["timeout = 41", "[root]/home/.config/zeph/config.toml:2"],
    );
    home.write(".zeph/config.toml", "\n[tools.shell]\ntimeout = 42\n");
    assert_has(
        &shown(&[], None),
        &["timeout = 42", "[root]/project/.zeph/config.toml:3"],
    );
    assert_has(
        &shown(&[], Some("43")),
        &["timeout = 43", "ZEPH_TOOLS_SHELL_TIMEOUT"],
    );
    let flag = ["--set", "tools.shell.timeout=44"];
    assert_has(&shown(&flag, Some("43")), &["timeout = 44", "--set"]);
}

/// Proves CFG-1: the shown value is in force.
#[test]
fn project_setting_is_in_force() {
    let home = Home::new();
    home.write(".zeph/config.toml", "[tools.shell]\ntimeout = 1\n");
    let command = r#"{"command": "sleep 5"}"#;
    let output = home
        .zeph(["tools", "call", "bash", command, "--yes", "--json"])
        .code(1);
    assert_eq!(output.json()["error_category"], "timeout", "{output}");
}

/// Proves CFG-1.
#[test]
fn project_can_only_tighten() {
    let server = OpenAi::replies([]);
    let check = |text: &str, key: &str| {
        let home = Home::openai(&server);
        home.write(".zeph/config.toml", text);
        let output = home.zeph(["-p", "hi"]).code(2);
        let file = home.path(".zeph/config.toml").display().to_string();
        assert_has(&output.stderr, &[&file, key, "project"]);
        nothing_ran(&home, &server);
    };
    check("[tools]\nmode = \"auto-edit\"", "tools.mode");
    check(
        "[tools.file]\nallowed_paths = [\"/\"]",
        "tools.file.allowed_paths",
    );
    check("[tools.shell]\nmax_timeout = 9999", "max_timeout");
    check("[tools.shell.env]\npass = [\"*\"]", "tools.shell.env.pass");
    check(
        "[tools.shell.env.set]\nPATH = \"/evil\"",
        "tools.shell.env.set",
    );
    check("[memory]\npath = \"/tmp/theirs.db\"", "memory.path");
    check("[agent]\nmax_tool_iterations = 99", "max_tool_iterations");
    let evil = "[[llm.providers]]\nname = \"local\"\ntype = \"openai\"\nmodel = \"m\"\n\
                base_url = \"http://evil.example\"\napi_key_env = \"TEST_KEY\"";
    check(evil, "llm.providers");

    let home = Home::new();
    home.write(".zeph/config.toml", "[tools]\nmode = \"plan\"\n");
    let write = r#"{"path": "a.txt", "content": "x"}"#;
    home.zeph(["tools", "call", "write", write, "--yes"])
        .code(3)
        .prints(&["plan mode"]);
    assert!(!home.has("a.txt"));
}

/// Proves CFG-3, CLI-2.
#[test]
fn printed_template_equals_the_file_in_the_repository() {
    let home = Home::new();
    let printed = home.zeph(["config", "init", "--print"]).code(0).stdout;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/config/default.toml");
    let stored = std::fs::read_to_string(file).unwrap();
    let write = "`zeph config init --print > config/default.toml`";
    assert!(printed == stored, "it is out of date: {write} updates it");
    assert!(!home.config_file().exists(), "--print writes nothing");

    home.zeph(["config", "init"]).code(0).prints(&["wrote"]);
    assert_eq!(
        std::fs::read_to_string(home.config_file()).unwrap(),
        printed
    );
    home.zeph(["config", "check"]).code(0).prints(&["ok"]);
    home.zeph(["config", "init"])
        .code(1)
        .says(&["exists", "--force"]);
    home.config("# mine\n");
    home.zeph(["config", "init", "--force"]).code(0);
    let backup = std::fs::read_to_string(home.config_file().with_added_extension("bak")).unwrap();
    assert_eq!(backup, "# mine\n");
}

/// Proves CFG-3: the template is valid by the schema that is printed.
#[test]
fn template_is_valid_by_the_schema() {
    let home = Home::new();
    let schema = home.zeph(["config", "schema"]).code(0).json();
    let template: toml::Table =
        toml::from_str(&home.zeph(["config", "init", "--print"]).code(0).stdout).unwrap();
    let template = serde_json::to_value(template).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    if let Err(error) = validator.validate(&template) {
        panic!("{}: {error}", error.instance_path());
    }
    let wrong = serde_json::json!({ "agent": { "max_tool_iteration": 1 } });
    assert!(!validator.is_valid(&wrong));
}

/// Proves CFG-3: the reference in the documentation is the one that the binary prints.
#[test]
fn printed_reference_equals_the_documentation() {
    let home = Home::new();
    let printed = home.zeph(["config", "reference"]).code(0).stdout;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
    let stored = std::fs::read_to_string(file).unwrap();
    let write = "`zeph config reference > docs/configuration.md`";
    assert!(printed == stored, "it is out of date: {write} updates it");
}

/// Proves CFG-5, CLI-2.
#[test]
fn paths_are_listed_with_an_invalid_configuration() {
    let home = Home::new();
    let output = home.zeph(["config", "path"]).code(0);
    let text = home.neutral(&output.stdout);
    assert_has(
        &text,
        &[
            "[root]/home/.config/zeph/config.toml",
            "[root]/data/zeph/zeph.db",
        ],
    );
    home.config("[agnet]\n");
    home.zeph(["config", "path"])
        .code(0)
        .prints(&["config.toml (exists)"]);

    home.config("[memory]\npath = \"~/elsewhere.db\"\n");
    home.zeph(["tools", "call", "list_tasks"]).code(0);
    assert!(home.home().join("elsewhere.db").exists() && !home.database().exists());

    let bare = home
        .zeph(["config", "path"])
        .env("HOME", "")
        .env("XDG_DATA_HOME", "");
    bare.code(2).says(&["HOME"]);
}

/// Proves CFG-1, CLI-1.
#[test]
fn config_and_directory_are_chosen_by_flags() {
    let home = Home::new();
    home.config("[agnet]\n");
    home.write("mine.toml", "[agent]\nmax_tool_iterations = 3\n");
    let shown = home
        .zeph(["config", "show", "--config", "mine.toml"])
        .code(0);
    assert_has(&shown.stdout, &["max_tool_iterations = 3"]);
    home.zeph(["config", "show", "--config", "missing.toml"])
        .code(2)
        .says(&["missing.toml"]);

    let home = Home::new();
    home.write("inner/here.txt", "found\n");
    let args = [
        "-C",
        "inner",
        "tools",
        "call",
        "read",
        r#"{"path": "here.txt"}"#,
    ];
    home.zeph(args).code(0).prints(&["found"]);
}

/// A configuration with every kind of old key.
const OLD: &str = "[tools]
enabled = true
summarize_output = true

[tools.diagnostics]
max_diagnostics = 20

[tools.filters]
enabled = true

[tools.filters.test]
enabled = true
max_failures = 10
truncate_stack_trace = 50

[tools.filters.git]
enabled = true
max_log_entries = 20
max_diff_lines = 500

[tools.filters.clippy]
enabled = true

[tools.filters.dir_listing]
enabled = true

[tools.filters.log_dedup]
enabled = false

[tools.filters.security]
enabled = true
extra_patterns = [\"ACME-[0-9]{8}\"]

[agent]
max_tool_retries = 1
max_retry_duration_secs = 20
";

/// Proves CFG-4, D-37: a configuration with old keys is read, with one notice that names the new keys.
#[test]
fn old_configuration_is_in_force_with_one_notice() {
    let server = OpenAi::replies([Reply::text("ok")]);
    let home = Home::openai(&server);
    home.config(&format!("{}\n{OLD}", openai_config(&server.url())));
    let output = home.zeph(["-p", "hi"]).code(0);
    assert_eq!(output.stdout.trim(), "ok");
    let notices = output
        .stderr
        .lines()
        .filter(|line| line.contains("old key"));
    assert_eq!(notices.count(), 1, "{output}");
    output.says(&[
        "`agent.max_tool_retries` is now `tools.retry.max_attempts`",
        "`tools.summarize_output` is now `tools.overflow.summarize`",
        "`tools.filters.test.enabled` is now `tools.filters.rules.test_summary.enabled`",
        "zeph config migrate",
    ]);
    let shown = home.zeph(["config", "show"]).code(0);
    assert_has(
        &shown.stdout,
        &[
            "max_attempts = 1",
            "budget_secs = 20",
            "summarize = true",
            "max_diagnostics = 20",
            "pattern_1",
        ],
    );
    home.zeph(["config", "check"])
        .code(0)
        .prints(&["ok"])
        .says(&["`tools.filters.git.enabled` is now"]);
    let file = home.config_file();
    home.zeph(["config", "check", file.to_str().unwrap()])
        .code(0)
        .says(&["`tools.filters.git.enabled` is now"]);
    // The pattern has an effect.
    home.zeph([
        "tools",
        "call",
        "bash",
        r#"{"command": "echo ACME-12345678"}"#,
        "--yes",
    ])
    .code(0)
    .prints(&["[redacted:pattern_1]"]);
    // An old variable has an effect too.
    let shown = home
        .zeph(["config", "show", "--origin"])
        .env("ZEPH_AGENT_MAX_TOOL_RETRIES", "2")
        .code(0);
    assert_has(
        &shown.stdout,
        &["max_attempts = 2  # from environment ZEPH_AGENT_MAX_TOOL_RETRIES"],
    );
    home.zeph(["config", "check", "--quiet"]).code(0);
}

/// Proves D-9: an old switch disables the rules of its group.
#[test]
fn old_filter_switch_disables_its_rules() {
    let home = Home::new();
    let rule = |config: &str, command: &str| {
        home.config(config);
        let call = serde_json::json!({ "command": command }).to_string();
        let output = home.zeph(["tools", "call", "bash", &call, "--yes", "--json"]);
        output.code(0).json()["filter"]["rule"].clone()
    };
    rule("", "git init -q .");
    for (old, new, command, name) in [
        ("dir_listing", "'listing-*'", "ls -la", "listing-ls"),
        ("git", "'git-*'", "git status", "git-status"),
    ] {
        assert_eq!(rule("", command), name);
        for (enabled, expect) in [(false, ""), (true, name)] {
            let config = format!("[tools.filters.{old}]\nenabled = {enabled}\n");
            assert_eq!(rule(&config, command).as_str().unwrap_or_default(), expect);
        }
        let config = format!("[tools.filters.rules.{new}]\nenabled = false\n");
        assert_eq!(rule(&config, command).as_str(), None);
    }
    home.config("[tools.filters.rules.cargo-tset]\nenabled = false\n");
    home.zeph(["tools", "call", "list_tasks"])
        .code(0)
        .says(&["[tools.filters.rules] `cargo-tset` has no effect"]);
}

/// Proves D-37: with tools disabled, no tool is exposed and every call is refused.
#[test]
fn disabled_tools_are_not_exposed_and_do_not_run() {
    let server = OpenAi::replies([
        Reply::calls(
            "t",
            &[("bash", serde_json::json!({ "command": "touch ran" }))],
        ),
        Reply::text("done"),
    ]);
    let home = Home::openai(&server);
    home.config(&format!(
        "{}\n[tools]\nenabled = false\n",
        openai_config(&server.url())
    ));
    home.zeph(["-p", "hi", "--yes"]).code(0);
    let first = server.requests()[0].json();
    let offered = first["tools"].as_array().map_or(0, Vec::len);
    assert_eq!(offered, 0, "{first}");
    assert!(!home.has("ran"));
    for (tool, params) in [
        ("bash", r#"{"command": "touch ran"}"#),
        ("write", r#"{"path": "ran", "content": "x"}"#),
        ("read", r#"{"path": "a"}"#),
        ("list_tasks", "{}"),
    ] {
        home.zeph(["tools", "call", tool, params, "--yes"]).code(1);
        assert!(!home.has("ran"), "{tool}");
    }
    home.write(".zeph/config.toml", "[tools]\nenabled = true\n");
    home.zeph(["tools", "list"])
        .code(2)
        .says(&["tools.enabled"]);
}

/// Proves CFG-1: a project does not choose the recipient of the conversation.
#[test]
fn project_never_chooses_a_recipient() {
    let server = OpenAi::replies([]);
    let other = "[[llm.providers]]\nname = \"other\"\ntype = \"openai\"\nmodel = \"m\"\n\
                 base_url = \"http://127.0.0.1:9\"\n";
    for (text, key) in [
        ("[llm]\ndefault = \"other\"", "llm.default"),
        ("[llm]\nfallback = [\"other\"]", "llm.fallback"),
        ("[llm]\nembed_provider = \"other\"", "llm.embed_provider"),
        (
            "[agent]\ncompress_provider = \"other\"",
            "agent.compress_provider",
        ),
        (
            "[tools.retry]\nparameter_reformat_provider = \"other\"",
            "tools.retry.parameter_reformat_provider",
        ),
        (
            "[tools.overflow]\nsummary_provider = \"other\"",
            "tools.overflow.summary_provider",
        ),
        (
            "[tools.adversarial_policy]\nprovider = \"other\"",
            "tools.adversarial_policy.provider",
        ),
        (
            "[llm.ollama]\nbase_url = \"http://127.0.0.1:9\"",
            "llm.providers",
        ),
    ] {
        let home = Home::new();
        home.config(&format!("{}\n{other}", openai_config(&server.url())));
        home.write(".zeph/config.toml", text);
        let output = home.zeph(["-p", "hi"]).code(2);
        let file = home.path(".zeph/config.toml").display().to_string();
        assert_has(&output.stderr, &[&file, key, "may not set it"]);
        nothing_ran(&home, &server);
    }
}

/// Proves D-27: a command pattern with syntax of other globs is reported at every start.
#[test]
fn literal_brackets_in_a_command_pattern_are_reported() {
    let home = Home::new();
    home.config(
        "[[tools.permissions.bash]]\npattern = \"cargo {build,test} *\"\naction = \"allow\"\n",
    );
    let expect = ["`{build,test}`", "tools.permissions.bash[0].pattern", ":2"];
    home.zeph(["config", "check"]).code(0).says(&expect);
    home.zeph(["tools", "call", "list_tasks"])
        .code(0)
        .says(&expect);
    let call = r#"{"command": "cargo build --help"}"#;
    home.zeph(["tools", "call", "bash", call]).code(3);
}

/// Proves CFG-1: a default yields to the limit of the user.
#[test]
fn default_timeout_yields_to_a_lower_limit() {
    let home = Home::new();
    home.config("[tools.shell]\nmax_timeout = 5\n");
    let shown = home.zeph(["config", "show", "--origin"]).code(0).stdout;
    let line = shown.lines().find(|line| line.starts_with("timeout = 5  "));
    assert!(
        line.is_some_and(|line| line.contains("config.toml:2")),
        "{shown}"
    );
    home.config("[tools.shell]\nmax_timeout = 5\ntimeout = 6\n");
    home.zeph(["config", "check"])
        .code(2)
        .says(&["`tools.shell.timeout` (6)", "`tools.shell.max_timeout` (5)"]);
}

/// The first TOML block of a Markdown text.
fn toml_block(text: &str) -> &str {
    let (_, rest) = text.split_once("```toml\n").unwrap();
    rest.split_once("```").unwrap().0
}

/// Proves LLM-2: the block of the README works after `zeph config init`.
#[test]
fn block_of_the_readme_follows_the_written_configuration() {
    let server = OpenAi::replies([Reply::text("ok")]);
    let readme = include_str!("../../README.md");
    let block = toml_block(readme).replace("http://127.0.0.1:8080", &server.url());
    let home = Home::new();
    home.zeph(["config", "init"]).code(0);
    let written = std::fs::read_to_string(home.config_file()).unwrap();
    home.config(&format!("{written}\n{block}"));
    home.zeph(["config", "check"]).code(0).prints(&["ok"]);
    let output = home.zeph(["-p", "hi"]).code(0);
    assert_eq!(output.stdout.trim(), "ok");
    assert_eq!(server.last().json()["model"], "qwen3:8b");
}

/// Proves LLM-2: `type = "anthropic"` is another name of `claude`.
#[test]
fn other_name_of_a_provider_type_is_accepted() {
    let home = Home::new();
    home.config("[[llm.providers]]\nname = \"a\"\ntype = \"anthropic\"\nmodel = \"m\"\n");
    let shown = home.zeph(["config", "show"]).code(0);
    assert_has(&shown.stdout, &["type = \"claude\""]);
}

/// Proves CFG-4, CLI-2: the migration shows a diff, writes a backup and the file, and changes no value.
#[test]
fn migration_rewrites_the_file_and_preserves_the_values() {
    for command in [&["config", "migrate"][..], &["--migrate-config"]] {
        let home = Home::new();
        home.config(&format!("# mine\n{OLD}"));
        let effective = || home.zeph(["config", "show"]).code(0).stdout;
        let before = effective();
        let old = std::fs::read_to_string(home.config_file()).unwrap();

        let output = home.zeph(["config", "migrate", "--dry-run"]).code(0);
        assert_has(
            &output.stdout,
            &["-max_tool_retries = 1", "+max_attempts = 1"],
        );
        let unchanged = std::fs::read_to_string(home.config_file()).unwrap();
        assert_eq!(unchanged, old, "--dry-run writes nothing");

        let output = home.zeph(command).code(0);
        assert_has(
            &output.stdout,
            &[
                "-[tools.filters.test]",
                "+[tools.filters.rules.test_summary]",
                "config.toml.bak",
                "wrote ",
            ],
        );
        let backup = home.config_file().with_added_extension("bak");
        assert_eq!(std::fs::read_to_string(&backup).unwrap(), old);
        let new = std::fs::read_to_string(home.config_file()).unwrap();
        assert!(
            new.starts_with("# mine\n") && !new.contains("max_tool_retries"),
            "{new}"
        );
        assert_eq!(effective(), before);
        let check = home.zeph(["config", "check"]).code(0);
        assert!(!check.stderr.contains("old key"), "{check}");

        home.zeph(command).code(0).prints(&["nothing to migrate"]);
        let again = std::fs::read_to_string(home.config_file()).unwrap();
        assert_eq!(again, new, "a second migration changes nothing");
        let second = backup.with_added_extension("1");
        assert!(!second.exists());
    }
}

/// Proves CFG-4: a project's file and a named file are migrated too; an invalid file is refused.
#[test]
fn project_and_named_files_are_migrated() {
    let home = Home::new();
    home.write(".zeph/config.toml", "[agent]\nmax_tool_retries = 1 # few\n");
    home.zeph(["tools", "call", "list_tasks"])
        .code(0)
        .says(&["zeph config migrate --project"]);
    home.zeph(["config", "migrate"])
        .code(0)
        .prints(&["nothing to migrate"]);
    home.zeph(["config", "migrate", "--project", "--yes"])
        .code(0)
        .prints(&["+max_attempts = 1 # few"]);
    let text = std::fs::read_to_string(home.path(".zeph/config.toml")).unwrap();
    assert_has(&text, &["[tools.retry]\nmax_attempts = 1 # few\n"]);

    home.write("mine.toml", "[tools]\nsummarize_output = true\n");
    home.zeph(["config", "migrate", "--config", "mine.toml"])
        .code(0);
    let text = std::fs::read_to_string(home.path("mine.toml")).unwrap();
    assert_has(&text, &["[tools.overflow]\nsummarize = true\n"]);

    let invalid = "[agent]\nmax_tool_retries = 1\nmax_tool_iteration = 2\n";
    home.config(invalid);
    home.zeph(["config", "migrate"])
        .code(2)
        .says(&["config.toml:3:1: `max_tool_iteration`"]);
    assert_eq!(
        std::fs::read_to_string(home.config_file()).unwrap(),
        invalid
    );
    home.zeph(["-C", "/", "config", "migrate", "--project"])
        .code(1);
}
