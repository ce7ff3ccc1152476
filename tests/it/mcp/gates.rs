//! Gates for MCP tools, which apply as for other tools.

use serde_json::json;

use super::{Served, echo, says, tool};
use crate::rig::{Home, OpenAi, Reply, Terminal, assert_has, audit};

/// Proves MCP-1: the tools of a server are exposed to a model, approved and called; each call has its entry.
#[test]
fn model_calls_a_server_tool() {
    let server = OpenAi::replies([
        Reply::calls("e", &[("mcp_t_echo", json!({ "text": "hi" }))]),
        Reply::text("Done."),
    ]);
    let served = Served::new(&[echo()]);
    served
        .home
        .more_config(&crate::rig::openai_config(&server.url()));
    served.home.zeph(["--yes", "-p", "go"]).code(0);
    let first = server.requests()[0].json();
    let offered = first["tools"].as_array().unwrap().iter();
    let mut offered = offered.map(|tool| &tool["function"]);
    let found = offered.find(|tool| tool["name"] == "mcp_t_echo").unwrap();
    assert_eq!(found["description"], "Says it.");
    assert_eq!(found["parameters"]["required"], json!(["text"]));
    let messages = server.last().messages();
    assert_eq!(messages.last().unwrap()["content"], "said: hi");
    let entries = audit(&served.home.database());
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].tool.as_str(), entries[0].result.as_str()),
        ("mcp_t_echo", "success")
    );
    assert_eq!(entries[0].call, json!({ "text": "hi" }));
    assert_eq!(entries[0].approved_by, "user");
}

/// Proves MCP-1: without approval nothing runs, regardless of the hints of the server.
#[test]
fn server_tool_requires_approval_by_default() {
    let mut reads = tool("where");
    reads["annotations"] = json!({ "readOnlyHint": true, "openWorldHint": false });
    let served = Served::new(&[echo(), reads]);
    for (name, params) in [("mcp_t_echo", "{\"text\":\"a\"}"), ("mcp_t_where", "{}")] {
        let asked = served.home.zeph(["tools", "call", name, params]).code(3);
        assert_has(&asked.stdout, &["confirmation_required"]);
    }
    assert_eq!(served.calls(), 0);
    let results = audit(&served.home.database()).into_iter();
    let results: Vec<_> = results.map(|entry| (entry.tool, entry.result)).collect();
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results.iter().all(|(_, result)| result != "success"));
    // The hints of a trusted server are accepted.
    served.config("", "trust_level = \"trusted\"\n");
    served
        .home
        .zeph(["tools", "call", "mcp_t_where", "{}"])
        .code(0);
    served
        .home
        .zeph(["tools", "call", "mcp_t_echo", "{\"text\":\"a\"}"])
        .code(3);
    assert_eq!(served.calls(), 1);
}

/// Proves MCP-1: a call that rules, modes, the policy, the quota or its arguments forbid does not run.
#[test]
fn refused_call_does_not_run() {
    let check = |more: &str, args: &[&str], params: &str, category: &str| {
        let served = Served::new(&[echo()]);
        served.home.more_config(more);
        let mut all = vec!["--yes"];
        all.extend(args);
        all.extend(["tools", "call", "mcp_t_echo", params]);
        let output = served.home.zeph(all).run();
        assert_ne!(output.code, Some(0), "{more}");
        assert_has(&output.stdout, &[category]);
        assert_eq!(served.calls(), 0, "{more}");
        let entries = audit(&served.home.database());
        assert_eq!(entries.len(), 1, "{more}");
        assert_eq!(entries[0].error_category.as_deref(), Some(category));
    };
    let text = "{\"text\":\"hi\"}";
    let rule = |action: &str| {
        format!("[[tools.permissions.mcp_t_echo]]\npattern = \"*hi*\"\naction = \"{action}\"\n")
    };
    check(&rule("deny"), &[], text, "policy_blocked");
    check("", &["--mode", "plan"], text, "policy_blocked");
    check(
        "[tools.policy]\nenabled = true\n[[tools.policy.rules]]\neffect = \"deny\"\ntools = [\"mcp_*\"]\n",
        &[],
        text,
        "policy_blocked",
    );
    check(
        "[tools]\nmax_tool_calls_per_session = 0\n",
        &[],
        text,
        "policy_blocked",
    );
    check("", &[], "{}", "invalid_parameters");
    check("", &[], "{\"text\":\"a\",\"more\":1}", "invalid_parameters");
    check("", &[], "{\"text\":[1]}", "type_mismatch");
    // A call that a rule allows runs without approval.
    let served = Served::new(&[echo()]);
    served.home.more_config(&rule("allow"));
    served
        .home
        .zeph(["tools", "call", "mcp_t_echo", text])
        .code(0);
    assert_eq!(audit(&served.home.database())[0].approved_by, "policy");
}

/// Proves MCP-1: the user is asked, and `no` refuses.
#[test]
fn user_is_asked_and_can_refuse() {
    let served = Served::new(&[echo()]);
    let server = OpenAi::replies([
        Reply::calls("e", &[("mcp_t_echo", json!({ "text": "hi" }))]),
        Reply::text("Not done."),
    ]);
    served
        .home
        .more_config(&crate::rig::openai_config(&server.url()));
    let mut terminal = Terminal::start(&served.home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("May mcp_t_echo run?");
    terminal.shows("text: hi");
    terminal.shows("the tool can run programs or change data outside of the project");
    terminal.type_keys("n");
    terminal.shows("Not done.");
    terminal.prompts("");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.ends().0.code(), Some(0));
    assert_eq!(served.calls(), 0);
}

/// Proves MCP-1: results of a server are not cached.
#[test]
fn server_tools_are_not_cached() {
    let mut reads = echo();
    reads["annotations"] = json!({ "readOnlyHint": true, "idempotentHint": true });
    let served = Served::new(&[reads]);
    let mut script = served.script();
    for _ in 0..3 {
        assert_eq!(
            says(&mut script, "echo", &json!({ "text": "x" })),
            (None, "said: x".to_owned())
        );
    }
    script.close_stdin();
    script.wait().code(0);
    assert_eq!(served.calls(), 3);
    assert!(
        audit(&served.home.database())
            .iter()
            .all(|entry| !entry.cached)
    );
}

/// Proves MCP-2: secrets are redacted in results for the model, and long results overflow.
#[test]
fn results_are_redacted_and_overflow() {
    let served = Served::new(&[echo(), tool("long")]);
    let secret = format!("ghp_{}", "q7Rk2mVx9LpTz4WcN8sYb3HdJf6GaE1uXo5i");
    let output = served.call("echo", &json!({ "text": secret }));
    assert_eq!(output.code, Some(0));
    assert!(!output.stdout.contains(&secret), "{}", output.stdout);
    assert_has(&output.stdout, &["[redacted:"]);
    let long = served.call("long", &json!({}));
    assert_eq!(long.code, Some(0));
    assert_has(
        &long.stdout,
        &[
            "line 0 of a long text",
            "line 8999 of a long text",
            "overflow",
        ],
    );
    assert!(long.stdout.len() < 60_000, "{}", long.stdout.len());
    assert!(!long.stdout.contains("line 4500 of a long text"));
}

/// Proves MCP-1: a server process has the environment of commands and the variables of its table, and runs
/// in the workspace.
#[test]
fn server_has_a_clean_environment() {
    let served = Served::new(&[tool("where")]);
    served.config("", "env = { OWN_KEY = \"a ${MY_OWN}\" }\n");
    let run = |own: &str| {
        served
            .home
            .zeph(["--yes", "tools", "call", "mcp_t_where", "{}"])
            .env("OPENAI_API_KEY", "sk-not-for-servers-000")
            .env("SOME_TOKEN", "not-for-servers-either")
            .env("PLAIN", "1")
            .env(own, "the-own-value-17")
            .run()
    };
    let output = run("MY_OWN");
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    assert_has(
        &output.stdout,
        &[
            "\"PLAIN\"",
            "\"OWN_KEY\"",
            &served.home.project().display().to_string(),
        ],
    );
    assert!(!output.stdout.contains("OPENAI_API_KEY") && !output.stdout.contains("SOME_TOKEN"));
    // The server received the value, which is redacted in the output.
    assert_has(&output.stdout, &["\"own\": \"a [redacted:"]);
    let output = run("OTHER");
    assert_eq!(output.code, Some(1));
    assert_has(
        &output.stderr,
        &["MCP server t: failed: `env` OWN_KEY: the variable MY_OWN is not set"],
    );
}

/// Proves MCP-1: a server is configured in the user's file only, once, and with valid keys.
#[test]
fn invalid_server_configuration_is_reported() {
    let home = Home::new();
    let check = |text: &str, words: &[&str]| {
        home.config(text);
        let output = home.zeph(["config", "check"]).run();
        assert_ne!(output.code, Some(0), "{text}");
        assert_has(&output.stderr, words);
    };
    let one = "[[mcp.servers]]\nname = \"a\"\ncommand = \"x\"\n";
    check(
        &format!("{one}{one}"),
        &["there are two MCP servers called \"a\""],
    );
    check(
        "[[mcp.servers]]\nname = \"a b\"\ncommand = \"x\"\n",
        &["config.toml:2:", "ASCII letters"],
    );
    check(
        "[[mcp.servers]]\nname = \"a\"\n",
        &["neither a `command` nor a `url`"],
    );
    check(
        "[[mcp.servers]]\nname = \"a\"\nurl = \"file:///x\"\n",
        &["config.toml:3:", "http://"],
    );
    check(&format!("{one}timeout = 3\n"), &["timeout"]);
    home.config("");
    home.write(".zeph/config.toml", one);
    let refused = home.zeph(["tools", "list"]).run();
    assert_ne!(refused.code, Some(0));
    assert_has(&refused.stderr, &["mcp.servers"]);
}
