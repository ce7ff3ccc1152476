//! Tests of the store through its public interface.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod audit;
mod backend;
mod child;
mod conversation;
mod copies;
mod durability;
mod lock;
mod long_messages;
mod memory_vectors;
mod open;
mod overflow;
#[cfg(feature = "postgres")]
mod postgres;
mod rewind;
mod seen;
mod tasks;
mod undo;
mod vectors;

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zeph_memory::{NewMessage, Store, Synchronous};

/// A store in its own folder, with the session `s`.
async fn store() -> (TempDir, Store) {
    let (folder, path) = place();
    let store = open(&path).await;
    store
        .ensure_session("s", Path::new("/project"))
        .await
        .unwrap();
    (folder, store)
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeph.db");
    (folder, path)
}

async fn open(path: &Path) -> Store {
    backend::open(path).await
}

/// A SQLite store in its own folder, with the session `s`: for tests that damage its tables.
async fn sqlite_store() -> (TempDir, Store) {
    let (folder, path) = place();
    let store = Store::open(&path, Synchronous::Normal).await.unwrap();
    store
        .ensure_session("s", Path::new("/project"))
        .await
        .unwrap();
    (folder, store)
}

fn message(role: &str, content: &str) -> NewMessage {
    NewMessage {
        role: role.into(),
        content: content.into(),
        usage: None,
    }
}

/// A connection without the settings of the store.
async fn raw(path: &Path) -> sqlx::SqliteConnection {
    use sqlx::ConnectOptions;
    sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .connect()
        .await
        .unwrap()
}
