//! The command line: a prompt, short options, and mistyped commands, flags and slash commands.

use crate::rig::{Home, OpenAi, Reply, Terminal, assert_has};

/// Proves CLI-7: `zeph "text"` opens a session with that prompt, and `exit` leaves it.
#[test]
fn text_opens_a_session_with_that_prompt() {
    let home = Home::scripted(
        "[[steps]]\ntext = \"First answer.\"\n[[steps]]\ntext = \"Second answer.\"\n",
    );
    for (args, leave) in [
        (&["fix the tests"][..], "exit"),
        (&["fix", "the", "tests"], "quit"),
    ] {
        let mut terminal = Terminal::start(&home, args);
        terminal.shows("› fix the tests");
        terminal.shows("First answer.");
        terminal.prompts("");
        terminal.type_keys("more\r");
        terminal.shows("Second answer.");
        terminal.prompts("");
        terminal.type_keys(&format!("{leave}\r"));
        assert_eq!(terminal.ends().0.code(), Some(0));
    }
}

/// Proves CLI-7: without a terminal, a prompt is one turn; a last `-` appends standard input.
#[test]
fn text_in_a_pipe_is_one_turn() {
    let server = OpenAi::start(|_, _| Reply::text("Done."));
    let home = Home::openai(&server);
    assert_eq!(home.zeph(["fix the tests"]).code(0).stdout, "Done.\n");
    let prompt = || server.last().messages().last().unwrap()["content"].to_string();
    assert_has(&prompt(), &["fix the tests"]);
    home.zeph(["fix", "the", "tests"]).code(0);
    assert_has(&prompt(), &["fix the tests"]);
    home.zeph(["review this", "-"]).stdin("the diff").code(0);
    assert_has(&prompt(), &["review this", "the diff"]);
    // With `--`, each word is text.
    home.zeph(["--", "tools", "list"]).code(0);
    assert_has(&prompt(), &["tools list"]);
    let json = home
        .zeph(["fix it", "--output-format", "json"])
        .code(0)
        .json();
    assert_eq!(json["text"], "Done.");
}

/// Proves CLI-7: `-c`, `-r ID` and `-m MODEL`.
#[test]
fn short_options_have_the_meaning_of_the_long_ones() {
    let server = OpenAi::start(|_, _| Reply::text("Done."));
    let home = Home::openai(&server);
    home.zeph(["-m", "other-model", "-p", "alpha"]).code(0);
    assert_eq!(server.last().json()["model"], "other-model");
    let continued = home.zeph(["-c", "-p", "beta", "--output-format", "json"]);
    let continued = continued.code(0).json();
    let id = continued["session"].as_str().unwrap();
    assert_has(
        &server.last().json()["messages"].to_string(),
        &["alpha", "beta"],
    );
    home.zeph(["-r", id, "-p", "gamma"]).code(0);
    assert_has(
        &server.last().json()["messages"].to_string(),
        &["alpha", "gamma"],
    );
}

/// Proves CLI-7: a mistyped command, flag or slash command names the nearest match, exits with 2, and asks no model.
#[test]
fn mistyped_words_name_the_nearest_match() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    let check = |args: &[&str], words: &[&str]| {
        let output = home.zeph(args).code(2);
        assert_eq!(output.stdout, "", "{args:?}");
        assert_has(&output.stderr, words);
    };
    check(
        &["sesions", "list"],
        &["\"sesions\" is not a command", "`zeph sessions`"],
    );
    check(
        &["tolls"],
        &["did you mean `zeph tools`?", "zeph -p \"tolls\""],
    );
    check(
        &["frobnicate"],
        &["\"frobnicate\" is not a command", "--help"],
    );
    check(&["sessions", "lst"], &["lst", "list"]);
    check(&["--contineu"], &["--contineu", "--continue"]);
    check(&["tools", "list", "--jsn"], &["--jsn", "--json"]);
    check(
        &["-p", "/hepl"],
        &["/hepl is not a command; did you mean /help?"],
    );
    check(
        &["-p", "/hepl me"],
        &["/hepl is not a command; did you mean /help?"],
    );
    check(&["-p", "/undo list"], &["did you mean /undo?"]);
    check(&["-p", "fix", "it"], &["-p takes one TEXT"]);
    check(&["!ls"], &["!command is not available on the command line"]);
    assert_eq!(server.requests().len(), 0);
    let json = home
        .zeph(["-p", "/hepl me", "--output-format", "json"])
        .code(2)
        .json();
    assert_eq!(json["stop_reason"], "error");
}

/// Proves CLI-7: a path is a prompt, also if it starts with a slash.
#[test]
fn path_at_the_start_is_a_prompt() {
    let server = OpenAi::start(|_, _| Reply::text("Done."));
    let home = Home::openai(&server);
    for prompt in [
        "/etc/hosts is broken",
        "/tmp is full",
        "/* a comment */ explain it",
    ] {
        home.zeph(["-p", prompt]).code(0);
        let sent = server.last().messages().last().unwrap()["content"].to_string();
        assert_has(&sent, &[prompt]);
    }
}

/// Proves CLI-7: in a session, an unknown command with an argument is an error.
#[test]
fn unknown_command_with_an_argument_sends_no_request() {
    let home = Home::scripted("[[steps]]\ntext = \"Never said.\"\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("/hepl me\r");
    terminal.shows("/hepl is not a command; did you mean /help?");
    terminal.prompts("");
    terminal.leaves();
}
