//! A failure has two texts: what the model reads, and what a person does.

use serde_json::json;

use crate::rig::Home;

/// Proves ERR-4, ERR-3: the block is the model's; the person's words go to the log, when it is asked for.
#[test]
fn the_log_holds_what_a_person_needs() {
    let home = Home::new();
    let params = json!({ "path": "nope.txt" }).to_string();
    let call = ["tools", "call", "read", &params];
    let output = home.zeph(call).arg("--verbose").code(1);
    let block = "[tool_error]\ncategory: permanent_failure\nerror: ";
    assert!(output.stdout.starts_with(block), "{output}");
    let logged = output
        .stderr
        .lines()
        .find(|line| line.contains("a call failed: "));
    let logged = logged.unwrap_or_else(|| panic!("{output}"));
    for part in ["nope.txt", "permanent_failure", "read"] {
        assert!(logged.contains(part), "{part} is not in {logged}");
    }
    assert!(!output.stderr.contains("[tool_error]"), "{output}");
    let output = home.zeph(call).code(1);
    assert!(!output.stderr.contains("a call failed"), "{output}");
}
