//! Resources and prompts of servers in the input of the user.

use serde_json::{Value, json};

use super::{Served, echo};
use crate::rig::{OpenAi, Reply, Terminal, assert_has, openai_config};

/// A server with resources and two prompts, and a model that responds once.
fn served(mode: &str) -> (Served, OpenAi) {
    let served = Served::in_mode(&[echo()], mode, "");
    let prompts = json!([
        { "name": "review", "description": "Reviews\u{200b} a file.", "arguments": [
            { "name": "path", "required": true }, { "name": "style" }
        ]},
        { "name": "odd name" },
    ]);
    std::fs::write(served.file("prompts.json"), prompts.to_string()).unwrap();
    served.approve();
    let server = OpenAi::replies([Reply::text("Read."), Reply::text("Read again.")]);
    served.home.more_config(&openai_config(&server.url()));
    (served, server)
}

/// The last message of the first request.
fn prompt(server: &OpenAi) -> String {
    let request = server.requests()[0].json();
    let messages = request["messages"].as_array().unwrap();
    messages.last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Proves MCP-1b: `@SERVER:URI` attaches the resource with its origin, and the audit trail has the call.
#[test]
fn resource_is_attached_with_its_origin() {
    for mode in ["", "new"] {
        let (served, server) = served(mode);
        served
            .home
            .zeph(["-p", "Explain @t:note://one, please @other:x"])
            .code(0);
        assert_has(
            &prompt(&server),
            &[
                "Explain @t:note://one, please @other:x\n\n[the user attached the resource note://one of the MCP server t",
                "The note's text.\n[end of the resource note://one]",
            ],
        );
        let audit = served.home.zeph(["audit", "query", "--json"]).run().stdout;
        assert_has(&audit, &["mcp_resource"]);
    }
}

/// Proves MCP-1b: a long resource is cut, and the rest is in the overflow store.
#[test]
fn long_resource_goes_to_the_overflow_store() {
    let (served, server) = served("");
    served.home.zeph(["-p", "Explain @t:note://long"]).code(0);
    let prompt = prompt(&server);
    assert!(prompt.len() < 100_000, "{}", prompt.len());
    assert_has(&prompt, &["line 1 of a long text", "overflow"]);
}

/// Proves MCP-1b: a resource that cannot be read stops the prompt; piped text attaches none.
#[test]
fn resource_that_is_missing_stops_the_prompt() {
    let (served, server) = served("");
    let output = served.home.zeph(["-p", "Explain @t:note://none"]).code(1);
    assert_has(
        &output.stderr,
        &["@t:note://none cannot be attached", "no such resource"],
    );
    assert_eq!(server.requests().len(), 0);
    served
        .home
        .zeph(Vec::<&str>::new())
        .stdin("Explain @t:note://one")
        .code(0);
    assert_eq!(prompt(&server), "Explain @t:note://one");
}

/// Proves MCP-1b: prompts are slash commands with arguments, and `/help` lists them.
#[test]
fn prompt_is_a_slash_command() {
    let (served, server) = served("");
    let mut terminal = Terminal::start(&served.home, &[]);
    terminal.prompts("");
    terminal.type_keys("/help\r");
    terminal.shows("/mcp:t:review  PATH [STYLE]: Reviews a file.");
    assert!(!terminal.text().contains("odd name"));
    terminal.prompts("");
    terminal.type_keys("/mcp\r");
    terminal.shows("t: connected, 1 tool, 1 prompt, 1 resource");
    terminal.prompts("");
    terminal.type_keys("/mcp:t:review\r");
    terminal.shows("the argument path is missing; the form is /mcp:t:review PATH [STYLE]");
    terminal.prompts("");
    terminal.type_keys("/mcp:t:nothing\r");
    terminal.shows("has no prompt \"nothing\"");
    assert_eq!(server.requests().len(), 0);
    terminal.prompts("");
    terminal.type_keys("/mcp:t:review 'a b.rs' style=short\r");
    terminal.shows("Read.");
    terminal.prompts("");
    terminal.type_keys("/mcp:t:review slow\r");
    terminal.shows("MCP server t: 1 of 4: halfway");
    terminal.shows("Read again.");
    assert_eq!(terminal.leaves().0.code(), Some(0));
    assert_has(
        &prompt(&server),
        &[
            "[the user chose the prompt review of the MCP server t, which wrote the following text]",
            "Review {\"path\": \"a b.rs\", \"style\": \"short\"}",
        ],
    );
    let listed: Value = served.home.zeph(["mcp", "list", "--json"]).code(0).json();
    assert_eq!(listed[0]["prompts"], json!(["review"]));
    assert_eq!(
        listed[0]["resources"],
        json!([{ "uri": "note://one", "name": "One" }])
    );
}
