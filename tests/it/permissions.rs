//! `[tools.permissions]` through the binary: a denied call does not run under any name or from any entry
//! point.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Terminal, assert_has, audit, results_of};

/// A home with these rules, `tool action pattern`, in the user's file.
fn home(rules: &[(&str, &str, &str)]) -> Home {
    let home = Home::new();
    home.config(&config(rules));
    home.write("src/a", "text\n");
    home.write("secrets/key", "secret\n");
    home
}

fn config(rules: &[(&str, &str, &str)]) -> String {
    rules
        .iter()
        .map(|(tool, action, pattern)| {
            format!("[[tools.permissions.{tool}]]\npattern = '{pattern}'\naction = '{action}'\n")
        })
        .collect()
}

fn form(home: &Home, tool: &str, params: &Value, more: &[&str]) -> Value {
    home.zeph(["tools", "call", tool, &params.to_string(), "--json"])
        .args(more)
        .run()
        .json()
}

/// The decision about a call if no user can answer.
#[track_caller]
fn effect(home: &Home, tool: &str, params: &Value, more: &[&str]) -> &'static str {
    let form = form(home, tool, params, more);
    match form["error_category"].as_str() {
        Some("confirmation_required") => "ask",
        Some("policy_blocked") => {
            let why = form["error_message"].as_str().unwrap_or_default();
            assert!(!why.contains("blocklist"), "{params}: {why}");
            "deny"
        }
        // A command that failed has run.
        _ => "allow",
    }
}

/// Proves PERM-1, PERM-3: the context and the spelling of a command do not change the decision.
#[test]
fn command_spelling_does_not_change_the_decision() {
    let home = home(&[
        ("bash", "deny", "touch *"),
        ("bash", "deny", "* --hard *"),
        ("bash", "ask", "echo ask*"),
        ("bash", "allow", "echo *"),
        ("bash", "allow", "true"),
        ("bash", "allow", "env *"),
    ]);
    for (command, expect) in [
        ("echo hi", "allow"),
        ("ECHO hi", "allow"),
        ("echo hi && echo ho; true", "allow"),
        ("echo hi | echo ho", "allow"),
        ("(echo hi)", "allow"),
        ("echo 'touch x; rm y'", "allow"),
        ("echo hi 2>&1 >/dev/null", "allow"),
        ("echo ask me", "ask"),
        ("true; echo ask", "ask"),
        ("echo hi; mkdir d", "ask"),
        ("echo hi || mkdir d", "ask"),
        ("echo hi | mkdir d", "ask"),
        ("echo hi | cat", "allow"),
        ("echo hi & mkdir d", "ask"),
        ("echo hi\nmkdir d", "ask"),
        ("A=1 echo hi", "ask"),
        ("for PATH in .; do echo hi; done", "ask"),
        ("echo hi <src/a >/dev/fd/0", "ask"),
        ("echo hi 1<src/a >/dev/stdout", "ask"),
        ("command touch -v", "deny"),
        ("env --split-str='touch x'", "deny"),
        ("PATH=.; echo hi", "ask"),
        ("./echo hi", "ask"),
        ("echo hi > out", "ask"),
        ("echo hi >> out", "ask"),
        ("echo hi; touch ran", "deny"),
        ("true && (touch ran)", "deny"),
        ("if true; then touch ran; fi", "deny"),
        ("f() { touch ran; }; f", "deny"),
        ("to\\uch ran", "deny"),
        ("\"touch\" ran", "deny"),
        ("$'touch' ran", "deny"),
        ("/usr/bin/touch ran", "deny"),
        ("Touch ran", "deny"),
        ("A=1 touch ran", "deny"),
        ("env touch ran", "deny"),
        ("env A=1 touch ran", "deny"),
        ("timeout 5 touch ran", "deny"),
        ("bash -c 'touch ran'", "deny"),
        ("echo ran | xargs touch", "deny"),
        ("find src -exec touch ran {} ;", "deny"),
        ("echo git reset --hard HEAD", "deny"),
        ("git reset --hard; echo hi", "deny"),
    ] {
        let params = json!({ "command": command });
        assert_eq!(effect(&home, "bash", &params, &[]), expect, "{command}");
        assert!(!home.has("ran") && !home.has("out"), "{command}: it ran");
        if expect == "deny" {
            let yes = effect(&home, "bash", &params, &["--yes"]);
            assert_eq!(yes, "deny", "{command}");
            assert!(!home.has("ran"), "{command}: it ran");
        }
    }
}

/// Proves PERM-1: each path is matched as written and as resolved.
#[test]
fn paths_are_matched_as_written_and_as_resolved() {
    let home = home(&[
        ("write", "deny", "secrets/**"),
        ("write", "allow", "src/**"),
        ("move_path", "deny", "**/key"),
        ("move_path", "allow", "**"),
        ("copy_path", "deny", "secrets/**"),
        ("copy_path", "allow", "**"),
        ("read", "deny", "**/*.pem"),
        ("read", "allow", "*"),
    ]);
    symlink("secrets", home.path("link")).unwrap();
    symlink("../secrets/new", home.path("src/new")).unwrap();
    symlink("..", home.path("src/up")).unwrap();
    home.write("a.pem", "key");
    symlink("a.pem", home.path("harmless")).unwrap();
    let absolute = home.path("secrets/x").display().to_string();
    for (path, expect) in [
        ("src/b", "allow"),
        ("./src/../src/c", "allow"),
        ("b", "ask"),
        ("src/up/b", "ask"),
        ("secrets/x", "deny"),
        ("SECRETS/x", "deny"),
        ("src/../secrets/x", "deny"),
        ("link/x", "deny"),
        ("src/new", "deny"),
        ("src/up/secrets/x", "deny"),
        (absolute.as_str(), "deny"),
    ] {
        let params = json!({ "path": path, "content": "x" });
        assert_eq!(effect(&home, "write", &params, &[]), expect, "{path}");
    }
    assert!(!home.has("secrets/x") && !home.has("secrets/new") && !home.has("b"));
    assert!(home.has("src/b") && home.has("src/c"));
    for (tool, source, destination, expect) in [
        ("move_path", "secrets/key", "b", "deny"),
        ("move_path", "src/b", "src/key", "deny"),
        ("move_path", "src/b", "d", "allow"),
        ("copy_path", "secrets/key", "e", "deny"),
        ("copy_path", "src/c", "link/c", "deny"),
        ("copy_path", "src/c", "f", "allow"),
    ] {
        let params = json!({ "source": source, "destination": destination });
        assert_eq!(effect(&home, tool, &params, &[]), expect, "{tool} {params}");
    }
    assert!(home.has("secrets/key") && home.has("d") && home.has("f") && !home.has("e"));
    for (path, expect) in [("src/a", "allow"), ("a.pem", "deny"), ("harmless", "deny")] {
        let params = json!({ "path": path });
        assert_eq!(effect(&home, "read", &params, &[]), expect, "{path}");
    }
}

/// Proves PERM-1 for URLs, and for arguments of tools without another target.
#[test]
fn urls_and_arguments_are_judged() {
    let home = home(&[
        ("fetch", "deny", "https://*.example.com/*"),
        ("fetch", "allow", "https://127.0.0.1/*"),
        ("add_task", "deny", "*forbidden*"),
        ("add_task", "allow", "*"),
    ]);
    for (url, expect) in [
        ("https://a.example.com/x", "deny"),
        ("HTTPS://A.EXAMPLE.COM./x", "deny"),
        ("https://example.org/", "ask"),
        ("https://127.0.0.1.example.org/", "ask"),
        // The tool refuses user names, before the question.
        ("https://127.0.0.1@example.org/", "deny"),
    ] {
        let params = json!({ "url": url });
        assert_eq!(effect(&home, "fetch", &params, &[]), expect, "{url}");
    }
    // The tool itself refuses the address after the permission check.
    let local = form(
        &home,
        "fetch",
        &json!({ "url": "https://127.0.0.1/x" }),
        &[],
    );
    assert_has(&local.to_string(), &["is not an address of the public"]);
    for (content, expect) in [("a step", "allow"), ("a FORBIDDEN step", "deny")] {
        let params = json!({ "content": content });
        assert_eq!(effect(&home, "add_task", &params, &[]), expect, "{content}");
    }
}

/// Proves PERM-5, PERM-8: modes and rules.
#[test]
fn modes_and_rules_are_combined() {
    let home = home(&[
        ("bash", "allow", "touch *"),
        ("bash", "deny", "rm *"),
        ("write", "deny", "secrets/**"),
        ("edit", "ask", "*"),
    ]);
    let full = ["--mode", "full", "--unsandboxed"];
    let run = |command: &str| json!({ "command": command });
    let write = |path: &str| json!({ "path": path, "content": "x" });
    let edit = json!({ "path": "src/a", "old_string": "text", "new_string": "new" });
    for (more, allowed, unmatched, written, asked) in [
        (&["--mode", "plan"][..], "deny", "deny", "deny", "deny"),
        (&["--mode", "ask"], "allow", "ask", "ask", "ask"),
        (&["--mode", "auto-edit"], "allow", "ask", "allow", "ask"),
        (&full, "allow", "allow", "allow", "allow"),
    ] {
        let check = |tool: &str, params: Value, expect: &str| {
            assert_eq!(
                effect(&home, tool, &params, more),
                expect,
                "{more:?} {params}"
            );
        };
        check("bash", run("touch t"), allowed);
        check("bash", run("mkdir -p d"), unmatched);
        check("bash", run("ls src"), "allow");
        check("bash", run("rm secrets/key"), "deny");
        check("write", write("new"), written);
        check("write", write("secrets/key"), "deny");
        check("bash", run("touch t > secrets/key"), "deny");
        check("edit", edit.clone(), asked);
        check("read", json!({ "path": "src/a" }), "allow");
    }
    assert_eq!(home.read("secrets/key"), "secret\n");
}

/// Proves PERM-2: the refusal names the rule that would allow the call, and this rule does.
#[test]
fn refusal_names_the_missing_rule() {
    let home = home(&[("bash", "ask", "printf *"), ("bash", "allow", "echo *")]);
    let run = |command: &str, more: &[&str]| {
        let params = json!({ "command": command }).to_string();
        home.zeph(["tools", "call", "bash", &params])
            .args(more)
            .run()
    };
    let command = "echo a; printf '%s*' b > out";
    let stderr = run(command, &[]).code(3).stderr;
    let file = home.config_file().display().to_string();
    assert_has(&stderr, &["--yes", &file, &format!("{file}:2")]);
    let rules: Vec<&str> = stderr
        .lines()
        .map(str::trim)
        .filter(|line| {
            line.starts_with("[[tools.")
                || line.starts_with("pattern = ")
                || line.starts_with("action = ")
        })
        .collect();
    assert_eq!(rules.len(), 6, "{stderr}");
    home.more_config(&rules.join("\n"));
    run(command, &[]).code(0);
    assert_eq!(home.read("out"), "b*");
    // Similar calls still need approval.
    run("printf x", &[]).code(3);
    // No rule allows a command that cannot be resolved.
    let stderr = run("X=1; $X", &[]).code(3).stderr;
    assert!(
        stderr.contains("--yes") && !stderr.contains("[[tools."),
        "{stderr}"
    );
    let entries = audit(&home.database());
    let approved: Vec<&str> = entries
        .iter()
        .map(|entry| entry.approved_by.as_str())
        .collect();
    assert_eq!(approved, ["auto", "policy", "auto", "auto"]);
    let matched = entries[1].policy_match.as_deref().unwrap();
    assert_has(matched, &["tools.permissions.bash[", &file, "allow"]);
}

/// Proves PERM-4: a tool that rules always deny is not exposed, and does not run.
#[test]
fn tool_denied_entirely_is_not_exposed() {
    let server = OpenAi::replies([
        Reply::calls(
            "a",
            &[
                ("delete_path", json!({ "path": "src/a" })),
                ("write_file", json!({ "path": "src/a", "content": "" })),
                ("delete_pat", json!({})),
            ],
        ),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.write("src/a", "text\n");
    home.more_config(&config(&[
        ("delete_path", "deny", "*"),
        ("write", "deny", "secrets/**"),
        ("write", "deny", "**"),
        ("move_path", "allow", "src/**"),
        ("move_path", "deny", "*"),
    ]));
    home.zeph(["-p", "go", "--yes", "--mode", "full", "--unsandboxed"])
        .code(0);
    let offered = server.requests()[0].json()["tools"].to_string();
    assert!(
        !offered.contains("\"delete_path\"") && !offered.contains("\"write\""),
        "{offered}"
    );
    assert_has(&offered, &["\"move_path\"", "\"edit\""]);
    let results = results_of(&server.last().messages());
    for (_, text) in &results[..2] {
        assert_has(text, &["policy_blocked"]);
    }
    assert_has(&results[2].1, &["tool_not_found"]);
    assert!(!results[2].1.contains("delete_path"), "{results:?}");
    assert_eq!(home.read("src/a"), "text\n");
    let listed = home.zeph(["tools", "list"]).code(0).stdout;
    assert!(
        !listed.contains("delete_path") && listed.contains("move_path"),
        "{listed}"
    );
    let entries = audit(&home.database());
    assert!(
        entries.iter().all(|entry| entry.result != "success"),
        "{entries:?}"
    );
}

/// Proves PERM-1, PERM-2, PERM-3: the same rules apply to a model, a script and the user.
#[test]
fn rules_apply_to_every_entry_point() {
    let rules = [("bash", "deny", "touch *"), ("bash", "allow", "echo *")];
    let calls = [
        ("bash", json!({ "command": "echo hi" })),
        ("bash", json!({ "command": "echo hi; /usr/bin/touch ran" })),
    ];
    let server = OpenAi::replies([Reply::calls("a", &calls), Reply::text("Done.")]);
    let over_http = Home::openai(&server);
    let scripted = Home::scripted(
        r#"
        [[steps]]
        calls = [
            { tool = "bash", input = { command = "echo hi" } },
            { tool = "bash", input = { command = "echo hi; /usr/bin/touch ran" } },
        ]
        [[steps]]
        text = "Done."
        "#,
    );
    for home in [&over_http, &scripted] {
        home.more_config(&config(&rules));
        home.zeph(["-p", "go", "--yes"]).code(0);
    }
    let ran = Home::new();
    ran.config(&config(&rules));
    let lines: String = calls
        .iter()
        .map(|(tool, params)| format!("{}\n", json!({ "tool": tool, "params": params })))
        .collect();
    ran.zeph(["tools", "run", "--yes"]).stdin(lines).run();
    for home in [&over_http, &scripted, &ran] {
        assert!(!home.has("ran"));
        let entries = audit(&home.database());
        let results: Vec<(&str, &str)> = entries
            .iter()
            .map(|entry| (entry.result.as_str(), entry.approved_by.as_str()))
            .collect();
        assert_eq!(results, [("success", "policy"), ("blocked", "auto")]);
        let matched = entries[1].policy_match.as_deref().unwrap();
        let file = home.config_file().display().to_string();
        assert_has(
            matched,
            &["tools.permissions.bash[0]", &file, "deny \"touch *\""],
        );
    }
}

/// Proves PERM-6: an invalid rule stops the start, with file and line.
#[test]
fn invalid_rules_stop_the_start() {
    let home = Home::new();
    let file = home.config_file().display().to_string();
    let check = |text: &str, line: usize, words: &[&str]| {
        home.config(text);
        let start = home.zeph([
            "tools",
            "call",
            "bash",
            "{\"command\":\"touch ran\"}",
            "--yes",
        ]);
        let stderr = start.code(2).stderr;
        assert_has(&stderr, &[&format!("{file}:{line}:")]);
        assert_has(&stderr, words);
        home.zeph(["config", "check"]).code(2);
        assert!(!home.has("ran"));
    };
    let rule = |tool: &str, pattern: &str| {
        format!("# rules\n[[tools.permissions.{tool}]]\naction = \"deny\"\npattern = {pattern}\n")
    };
    check(
        &rule("write", "'a/[b'"),
        4,
        &["unclosed `[`", "tools.permissions.write[0]"],
    );
    check(&rule("read", "'a/{b'"), 4, &["unclosed `{`"]);
    check(&rule("bash", "''"), 4, &["empty"]);
    check(&rule("bash", "\"a\\u001bb\""), 4, &["control character"]);
    check(&rule("fetch", "'a\\'"), 4, &["ends with"]);
    check(
        &rule("bash", &format!("'{}'", "a".repeat(513))),
        4,
        &["513"],
    );
    check(&rule("glob", "'x'"), 4, &["glob", "find_path"]);
    check(&rule("baash", "'x'"), 4, &["baash", "did you mean `bash`"]);
    check(
        &format!("{}effect = \"deny\"\n", rule("bash", "'x'")),
        5,
        &["effect"],
    );
    check(
        &rule("bash", "'x'").replace("\"deny\"", "\"forbid\""),
        3,
        &["forbid"],
    );
    check(
        "[[tools.permissions.bash]]\npattern = 'x'\n",
        1,
        &["action"],
    );
    check(
        "[tools.shell]\nconfirm_patterns = ['ok', '']\n",
        2,
        &["confirm_patterns", "empty"],
    );
    home.config(&rule("mcp_files_read", "'x'"));
    home.zeph(["config", "check"]).code(0);
}

/// Proves PERM-1 and EXE-7: rules can be written for every tool there is.
#[test]
fn every_tool_can_have_rules() {
    let home = Home::new();
    let tools = home
        .zeph(["tools", "list", "--json", "--all"])
        .code(0)
        .stdout;
    let tools: Value = serde_json::from_str(&tools).unwrap();
    let names: Vec<&str> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let rules: Vec<(&str, &str, &str)> = names.iter().map(|name| (*name, "ask", "x*")).collect();
    home.config(&config(&rules));
    home.zeph(["tools", "list"]).code(0);
}

/// Proves PERM-5, PERM-5a: the older lists.
#[test]
fn older_lists_become_rules() {
    let home = Home::new();
    home.config("[tools.shell]\nblocked_commands = ['touch forbidden']\nconfirm_patterns = ['echo b', 'git push*']\n");
    home.write("src/a", "text\n");
    let run =
        |command: &str, more: &[&str]| form(&home, "bash", &json!({ "command": command }), more);
    let blocked = run("touch forbidden", &["--yes"]);
    assert_has(blocked["error_message"].as_str().unwrap(), &["blocklist"]);
    let asked = run("echo a; echo b", &[]);
    assert_has(
        asked["error_message"].as_str().unwrap(),
        &["confirm_patterns[0]", "`*echo b*`"],
    );
    // Without a match, the effect class decides, as without lists.
    let rest = run("touch a", &[]);
    assert_eq!(rest["error_category"], "confirmation_required");
    assert_eq!(
        effect(&home, "read", &json!({ "path": "src/a" }), &[]),
        "allow"
    );
    assert_eq!(
        effect(&home, "write", &json!({ "path": "b", "content": "" }), &[]),
        "ask"
    );
    // An explicit rule precedes the lists; no rule overrides the blocklist.
    home.more_config("");
    let old = std::fs::read_to_string(home.config_file()).unwrap();
    home.config(&format!("{}{old}", config(&[("bash", "allow", "*")])));
    assert_eq!(
        effect(&home, "bash", &json!({ "command": "echo b" }), &[]),
        "allow"
    );
    let blocked = run("touch forbidden", &[]);
    assert_has(blocked["error_message"].as_str().unwrap(), &["blocklist"]);
}

/// Proves PERM-1, CFG-1: a project's rules come first, and only tighten.
#[test]
fn project_rules_only_tighten() {
    let home = home(&[
        ("bash", "allow", "echo *"),
        ("bash", "deny", "touch *"),
        ("write", "allow", "**"),
    ]);
    let project = |rules: &[(&str, &str, &str)]| home.write(".zeph/config.toml", &config(rules));
    let bash = |command: &str| effect(&home, "bash", &json!({ "command": command }), &[]);
    assert_eq!((bash("echo hi"), bash("touch x")), ("allow", "deny"));
    project(&[("bash", "ask", "*"), ("write", "deny", "secrets/**")]);
    // An `ask` rule of the project does not weaken a denial.
    assert_eq!((bash("echo hi"), bash("touch x")), ("ask", "deny"));
    let write = |path: &str| effect(&home, "write", &json!({ "path": path, "content": "" }), &[]);
    assert_eq!((write("secrets/x"), write("b")), ("deny", "allow"));
    let entries = audit(&home.database());
    let denied = entries
        .iter()
        .rfind(|entry| entry.tool == "write" && entry.result == "blocked");
    let matched = denied.unwrap().policy_match.as_deref().unwrap();
    let file = home.path(".zeph/config.toml").display().to_string();
    assert_has(
        matched,
        &[&format!("{file}:"), "tools.permissions.write[0]"],
    );
    let hit = entries.iter().rfind(|entry| entry.tool == "bash").unwrap();
    let matched = hit.policy_match.as_deref().unwrap();
    // The user's own rule is reported with its own line.
    assert_has(
        matched,
        &[&format!("{}:5", home.config_file().display()), "touch *"],
    );
    project(&[("bash", "deny", "rm *"), ("bash", "allow", "touch *")]);
    let stderr = home.zeph(["config", "check"]).code(2).stderr;
    assert_has(
        &stderr,
        &[&format!("{file}:6:"), "only add rules that deny or ask"],
    );
    assert_eq!(home.zeph(["tools", "list"]).run().code, Some(2));
}

/// Proves SH-10: the blocklist precedes all rules and questions.
#[test]
fn blocklist_precedes_rules_and_questions() {
    let home = home(&[("bash", "allow", "*"), ("write", "allow", "**")]);
    for command in ["sudo id", "echo x; su - y", "rm -rf ~"] {
        for more in [
            &[][..],
            &["--yes"],
            &["--mode", "full", "--unsandboxed"],
            &["--mode", "plan"],
        ] {
            let refused = form(&home, "bash", &json!({ "command": command }), more);
            assert_eq!(
                refused["error_category"], "policy_blocked",
                "{command}: {refused}"
            );
            let why = refused["error_message"].as_str().unwrap();
            assert_has(why, &["blocklist"]);
        }
    }
    let without_rules = Home::new();
    let asked = form(
        &without_rules,
        "bash",
        &json!({ "command": "sudo id" }),
        &[],
    );
    assert_has(
        asked["error_message"].as_str().unwrap(),
        &["blocklist", "`sudo`"],
    );
}

/// Proves PERM-6 for changes during a session: an invalid rule changes nothing.
#[test]
fn invalid_rule_changes_nothing() {
    let home = home(&[("bash", "deny", "touch *"), ("bash", "allow", "*")]);
    let file = home.config_file().display().to_string();
    home.write(
        "broken.toml",
        "[[tools.permissions.write]]\npattern = '[x'\naction = 'deny'\n",
    );
    let line = |command: String| {
        format!(
            "{}\n",
            json!({ "tool": "bash", "params": { "command": command } })
        )
    };
    let script = line(format!("cp broken.toml {file}")) + &line("touch ran".to_owned());
    let run = [
        "tools",
        "run",
        "--yes",
        "--set",
        "tools.shell.sandbox.mode=off",
    ];
    let output = home.zeph(run).stdin(script).run();
    assert_has(&output.stderr, &["was not applied", "unclosed `[`", ":2:"]);
    assert!(!home.has("ran"), "{output}");
    home.zeph(["tools", "list"]).code(2);
}

/// Proves PERM-3, PERM-8: an unresolvable command needs approval in every mode, and a possible denial
/// prevents an unattended run.
#[test]
fn possibly_denied_command_requires_approval() {
    let home = home(&[("bash", "deny", "touch *"), ("bash", "allow", "*")]);
    for more in [&["--mode", "ask"][..], &["--mode", "full", "--unsandboxed"]] {
        for command in ["X=touch; $X ran", "env $X ran", "find src -exec $X ran ;"] {
            let params = json!({ "command": command });
            assert_eq!(effect(&home, "bash", &params, more), "ask", "{command}");
            assert!(!home.has("ran"), "{command}");
        }
    }
}

/// Proves D-32: an allow rule with the exact text replaces the confirmation of a command that cannot be determined.
/// Other rules do not, and a script that is data is always confirmed.
#[test]
fn undetermined_command_with_an_exact_allow_rule_runs() {
    let rules = [
        ("bash", "allow", "eval $GREETING"),
        ("bash", "allow", "$TOOL --version"),
        ("bash", "allow", "$TOOL *"),
        ("bash", "allow", "echo ls | $TOOL"),
        ("bash", "allow", "sh -c \"$TEXT\""),
        ("bash", "allow", "cat"),
    ];
    let home = home(&rules);
    let check = |command: &str, expect: &str| {
        for mode in ["ask", "auto", "full"] {
            let found = effect(
                &home,
                "bash",
                &json!({"command": command}),
                &["--mode", mode, "--unsandboxed"],
            );
            assert_eq!(found, expect, "{command} in mode {mode}");
        }
    };
    check("eval $GREETING", "allow");
    check("  eval $GREETING ", "allow");
    check("$TOOL --version", "allow");
    check("$TOOL --help", "ask");
    check("eval $greeting", "ask");
    check("eval $GREETING; $OTHER", "ask");
    check("eval $GREETING > $FILE", "ask");
    check("echo ls | $TOOL", "ask");
    check("sh -c \"$TEXT\"", "ask");
    let refused = form(&home, "bash", &json!({"command": "eval $OTHER *.c"}), &[]);
    let message = refused["error_message"].as_str().expect("a message");
    assert!(
        message.contains("pattern = 'eval $OTHER \\*.c'"),
        "{message}"
    );
}

/// Proves D-32, PERM-13: a command that may be one of the user's blocked commands requires confirmation despite an
/// allow rule with the exact text. `zeph policy explain` shows the same decision.
#[test]
fn possibly_blocked_command_with_an_exact_allow_rule_requires_confirmation() {
    let command = "eval $SETUP; true $ACTION";
    let rules = config(&[("bash", "allow", command)]);
    let params = json!({ "command": command });
    let home = Home::new();
    let decisions = || {
        let text = params.to_string();
        let explained = home.zeph(["policy", "explain", "bash", &text, "--json"]);
        let explained = explained.run().json()["decision"].clone();
        (effect(&home, "bash", &params, &[]), explained)
    };
    home.config(&format!(
        "{rules}[tools.shell]\nblocked_commands = ['true destroy']\n"
    ));
    assert_eq!(decisions(), ("ask", json!("ask")));
    // Without the blocked command, the same rule replaces the confirmation.
    home.config(&rules);
    assert_eq!(decisions(), ("allow", json!("allow")));
}

/// Proves PERM-2, PERM-7a, D-42: at a terminal, deny rules precede approved calls. No rule applies to a typed command.
#[test]
fn rules_apply_to_the_interactive_session() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::calls("a", &[("bash", json!({ "command": "touch denied" }))]),
        1 => Reply::calls("b", &[("bash", json!({ "command": "echo agreed > ran" }))]),
        _ => Reply::text("Well."),
    });
    let home = Home::openai(&server);
    let provider = std::fs::read_to_string(home.config_file()).unwrap();
    let provider = provider.replace("api_key_env = \"TEST_KEY\"\n", "");
    home.config(&format!(
        "{}{provider}",
        config(&[("bash", "deny", "touch *")])
    ));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("[1] once");
    terminal.type_keys("1");
    terminal.shows("Well.");
    terminal.prompts("");
    assert!(!home.has("denied"));
    terminal.type_keys("!touch denied\r");
    terminal.prompts("");
    assert!(home.has("denied"));
    assert_eq!(home.read("ran"), "agreed\n");
    let entries = audit(&home.database());
    let recorded: Vec<(&str, &str)> = entries
        .iter()
        .map(|entry| (entry.result.as_str(), entry.approved_by.as_str()))
        .collect();
    assert_eq!(
        recorded[..3],
        [
            ("blocked", "auto"),
            ("success", "user"),
            ("success", "user")
        ]
    );
}

/// Proves PERM-1: rule changes during a session apply after a restart, as a message says.
#[test]
fn changed_rule_requires_a_restart() {
    let home = home(&[("bash", "deny", "touch *"), ("bash", "allow", "echo *")]);
    let line = |command: &str| {
        format!(
            "{}\n",
            json!({ "tool": "bash", "params": { "command": command } })
        )
    };
    // The script itself changes the rules. The sandbox prevents this for the model.
    let loosened = config(&[("bash", "allow", "*")]);
    home.write("new.toml", &loosened);
    let file = home.config_file().display().to_string();
    let change = json!({ "tool": "bash", "params": { "command": format!("cp new.toml {file}") } });
    let script = format!("{change}\n{}", line("touch ran"));
    let output = home
        .zeph([
            "tools",
            "run",
            "--yes",
            "--set",
            "tools.shell.sandbox.mode=off",
        ])
        .stdin(script)
        .run();
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        loosened,
        "{output}"
    );
    assert!(!home.has("ran"), "{output}");
    assert_has(
        &output.stderr,
        &["after a restart", "tools.permissions.bash"],
    );
}

/// Proves PERM-1, FILE-4: `~` in an argument is the home directory, for the gates and for the tool.
#[test]
fn tilde_in_an_argument_is_the_home_directory() {
    let home = Home::new();
    let notes = home.home().join("notes");
    std::fs::create_dir_all(&notes).unwrap();
    std::fs::write(notes.join("a.txt"), "text\n").unwrap();
    home.config(
        "[tools.file]\nallowed_paths = [\"~/notes\"]\n\
         [[tools.permissions.write]]\npattern = \"~/notes/drafts/**\"\naction = \"allow\"\n\
         match = [\"~/notes/drafts/b\"]\n",
    );
    let read = form(&home, "read", &json!({ "path": "~/notes/a.txt" }), &[]);
    assert_eq!(read["success"], true, "{read:#}");
    let write = |path: &str| json!({ "path": path, "content": "x\n" });
    let written = form(&home, "write", &write("~/notes/drafts/b.txt"), &[]);
    assert_eq!(written["success"], true, "{written:#}");
    let draft = std::fs::read_to_string(notes.join("drafts/b.txt")).unwrap();
    assert_eq!(draft, "x\n");
    assert_eq!(effect(&home, "write", &write("~/notes/c.txt"), &[]), "ask");
    let outside = form(&home, "write", &write("~/c.txt"), &["--yes"]);
    assert_eq!(outside["error_category"], "policy_blocked", "{outside:#}");
    assert!(!home.has("~"));
    home.zeph(["policy", "test"]).code(0);
}

/// Proves PERM-13, FILE-4: a search that shows only permitted files is not refused, and a call that its tool refuses in
/// any case is refused without a question.
#[test]
fn known_refusals_are_those_of_the_tool() {
    let home = Home::new();
    home.write("src/a.rs", "x\n");
    home.write("notes.txt", "x\n");
    home.config(
        "[tools.file]\nallow_read = [\"**/*.rs\"]\n\
         [[tools.permissions.grep]]\npattern = \"secrets/**\"\naction = \"ask\"\n",
    );
    let grep = json!({ "pattern": "x" }).to_string();
    let found = home.zeph(["tools", "call", "grep", &grep, "--yes"]).code(0);
    assert_has(&found.stdout, &["src/a.rs:1:x"]);
    assert!(!found.stdout.contains("notes.txt"), "{}", found.stdout);

    home.write(".env", "KEY=1\n");
    home.config("[tools.file]\ndeny_read = [\"**/.env\"]\n");
    let category = |tool: &str, params: Value| {
        let params = params.to_string();
        let form = home.zeph(["tools", "call", tool, &params, "--json"]).run();
        form.json()["error_category"].clone()
    };
    let edit = json!({ "path": ".env", "old_string": "1", "new_string": "2" });
    assert_eq!(category("edit", edit), "policy_blocked");
    let to = json!({ "source": ".env", "destination": "b" });
    assert_eq!(category("move_path", to), "policy_blocked");
    let path = json!({ "path": ".env" });
    assert_eq!(category("delete_path", path), "confirmation_required");
}
