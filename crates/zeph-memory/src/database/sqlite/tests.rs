//! Tests of internal behaviour: settings of the connection, a full disk, the log.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use tempfile::TempDir;

use super::*;
use crate::database::query;
use crate::{NewMessage, Store};

async fn store(synchronous: Synchronous) -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("zeph.db"), synchronous)
        .await
        .unwrap();
    store.ensure_session("s", Path::new("/p")).await.unwrap();
    (folder, store)
}

fn message(content: String) -> NewMessage {
    NewMessage {
        role: "user".into(),
        content,
        usage: None,
    }
}

async fn pragma(store: &Store, sql: &'static str) -> i64 {
    store.fetch(query(sql)).await.unwrap()[0]
        .try_get(0)
        .unwrap()
}

/// SQLite flushes the log at each commit with `FULL` (2) and not with `NORMAL` (1).
#[tokio::test]
async fn connection_has_the_configured_pragmas() {
    for (synchronous, expect) in [(Synchronous::Normal, 1), (Synchronous::Full, 2)] {
        let (_folder, store) = store(synchronous).await;
        assert_eq!(pragma(&store, "PRAGMA synchronous").await, expect);
        assert_eq!(pragma(&store, "PRAGMA foreign_keys").await, 1);
        assert_eq!(pragma(&store, "PRAGMA busy_timeout").await, 5000);
        let rows = store.fetch(query("PRAGMA journal_mode")).await.unwrap();
        let mode: String = rows[0].try_get(0).unwrap();
        assert_eq!(mode, "wal");
    }
}

#[tokio::test]
async fn full_disk_fails_only_the_affected_write() {
    let (_folder, store) = store(Synchronous::Normal).await;
    store
        .append_message("s", message("kept".into()))
        .await
        .unwrap();
    let pages = pragma(&store, "PRAGMA page_count").await;
    let limit = |pages: i64| {
        let store = store.clone();
        async move {
            let limit = query(format!("PRAGMA max_page_count = {pages}"));
            store.fetch(limit).await.unwrap();
        }
    };
    limit(pages).await;
    let large = "x".repeat(100_000);
    for batch in [1, 3] {
        let error = store
            .append_messages("s", vec![message(large.clone()); batch])
            .await
            .unwrap_err();
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        assert!(error.to_string().contains("no space is left"), "{error}");
    }
    limit(1_000_000).await;
    assert_eq!(
        store.append_message("s", message(large)).await.unwrap(),
        2,
        "it goes on where it was"
    );
    assert_eq!(store.messages("s").await.unwrap().len(), 2);
}

#[tokio::test]
async fn log_is_checkpointed_in_the_background_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeph.db");
    let database = SqliteDatabase::open(path.clone(), Synchronous::Normal)
        .await
        .unwrap();
    let log = Arc::clone(&database.log);
    let store = Store::over(path, database);
    store.ensure_session("s", Path::new("/p")).await.unwrap();
    // Twice the size that starts a checkpoint.
    let mut left = 2 * CHECKPOINT_AFTER / 100_000;
    while left > 0 {
        store
            .append_message("s", message("x".repeat(100_000)))
            .await
            .unwrap();
        left -= 1;
        tokio::time::timeout(Duration::from_secs(20), async {
            while log.is_moving.load(Ordering::Acquire) {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("the checkpoint ends");
    }
    let row = &store
        .fetch(query("PRAGMA wal_checkpoint(PASSIVE)"))
        .await
        .unwrap()[0];
    let frames: i64 = row.try_get(1).unwrap();
    let page = 4096;
    assert!(
        frames * page < 3 * i64::try_from(CHECKPOINT_AFTER).unwrap() / 2,
        "{frames} frames in the log"
    );
}

#[tokio::test]
async fn closed_store_is_reported() {
    let (_folder, store) = store(Synchronous::Normal).await;
    let clone = store.clone();
    store.close().await.unwrap();
    store.close().await.unwrap();
    let error = clone.messages("s").await.unwrap_err();
    assert!(matches!(error, StoreError::Closed { .. }), "{error:?}");
    let mut log = store.path().as_os_str().to_owned();
    log.push("-wal");
    assert!(!Path::new(&log).exists(), "the log was moved");
}

/// The kinds of failed system calls with different fixes for the user.
#[test]
fn failed_system_calls_are_distinguished() {
    fn check(kind: io::ErrorKind, expect: &str) {
        let text = StoreError::io(Path::new("/d/zeph.db"), &kind.into()).to_string();
        assert!(
            text.contains(expect) && text.contains("/d/zeph.db"),
            "{text}"
        );
    }
    check(io::ErrorKind::PermissionDenied, "is read-only");
    check(io::ErrorKind::ReadOnlyFilesystem, "is read-only");
    check(io::ErrorKind::StorageFull, "no space is left");
    check(io::ErrorKind::QuotaExceeded, "no space is left");
    check(io::ErrorKind::NotADirectory, "cannot be created or opened");
}

/// Proves OUT-51, AGT-6 for other users: opening a database removes their permissions to read and write it.
#[tokio::test]
async fn database_open_to_others_is_tightened() {
    for wide in [0o666, 0o644, 0o660, 0o777] {
        let (folder, store) = store(Synchronous::Normal).await;
        let path = folder.path().join("zeph.db");
        let wal = folder.path().join("zeph.db-wal");
        store
            .append_message("s", message("kept".into()))
            .await
            .unwrap();
        for file in [&path, &wal] {
            fs::set_permissions(file, fs::Permissions::from_mode(wide)).unwrap();
        }
        let again = Store::open(&path, Synchronous::Normal).await.unwrap();
        for file in [&path, &wal] {
            let mode = fs::metadata(file).unwrap().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{} {wide:o} {mode:o}", file.display());
        }
        again
            .append_message("s", message("more".into()))
            .await
            .unwrap();
    }
}
