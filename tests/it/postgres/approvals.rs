//! Permanent approvals of a shared store, through the binary on two machines.

use std::path::PathBuf;

use serde_json::json;

use crate::remembered::{asked, command, commands, leave};
use crate::rig::{Home, Output, Postgres, Terminal, assert_has};

/// A machine of a role, with a model that follows `scenario`.
fn machine(server: &Postgres, role: &str, scenario: &str) -> Home {
    let home = Home::scripted(scenario);
    let url = server.url().replace("zeph@", &format!("{role}@"));
    home.more_config(&format!("[memory]\nurl = {url:?}\nwait_secs = 2\n"));
    home
}

/// `zeph tools call bash` in a directory.
#[track_caller]
fn call(home: &Home, project: PathBuf, text: &str, code: i32) -> Output {
    let params = json!({ "command": text }).to_string();
    home.zeph(["tools", "call", "bash", &params])
        .cwd(project)
        .code(code)
}

/// Answers the open question with "always", in this project.
fn always(terminal: &mut Terminal) {
    terminal.type_keys("3");
    terminal.shows("for all machines that use postgres://");
    terminal.shows("[p] in this project");
    terminal.type_keys("p");
}

/// Proves OPS-1, PERM-7, PERM-7a: an approval on one machine applies on another one in the project of the same path. After it is
/// revoked there, a running session asks again.
#[test]
fn approval_of_one_machine_applies_on_another_until_it_is_revoked() {
    let server = Postgres::start();
    let here = machine(&server, "zeph", &commands(&["touch a", "touch a"]));
    let there = machine(&server, "zeph", "[[steps]]\ntext = \"hi\"\n");
    std::fs::create_dir(here.path(".git")).unwrap();
    let mut terminal = Terminal::start(&here, &[]);
    asked(&mut terminal, "one");
    always(&mut terminal);
    terminal.shows("Done 0.");
    assert!(here.has("a"));
    assert!(
        !here.home().join(".config/zeph/policies.json").exists(),
        "no file is written"
    );
    // The other machine has the project at the same path.
    call(&there, here.project(), "touch a", 0);
    call(&there, here.project(), "touch b", 3);
    call(&there, there.project(), "touch a", 3);
    there
        .zeph(["policy", "explain", "bash", "touch a"])
        .cwd(here.project())
        .code(0)
        .prints(&["approved permanently: bash \"touch a\""]);
    let approved = server.query("SELECT approved_by FROM tool_audit ORDER BY id");
    assert_eq!(approved[..2], ["user", "remembered"]);

    let mut other = Terminal::start(&there, &[]);
    command(&mut other, "/permissions", "1 bash `touch a`  in ");
    other.shows("(not this one)");
    command(&mut other, "/permissions rm 1", "Revoked: bash `touch a`");
    leave(other);
    asked(&mut terminal, "two");
    terminal.type_keys("n");
    terminal.shows("Done 1.");
    leave(terminal);
    call(&there, here.project(), "touch a", 3);
    assert_eq!(server.query("SELECT count(*) FROM approval"), ["0"]);
}

/// Proves OPS-1, OPS-2: approvals of another role do not apply and are not listed, with its access too. Those in the file of the
/// machine do not apply either.
#[test]
fn approvals_of_others_do_not_apply() {
    let server = Postgres::start();
    server.query(
        "CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; GRANT CREATE ON SCHEMA public TO ann",
    );
    let ann = machine(&server, "ann", &commands(&["touch a"]));
    let bob = machine(&server, "bob", "[[steps]]\ntext = \"hi\"\n");
    let mut terminal = Terminal::start(&ann, &[]);
    asked(&mut terminal, "one");
    always(&mut terminal);
    terminal.shows("Done 0.");
    leave(terminal);
    ann.zeph(["memory", "access", "grant", "bob"]).code(0);
    call(&ann, ann.project(), "touch a", 0);
    call(&bob, ann.project(), "touch a", 3);
    let mut other = Terminal::start(&bob, &[]);
    command(&mut other, "/permissions", "There are no rules");
    leave(other);
    std::fs::write(
        bob.home().join(".config/zeph/policies.json"),
        r#"{"version": 1, "rules": [{"tool": "bash", "pattern": "touch a", "scope": "global",
            "added": "2026-01-02T03:04:05Z"}]}"#,
    )
    .unwrap();
    call(&bob, ann.project(), "touch a", 3);
}

/// Proves OPS-1, OPS-3: an approval that the server cannot store applies to its call only, and the user sees why.
#[test]
fn approval_without_its_server_is_not_stored() {
    let mut server = Postgres::start();
    let home = machine(&server, "zeph", &commands(&["touch a"]));
    let mut terminal = Terminal::start(&home, &[]);
    asked(&mut terminal, "one");
    server.kill();
    always(&mut terminal);
    terminal.shows("the approval applies only to this call");
    drop(terminal);
    server.resume();
    assert_eq!(server.query("SELECT count(*) FROM approval"), ["0"]);
    let refused = call(&home, home.project(), "touch a", 3);
    assert_has(&refused.stderr, &["confirm"]);
}
