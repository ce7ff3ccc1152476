//! Overflow entries: outputs that are too long for a model.

use std::path::Path;
use zeph_memory::{SqliteOverflow, Store, StoreError, Synchronous};
use zeph_tools::overflow::{
    NewEntry, OverflowError, OverflowRef, OverflowStore, SpillBuffer, Spilled,
};

use crate::backend::{execute, number};
use crate::{place, raw, sqlite_store, store};

fn spilled(text: &str, limit: u64) -> Spilled {
    let mut spill = SpillBuffer::new(limit);
    spill.push(text);
    spill.finish()
}

pub(crate) fn entry(session: &str, text: &str) -> NewEntry {
    NewEntry {
        reference: OverflowRef::new(),
        conversation: session.to_owned(),
        tool: "bash".to_owned(),
        text: spilled(text, u64::MAX),
    }
}

async fn put(store: &Store, session: &str, text: &str) -> OverflowRef {
    let entry = entry(session, text);
    store.put_overflow(&entry).await.unwrap();
    entry.reference
}

/// The row counts of both tables.
async fn rows(path: &Path) -> (i64, i64) {
    (
        number(path, "SELECT count(*) FROM tool_overflow").await,
        number(path, "SELECT count(*) FROM tool_overflow_block").await,
    )
}

/// Proves OUT-30, OUT-33.
#[tokio::test]
async fn stored_output_is_read_in_blocks() {
    let (_folder, store) = store().await;
    let text: String = (1..60_000).map(|n| format!("line {n} äöü\n")).collect();
    let reference = put(&store, "s", &text).await;
    let port = SqliteOverflow::new(store.clone());
    let found = port.find("s", reference).await.unwrap().unwrap();
    assert_eq!((&*found.conversation, &*found.tool), ("s", "bash"));
    assert_eq!(
        (found.bytes, found.lines, found.total_bytes),
        (text.len() as u64, 59_999, text.len() as u64)
    );
    assert_eq!(found.cut(), None);
    assert!(found.blocks.len() > 5 && found.blocks[0] == 1);
    let mut read = String::new();
    for number in 0..found.blocks.len() {
        let block = port.block("s", reference, number).await.unwrap().unwrap();
        let lines = read.matches('\n').count() as u64;
        assert_eq!(found.blocks[number], lines + 1);
        assert!(block.packed.len() < block.bytes / 2, "it is compressed");
        read.push_str(&block.text().unwrap());
    }
    assert!(read == text);
    let beyond = port.block("s", reference, found.blocks.len()).await;
    assert_eq!(beyond, Ok(None));

    let cut = NewEntry {
        text: spilled(&text, 1000),
        ..entry("s", "")
    };
    store.put_overflow(&cut).await.unwrap();
    let found = port.find("s", cut.reference).await.unwrap().unwrap();
    assert_eq!(found.total_bytes, text.len() as u64);
    assert!(found.bytes <= 1000 && found.cut().is_some());
    let listed = store.list_overflow(Some("s"), 10).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|entry| entry.reference).collect();
    assert_eq!(listed, [cut.reference, reference]);
}

/// Proves OUT-32.
#[tokio::test]
async fn overflow_is_inaccessible_to_another_session() {
    let (_folder, store) = store().await;
    store
        .ensure_session("t", Path::new("/project"))
        .await
        .unwrap();
    let reference = put(&store, "s", "text").await;
    let port = SqliteOverflow::new(store.clone());
    for session in ["t", "", "S", "none"] {
        assert_eq!(port.find(session, reference).await, Ok(None), "{session:?}");
        assert_eq!(port.block(session, reference, 0).await, Ok(None));
    }
    assert_eq!(port.find("s", OverflowRef::new()).await, Ok(None));
    assert!(store.list_overflow(Some("t"), 10).await.unwrap().is_empty());
    let found = store.overflow(None, reference).await.unwrap().unwrap();
    assert_eq!(found.conversation, "s");
}

/// Proves OUT-33.
#[tokio::test]
async fn overflow_is_deleted_with_its_session() {
    let (_folder, store) = store().await;
    store
        .ensure_session("t", Path::new("/project"))
        .await
        .unwrap();
    put(&store, "s", &"x\n".repeat(200_000)).await;
    let other = put(&store, "t", "text").await;
    assert_eq!(rows(store.path()).await, (2, 5));
    store.delete_session("s").await.unwrap();
    assert_eq!(rows(store.path()).await, (1, 1));
    assert!(store.overflow(Some("t"), other).await.unwrap().is_some());
}

/// Proves OUT-34: a failure leaves no partial entry.
#[tokio::test]
async fn overflow_is_stored_atomically() {
    let (_folder, store) = sqlite_store().await;
    let error = store.put_overflow(&entry("none", "text")).await;
    assert!(matches!(error, Err(StoreError::UnknownSession { .. })));
    let port = SqliteOverflow::new(store.clone());
    let error = port.put(entry("none", "text")).await;
    assert_eq!(error, Err(OverflowError::NoConversation));
    let broken = sqlx::raw_sql(
        "CREATE TRIGGER broken BEFORE INSERT ON tool_overflow_block WHEN NEW.number = 2
         BEGIN SELECT RAISE(ABORT, 'out of order'); END",
    );
    broken.execute(&mut raw(store.path()).await).await.unwrap();
    let error = port.put(entry("s", &"x\n".repeat(200_000))).await;
    assert!(
        matches!(&error, Err(OverflowError::Failed(why)) if why.contains("out of order")),
        "{error:?}"
    );
    assert!(store.list_overflow(None, 9).await.unwrap().is_empty());
    // The connection is still usable.
    put(&store, "s", "text").await;
    assert_eq!(store.list_overflow(None, 9).await.unwrap().len(), 1);
}

/// Proves OUT-30.
#[tokio::test]
async fn expired_overflow_is_removed() {
    let (_folder, store) = store().await;
    assert_eq!(store.expire_overflow(i64::MAX).await.unwrap(), 0);
    for _ in 0..11 {
        put(&store, "s", &"x\n".repeat(100_000)).await;
    }
    execute(store.path(), "UPDATE tool_overflow SET created_at = 1000")
        .await
        .unwrap();
    let kept = put(&store, "s", "text").await;
    assert_eq!(store.expire_overflow(1000).await.unwrap(), 0);
    assert_eq!(store.expire_overflow(1001).await.unwrap(), 11);
    assert_eq!(rows(store.path()).await, (1, 1));
    assert!(store.overflow(Some("s"), kept).await.unwrap().is_some());
}

/// Proves OUT-33: a database from before the feature gets the tables.
#[tokio::test]
async fn older_database_is_migrated() {
    let (_folder, path) = place();
    let old = sqlx::raw_sql(concat!(
        include_str!("../../migrations/0001_sessions_tasks_audit.sql"),
        "PRAGMA user_version = 1; PRAGMA application_id = 1514491976;
             INSERT INTO session (id, project, created_at, updated_at, activity)
             VALUES ('old', '/p', 0, 0, 1)"
    ));
    old.execute(&mut raw(&path).await).await.unwrap();
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    let reference = put(&store, "old", "text").await;
    assert!(
        store
            .overflow(Some("old"), reference)
            .await
            .unwrap()
            .is_some()
    );
}
