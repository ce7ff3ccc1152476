//! The revisions of the protocol: the probe, the handshake, and unknown revisions.

use serde_json::{Value, json};

use super::{Served, echo, says, tool};
use crate::rig::assert_has;

fn listed(served: &Served) -> Value {
    served.home.zeph(["mcp", "list", "--json"]).code(0).json()[0].clone()
}

/// Proves MCP-1: revision 2026-07-28 works without a handshake, and each request names the revision.
#[test]
fn new_revision_works_without_a_handshake() {
    let served = Served::in_mode(&[echo(), tool("ask")], "new", "");
    served.approve();
    assert_eq!(listed(&served)["revision"], "2026-07-28");
    let output = served.call("echo", &json!({ "text": "hi" }));
    assert_eq!(output.stdout, "said: hi\n");
    let log = served.log();
    assert!(log.iter().all(|line| line != "initialize"), "{log:?}");
    let call = log.iter().find(|line| line.starts_with("tools/call"));
    assert_has(
        call.unwrap(),
        &["\"io.modelcontextprotocol/protocolVersion\": \"2026-07-28\""],
    );
}

/// Proves MCP-1: a server that does not know the probe gets the handshake, with the revision that it chooses.
#[test]
fn earlier_revisions_get_the_handshake() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let served = Served::in_mode(
            &[echo()],
            "",
            &format!("env = {{ REVISION = {revision:?} }}\n"),
        );
        served.approve();
        assert_eq!(listed(&served)["revision"], revision);
        let output = served.call("echo", &json!({ "text": "hi" }));
        assert_eq!(output.stdout, "said: hi\n", "{revision}");
        let log = served.log();
        let at = |method: &str| log.iter().position(|line| line == method).unwrap();
        assert!(at("server/discover") < at("initialize"), "{log:?}");
    }
    // A server that reports earlier revisions only, and one that ends at the unknown request.
    for (mode, more) in [
        (
            "discovers",
            "env = { REVISION = \"2025-11-25 2025-06-18\" }\n",
        ),
        ("fragile", ""),
    ] {
        let served = Served::in_mode(&[echo()], mode, more);
        served.approve();
        assert_eq!(listed(&served)["revision"], "2025-11-25", "{mode}");
    }
}

/// Proves MCP-1: an unknown revision is refused with a reason, and the server is not started again.
#[test]
fn unknown_revision_is_refused() {
    for (mode, begin) in [("", "initialize"), ("discovers", "server/discover")] {
        let more = "env = { REVISION = \"1999-01-01\" }\n";
        let served = Served::in_mode(&[echo()], mode, more);
        let output = served.home.zeph(["mcp", "test", "t"]).code(1);
        assert_has(
            &output.stdout.replace("\n      ", " "),
            &[
                "t: failed: it uses the protocol revision 1999-01-01, and Zeph uses 2024-11-05,",
                "2026-07-28; update the server or Zeph",
            ],
        );
        let log = served.log();
        assert_eq!(
            log.iter().filter(|line| *line == begin).count(),
            1,
            "{log:?}"
        );
        assert!(!log.iter().any(|line| line == "tools/list"), "{log:?}");
    }
}

/// Proves MCP-1: with the new revision, changes of the list arrive by a subscription.
#[test]
fn subscription_reports_a_changed_list() {
    let served = Served::in_mode(&[echo(), tool("change"), tool("new")], "new", "");
    served.approve();
    served.tools(&[echo(), tool("change")]);
    let next = json!([echo(), tool("change"), tool("new")]).to_string();
    std::fs::write(served.file("next.json"), next).unwrap();
    let mut script = served.script();
    assert_eq!(says(&mut script, "echo", &json!({ "text": "a" })).0, None);
    served.wait_for("subscriptions/listen", 1);
    assert_eq!(says(&mut script, "change", &json!({})).0, None);
    served.wait_for("tools/list", 2);
    script.close_stdin();
    script.wait().code(0);
}

/// Proves MCP-1: a long name gets a short form that is the same each time.
#[test]
fn long_name_gets_a_stable_short_form() {
    let long = format!("{}_one", "x".repeat(90));
    let other = format!("{}_two", "x".repeat(90));
    let served = Served::new(&[tool(&long), tool(&other)]);
    let ids = |form: &Value| -> Vec<String> {
        let tools = form["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = ids(&listed(&served));
    assert_eq!(first.len(), 2);
    assert_ne!(first[0], first[1]);
    assert!(
        first
            .iter()
            .all(|id| id.len() == 64 && id.starts_with("mcp_t_xxx")),
        "{first:?}"
    );
    assert_eq!(ids(&listed(&served)), first);
    // The server gets its own name of the tool.
    served
        .home
        .zeph(["--yes", "tools", "call", &first[0], "{}"])
        .run();
    assert_has(
        &served.log().join("\n"),
        &[&format!("\"name\": \"{long}\"")],
    );
}
