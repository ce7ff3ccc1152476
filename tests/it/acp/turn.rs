//! One turn: chunks, calls, the plan, usage, notices, and the reason of its end.

use serde_json::{Value, json};

use crate::rig::{Decision, Editor, Home, KEY, OpenAi, Reply};

/// Proves ACP-2: chunks of one message have its id, and another message has another one.
#[test]
fn chunks_have_the_id_of_their_message() {
    let server = OpenAi::replies([
        Reply::answer(
            "one two three",
            &[(
                "c".to_owned(),
                "list_directory",
                json!({ "path": "." }).to_string(),
            )],
        ),
        Reply::text("four five"),
    ]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    assert_eq!(editor.text(), "one two threefour five");
    let chunks = editor.updates("agent_message_chunk");
    let id_of = |text: &str| {
        let chunk = chunks
            .iter()
            .find(|it| it["content"]["text"].as_str().unwrap().contains(text));
        chunk.unwrap()["messageId"].as_str().unwrap().to_owned()
    };
    assert_eq!(id_of("one"), id_of("three"));
    assert_eq!(id_of("four"), id_of("five"));
    assert_ne!(id_of("one"), id_of("four"));
    // The response comes after all updates.
    assert!(editor.seen.last().unwrap()["result"].is_object());
}

/// Proves ACP-2: reasoning is a thought of its own.
#[test]
fn reasoning_is_a_thought() {
    let home = Home::scripted("[[steps]]\nreasoning = \"hm\"\ntext = \"hi\"\n");
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    let thoughts = editor.updates("agent_thought_chunk");
    assert_eq!(thoughts.len(), 1);
    assert_eq!(thoughts[0]["content"]["text"], "hm");
    assert_ne!(
        thoughts[0]["messageId"],
        editor.updates("agent_message_chunk")[0]["messageId"]
    );
}

/// Proves ACP-2, ACP-3, ACP-6: a call is announced before it starts, and its end has text, diffs and locations.
#[test]
fn call_is_announced_before_it_starts_and_completed_after() {
    let write = json!({ "path": "src/a.txt", "content": "one\n" });
    let server = OpenAi::replies([
        Reply::calls(
            "w",
            &[
                ("write", write.clone()),
                ("bash", json!({ "command": "printf said" })),
            ],
        ),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.decision = Decision::None;
    let prompt = editor.send_prompt(&session, "go");
    let call = editor.until_update("tool_call");
    assert!(!home.has("src/a.txt"), "it has not started");
    assert_eq!(
        (&call["title"], &call["name"], &call["kind"]),
        (&json!("Write src/a.txt"), &json!("write"), &json!("edit"))
    );
    assert_eq!(call["rawInput"], write);
    let path = json!(home.path("src/a.txt"));
    assert_eq!(call["locations"], json!([{ "path": path }]));
    let id = call["toolCallId"].as_str().unwrap();
    assert_eq!((id.len(), id.matches('-').count()), (36, 4), "{id}");
    let question = editor.until_question();
    assert_eq!(question["toolCall"]["toolCallId"], call["toolCallId"]);
    editor.choose_last("once");
    let response = editor.response(prompt);
    assert_eq!(response["result"]["stopReason"], "end_turn");
    let end = editor.end_of_call("Write src/a.txt");
    assert_eq!(end["status"], "completed");
    assert_eq!(end["locations"], json!([{ "path": path, "line": 1 }]));
    let diff = json!({ "type": "diff", "path": path, "newText": "one\n" });
    assert_eq!(end["content"][1], diff);
    let command = editor.end_of_call("printf said");
    assert_eq!(command["status"], "completed");
    assert_eq!(command["content"][0]["content"]["text"], "```\nsaid\n```");
    let calls = editor.updates("tool_call");
    assert_eq!(calls[1]["kind"], "execute");
    assert_ne!(calls[0]["toolCallId"], calls[1]["toolCallId"]);
}

/// Proves ACP-2: ids of calls are unique even if the model repeats its own.
#[test]
fn repeated_ids_of_the_model_are_different_calls() {
    let call = |path: &str| {
        let params = json!({ "path": path }).to_string();
        Reply::answer("", &[("same".to_owned(), "read", params)])
    };
    let server = OpenAi::replies([call("a"), call("b"), Reply::text("Done.")]);
    let home = Home::openai(&server);
    home.write("b", "content of b");
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    assert_eq!(editor.end_of_call("Read a")["status"], "failed");
    let end = editor.end_of_call("Read b");
    assert_eq!(end["status"], "completed");
    assert!(end.to_string().contains("content of b"));
}

/// Proves ACP-2: output streams while the command runs, and the end has all of it.
#[test]
fn output_streams_while_a_command_runs() {
    let home = Home::new();
    let command = "printf '\\033[31mbegun\\033[0m\\n'; until [ -e more ]; do sleep 0.01; done; echo a; sleep 0.02; echo b; until [ -e go-on ]; do sleep 0.01; done; echo ended";
    let server = OpenAi::replies([
        Reply::calls("b", &[("bash", json!({ "command": command }))]),
        Reply::text("Done."),
    ]);
    home.config(&crate::rig::openai_config(&server.url()));
    let mut editor = Editor::with_args(&home, &["--yes"]);
    let session = editor.session(&home.project());
    let prompt = editor.send_prompt(&session, "go");
    let update = editor.until_update("tool_call_update");
    assert_eq!(update["status"], "in_progress");
    assert_eq!(update["content"][0]["content"]["text"], "```\nbegun\n```");
    // The second line follows the first one within the interval of updates, and is sent after it.
    home.write("more", "");
    editor.until(|it| {
        let update = &it["params"]["update"];
        update["content"][0]["content"]["text"] == "```\nbegun\na\nb\n```"
    });
    home.write("go-on", "");
    editor.response(prompt);
    let end = editor.end_of_call(command);
    assert_eq!(
        end["content"][0]["content"]["text"],
        "```\nbegun\na\nb\nended\n```"
    );
}

/// Proves ACP-2: the title, the usage and the task list.
#[test]
fn title_usage_and_plan_are_sent() {
    let status = json!({ "task_id": "task_1", "status": "in_progress" });
    let server = OpenAi::replies([
        Reply::calls(
            "t",
            &[
                ("add_task", json!({ "content": "first" })),
                ("add_task", json!({ "content": "second" })),
            ],
        ),
        Reply::calls("u", &[("update_task", status)]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "The title\nand more");
    assert_eq!(
        editor.updates("session_info_update")[0]["title"],
        "The title"
    );
    let usage = editor.updates("usage_update");
    assert_eq!(usage.len(), 3, "one for each response");
    assert!(usage[0]["used"].as_u64().unwrap() > 0);
    assert!(usage[0]["size"].as_u64().unwrap() > 1000);
    let plans = editor.updates("plan");
    let entries = plans.last().unwrap()["entries"].as_array().unwrap().clone();
    let of = |key: &str| {
        entries
            .iter()
            .map(|it| it[key].clone())
            .collect::<Vec<Value>>()
    };
    assert_eq!(of("content"), ["first", "second"]);
    assert_eq!(of("status"), ["in_progress", "pending"], "{plans:#?}");
}

/// Proves ACP-2: notices go to a client that shows them, and to standard error otherwise.
#[test]
fn notices_go_to_the_client_or_to_standard_error() {
    let server =
        OpenAi::start(|_, _| Reply::calls("l", &[("list_directory", json!({ "path": "." }))]));
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    assert_eq!(editor.prompt(&session, "go"), "max_turn_requests");
    let notices = editor.updates("notice");
    let last = notices.last().unwrap();
    assert!(
        last["title"]
            .as_str()
            .unwrap()
            .contains("three times in a row"),
        "{notices:?}"
    );
    assert!(!editor.text().contains("three times"));
    editor.leave().code(0);

    let mut editor = Editor::start(home.zeph(["acp"]));
    editor.call("initialize", json!({ "protocolVersion": 1 }));
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    assert!(editor.updates("notice").is_empty());
    // The reason of an early end is part of the conversation.
    assert!(editor.text().contains("three times in a row"));
    editor.leave().code(0).says(&["three times in a row"]);
}

/// Proves ACP-5a.
#[test]
fn stop_reason_says_why_the_turn_ended() {
    let finish = |reason: &str| {
        let reply = Reply::text("cut");
        let body = String::from_utf8(reply.body.clone()).unwrap();
        let body = body.replace(
            "\"finish_reason\":\"stop\"",
            &format!("\"finish_reason\":\"{reason}\""),
        );
        Reply {
            body: body.into_bytes(),
            ..reply
        }
    };
    let denied = || Reply::calls("b", &[("bash", json!({ "command": "touch ran" }))]);
    let check = |replies: Vec<Reply>, expect: &str| {
        let server = OpenAi::replies(replies);
        let home = Home::openai(&server);
        let mut editor = Editor::open(&home);
        let session = editor.session(&home.project());
        assert_eq!(editor.prompt(&session, "go"), expect);
        assert!(!home.has("ran"));
    };
    check(vec![Reply::text("hi")], "end_turn");
    check(vec![finish("length")], "max_tokens");
    check(vec![finish("content_filter")], "refusal");
    check(vec![denied(), Reply::text("no")], "end_turn");
    check(vec![denied(), Reply::text("")], "end_turn");
}

/// Proves ACP-5a: a failure of the provider is an error without the key, and the next prompt works.
#[test]
fn failure_of_the_provider_is_an_error_without_the_key() {
    let server = OpenAi::replies([
        Reply::error(401, "invalid_api_key", &format!("bad key {KEY}")),
        Reply::text("Better."),
    ]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    let id = editor.send_prompt(&session, "go");
    let response = editor.response(id);
    assert_eq!(response["error"]["code"], -32603);
    assert!(
        response["error"]["message"]
            .as_str()
            .unwrap()
            .contains("401"),
        "{response}"
    );
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    assert!(editor.seen.iter().all(|it| !it.to_string().contains(KEY)));
}

/// Proves ACP-2: arguments and output have no secrets.
#[test]
fn secrets_are_removed_from_updates() {
    let token = format!("gh{}{}", "p_", "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6");
    let command = format!("echo {token}; echo {KEY}");
    let server = OpenAi::replies([
        Reply::calls("b", &[("bash", json!({ "command": command }))]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    let mut editor = Editor::with_args(&home, &["--yes"]);
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    for message in &editor.seen {
        let text = message.to_string();
        assert!(!text.contains(&token) && !text.contains(KEY), "{text}");
    }
    assert_eq!(editor.updates("tool_call").len(), 1);
}

/// Proves ACP-1: an image in a prompt reaches a model that takes images.
#[test]
fn image_reaches_the_model() {
    let server = OpenAi::replies([Reply::text("A dot.")]);
    let home = Home::openai(&server);
    let config = std::fs::read_to_string(home.config_file()).unwrap();
    home.config(&format!("{config}images = true\n"));
    let mut editor = Editor::start(home.zeph(["acp"]));
    let result = editor.call("initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(
        result["agentCapabilities"]["promptCapabilities"]["image"],
        true
    );
    let session = editor.session(&home.project());
    let prompt = json!([
        { "type": "text", "text": "look" },
        { "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" },
    ]);
    editor.call(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    let sent = server.last().json().to_string();
    assert!(
        sent.contains("data:image/png;base64,iVBORw0KGgo="),
        "{sent}"
    );
}
