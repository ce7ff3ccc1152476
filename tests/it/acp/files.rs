//! Files through the client.

use serde_json::json;

use super::client::Client;
use crate::rig::{Home, OpenAi, Reply};

fn read() -> (&'static str, serde_json::Value) {
    ("read", json!({ "path": "f.txt" }))
}

fn edit(old: &str, new: &str) -> (&'static str, serde_json::Value) {
    let params = json!({ "path": "f.txt", "old_string": old, "new_string": new });
    ("edit", params)
}

/// Proves ACP-4, FILE-23: the unsaved text is read and changed, the client writes it, and undo restores it.
#[test]
fn unsaved_text_is_read_changed_and_restored() {
    let server = OpenAi::replies([
        Reply::calls("r", &[read()]),
        Reply::calls("e", &[edit("unsaved", "edited")]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.write("f.txt", "saved\n");
    let path = home.path("f.txt");
    let mut client = Client::open(&home, &[]);
    client.set_text(&path, "unsaved\n");
    let session = client.editor.session(&home.project());
    assert_eq!(client.prompt(&session, "go"), "end_turn");
    let sent = server.requests()[1].json().to_string();
    assert!(sent.contains("unsaved"), "{sent}");
    assert_eq!(client.text(&path), Some("edited\n"));
    assert_eq!(home.read("f.txt"), "saved\n");
    let end = client.editor.end_of_call("Edit f.txt");
    let diff = json!({
        "type": "diff", "path": path, "oldText": "unsaved\n", "newText": "edited\n"
    });
    assert_eq!(end["content"][1], diff, "{end:#}");
    // The question shows the change of the unsaved text.
    let mut questions = client.editor.seen.iter();
    let question = questions.find(|it| it["method"] == "session/request_permission");
    let question = question.expect("a question").to_string();
    assert!(question.contains("-unsaved\\n+edited"), "{question}");
    client.prompt(&session, "/undo");
    assert_eq!(client.text(&path), Some("unsaved\n"));
    assert_eq!(home.read("f.txt"), "saved\n");
}

/// Proves ACP-4, FILE-4: the client is not asked for a denied file.
#[test]
fn denied_file_is_not_requested() {
    let denied = json!({ "path": "secret.txt" });
    let change = json!({ "path": "secret.txt", "content": "x" });
    let server = OpenAi::replies([
        Reply::calls("d", &[("read", denied), ("write", change)]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.more_config("[tools.file]\ndeny_read = [\"**/secret.txt\"]\n");
    home.write("secret.txt", "hidden\n");
    let mut client = Client::open(&home, &[]);
    let session = client.editor.session(&home.project());
    client.prompt(&session, "go");
    assert_eq!(client.methods(), Vec::<&str>::new());
    assert_eq!(
        client.editor.end_of_call("Read secret.txt")["status"],
        "failed"
    );
    assert_eq!(home.read("secret.txt"), "hidden\n");
}

/// Proves ACP-4, FILE-4: the client is not asked for a denied file that does not exist on the disk, neither to create it nor
/// to undo that.
#[test]
fn denied_new_file_is_not_requested() {
    let create = json!({ "path": "secret.txt", "content": "x" });
    let server = OpenAi::replies([
        Reply::calls("d", &[("write", create)]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.more_config("[tools.file]\ndeny_read = [\"**/secret.txt\"]\n");
    let mut client = Client::open(&home, &[]);
    let session = client.editor.session(&home.project());
    client.prompt(&session, "go");
    assert_eq!(home.read("secret.txt"), "x");
    std::fs::remove_file(home.path("secret.txt")).unwrap();
    client.prompt(&session, "/undo");
    assert_eq!(client.methods(), Vec::<&str>::new());
    assert!(!home.has("secret.txt"));
}

/// Proves ACP-4: a refusal by the client is a failed call, and the disk is not used instead.
#[test]
fn refusal_by_the_client_is_a_failed_call() {
    for has_details in [false, true] {
        let server = OpenAi::replies([
            Reply::calls(
                "r",
                &[read(), ("write", json!({ "path": "new", "content": "x" }))],
            ),
            Reply::text("Done."),
        ]);
        let home = Home::openai(&server);
        home.write("f.txt", "on the disk\n");
        let mut client = Client::open(&home, &[]);
        client.refuses = Some("the user closed it");
        client.has_details = has_details;
        let session = client.editor.session(&home.project());
        assert_eq!(client.prompt(&session, "go"), "end_turn");
        let end = client.editor.end_of_call("Read f.txt");
        assert_eq!(end["status"], "failed");
        assert!(end.to_string().contains("the user closed it"), "{end:#}");
        assert!(!end.to_string().contains("on the disk"), "{end:#}");
        let end = client.editor.end_of_call("Write new");
        assert_eq!(end["status"], "failed");
        assert!(!home.has("new"));
    }
}
