//! `/mcp` and `/mcp approve` in a conversation.

use serde_json::json;

use super::{Served, echo, tool};
use crate::rig::{OpenAi, Reply, Terminal, assert_has, openai_config};

/// Proves CMD-1, MCP-1a: the listing with hidden tools and the reason; the user approves the shown tools, and
/// they are exposed.
#[test]
fn user_approves_tools_in_a_conversation() {
    let hidden = json!({ "name": "sly", "description": "Does\u{202e} it.\u{200b}", "inputSchema": { "type": "object" } });
    let served = Served::unapproved(&[echo(), hidden, tool("日本")]);
    let server = OpenAi::replies([Reply::text("First."), Reply::text("Second.")]);
    served.home.more_config(&openai_config(&server.url()));
    let mut terminal = Terminal::start(&served.home, &[]);
    terminal.prompts("");
    terminal.type_keys("/mcp\r");
    terminal.shows("t: connected, 0 tools");
    terminal.shows("echo is not available: not approved yet");
    terminal.shows("日本 is not available: its name has no ASCII letter or digit");
    terminal.shows("/mcp approve t, or `zeph mcp approve t`, shows the unapproved tools.");
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("2 tools are not approved");
    terminal.shows("First.");
    // Nothing has been shown yet.
    terminal.prompts("");
    terminal.type_keys("/mcp approve t yes\r");
    terminal.shows("error: /mcp approve t shows the tools to approve first");
    terminal.prompts("");
    terminal.type_keys("/mcp approve x\r");
    terminal.shows("error: no MCP server is called \"x\"");
    terminal.prompts("");
    terminal.type_keys("/mcp approve t\r");
    terminal.shows("description: Does\\u{202e} it.\\u{200b}");
    terminal.shows("/mcp approve t yes approves these tools.");
    terminal.prompts("");
    terminal.type_keys("/mcp approve t yes\r");
    terminal.shows("2 tools of the MCP server t can be called");
    terminal.prompts("");
    terminal.type_keys("again\r");
    terminal.shows("Second.");
    terminal.prompts("");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.ends().0.code(), Some(0));
    let tools = |at: usize| server.requests()[at].json()["tools"].to_string();
    assert!(!tools(0).contains("mcp_"), "{}", tools(0));
    assert_has(&tools(1), &["mcp_t_echo", "mcp_t_sly", "\"Does it.\""]);
    assert!(!tools(1).contains("\\u202e") && !tools(1).contains('\u{202e}'));
}

/// Proves CMD-1: no line of the listing is wider than 80 columns.
#[test]
fn listing_fits_80_columns() {
    let long = json!({ "name": "n".repeat(60), "inputSchema": { "type": "object" } });
    let served = Served::in_mode(&[echo(), long], "", "tool_allowlist = [\"other\"]\n");
    let listed = served.home.zeph(["mcp", "list"]).code(0).stdout;
    assert_has(
        &listed,
        &[
            "t: connected, 0 tools",
            "echo is not available: it is not in `tool_allowlist`",
        ],
    );
    assert!(
        listed.lines().all(|line| line.chars().count() <= 80),
        "{listed}"
    );
    let failing = Served::in_mode(&[echo()], "exits", "");
    let listed = failing.home.zeph(["mcp", "list"]).code(0).stdout;
    assert!(
        listed.lines().all(|line| line.chars().count() <= 80),
        "{listed}"
    );
}
