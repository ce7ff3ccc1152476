//! Calls that need the decision of the user.

use serde_json::{Value, json};

use crate::rig::{Home, McpClient, assert_has, audit, text_of};

const TOUCH: &str = "touch ran";

fn touch() -> Value {
    json!({ "command": TOUCH })
}

fn accept(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

fn asking(home: &Home) -> McpClient {
    let mut client = McpClient::start(home, &[]);
    client.initialize("2025-11-25", &json!({ "elicitation": {} }));
    client
}

/// Proves MCP-10, PERM-2: without a user to ask, the result states the flag and the rule that would allow the call.
#[test]
fn client_without_elicitation_gets_the_rule_that_allows_the_call() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &[]);
    let result = client.call("bash", touch());
    client.end().code(0);
    assert_eq!(result["isError"], true);
    assert_has(
        text_of(&result),
        &["category: confirmation_required", "--yes"],
    );
    let hint = result["content"][1]["text"].as_str().unwrap();
    assert_has(
        hint,
        &["[[tools.permissions.bash]]\n", "pattern = 'touch ran'\n"],
    );
    assert!(!home.has("ran"));

    // The rule has the effect that the hint states.
    let rule = &hint[hint.find("[[").unwrap()..];
    home.config(rule);
    let mut client = McpClient::ready(&home, &[]);
    assert_eq!(client.call("bash", touch())["isError"], false);
    client.end().code(0);
    assert!(home.has("ran"));
}

/// Proves MCP-10: `--yes` approves each question once, and no rule that denies is skipped.
#[test]
fn yes_approves_questions_and_no_denial() {
    let home = Home::new();
    home.config(
        "[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\n\
         rules = [{ effect = \"deny\", tools = [\"write\"] }]\n\
         [[tools.permissions.bash]]\npattern = \"rm *\"\naction = \"deny\"\n",
    );
    let mut client = McpClient::ready(&home, &["--yes"]);
    assert_eq!(client.call("bash", touch())["isError"], false);
    assert!(home.has("ran"));
    let denied = [
        ("bash", json!({ "command": "rm ran" })),
        ("bash", json!({ "command": "sudo true" })),
        ("write", json!({ "path": "ran", "content": "x" })),
    ];
    for (tool, arguments) in denied {
        let result = client.call(tool, arguments);
        assert_has(text_of(&result), &["category: policy_blocked"]);
    }
    client.end().code(0);
    assert_eq!(home.read("ran"), "");
    let approved = audit(&home.database());
    let approved: Vec<&str> = approved
        .iter()
        .map(|entry| entry.approved_by.as_str())
        .collect();
    assert_eq!(approved[0], "user");
}

/// Proves MCP-10: the question states the call, its reason and the scope of each decision.
#[test]
fn question_is_sent_to_a_client_that_supports_it() {
    let home = Home::new();
    let mut client = asking(&home);
    let call = client.send_call("bash", touch());
    let question = client.until("elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert_has(
        message,
        &[
            "May bash run?",
            "$ touch ran",
            "why: ",
            "\"session\" allows",
        ],
    );
    let schema = &question["params"]["requestedSchema"];
    let offered = &schema["properties"]["decision"]["enum"];
    assert_eq!(*offered, json!(["once", "session", "reject"]));
    assert!(!home.has("ran"), "nothing runs before the decision");
    client.respond(&question["id"], accept("once"));
    assert_eq!(client.response(call)["result"]["isError"], false);
    assert!(home.has("ran"));
    client.end().code(0);
}

/// Proves MCP-10, PERM-7: an approval for the session is remembered, one for the call is not.
#[test]
fn approval_for_the_session_is_remembered() {
    let home = Home::new();
    let mut client = asking(&home);
    for decision in ["once", "session"] {
        let call = client.send_call("bash", touch());
        let question = client.until("elicitation/create");
        client.respond(&question["id"], accept(decision));
        assert_eq!(client.response(call)["result"]["isError"], false);
    }
    assert_eq!(client.call("bash", touch())["isError"], false);
    assert!(client.received.is_empty(), "{:?}", client.received);
    client.end().code(0);
    let by: Vec<String> = audit(&home.database())
        .into_iter()
        .map(|entry| entry.approved_by)
        .collect();
    assert_eq!(by, ["user", "user", "remembered"]);

    // Another connection is asked again.
    let mut client = asking(&home);
    client.send_call("bash", touch());
    client.until("elicitation/create");
    client.end().code(0);
}

/// Proves MCP-10: everything except an accepted form with an offered decision is a rejection.
#[test]
fn response_that_is_not_an_approval_rejects_the_call() {
    let home = Home::new();
    let mut client = asking(&home);
    let responses = [
        accept("reject"),
        accept("always"),
        accept("ONCE"),
        json!({ "action": "accept" }),
        json!({ "action": "decline", "content": { "decision": "once" } }),
        json!({ "action": "cancel" }),
        json!({ "action": "maybe", "content": { "decision": "once" } }),
        json!({}),
        json!({ "decision": "once" }),
    ];
    for response in responses {
        let call = client.send_call("bash", touch());
        let question = client.until("elicitation/create");
        client.respond(&question["id"], response.clone());
        let result = client.response(call)["result"].clone();
        assert_eq!(result["isError"], true, "{response}: {result}");
        assert_has(
            text_of(&result),
            &["policy_blocked", "the user declined this call"],
        );
    }
    let call = client.send_call("bash", touch());
    let question = client.until("elicitation/create");
    let error = json!({ "code": -32000, "message": "no" });
    client.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
    assert_eq!(client.response(call)["result"]["isError"], true);
    client.end().code(0);
    assert!(!home.has("ran"));
}

/// Proves MCP-10: the input may end and the call may be cancelled while a question is open.
#[test]
fn open_question_approves_nothing_when_the_call_ends() {
    let home = Home::new();
    let mut client = asking(&home);
    let call = client.send_call("bash", touch());
    client.until("elicitation/create");
    client.notify("notifications/cancelled", json!({ "requestId": call }));
    let read = client.call("list_tasks", json!({}));
    assert_eq!(read["isError"], false);
    client.send_call("bash", touch());
    client.until("elicitation/create");
    client.end().code(0);
    assert!(!home.has("ran"));
}

/// Makes a call of revision 2026-07-28. The result is complete or asks a question.
fn call(client: &mut McpClient, arguments: &Value, answer: Option<(&Value, Value)>) -> Value {
    let mut params = json!({ "name": "bash", "arguments": arguments });
    if let Some((state, response)) = answer {
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({ "confirm": response });
    }
    client.result("tools/call", params)
}

/// Proves MCP-10: in revision 2026-07-28, the question is the result of the call, and the repeated call has the decision.
#[test]
fn question_is_the_result_in_the_revision_without_server_requests() {
    let home = Home::new();
    let mut client = McpClient::start(&home, &[]);
    client.stateless(&json!({ "elicitation": { "form": {} } }));
    let asked = call(&mut client, &touch(), None);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let request = &asked["inputRequests"]["confirm"];
    assert_eq!(request["method"], "elicitation/create");
    assert_has(
        request["params"]["message"].as_str().unwrap(),
        &["$ touch ran"],
    );
    assert!(!home.has("ran"));
    let state = &asked["requestState"];

    let declined = call(
        &mut client,
        &touch(),
        Some((state, json!({ "action": "decline" }))),
    );
    assert_eq!(declined["isError"], true, "{declined}");
    let again = call(&mut client, &touch(), Some((state, accept("once"))));
    assert_eq!(
        again["resultType"], "input_required",
        "a state is valid once"
    );
    assert!(!home.has("ran"));

    let done = call(
        &mut client,
        &touch(),
        Some((&again["requestState"], accept("once"))),
    );
    assert_eq!(done["isError"], false, "{done}");
    assert!(home.has("ran"));
    client.end().code(0);
    let entries = audit(&home.database());
    let results: Vec<&str> = entries.iter().map(|entry| entry.result.as_str()).collect();
    assert_eq!(results.last(), Some(&"success"));
    assert_eq!(
        entries
            .iter()
            .filter(|entry| entry.result == "success")
            .count(),
        1
    );
}

/// Proves MCP-10: a decision applies to the call that was shown, and to no other.
#[test]
fn decision_about_one_call_does_not_approve_another() {
    let home = Home::new();
    let mut client = McpClient::start(&home, &[]);
    client.stateless(&json!({ "elicitation": { "form": {} } }));
    let asked = call(&mut client, &json!({ "command": "touch harmless" }), None);
    let answer = Some((&asked["requestState"], accept("session")));
    let result = call(&mut client, &touch(), answer);
    assert_eq!(result["isError"], true, "{result}");
    let forged = json!("00000000000000000000000000000000");
    let result = call(&mut client, &touch(), Some((&forged, accept("once"))));
    assert_eq!(result["resultType"], "input_required", "{result}");
    client.end().code(0);
    assert!(!home.has("ran") && !home.has("harmless"));
}
