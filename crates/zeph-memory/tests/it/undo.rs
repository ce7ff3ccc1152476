//! The undo journal.

use std::path::{Path, PathBuf};

use sqlx::raw_sql;
use zeph_memory::{SqliteUndo, Store};
use zeph_tools::UndoJournal as _;
use zeph_tools::undo::{
    Attributes, Change, FileBackup, FileState, Fingerprint, PendingChange, RecordOutcome, Step,
};

use crate::{open, raw, store};

/// The deletion of a file with this content.
pub(crate) fn deletion(name: &str, content: Vec<u8>) -> Change {
    Change {
        steps: vec![Step::Put {
            path: PathBuf::from("/project").join(name),
            before: FileBackup::File {
                at: 0,
                fingerprint: Fingerprint {
                    len: content.len() as u64,
                    digest: Some("ab".repeat(32)),
                    modified: None,
                },
                attributes: Attributes {
                    mode: 0o644,
                    uid: 1,
                    gid: 2,
                },
            },
            after: FileState::Absent,
        }],
        images: content,
    }
}

pub(crate) async fn record(
    journal: &SqliteUndo,
    batch: &str,
    change: Result<&Change, &str>,
) -> RecordOutcome {
    let draft = PendingChange {
        session: "s",
        batch,
        tool: "delete_path",
        what: "f",
        change,
    };
    journal.record(draft).await.unwrap()
}

/// The batches and whether they can be undone, in reverse order of time.
async fn listed(store: &Store) -> Vec<(String, bool)> {
    let changes = store.undo_changes("s", 100).await.unwrap();
    changes
        .into_iter()
        .map(|change| (change.batch, change.lost.is_none()))
        .collect()
}

/// Proves FILE-28: a record can be read, also by another process, until it is undone.
#[tokio::test]
async fn change_is_stored_until_it_is_settled() {
    let (_folder, store) = store().await;
    let journal = SqliteUndo::new(store.clone(), 1 << 20);
    let one = deletion("one", b"text\n".repeat(1000));
    let two = deletion("two", (0..=255).cycle().take(5000).collect());
    let RecordOutcome::Kept(first) = record(&journal, "a", Ok(&one)).await else {
        panic!("not kept");
    };
    record(&journal, "b", Ok(&one)).await;
    record(&journal, "b", Ok(&two)).await;

    let again = SqliteUndo::new(open(store.path()).await, 1 << 20);
    let last = again.last("s").await.unwrap().unwrap();
    assert_eq!(last.id, "b");
    let changes: Vec<_> = last
        .entries
        .iter()
        .map(|entry| entry.change.clone().unwrap())
        .collect();
    assert_eq!(changes, [two, one.clone()]);
    let numbers: Vec<_> = last.entries.iter().map(|entry| entry.number).collect();
    again.settle("other", &numbers).await.unwrap();
    assert_eq!(again.last("s").await.unwrap().unwrap().id, "b");
    again.settle("s", &numbers).await.unwrap();
    let last = journal.last("s").await.unwrap().unwrap();
    assert_eq!((last.id.as_str(), last.entries[0].number), ("a", first));
    let project = Path::new("/project");
    assert_eq!(
        store
            .last_changed_session(project)
            .await
            .unwrap()
            .as_deref(),
        Some("s")
    );
    assert_eq!(
        store
            .last_changed_session(Path::new("/other"))
            .await
            .unwrap(),
        None
    );

    store.delete_session("s").await.unwrap();
    assert!(journal.last("s").await.unwrap().is_none());
    let left = "SELECT count(*) FROM undo_change";
    assert_eq!(crate::backend::number(store.path(), left).await, 0);
}

/// Proves FILE-28: whole batches are dropped, the oldest first; a change over the limit is recorded as not
/// undoable.
#[tokio::test]
async fn undo_size_limit_drops_the_oldest_batches() {
    let (_folder, store) = store().await;
    let journal = SqliteUndo::new(store.clone(), 100);
    let of = |bytes: usize| deletion("f", vec![b'x'; bytes]);
    let kept = |recorded| matches!(recorded, RecordOutcome::Kept(_));
    assert!(kept(record(&journal, "a", Ok(&of(30))).await));
    assert!(kept(record(&journal, "a", Ok(&of(0))).await));
    assert!(kept(record(&journal, "b", Ok(&of(30))).await));
    assert!(kept(record(&journal, "c", Ok(&of(40))).await));
    assert_eq!(
        listed(&store)
            .await
            .iter()
            .filter(|(_, kept)| *kept)
            .count(),
        4
    );
    assert!(kept(record(&journal, "d", Ok(&of(1))).await));
    let batches: Vec<_> = ["d", "c", "b", "a", "a"]
        .into_iter()
        .zip([true, true, true, false, false])
        .collect();
    let found = listed(&store).await;
    let found: Vec<_> = found
        .iter()
        .map(|(batch, kept)| (batch.as_str(), *kept))
        .collect();
    assert_eq!(found, batches);
    // The size of all batches, and of the new one alone.
    assert!(!kept(record(&journal, "e", Ok(&of(101))).await));
    assert!(kept(record(&journal, "e", Ok(&of(100))).await));
    assert!(!kept(record(&journal, "e", Ok(&of(1))).await));
    assert!(!kept(record(&journal, "f", Err("a FIFO")).await));
    let last = journal.last("s").await.unwrap().unwrap();
    assert_eq!(last.entries[0].change, Err("a FIFO".to_owned()));
}

#[tokio::test]
async fn unknown_session_is_an_error_and_damage_is_reported() {
    let (_folder, store) = crate::sqlite_store().await;
    let journal = SqliteUndo::new(store.clone(), 100);
    let change = deletion("f", b"x".to_vec());
    for bytes in [1, 1000] {
        let change = deletion("f", vec![b'x'; bytes]);
        let draft = PendingChange {
            session: "nobody",
            batch: "a",
            tool: "edit",
            what: "f",
            change: Ok(&change),
        };
        let error = journal.record(draft).await.unwrap_err();
        assert!(error.to_string().contains("nobody"), "{error}");
    }
    record(&journal, "a", Ok(&change)).await;
    let mut connection = raw(store.path()).await;
    raw_sql("UPDATE undo_change SET change = x'00ff'")
        .execute(&mut connection)
        .await
        .unwrap();
    let last = journal.last("s").await.unwrap().unwrap();
    let reason = last.entries[0].change.clone().unwrap_err();
    assert!(reason.contains("damaged"), "{reason}");
}
