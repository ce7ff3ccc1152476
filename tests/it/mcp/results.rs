//! Results of MCP calls: all content is preserved, and failures have a category.

use std::fs;

use serde_json::{Value, json};

use super::{Served, echo, tool};
use crate::rig::{OpenAi, Reply, assert_has, openai_config};

/// The smallest PNG.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn rich(result: &Value) -> (Option<i32>, String) {
    let served = Served::new(&[tool("rich")]);
    fs::write(served.file("result.json"), result.to_string()).unwrap();
    let output = served.call("rich", &json!({}));
    (output.code, output.stdout)
}

/// Proves MCP-2: text, images, links, resources and structured content are preserved.
#[test]
fn nothing_of_a_result_is_lost() {
    let (code, said) = rich(&json!({
        "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "mimeType": "image/png", "data": PNG },
            { "type": "audio", "mimeType": "audio/wav", "data": "AAEC" },
            { "type": "resource_link", "uri": "file:///notes.txt", "name": "notes" },
            { "type": "resource", "resource": { "uri": "file:///in.txt", "text": "what is in it" } },
        ],
        "structuredContent": { "rows": [{ "id": 7 }] },
    }));
    assert_eq!(code, Some(0));
    assert_has(
        &said,
        &[
            "one\n",
            "[image: image/png, 70 bytes]",
            "audio/wav, 3 bytes",
            "[link: file:///notes.txt, notes]",
            "what is in it",
            "\"id\": 7",
        ],
    );
    // A part that the protocol library does not know does not affect the others.
    let (code, said) = rich(&json!({ "content": [
        { "type": "text", "text": "two" },
        { "type": "hologram", "beam": 9 },
    ] }));
    assert_eq!(code, Some(0), "{said}");
    assert_has(&said, &["two", "hologram", "\"beam\":9"]);
    let (code, said) = rich(&json!({ "content": [] }));
    assert_eq!(
        (code, said.trim()),
        (Some(0), "[the tool returned no content]")
    );
}

/// Proves MCP-2: a model with image input receives the image.
#[test]
fn model_receives_the_image() {
    let served = Served::new(&[tool("rich")]);
    let result = json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": PNG }] });
    fs::write(served.file("result.json"), result.to_string()).unwrap();
    let server = OpenAi::replies([
        Reply::calls("e", &[("mcp_t_rich", json!({}))]),
        Reply::text("Done."),
    ]);
    let with_images = format!("{}images = true\n", openai_config(&server.url()));
    served.home.more_config(&with_images);
    served.home.zeph(["--yes", "-p", "go"]).code(0);
    let sent = server.last().json().to_string();
    assert_has(&sent, &[PNG, "[image: image/png, 70 bytes]"]);
}

/// Proves MCP-2, ERR-30: failures have the category of their code.
#[test]
fn failures_have_their_category() {
    let served = Served::new(&[tool("fail"), tool("refuse"), tool("rich"), echo()]);
    let check = |name: &str, params: Value, words: &[&str]| {
        let output = served.call(name, &params);
        assert_eq!(output.code, Some(1));
        assert_has(&output.stdout, words);
    };
    check(
        "fail",
        json!({}),
        &[
            "category: server_error",
            "fail of the MCP server t",
            "the disk is full",
        ],
    );
    check(
        "refuse",
        json!({}),
        &[
            "category: invalid_parameters",
            "refuse of the MCP server t: not so",
        ],
    );
    check(
        "refuse",
        json!({ "code": -32601 }),
        &["category: tool_not_found"],
    );
    check(
        "refuse",
        json!({ "code": -32603 }),
        &["category: server_error"],
    );
    fs::write(served.file("result.json"), "\"x\"").unwrap();
    check(
        "rich",
        json!({}),
        &["category: server_error", "violates the protocol"],
    );
}
