//! Records of the files that sessions have read.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use zeph_memory::{SqliteSeenFiles, Store};
use zeph_tools::ReadLedger;

use crate::{open, store};

const CONTENT: &[u8] = b"fn main() {}\n";

async fn digest(store: &Store, session: &str, path: &str) -> Option<u8> {
    let seen = SqliteSeenFiles::new(store.clone());
    let digest = seen.digest(session, Path::new(path)).await.unwrap();
    digest.map(|digest| digest[0])
}

async fn note(store: &Store, path: &str, byte: u8) {
    let seen = SqliteSeenFiles::new(store.clone());
    seen.note("s", Path::new(path), &[byte; 32], Some(CONTENT))
        .await
        .unwrap();
}

/// Proves FILE-23 in part: the record is available to the next process, and each session has its own.
#[tokio::test]
async fn read_record_outlives_the_process_and_stays_in_its_session() {
    let (_folder, store) = store().await;
    store.ensure_session("t", Path::new("/p")).await.unwrap();
    note(&store, "/p/a", 1).await;
    note(&store, "/p/a", 2).await;
    store.close().await.unwrap();
    let store = open(store.path()).await;
    assert_eq!(digest(&store, "s", "/p/a").await, Some(2));
    assert_eq!(digest(&store, "t", "/p/a").await, None);
    assert_eq!(digest(&store, "s", "/p").await, None);
    let seen = SqliteSeenFiles::new(store.clone());
    let content = seen.content("s", Path::new("/p/a")).await.unwrap();
    assert_eq!(content.as_deref(), Some(CONTENT));
    seen.note("s", Path::new("/p/a"), &[3; 32], None)
        .await
        .unwrap();
    assert_eq!(seen.content("s", Path::new("/p/a")).await.unwrap(), None);
    assert_eq!(digest(&store, "s", "/p/a").await, Some(3));
    let error = seen.note("none", Path::new("/p/a"), &[3; 32], None).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("none"), "{error}");
}

#[tokio::test]
async fn read_record_is_cleared_with_the_window_and_the_session() {
    let (_folder, store) = store().await;
    store.ensure_session("t", Path::new("/p")).await.unwrap();
    let seen = SqliteSeenFiles::new(store.clone());
    seen.note("t", Path::new("/p/a"), &[9; 32], None)
        .await
        .unwrap();
    note(&store, "/p/a", 1).await;
    store.clear_window("s").await.unwrap();
    assert_eq!(digest(&store, "s", "/p/a").await, None);
    assert_eq!(digest(&store, "t", "/p/a").await, Some(9));
    note(&store, "/p/a", 1).await;
    store.delete_session("s").await.unwrap();
    store.ensure_session("s", Path::new("/p")).await.unwrap();
    assert_eq!(digest(&store, "s", "/p/a").await, None);
}

#[tokio::test]
async fn trees_are_carried_and_cleared_whole() {
    let (_folder, store) = store().await;
    let seen = SqliteSeenFiles::new(store.clone());
    for (path, byte) in [
        ("/d/x", 1),
        ("/d/y/z", 2),
        ("/d0", 3),
        ("/dd", 4),
        ("/e/y/z", 5),
    ] {
        note(&store, path, byte).await;
    }
    let [d, e] = ["/d", "/e"].map(Path::new);
    seen.carry("s", d, e, true).await.unwrap();
    for (path, expect) in [
        ("/d/x", None),
        ("/e/x", Some(1)),
        ("/e/y/z", Some(2)),
        ("/d0", Some(3)),
        ("/dd", Some(4)),
    ] {
        assert_eq!(digest(&store, "s", path).await, expect, "{path}");
    }
    seen.carry("s", &e.join("x"), Path::new("/f"), false)
        .await
        .unwrap();
    assert_eq!(digest(&store, "s", "/e/x").await, Some(1));
    assert_eq!(digest(&store, "s", "/f").await, Some(1));
    let content = seen.content("s", Path::new("/f")).await.unwrap();
    assert_eq!(content.as_deref(), Some(CONTENT));
    seen.forget("s", e).await.unwrap();
    assert_eq!(digest(&store, "s", "/e/y/z").await, None);
    assert_eq!(digest(&store, "s", "/f").await, Some(1));
}

#[tokio::test]
async fn non_utf8_paths_are_recorded() {
    let (_folder, store) = store().await;
    let seen = SqliteSeenFiles::new(store);
    let name = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
    let (from, to) = (name(b"/d/\xff\xfe"), name(b"/\xc3\x28/x"));
    seen.note("s", &from, &[1; 32], None).await.unwrap();
    seen.carry("s", &from, &to, true).await.unwrap();
    assert_eq!(seen.digest("s", &from).await.unwrap(), None);
    assert_eq!(seen.digest("s", &to).await.unwrap(), Some([1; 32]));
}
