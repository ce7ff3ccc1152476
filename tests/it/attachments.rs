//! Files, directories and images that a prompt names with `@`.

use serde_json::Value;

use crate::images::{GIF, gif};
use crate::rig::{APIS, Home, OpenAi, Reply, Terminal, assert_has, audit, openai_config};

/// A server that answers each request, and a home with a few files.
fn answering() -> (OpenAi, Home) {
    let server = OpenAi::start(|_, _| Reply::text("Seen."));
    let home = Home::openai(&server);
    home.write("src/lib.rs", "first\nsecond\nthird\nfourth\n");
    home.write("docs/guide.md", "The guide.\n");
    home.write("a b.txt", "spaces\n");
    (server, home)
}

/// The text of the last message that the server received.
fn prompt(server: &OpenAi) -> String {
    let messages = server.last().messages();
    let content = &messages.last().unwrap()["content"];
    match content.as_array() {
        Some(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        None => content.as_str().unwrap().to_owned(),
    }
}

/// Proves CLI-10: a file, a range of lines, a directory and a path in quotes are attached; an address is not, and a
/// missing file stays text with one notice.
#[test]
fn named_files_are_attached() {
    let (server, home) = answering();
    let text = "compare @src/lib.rs:2-3, @docs/ and @\"a b.txt\"; write to me@src/lib.rs, see @no.txt and @none/";
    let output = home.zeph(["-p", text]).code(0);
    let sent = prompt(&server);
    assert!(sent.starts_with(text), "{sent}");
    assert_has(
        &sent,
        &[
            "[the user attached the file src/lib.rs, lines 2-3]",
            "second",
            "third",
            "[the user attached the file docs/]",
            "guide.md",
            "[the user attached the file a b.txt]",
            "spaces",
        ],
    );
    assert!(
        !sent.contains("first") && !sent.contains("fourth"),
        "{sent}"
    );
    assert_eq!(sent.matches("[the user attached").count(), 3, "{sent}");
    assert_has(
        &output.stderr,
        &["not attached, because it does not exist: @no.txt, @none/"],
    );
    let tools: Vec<_> = audit(&home.database())
        .into_iter()
        .map(|entry| entry.tool)
        .collect();
    assert_eq!(tools, ["read", "list_directory", "read"]);

    home.zeph(["-p", "mail me@src/lib.rs"]).code(0);
    assert_eq!(prompt(&server), "mail me@src/lib.rs");
}

/// Proves CLI-10, FILE-2: a file that `deny_read` protects, or outside of the allowed directories, is not attached.
#[test]
fn denied_file_is_not_attached() {
    let (server, home) = answering();
    home.more_config("[tools.file]\ndeny_read = [\"**/.env\"]\n");
    home.write(".env", "PASSWORD=hunter2hunter2\n");
    std::fs::write(home.root().join("outside.txt"), "outside\n").unwrap();
    for name in ["@.env", "@../outside.txt"] {
        let output = home
            .zeph(["-p", &format!("see @src/lib.rs {name}")])
            .code(1);
        assert_has(
            &output.stderr,
            &["error: ", &format!("{name} cannot be attached: ")],
        );
    }
    assert_eq!(server.requests().len(), 0);
    assert!(
        audit(&home.database())
            .iter()
            .any(|entry| entry.result == "blocked" || entry.result == "error")
    );
}

/// Proves CLI-10, LLM-6: each kind of provider sends an image that is attached by `@` or as a pasted path.
#[test]
fn images_are_attached_for_every_provider() {
    for api in APIS {
        let server = OpenAi::start(move |_, _| api.text("Seen."));
        let home = Home::new();
        home.config(&format!(
            "{}images = true\n",
            api.config("local", &server.url())
        ));
        std::fs::write(home.path("dot.gif"), gif()).unwrap();
        std::fs::write(home.path("my dot.gif"), gif()).unwrap();
        home.zeph(["-p", "look at @dot.gif"]).code(0);
        let raw = String::from_utf8_lossy(&server.last().raw).into_owned();
        assert_has(&raw, &[GIF, "GIF image, 1×1, 42 bytes"]);
        let pasted = format!("look at '{}'", home.path("my dot.gif").display());
        home.zeph(["-p", &pasted]).code(0);
        let raw = String::from_utf8_lossy(&server.last().raw).into_owned();
        assert_has(&raw, &[GIF]);
    }
}

/// Proves CLI-10: without image input, an attached image is a clear error.
#[test]
fn image_without_image_input_is_an_error() {
    let (server, home) = answering();
    std::fs::write(home.path("dot.gif"), gif()).unwrap();
    let output = home.zeph(["-p", "look at @dot.gif"]).code(1);
    assert_has(
        &output.stderr,
        &["@dot.gif cannot be attached", "does not accept images"],
    );
    // A path without `@` is text.
    let path = home.path("dot.gif").display().to_string();
    home.zeph(["-p", &path]).code(0);
    assert_eq!(prompt(&server), path);
}

/// Proves CLI-10: a session attaches files, shows the calls, and a resumed session shows the input without the contents.
#[test]
fn session_attaches_files() {
    let (server, home) = answering();
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("explain @src/lib.rs:1 \r");
    terminal.shows("Seen.");
    terminal.prompts("");
    let sent = prompt(&server);
    assert_has(
        &sent,
        &["[the user attached the file src/lib.rs, line 1]", "first"],
    );
    terminal.type_keys("see @src/nothing.rs \r");
    terminal.shows("not attached, because it does not exist: @src/nothing.rs");
    terminal.prompts("");
    terminal.leaves();
}

/// Proves CLI-10, CLI-8: next to piped text, the typed text attaches files and may be a custom command; the piped text
/// attaches nothing.
#[test]
fn typed_text_next_to_piped_text_attaches_files() {
    let (server, home) = answering();
    let piped = home
        .zeph(["-p", "compare @src/lib.rs:1", "-"])
        .stdin("with @\"a b.txt\"");
    piped.code(0);
    let sent = prompt(&server);
    assert_has(
        &sent,
        &["compare @src/lib.rs:1", "first", "with @\"a b.txt\""],
    );
    assert!(!sent.contains("spaces"), "{sent}");
    home.zeph(["-p", "/status", "-"])
        .stdin("text")
        .code(2)
        .says(&["\"/status\" is a command and has no prompt"]);
    assert_eq!(server.requests().len(), 1);
}

/// Proves CLI-10, CLI-2b: files are attached to a prompt with a schema for its response.
#[test]
fn prompt_with_a_schema_attaches_files() {
    let server = OpenAi::start(|_, _| Reply::text("{\"a\": 1}"));
    let home = Home::new();
    home.config(&openai_config(&server.url()));
    home.write("a.txt", "the content\n");
    home.write("schema.json", "{\"type\": \"object\"}");
    let json: Value = home
        .zeph(["-p", "read @a.txt", "--output-schema", "schema.json"])
        .code(0)
        .json();
    assert_eq!(json["a"], 1);
    assert_has(&prompt(&server), &["the content"]);
    home.zeph(["-p", "/status", "--output-schema", "schema.json"])
        .code(2)
        .says(&["--output-schema and `-` need a prompt"]);
}
