//! Stores on a server that several machines and users share. `cargo xtask postgres` starts the server.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use zeph_memory::{
    NewScheduled, Server, SqliteAudit, Store, StoreError, Synchronous, verify_database,
    verify_other_chains,
};
use zeph_tools::AuditSink as _;

use crate::audit::entry;
use crate::backend::{database, execute, number};
use crate::{message, place};

pub(crate) fn server() -> String {
    crate::backend::server()
        .expect("ZEPH_TEST_POSTGRES has to name a server: run `cargo xtask postgres`")
}

async fn connect(url: &str, path: &Path, wait: Duration) -> Result<Store, StoreError> {
    Store::connect(&Server::new(url, wait).unwrap(), path).await
}

/// Another machine with the same store.
pub(crate) async fn other_machine(url: &str, folder: &tempfile::TempDir) -> Store {
    let path = folder.path().join("other.db");
    connect(url, &path, Duration::from_secs(10)).await.unwrap()
}

/// Runs a statement as the administrator of the server.
pub(crate) async fn administer(sql: &str) {
    let url = format!("{}&dbname=postgres", server());
    let mut admin = sqlx::PgConnection::connect(&url).await.unwrap();
    admin.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// A store on the server with the session `s`, and its URL.
pub(crate) async fn shared() -> (tempfile::TempDir, Store, String) {
    let (folder, path) = place();
    let url = database(&server(), &path).await;
    let store = connect(&url, &path, Duration::from_secs(10)).await.unwrap();
    store.ensure_session("s", Path::new("/p")).await.unwrap();
    (folder, store, url)
}

/// Proves OPS-2: a lease that was not renewed passes to another process, and the earlier holder can no longer append.
#[tokio::test]
async fn expired_lease_passes_on_and_its_holder_is_fenced() {
    let (folder, store, url) = shared().await;
    let other = other_machine(&url, &folder).await;
    let lock = store.lock_session("s").await.unwrap();
    store
        .append_message("s", message("user", "first"))
        .await
        .unwrap();
    // Another machine cannot look up the process.
    execute(
        store.path(),
        "UPDATE session_lease SET machine = 'other', host = 'far'",
    )
    .await
    .unwrap();
    let error = other.lock_session("s").await.unwrap_err();
    assert!(error.to_string().contains("on far"), "{error}");
    execute(
        store.path(),
        "UPDATE session_lease SET until = now() - interval '1 second'",
    )
    .await
    .unwrap();
    let taken = other.lock_session("s").await.unwrap();
    other
        .append_message("s", message("user", "second"))
        .await
        .unwrap();
    let error = store
        .append_message("s", message("user", "late"))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, StoreError::LeaseLost { id, .. } if id == "s"),
        "{error:?}"
    );
    let messages = other.messages("s").await.unwrap();
    let contents: Vec<_> = messages.iter().map(|it| it.content.as_str()).collect();
    assert_eq!(contents, ["first", "second"]);
    taken.release().await;
    // The end of the stale lock does not end the lease of another one.
    let again = other.lock_session("s").await.unwrap();
    lock.release().await;
    let error = store.lock_session("s").await.unwrap_err();
    assert!(
        matches!(error, StoreError::SessionInUse { .. }),
        "{error:?}"
    );
    again.release().await;
}

/// Proves OPS-2: users see only their own rows until access is granted, and then they can only read.
#[tokio::test]
async fn rows_belong_to_their_owner_until_access_is_granted() {
    let (folder, store, url) = shared().await;
    store
        .append_message(
            "s",
            message("user", r#"[{"type":"text","text":"secret plan"}]"#),
        )
        .await
        .unwrap();
    store.save_memory("s", "The plan is secret.").await.unwrap();
    SqliteAudit::new(store.clone())
        .append(&entry("s", "1"))
        .await
        .unwrap();
    let (owner, reader) = (role(&url), format!("{}_reader", role(&url)));
    administer(&format!("CREATE ROLE {reader} LOGIN")).await;
    let theirs = url.replace(&format!("user={owner}"), &format!("user={reader}"));
    let other = other_machine(&theirs, &folder).await;
    let sees = async || {
        (
            other.list_sessions(None, 9).await.unwrap().len(),
            other.search_memory("secret", 9).await.unwrap().len(),
            other
                .search_sessions("secret", None, 9)
                .await
                .unwrap()
                .len(),
            verify_other_chains(&other).await.unwrap().len(),
        )
    };
    assert_eq!(sees().await, (0, 0, 0, 0));
    store.grant_access(&reader).await.unwrap();
    assert_eq!(
        store.granted_access().await.unwrap(),
        std::slice::from_ref(&reader)
    );
    assert_eq!(sees().await, (1, 1, 1, 1));
    let error = other
        .append_message("s", message("user", "mine"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("foreign key"), "{error}");
    other.rename_session("s", "theirs").await.unwrap_err();
    assert!(store.revoke_access(&reader).await.unwrap());
    assert_eq!(sees().await, (0, 0, 0, 0));
    assert!(!store.revoke_access(&reader).await.unwrap());
}

pub(crate) fn role(url: &str) -> String {
    let (_, rest) = url.split_once("user=zeph_").unwrap();
    format!("zeph_{}", rest.split('&').next().unwrap())
}

/// Proves OPS-2: each writer has its own chain, all are verified, and no user can append to the chain of another.
#[tokio::test]
async fn each_writer_has_its_own_chain() {
    let (folder, store, url) = shared().await;
    let other = other_machine(&url, &folder).await;
    for (number, store) in [&store, &other, &store, &other, &other]
        .into_iter()
        .enumerate()
    {
        let sink = SqliteAudit::new(store.clone());
        sink.append(&entry("s", &number.to_string())).await.unwrap();
    }
    for (store, own, others) in [(&store, 2, 3), (&other, 3, 2)] {
        let verdict = verify_database(store, None).await.unwrap();
        assert_eq!((verdict.entries, verdict.wrong), (own, None));
        let chains = verify_other_chains(store).await.unwrap();
        assert_eq!(chains.len(), 1);
        let (writer, verdict) = &chains[0];
        assert_eq!((verdict.entries, &verdict.wrong), (others, &None));
        assert_eq!(writer.owner, role(&url));
    }
    // Another role cannot continue a chain, and no role can change one.
    let reader = format!("{}_w", role(&url));
    administer(&format!("CREATE ROLE {reader} LOGIN")).await;
    let theirs = url.replace(&format!("user={}", role(&url)), &format!("user={reader}"));
    let mut raw = sqlx::PgConnection::connect(&theirs).await.unwrap();
    let chain = verify_other_chains(&other).await.unwrap().remove(0).0.chain;
    let forged = format!(
        "INSERT INTO tool_audit (writer, ts, session, call_id, tool, call, result, result_digest, result_size, trust,
             approved_by, phase, duration_ms, attempts, cached, repairs, seq, prev, hash)
         VALUES ('{chain}', 1, 's', 'c', 'read', '{{}}', 'success', 'd', 1, 'trusted', 'auto', 'executor', 1, 1, false,
             '[]', 3, 'p', 'h')"
    );
    let error = raw
        .execute(AssertSqlSafe(forged))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("foreign key") || error.contains("row-level"),
        "{error}"
    );
    for sql in [
        "UPDATE tool_audit SET tool = 'x'",
        "DELETE FROM tool_audit",
        "TRUNCATE tool_audit",
    ] {
        let error = execute(store.path(), sql).await.unwrap_err().to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
}

/// Proves OPS-2: a process that starts before another one noted its first entry continues the same chain.
#[tokio::test]
async fn chain_continues_after_an_entry_that_was_not_noted() {
    let (_folder, store, _) = shared().await;
    let append = async |call: &str| {
        SqliteAudit::new(store.clone())
            .append(&entry("s", call))
            .await
            .unwrap();
    };
    append("1").await;
    let head = store.audit_head();
    let chain = head.read().unwrap().unwrap().chain;
    let begun = format!("1 {chain} {:020} {chain} {:020}\n", 0, 0);
    std::fs::write(head.path(), begun).unwrap();
    append("2").await;
    append("3").await;
    let verdict = verify_database(&store, None).await.unwrap();
    assert_eq!((verdict.entries, verdict.wrong), (3, None));
    assert!(verify_other_chains(&store).await.unwrap().is_empty());
}

/// Proves OPS-3: a store is copied to a server and back, nothing is lost, and a repeated copy adds nothing.
#[tokio::test]
async fn copy_goes_to_a_server_and_back() {
    let (folder, sqlite) = crate::sqlite_store().await;
    for number in 0..20 {
        let text = format!("message {number} with \0 and ü");
        sqlite
            .append_message("s", message("user", &text))
            .await
            .unwrap();
    }
    sqlite.rename_session("s", "A title").await.unwrap();
    sqlite.rewind("s", 18).await.unwrap();
    sqlite.add_task("s", "a task").await.unwrap();
    sqlite
        .create_sub_session("sub", "s", Path::new("/p"))
        .await
        .unwrap();
    sqlite
        .append_message("sub", message("user", "below"))
        .await
        .unwrap();
    sqlite.save_memory("s", "A fact.").await.unwrap();
    let long = crate::overflow::entry("s", &"line\n".repeat(100_000));
    sqlite.put_overflow(&long).await.unwrap();
    let sink = SqliteAudit::new(sqlite.clone());
    for number in 0..5 {
        sink.append(&entry("s", &number.to_string())).await.unwrap();
    }
    let (_there, shared, _) = shared_empty().await;
    let report = sqlite.copy_into(&shared).await.unwrap();
    assert_eq!(
        (report.copied, report.present, report.entries, report.facts),
        (2, 0, 5, 1)
    );
    assert!(report.is_complete(), "{report:?}");
    let again = sqlite.copy_into(&shared).await.unwrap();
    assert_eq!(
        (again.copied, again.present, again.entries, again.facts),
        (0, 2, 0, 0)
    );
    // New entries follow the copied ones.
    sink.append(&entry("s", "later")).await.unwrap();
    assert_eq!(sqlite.copy_into(&shared).await.unwrap().entries, 1);
    assert_eq!(
        shared.messages("s").await.unwrap(),
        sqlite.messages("s").await.unwrap()
    );
    assert_eq!(
        shared.all_messages("s").await.unwrap(),
        sqlite.all_messages("s").await.unwrap()
    );
    assert_eq!(
        shared.tasks("s").await.unwrap(),
        sqlite.tasks("s").await.unwrap()
    );
    assert_eq!(
        shared.session("s").await.unwrap(),
        sqlite.session("s").await.unwrap()
    );
    let block = shared.overflow_block("s", long.reference, 0).await.unwrap();
    assert_eq!(
        block,
        sqlite.overflow_block("s", long.reference, 0).await.unwrap()
    );
    let chains = verify_other_chains(&shared).await.unwrap();
    assert_eq!((chains[0].1.entries, &chains[0].1.wrong), (6, &None));
    // And back, into a new file.
    let back = Store::open(&folder.path().join("back.db"), Synchronous::Normal)
        .await
        .unwrap();
    SqliteAudit::new(shared.clone())
        .append(&entry("s", "there"))
        .await
        .unwrap();
    let report = shared.copy_into(&back).await.unwrap();
    assert_eq!((report.copied, report.entries), (2, 7));
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(
        back.all_messages("s").await.unwrap(),
        sqlite.all_messages("s").await.unwrap()
    );
    assert_eq!(
        back.list_sessions(None, 9).await.unwrap().len(),
        1,
        "a sub-agent stays below its parent"
    );
    let chains = verify_other_chains(&back).await.unwrap();
    assert!(
        chains.iter().all(|(_, verdict)| verdict.wrong.is_none()),
        "{chains:?}"
    );
    assert_eq!(chains.len(), 2);
    // The new store has a chain of its own next to the copies.
    SqliteAudit::new(back.clone())
        .append(&entry("s", "own"))
        .await
        .unwrap();
    assert_eq!(verify_database(&back, None).await.unwrap().entries, 1);
}

async fn shared_empty() -> (tempfile::TempDir, Store, String) {
    let (folder, store, url) = shared().await;
    store.delete_session("s").await.unwrap();
    (folder, store, url)
}

/// Proves OPS-2, OPS-3: a copy takes only the rows of its user along, not those of a user who granted access.
#[tokio::test]
async fn copy_leaves_rows_of_other_users() {
    let (folder, store, url) = shared().await;
    let fill = async |store: &Store, session: &str| {
        store
            .ensure_session(session, Path::new("/p"))
            .await
            .unwrap();
        let fact = format!("A fact of {session}.");
        store.save_memory(session, &fact).await.unwrap();
        let now = jiff::Timestamp::now().as_millisecond();
        let task = NewScheduled {
            project: Path::new("/p"),
            prompt: session,
            said: "tomorrow",
            cron: None,
            zone: "UTC",
            next_at: now + 86_400_000,
            now,
        };
        store.schedule(&task).await.unwrap().unwrap();
        SqliteAudit::new(store.clone())
            .append(&entry(session, "1"))
            .await
            .unwrap();
    };
    fill(&store, "s").await;
    let reader = format!("{}_copies", role(&url));
    administer(&format!("CREATE ROLE {reader} LOGIN")).await;
    let theirs = url.replace(&format!("user={}", role(&url)), &format!("user={reader}"));
    let other = other_machine(&theirs, &folder).await;
    fill(&other, "theirs").await;
    store.grant_access(&reader).await.unwrap();
    assert_eq!(other.list_memories(9).await.unwrap().len(), 2);

    let back = Store::open(&folder.path().join("back.db"), Synchronous::Normal)
        .await
        .unwrap();
    let report = other.copy_into(&back).await.unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!((report.copied, report.facts, report.tasks), (1, 1, 1));
    assert_eq!(report.entries, 1);
    let facts = back.list_memories(9).await.unwrap();
    assert_eq!(facts[0].content, "A fact of theirs.");
    let tasks = back.scheduled(Path::new("/p")).await.unwrap();
    assert_eq!((tasks.len(), tasks[0].prompt.as_str()), (1, "theirs"));
    assert_eq!(verify_other_chains(&back).await.unwrap().len(), 1);
}

/// Proves OPS-2: a user who may read the rows of another one continues, runs and deletes only their own.
#[tokio::test]
async fn reader_uses_only_their_own_rows() {
    let (folder, store, url) = shared().await;
    let reader = format!("{}_reads", role(&url));
    administer(&format!("CREATE ROLE {reader} LOGIN")).await;
    let theirs = url.replace(&format!("user={}", role(&url)), &format!("user={reader}"));
    let other = other_machine(&theirs, &folder).await;
    let project = Path::new("/p");
    let now = jiff::Timestamp::now().as_millisecond();
    let schedule = async |store: &Store, prompt: &str| {
        let task = NewScheduled {
            project,
            prompt,
            said: "now",
            cron: None,
            zone: "UTC",
            next_at: now,
            now,
        };
        store.schedule(&task).await.unwrap().unwrap();
    };
    other.ensure_session("mine", project).await.unwrap();
    other
        .append_message("mine", message("user", "earlier"))
        .await
        .unwrap();
    schedule(&other, "my task").await;
    store
        .append_message("s", message("user", "later"))
        .await
        .unwrap();
    store.ensure_session("empty", project).await.unwrap();
    schedule(&store, "their task").await;
    store.grant_access(&reader).await.unwrap();
    assert_eq!(other.list_sessions(None, 9).await.unwrap().len(), 3);

    let last = other.latest_session(project).await.unwrap().unwrap();
    assert_eq!(last.id, "mine");
    assert_eq!(other.scheduled(project).await.unwrap().len(), 2);
    let own = other.own_scheduled(project).await.unwrap();
    assert_eq!((own.len(), own[0].prompt.as_str()), (1, "my task"));
    let run = other.claim_run(&own[0], None, Some(now + 60_000), "", now);
    assert!(run.await.unwrap().is_some());
    let running = other.running_tasks(project).await.unwrap();
    assert_eq!(running, std::collections::HashSet::from([own[0].id]));
    assert_eq!(other.delete_empty_sessions(i64::MAX).await.unwrap(), 0);
    assert_eq!(store.delete_empty_sessions(i64::MAX).await.unwrap(), 1);
}

/// Proves OPS-3: a copy does not replace another session of the same id, and reports it.
#[tokio::test]
async fn copy_reports_a_session_that_differs() {
    let (_folder, sqlite) = crate::sqlite_store().await;
    sqlite
        .append_message("s", message("user", "here"))
        .await
        .unwrap();
    let (_there, shared, _) = shared().await;
    shared
        .append_message("s", message("user", "there"))
        .await
        .unwrap();
    let report = sqlite.copy_into(&shared).await.unwrap();
    assert_eq!((report.different, report.copied), (vec!["s".to_owned()], 0));
    assert_eq!(shared.messages("s").await.unwrap()[0].content, "there");
}

/// Proves OPS-1: processes that start together on an empty database make the tables once.
#[tokio::test]
async fn tables_are_made_once_by_concurrent_starts() {
    let (_folder, path) = place();
    let url = database(&server(), &path).await;
    let starts = (0..8).map(|_| {
        let (url, path) = (url.clone(), path.clone());
        tokio::spawn(async move { connect(&url, &path, Duration::from_secs(20)).await })
    });
    for start in starts.collect::<Vec<_>>() {
        start.await.unwrap().unwrap();
    }
}

/// Proves OPS-3: a server that ends every connection costs no message: a later call connects again.
#[tokio::test]
async fn lost_connection_is_opened_again() {
    let (_folder, store, url) = shared().await;
    for round in 0..5 {
        let text = format!("message {round}");
        store
            .append_message("s", message("user", &text))
            .await
            .unwrap();
        let kill = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{}'",
            role(&url)
        );
        administer(&kill).await;
        assert_eq!(store.messages("s").await.unwrap().len(), round + 1);
    }
}

/// Proves OPS-3: a server that does not respond is an error after the wait, and not a hang.
#[tokio::test]
async fn silent_server_is_refused_after_the_wait() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (_folder, path) = place();
    let url = format!("postgres://ann:hunter2@127.0.0.1:{port}/zeph");
    let start = Instant::now();
    let error = connect(&url, &path, Duration::from_millis(300))
        .await
        .unwrap_err();
    assert!(
        matches!(error, StoreError::ServerUnreachable { .. }),
        "{error:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

/// Proves OPS-3: each kind of refusal is one line with its fix, without the password.
#[tokio::test]
async fn refusal_names_its_fix() {
    let (_folder, path) = place();
    let url = database(&server(), &path).await;
    let check = async |url: &str, expect: &[&str]| {
        let error = connect(url, &path, Duration::from_secs(5))
            .await
            .unwrap_err();
        assert!(error.is_configuration(), "{error:?}");
        let text = error.to_string();
        assert!(!text.contains('\n') && !text.contains("hunter2"), "{text}");
        for expect in expect {
            assert!(text.contains(expect), "{expect}: {text}");
        }
    };
    let absent_role = url.replace(
        &format!("user={}", role(&url)),
        "user=zeph_absent&password=hunter2",
    );
    check(
        &absent_role,
        &["zeph_absent", "check the user and the password"],
    )
    .await;
    let absent = url.replace(&format!("dbname={}", role(&url)), "dbname=absent");
    check(&absent, &["absent", "createdb"]).await;
    check(&format!("{url}&sslmode=require"), &["TLS", "sslmode"]).await;
    check(
        "postgres://a:hunter2@does-not-resolve.invalid/z",
        &["does-not-resolve.invalid:5432", "cannot be reached"],
    )
    .await;
    // A role without rights on a database without tables.
    let poor = format!("{}_p", role(&url));
    administer(&format!("CREATE ROLE {poor} LOGIN")).await;
    let poor = url.replace(&format!("user={}", role(&url)), &format!("user={poor}"));
    check(&poor, &["permission denied", "owner of the database"]).await;
    // Tables of a newer program.
    drop(connect(&url, &path, Duration::from_secs(5)).await.unwrap());
    execute(&path, "INSERT INTO zeph_schema (version) VALUES (999)")
        .await
        .unwrap();
    check(&url, &["version is 999", "update Zeph"]).await;
}

/// Proves OPS-2: every row records its owner and its host.
#[tokio::test]
async fn every_table_records_owner_and_host() {
    let (_folder, store, _) = shared().await;
    let without = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'public' AND c.relkind = 'r' AND c.relname NOT IN ('zeph_schema', 'access')
          AND 2 > (SELECT count(*) FROM pg_attribute a
                   WHERE a.attrelid = c.oid AND a.attname IN ('owner', 'host') AND a.attnotnull)";
    assert_eq!(number(store.path(), without).await, 0);
    let open = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'public' AND c.relkind = 'r' AND c.relname <> 'zeph_schema'
          AND NOT (c.relrowsecurity AND c.relforcerowsecurity)";
    assert_eq!(number(store.path(), open).await, 0);
    let hosts = "SELECT count(*) FROM session WHERE host = ''";
    assert_eq!(number(store.path(), hosts).await, 0);
}
