//! Sessions: they are those of every other entry point, and each has one holder.

use serde_json::{Value, json};

use crate::rig::{Decision, Editor, Home, OpenAi, Reply, execute, openai_config, session_ids};

/// The messages of a session without the parts that differ between a live conversation and its replay: ids of messages
/// and calls, streamed output, and information about the session.
fn shown(editor: &Editor) -> Vec<Value> {
    let mut calls: Vec<Value> = Vec::new();
    let mut shown: Vec<Value> = Vec::new();
    for message in &editor.seen {
        let mut update = message["params"]["update"].clone();
        let kind = update["sessionUpdate"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match kind.as_str() {
            "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" => {
                let text = update["content"]["text"].as_str().unwrap().to_owned();
                match shown.last_mut() {
                    Some(last) if last["kind"] == kind && kind != "user_message_chunk" => {
                        last["text"] = json!(last["text"].as_str().unwrap().to_owned() + &text);
                    }
                    _ => shown.push(json!({ "kind": kind, "text": text })),
                }
            }
            "tool_call" | "tool_call_update" => {
                if kind == "tool_call_update"
                    && !["completed", "failed"].contains(&update["status"].as_str().unwrap())
                {
                    continue;
                }
                let id = update["toolCallId"].clone();
                let at = calls
                    .iter()
                    .position(|known| *known == id)
                    .unwrap_or(calls.len());
                if at == calls.len() {
                    calls.push(id);
                }
                update["toolCallId"] = json!(at);
                shown.push(update);
            }
            "plan" => shown.push(update),
            _ => {}
        }
    }
    shown
}

fn conversation() -> [Reply; 3] {
    let write = json!({ "path": "a.txt", "content": "one\ntwo\n" });
    let edit = json!({ "path": "a.txt", "old_string": "two", "new_string": "three" });
    [
        Reply::answer(
            "I write. ",
            &[
                ("c1".to_owned(), "write", write.to_string()),
                (
                    "c2".to_owned(),
                    "bash",
                    json!({ "command": "echo said; false" }).to_string(),
                ),
                ("c3".to_owned(), "edit", edit.to_string()),
                (
                    "c4".to_owned(),
                    "read",
                    json!({ "path": "missing" }).to_string(),
                ),
            ],
        ),
        Reply::calls("t", &[("add_task", json!({ "content": "plan" }))]),
        Reply::text("Done."),
    ]
}

/// Proves ACP-1a, ACP-2: a loaded session shows the same as the live one, and the response comes last.
#[test]
fn load_replays_the_conversation_as_it_was() {
    let server = OpenAi::replies(conversation());
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    editor.decision = Decision::Option("once");
    let session = editor.session(&home.project());
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let mut live = shown(&editor);
    live.insert(0, json!({ "kind": "user_message_chunk", "text": "go" }));
    editor.leave().code(0);

    let mut editor = Editor::open(&home);
    let load = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    let result = editor.call("session/load", load);
    assert_eq!(result["modes"]["currentModeId"], "ask");
    // Calls of one response are announced together in a replay, so only the order of each kind is the same.
    let of = |updates: &[Value], kind: &str| -> Vec<Value> {
        let is = |it: &&Value| it["sessionUpdate"] == kind || it["kind"] == kind;
        updates.iter().filter(is).cloned().collect()
    };
    let replayed = shown(&editor);
    for kind in [
        "user_message_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
    ] {
        assert_eq!(of(&replayed, kind), of(&live, kind), "{kind}");
    }
    let (now, before) = (of(&replayed, "plan"), of(&live, "plan"));
    assert_eq!(now.last(), before.last());
    let diff = &editor.end_of_call("Edit a.txt")["content"][1];
    assert_eq!(
        (&diff["type"], &diff["oldText"], &diff["newText"]),
        (&json!("diff"), &json!("one\ntwo\n"), &json!("one\nthree\n"))
    );
    assert_eq!(editor.end_of_call("Read missing")["status"], "failed");
    let terminals = editor
        .seen
        .iter()
        .any(|it| it.to_string().contains("terminalId"));
    assert!(!terminals);
    editor.leave().code(0);
}

/// Proves ACP-1a: a loaded prompt is the input of the user with its images, without the text of resources.
#[test]
fn loaded_prompt_has_its_images_and_no_text_of_resources() {
    let server = OpenAi::replies([Reply::text("First."), Reply::text("Second.")]);
    let home = Home::openai(&server);
    let config = std::fs::read_to_string(home.config_file()).unwrap();
    home.config(&format!("{config}images = true\n"));
    let text = json!({ "type": "text", "text": "explain " });
    let file = json!({ "uri": "file:///p/a.rs", "text": "fn of_the_file() {}\n" });
    let resource = json!({ "type": "resource", "resource": file });
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" });
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    for prompt in [json!([text, resource, image]), json!([image])] {
        let prompt = json!({ "sessionId": session, "prompt": prompt });
        editor.call("session/prompt", prompt);
    }
    assert!(
        server
            .last()
            .json()
            .to_string()
            .contains("fn of_the_file() {}")
    );
    editor.leave().code(0);

    let mut editor = Editor::open(&home);
    let load = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    editor.call("session/load", load);
    let chunks = editor.updates("user_message_chunk");
    let contents: Vec<_> = chunks.iter().map(|it| it["content"].clone()).collect();
    let typed = json!({ "type": "text", "text": "explain @/p/a.rs" });
    assert_eq!(contents, [typed, image.clone(), image]);
    let id = |at: usize| &chunks[at]["messageId"];
    assert_eq!(id(0), id(1));
    assert_ne!(id(1), id(2));
    editor.prompt(&session, "/rewind");
    let listed = editor.text();
    assert!(listed.contains("explain @/p/a.rs\n"), "{listed}");
    editor.leave().code(0);
}

/// Proves ACP-1, ACP-1a: `resume` replays nothing, and the conversation continues.
#[test]
fn resume_continues_without_a_replay() {
    let server = OpenAi::replies([Reply::text("First."), Reply::text("Second.")]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "one");
    editor.call("session/close", json!({ "sessionId": session }));
    editor.forget();
    let resume = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    editor.call("session/resume", resume);
    assert!(editor.updates("agent_message_chunk").is_empty());
    assert!(editor.updates("user_message_chunk").is_empty());
    editor.prompt(&session, "two");
    let messages = server.last().messages();
    assert_eq!(messages[1]["content"], "one");
    assert_eq!(messages[2]["content"], "First.");
}

/// Proves ACP-1: a session without a prompt can be loaded by another process. It is not listed, and it is deleted after a day.
#[test]
fn session_without_a_prompt_is_stored_for_a_day() {
    let server = OpenAi::replies([Reply::text("First.")]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let empty = editor.session(&home.project());
    let used = editor.session(&home.project());
    editor.leave().code(0);
    let mut editor = Editor::open(&home);
    let listed = editor.call("session/list", json!({}));
    assert_eq!(listed["sessions"], json!([]));
    let printed = home.zeph(["sessions", "list"]).run();
    assert!(!printed.stdout.contains(&empty), "{printed}");
    let load = |id: &str| json!({ "sessionId": id, "cwd": home.project(), "mcpServers": [] });
    editor.call("session/load", load(&empty));
    editor.call("session/close", json!({ "sessionId": empty }));
    editor.call("session/resume", load(&used));
    assert_eq!(editor.prompt(&used, "go"), "end_turn");
    editor.call("session/close", json!({ "sessionId": used }));
    // A session in use is not deleted.
    editor.call("session/load", load(&empty));
    execute(
        &home.database(),
        "UPDATE session SET created_at = created_at - 25 * 3600 * 1000",
    );
    let other = editor.session(&home.project());
    let stored = |expect: &[&String]| {
        let mut expect: Vec<_> = expect.iter().map(|id| (*id).clone()).collect();
        let mut found = session_ids(&home.database());
        expect.sort();
        found.sort();
        assert_eq!(found, expect);
    };
    stored(&[&empty, &used, &other]);
    editor.call("session/close", json!({ "sessionId": empty }));
    let last = editor.session(&home.project());
    stored(&[&used, &other, &last]);
}

/// Proves ACP-1: the session of an editor and the session of the command line are the same.
#[test]
fn command_line_and_editor_continue_the_same_session() {
    let server =
        OpenAi::replies(["From the editor.", "From the shell.", "Again."].map(Reply::text));
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "one");
    // Held by the editor.
    home.zeph(["--resume", &session, "-p", "two"])
        .code(1)
        .says(&[&session, "in use"]);
    editor.call("session/close", json!({ "sessionId": session }));
    home.zeph(["--resume", &session, "-p", "two"])
        .code(0)
        .prints(&["From the shell."]);
    let resume = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    editor.call("session/resume", resume);
    editor.prompt(&session, "three");
    let messages = server.last().messages();
    let said: Vec<_> = messages[1..]
        .iter()
        .map(|it| it["content"].clone())
        .collect();
    assert_eq!(
        json!(said),
        json!(["one", "From the editor.", "two", "From the shell.", "three"])
    );
    assert_eq!(session_ids(&home.database()), [session]);
}

/// Proves ACP-1: one holder at a time, in this process and in others.
#[test]
fn session_has_one_holder() {
    let server = OpenAi::replies([Reply::text("First.")]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "one");
    let load = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    let (code, message) = editor.fails("session/load", load.clone());
    assert_eq!(code, -32600);
    assert!(message.contains("already open"), "{message}");
    let mut other = Editor::open(&home);
    let (code, message) = other.fails("session/resume", load.clone());
    assert_eq!(code, -32600);
    assert!(message.contains("in use"), "{message}");
    assert_eq!(
        other
            .fails("session/delete", json!({ "sessionId": session }))
            .0,
        -32600
    );
    editor.call("session/close", json!({ "sessionId": session }));
    other.call("session/load", load);
}

/// Proves ACP-1, ACP-7.
#[test]
fn directory_of_a_session_is_absolute_and_exists() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let mut editor = Editor::open(&home);
    let file = home.path("file");
    home.write("file", "");
    for cwd in ["", ".", "project", "/no/such/place", file.to_str().unwrap()] {
        let (code, message) = editor.fails("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        assert_eq!(code, -32602, "{cwd}: {message}");
        assert!(message.contains("cwd"), "{message}");
    }
    let relative =
        json!({ "cwd": home.project(), "mcpServers": [], "additionalDirectories": ["a"] });
    assert_eq!(editor.fails("session/new", relative).0, -32602);
    let unknown = json!({ "sessionId": "no-such", "cwd": home.project(), "mcpServers": [] });
    for method in ["session/load", "session/resume", "session/fork"] {
        assert_eq!(editor.fails(method, unknown.clone()).0, -32002, "{method}");
    }
}

/// Proves ACP-1: an additional directory can be used, and denied paths in it stay denied.
#[test]
fn additional_directories_add_roots_and_loosen_no_rule() {
    let read = |path: &str| ("read", json!({ "path": path }));
    let home = Home::new();
    let more = home.root().join("more");
    let other = home.root().join("other");
    for folder in [&more, &other] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("a"), "content of a").unwrap();
        std::fs::write(folder.join(".env"), "SECRET=1").unwrap();
    }
    let paths = [more.join("a"), more.join(".env"), other.join("a")];
    let mut calls = paths
        .clone()
        .map(|path| read(path.to_str().unwrap()))
        .to_vec();
    for (command, folder) in [("cat a", &more), ("head a", &other)] {
        calls.push(("bash", json!({ "command": command, "cwd": folder })));
    }
    let server = OpenAi::replies([Reply::calls("r", &calls), Reply::text("Done.")]);
    home.config(&openai_config(&server.url()));
    home.more_config("[tools.file]\ndeny_read = [\"**/.env\"]\n");
    let mut editor = Editor::open(&home);
    let new = json!({ "cwd": home.project(), "mcpServers": [], "additionalDirectories": [more] });
    let session = editor.call("session/new", new)["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    editor.prompt(&session, "go");
    let end = |path: &std::path::Path| {
        let update = editor.end_of_call(&format!("Read {}", path.display()));
        update["status"].as_str().unwrap().to_owned()
    };
    let ends = paths.map(|path| end(&path));
    assert_eq!(ends, ["completed", "failed", "failed"]);
    assert_eq!(editor.end_of_call("cat a")["status"], "completed");
    assert_eq!(editor.end_of_call("head a")["status"], "failed");
}

/// Proves ACP-1a.
#[test]
fn list_has_pages_and_filters_by_directory() {
    let server = OpenAi::replies([Reply::text("First.")]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let other = editor.session(&home.project());
    editor.prompt(&other, "prompt");
    execute(
        &home.database(),
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 51)
         INSERT INTO session (id, project, title, created_at, updated_at, activity)
         SELECT 'id-' || i, CASE i WHEN 7 THEN '/other' ELSE '/project' END, 'prompt ' || i,
                1700000000000, 1700000000000, 100 + i FROM n;
         INSERT INTO message (session, seq, role, content, created_at)
         SELECT number, 1, 'user', '[]', 1700000000000 FROM session WHERE id LIKE 'id-%'
         ORDER BY number;",
    );
    // A session without messages is not listed.
    editor.session(&home.project());
    let first = editor.call("session/list", json!({}));
    assert_eq!(first["sessions"].as_array().unwrap().len(), 50);
    let latest = &first["sessions"][0];
    assert_eq!(latest["sessionId"], "id-51");
    assert_eq!(latest["title"], "prompt 51");
    assert_eq!(latest["cwd"], "/project");
    assert!(
        latest["updatedAt"]
            .as_str()
            .unwrap()
            .starts_with("2023-11-14T22:13:20")
    );
    let second = editor.call("session/list", json!({ "cursor": first["nextCursor"] }));
    let rest: Vec<_> = second["sessions"].as_array().unwrap().iter().collect();
    assert_eq!(rest.len(), 2);
    assert_eq!(
        (&rest[0]["sessionId"], &rest[1]["sessionId"]),
        (&json!("id-1"), &json!(other))
    );
    assert!(second.get("nextCursor").is_none());
    let there = editor.call("session/list", json!({ "cwd": "/other" }));
    assert_eq!(there["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(there["sessions"][0]["sessionId"], "id-7");
    assert_eq!(
        editor.fails("session/list", json!({ "cursor": "x" })).0,
        -32602
    );
    assert_eq!(
        editor.fails("session/list", json!({ "cwd": "x" })).0,
        -32602
    );
}

/// Proves ACP-1, ACP-1a: the session belongs to the real directory, as in a terminal.
#[test]
fn directory_with_a_link_or_a_slash_is_the_real_one() {
    let server = OpenAi::start(|_, _| Reply::text("Hello."));
    let home = Home::openai(&server);
    let link = home.root().join("link");
    std::os::unix::fs::symlink(home.project(), &link).unwrap();
    let directories = [
        home.project(),
        link.clone(),
        home.project().join(""),
        link.join(""),
    ];
    let mut editor = Editor::open(&home);
    let mut opened: Vec<_> = directories
        .iter()
        .map(|cwd| {
            let session = editor.session(cwd);
            editor.prompt(&session, "go");
            session
        })
        .collect();
    opened.sort();
    for cwd in &directories {
        let listed = editor.call("session/list", json!({ "cwd": cwd }));
        let listed = listed["sessions"].as_array().unwrap().iter();
        let ids = listed.map(|it| it["sessionId"].as_str().unwrap().to_owned());
        let mut ids: Vec<_> = ids.collect();
        ids.sort();
        assert_eq!(ids, opened, "{}", cwd.display());
    }
    editor.leave().code(0);
    let opened: Vec<_> = opened.iter().map(String::as_str).collect();
    home.zeph(["sessions", "list"]).code(0).prints(&opened);
}

/// Proves ACP-1a: also a session that does not exist is deleted.
#[test]
fn delete_removes_a_session_and_ignores_unknown_ones() {
    let server = OpenAi::replies([Reply::text("First.")]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "one");
    // It is open: it is closed first.
    for id in [session.as_str(), session.as_str(), "no-such", ""] {
        editor.call("session/delete", json!({ "sessionId": id }));
    }
    assert!(session_ids(&home.database()).is_empty());
    assert_eq!(
        editor
            .fails("session/close", json!({ "sessionId": session }))
            .0,
        -32002
    );
}

/// Proves ACP-1: a fork continues a copy, and the original is unchanged.
#[test]
fn fork_copies_the_conversation() {
    let server = OpenAi::replies(["First.", "In the copy.", "In the original."].map(Reply::text));
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "one");
    let fork = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    let copy = editor.call("session/fork", fork)["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_ne!(copy, session);
    editor.prompt(&copy, "two");
    assert_eq!(server.last().messages().len(), 4);
    editor.prompt(&session, "three");
    let said = server.last().messages();
    assert_eq!((said.len(), &said[3]["content"]), (4, &json!("three")));
}

/// Proves ACP-1: sessions of one process run at the same time, each in its directory.
#[test]
fn sessions_run_concurrently_in_their_directories() {
    let home = Home::new();
    let other = home.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let server = OpenAi::start(|_, request| {
        let messages = request.messages();
        let prompt = messages[1]["content"].as_str().unwrap().to_owned();
        match messages.len() {
            2 if prompt == "wait" => Reply::hang(),
            2 => Reply::calls(
                "w",
                &[("write", json!({ "path": "here", "content": prompt }))],
            ),
            _ => Reply::text("Done."),
        }
    });
    home.config(&openai_config(&server.url()));
    let mut editor = Editor::with_args(&home, &["--mode", "auto-edit"]);
    let first = editor.session(&home.project());
    let second = editor.session(&other);
    let waiting = editor.send_prompt(&first, "wait");
    assert_eq!(editor.prompt(&second, "second"), "end_turn");
    assert_eq!(
        std::fs::read_to_string(other.join("here")).unwrap(),
        "second"
    );
    assert!(!home.has("here"));
    editor.cancel(&first);
    let response = editor.response(waiting);
    assert_eq!(response["result"]["stopReason"], "cancelled");
    let of_second = |it: &Value| it["params"]["sessionId"] == json!(second);
    assert!(editor.seen.iter().filter(|it| of_second(it)).count() > 3);
}
