//! Repeated copies of a store into another one: a SQLite file into the database of the tests.

use std::path::Path;

use zeph_memory::{ChosenModel, Compaction, CopyReport, SessionChoices, Store};

use crate::{message, place, sqlite_store};

async fn append(store: &Store, content: &str) {
    store
        .append_message("s", message("user", content))
        .await
        .unwrap();
}

/// A SQLite store whose session `s` has three messages, and its copy in the database of the tests.
async fn copied() -> (Vec<tempfile::TempDir>, Store, Store) {
    let (here_folder, here) = sqlite_store().await;
    for content in ["one", "two", "three"] {
        append(&here, content).await;
    }
    here.add_task("s", "a task").await.unwrap();
    here.set_session_choices("s", &choices("plan"))
        .await
        .unwrap();
    let first = crate::overflow::entry("s", &"first\n".repeat(50_000));
    here.put_overflow(&first).await.unwrap();
    let (there_folder, path) = place();
    let there = crate::open(&path).await;
    let report = here.copy_into(&there).await.unwrap();
    assert_eq!(report.copied, 1);
    assert_eq!(there.session_choices("s").await.unwrap(), choices("plan"));
    (vec![here_folder, there_folder], here, there)
}

/// A chosen mode and model.
fn choices(mode: &str) -> SessionChoices {
    SessionChoices {
        mode: Some(mode.to_owned()),
        model: Some(ChosenModel {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            effort: None,
        }),
    }
}

/// The numbers of copied, updated, equal and different sessions.
fn counts(report: &CopyReport) -> (u64, u64, u64, usize) {
    let CopyReport {
        copied,
        updated,
        present,
        different,
        ..
    } = report;
    (*copied, *updated, *present, different.len())
}

async fn contents(store: &Store) -> Vec<String> {
    let messages = store.all_messages("s").await.unwrap().into_iter();
    messages.map(|message| message.content).collect()
}

/// Proves OPS-3: a session that grew after a copy is brought up to date with all that belongs to it.
#[tokio::test]
async fn session_that_grew_is_updated() {
    let (_folders, here, there) = copied().await;
    here.rewind("s", 3).await.unwrap();
    append(&here, "four").await;
    append(&here, "five").await;
    let compaction = Compaction {
        window_start: Some(2),
        shown: vec![(2, "shorter".to_owned())],
        ..Compaction::default()
    };
    here.compact_window("s", &compaction).await.unwrap();
    here.rename_session("s", "A title").await.unwrap();
    here.set_session_choices("s", &choices("auto"))
        .await
        .unwrap();
    here.add_task("s", "another task").await.unwrap();
    let second = crate::overflow::entry("s", &"second\n".repeat(50_000));
    here.put_overflow(&second).await.unwrap();

    let report = here.copy_into(&there).await.unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(counts(&report), (0, 1, 0, 0));
    assert_eq!(there.session_choices("s").await.unwrap(), choices("auto"));
    assert_eq!(
        there.all_messages("s").await.unwrap(),
        here.all_messages("s").await.unwrap()
    );
    assert_eq!(
        there.session("s").await.unwrap(),
        here.session("s").await.unwrap()
    );
    assert_eq!(
        there.tasks("s").await.unwrap(),
        here.tasks("s").await.unwrap()
    );
    let block = there.overflow_block("s", second.reference, 0).await;
    let expect = here.overflow_block("s", second.reference, 0).await;
    assert_eq!(block.unwrap(), expect.unwrap());
    let again = here.copy_into(&there).await.unwrap();
    assert_eq!(counts(&again), (0, 0, 1, 0));
}

/// Proves OPS-3: a session that changed without a new message is brought up to date.
#[tokio::test]
async fn session_without_new_messages_is_updated() {
    let check = async |change: &str| {
        let (_folders, here, there) = copied().await;
        match change {
            "expired" => assert_eq!(here.expire_overflow(i64::MAX).await.unwrap(), 1),
            "rewound" => here.rewind("s", 3).await.unwrap(),
            _ => here.rename_session("s", "A title").await.unwrap(),
        }
        let report = here.copy_into(&there).await.unwrap();
        assert_eq!(counts(&report), (0, 1, 0, 0), "{change}");
        let again = here.copy_into(&there).await.unwrap();
        assert_eq!(counts(&again), (0, 0, 1, 0), "{change}");
    };
    for change in ["expired", "rewound", "renamed"] {
        check(change).await;
    }
}

/// Proves OPS-3: a copy that was continued, rewound or renamed is reported, and stays as it is.
#[tokio::test]
async fn copy_that_changed_is_reported() {
    let check = async |change: &str| {
        let (_folders, here, there) = copied().await;
        match change {
            "continued" => append(&there, "there").await,
            "rewound" => there.rewind("s", 2).await.unwrap(),
            _ => there.rename_session("s", "Other").await.unwrap(),
        }
        let (before, session) = (contents(&there).await, there.session("s").await.unwrap());
        append(&here, "here").await;
        let report = here.copy_into(&there).await.unwrap();
        assert_eq!(counts(&report), (0, 0, 0, 1), "{change}");
        assert_eq!(contents(&there).await, before, "{change}");
        assert_eq!(there.session("s").await.unwrap(), session, "{change}");
    };
    for change in ["continued", "rewound", "renamed"] {
        check(change).await;
    }
}

/// Proves OPS-3: a copy on which a process works is not changed.
#[tokio::test]
async fn copy_in_use_is_not_changed() {
    let (_folders, here, there) = copied().await;
    append(&here, "four").await;
    let lock = there.lock_session("s").await.unwrap();
    let report = here.copy_into(&there).await.unwrap();
    assert_eq!(counts(&report), (0, 0, 0, 1));
    assert_eq!(contents(&there).await, ["one", "two", "three"]);
    lock.release().await;
    let report = here.copy_into(&there).await.unwrap();
    assert_eq!(counts(&report), (0, 1, 0, 0));
    assert_eq!(contents(&there).await, ["one", "two", "three", "four"]);
    // A session that began later is copied.
    here.ensure_session("t", Path::new("/p")).await.unwrap();
    let report = here.copy_into(&there).await.unwrap();
    assert_eq!(counts(&report), (1, 0, 1, 0));
}
