//! Claim sources: the origin of the data that a call read, as the audit trail records it.

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, audit};
use crate::tools_call::call;

/// Proves SH-50: the audit entry records the paths that a command names, regardless of its outcome.
#[test]
fn audit_entry_has_the_paths_of_a_command() {
    let home = Home::new();
    home.write("docs/a.txt", "one");
    for (command, result, expect) in [
        (
            "cat ./docs/a.txt 'docs/b c.txt'",
            "error",
            Some("shell:./docs/a.txt,docs/b c.txt"),
        ),
        ("cat docs/a.txt", "success", Some("shell:docs/a.txt")),
        ("rm -rf / --no-preserve-root", "blocked", Some("shell:/")),
        ("echo https://example.org/x", "success", None),
    ] {
        call(&home, "bash", &json!({ "command": command }));
        let entry = audit(&home.database()).pop().unwrap();
        let found = (entry.result.as_str(), entry.claim_source.as_deref());
        assert_eq!(found, (result, expect), "{command}");
    }
    call(&home, "read", &json!({ "path": "docs/a.txt" }));
    assert_eq!(audit(&home.database()).pop().unwrap().claim_source, None);
}

/// Proves SH-50: in a conversation; a call that a gate refused has no source.
#[test]
fn claim_source_is_recorded_in_a_conversation() {
    let server = OpenAi::start(|n, _| match n % 2 {
        0 => Reply::calls("a", &[("bash", json!({ "command": "cat ~/x ./y" }))]),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    let source = || audit(&home.database()).pop().unwrap().claim_source;
    home.zeph(["-p", "go", "--yes"]).code(0);
    assert_eq!(source().as_deref(), Some("shell:~/x,./y"));
    home.zeph(["-p", "go", "--mode", "plan"]).code(0);
    assert_eq!(source(), None);
}
