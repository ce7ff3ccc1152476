//! Custom commands: Markdown files of the user and of a trusted project.

use serde_json::json;

use crate::rig::{Editor, Home, OpenAi, Reply, Terminal, assert_has, openai_config};

/// A server that answers each request.
fn answering() -> (OpenAi, Home) {
    let server = OpenAi::start(|_, _| Reply::text("Done."));
    let home = Home::openai(&server);
    (server, home)
}

/// Writes a command of the user.
fn own(home: &Home, name: &str, text: &str) {
    let file = home.home().join(".config/zeph/commands").join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// The text of the last message that the server received.
fn prompt(server: &OpenAi) -> String {
    let messages = server.last().messages();
    messages.last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Proves CLI-8: the reason why a file with a long name is refused is its length.
#[test]
fn long_name_of_a_file_is_the_reason_of_its_refusal() {
    let home = Home::new();
    let name = |bytes: usize| format!("{}.md", "a".repeat(bytes));
    own(&home, &name(64), "Fits.\n");
    own(&home, &name(65), "Does not fit.\n");
    let listed = home.zeph(["commands", "list"]).code(0).stdout;
    assert_has(&listed, &["Fits.", "its name has more than 64 bytes"]);
    assert_eq!(listed.matches("refused").count(), 1, "{listed}");
}

/// Proves CLI-8: a file of the user is a command with arguments, in one turn and in a session; `/help` lists it.
#[test]
fn file_of_the_user_is_a_command() {
    let (server, home) = answering();
    own(
        &home,
        "fix.md",
        "---\ndescription: Fix an issue\nargument-hint: ISSUE\n---\nFix $1. All: $ARGUMENTS. See @a.txt\n",
    );
    own(&home, "git/commit.md", "Commit the changes.\n");
    home.write("a.txt", "the content\n");
    home.zeph(["-p", "/fix 'the bug' now"])
        .code(0)
        .prints(&["Done."]);
    let sent = prompt(&server);
    assert_has(
        &sent,
        &["Fix the bug. All: 'the bug' now. See @a.txt", "the content"],
    );
    home.zeph(["-p", "/git:commit quickly"]).code(0);
    assert_eq!(prompt(&server), "Commit the changes.\n\nquickly");
    home.zeph(["-p", "/help"]).code(0).prints(&[
        "/fix           ISSUE: Fix an issue",
        "/git:commit    Commit the changes.",
    ]);
    home.zeph(["-p", "/fxi it"])
        .code(2)
        .says(&["/fxi is not a command; did you mean /fix?"]);
    home.zeph(["commands", "list"]).code(0).prints(&[
        "/fix",
        "user",
        "Fix an issue",
        "/git:commit",
    ]);
    home.zeph(["commands", "show", "fix"])
        .code(0)
        .prints(&["argument-hint", "Fix $1."]);
    home.zeph(["commands", "show", "fxi"])
        .code(1)
        .says(&["did you mean fix?"]);

    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("/git:commit from a session\r");
    terminal.shows("Done.");
    terminal.prompts("");
    assert_eq!(prompt(&server), "Commit the changes.\n\nfrom a session");
    terminal.leaves();
}

/// Proves CLI-8: the commands of a project are used after the user trusts them, until one of them changes.
#[test]
fn commands_of_a_project_need_trust() {
    let (server, home) = answering();
    home.write(".zeph/commands/ship.md", "Ship it.\n");
    let refused = |reason: &str| {
        let output = home.zeph(["-p", "/ship"]).code(2);
        assert_has(
            &output.stderr,
            &[reason, "`zeph commands trust`", "/ship is not a command"],
        );
        assert_eq!(output.stderr.matches("zeph commands trust").count(), 1);
    };
    refused("the commands of this project are not trusted");
    let shown = home.zeph(["commands", "trust"]).code(3);
    assert_has(&shown.stdout, &["/ship", "Ship it."]);
    refused("the commands of this project are not trusted");
    assert_eq!(server.requests().len(), 0);

    home.zeph(["commands", "trust", "--yes"]).code(0);
    let trusted = home.zeph(["-p", "/ship"]).code(0);
    assert!(!trusted.stderr.contains("trust"), "{trusted}");
    assert_eq!(prompt(&server), "Ship it.");

    home.write(".zeph/commands/ship.md", "Ship something else.\n");
    refused("changed since you trusted them");
    home.zeph(["commands", "trust", "--yes"]).code(0);
    home.zeph(["-p", "/ship"]).code(0);
    home.zeph(["commands", "untrust"])
        .code(0)
        .prints(&["no longer trusted"]);
    refused("the commands of this project are not trusted");
    let assert_untrusted = || {
        let list = home.zeph(["commands", "list", "--json"]).code(0).json();
        assert_eq!(list["commands"][0]["trust"], "untrusted");
    };
    assert_untrusted();
    // The folder is absent, as on another branch.
    home.zeph(["commands", "trust", "--yes"]).code(0);
    let aside = home.root().join("aside");
    std::fs::rename(home.path(".zeph"), &aside).unwrap();
    for expect in [
        "no longer trusted",
        "no commands of this project were trusted",
    ] {
        home.zeph(["commands", "untrust"]).code(0).prints(&[expect]);
    }
    std::fs::rename(aside, home.path(".zeph")).unwrap();
    assert_untrusted();
}

/// Proves CLI-8: `/reload` reads the folders and the trust again, and lists the differences.
#[test]
fn reload_applies_changed_commands_to_the_session() {
    let (server, home) = answering();
    own(&home, "fix.md", "Fix it.\n");
    own(&home, "old.md", "Do it as before.\n");
    let mut terminal = Terminal::start(&home, &[]);
    let enter = |terminal: &mut Terminal, line: &str, expect: &str| {
        terminal.prompts("");
        terminal.type_keys(&format!("{line}\r"));
        terminal.shows(expect);
        terminal.prompts("");
    };
    terminal.prompts("");
    own(&home, "explain.md", "Explain $ARGUMENTS.\n");
    own(&home, "fix.md", "Fix it well.\n");
    std::fs::remove_file(home.home().join(".config/zeph/commands/old.md")).unwrap();
    home.write(".zeph/commands/ship.md", "Ship it.\n");
    let listed = "custom commands: added /explain; changed /fix; removed /old";
    enter(&mut terminal, "/reload", listed);
    terminal.shows("the commands of this project are not trusted");
    enter(&mut terminal, "/ship", "/ship is not a command");
    enter(&mut terminal, "/explain src/lib.rs", "Done.");
    assert_eq!(prompt(&server), "Explain src/lib.rs.");

    home.zeph(["commands", "trust", "--yes"]).code(0);
    enter(&mut terminal, "/reload", "custom commands: added /ship");
    terminal.type_keys("/ship\r");
    server.wait_for_requests(2);
    terminal.prompts("");
    assert_eq!(prompt(&server), "Ship it.");
    terminal.leaves();
}

/// Proves CLI-8: a custom command does not replace a built-in command, and a broken file is reported.
#[test]
fn custom_command_does_not_replace_a_built_in_one() {
    let (server, home) = answering();
    own(&home, "help.md", "No help.\n");
    own(&home, "broken.md", "---\nmood: good\n---\nText.\n");
    let output = home.zeph(["-p", "/help"]).code(0);
    assert_has(&output.stdout, &["/status"]);
    assert_has(
        &output.stderr,
        &[
            "help.md is not used as a command: /help is a built-in command; rename the file",
            "broken.md is not used as a command: `mood` is not a key",
        ],
    );
    assert_eq!(server.requests().len(), 0);
}

/// Proves CLI-8: a command may choose the model of its turn.
#[test]
fn model_of_a_command_is_for_its_turn() {
    let (server, home) = answering();
    own(
        &home,
        "quick.md",
        "---\nmodel: small-model\n---\nBe quick.\n",
    );
    let mut terminal = Terminal::start(&home, &[]);
    for (typed, model) in [("/quick", "small-model"), ("again", "test-model")] {
        terminal.prompts("");
        terminal.type_keys(&format!("{typed}\r"));
        server.wait_for_requests(if typed == "again" { 2 } else { 1 });
        terminal.shows("Done.");
        terminal.prompts("");
        assert_eq!(server.last().json()["model"], model);
    }
    terminal.leaves();
}

/// Proves CLI-8: if the model of a command cannot be used, the error says why, also with text from
/// standard input.
#[test]
fn unusable_model_of_a_command_is_refused_with_the_reason() {
    let (server, home) = answering();
    let keyless = openai_config(&server.url())
        .replace("\"local\"", "\"keyless\"")
        .replace("TEST_KEY", "ABSENT_KEY");
    home.config(&format!("{}{keyless}", openai_config(&server.url())));
    own(&home, "quick.md", "---\nmodel: keyless\n---\nBe quick.\n");
    for args in [&["-p", "/quick"] as &[&str], &["-p", "/quick", "-"]] {
        let refused = home.zeph(args).stdin("a diff").code(1);
        let refused = refused.says(&["/quick: provider \"keyless\" cannot be used"]);
        assert!(!refused.stderr.contains("need a prompt"), "{refused}");
    }
    assert_eq!(server.requests().len(), 0);
}

/// Proves CLI-8: a command may restrict the mode of its turn, and never extend it.
#[test]
fn mode_of_a_command_only_restricts() {
    let server = OpenAi::start(|n, _| match n % 2 {
        0 => Reply::calls(
            "w",
            &[("write", json!({ "path": "new.txt", "content": "x\n" }))],
        ),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    own(&home, "look.md", "---\nmode: plan\n---\nLook.\n");
    own(&home, "loose.md", "---\nmode: full\n---\nWrite.\n");
    home.zeph(["--mode", "auto-edit", "-p", "/look"]).code(0);
    assert!(!home.has("new.txt"));
    home.zeph(["--mode", "auto-edit", "-p", "/look", "-"])
        .stdin("a diff")
        .code(0);
    assert!(!home.has("new.txt"), "with text from standard input");
    home.zeph(["--mode", "plan", "-p", "/loose"]).code(0);
    assert!(!home.has("new.txt"));
    home.zeph(["--mode", "auto-edit", "-p", "/loose"]).code(0);
    assert!(home.has("new.txt"));
}

/// Proves CLI-8, ACP-2: an editor lists custom commands, and runs them.
#[test]
fn editor_lists_and_runs_custom_commands() {
    let (server, home) = answering();
    own(
        &home,
        "fix.md",
        "---\ndescription: Fix an issue\nargument-hint: ISSUE\n---\nFix $ARGUMENTS.\n",
    );
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    let update = editor.until_update("available_commands_update");
    let commands = update["availableCommands"].as_array().unwrap();
    let fix = commands
        .iter()
        .find(|command| command["name"] == "fix")
        .unwrap();
    assert_eq!(fix["description"], "Fix an issue");
    assert_eq!(fix["input"]["hint"], "ISSUE");
    editor.prompt(&session, "/fix the bug");
    assert_eq!(prompt(&server), "Fix the bug.");
    editor.leave();
}
