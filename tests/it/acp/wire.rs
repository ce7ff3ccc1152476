//! One conversation as it is on the wire.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::rig::{Decision, Editor, Home, OpenAi, Reply};

/// Replaces ids by numbers in the order of their first use.
fn numbered(value: &mut Value, ids: &mut HashMap<String, usize>) {
    match value {
        Value::String(text) if text.len() == 36 && text.matches('-').count() == 4 => {
            let next = ids.len() + 1;
            let number = *ids.entry(text.clone()).or_insert(next);
            *text = format!("id-{number}");
        }
        Value::Array(values) => values.iter_mut().for_each(|it| numbered(it, ids)),
        Value::Object(fields) => fields.values_mut().for_each(|it| numbered(it, ids)),
        _ => {}
    }
}

/// Proves ACP-1, ACP-2, ACP-5.
#[test]
fn conversation_on_the_wire() {
    let write = json!({ "path": "a.txt", "content": "one\n" });
    let server = OpenAi::replies([
        Reply::answer("I write.", &[("c".to_owned(), "write", write.to_string())]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    editor.decision = Decision::Option("once");
    let session = editor.session(&home.project());
    editor.prompt(&session, "Write a file");
    let mut ids = HashMap::new();
    let lines = editor.seen.iter().map(|message| {
        let mut message = message.clone();
        numbered(&mut message, &mut ids);
        if message["params"]["update"]["sessionUpdate"] == "available_commands_update" {
            message["params"]["update"]["availableCommands"] = json!("[commands]");
        }
        if message["params"]["update"]["sessionUpdate"] == "usage_update" {
            message["params"]["update"]["used"] = json!("[tokens]");
        }
        // Depends on the OS sandbox of the machine.
        if message["result"].get("modes").is_some() {
            message["result"]["modes"]["availableModes"] = json!("[modes]");
            message["result"]["configOptions"][0]["options"] = json!("[modes]");
        }
        home.neutral(&message.to_string())
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}
