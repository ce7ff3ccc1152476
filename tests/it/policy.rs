//! `[tools.policy]`, `[tools.authorization]` and `zeph policy` through the binary.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, assert_has, audit, results_of};

/// The rules of these tests, which allow reads and commands except for secret files.
const RULES: &str = "[tools.policy]
enabled = true
[[tools.policy.rules]]
effect = 'deny'
tools = '*'
paths = ['secrets/**', '**/*.key']
[[tools.policy.rules]]
effect = 'allow'
tools = ['read', 'bash', 'grep']
[tools.authorization]
enabled = true
[[tools.authorization.rules]]
action = 'allow'
tool = ['write', 'move_path']
paths = 'src/**'
";

fn home(config: &str) -> Home {
    let home = Home::new();
    home.config(config);
    files(&home);
    home
}

fn files(home: &Home) {
    home.write("src/a", "text\n");
    home.write("secrets/key", "hush\n");
}

fn form(home: &Home, tool: &str, params: &Value, more: &[&str]) -> Value {
    home.zeph([
        "tools",
        "call",
        tool,
        &params.to_string(),
        "--json",
        "--yes",
    ])
    .args(more)
    .run()
    .json()
}

/// Proves PERM-10, PERM-11, PERM-12: denied calls run in no mode, even if approved. The user and the trail
/// see the rule, the caller does not.
#[test]
fn denied_call_runs_in_no_mode() {
    let home = home(RULES);
    let file = home.config_file().display().to_string();
    let denied = [
        (
            "read",
            json!({ "path": "secrets/key" }),
            "tools.policy.rules[0]",
        ),
        (
            "read",
            json!({ "path": "src/../secrets/key" }),
            "tools.policy.rules[0]",
        ),
        (
            "bash",
            json!({ "command": "cat secrets/key" }),
            "tools.policy.rules[0]",
        ),
        (
            "bash",
            json!({ "command": "cd secrets; cat k''ey" }),
            "tools.policy.rules[0]",
        ),
        (
            "bash",
            json!({ "command": "cat \"$X\"" }),
            "tools.policy.rules[0]",
        ),
        (
            "move_path",
            json!({ "source": "src/a", "destination": "b" }),
            "tools.policy.default_effect",
        ),
        (
            "write",
            json!({ "path": "ran", "content": "x" }),
            "tools.policy.default_effect",
        ),
        ("get_current_time", json!({}), "tools.policy.default_effect"),
    ];
    for mode in ["ask", "auto-edit", "full", "plan"] {
        for (tool, params, rule) in &denied {
            let output = home
                .zeph([
                    "tools",
                    "call",
                    tool,
                    &params.to_string(),
                    "--json",
                    "--yes",
                ])
                .args(["--mode", mode, "--unsandboxed"])
                .run();
            let form = output.json();
            assert_eq!(
                form["error_category"], "policy_blocked",
                "{mode} {params}: {form}"
            );
            let reported = form.to_string();
            assert_has(&reported, &["policy denied this call"]);
            assert!(
                !reported.contains("rules[") && !reported.contains("hush"),
                "{reported}"
            );
            assert_has(&output.stderr, &[rule, "deny by"]);
            let entries = audit(&home.database());
            let matched = entries.last().and_then(|entry| entry.policy_match.clone());
            let matched = matched.unwrap_or_default();
            assert!(
                matched.starts_with(&format!("deny by {rule} (")),
                "{matched}"
            );
        }
    }
    assert!(!home.has("ran") && !home.has("b") && home.has("src/a"));
    for (tool, params) in [
        ("read", json!({ "path": "src/a" })),
        ("bash", json!({ "command": "cat src/a" })),
        ("write", json!({ "path": "src/b", "content": "x" })),
    ] {
        let form = form(&home, tool, &params, &[]);
        assert_eq!(form["success"], true, "{form}");
    }
    let entries = audit(&home.database());
    let matched = entries.last().and_then(|entry| entry.policy_match.clone());
    let rule = format!("allow by tools.authorization.rules[0] ({file}:");
    assert_has(&matched.unwrap_or_default(), &[&rule, "src/b"]);
}

/// Proves PERM-10, PERM-12: the same for a model and for a script.
#[test]
fn policy_applies_to_every_entry_point() {
    let calls = [
        ("bash", json!({ "command": "cat secrets/key" })),
        ("write", json!({ "path": "ran", "content": "x" })),
        ("read", json!({ "path": "src/a" })),
    ];
    let server = OpenAi::replies([Reply::calls("a", &calls), Reply::text("Done.")]);
    let over_http = Home::openai(&server);
    over_http.more_config(RULES);
    files(&over_http);
    let output = over_http
        .zeph(["-p", "go", "--yes", "--mode", "full", "--unsandboxed"])
        .code(0);
    assert_has(
        &output.stderr,
        &["tools.policy.rules[0]", "tools.policy.default_effect"],
    );
    let results = results_of(&server.last().messages());
    for (_, text) in &results[..2] {
        assert_has(text, &["policy_blocked", "policy denied this call"]);
        assert!(
            !text.contains("rules") && !text.contains("secrets"),
            "{text}"
        );
    }
    assert_has(&results[2].1, &["text"]);
    assert!(!over_http.has("ran"));

    let script = home(RULES);
    let lines: String = calls
        .iter()
        .map(|(tool, params)| json!({ "tool": tool, "params": params }).to_string() + "\n")
        .collect();
    let forms = script
        .zeph(["tools", "run", "--yes"])
        .stdin(lines)
        .run()
        .json_lines();
    let blocked: Vec<bool> = forms
        .iter()
        .map(|form| form["error_category"] == "policy_blocked")
        .collect();
    assert_eq!(blocked, [true, true, false], "{forms:?}");
}

/// Proves PERM-12: an invalid rule stops the start, with file and line; nothing runs.
#[test]
fn invalid_rule_stops_the_start() {
    let check = |rule: &str, line: usize, words: &[&str]| {
        let home = home(&format!(
            "[tools.policy]\nenabled = true\n[[tools.policy.rules]]\n{rule}\n"
        ));
        let place = format!("{}:{line}:", home.config_file().display());
        let output = home
            .zeph([
                "tools",
                "call",
                "bash",
                r#"{"command":"touch ran"}"#,
                "--yes",
            ])
            .code(2);
        assert_has(&output.stderr, &[&place]);
        assert_has(&output.stderr, words);
        assert!(!home.has("ran"));
    };
    check(
        "effect = 'deny'\ntools = 'raed'",
        5,
        &["raed", "did you mean `read`?"],
    );
    check(
        "effect = 'deny'\ntools = '*'\npaths = ['[a']",
        6,
        &["[a", "unclosed"],
    );
    check(
        "effect = 'deny'\ntools = '*'\nargs_match = '(a'",
        6,
        &["(a", "unclosed group"],
    );
    check(
        "effect = 'deny'\ntools = '*'\ntool = 'read'",
        6,
        &["`tools`"],
    );
    check("effect = 'deny'", 4, &["names no tools"]);
    check(
        "effect = 'deny'\ntools = '*'\ncapabilities = ['net']",
        6,
        &["reserved"],
    );
    check(
        "effect = 'deny'\ntools = '*'\npath = 'a'",
        6,
        &["`path`", "`paths`"],
    );
    check(
        "effect = 'denny'\ntools = '*'",
        4,
        &["did you mean \"deny\"?"],
    );
}

/// Proves PERM-11: a project can only prepend rules that deny.
#[test]
fn project_can_only_tighten() {
    let home = home(RULES);
    let project = "[[tools.policy.rules]]\neffect = 'deny'\ntools = ['read']\npaths = ['src/**']\n";
    home.write(".zeph/config.toml", project);
    let read = json!({ "path": "src/a" });
    assert_eq!(
        form(&home, "read", &read, &[])["error_category"],
        "policy_blocked"
    );
    let entries = audit(&home.database());
    let matched = entries
        .last()
        .and_then(|entry| entry.policy_match.clone())
        .unwrap_or_default();
    assert_has(
        &matched,
        &["deny by tools.policy.rules[0]", ".zeph/config.toml:2"],
    );
    // The user's own rules are reported with their own location.
    let hidden = home
        .zeph(["policy", "explain", "read", "secrets/key", "--json"])
        .code(0)
        .json();
    let policy = &hidden["gates"][1];
    assert_eq!(
        (&policy["rule"], &policy["line"]),
        (&json!("tools.policy.rules[1]"), &json!(4)),
        "{hidden}"
    );
    for wrong in [
        "[[tools.policy.rules]]\neffect = 'allow'\ntools = '*'",
        "[[tools.authorization.rules]]\naction = 'allow'\ntools = '*'",
        "[tools.policy]\nenabled = false",
        "[tools.policy]\ndefault_effect = 'allow'",
    ] {
        home.config(&RULES.replace("enabled = true", "enabled = true\n"));
        home.write(".zeph/config.toml", wrong);
        home.zeph(["tools", "list"])
            .code(2)
            .says(&[".zeph/config.toml:", "a project's file"]);
    }
}

/// Proves PERM-11: a change during a session is reported, and applies after a restart.
#[test]
fn changed_policy_applies_after_a_restart() {
    let home = home(RULES);
    let mut session = home.zeph(["tools", "run", "--yes"]).open_stdin("").start();
    let line = json!({ "tool": "read", "params": { "path": "src/a" } }).to_string();
    session.say(&line);
    assert_has(
        &session.next_line().unwrap_or_default(),
        &["\"success\":true"],
    );
    home.config(&RULES.replace("['read', 'bash', 'grep']", "['bash']"));
    session.say(&line);
    assert_has(
        &session.next_line().unwrap_or_default(),
        &["\"success\":true"],
    );
    session.close_stdin();
    let reported = session.wait().code(0).stderr;
    assert_has(&reported, &["after a restart", "tools.policy.rules"]);
    assert_eq!(
        form(&home, "read", &json!({ "path": "src/a" }), &[])["success"],
        false
    );
}

/// Proves PERM-13: `explain` prints the parts of a call, the rule for each with its location, and a rule that
/// would allow it. It runs and writes nothing.
#[test]
fn explain_prints_the_rule_of_each_part() {
    let home = Home::new();
    home.config("[[tools.permissions.bash]]\npattern = 'cargo *'\naction = 'allow'\n[[tools.permissions.bash]]\npattern = 'rm *'\naction = 'deny'\n");
    let file = home.config_file().display().to_string();
    let command = "env A=1 cargo test && touch ran > out/log";
    let reported = home
        .zeph(["policy", "explain", "bash", command])
        .code(0)
        .stdout;
    assert_has(
        &reported,
        &[
            "cargo test",
            "touch ran",
            "out/log",
            "wrapper",
            "ask",
            &format!("{file}:"),
            "ways to allow the call",
            "--yes",
        ],
    );
    let explained = home
        .zeph(["policy", "explain", "bash", command, "--json"])
        .code(0)
        .json();
    assert_eq!(explained["decision"], "ask", "{explained}");
    let pieces = explained["gates"][2]["pieces"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let cargo = pieces.iter().find(|piece| piece["about"] == "cargo test");
    let cargo = cargo.unwrap_or_else(|| panic!("{explained:#}"));
    assert_eq!(
        (&cargo["decision"], &cargo["rule"], &cargo["file"]),
        (
            &json!("allow"),
            &json!("tools.permissions.bash[0]"),
            &json!(file)
        )
    );
    let denied = home
        .zeph([
            "policy",
            "explain",
            "bash",
            r#"{"command": "rm x"}"#,
            "--json",
        ])
        .code(0)
        .json();
    assert_eq!(denied["decision"], "deny", "{denied}");
    home.zeph(["policy", "explain", "bash", "rm -rf /"])
        .code(0)
        .prints(&["blocklist    deny", "- none: "]);
    home.zeph(["policy", "explain", "raed", "x"])
        .code(1)
        .says(&["raed", "read"]);
    home.zeph(["policy", "explain", "read", r#"{"paht": "x"}"#])
        .code(1)
        .says(&["path"]);
    assert!(!home.has("ran") && !home.has("out") && !home.database().exists());
    let data = home.data().join("zeph");
    assert!(!data.exists(), "{} was made", data.display());

    // The suggested rule does allow the call.
    home.config("[tools.policy]\nenabled = true\n");
    home.write("src/a", "text\n");
    let read = home
        .zeph(["policy", "explain", "read", "src/a", "--json"])
        .code(0)
        .json();
    let way = read["would_allow"][0].as_str().unwrap_or_default();
    let (_, rule) = way.split_once(":\n").unwrap_or_else(|| panic!("{read:#}"));
    home.config(&format!("[tools.policy]\nenabled = true\n{rule}"));
    assert_eq!(
        form(&home, "read", &json!({ "path": "src/a" }), &[])["success"],
        true,
        "{rule}"
    );
    assert_eq!(
        form(&home, "read", &json!({ "path": "src/b" }), &[])["error_category"],
        "policy_blocked"
    );
}

/// Proves PERM-13: the explanation equals the enforcement, with permanent approvals and gates without rules.
#[test]
fn policy_explain_matches_enforcement() {
    const RULES: &str = "[tools.file]\ndeny_read = [\"**/*.key\"]\n\
         [[tools.permissions.bash]]\npattern = \"rm *\"\naction = \"deny\"\n\
         [[tools.permissions.bash]]\npattern = \"echo *\"\naction = \"allow\"\n\
         [[tools.permissions.write]]\npattern = \"out/**\"\naction = \"allow\"\n";
    const AGREED: &str = r#"{ "version": 1, "rules": [
        { "tool": "bash", "pattern": "touch *", "scope": "global", "added": "2026-01-02T03:04:05Z" } ] }"#;
    let check = |config: &str, args: &[&str], tool: &str, params: Value, expect: &str| {
        let home = Home::new();
        home.config(config);
        files(&home);
        home.write("a.key", "key\n");
        let agreed = home.home().join(".config/zeph/policies.json");
        std::fs::write(&agreed, AGREED).unwrap();
        std::fs::set_permissions(&agreed, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        let params = params.to_string();
        let explained = home.zeph(["policy", "explain", tool, &params, "--json"]);
        let explained = explained.args(args).code(0).json();
        assert_eq!(
            explained["decision"], expect,
            "{config} {params}: {explained:#}"
        );
        assert!(!home.database().exists());
        let call = || {
            home.zeph(["tools", "call", tool, &params, "--json"])
                .args(args)
        };
        let category = |form: Value| form["error_category"].as_str().map(str::to_owned);
        let found = match category(call().run().json()).as_deref() {
            Some("confirmation_required") => {
                match category(call().arg("--yes").run().json()).as_deref() {
                    Some("policy_blocked") => "deny",
                    _ => "ask",
                }
            }
            Some("policy_blocked") => "deny",
            _ => "allow",
        };
        assert_eq!(found, expect, "{config} {params}");
    };
    let bash = |command: &str| json!({ "command": command });
    let rules = |tool: &str, params: Value, expect: &str| check(RULES, &[], tool, params, expect);
    // The program's own data, also below an allowed directory.
    for own in ["provider-keys", "agent-trust", "filter-trust"] {
        let config = "[tools.file]\nallowed_paths = [\"../data\"]\n";
        let own = json!({ "path": format!("../data/zeph/{own}/x") });
        check(config, &[], "read", own, "deny");
    }
    rules("bash", bash("echo a"), "allow");
    rules("bash", bash("echo a; mkdir d"), "ask");
    rules("bash", bash("echo a; ls"), "allow");
    rules("bash", bash("echo a; rm b"), "deny");
    rules("bash", bash("touch b"), "allow");
    rules("bash", bash("touch b; ls"), "ask");
    rules("bash", bash("echo a > b"), "ask");
    rules("bash", bash("echo a > out/b"), "allow");
    rules("bash", bash("$X a"), "ask");
    rules("bash", bash("sudo true"), "deny");
    rules("bash", bash("cat a.key"), "deny");
    rules("read", json!({ "path": "secrets/key" }), "allow");
    rules("read", json!({ "path": "a.key" }), "deny");
    rules("read", json!({ "path": "/etc/hostname" }), "deny");
    rules("write", json!({ "path": "out/b", "content": "x" }), "allow");
    rules("write", json!({ "path": "b", "content": "x" }), "ask");
    rules("write", json!({ "path": "../b", "content": "x" }), "deny");
    rules("fetch", json!({ "url": "http://example.org/" }), "deny");
    rules("fetch", json!({ "url": "https://127.0.0.1/" }), "deny");
    let touch = || bash("touch b");
    check(RULES, &["--mode", "plan"], "bash", touch(), "deny");
    check(
        RULES,
        &["--mode", "auto-edit"],
        "write",
        json!({ "path": "b", "content": "x" }),
        "allow",
    );
    check(
        "[tools]\nmax_tool_calls_per_session = 0\n",
        &[],
        "bash",
        touch(),
        "deny",
    );
    check(
        "[tools]\nmax_tool_calls_per_session = 2\n",
        &[],
        "bash",
        touch(),
        "allow",
    );
    check(
        "[tools.policy]\nenabled = true\n",
        &[],
        "bash",
        touch(),
        "deny",
    );
    let judged = "[tools.adversarial_policy]\nenabled = true\npolicies = [\"None.\"]\n";
    check(judged, &[], "bash", touch(), "deny");
    check(
        &format!("{judged}fail_open = true\n"),
        &[],
        "bash",
        touch(),
        "allow",
    );
    check(
        &format!("{judged}exempt_tools = [\"bash\"]\n"),
        &[],
        "bash",
        touch(),
        "allow",
    );

    // Stateful gates are named, with the facts that cannot be known.
    let home = Home::new();
    home.config("[tools]\nmax_tool_calls_per_session = 7\n[tools.utility]\nenabled = true\n");
    let reported = home.zeph(["policy", "explain", "read", "a"]).code(0).stdout;
    assert_has(
        &reported,
        &[
            "quota        decides at the call: a session has at most 7 calls",
            "adversarial  off\n",
            "anomaly      decides at the call: it blocks a tool if 70 % of its last 20 calls",
            "utility      decides at the call: it skips a call of the model with a score below 0.00",
        ],
    );
    std::fs::write(home.home().join(".config/zeph/policies.json"), "{").unwrap();
    home.zeph(["policy", "explain", "read", "a"])
        .code(2)
        .says(&["policies.json:1"]);
}

/// Proves PERM-13: examples of rules.
#[test]
fn rule_examples_are_tested() {
    let home = home("");
    home.zeph(["policy", "test"])
        .code(0)
        .prints(&["no rule has examples"]);
    let rules = |example: &str| {
        format!(
            "[[tools.permissions.bash]]\npattern = 'cargo *'\naction = 'allow'\nmatch = ['cargo test']\nnot_match = ['cargo test; rm x', 'rm x']\n\
             [[tools.permissions.write]]\npattern = 'src/**'\naction = 'deny'\nmatch = ['src/a', './src/b']\nnot_match = ['a']\n\
             [[tools.policy.rules]]\neffect = 'deny'\ntools = '*'\npaths = 'secrets/**'\n\
             match = ['read secrets/key', 'bash cat secrets/key', 'move_path {{\"source\": \"a\", \"destination\": \"secrets/a\"}}']\nnot_match = {example}\n"
        )
    };
    home.config(&rules("'read src/a'"));
    home.zeph(["policy", "test"])
        .code(0)
        .prints(&["10 examples: 10 right, 0 wrong"]);
    home.config(&rules("['read secrets/b', 'raed x']"));
    let place = format!("{}:12:", home.config_file().display());
    home.zeph(["policy", "test"]).code(1).prints(&[
        &place,
        "read secrets/b",
        "`not_match`",
        "raed",
        "11 examples: 9 right, 2 wrong",
    ]);
    assert!(!home.database().exists());
}

/// Proves PERM-13: the calls of the trail, decided by other rules.
#[test]
fn replay_decides_stored_calls_by_other_rules() {
    let home = home("");
    home.zeph(["policy", "replay"]).code(0).prints(&["0 calls"]);
    assert!(!home.database().exists());
    form(&home, "read", &json!({ "path": "src/a" }), &[]);
    form(&home, "read", &json!({ "path": "secrets/key" }), &[]);
    form(
        &home,
        "write",
        &json!({ "path": "src/b", "content": "x" }),
        &[],
    );
    form(&home, "bash", &json!({ "command": "touch hi" }), &[]);
    // No rule decided these calls, because earlier gates did.
    form(&home, "bash", &json!({ "command": "sudo ls" }), &[]);
    form(&home, "read", &json!({ "paht": "src/a" }), &[]);
    form(&home, "no_such_tool", &json!({}), &[]);
    // An entry that is not a call.
    home.zeph(["undo"]).code(0);
    let replayed = home.zeph(["policy", "replay", "--json"]).code(0).json();
    assert_eq!(
        (&replayed["calls"], &replayed["same"]),
        (&json!(4), &json!(4)),
        "{replayed:#}"
    );
    let notes = replayed["notes"].to_string();
    assert_has(&notes, &["1 entries of hooks, undone changes"]);
    assert!(!notes.contains("no longer exist"), "{notes}");
    let other = home.path("other.toml");
    std::fs::write(
        &other,
        format!("{RULES}[[tools.permissions.bash]]\npattern = 'touch *'\naction = 'allow'\n"),
    )
    .unwrap();
    let other = other.display().to_string();
    let replayed = home
        .zeph(["policy", "replay", "--json", "--config", &other])
        .code(0)
        .json();
    let changed: Vec<(&str, &str, &str)> = replayed["changed"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|call| {
            let text = |key: &str| call[key].as_str().unwrap_or_default();
            (text("tool"), text("then"), text("now"))
        })
        .collect();
    assert_eq!(
        changed,
        [("read", "allow", "deny"), ("bash", "ask", "allow")],
        "{replayed:#}"
    );
    assert_eq!(replayed["same"], 2);
    home.zeph(["policy", "replay", "--since", "1h", "--config", &other])
        .code(0)
        .prints(&[
            "4 calls: 2 with a different decision",
            "tools.policy.rules[0]",
            "allow → deny",
        ]);
    home.zeph(["policy", "replay", "--since", "soon"])
        .code(2)
        .says(&["soon"]);
    home.zeph(["policy", "replay", "--session", "none"])
        .code(0)
        .prints(&["0 calls"]);
    // Nothing was added to the trail.
    assert_eq!(audit(&home.database()).len(), 8);
}
