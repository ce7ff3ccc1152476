//! Outcomes of a turn: exit codes, closed pipes, colour.

use crate::rig::{Home, OpenAi, Reply, assert_has, audit};

/// Proves CLI-3.
#[test]
fn exit_code_reports_the_outcome() {
    let check = |scenario: &str, args: &[&str], expect: i32| {
        let home = Home::scripted(scenario);
        home.zeph(["-p", "go"]).args(args).code(expect);
    };
    check("[[steps]]\ntext = \"ok\"", &[], 0);
    check("[[steps]]\nfault = \"server\"", &[], 1);
    check("[[steps]]\ntext = \"ok\"", &["--no-such-flag"], 2);
    check("[[steps]]\ntext = \"ok\"", &["--mode", "wild"], 2);
    check(
        "[[steps]]\ntext = \"ok\"",
        &["--set", "agent.no_such_key=1"],
        2,
    );
    check("[[steps]]\ntext = \"ok\"", &["-C", "/no/such/dir"], 2);
    let looping = "[[steps]]\nrepeat = 9\ncalls = [{ tool = \"list_tasks\" }]";
    check(looping, &[], 4);
}

/// Proves D-19, CLI-3, EXE-20.
#[test]
fn refusal_is_exit_code_3_only_at_the_end_of_the_turn() {
    let refused = r#"
        [[steps]]
        calls = [{ tool = "bash", input = { command = "touch ran" } }]
    "#;
    let answered = format!("{refused}\n[[steps]]\ntext = \"I may not.\"\n");
    let home = Home::scripted(&answered);
    let object = home
        .zeph(["-p", "go", "--output-format", "json"])
        .code(0)
        .json();
    assert_eq!(object["stop_reason"], "done");
    assert_eq!(
        object["tool_calls"][0]["error_category"],
        "confirmation_required"
    );
    assert!(!home.has("ran"));

    // The model has no further text.
    let silent = format!("{refused}\n[[steps]]\ntext = \" \"\n");
    let home = Home::scripted(&silent);
    let object = home
        .zeph(["-p", "go", "--output-format", "json"])
        .code(3)
        .json();
    assert_eq!(object["stop_reason"], "refused");
    assert!(!home.has("ran"));
    assert_eq!(audit(&home.database())[0].result, "blocked");
}

/// Proves CLI-3: the turn continues if the reader closes the pipe.
#[test]
fn closed_pipe_is_silent_and_the_turn_continues() {
    for format in ["text", "json", "stream-json"] {
        let home = Home::scripted(
            r#"
            [[steps]]
            text = "I write. "
            calls = [{ tool = "write", input = { path = "a.txt", content = "x" } }]
            [[steps]]
            text = "Written."
            "#,
        );
        let args = ["-q", "--yes", "--output-format", format, "-p", "go"];
        let output = home.zeph(args).closed_stdout().code(0);
        assert_eq!(output.stderr, "", "{format}");
        assert_eq!(home.read("a.txt"), "x", "{format}");
    }
}

/// Proves CLI-3.
#[test]
fn nothing_is_coloured_without_a_terminal_or_with_no_color() {
    let server = OpenAi::start(|_, _| Reply::text("# Title\n\nSome **bold** words."));
    let home = Home::openai(&server);
    for (name, value) in [
        ("NO_COLOR", "1"),
        ("TERM", "dumb"),
        ("TERM", "xterm-256color"),
    ] {
        let output = home.zeph(["-p", "x"]).env(name, value).code(0);
        assert!(
            !output.stdout.contains('\x1b') && !output.stderr.contains('\x1b'),
            "{output}"
        );
        assert_has(&output.stdout, &["Title", "bold"]);
    }
}

/// Proves CLI-3: output that could not be written is a failure.
#[test]
fn full_disk_at_standard_output_is_a_failure() {
    let check = |args: &[&str]| {
        let home = Home::scripted("[[steps]]\ntext = \"Hello.\"");
        home.zeph(args)
            .full_stdout()
            .code(1)
            .says(&["error: ", "standard output"]);
    };
    check(&["-p", "go"]);
    check(&["-p", "go", "--output-format", "json"]);
    check(&["-p", "go", "--output-format", "stream-json"]);
    check(&["tools", "list"]);
    check(&["tools", "call", "list_tasks"]);
}
