//! The read guard for files, across processes.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Terminal, assert_has, results_of};

/// One call of session `s`, in its own process.
#[track_caller]
fn call(home: &Home, tool: &str, params: Value) -> Value {
    let params = params.to_string();
    home.zeph([
        "tools",
        "call",
        tool,
        &params,
        "--session",
        "s",
        "--yes",
        "--json",
    ])
    .run()
    .json()
}

#[track_caller]
fn succeeds(home: &Home, tool: &str, params: Value) {
    let form = call(home, tool, params);
    assert_eq!(form["success"], true, "{form:#}");
}

#[track_caller]
fn refused(home: &Home, tool: &str, params: Value, words: &[&str]) {
    let form = call(home, tool, params);
    assert_eq!(form["error_category"], "invalid_parameters", "{form:#}");
    assert_has(form["data"].as_str().unwrap(), words);
}

fn edit(old: &str, new: &str) -> Value {
    json!({ "path": "a.txt", "old_string": old, "new_string": new })
}

/// Proves FILE-23: across processes, with the difference; other sessions are not affected.
#[test]
fn session_edits_files_that_it_has_read() {
    let home = Home::new();
    home.write("a.txt", "one\ntwo\n");
    refused(
        &home,
        "edit",
        edit("one", "1"),
        &["not read", "`read` it first"],
    );
    let write = json!({ "path": "a.txt", "content": "x\n" });
    refused(&home, "write", write.clone(), &["not read"]);
    succeeds(&home, "read", json!({ "path": "a.txt", "limit": 1 }));
    succeeds(&home, "edit", edit("one", "1"));
    // A change by another program.
    home.write("a.txt", "1\nzwei\n");
    refused(
        &home,
        "edit",
        edit("two", "2"),
        &["changed a.txt after", "-two\n+zwei\n"],
    );
    assert_eq!(home.read("a.txt"), "1\nzwei\n");
    succeeds(&home, "edit", edit("zwei", "2"));
    let moved = json!({ "source": "a.txt", "destination": "b/a.txt" });
    succeeds(&home, "move_path", moved);
    let params = json!({ "path": "b/a.txt", "old_string": "2", "new_string": "two" });
    succeeds(&home, "edit", params);
    // The session knows files that it created.
    succeeds(&home, "write", write.clone());
    succeeds(&home, "write", write.clone());

    // Calls of the user are not restricted, and do not mark files as read for the session.
    let user_call = |params: Value| {
        let params = params.to_string();
        home.zeph(["tools", "call", "edit", &params, "--yes"])
            .code(0);
    };
    user_call(edit("x", "y"));
    refused(&home, "write", write.clone(), &["-x\n+y\n"]);
    home.zeph(["sessions", "rm", "s"]).code(0);
    refused(&home, "write", write, &["not read"]);
}

/// Proves FILE-23: the user is not asked about a change of an unread file.
#[test]
fn change_of_an_unread_file_is_refused_without_a_question() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::calls("a", &[("edit", edit("one", "two"))]),
        1 => Reply::calls(
            "b",
            &[("write", json!({ "path": "a.txt", "content": "x" }))],
        ),
        2 => Reply::calls("c", &[("read", json!({ "path": "a.txt" }))]),
        3 => Reply::calls("d", &[("edit", edit("one", "two"))]),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    home.write("a.txt", "one\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    // The first question is about the edit after the read.
    terminal.shows("[1] once");
    let results = results_of(&server.last().messages());
    assert_eq!(results.len(), 3, "{results:?}");
    for (again, (_, text)) in ["edit again", "write again"].into_iter().zip(&results) {
        assert_has(text, &["a.txt was not read in this conversation", again]);
    }
    terminal.type_keys("1");
    terminal.shows("Done.");
    assert_eq!(home.read("a.txt"), "two\n");
    terminal.prompts("");
    terminal.leaves();
}

/// Proves FILE-23: `zeph tools run` is restricted too. Only the user can disable the guard.
#[test]
fn script_requires_a_read_unless_the_user_disables_it() {
    let home = Home::new();
    let line = json!({ "tool": "edit", "params": edit("one", "two") }).to_string();
    let run = |extra: &[&str]| {
        home.write("a.txt", "one\n");
        let args = ["tools", "run", "--yes"].iter().chain(extra);
        let run = home.zeph(args).stdin(line.as_str()).code(0);
        run.json_lines().remove(0)["success"] == true
    };
    assert!(!run(&[]));
    assert!(run(&["--set", "tools.file.read_before_write=false"]));
    home.config("[tools.file]\nread_before_write = false\n");
    assert!(run(&[]));
    home.write(
        ".zeph/config.toml",
        "[tools.file]\nread_before_write = true\n",
    );
    assert!(!run(&[]), "a project may tighten it");
    home.config("");
    home.write(
        ".zeph/config.toml",
        "[tools.file]\nread_before_write = false\n",
    );
    let loosened = home.zeph(["tools", "run", "--yes"]).stdin(line.as_str());
    loosened
        .code(2)
        .says(&["tools.file.read_before_write", "looser"]);
}

/// Proves FILE-23: a resumed conversation knows the files that it read, until `/clear`.
#[test]
fn read_files_are_known_until_the_conversation_is_cleared() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::calls("a", &[("read", json!({ "path": "a.txt" }))]),
        2 => Reply::calls("b", &[("edit", edit("one", "two"))]),
        4 => Reply::calls("c", &[("edit", edit("two", "three"))]),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    home.write("a.txt", "one\n");
    home.zeph(["-p", "look"]).code(0);
    home.zeph(["--continue", "--yes", "-p", "change"]).code(0);
    assert_eq!(home.read("a.txt"), "two\n");
    home.zeph(["--continue", "-p", "/clear"]).code(0);
    home.zeph(["--continue", "--yes", "-p", "once more"])
        .code(0);
    assert_eq!(home.read("a.txt"), "two\n");
    let results = results_of(&server.last().messages());
    assert_has(&results[0].1, &["category: invalid_parameters", "not read"]);
}

/// Proves FILE-23: a call is refused if the model made it before it could read the difference.
#[test]
fn difference_counts_as_read_from_the_next_response() {
    let write = |content: &str| ("write", json!({ "path": "a.txt", "content": content }));
    let server = OpenAi::start(move |n, _| match n {
        0 => Reply::calls("a", &[("read", json!({ "path": "a.txt" }))]),
        1 => Reply::calls("b", &[("bash", json!({ "command": "echo more >> a.txt" }))]),
        2 => Reply::calls(
            "c",
            &[write("x\n"), write("y\n"), ("edit", edit("one", "1"))],
        ),
        3 => Reply::calls(
            "d",
            &[("edit", edit("one", "1")), ("edit", edit("more", "2"))],
        ),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    home.write("a.txt", "one\n");
    home.zeph(["--yes", "-p", "change"]).code(0);
    assert_eq!(home.read("a.txt"), "1\n2\n");
    let results = results_of(&server.requests()[3].messages());
    assert_eq!(results.len(), 5);
    assert_has(&results[2].1, &["category: invalid_parameters", "+more"]);
    for (_, result) in &results[3..] {
        assert_has(
            result,
            &["category: invalid_parameters", "in the next response"],
        );
    }
}

/// Proves FILE-23: concurrent processes of one session lose no change, and treat each other's changes as
/// their own.
#[test]
fn processes_of_one_session_share_the_read_record() {
    let home = Home::new();
    let slots: String = (0..6).map(|n| format!("open {n};\n")).collect();
    home.write("a.txt", &slots);
    succeeds(&home, "read", json!({ "path": "a.txt" }));
    let running: Vec<_> = (0..6)
        .map(|n| {
            let params = edit(&format!("open {n};"), &format!("done {n};")).to_string();
            home.zeph(["tools", "call", "edit", &params, "--session", "s", "--yes"])
                .start()
        })
        .collect();
    for child in running {
        child.wait().code(0);
    }
    assert_eq!(home.read("a.txt"), slots.replace("open", "done"));
}

/// Proves FILE-23a: for both tools, in the result for the model; nothing is blocked.
#[test]
fn new_syntax_errors_are_reported() {
    let home = Home::new();
    let said = |tool: &str, params: Value| {
        let form = call(&home, tool, params);
        assert_eq!(form["success"], true, "{form:#}");
        form["data"].as_str().unwrap().to_owned()
    };
    let rust = "fn a() {\n    b(1);\n}\n";
    let whole = said("write", json!({ "path": "a.rs", "content": rust }));
    assert!(!whole.contains("Syntax"), "{whole}");
    let edit =
        |old: &str, new: &str| json!({ "path": "a.rs", "old_string": old, "new_string": new });
    let broken = said("edit", edit("b(1);", "let c = b(1)"));
    assert_has(&broken, &["Syntax (Rust): 1 error: line 2: `;` is missing"]);
    assert_eq!(home.read("a.rs"), rust.replace("b(1);", "let c = b(1)"));
    // Existing errors and corrected errors are not reported.
    let same = said("edit", edit("b(1)", "b(2)"));
    assert!(!same.contains("Syntax"), "{same}");
    let mended = said("edit", edit("b(2)", "b(2);"));
    assert!(!mended.contains("Syntax"), "{mended}");
    let broken = said(
        "write",
        json!({ "path": "a.json", "content": "{\"a\": [1,\n2}\n" }),
    );
    assert_has(
        &broken,
        &["Created a.json", "Syntax (JSON): 1 error: line "],
    );
}

/// Proves FILE-11, FILE-23: an image that was read may be replaced.
#[test]
fn read_image_can_be_replaced() {
    let home = Home::new();
    // The smallest GIF: one pixel.
    let gif = b"GIF89a\x01\0\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02L\x01\0;";
    std::fs::write(home.path("a.gif"), gif).unwrap();
    let write = json!({ "path": "a.gif", "content": "no image\n" });
    refused(&home, "write", write.clone(), &["image", "delete it first"]);
    succeeds(&home, "read", json!({ "path": "a.gif" }));
    succeeds(&home, "write", write);
}
