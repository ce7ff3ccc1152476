//! Permanent approvals on a server.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use zeph_memory::{Approval, Store, StoreError};

use super::shared::{administer, other_machine, role, shared};
use crate::backend::{execute, number};

fn patterns(approvals: &[Approval]) -> Vec<&str> {
    approvals.iter().map(|it| it.pattern.as_str()).collect()
}

async fn there(store: &Store, project: &str) -> Vec<String> {
    let found = store.approvals_in(Path::new(project)).await.unwrap();
    found.into_iter().map(|it| it.pattern).collect()
}

/// Proves OPS-1: approvals apply on all machines of a role, in the project of the same path or in all, until they are revoked.
#[tokio::test]
async fn approvals_are_shared_by_the_machines_of_a_role() {
    let (folder, store, url) = shared().await;
    let other = other_machine(&url, &folder).await;
    let here = Some(Path::new("/here"));
    store
        .approve(&[("bash", "a"), ("write", "/here/b")], here)
        .await
        .unwrap();
    store.approve(&[("bash", "a")], here).await.unwrap();
    other.approve(&[("bash", "c\0")], None).await.unwrap();
    assert_eq!(there(&other, "/here").await, ["a", "/here/b", "c\0"]);
    assert_eq!(there(&store, "/there").await, ["c\0"]);
    let all = other.approvals().await.unwrap();
    assert_eq!(patterns(&all), ["a", "/here/b", "c\0"]);
    assert_eq!(all[0].project.as_deref(), here);
    assert_eq!(
        (all[2].project.as_deref(), all[2].added_at % 1000),
        (None, 0)
    );
    assert!(other.revoke_approval(&all[0]).await.unwrap());
    assert!(!store.revoke_approval(&all[0]).await.unwrap());
    assert!(store.revoke_approval(&all[2]).await.unwrap());
    assert_eq!(there(&store, "/here").await, ["/here/b"]);
    assert_eq!(
        number(store.path(), "SELECT count(*) FROM approval").await,
        1
    );
}

/// Proves OPS-1: two paths that are not text and look the same are two projects.
#[tokio::test]
async fn project_is_known_by_the_bytes_of_its_path() {
    let (_folder, store, _) = shared().await;
    let path = |byte: u8| Path::new(OsStr::from_bytes(&[b'/', byte])).to_owned();
    store
        .approve(&[("bash", "a")], Some(&path(0xfe)))
        .await
        .unwrap();
    assert_eq!(store.approvals_in(&path(0xfe)).await.unwrap().len(), 1);
    assert_eq!(store.approvals_in(&path(0xff)).await.unwrap().len(), 0);
    let long = "x".repeat(100_000);
    store.approve(&[("bash", &long)], None).await.unwrap();
    assert_eq!(store.approvals().await.unwrap().len(), 2);
}

/// Proves OPS-2: approvals of another role do not apply, are not visible and cannot be written, with its access and for
/// superusers too.
#[tokio::test]
async fn approvals_belong_to_their_role() {
    let (folder, store, url) = shared().await;
    store.approve(&[("bash", "a")], None).await.unwrap();
    let (owner, reader) = (role(&url), format!("{}_reader", role(&url)));
    administer(&format!("CREATE ROLE {reader} LOGIN")).await;
    store.grant_access(&reader).await.unwrap();
    let theirs = url.replace(&format!("user={owner}"), &format!("user={reader}"));
    let other = other_machine(&theirs, &folder).await;
    assert_eq!(other.approvals().await.unwrap(), []);
    assert!(there(&other, "/p").await.is_empty());
    let listed = store.approvals().await.unwrap();
    assert!(!other.revoke_approval(&listed[0]).await.unwrap());
    other.approve(&[("bash", "b")], None).await.unwrap();
    assert_eq!(there(&store, "/p").await, ["a"]);
    for sql in [
        "INSERT INTO approval (tool, pattern, added_at, owner) VALUES ('bash', '*', 0, 'other')",
        "UPDATE approval SET owner = 'other'",
    ] {
        let error = execute(store.path(), sql).await.unwrap_err().to_string();
        assert!(error.contains("row-level security"), "{sql}: {error}");
    }
    administer(&format!("ALTER ROLE {reader} SUPERUSER")).await;
    let superuser = other_machine(&theirs, &folder).await;
    assert_eq!(there(&superuser, "/p").await, ["b"]);
    assert!(!superuser.revoke_approval(&listed[0]).await.unwrap());
    administer(&format!("ALTER ROLE {reader} NOSUPERUSER")).await;
}

/// Proves OPS-1: an approval is stored completely or not at all, and a file has none.
#[tokio::test]
async fn approval_is_stored_completely_or_not_at_all() {
    let (_folder, store, _) = shared().await;
    let many = vec![("bash", "a"); 1001];
    let error = store.approve(&many, None).await.unwrap_err();
    assert!(
        matches!(error, StoreError::LongApproval { .. }),
        "{error:?}"
    );
    store.approve(&[], None).await.unwrap();
    assert_eq!(store.approvals().await.unwrap(), []);
    let (_folder, sqlite) = crate::sqlite_store().await;
    let error = sqlite.approve(&[("bash", "a")], None).await.unwrap_err();
    assert!(matches!(error, StoreError::NotShared), "{error:?}");
    assert!(matches!(
        sqlite.approvals_in(Path::new("/p")).await,
        Err(StoreError::NotShared)
    ));
}
