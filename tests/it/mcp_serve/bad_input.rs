//! Input that is not valid: it gets an error or is ignored, and the server continues.

use serde_json::{Value, json};

use crate::rig::{Home, McpClient, assert_has, audit, error_of, text_of};

/// Whether the server still serves calls.
#[track_caller]
fn is_alive(client: &mut McpClient) {
    let result = client.call("list_tasks", json!({}));
    assert_eq!(result["isError"], false, "{result}");
}

/// Proves MCP-10: text that is not a message gets an error, and the next message is served.
#[test]
fn line_that_is_not_a_message_gets_an_error() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &[]);
    let deep = "[".repeat(200_000);
    let table = [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,", -32700),
        (&deep, -32700),
        ("[]", -32600),
        ("{}", -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
        ),
        ("{\"id\":1,\"method\":\"ping\"}", -32600),
    ];
    for (line, expected) in table {
        client.say_raw(line);
        let (code, message) = error_of(&client.next());
        assert_eq!(code, expected, "{message}");
    }
    for ignored in [
        "",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"error\":{\"code\":1,\"message\":\"x\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}",
    ] {
        client.say_raw(ignored);
    }
    is_alive(&mut client);
    client.end().code(0);
}

/// Proves MCP-10: bytes that are not UTF-8 and a line of 64 MiB end nothing.
#[test]
fn huge_line_and_invalid_bytes_end_nothing() {
    let home = Home::new();
    let line = |value: Value| format!("{value}\n").into_bytes();
    let input = [
        line(
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }),
        ),
        b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"\xff\xfe\"}\n".to_vec(),
        vec![b'x'; 64 * 1024 * 1024],
        b"\n".to_vec(),
        line(json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })),
    ];
    let output = home.zeph(["mcp", "serve"]).stdin(input.concat()).code(0);
    let responses = output.json_lines();
    let codes: Vec<Option<i64>> = responses
        .iter()
        .map(|it| it["error"]["code"].as_i64())
        .collect();
    assert_eq!(
        codes.iter().flatten().collect::<Vec<_>>(),
        [&-32700, &-32600]
    );
    assert!(
        responses
            .iter()
            .any(|it| it["id"] == 3 && it["result"] == json!({}))
    );
}

/// Proves MCP-10: unknown methods and invalid parameters have their codes.
#[test]
fn unknown_method_and_invalid_parameters_have_their_codes() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &["--yes"]);
    let table = [
        ("no/method", json!({}), -32601),
        ("prompts/list", json!({}), -32601),
        ("resources/list", json!({}), -32601),
        ("sampling/createMessage", json!({}), -32601),
        ("logging/setLevel", json!({ "level": "info" }), -32601),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": 1 }), -32602),
        (
            "tools/call",
            json!({ "name": "bash", "arguments": "touch ran" }),
            -32602,
        ),
        (
            "tools/call",
            json!({ "name": "bash", "arguments": ["touch ran"] }),
            -32602,
        ),
    ];
    for (method, params, expected) in table {
        let (code, message) = client.error(method, params);
        assert_eq!(code, expected, "{method}: {message}");
    }
    is_alive(&mut client);
    client.end().code(0);
    assert!(!home.has("ran"));
}

/// Proves MCP-10: the id of a running request cannot be used again until its response.
#[test]
fn repeated_id_of_a_running_request_is_refused() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &["--yes"]);
    let first = json!({ "jsonrpc": "2.0", "id": 500, "method": "tools/call", "params": {
        "name": "bash", "arguments": { "command": "sleep 0.5; echo first" } } });
    let second = json!({ "jsonrpc": "2.0", "id": 500, "method": "tools/call", "params": {
        "name": "bash", "arguments": { "command": "touch ran" } } });
    client.say(&first);
    client.say(&second);
    let (code, message) = error_of(&client.next());
    assert_eq!(code, -32600);
    assert_has(&message, &["500", "running request"]);
    let response = client.next();
    assert_eq!(response["id"], 500);
    assert!(text_of(&response["result"]).contains("first"));
    assert!(!home.has("ran"));
    client.say(&second);
    assert_eq!(client.next()["id"], 500);
    assert!(home.has("ran"));
    client.end().code(0);
}

/// Proves MCP-10: a flood of calls is refused beyond a limit. Each request gets exactly one response.
#[test]
fn flood_of_calls_is_limited() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &["--yes"]);
    let slow = client.send_call("bash", json!({ "command": "sleep 1" }));
    let ids: Vec<i64> = (0..400)
        .map(|_| client.send_call("list_tasks", json!({})))
        .collect();
    assert_eq!(client.response(slow)["result"]["isError"], false);
    let responses: Vec<Value> = ids.into_iter().map(|id| client.response(id)).collect();
    let refused = responses
        .iter()
        .filter(|it| it.get("error").is_some())
        .count();
    assert!(refused > 0 && refused < 400, "{refused}");
    is_alive(&mut client);
    client.end().code(0);
    let served = audit(&home.database()).len();
    assert_eq!(served, 402 - refused);
}

/// Proves MCP-10: a client that stops to read ends the server.
#[test]
fn client_that_closes_its_end_ends_the_server() {
    let home = Home::new();
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let running = home
        .zeph(["mcp", "serve"])
        .open_stdin(format!("{line}\n"))
        .closed_stdout()
        .start();
    running.wait().code(0);
    home.wait_until_alone();
}
