//! The store of the configuration: the file of this machine, or a server.

use std::path::Path;

use zeph_memory::{Store, StoreError};

use crate::config::Loaded;

/// Opens the store that the configuration names.
///
/// # Errors
/// [`StoreError`] if the file cannot be used, or if the server cannot be reached or refuses.
pub(crate) async fn open_store(loaded: &Loaded) -> Result<Store, StoreError> {
    let memory = &loaded.config.memory;
    match &memory.url {
        None => Store::open(&loaded.paths.database, memory.synchronous).await,
        Some(url) => connect(loaded, url.expose()).await,
    }
}

/// Opens the store that the configuration names, without changing it. `None` if its file does not exist.
///
/// # Errors
/// As [`open_store`].
pub(crate) async fn open_store_for_reading(loaded: &Loaded) -> Result<Option<Store>, StoreError> {
    match &loaded.config.memory.url {
        None => Store::open_for_reading(&loaded.paths.database).await,
        Some(url) => connect(loaded, url.expose()).await.map(Some),
    }
}

/// Opens a store that the user names: a server by its URL, or a database file, which is created if missing.
///
/// # Errors
/// As [`open_store`].
pub(crate) async fn open_other_store(
    loaded: &Loaded,
    cwd: &Path,
    name: &str,
) -> Result<Store, StoreError> {
    match name.contains("://") {
        true => connect(loaded, name).await,
        false => Store::open(&cwd.join(name), loaded.config.memory.synchronous).await,
    }
}

#[cfg(feature = "postgres")]
async fn connect(loaded: &Loaded, url: &str) -> Result<Store, StoreError> {
    let wait = std::time::Duration::from_secs(loaded.config.memory.wait_secs.max(1));
    let server = zeph_memory::Server::new(url, wait)?;
    Store::connect(&server, &loaded.paths.database).await
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "the same form as with a server")]
async fn connect(_loaded: &Loaded, _url: &str) -> Result<Store, StoreError> {
    Err(StoreError::NoServerSupport)
}
