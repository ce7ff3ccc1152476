//! Modes and configuration options, and their agreement.

use serde_json::{Value, json};

use crate::rig::{Editor, Home, OpenAi, Reply, execute, openai_config};

/// The current values by the id of the option.
fn values(options: &Value) -> Vec<(String, String)> {
    let options = options.as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    options
        .map(|it| (text(&it["id"]), text(&it["currentValue"])))
        .collect()
}

fn expected(mode: &str, model: &str, effort: &str) -> Vec<(String, String)> {
    [("mode", mode), ("model", model), ("effort", effort)]
        .map(|(id, value)| (id.to_owned(), value.to_owned()))
        .to_vec()
}

fn two_providers(first: &OpenAi, second: &OpenAi) -> Home {
    let home = Home::new();
    let other = openai_config(&second.url()).replace("\"local\"", "\"other\"");
    home.config(&format!("{}{other}", openai_config(&first.url())));
    home
}

/// Proves ACP-5, PERM-8: the mode applies to the next call, and the options agree with it.
#[test]
fn mode_of_a_session_can_be_changed() {
    let touch = || Reply::calls("t", &[("write", json!({ "path": "ran", "content": "x" }))]);
    let server = OpenAi::replies([touch(), Reply::text("1."), touch(), Reply::text("2.")]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let new = json!({ "cwd": home.project(), "mcpServers": [] });
    let result = editor.call("session/new", new);
    let session = result["sessionId"].as_str().unwrap().to_owned();
    let modes = result["modes"]["availableModes"].as_array().unwrap();
    let modes: Vec<_> = modes.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(modes[..4], ["plan", "ask", "auto-edit", "auto"]);
    assert_eq!(
        values(&result["configOptions"]),
        expected("ask", "local", "default")
    );
    let mode = |mode: &str| json!({ "sessionId": session, "modeId": mode });
    editor.call("session/set_mode", mode("plan"));
    assert_eq!(
        editor.updates("current_mode_update")[0]["currentModeId"],
        "plan"
    );
    let update = &editor.updates("config_option_update")[0];
    assert_eq!(
        values(&update["configOptions"]),
        expected("plan", "local", "default")
    );
    editor.prompt(&session, "go");
    assert!(!home.has("ran"), "plan only reads");
    editor.call("session/set_mode", mode("auto-edit"));
    editor.prompt(&session, "go");
    assert!(home.has("ran"));
    for unknown in ["", "Plan", "yolo"] {
        assert_eq!(
            editor.fails("session/set_mode", mode(unknown)).0,
            -32602,
            "{unknown}"
        );
    }
}

/// Proves ACP-5: a response has all options, and the model and the effort apply to the next request.
#[test]
fn options_change_mode_model_and_effort() {
    let first = OpenAi::replies([Reply::text("First.")]);
    let second = OpenAi::replies([Reply::text("Second.")]);
    let home = two_providers(&first, &second);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    let mut set = |id: &str, value: &str| {
        let params = json!({ "sessionId": session, "configId": id, "value": value });
        editor.call("session/set_config_option", params)["configOptions"].clone()
    };
    assert_eq!(
        values(&set("model", "other")),
        expected("ask", "other", "default")
    );
    assert_eq!(
        values(&set("effort", "high")),
        expected("ask", "other", "high")
    );
    assert_eq!(
        values(&set("mode", "plan")),
        expected("plan", "other", "high")
    );
    assert_eq!(
        editor.updates("current_mode_update")[0]["currentModeId"],
        "plan"
    );
    editor.prompt(&session, "go");
    assert_eq!(editor.text(), "Second.");
    assert!(second.last().json().to_string().contains("\"high\""));
    for (id, value) in [
        ("model", "no-such"),
        ("effort", "x"),
        ("mode", "x"),
        ("color", "red"),
    ] {
        let params = json!({ "sessionId": session, "configId": id, "value": value });
        assert_eq!(
            editor.fails("session/set_config_option", params).0,
            -32602,
            "{id}"
        );
    }
}

/// Proves ACP-1, ACP-5: the mode and the model belong to the session. They are restored when it is loaded, resumed or
/// forked, and the response states them.
#[test]
fn mode_and_model_are_restored() {
    let first = OpenAi::start(|_, _| Reply::text("First."));
    let second = OpenAi::start(|_, _| Reply::text("Second."));
    let home = two_providers(&first, &second);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    let set = |editor: &mut Editor, session: &str, id: &str, value: &str| {
        let params = json!({ "sessionId": session, "configId": id, "value": value });
        editor.call("session/set_config_option", params);
    };
    let mode = json!({ "sessionId": session, "modeId": "auto-edit" });
    editor.call("session/set_mode", mode);
    set(&mut editor, &session, "model", "other");
    set(&mut editor, &session, "effort", "high");
    editor.leave().code(0);

    let open = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    let mut editor = Editor::open(&home);
    let result = editor.call("session/load", open.clone());
    assert_eq!(result["modes"]["currentModeId"], "auto-edit");
    let chosen = expected("auto-edit", "other", "high");
    assert_eq!(values(&result["configOptions"]), chosen);
    editor.prompt(&session, "go");
    assert_eq!(editor.text(), "Second.");
    assert!(second.last().json().to_string().contains("\"high\""));
    // A slash command is a choice too.
    editor.prompt(&session, "/mode plan");
    editor.call("session/close", json!({ "sessionId": session }));
    let result = editor.call("session/resume", open.clone());
    let chosen = expected("plan", "other", "high");
    assert_eq!(values(&result["configOptions"]), chosen);
    let result = editor.call("session/fork", open.clone());
    assert_eq!(values(&result["configOptions"]), chosen);
    let fork = result["sessionId"].as_str().unwrap().to_owned();
    set(&mut editor, &fork, "model", "local");
    editor.prompt(&fork, "/model third-model");
    editor.leave().code(0);

    // A model that no provider lists, and flags of the process, which precede the choices.
    let mut editor = Editor::with_args(&home, &["--mode", "ask"]);
    let mut forked = open.clone();
    forked["sessionId"] = json!(fork);
    let result = editor.call("session/load", forked);
    let chosen = expected("ask", "third-model", "default");
    assert_eq!(values(&result["configOptions"]), chosen);
    // The original has its own choices.
    let result = editor.call("session/load", open);
    let chosen = expected("ask", "other", "high");
    assert_eq!(values(&result["configOptions"]), chosen);
}

/// Proves ACP-5: a stored choice that became impossible is reported, and the configuration applies.
#[test]
fn choice_that_is_not_possible_is_reported() {
    let first = OpenAi::start(|_, _| Reply::text("First."));
    let home = two_providers(&first, &first);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    let params = json!({ "sessionId": session, "configId": "model", "value": "other" });
    editor.call("session/set_config_option", params);
    editor.leave().code(0);
    execute(&home.database(), "UPDATE session SET chosen_mode = 'none'");
    home.config(&openai_config(&first.url()));
    let mut editor = Editor::open(&home);
    let load = json!({ "sessionId": session, "cwd": home.project(), "mcpServers": [] });
    let result = editor.call("session/load", load);
    let chosen = expected("ask", "local", "default");
    assert_eq!(values(&result["configOptions"]), chosen);
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let seen = editor.seen.iter().map(Value::to_string);
    let seen: String = seen.collect();
    for message in [
        "mode none of this session is not possible here; mode ask applies",
        "no provider \\\"other\\\" is configured",
    ] {
        assert!(seen.contains(message), "{message}: {seen}");
    }
}

/// Proves ACP-5: `/mode` and `/model` change the options too. The other model has the same commands.
#[test]
fn slash_commands_change_the_options() {
    let first = OpenAi::replies([Reply::text("First.")]);
    let second = OpenAi::replies([Reply::text("Second.")]);
    let home = two_providers(&first, &second);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.prompt(&session, "/mode auto-edit");
    assert_eq!(
        editor.updates("current_mode_update")[0]["currentModeId"],
        "auto-edit"
    );
    let last = |editor: &Editor| {
        let updates = editor.updates("config_option_update");
        values(&updates.last().unwrap()["configOptions"])
    };
    assert_eq!(last(&editor), expected("auto-edit", "local", "default"));
    editor.prompt(&session, "/model other low");
    assert_eq!(last(&editor), expected("auto-edit", "other", "low"));
    editor.forget();
    editor.prompt(&session, "/help");
    let help = editor.text();
    assert!(help.contains("/status  "), "{help}");
    for unavailable in ["/quit", "!command"] {
        let line = help.lines().find(|line| line.starts_with(unavailable));
        assert_eq!(line, None, "{help}");
    }
    editor.forget();
    editor.prompt(&session, "go");
    assert_eq!(editor.text(), "Second.");
}

/// Proves ACP-5: the mode can be changed while a prompt runs.
#[test]
fn mode_changes_while_a_prompt_runs() {
    let write = json!({ "path": "a", "content": "x" });
    let server = OpenAi::replies([
        Reply::text("A story continues.").hang_after("story "),
        Reply::calls("w", &[("write", write)]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    let prompt = editor.send_prompt(&session, "go");
    editor.until_update("agent_message_chunk");
    editor.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "plan" }),
    );
    let changed = editor.updates("current_mode_update");
    assert_eq!(changed.last().unwrap()["currentModeId"], "plan");
    editor.cancel(&session);
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "cancelled");
    editor.prompt(&session, "write");
    assert_eq!(editor.end_of_call("Write a")["status"], "failed");
    assert!(!home.has("a"));
}
