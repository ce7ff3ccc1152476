//! Tools that run only as a task: the call is sent again as a task, and its result is awaited.

use serde_json::json;

use super::{Served, tool};
use crate::rig::assert_has;

/// Proves MCP-2: a tool that refuses an ordinary call is called as a task; the caller gets the result of the task.
#[test]
fn tool_that_needs_a_task_is_called_as_one() {
    // The refusal is an error of the protocol, or a failed result.
    for as_result in [false, true] {
        let served = Served::new(&[tool("research")]);
        let params = json!({ "found": "gold", "as_result": as_result });
        let called = served.call("research", &params).code(0);
        assert_has(&called.stdout, &["found: gold"]);
        let log = served.log();
        let calls: Vec<bool> = log
            .iter()
            .filter(|line| line.starts_with("tools/call"))
            .map(|line| line.contains("\"task\": {}"))
            .collect();
        assert_eq!(calls, [false, true], "{log:?}");
        let results = log.iter().filter(|line| *line == "tasks/result");
        assert_eq!(results.count(), 1, "{log:?}");
    }
}

/// Proves MCP-2: a task that does not end within the time limit of the call is cancelled.
#[test]
fn task_over_the_time_limit_is_cancelled() {
    let served = Served::new(&[tool("research")]);
    served.config("", "call_timeout_secs = 1\n");
    let mut script = served.script();
    let (category, _) = super::says(&mut script, "research", &json!({}));
    assert_eq!(category.as_deref(), Some("network_error"));
    served.wait_for("tasks/cancel", 1);
    script.close_stdin();
    script.wait().code(0);
}

/// Proves MCP-2: an unknown tool of a server remains one, with the first message of the server.
#[test]
fn refused_task_reports_the_first_failure() {
    let served = Served::new(&[tool("refuse")]);
    let called = served.call("refuse", &json!({ "code": -32601 }));
    assert_has(&called.stdout, &["category: tool_not_found", "not so"]);
    assert_eq!(served.calls(), 2);
}
