//! Opening the store: created files, refusals and their messages.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sqlx::{Row, raw_sql};
use zeph_memory::{Store, StoreError, Synchronous};

use crate::child::Other;
use crate::{message, place, raw};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

async fn refused(path: &Path) -> StoreError {
    Store::open(path, Synchronous::Normal).await.unwrap_err()
}

#[tokio::test]
async fn folders_and_file_are_private_to_the_user() {
    let (folder, _) = place();
    let path = folder.path().join("a/b/zeph.db");
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    store.ensure_session("s", Path::new("/p")).await.unwrap();
    assert_eq!(mode(&folder.path().join("a")), 0o700);
    assert_eq!(mode(&folder.path().join("a/b")), 0o700);
    for name in ["zeph.db", "zeph.db-wal", "zeph.db-shm"] {
        assert_eq!(mode(&folder.path().join("a/b").join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn url_like_names_are_file_names() {
    let (folder, _) = place();
    for name in [
        "file:x?mode=memory",
        "a%20b#c?d.db",
        ":memory:",
        "mit Umlaut ä.db",
    ] {
        let path = folder.path().join(name);
        let store = Store::open(&path, Synchronous::Normal).await.unwrap();
        store.ensure_session("s", Path::new("/p")).await.unwrap();
        store.close().await.unwrap();
        assert!(fs::metadata(&path).unwrap().len() > 0, "{name}");
        Store::open(&path, Synchronous::Normal)
            .await
            .unwrap()
            .session("s")
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn existing_database_is_opened_without_writing() {
    let (_folder, path) = place();
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    store.ensure_session("s", Path::new("/p")).await.unwrap();
    store.close().await.unwrap();
    let before = fs::read(&path).unwrap();
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    assert_eq!(store.session("s").await.unwrap().id, "s");
    store.close().await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creation_makes_one_database() {
    let (_folder, path) = place();
    let mut others: Vec<_> = (0..4).map(|_| Other::run("open", &path)).collect();
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let path = path.clone();
            tokio::spawn(async move {
                let store = Store::open(&path, Synchronous::Normal).await.unwrap();
                store
                    .ensure_session(&format!("s{n}"), Path::new("/p"))
                    .await
                    .unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for other in &mut others {
        assert_eq!(other.hear().as_deref(), Some("opened"));
    }
    let sessions = Store::open(&path, Synchronous::Normal)
        .await
        .unwrap()
        .list_sessions(None, 100)
        .await
        .unwrap();
    assert_eq!(sessions.len(), 8);
}

#[tokio::test]
async fn path_that_is_not_a_file_is_refused() {
    let (folder, _) = place();
    let error = refused(folder.path()).await;
    assert!(matches!(error, StoreError::NotAFile { .. }), "{error:?}");
    assert!(error.to_string().contains("[memory] path"), "{error}");
    let error = refused(Path::new("/dev/null")).await;
    assert!(matches!(error, StoreError::NotAFile { .. }), "{error:?}");

    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = refused(&file.join("zeph.db")).await;
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn foreign_file_is_refused_unchanged() {
    let (_folder, path) = place();
    let text = "these are my notes, and they are longer than the header of a database\n".repeat(9);
    fs::write(&path, &text).unwrap();
    let error = refused(&path).await;
    assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
    assert!(error.to_string().contains("move it away"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn database_of_another_program_is_refused_unchanged() {
    let (_folder, path) = place();
    raw_sql("CREATE TABLE bookmark (url TEXT)")
        .execute(&mut raw(&path).await)
        .await
        .unwrap();
    let error = refused(&path).await;
    assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
    let tables: i64 = sqlx::query("SELECT count(*) FROM sqlite_schema")
        .fetch_one(&mut raw(&path).await)
        .await
        .unwrap()
        .get(0);
    assert_eq!(tables, 1);
    let mode: String = sqlx::query("PRAGMA journal_mode")
        .fetch_one(&mut raw(&path).await)
        .await
        .unwrap()
        .get(0);
    assert_eq!(mode, "delete");
}

#[tokio::test]
async fn newer_database_is_refused() {
    let (_folder, path) = place();
    Store::open(&path, Synchronous::Normal)
        .await
        .unwrap()
        .close()
        .await
        .unwrap();
    raw_sql("PRAGMA user_version = 99")
        .execute(&mut raw(&path).await)
        .await
        .unwrap();
    let error = refused(&path).await;
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("update Zeph"), "{error}");
}

#[tokio::test]
async fn damaged_database_is_reported() {
    let (_folder, path) = place();
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    store.ensure_session("s", Path::new("/p")).await.unwrap();
    let text = "x".repeat(2000);
    for _ in 0..100 {
        store
            .append_message("s", message("user", &text))
            .await
            .unwrap();
    }
    store.close().await.unwrap();
    let whole = fs::read(&path).unwrap();

    // The pages after the schema.
    let mut damaged = whole.clone();
    let half = damaged.len() / 2;
    damaged[4 * 4096..half].fill(0xA5);
    fs::write(&path, &damaged).unwrap();
    let error = match Store::open(&path, Synchronous::Normal).await {
        Ok(store) => store.messages("s").await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains(".recover"), "{error}");

    // A file that is cut off in the middle.
    fs::write(&path, &whole[..half]).unwrap();
    let error = match Store::open(&path, Synchronous::Normal).await {
        Ok(store) => store.messages("s").await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

/// The file, its folder, or a folder to be created is not writable. The test runs as another user if the
/// current user may write everywhere.
#[tokio::test]
async fn unwritable_path_is_refused_immediately() {
    // The other user must have access to the folder of the file and to the program.
    let folder = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let root = fs::metadata(folder.path()).unwrap().uid() == 0;
    let uid = root.then_some(65534);
    let program = folder.path().join("child");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let check = |path: &Path| {
        let said = Other::start(&program, uid, "open", path).hear().unwrap();
        assert!(said.contains("is read-only: make the file"), "{said}");
        assert!(said.contains(path.to_str().unwrap()), "{said}");
    };

    let path = folder.path().join("data/zeph.db");
    Store::open(&path, Synchronous::Normal)
        .await
        .unwrap()
        .close()
        .await
        .unwrap();
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let data = folder.path().join("data");
    set(&path, 0o444);
    set(&data, 0o777);
    check(&path);
    set(&path, 0o666);
    set(&data, 0o555);
    check(&path);
    check(&data.join("new.db"));
    check(&data.join("new/zeph.db"));

    set(&data, 0o777);
    let mut other = Other::start(&program, uid, "open", &path);
    assert_eq!(other.hear().as_deref(), Some("opened"));
}
