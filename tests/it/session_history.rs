//! Stored sessions: titles, copies, the way back to an earlier message, search, export, and the list to resume from.

use std::num::NonZeroU16;

use serde_json::{Value, json};

use crate::rig::{
    Editor, Home, OpenAi, Reply, Request, Terminal, assert_has, audit, execute, openai_config,
    session_ids,
};

/// A server that responds `response N` to request N, from 0.
fn counting() -> OpenAi {
    OpenAi::start(|n, _| Reply::text(&format!("response {n}")))
}

fn home(server: &OpenAi) -> Home {
    let home = Home::new();
    home.config(&openai_config(&server.url()));
    home
}

/// The only session.
fn session(home: &Home) -> String {
    let ids = session_ids(&home.database());
    assert_eq!(ids.len(), 1, "{ids:?}");
    ids[0].clone()
}

/// The texts of the user and the model in a request.
fn texts(request: &Request) -> Vec<String> {
    let messages = request.messages().into_iter();
    let messages =
        messages.filter(|message| message["role"] != "system" && message["content"].is_string());
    let texts = messages.map(|message| message["content"].as_str().unwrap().to_owned());
    texts.collect()
}

fn say(home: &Home, text: &str) -> String {
    home.zeph(["--yes", "--continue", "-p", text])
        .code(0)
        .stdout
}

fn listed(home: &Home) -> String {
    home.zeph(["sessions", "list"]).code(0).stdout
}

fn enter(terminal: &mut Terminal, line: &str) {
    terminal.prompts("");
    terminal.type_keys(&format!("{line}\r"));
}

fn leave(terminal: Terminal) -> String {
    let (status, raw) = terminal.leaves();
    assert_eq!(status.code(), Some(0));
    raw
}

/// Proves CLI-6 for `/rename`: the title is on one line, and neither a prompt nor `/clear` changes it.
#[test]
fn chosen_title_remains() {
    let server = counting();
    let home = home(&server);
    home.zeph(["-p", "the first prompt"]).code(0);
    assert_has(&listed(&home), &["the first prompt"]);
    let reply = say(&home, "/rename  My  own title");
    assert_has(&reply, &["this session is now called \"My own title\""]);
    say(&home, "/clear");
    say(&home, "another prompt");
    let list = listed(&home);
    assert_has(&list, &["My own title"]);
    assert!(!list.contains("prompt"), "{list}");
    home.zeph(["--continue", "-p", "/rename"])
        .code(1)
        .says(&["/rename TITLE takes the new title"]);
}

/// Proves CLI-6 for `/fork`: the copy continues with the conversation, and the original stays as it is.
#[test]
fn copy_of_a_session_continues() {
    let server = counting();
    let home = home(&server);
    let mut terminal = Terminal::start(&home, &[]);
    enter(&mut terminal, "/fork");
    terminal.shows("there is no conversation to copy yet");
    enter(&mut terminal, "the original");
    terminal.shows("response 0");
    enter(&mut terminal, "/fork");
    terminal.shows("continues as a copy of");
    enter(&mut terminal, "in the copy");
    terminal.shows("response 1");
    leave(terminal);
    assert_eq!(
        texts(&server.last()),
        ["the original", "response 0", "in the copy"]
    );
    let ids = session_ids(&home.database());
    assert_eq!(ids.len(), 2);
    let messages = |id: &str| home.export(id)["messages"].as_array().unwrap().len();
    assert_eq!((messages(&ids[0]), messages(&ids[1])), (2, 4));
    assert_has(&listed(&home), &["the original (copy)"]);
}

/// A server whose second turn changes files in every way.
fn changing() -> OpenAi {
    let edit = |path: &str, old: &str, new: &str| {
        (
            "edit",
            json!({ "path": path, "old_string": old, "new_string": new }),
        )
    };
    let write = |path: &str, text: &str| ("write", json!({ "path": path, "content": text }));
    OpenAi::replies([
        Reply::calls(
            "x",
            &[
                write("a.txt", "a1\n"),
                write("b.txt", "b1\n"),
                write("d.txt", "d1\n"),
            ],
        ),
        Reply::text("First."),
        Reply::calls(
            "x",
            &[
                edit("a.txt", "a1", "a2"),
                edit("b.txt", "b1", "b2"),
                write("new/c.txt", "c\n"),
            ],
        ),
        Reply::calls(
            "x",
            &[
                edit("a.txt", "a2", "a3"),
                (
                    "move_path",
                    json!({ "source": "d.txt", "destination": "e.txt" }),
                ),
            ],
        ),
        Reply::calls(
            "x",
            &[
                ("bash", json!({ "command": "echo x > from-command.txt" })),
                ("bash", json!({ "command": "ls" })),
            ],
        ),
        Reply::text("Second."),
        Reply::text("Third."),
        Reply::text("Fourth."),
    ])
}

/// Proves CLI-6 for `/rewind`: the conversation and the files return to the state before a message. A file that was
/// changed outside is named and not touched, and so are the changes by commands.
#[test]
fn rewind_restores_the_conversation_and_the_files() {
    let server = changing();
    let home = home(&server);
    home.zeph(["--yes", "-p", "make files"]).code(0);
    say(&home, "change files");
    home.write("b.txt", "b of the user\n");
    home.write("untouched.txt", "u\n");

    let list = say(&home, "/rewind");
    assert_has(
        &list,
        &[
            "   1  ",
            "make files",
            "   2  ",
            "change files",
            "/rewind N",
        ],
    );
    let plan = say(&home, "/rewind 2");
    let expect = [
        "Going back before message 2 (change files) ",
        "  moved e.txt back to d.txt\n",
        "  restored a.txt\n",
        "  removed new/c.txt\n",
        "  not restored: b.txt: it was changed later\n",
        "  not restored: changes by the command echo x > from-command.txt: commands have no undo record\n",
        "/rewind 2 yes does this",
    ];
    assert_has(&plan, &expect);
    assert!(!plan.contains("command ls"), "{plan}");
    assert_eq!(
        (home.read("a.txt").as_str(), home.has("e.txt")),
        ("a3\n", true)
    );

    let done = say(&home, "/rewind 2 yes");
    assert_has(
        &done,
        &[
            "The conversation is in its state before message 2",
            "restored a.txt",
            "not restored: b.txt",
        ],
    );
    assert_eq!(home.read("a.txt"), "a1\n");
    assert_eq!(home.read("d.txt"), "d1\n");
    assert!(!home.has("e.txt") && !home.has("new"));
    assert_eq!(home.read("b.txt"), "b of the user\n");
    assert_eq!(home.read("untouched.txt"), "u\n");
    assert!(home.has("from-command.txt"));

    say(&home, "go on");
    let sent = texts(&server.last()).join("\n");
    assert!(
        !sent.contains("change files") && !sent.contains("Second."),
        "{sent}"
    );
    assert_has(
        &sent,
        &[
            "make files",
            "the user went back to this point",
            "b.txt: it was changed later",
        ],
    );
    // The store has the rewound messages, marked. The list has only the others.
    let exported = home.export(&session(&home));
    let messages = exported["messages"].as_array().unwrap();
    let rewound = messages.iter().filter(|message| message["rewound"] == true);
    assert!(rewound.clone().count() > 5, "{exported}");
    assert_has(
        &json!(rewound.collect::<Vec<_>>()).to_string(),
        &["change files", "Second."],
    );
    for text in ["second", "econ"] {
        let found = home.zeph(["sessions", "search", text]).code(0);
        found.prints(&["no session contains"]);
    }
    let list = say(&home, "/rewind");
    assert!(!list.contains("change files"), "{list}");
    assert_has(&list, &["   2  ", "go on"]);
    let shown = home
        .zeph(["sessions", "show", &session(&home)])
        .code(0)
        .stdout;
    assert_has(
        &shown,
        &[
            "── rewound",
            "change files",
            "── the conversation continues",
        ],
    );
    let entries = audit(&home.database());
    let entry = entries
        .iter()
        .find(|entry| entry.call_id.starts_with("rewind_"))
        .unwrap();
    assert_eq!(
        (entry.tool.as_str(), entry.result.as_str()),
        ("undo", "success")
    );
}

/// Proves CLI-6: without changes of files a rewind needs no confirmation, and wrong numbers change nothing.
#[test]
fn rewind_without_files_is_immediate() {
    let server = counting();
    let home = home(&server);
    for text in ["one", "two", "three"] {
        say(&home, text);
    }
    for number in ["0", "4", "4 yes"] {
        home.zeph(["--continue", "-p", &format!("/rewind {number}")])
            .code(1)
            .says(&["/rewind lists your messages"]);
    }
    let done = say(&home, "/rewind 2");
    assert_has(&done, &["state before message 2 (two). 4 messages left it"]);
    say(&home, "instead");
    assert_eq!(texts(&server.last()), ["one", "response 0", "instead"]);
    // The first message can be rewound too; then the next prompt is the title.
    say(&home, "/rewind 1");
    say(&home, "from the start");
    assert_eq!(texts(&server.last()), ["from the start"]);
    assert_has(&listed(&home), &["from the start"]);
    let unknown = home.zeph(["--continue", "-p", "/rewind two"]).code(2);
    assert_has(&unknown.stderr, &["/rewind"]);
}

/// Proves CLI-6: after a compaction, a rewind to a summarized message restores the messages that the summary
/// replaced, and drops the summary.
#[test]
fn rewind_after_a_compaction_restores_the_messages() {
    let server = OpenAi::start(|_, request| {
        let system = request.messages()[0]["content"].to_string();
        let sums_up = system.contains("You write notes on the older part");
        Reply::text(if sums_up { "NOTES" } else { "Fine." })
    });
    let home = home(&server);
    home.more_config("[agent.compaction]\nkeep_recent = 2\n");
    for text in ["one", "two", "three", "four"] {
        say(&home, text);
    }
    assert_has(&say(&home, "/compact"), &["compacted"]);
    say(&home, "five");
    let system = |request: &Request| request.messages()[0]["content"].to_string();
    assert_has(&system(&server.last()), &["NOTES"]);
    assert!(!texts(&server.last()).contains(&"two".to_owned()));
    // Message 5 is after the compaction: the summary remains.
    say(&home, "/rewind 5");
    say(&home, "five again");
    assert_has(&system(&server.last()), &["NOTES"]);
    assert_eq!(texts(&server.last()).last().unwrap(), "five again");
    // Message 2 is in the summary.
    assert_has(&say(&home, "/rewind 2"), &["state before message 2 (two)"]);
    say(&home, "new");
    assert!(!system(&server.last()).contains("NOTES"));
    assert_eq!(texts(&server.last()), ["one", "Fine.", "new"]);
    // `/clear` is a limit: no earlier message is listed.
    say(&home, "/clear");
    assert_has(&say(&home, "/rewind"), &["no message to go back to"]);
}

/// Proves CLI-6: a copy has no undo records of the original, so its rewind names the files.
#[test]
fn rewind_in_a_copy_names_files_without_a_record() {
    let write = json!({ "path": "a.txt", "content": "a\n" });
    let server = OpenAi::replies([
        Reply::text("Hello."),
        Reply::calls("x", &[("write", write)]),
        Reply::text("Done."),
    ]);
    let home = home(&server);
    let mut terminal = Terminal::start(&home, &["--yes"]);
    enter(&mut terminal, "hello");
    terminal.shows("Hello.");
    enter(&mut terminal, "write a file");
    terminal.shows("Done.");
    enter(&mut terminal, "/fork");
    terminal.shows("continues as a copy of");
    enter(&mut terminal, "/rewind 2");
    terminal.shows("a.txt: no undo record");
    terminal.shows("/rewind 2 yes does this");
    enter(&mut terminal, "/rewind 2 yes");
    terminal.shows("is in its state before message 2");
    leave(terminal);
    assert_eq!(home.read("a.txt"), "a\n");
}

/// Proves CLI-6, ACP-5: `/rename` and `/rewind` work in an editor, which gets the new title.
#[test]
fn editor_can_rename_and_rewind() {
    let write = json!({ "path": "a.txt", "content": "a\n" });
    let server = OpenAi::replies([
        Reply::text("Hello."),
        Reply::calls("x", &[("write", write)]),
        Reply::text("Done."),
        Reply::text("Again."),
    ]);
    let home = home(&server);
    let mut editor = Editor::with_args(&home, &["--mode", "auto-edit"]);
    let id = editor.session(&home.project());
    editor.prompt(&id, "hello");
    editor.prompt(&id, "write a file");
    assert!(home.has("a.txt"));
    editor.forget();
    editor.prompt(&id, "/rename From the editor");
    assert_has(&editor.text(), &["now called \"From the editor\""]);
    let titles = editor.updates("session_info_update");
    assert_has(&json!(titles).to_string(), &["From the editor"]);
    editor.forget();
    editor.prompt(&id, "/rewind 2 yes");
    assert_has(
        &editor.text(),
        &["state before message 2 (write a file)", "removed a.txt"],
    );
    assert!(!home.has("a.txt"));
    editor.prompt(&id, "again");
    assert_eq!(texts(&server.last()), ["hello", "Hello.", "again"]);
    editor.forget();
    editor.prompt(&id, "/export talk.html");
    assert_has(&editor.text(), &["talk.html"]);
    assert_has(&home.read("talk.html"), &["From the editor"]);
    editor.forget();
    editor.prompt(&id, "/fork");
    assert_has(&editor.text(), &["fork the session in the editor"]);
    // A conversation that is loaded again is shown without the rewound messages.
    editor.leave();
    let mut editor = Editor::open(&home);
    let load = json!({ "sessionId": id, "cwd": home.project(), "mcpServers": [] });
    editor.call("session/load", load);
    let shown = json!(editor.updates("user_message_chunk")).to_string();
    assert_has(&shown, &["hello", "again"]);
    assert!(!shown.contains("write a file"), "{shown}");
}

/// Proves CLI-6 for `zeph sessions search`: prompts, responses and titles of this directory or of all, without
/// removed sessions and without control sequences.
#[test]
fn search_finds_sessions_by_their_text() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::text("One line.\nThe Parser fails on \x1b[31munbalanced quotes.\nMore."),
        _ => Reply::text("Nothing of interest."),
    });
    let home = home(&server);
    home.zeph(["-p", "look at the code"]).code(0);
    home.zeph(["-p", "write the guide"]).code(0);
    let found = |args: &[&str]| {
        let args = ["sessions", "search"].iter().chain(args);
        home.zeph(args.copied()).code(0).stdout
    };
    let shown = found(&["parser", "quotes"]);
    assert_has(
        &shown,
        &[
            "look at the code",
            "assistant, message 2: The Parser fails on",
        ],
    );
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert_has(&found(&["guide"]), &["user, message 1: write the guide"]);
    assert_has(
        &found(&["parser", "guide"]),
        &["no session contains all of these words"],
    );
    // A part of a word, and signs.
    assert_has(&found(&["balanced"]), &["look at the code"]);
    let json: Value = serde_json::from_str(&found(&["--json", "parser"])).unwrap();
    assert_eq!(json[0]["session"]["title"], "look at the code");
    assert_eq!(
        (&json[0]["seq"], &json[0]["role"]),
        (&json!(2), &json!("assistant"))
    );
    // A title that the user chose.
    say(&home, "/rename Handbook");
    assert_has(&found(&["handbook"]), &["title: Handbook"]);
    // Another directory.
    let other = home.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let search = |args: &[&str]| {
        let args = ["sessions", "search"].iter().chain(args);
        home.zeph(args.copied()).cwd(other.clone()).code(0).stdout
    };
    assert_has(&search(&["parser"]), &["no session contains", "--all"]);
    assert_has(
        &search(&["--all", "parser"]),
        &["look at the code", "project]"],
    );
    let first = session_ids(&home.database())[0].clone();
    home.zeph(["sessions", "rm", &first]).code(0);
    assert_has(&found(&["parser"]), &["no session contains"]);
    home.zeph(["sessions", "search"]).code(2);
    // At a terminal, the matching line cannot steer it.
    home.zeph(["-p", "\x1b]0;title\x07 colour \x1b[31mred"])
        .code(0);
    let (_, raw) = Terminal::start(&home, &["sessions", "search", "colour"]).ends();
    assert!(!raw.contains('\x1b'), "{raw:?}");
    assert_has(&raw, &["colour"]);
}

/// Proves CLI-6 for the export as JSON, Markdown and HTML: all text is escaped, and secrets are redacted.
#[test]
fn conversation_is_exported_in_three_formats() {
    let key = crate::rig::KEY;
    let hostile = format!("<script>alert(1)</script>\n\n**bold** ```\n{key}");
    let read = json!({ "path": "a.txt" });
    let server = OpenAi::replies([
        Reply::answer(&hostile, &[("call_1".to_owned(), "read", read.to_string())]),
        Reply::text("# Done\n\n- one"),
    ]);
    let home = home(&server);
    home.write("a.txt", "```\n</pre><b>file</b>\n");
    home.zeph(["-p", "<i>read</i> & tell"]).code(0);
    let id = session(&home);
    let export = |format: &str| {
        let args = ["sessions", "export", &id, "--format", format];
        let text = home.zeph(args).code(0).stdout;
        assert!(!text.contains(key), "{text}");
        text
    };
    assert_eq!(
        export("json"),
        home.zeph(["sessions", "export", &id]).code(0).stdout
    );
    let markdown = export("markdown");
    let expect = [
        "# <i>read</i> & tell\n",
        "- Session: ",
        "\n## User\n\n<i>read</i> & tell\n",
        "\n## Zeph\n",
        "**read** `Read a.txt`",
        "\n````text\n",
        "# Done\n\n- one\n",
    ];
    assert_has(&markdown, &expect);
    let html = export("html");
    for denied in ["<script", "</pre><b>", "<i>", "src=", "<link"] {
        assert!(!html.contains(denied), "{denied}: {html}");
    }
    let expect = [
        "<title>&lt;i&gt;read&lt;/i&gt; &amp; tell</title>",
        "&lt;script&gt;",
        "<strong>bold</strong>",
        "&lt;/pre&gt;&lt;b&gt;file",
        "<code>Read a.txt</code>",
        "<li>one</li>",
    ];
    assert_has(&html, &expect);

    let mut terminal = Terminal::start(&home, &["--continue"]);
    for (line, shown) in [
        ("/export talk.md", "talk.md"),
        ("/export talk.txt", "use .md, .html or .json"),
        ("/export talk.md", "an existing one is not replaced"),
        ("/export talk.json", "talk.json"),
        ("/export", &format!("zeph-{}.md", &id[..8])),
    ] {
        enter(&mut terminal, line);
        terminal.shows(shown);
    }
    leave(terminal);
    assert_eq!(home.read("talk.md"), markdown);
    assert!(!home.has("talk.txt"));
    let json: Value = serde_json::from_str(&home.read("talk.json")).unwrap();
    assert_eq!(json, home.export(&id));
    let one_turn = home.zeph(["--continue", "-p", "/export a.md"]).code(1);
    assert_has(&one_turn.stderr, &["zeph sessions export"]);
}

/// Proves CLI-6: an exported message of the agent to the model is not one of the user.
#[test]
fn exported_message_of_the_agent_is_not_of_the_user() {
    let server = OpenAi::start(|_, request| match request.json()["tool_choice"] == "none" {
        true => Reply::text("So far."),
        false => Reply::calls("r", &[("read", json!({ "path": "a.txt" }))]),
    });
    let home = home(&server);
    home.write("a.txt", "a\n");
    home.zeph(["-p", "go", "--set", "agent.max_tool_iterations=1"])
        .code(4);
    let id = session(&home);
    for (format, user, note) in [
        ("markdown", "## User\n", "## Note to the model\n\n[limit] "),
        (
            "html",
            "<h2>User</h2>",
            "<h2>Note to the model</h2><pre>[limit] ",
        ),
    ] {
        let export = home.zeph(["sessions", "export", &id, "--format", format]);
        let text = export.code(0).stdout;
        assert_eq!(text.matches(user).count(), 1, "{text}");
        assert_has(&text, &[note]);
    }
}

/// Proves CLI-6: a rewind reports a message whose calls cannot be read.
#[test]
fn rewind_reports_a_damaged_message() {
    let server = changing();
    let home = home(&server);
    home.zeph(["--yes", "-p", "make files"]).code(0);
    let mut terminal = Terminal::start(&home, &["--continue"]);
    terminal.prompts("");
    execute(
        &home.database(),
        "UPDATE message SET content = '{' WHERE seq = 2",
    );
    enter(&mut terminal, "/rewind 1");
    terminal.shows("not restored: changes by message 2: it is damaged and cannot be read");
    leave(terminal);
}

/// Proves CLI-6: a session that continues shows its last exchanges, with one line for each call, and the command that
/// resumes it is printed at the end.
#[test]
fn last_exchanges_are_shown_again() {
    let read = json!({ "path": "a.txt" });
    let mut replies = vec![
        Reply::text("Response one."),
        Reply::text("Response two."),
        Reply::text("Response three."),
        Reply::calls("I look.", &[("read", read)]),
        Reply::text("It is **empty**."),
    ];
    replies.extend(["More.", "Even more."].map(Reply::text));
    let server = OpenAi::replies(replies);
    let home = home(&server);
    home.write("a.txt", "x\n");
    for text in ["prompt one", "prompt two", "prompt three", "prompt four"] {
        say(&home, text);
    }
    let id = session(&home);
    let mut terminal = Terminal::start(&home, &["-c"]);
    terminal.prompts("");
    let text = terminal.text();
    let expect = [
        "1 earlier exchange",
        "› prompt two",
        "Response two.",
        "› prompt three",
        "› prompt four",
        "● Read a.txt",
        "It is empty.",
    ];
    assert_has(&text, &expect);
    assert!(
        !text.contains("prompt one") && !text.contains("I look."),
        "{text}"
    );
    enter(&mut terminal, "go on");
    terminal.shows("More.");
    let raw = leave(terminal);
    let hint = format!("zeph --resume {id} resumes this session");
    assert_has(&raw, &[&hint]);

    // A new session has nothing to show, and an empty one no command.
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    assert!(!terminal.text().contains("prompt four"));
    enter(&mut terminal, &format!("/resume {id}"));
    terminal.shows("continues: ");
    assert_has(&terminal.text(), &["› go on", "More."]);
    leave(terminal);
    let raw = leave(Terminal::start(&home, &[]));
    assert!(!raw.contains("--resume"), "{raw}");
    let quiet = Terminal::start(&home, &["--quiet", "-c"]);
    quiet.prompts("");
    assert!(!quiet.text().contains("› go on"));
    let raw = leave(quiet);
    assert!(!raw.contains("--resume"), "{raw}");
    assert_eq!(session_ids(&home.database()), [id]);
}

const SMALL: (NonZeroU16, NonZeroU16) =
    (NonZeroU16::new(12).unwrap(), NonZeroU16::new(40).unwrap());

/// A home with three sessions in its project and one in another directory.
fn home_with_sessions(server: &OpenAi) -> Home {
    let home = home(server);
    let other = home.root().join("elsewhere");
    std::fs::create_dir(&other).unwrap();
    home.zeph(["-p", "far away work"]).cwd(other).code(0);
    for text in [
        "write the guide",
        "解析器を修正してテストを追加する 長い長い長い題名",
        "the newest one",
    ] {
        home.zeph(["-p", text]).code(0);
    }
    home
}

/// Proves CLI-6 for `--resume` without an id: a list on a screen of 40 by 12 with search, sessions of this directory
/// first, and a key for all directories.
#[test]
fn session_is_selected_from_a_list() {
    let server = counting();
    let home = home_with_sessions(&server);
    let mut terminal = Terminal::sized(&home, &["--resume"], SMALL.0, SMALL.1);
    terminal.shows("Sessions of this directory: 3");
    let text = terminal.text();
    let entry = text.lines().find(|line| line.starts_with('▸')).unwrap();
    assert_has(entry, &["the newest one"]);
    assert_has(
        &text,
        &["解析器を", "write the guide", "project", "Enter resumes"],
    );
    assert!(!text.contains("far away"), "{text}");
    terminal.type_keys("\t");
    terminal.shows("Sessions of all directories: 4");
    terminal.type_keys("far away");
    terminal.shows("▸ ");
    terminal.until("one match", |text| {
        text.contains("all directories: 1") && text.contains("elsewhere")
    });
    terminal.type_keys("\x7f\x15\t");
    terminal.shows("Sessions of this directory: 3");
    terminal.type_keys("\x1b[B\x1b[B");
    terminal.until("the third entry", |text| {
        text.lines()
            .any(|line| line.starts_with('▸') && line.contains("write the guide"))
    });
    terminal.type_keys("\r");
    terminal.prompts("");
    assert_has(&terminal.text(), &["› write the guide"]);
    enter(&mut terminal, "continue");
    terminal.shows("response 4");
    leave(terminal);
    assert_eq!(
        texts(&server.last()),
        ["write the guide", "response 1", "continue"]
    );
}

/// Proves CLI-6: the list follows the size of the terminal, Esc leaves it, and the screen before it returns.
#[test]
fn list_follows_the_size_of_the_terminal() {
    let server = counting();
    let home = home_with_sessions(&server);
    let mut terminal = Terminal::start(&home, &[]);
    enter(&mut terminal, "before the list");
    terminal.shows("response 4");
    enter(&mut terminal, "/resume");
    terminal.shows("Sessions of this directory: 4");
    terminal.shows("Esc cancels");
    terminal.resize(SMALL.0, SMALL.1);
    terminal.until("the narrow list", |text| {
        text.contains("Enter resumes, Tab")
            && !text.contains("Esc cancels")
            && text.contains("解析器を")
    });
    terminal.resize(NonZeroU16::new(24).unwrap(), NonZeroU16::new(120).unwrap());
    terminal.type_keys("\t");
    terminal.until("the wide list", |text| {
        text.lines()
            .any(|line| line.contains("far away work") && line.ends_with("elsewhere"))
    });
    terminal.type_keys("\x1b");
    terminal.shows("the session stays the same");
    assert_has(&terminal.text(), &["before the list"]);
    enter(&mut terminal, "/resume");
    terminal.shows("Sessions of this directory");
    terminal.type_keys("guide\r");
    terminal.shows("continues: 2 messages, write the guide");
    leave(terminal);
}

/// Proves CLI-6: a key that arrives together with a change of the size is not lost.
#[test]
fn key_right_after_a_resize_reaches_the_list() {
    let server = counting();
    let home = home_with_sessions(&server);
    let mut terminal = Terminal::start(&home, &["--resume"]);
    terminal.shows("Sessions of this directory: 3");
    for round in 0..20 {
        let (columns, heading) = match round % 2 {
            0 => (70, "Sessions of all directories: 4"),
            _ => (90, "Sessions of this directory: 3"),
        };
        terminal.resize(
            NonZeroU16::new(24).unwrap(),
            NonZeroU16::new(columns).unwrap(),
        );
        terminal.type_keys("\t");
        terminal.shows(heading);
    }
    terminal.type_keys("\r");
    terminal.prompts("");
    leave(terminal);
}

/// Proves CLI-6: keys that the line editor reads together with the command belong to the list.
#[test]
fn keys_typed_with_the_command_search_in_the_list() {
    let server = counting();
    let home = home_with_sessions(&server);
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("/resume\rguide\r");
    terminal.shows("continues: 2 messages, write the guide");
    leave(terminal);
}

/// Proves CLI-6: without a terminal, `--resume` needs an id. Without sessions, there is nothing to select.
#[test]
fn resume_without_an_id_needs_a_terminal() {
    let server = counting();
    let home = home(&server);
    for args in [
        &["--resume"][..],
        &["--resume", "-p", "go"],
        &["run", "--resume"],
    ] {
        let run = home.zeph(args.iter().copied()).stdin("go").code(2);
        assert_has(
            &run.stderr,
            &["--resume without an ID", "zeph sessions list"],
        );
    }
    assert!(server.requests().is_empty());
    let (status, raw) = Terminal::start(&home, &["--resume"]).ends();
    assert_eq!(status.code(), Some(1));
    assert_has(&raw, &["there is no stored session to resume"]);
    // A signal ends the list, and restores the terminal.
    let home = home_with_sessions(&server);
    let terminal = Terminal::start(&home, &["--resume"]);
    terminal.shows("Sessions of this directory");
    terminal.signal(rustix::process::Signal::TERM);
    let (status, raw) = terminal.ends();
    assert_eq!(status.code(), Some(130));
    assert!(
        raw.rfind("\x1b[?1049h") < raw.rfind("\x1b[?1049l"),
        "{raw:?}"
    );
}
