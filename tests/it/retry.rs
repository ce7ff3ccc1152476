//! Retries of failed calls, which are limited and visible.

use serde_json::json;

use crate::rig::{Home, assert_has, audit};
use crate::tools_call::call;

/// A name that resolvers do not query (RFC 6761, 6.4).
const NOWHERE: &str = "https://nothing.invalid/";

/// Proves ERR-20: through the binary, as seen by the user, the model and the trail.
#[test]
fn network_failure_is_retried_and_reported() {
    let home = Home::new();
    home.config("[tools.retry]\nbase_ms = 1\n");
    let params = json!({ "url": NOWHERE }).to_string();
    let output = home
        .zeph(["tools", "call", "fetch", &params, "--yes"])
        .code(1);
    assert_has(
        &output.stderr,
        &[
            "retrying fetch in 0.0 s (attempt 2 of 3): ",
            "(attempt 3 of 3)",
        ],
    );
    assert_has(
        &output.stdout,
        &[
            "category: network_error",
            "(tried 3 times)",
            "retryable: true",
        ],
    );
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].attempts, 3, "{entries:?}");
    assert_eq!(entries[0].error_category.as_deref(), Some("network_error"));
}

/// Proves ERR-20: the number of retries is configurable, including 0.
#[test]
fn retry_limits_are_configurable() {
    let home = Home::new();
    let check = |config: &str, attempts: i64, said: &[&str]| {
        home.config(&format!("[tools.retry]\nbase_ms = 1\n{config}\n"));
        let form = call(&home, "fetch", &json!({ "url": NOWHERE }));
        assert_eq!(form["error_category"], "network_error", "{form:#}");
        assert_has(form["error_message"].as_str().unwrap(), said);
        let entry = audit(&home.database()).pop().unwrap();
        assert_eq!(entry.attempts, attempts, "{config}");
        form["error_message"].as_str().unwrap().contains("tried")
    };
    assert!(!check("max_attempts = 0", 1, &[]));
    assert!(check("max_attempts = 1", 2, &["tried 2 times"]));
    assert!(check("max_attempts = 4", 5, &["tried 5 times"]));
    assert!(!check(
        "budget_secs = 0",
        1,
        &["`[tools.retry] budget_secs`"]
    ));
}

/// Proves ERR-20, ERR-22: commands, changes and permanent failures are not retried.
#[test]
fn changes_and_permanent_failures_are_not_retried() {
    let home = Home::new();
    home.config("[tools.retry]\nbase_ms = 1\n");
    let late = json!({ "command": "echo x >> runs; sleep 5", "timeout_secs": 1 });
    let form = call(&home, "bash", &late);
    assert_eq!(form["error_category"], "timeout", "{form:#}");
    assert_eq!(home.read("runs"), "x\n");
    call(&home, "read", &json!({ "path": "nowhere" }));
    call(&home, "nothing", &json!({}));
    let attempts: Vec<_> = audit(&home.database())
        .iter()
        .map(|entry| entry.attempts)
        .collect();
    assert_eq!(attempts, [1, 1, 0]);
}

/// Proves D-11, ERR-20: the quota counts a call once, regardless of its retries.
#[test]
fn retries_are_not_counted_by_the_quota() {
    let home = Home::new();
    home.config("[tools]\nmax_tool_calls_per_session = 2\n[tools.retry]\nbase_ms = 1\n");
    let params = json!({ "url": NOWHERE }).to_string();
    let fetch = || {
        let args = ["tools", "call", "fetch", &params, "--session", "s1"];
        home.zeph(args).args(["--yes", "--json"]).run().json()
    };
    assert_eq!(fetch()["error_category"], "network_error");
    assert_eq!(fetch()["error_category"], "network_error");
    let blocked = fetch();
    assert_has(
        blocked["error_message"].as_str().unwrap(),
        &["quota_blocked: 2 of 2"],
    );
    let attempts: Vec<_> = audit(&home.database()).iter().map(|e| e.attempts).collect();
    assert_eq!(attempts, [3, 3, 0]);
}
