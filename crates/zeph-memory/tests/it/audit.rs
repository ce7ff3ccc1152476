//! The audit trail.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::raw_sql;
use zeph_memory::{SqliteAudit, Store, Synchronous};
use zeph_tools::{ApprovedBy, AuditEntry, AuditResult, AuditSink, Phase, TrustLevel};

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
        claim_source: None,
        repairs: vec![],
        caller_id: None,
    }
}

/// As JSON an entry is the same before and after.
async fn check_same(store: &Store, entry: &AuditEntry) {
    let stored = store.audit_entries(None, 1).await.unwrap().pop().unwrap();
    let mut stored = serde_json::to_value(&stored).unwrap();
    stored.as_object_mut().unwrap().shift_remove("id");
    assert_eq!(stored, serde_json::to_value(entry).unwrap());
}

#[tokio::test]
async fn every_field_of_an_entry_comes_back() {
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
            let entries = store.audit_entries(session, limit).await.unwrap();
            entries
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
async fn the_trail_outlives_its_session_and_a_namesake_starts_at_none() {
    let (_folder, store) = store().await;
    let sink = SqliteAudit::new(store.clone());
    sink.append(&entry("s", "1")).await.unwrap();
    store.delete_session("s").await.unwrap();
    assert_eq!(store.audit_entries(Some("s"), 10).await.unwrap().len(), 1);
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
        let error = raw_sql(sql)
            .execute(&mut raw(store.path()).await)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
    assert_eq!(store.audit_entries(None, 10).await.unwrap()[0].tool, "bash");
}

/// Entries from before `claim_source` was kept are read, and stay as they are.
#[tokio::test]
async fn a_trail_of_the_first_version_goes_on() {
    let (_folder, path) = crate::place();
    let mut old = raw(&path).await;
    for sql in [
        include_str!("../../migrations/0001_sessions_tasks_audit.sql"),
        "INSERT INTO tool_audit VALUES (1, 2, 's', 'c', 'read', '{}', 'success', 'd', 3, 'trusted',
            'auto', 'executor', 4, NULL, NULL, NULL, 1, 0, '[]', NULL)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 0x5A455048",
    ] {
        raw_sql(sql).execute(&mut old).await.unwrap();
    }
    drop(old);
    let store = open(&path).await;
    let sink = SqliteAudit::new(store.clone());
    let new = AuditEntry {
        claim_source: Some("web:example.org".into()),
        ..entry("s", "c2")
    };
    sink.append(&new).await.unwrap();
    let entries = store.audit_entries(Some("s"), 10).await.unwrap();
    let sources: Vec<_> = entries
        .iter()
        .map(|entry| (entry.id, entry.claim_source.as_deref()))
        .collect();
    assert_eq!(sources, [(1, None), (2, Some("web:example.org"))]);
    let error = raw_sql("UPDATE tool_audit SET claim_source = NULL")
        .execute(&mut raw(&path).await)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("append-only"), "{error}");
}

/// An entry is there for another process as soon as `append` returns, without any closing.
#[tokio::test]
async fn an_appended_entry_is_on_record_at_once() {
    let (_folder, store) = store().await;
    let sink = SqliteAudit::new(store.clone());
    let reader = open(store.path()).await;
    for n in 1..=20 {
        sink.append(&entry("s", "c")).await.unwrap();
        assert_eq!(reader.audit_entries(None, 100).await.unwrap().len(), n);
    }
}

#[tokio::test]
async fn a_failed_append_is_an_error() {
    let (_folder, path) = crate::place();
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    store.close().await.unwrap();
    let error = SqliteAudit::new(store).append(&entry("s", "1")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the audit log cannot be written"), "{error}");
}
