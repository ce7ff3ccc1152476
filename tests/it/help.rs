//! Help, version, completions, manual page.

use crate::rig::{Home, assert_has};

/// Every command.
const COMMANDS: &[&str] = &[
    "",
    "run",
    "tools",
    "tools list",
    "tools show",
    "tools call",
    "tools run",
    "sessions",
    "sessions list",
    "sessions show",
    "sessions export",
    "sessions rm",
    "memory",
    "memory list",
    "memory search",
    "memory rm",
    "overflow",
    "overflow get",
    "overflow list",
    "audit",
    "audit verify",
    "audit head",
    "audit tail",
    "audit query",
    "filter",
    "filter run",
    "filter gain",
    "filter verify",
    "filter trust",
    "filter explain",
    "policy",
    "policy explain",
    "policy test",
    "policy replay",
    "undo",
    "scheduler",
    "scheduler add",
    "scheduler list",
    "scheduler rm",
    "scheduler run",
    "skills",
    "skills list",
    "skills show",
    "skills trust",
    "skills untrust",
    "commands",
    "commands list",
    "commands show",
    "commands trust",
    "commands untrust",
    "config",
    "config init",
    "config show",
    "config path",
    "config schema",
    "config check",
    "config migrate",
    "mcp",
    "mcp add",
    "mcp approve",
    "mcp disable",
    "mcp enable",
    "mcp forget",
    "mcp serve",
    "acp",
    "mcp get",
    "mcp list",
    "mcp login",
    "mcp logout",
    "mcp remove",
    "mcp test",
    "doctor",
    "models",
    "models pull",
    "models list",
    "models path",
    "models rm",
    "demo",
    "completions",
    "man",
];

/// Proves CLI-1, CLI-2.
#[test]
fn help_of_every_command() {
    let home = Home::new();
    let mut all = String::new();
    for command in COMMANDS {
        let output = home.zeph(command.split_whitespace()).arg("--help").code(0);
        assert_eq!(output.stderr, "", "{command}");
        let title = format!("zeph {command}");
        all += &format!("━━ {}\n{}\n", title.trim(), output.stdout);
    }
    insta::assert_snapshot!(all);
}

/// Proves CLI-2: no command is missing in the list above.
#[test]
fn every_command_is_known_to_these_tests() {
    let home = Home::new();
    for command in COMMANDS {
        let output = home
            .zeph(command.split_whitespace())
            .arg("--help")
            .code(0)
            .stdout;
        let listed = output
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1);
        for line in listed.take_while(|line| !line.trim().is_empty()) {
            let name = line.split_whitespace().next().unwrap();
            let whole = format!("{command} {name}");
            let known = name == "help" || COMMANDS.contains(&whole.trim());
            // A long description continues in the next line with deeper indentation.
            assert!(
                known || line.starts_with("   "),
                "{whole} has no snapshot of its help"
            );
        }
    }
}

/// Proves CLI-2.
#[test]
fn version_completions_and_manual() {
    let home = Home::new();
    let version = home.zeph(["--version"]).code(0).stdout;
    assert_eq!(version, format!("zeph {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.zeph(["completions", shell]).code(0).stdout;
        assert_has(&script, &["zeph", "sessions", "output-format"]);
    }
    home.zeph(["completions", "tcsh"])
        .code(2)
        .says(&["tcsh", "bash"]);
    let page = home.zeph(["man"]).code(0).stdout;
    assert_has(&page, &[".TH zeph 1", "tools"]);
    assert!(
        !home.data().join("zeph").exists(),
        "nothing is made for that"
    );
}

/// Proves CLI-2: bash can parse its completion script.
#[test]
fn bash_reads_its_completions() {
    let home = Home::new();
    let script = r#""$0" completions bash > completions.sh && bash -n completions.sh"#;
    let output = crate::rig::Zeph::through_bash(&home, script).run();
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (Some(0), ""),
        "{output}"
    );
}

/// Proves CLI-3.
#[test]
fn what_is_wrong_on_the_command_line_is_exit_2() {
    let home = Home::new();
    let check = |args: &[&str], words: &[&str]| {
        home.zeph(args).code(2).says(words);
    };
    check(&["--no-such"], &["--no-such", "--help"]);
    check(&["tolls"], &["tolls"]);
    check(&["tools", "lst"], &["lst", "list"]);
    check(&["-p"], &["TEXT"]);
    check(
        &["-p", "x", "--output-format", "xml"],
        &["xml", "stream-json"],
    );
    check(
        &["--set", "novalue", "tools", "list"],
        &["novalue", "KEY=VALUE"],
    );
    check(&["-p", "hi", "tools", "list"], &["-p means nothing"]);
    check(&["-p", "hi", "run", "there"], &["-p means nothing"]);
    check(
        &["--continue", "sessions", "list"],
        &["--continue means nothing"],
    );
    check(
        &["--output-format", "json", "doctor"],
        &["--output-format means nothing"],
    );
    check(
        &["-C", "/no/such/place", "tools", "list"],
        &["/no/such/place"],
    );
}

/// Proves CMD-1 for the documentation: the user guide names every tool and every slash command.
#[test]
fn user_guide_names_every_tool_and_command() {
    let guide = include_str!("../../docs/user-guide.md");
    let home = Home::new();
    let tools = home
        .zeph(["tools", "list", "--all", "--json"])
        .code(0)
        .json();
    let name = |tool: &serde_json::Value| {
        tool["name"]
            .as_str()
            .or(tool["id"].as_str())
            .map(str::to_owned)
    };
    let tools: Vec<String> = tools.as_array().unwrap().iter().filter_map(name).collect();
    assert!(tools.len() > 20, "{tools:?}");
    let commands = zeph_core::COMMANDS
        .iter()
        .map(|(name, ..)| (*name).to_owned());
    let missing: Vec<String> = tools
        .into_iter()
        .map(|tool| format!("`{tool}`"))
        .chain(commands)
        .filter(|name| !guide.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
