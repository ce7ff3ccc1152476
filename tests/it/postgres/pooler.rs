//! A store behind a connection pooler in transaction mode: processes share connections, and keep their roles and leases.

use serde_json::json;

use super::shared::{busy_at_first, counting};
use crate::rig::{
    Home, OpenAi, Pooler, Postgres, Reply, assert_has, openai_config, results_of, wait_for,
};

/// A machine of a role behind the pooler.
fn machine(model: &OpenAi, pooler: &Pooler, role: &str) -> Home {
    let home = Home::new();
    let url = pooler.url(role);
    home.config(&format!(
        "{}[memory]\nurl = {url:?}\n",
        openai_config(&model.url())
    ));
    home
}

/// Proves OPS-1, OPS-2: four processes share one connection, and each conversation, chain and host is complete.
#[test]
fn processes_share_a_connection() {
    let server = Postgres::start();
    let pooler = Pooler::start(&server, &["zeph"], 1);
    let model = OpenAi::start(|_, request| {
        let made = results_of(&request.messages()).len();
        match made {
            0..5 => Reply::calls(
                &made.to_string(),
                &[("bash", json!({ "command": format!("echo {made}") }))],
            ),
            _ => Reply::text("ended"),
        }
    });
    let homes: Vec<Home> = (0..4).map(|_| machine(&model, &pooler, "zeph")).collect();
    let running: Vec<_> = homes
        .iter()
        .map(|home| home.zeph(["--yes", "-p", "go"]).start())
        .collect();
    for process in running {
        process.wait().code(0).prints(&["ended"]);
    }
    assert_eq!(
        server.query("SELECT count(*) FROM message GROUP BY session"),
        ["12"; 4]
    );
    assert_eq!(
        server.query("SELECT count(*) FROM tool_audit GROUP BY writer"),
        ["5"; 4]
    );
    assert_eq!(
        server.query("SELECT count(*) FROM message WHERE host = ''"),
        ["0"]
    );
    let verified = homes[0].zeph(["audit", "verify"]).code(0).stdout;
    assert_eq!(
        verified.matches("intact: 5 entries").count(),
        4,
        "{verified}"
    );
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'zeph/%'";
    assert_eq!(server.query(connections), ["1"]);
}

/// Proves OPS-2: a connection keeps the role of its user, so each sees only their own rows.
#[test]
fn users_keep_their_roles_behind_a_pooler() {
    let server = Postgres::start();
    server.query(
        "CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; GRANT CREATE ON SCHEMA public TO ann",
    );
    let pooler = Pooler::start(&server, &["ann", "bob"], 1);
    let model = counting();
    let (ann, bob) = (
        machine(&model, &pooler, "ann"),
        machine(&model, &pooler, "bob"),
    );
    ann.zeph(["-p", "one"]).code(0);
    let listed = |home: &Home| home.zeph(["sessions", "list", "--all"]).code(0).stdout;
    assert_has(&listed(&bob), &["no sessions"]);
    ann.zeph(["memory", "access", "grant", "bob"]).code(0);
    let id = server.query("SELECT id FROM session").remove(0);
    assert_has(&listed(&bob), &[&id[..8]]);
    bob.zeph(["--resume", &id, "-p", "mine"]).code(1);
    let facts = "SELECT DISTINCT owner FROM message";
    assert_eq!(server.query(facts), ["ann"]);
}

/// Proves OPS-2: the lease of a process holds behind a pooler, and passes on when the process dies.
#[test]
fn lease_holds_behind_a_pooler() {
    let server = Postgres::start();
    let pooler = Pooler::start(&server, &["zeph"], 1);
    let model = busy_at_first();
    let home = machine(&model, &pooler, "zeph");
    let running = home.zeph(["--yes", "-p", "one"]).start();
    wait_for("the command", || home.has("started").then_some(()));
    let id = server.query("SELECT id FROM session").remove(0);
    home.zeph(["--resume", &id, "-p", "two"])
        .code(1)
        .says(&["is in use by process"]);
    running.kill();
    home.zeph(["--resume", &id, "-p", "three"])
        .code(0)
        .prints(&["response"]);
}
