//! Calls while they run: order, progress, cancellation, and the end of the server.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::rig::{Home, McpClient, audit, text_of};

/// A command that runs for a minute. It prints a line first.
const LONG: &str = "echo started; sleep 60";

/// Starts the long command, and waits for its output.
fn start_long(client: &mut McpClient) -> i64 {
    let params = json!({
        "name": "bash",
        "arguments": { "command": LONG },
        "_meta": { "progressToken": "long" },
    });
    let id = client.send("tools/call", params);
    let progress = client.until("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "long");
    let message = progress["params"]["message"].as_str().unwrap();
    assert!(message.contains("started"), "{progress}");
    id
}

/// Proves MCP-10: output of a running command arrives as progress that increases, and only if the client wants it.
#[test]
fn output_of_a_command_is_progress() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &["--yes"]);
    let command = "for i in 1 2 3; do echo \"step $i\"; sleep 0.3; done";
    let params = json!({ "name": "bash", "arguments": { "command": command }, "_meta": { "progressToken": 7 } });
    client.result("tools/call", params);
    let seen = std::mem::take(&mut client.received);
    let steps: Vec<f64> = seen
        .iter()
        .map(|it| it["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(
        !steps.is_empty() && steps.is_sorted_by(|a, b| a < b),
        "{seen:?}"
    );
    assert!(
        seen.iter().all(
            |it| it["method"] == "notifications/progress" && it["params"]["progressToken"] == 7
        )
    );
    client.call("bash", json!({ "command": "echo quiet; sleep 0.3" }));
    assert!(client.received.is_empty(), "{:?}", client.received);
    client.end().code(0);
}

/// Proves MCP-10, EXE-13: cancellation ends the command, in both generations.
#[test]
fn cancelled_call_ends_its_command() {
    for is_stateless in [false, true] {
        let home = Home::new();
        let mut client = McpClient::start(&home, &["--yes"]);
        match is_stateless {
            true => client.stateless(&json!({})),
            false => drop(client.initialize("2025-06-18", &json!({}))),
        }
        let id = start_long(&mut client);
        client.notify(
            "notifications/cancelled",
            json!({ "requestId": id, "reason": "test" }),
        );
        // A command runs alone, so the long one has ended.
        let start = Instant::now();
        let result = client.call("bash", json!({ "command": "echo next" }));
        assert!(text_of(&result).contains("next"), "{result}");
        assert!(start.elapsed() < Duration::from_secs(20));
        client.end().code(0);
        home.wait_until_alone();
        let entries = audit(&home.database());
        assert_eq!(
            entries[0].error_category.as_deref(),
            Some("cancelled"),
            "{entries:?}"
        );
    }
}

/// Proves MCP-10, EXE-12: calls that change something run in order of arrival. Calls that only read need not wait for responses.
#[test]
fn changes_run_in_order_of_arrival() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    let mut client = McpClient::ready(&home, &["--yes"]);
    let mut ids = Vec::new();
    for n in 0..6 {
        let wait = if n == 0 { "sleep 0.3; " } else { "" };
        let command = format!("{wait}echo {n} >> log");
        ids.push(client.send_call("bash", json!({ "command": command })));
        ids.push(client.send_call("read", json!({ "path": "a.txt" })));
    }
    for id in ids {
        assert_eq!(client.response(id)["result"]["isError"], false);
    }
    client.end().code(0);
    assert_eq!(home.read("log"), "0\n1\n2\n3\n4\n5\n");
}

/// Proves MCP-10: the end of input ends a running command and the server.
#[test]
fn end_of_input_ends_everything() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &["--yes"]);
    start_long(&mut client);
    client.send_call("bash", json!({ "command": "touch ran" }));
    let start = Instant::now();
    client.end().code(0);
    assert!(start.elapsed() < Duration::from_secs(20));
    home.wait_until_alone();
    assert!(!home.has("ran"), "no call starts after the end");
    let entries = audit(&home.database());
    assert_eq!(
        entries[0].error_category.as_deref(),
        Some("cancelled"),
        "{entries:?}"
    );
}

/// Proves MCP-10: quick calls at the end of input still get their results.
#[test]
fn input_from_a_file_gets_its_results() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "read", "arguments": { "path": "a.txt" } } }),
    ];
    let input = lines.map(|line| format!("{line}\n")).concat();
    let output = home.zeph(["mcp", "serve"]).stdin(input).code(0);
    let responses = output.json_lines();
    assert_eq!(responses.len(), 2, "{output}");
    assert!(text_of(&responses[1]["result"]).contains("hello"));
    home.zeph(["mcp", "serve"]).stdin("").code(0);
}

/// Proves MCP-10: SIGTERM ends a running command and the server while the input is open.
#[test]
fn signal_ends_everything() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &["--yes"]);
    start_long(&mut client);
    client.process().signal(Signal::TERM);
    client.wait().code(0);
    home.wait_until_alone();
    let entries = audit(&home.database());
    assert_eq!(
        entries[0].error_category.as_deref(),
        Some("cancelled"),
        "{entries:?}"
    );
}

/// Proves MCP-10: the server needs no provider and no key, starts fast, and stays small.
#[test]
fn server_is_small_without_a_provider() {
    let home = Home::new();
    let start = Instant::now();
    let mut client = McpClient::ready(&home, &[]);
    let took = start.elapsed();
    client.result("tools/list", json!({}));
    let status = client.process().status();
    // The pages of the program itself depend on the build.
    let rss = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let rss: u64 = rss.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
    client.end().code(0);
    // An unoptimized build on a busy machine needs seconds.
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(rss < 30_000, "{rss} kB");
}
