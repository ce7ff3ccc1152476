//! The commands about the project and its changes: `/init`, `/review`, `/diff`, `/jobs` and `/copy`.

use serde_json::json;

use crate::rig::{Editor, Home, OpenAi, Reply, Terminal, Zeph, assert_has, unique_seconds};

/// A server that answers each request.
fn answering() -> (OpenAi, Home) {
    let server = OpenAi::start(|_, _| Reply::text("Done."));
    let home = Home::openai(&server);
    (server, home)
}

/// Makes the project a repository with a commit, and then changes it.
fn repository(home: &Home) {
    home.write("old.txt", "one\ntwo\n");
    let script =
        "git init -q . && git add . && git -c user.name=a -c user.email=a@b.c commit -q -m first";
    Zeph::through_bash(home, script).code(0);
    home.write("old.txt", "one\nthree\n");
    home.write("new.txt", "new\n");
}

/// The text of the last message that the server received.
fn prompt(server: &OpenAi) -> String {
    let messages = server.last().messages();
    messages.last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Proves CLI-8: `/init` asks the model for AGENTS.md, with facts about the project; the write passes the gates.
#[test]
fn init_drafts_agents_md_through_the_gates() {
    let server = OpenAi::start(|n, _| match n % 2 {
        0 => Reply::calls(
            "w",
            &[(
                "write",
                json!({ "path": "AGENTS.md", "content": "# Rules\n" }),
            )],
        ),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    home.write("src/main.rs", "fn main() {}\n");
    home.zeph(["-p", "/init"]).code(0);
    assert!(!home.has("AGENTS.md"), "no one approved the write");
    let asked = server.requests()[0].messages().last().unwrap()["content"].to_string();
    assert_has(
        &asked,
        &[
            "Write the file AGENTS.md",
            "src/",
            "AGENTS.md does not exist",
        ],
    );
    home.zeph(["--yes", "-p", "/init"]).code(0);
    assert_eq!(home.read("AGENTS.md"), "# Rules\n");
    home.zeph(["-p", "/init"]).code(0);
    let asked = server.requests()[4].messages().last().unwrap()["content"].to_string();
    assert_has(&asked, &["AGENTS.md exists. Read it"]);
}

/// Proves CLI-8: `/review` gives the model the uncommitted changes, or those since a target.
#[test]
fn review_has_the_changes() {
    let (server, home) = answering();
    repository(&home);
    home.zeph(["-p", "/review"]).code(0).prints(&["Done."]);
    assert_has(
        &prompt(&server),
        &[
            "Review the following changes",
            "-two",
            "+three",
            "new file, not in the repository: new.txt",
        ],
    );
    home.zeph(["-p", "/review HEAD"]).code(0);
    assert_has(&prompt(&server), &["`git diff HEAD`", "+three"]);
    home.zeph(["-p", "/review no-such-branch"])
        .code(1)
        .says(&["no-such-branch"]);
    home.zeph(["-p", "/review --output=x"])
        .code(1)
        .says(&["/review takes a commit"]);
    assert!(!home.has("x"));
    Zeph::through_bash(
        &home,
        "git add . && git -c user.name=a -c user.email=a@b.c commit -q -m second",
    )
    .code(0);
    home.zeph(["-p", "/review"])
        .code(1)
        .says(&["there are no changes to review"]);
    assert_eq!(server.requests().len(), 2);
}

/// Proves CLI-3: without a repository or without Git, the commands say so in one line.
#[test]
fn review_without_a_repository_or_git_fails_in_one_line() {
    let (server, home) = answering();
    for command in ["/review", "/review HEAD"] {
        let failed = home.zeph(["-p", command]).code(1);
        assert!(!failed.stderr.contains("usage:"), "{failed}");
        failed.says(&["this directory is not in a Git repository"]);
    }
    repository(&home);
    // Only the shell is on PATH.
    let bin = home.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let find = Zeph::through_bash(&home, "command -v bash").code(0).stdout;
    std::os::unix::fs::symlink(find.trim(), bin.join("bash")).unwrap();
    for command in ["/diff", "/review"] {
        home.zeph(["-p", command])
            .env("PATH", &bin.display().to_string())
            .code(1)
            .says(&["git is not on PATH"]);
    }
    assert_eq!(server.requests().len(), 0);
}

/// Proves CLI-8: `/diff` shows the uncommitted changes, in colour at a terminal, and asks no model.
#[test]
fn diff_shows_uncommitted_changes() {
    let (server, home) = answering();
    repository(&home);
    let shown = home.zeph(["-p", "/diff"]).code(0).stdout;
    assert_has(
        &shown,
        &["-two\n+three\n", "new file, not in the repository: new.txt"],
    );
    assert!(!shown.contains('\x1b'));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("/diff\r");
    terminal.shows("+three");
    terminal.prompts("");
    assert_has(
        &terminal.raw(),
        &["\x1b[31m-two\x1b[0m", "\x1b[32m+three\x1b[0m"],
    );
    terminal.leaves();
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "/diff");
    assert_has(&editor.text(), &["```diff", "+three"]);
    editor.leave();
    assert_eq!(server.requests().len(), 0);
}

/// Proves CLI-8: in a subdirectory, `/diff` shows the changes and the new files of the whole repository, with paths
/// from its root.
#[test]
fn diff_in_a_subdirectory_shows_the_whole_repository() {
    let (_server, home) = answering();
    repository(&home);
    home.write("ünï.txt", "new\n");
    home.write("sub/inner.txt", "new\n");
    let diff = home.zeph(["-p", "/diff"]).cwd(home.path("sub"));
    assert_has(
        &diff.code(0).stdout,
        &[
            "-two\n+three\n",
            "new file, not in the repository: new.txt\n",
            "new file, not in the repository: sub/inner.txt\n",
            "new file, not in the repository: ünï.txt",
        ],
    );
}

/// Proves CLI-8: `/diff session`, and `/diff` without a repository, show the changes of this session.
#[test]
fn diff_of_a_session_joins_its_changes() {
    let calls = [
        ("write", json!({ "path": "a.txt", "content": "one\n" })),
        (
            "edit",
            json!({ "path": "a.txt", "old_string": "one", "new_string": "two" }),
        ),
    ];
    let server = OpenAi::start(move |n, _| match n {
        0 => Reply::calls("a", &calls),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    home.zeph(["-p", "/diff session"])
        .code(0)
        .prints(&["no file tool changed a file"]);
    home.zeph(["--mode", "auto-edit", "-p", "go"]).code(0);
    for command in ["/diff", "/diff session"] {
        let shown = home.zeph(["-c", "-p", command]).code(0).stdout;
        assert_has(&shown, &["a.txt", "+two"]);
        assert!(!shown.contains("one"), "{shown}");
    }
    home.zeph(["undo"]).code(0);
    home.zeph(["-c", "-p", "/diff session"])
        .code(0)
        .prints(&["no file tool changed a file"]);
}

/// Proves CLI-8: `/jobs` lists the background jobs, and `/jobs stop N` ends one.
#[test]
fn jobs_are_listed_and_stopped() {
    let seconds = unique_seconds();
    let command = format!("sleep {seconds}");
    let server = OpenAi::start(move |n, _| match n {
        0 => Reply::calls(
            "b",
            &[("bash", json!({ "command": command, "background": true }))],
        ),
        _ => Reply::text("Started."),
    });
    let home = Home::openai(&server);
    let mut terminal = Terminal::start(&home, &["--yes"]);
    terminal.prompts("");
    terminal.type_keys("/jobs\r");
    terminal.shows("there are no jobs");
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("Started.");
    terminal.prompts("");
    terminal.type_keys("/jobs\r");
    terminal.shows("job-1 [runs");
    terminal.prompts("");
    terminal.type_keys("/jobs stop\r");
    terminal.shows("takes the number of a job");
    terminal.prompts("");
    terminal.type_keys("/jobs stop 7\r");
    terminal.shows("error: ");
    terminal.prompts("");
    terminal.type_keys("/jobs stop 1\r");
    terminal.until("the end of the job", |_| !crate::rig::is_running(&seconds));
    terminal.prompts("");
    terminal.leaves();
}

/// Proves CLI-8: `/copy` sends the last response to the clipboard of the terminal, as it was written.
#[test]
fn copy_sets_the_clipboard_of_the_terminal() {
    let server = OpenAi::start(|_, _| Reply::text("# Title\n\n- **bold**"));
    let home = Home::openai(&server);
    for (tmux, expect) in [
        (None, "\x1b]52;c;IyBUaXRsZQoKLSAqKmJvbGQqKg==\x07"),
        (
            Some("/tmp/t,1,0"),
            "\x1bPtmux;\x1b\x1b]52;c;IyBUaXRsZQoKLSAqKmJvbGQqKg==\x07\x1b\\",
        ),
    ] {
        let mut terminal = Terminal::under(&home, &[], &[("TMUX", tmux)]);
        terminal.prompts("");
        terminal.type_keys("/copy\r");
        terminal.shows("there is no response to copy yet");
        terminal.prompts("");
        terminal.type_keys("go\r");
        terminal.shows("bold");
        terminal.prompts("");
        terminal.type_keys("/copy\r");
        terminal.shows("19 characters copied");
        terminal.prompts("");
        assert_has(&terminal.raw(), &[expect]);
        terminal.leaves();
    }
    home.zeph(["-c", "-p", "/copy"])
        .code(1)
        .says(&["/copy needs the terminal of a session"]);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    editor.prompt(&session, "/copy");
    assert_has(&editor.text(), &["copy the response in the editor instead"]);
    editor.leave();
}
