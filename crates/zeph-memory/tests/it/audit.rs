//! The audit trail.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use sqlx::raw_sql;
use zeph_memory::{
    AuditFilter, Heads, JsonlAudit, SqliteAudit, Store, StoredAudit, Synchronous, Verdict,
    verify_database, verify_file,
};
use zeph_tools::{ApprovedBy, AuditEntry, AuditResult, AuditSink, Phase, TrustLevel};

use crate::backend::execute;
use crate::{open, raw, store};

pub(crate) fn entry(session: &str, call_id: &str) -> AuditEntry {
    AuditEntry {
        ts: 1_700_000_000_123,
        session: session.into(),
        call_id: call_id.into(),
        tool: "bash".into(),
        call: json!({"command": "ls 'ä'", "timeout": 3}),
        result: AuditResult::Success,
        result_digest: "ab".repeat(32),
        result_size: 4711,
        trust: TrustLevel::Trusted,
        approved_by: ApprovedBy::User,
        phase: Phase::Executor,
        duration_ms: 12,
        exit_code: Some(0),
        truncated: Some(false),
        error_category: None,
        attempts: 1,
        cached: false,
        adversarial_policy_decision: None,
        claim_source: None,
        repairs: vec![],
        caller_id: None,
        policy_match: None,
    }
}

/// The last `limit` entries of one session or of all sessions.
async fn entries(store: &Store, session: Option<&str>, limit: u32) -> Vec<StoredAudit> {
    let filter = AuditFilter {
        session: session.map(str::to_owned),
        ..AuditFilter::default()
    };
    store.audit_entries(&filter, limit).await.unwrap()
}

/// Asserts that the JSON of a stored entry equals the original, except for its place in the chain.
async fn check_same(store: &Store, entry: &AuditEntry) {
    let stored = entries(store, None, 1).await.pop().unwrap();
    let mut stored: Value = serde_json::from_str(&stored.line()).unwrap();
    for name in ["v", "seq", "prev", "hash"] {
        assert!(stored.as_object_mut().unwrap().shift_remove(name).is_some());
    }
    assert_eq!(stored, serde_json::to_value(entry).unwrap());
}

#[tokio::test]
async fn every_field_of_an_entry_is_restored() {
    let (_folder, store) = store().await;
    let sink = SqliteAudit::new(store.clone());
    let plain = entry("s", "c1");
    sink.append(&plain).await.unwrap();
    check_same(&store, &plain).await;

    for result in [
        AuditResult::Error,
        AuditResult::Blocked,
        AuditResult::Cancelled,
        AuditResult::Timeout,
    ] {
        let other = AuditEntry {
            call: Value::String("no \0 JSON".into()),
            result,
            trust: TrustLevel::Untrusted,
            approved_by: ApprovedBy::Policy,
            phase: Phase::Planner,
            exit_code: Some(-1),
            truncated: Some(true),
            error_category: Some("policy_blocked"),
            attempts: u32::MAX,
            cached: true,
            claim_source: Some("web:example.org".into()),
            repairs: vec!["a \"b\"".into(), "c".into()],
            caller_id: Some("ide".into()),
            adversarial_policy_decision: Some("allow".into()),
            policy_match: Some("rule 1".into()),
            ..entry("s", "c2")
        };
        sink.append(&other).await.unwrap();
        check_same(&store, &other).await;
    }
    let without = AuditEntry {
        exit_code: None,
        truncated: None,
        ..entry("never created", "c3")
    };
    sink.append(&without).await.unwrap();
    check_same(&store, &without).await;
}

#[tokio::test]
async fn entries_are_listed_oldest_first_and_counted_for_their_session() {
    let (_folder, store) = store().await;
    let sink = SqliteAudit::new(store.clone());
    for (session, call) in [("s", "1"), ("t", "2"), ("s", "3"), ("s", "4")] {
        sink.append(&entry(session, call)).await.unwrap();
    }
    let calls = |session: Option<&'static str>, limit| {
        let store = store.clone();
        async move {
            entries(&store, session, limit)
                .await
                .into_iter()
                .map(|entry| entry.call_id)
                .collect::<String>()
        }
    };
    assert_eq!(calls(None, 10).await, "1234");
    assert_eq!(calls(None, 2).await, "34");
    assert_eq!(calls(Some("s"), 10).await, "134");
    assert_eq!(calls(Some("s"), 1).await, "4");
    assert_eq!(calls(Some("x"), 10).await, "");
    assert_eq!(store.session("s").await.unwrap().calls, 3);
}

#[tokio::test]
async fn audit_trail_outlives_its_session() {
    let (_folder, store) = store().await;
    let sink = SqliteAudit::new(store.clone());
    sink.append(&entry("s", "1")).await.unwrap();
    store.delete_session("s").await.unwrap();
    assert_eq!(entries(&store, Some("s"), 10).await.len(), 1);
    let namesake = store.ensure_session("s", Path::new("/p")).await.unwrap();
    assert_eq!(namesake.calls, 0);
    sink.append(&entry("s", "2")).await.unwrap();
    assert_eq!(store.session("s").await.unwrap().calls, 1);
}

#[tokio::test]
async fn entries_can_be_neither_changed_nor_deleted() {
    let (_folder, store) = store().await;
    SqliteAudit::new(store.clone())
        .append(&entry("s", "1"))
        .await
        .unwrap();
    for sql in [
        "UPDATE tool_audit SET tool = 'read'",
        "DELETE FROM tool_audit",
    ] {
        let error = execute(store.path(), sql).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
    assert_eq!(entries(&store, None, 10).await[0].tool, "bash");
}

/// A database of version 5 with entries that are older than the chain.
async fn unchained(path: &Path) -> Store {
    let mut old = raw(path).await;
    for sql in [
        include_str!("../../migrations/0001_sessions_tasks_audit.sql"),
        include_str!("../../migrations/0002_seen_files.sql"),
        include_str!("../../migrations/0003_undo.sql"),
        include_str!("../../migrations/0004_overflow.sql"),
        "INSERT INTO tool_audit VALUES (1, 2, 's', 'c', 'read', '{}', 'success', 'd', 3, 'trusted',
            'auto', 'executor', 4, NULL, NULL, NULL, 1, 0, '[]', NULL),
            (2, 2, 's', 'd', 'read', '{}', 'success', 'd', 3, 'trusted',
            'auto', 'executor', 4, NULL, NULL, NULL, 1, 0, '[]', NULL)",
        include_str!("../../migrations/0005_audit_claim_source.sql"),
        "PRAGMA user_version = 5",
        "PRAGMA application_id = 0x5A455048",
    ] {
        raw_sql(sql).execute(&mut old).await.unwrap();
    }
    drop(old);
    Store::open(path, Synchronous::Normal).await.unwrap()
}

async fn tamper(store: &Store, sql: &str) {
    let mut connection = raw(store.path()).await;
    let sql = format!(
        "DROP TRIGGER tool_audit_is_not_edited; DROP TRIGGER tool_audit_is_not_deleted;
         DROP TRIGGER tool_audit_is_chained; {sql}"
    );
    raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
}

async fn verify(store: &Store) -> Verdict {
    verify_database(store, None).await.unwrap()
}

/// Proves OUT-52: entries that are older than the chain are preserved and counted, and cannot be used to hide
/// changes.
#[tokio::test]
async fn unchained_entries_precede_the_chain() {
    for sql in [
        None,
        Some("UPDATE tool_audit SET tool = 'write' WHERE id = 1"),
        Some("DELETE FROM tool_audit WHERE id = 1"),
        Some("DELETE FROM tool_audit WHERE id <= 2"),
        Some("DELETE FROM tool_audit WHERE id = 1; UPDATE tool_audit SET id = id - 1"),
        Some("UPDATE tool_audit SET seq = NULL, prev = NULL, hash = NULL WHERE id = 4"),
        Some("UPDATE tool_audit SET seq = NULL, prev = NULL, hash = NULL WHERE id = 3"),
        Some("INSERT INTO tool_audit SELECT 5, ts, session, call_id, tool, call, result,
            result_digest, result_size, trust, approved_by, phase, duration_ms, exit_code, truncated,
            error_category, attempts, cached, repairs, caller_id, claim_source, NULL, NULL, NULL,
            NULL, NULL, NULL FROM tool_audit WHERE id = 1"),
    ] {
        let (_folder, path) = crate::place();
        let store = unchained(&path).await;
        let sink = SqliteAudit::new(store.clone());
        let new = AuditEntry {
            claim_source: Some("web:example.org".into()),
            ..entry("s", "c2")
        };
        sink.append(&new).await.unwrap();
        let found = entries(&store, None, 10).await;
        let tools: Vec<_> = found.iter().map(|entry| entry.tool.as_str()).collect();
        assert_eq!(tools, ["read", "read", "audit", "bash"]);
        if let Some(sql) = sql {
            tamper(&store, sql).await;
        }
        let verdict = verify(&store).await;
        assert_eq!(verdict.wrong.is_some(), sql.is_some(), "{sql:?} {verdict:?}");
        if sql.is_none() {
            assert_eq!((verdict.unchained, verdict.entries), (2, 2));
        }
    }
}

/// Proves OUT-52: every column of each entry, and its position.
#[tokio::test]
async fn changed_column_is_found_in_the_database() {
    let columns = [
        "ts = ts + 1",
        "session = 'other'",
        "call_id = 'other'",
        "tool = 'read'",
        "call = '{\"command\": \"ls\"}'",
        "call = call || ' '",
        "call = 'no JSON'",
        "result = 'error'",
        "result_digest = 'cd'",
        "result_size = 0",
        "trust = 'untrusted'",
        "approved_by = 'policy'",
        "phase = 'verifier'",
        "duration_ms = 11",
        "exit_code = NULL",
        "exit_code = 1",
        "truncated = NULL",
        "truncated = 1",
        "truncated = 2",
        "error_category = 'timeout'",
        "attempts = 2",
        "cached = 1",
        "cached = 7",
        "adversarial_policy_decision = ''",
        "claim_source = 'web:x'",
        "repairs = '[ ]'",
        "caller_id = ''",
        "policy_match = 'x'",
        "seq = seq + 1",
        "seq = NULL",
        "prev = hash",
        "prev = NULL",
        "hash = prev",
        "hash = NULL",
        "id = id + 100",
        "session = CAST(x'ff' AS TEXT)",
    ];
    let changes = columns.map(|change| format!("UPDATE tool_audit SET {change} WHERE id = ID"));
    let others = [
        "DELETE FROM tool_audit WHERE id = ID",
        "DELETE FROM tool_audit WHERE id >= ID",
        "DELETE FROM tool_audit WHERE id = ID; UPDATE tool_audit SET id = id - 1 WHERE id > ID",
        "DELETE FROM tool_audit WHERE id <= ID",
        "UPDATE tool_audit SET id = 100 WHERE id = ID; UPDATE tool_audit SET id = ID WHERE id = 1 + ID % 4;
         UPDATE tool_audit SET id = 1 + ID % 4 WHERE id = 100",
    ];
    for change in changes.iter().map(String::as_str).chain(others) {
        for id in [1, 2, 4] {
            let (_folder, store) = crate::sqlite_store().await;
            let sink = SqliteAudit::new(store.clone());
            for call in ["1", "2", "3", "4"] {
                sink.append(&entry("s", call)).await.unwrap();
            }
            let verdict = verify(&store).await;
            assert_eq!((verdict.entries, &verdict.wrong), (4, &None));
            assert_eq!(verdict.notes, [""; 0]);
            let head = verdict.last.unwrap();
            let sql = change.replace("ID", &id.to_string());
            tamper(&store, &sql).await;
            let verdict = verify(&store).await;
            assert!(verdict.wrong.is_some(), "{sql}: {verdict:?}");
            assert!(verdict.entries < 4, "{sql}: {verdict:?}");
            // Later entries hide nothing, from this process or from the next one.
            let _ = sink.append(&entry("s", "5")).await;
            let _ = SqliteAudit::new(store.clone())
                .append(&entry("s", "6"))
                .await;
            let verdict = verify(&store).await;
            assert!(verdict.wrong.is_some(), "{sql} and on: {verdict:?}");
            let noted = verify_database(&store, Some(head)).await.unwrap();
            assert!(noted.wrong.is_some(), "{sql} by the noted head: {noted:?}");
        }
    }
}

/// Proves OUT-52: a head that is older than the last entry after a kill is accepted, and a missing head is
/// reported.
#[tokio::test]
async fn stale_head_is_accepted_and_missing_head_is_reported() {
    let (_folder, store) = crate::sqlite_store().await;
    let sink = SqliteAudit::new(store.clone());
    let file = store.audit_head();
    sink.append(&entry("s", "1")).await.unwrap();
    let first = std::fs::read(file.path()).unwrap();
    sink.append(&entry("s", "2")).await.unwrap();
    std::fs::write(file.path(), &first).unwrap();
    let verdict = verify(&store).await;
    assert_eq!((verdict.entries, verdict.wrong), (2, None));
    assert!(
        verdict.notes[0].contains("one entry at the end"),
        "{:?}",
        verdict.notes
    );
    // The next process continues from the entry, not from the head.
    SqliteAudit::new(store.clone())
        .append(&entry("s", "3"))
        .await
        .unwrap();
    let verdict = verify(&store).await;
    assert_eq!(
        (verdict.entries, verdict.wrong, verdict.notes.len()),
        (3, None, 0)
    );

    std::fs::write(file.path(), b"1 damaged").unwrap();
    assert!(verify(&store).await.wrong.unwrap().contains("damaged"));
    std::fs::remove_file(file.path()).unwrap();
    let wrong = verify(&store).await.wrong.unwrap();
    assert!(
        wrong.contains("missing") && wrong.contains("--head"),
        "{wrong}"
    );
    let verdict = verify_database(&store, verdict.last).await.unwrap();
    assert_eq!(verdict.wrong, None);
}

/// A log with an entry for each of `calls`, and its path.
async fn log(folder: &Path, calls: &[String]) -> (Heads, std::path::PathBuf) {
    let heads = Heads::beside(&folder.join("zeph.db"));
    let path = folder.join("audit.jsonl");
    let sink = JsonlAudit::new(path.clone(), &heads, false);
    for call in calls {
        let call = json!({ "command": call });
        sink.append(&AuditEntry {
            call,
            ..entry("s", "c")
        })
        .await
        .unwrap();
    }
    (heads, path)
}

fn check_file(path: &Path, heads: &Heads) -> Verdict {
    verify_file(path, heads, None, true).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Proves OUT-52: any changed, removed or inserted byte of the file, and any truncation.
    #[test]
    fn no_byte_of_the_file_can_be_changed(
        calls in prop::collection::vec(".{0,20}", 1..6),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (heads, path) = block_on(log(folder.path(), &calls));
        let whole = std::fs::read(&path).unwrap();
        let verdict = check_file(&path, &heads);
        prop_assert_eq!((verdict.entries, verdict.wrong), (calls.len() as u64, None));
        prop_assert!(verdict.notes.is_empty());

        let at = at.index(whole.len());
        let mut changed = whole.clone();
        changed[at] ^= flip;
        let mut removed = whole.clone();
        removed.remove(at);
        let mut inserted = whole.clone();
        inserted.insert(at, flip);
        let mut line = whole.clone();
        line.insert(at, b'\n');
        let mut more = whole.clone();
        more.extend_from_slice(b"{}\n");
        let cut = whole[..at].to_vec();
        for edited in [changed, removed, inserted, line, more, cut] {
            std::fs::write(&path, &edited).unwrap();
            let verdict = check_file(&path, &heads);
            prop_assert!(verdict.wrong.is_some(), "{verdict:?}\n{}", String::from_utf8_lossy(&edited));
        }
    }

    /// Proves OUT-52: later entries do not hide a change of the file.
    #[test]
    fn later_entries_hide_no_change_of_the_file(
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
        cut in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let calls: Vec<String> = (0..4).map(|n| n.to_string()).collect();
        let (heads, path) = block_on(log(folder.path(), &calls));
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        let at = at.index(bytes.len());
        match cut {
            true => bytes.truncate(at),
            false => bytes[at] ^= flip,
        }
        std::fs::write(&path, &bytes).unwrap();
        for _ in 0..2 {
            block_on(log(folder.path(), &calls[..1]));
            let verdict = check_file(&path, &heads);
            // Only the final line break was cut off and has been restored, so nothing is hidden.
            let mended = std::fs::read(&path).unwrap().starts_with(&whole);
            prop_assert_eq!(verdict.wrong.is_none(), mended, "{:?}", verdict);
        }
    }
}

/// Proves OUT-52: a line that a crash truncated is sealed, reported, and as secure as the others.
#[tokio::test]
async fn truncated_line_is_sealed_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (heads, path) = log(folder.path(), &["a".into(), "b".into()]).await;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(br#"{"v":1,"seq":3,"prev":"12"#);
    std::fs::write(&path, &bytes).unwrap();
    let verdict = check_file(&path, &heads);
    assert_eq!((verdict.entries, verdict.wrong), (2, None));
    assert!(
        verdict.notes[0].contains("incomplete (25 bytes"),
        "{:?}",
        verdict.notes
    );

    log(folder.path(), &["c".into()]).await;
    let verdict = check_file(&path, &heads);
    assert_eq!((verdict.entries, verdict.wrong), (4, None));
    assert!(
        verdict.notes[0].contains("line 3 is incomplete"),
        "{:?}",
        verdict.notes
    );
    let mut edited = std::fs::read(&path).unwrap();
    edited[bytes.len() - 3] = b'x';
    std::fs::write(&path, &edited).unwrap();
    let wrong = check_file(&path, &heads).wrong.unwrap();
    assert!(wrong.starts_with("line 3: "), "{wrong}");
}

/// Proves OUT-52: the head of a file may be older than its last entry after a kill.
#[tokio::test]
async fn stale_head_of_a_file_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let (heads, path) = log(folder.path(), &["a".into()]).await;
    let file = heads.of_file(&path);
    let first = std::fs::read(file.path()).unwrap();
    log(folder.path(), &["b".into(), "c".into()]).await;
    std::fs::write(file.path(), &first).unwrap();
    let verdict = check_file(&path, &heads);
    assert_eq!((verdict.entries, verdict.wrong), (3, None));
    assert!(
        verdict.notes[0].contains("2 entries at the end"),
        "{:?}",
        verdict.notes
    );
    log(folder.path(), &["d".into()]).await;
    let verdict = check_file(&path, &heads);
    assert_eq!(
        (verdict.entries, verdict.wrong, verdict.notes.len()),
        (4, None, 0)
    );
    // A missing head is reported; the chain itself continues.
    std::fs::remove_file(file.path()).unwrap();
    assert!(
        check_file(&path, &heads)
            .wrong
            .unwrap()
            .contains("no head of this chain")
    );
    log(folder.path(), &["e".into()]).await;
    assert_eq!(check_file(&path, &heads).entries, 5);
}

/// Proves OUT-51: a regular file of mode 0600, not a link or a device.
#[tokio::test]
async fn audit_file_is_regular_with_mode_0600() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let heads = Heads::beside(&folder.path().join("zeph.db"));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let append = |name: &str| {
        let sink = JsonlAudit::new(folder.path().join(name), &heads, true);
        async move {
            sink.append(&entry("s", "c"))
                .await
                .map_err(|error| error.to_string())
        }
    };
    append("new/deep/audit.jsonl").await.unwrap();
    assert_eq!(mode(&folder.path().join("new/deep/audit.jsonl")), 0o600);
    assert_eq!(mode(&folder.path().join("new")), 0o700);

    let wide = folder.path().join("wide");
    std::fs::write(&wide, "").unwrap();
    std::fs::set_permissions(&wide, std::fs::Permissions::from_mode(0o666)).unwrap();
    append("wide").await.unwrap();
    assert_eq!(mode(&wide), 0o600);

    std::os::unix::fs::symlink(&wide, folder.path().join("link")).unwrap();
    let error = append("link").await.unwrap_err();
    assert!(
        error.contains("symbolic link") && error.contains("[tools.audit] path"),
        "{error}"
    );
    std::os::unix::fs::symlink("/dev/full", folder.path().join("device")).unwrap();
    assert!(append("device").await.is_err());
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    assert!(append("dir").await.unwrap_err().contains("directory"));
    let sink = JsonlAudit::new("/dev/full".into(), &heads, false);
    let error = sink.append(&entry("s", "c")).await.unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

/// Proves OUT-52: concurrent sinks, as in several processes, write one chain.
#[tokio::test]
async fn concurrent_sinks_write_one_chain() {
    let (folder, store) = store().await;
    let heads = Heads::beside(store.path());
    let path = folder.path().join("audit.jsonl");
    let writers = (0..4).map(|n| {
        let heads = heads.clone();
        let path = path.clone();
        let database = store.path().to_owned();
        async move {
            let own = SqliteAudit::new(open(&database).await);
            let log = JsonlAudit::new(path, &heads, false);
            for _ in 0..50 {
                let entry = entry("s", &n.to_string());
                own.append(&entry).await.unwrap();
                log.append(&entry).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    let tasks: Vec<_> = writers.map(tokio::spawn).collect();
    for task in tasks {
        task.await.unwrap();
    }
    for verdict in [verify(&store).await, check_file(&path, &heads)] {
        assert_eq!(
            (verdict.entries, verdict.wrong, verdict.notes.len()),
            (200, None, 0)
        );
    }
}

/// An entry is visible to another process as soon as `append` returns.
#[tokio::test]
async fn appended_entry_is_immediately_visible() {
    let (_folder, store) = store().await;
    let sink = SqliteAudit::new(store.clone());
    let reader = open(store.path()).await;
    for n in 1..=20 {
        sink.append(&entry("s", "c")).await.unwrap();
        assert_eq!(entries(&reader, None, 100).await.len(), n);
    }
}

#[tokio::test]
async fn failed_append_is_an_error() {
    let (_folder, path) = crate::place();
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    store.close().await.unwrap();
    let error = SqliteAudit::new(store).append(&entry("s", "1")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the audit log cannot be written"), "{error}");
}
