//! Session locks: one agent at a time uses a session.

use zeph_memory::StoreError;

use crate::child::Other;
use crate::{open, store};

#[tokio::test]
async fn session_is_locked_once_until_release() {
    let (_folder, store) = store().await;
    store
        .ensure_session("t", std::path::Path::new("/p"))
        .await
        .unwrap();
    let lock = store.lock_session("s").await.unwrap();
    let _other = store.lock_session("t").await.unwrap();
    for store in [store.clone(), open(store.path()).await] {
        let error = store.lock_session("s").await.unwrap_err();
        let own = std::process::id();
        assert!(
            matches!(error, StoreError::SessionInUse { pid: Some(pid), .. } if pid == own),
            "{error:?}"
        );
        let error = store.delete_session("s").await.unwrap_err();
        assert!(matches!(error, StoreError::SessionInUse { .. }), "{error}");
    }
    lock.release().await;
    store.lock_session("s").await.unwrap().release().await;
    store.delete_session("s").await.unwrap();
}

#[tokio::test]
async fn lock_holder_is_named_and_its_death_frees_the_lock() {
    let (_folder, store) = store().await;
    for killed in [true, false, true] {
        let mut other = Other::run("lock", store.path());
        assert_eq!(other.hear().as_deref(), Some("locked"));
        let error = store.lock_session("s").await.unwrap_err().to_string();
        let expect = format!("in use by process {}:", other.id());
        assert!(error.contains(&expect), "{error}");
        if killed {
            other.kill();
        } else {
            other.send("release");
            assert_eq!(other.hear().as_deref(), Some("released"));
        }
        store.lock_session("s").await.unwrap().release().await;
    }
}

/// Concurrent locking and unlocking: at most one holder at a time, and always one in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_lock_has_one_holder() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let (_folder, store) = store().await;
    let holders = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (store, holders) = (store.clone(), Arc::clone(&holders));
            tokio::spawn(async move {
                let mut taken = 0;
                while taken < 25 {
                    match store.lock_session("s").await {
                        Ok(_lock) => {
                            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                            tokio::task::yield_now().await;
                            holders.fetch_sub(1, Ordering::SeqCst);
                            taken += 1;
                        }
                        Err(StoreError::SessionInUse { .. }) => tokio::task::yield_now().await,
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    store.lock_session("s").await.unwrap().release().await;
}

/// A lock file goes with its lock.
#[tokio::test]
async fn lock_that_ended_leaves_no_file() {
    let (folder, store) = crate::sqlite_store().await;
    store.lock_session("s").await.unwrap().release().await;
    let left = std::fs::read_dir(folder.path().join("zeph.db-locks")).unwrap();
    assert_eq!(left.count(), 0);
}
