//! Help, version, manual page.

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
    "sessions search",
    "sessions export",
    "sessions rm",
    "memory",
    "memory list",
    "memory search",
    "memory copy",
    "memory access",
    "memory access list",
    "memory access grant",
    "memory access revoke",
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
    "login",
    "logout",
    "agents",
    "agents list",
    "agents trust",
    "agents untrust",
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
    "config get",
    "config set",
    "config edit",
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
        let output = home.zeph(command.split_whitespace()).arg("-h").code(0);
        assert_eq!(output.stderr, "", "{command}");
        let title = format!("zeph {command}");
        all += &format!("━━ {}\n{}\n", title.trim(), output.stdout);
    }
    insta::assert_snapshot!(all);
}

/// Proves CLI-2: `--help` of every command has the global options under a heading of their own; `-h` has none of them.
#[test]
fn long_help_has_the_global_options_apart() {
    let home = Home::new();
    for command in COMMANDS {
        let help = |flag| {
            home.zeph(command.split_whitespace())
                .arg(flag)
                .code(0)
                .stdout
        };
        let (_, global) = help("--help")
            .split_once("\nGlobal options:\n")
            .map(|(before, after)| (before.to_owned(), after.to_owned()))
            .unwrap_or_else(|| panic!("{command}"));
        assert_has(
            &global,
            &["--directory <DIR>", "--unsandboxed", "--verbose"],
        );
        let short = help("-h");
        assert!(!short.contains("--unsandboxed"), "{command}: {short}");
    }
}

/// Proves CLI-2 for `help` itself.
#[test]
fn help_of_help_is_shown() {
    let home = Home::new();
    let expect = home.zeph(["help", "help"]).code(0).stdout;
    for flag in ["-h", "--help"] {
        assert_eq!(home.zeph(["help", flag]).code(0).stdout, expect, "{flag}");
    }
}

/// Proves CLI-2: no command is missing in the list above.
#[test]
fn every_command_is_covered_by_these_tests() {
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

/// Proves CLI-2: `--help` of every command begins with complete sentences, and ends with an example.
#[test]
fn help_has_sentences_and_an_example() {
    let home = Home::new();
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let text = home
                .zeph(command.split_whitespace())
                .arg(flag)
                .code(0)
                .stdout;
            let example = text.split("\nExample:\n  ").nth(1);
            let example = example.unwrap_or_else(|| panic!("{command} {flag}: {text}"));
            let start = format!("zeph {command}");
            assert!(
                example.starts_with(start.trim_end()),
                "{command}: {example}"
            );
        }
        let text = home
            .zeph(command.split_whitespace())
            .arg("--help")
            .code(0)
            .stdout;
        let about = text.split("\n\n").next().unwrap();
        let is_sentence = about.ends_with('.') && about.starts_with(char::is_uppercase);
        assert!(is_sentence && about.contains(' '), "{command}: {about}");
    }
}

/// Proves CLI-2: the short help of a command without subcommands fits on a screen of 24 lines.
#[test]
fn short_help_fits_on_a_screen() {
    let home = Home::new();
    let is_leaf = |command: &&&str| {
        let start = format!("{command} ");
        !command.is_empty() && !COMMANDS.iter().any(|other| other.starts_with(&start))
    };
    for command in COMMANDS.iter().filter(is_leaf) {
        let text = home
            .zeph(command.split_whitespace())
            .arg("-h")
            .code(0)
            .stdout;
        assert!(text.lines().count() <= 24, "{command}: {text}");
    }
}

/// Proves CLI-2.
#[test]
fn version_is_printed() {
    let home = Home::new();
    let version = home.zeph(["--version"]).code(0).stdout;
    assert_eq!(version, format!("zeph {}\n", env!("CARGO_PKG_VERSION")));
}

/// Proves CLI-2: every command has a manual page, with its sentences, its options and an example.
#[test]
fn every_command_has_a_manual_page() {
    let home = Home::new();
    let page = home.zeph(["man"]).code(0).stdout;
    assert_has(&page, &[".TH zeph 1", "zeph\\-tools(1)"]);
    let page = home.zeph(["man", "tools", "call"]).code(0).stdout;
    assert_has(
        &page,
        &[
            ".TH zeph-tools-call 1",
            "Calls one tool",
            ".SH \"GLOBAL OPTIONS\"",
            "Example:",
        ],
    );
    home.zeph(["man", "tools", "cal"])
        .code(2)
        .says(&["`zeph tools` has no command", "\"call\""]);
    let directory = home.root().join("pages");
    let args = ["man", "--dir", directory.to_str().unwrap()];
    let output = home.zeph(args).code(0).stdout;
    assert_has(&output, &[&format!("wrote {} pages", COMMANDS.len())]);
    for command in COMMANDS {
        let name = format!("zeph {command}").trim_end().replace(' ', "-");
        let page = std::fs::read_to_string(directory.join(format!("{name}.1"))).unwrap();
        assert_has(
            &page,
            &[&format!(".TH {name} 1"), ".SH DESCRIPTION", "Example:"],
        );
    }
    assert!(
        !home.data().join("zeph").exists(),
        "nothing is made for that"
    );
}

/// Proves CLI-3.
#[test]
fn wrong_command_line_ends_with_exit_code_2() {
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
    check(&["-p", "hi", "tools", "list"], &["-p has no effect"]);
    check(&["-p", "hi", "run", "there"], &["-p has no effect"]);
    check(
        &["--continue", "sessions", "list"],
        &["--continue has no effect"],
    );
    check(
        &["--output-format", "json", "doctor"],
        &["--output-format has no effect"],
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
