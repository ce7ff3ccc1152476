//! The database of the tests: SQLite, or a PostgreSQL server whose URL is in `ZEPH_TEST_POSTGRES`.
//!
//! On a server, the path of a test's database file names a database of its own, so that tests run in parallel, and a second
//! [`open`] of the same path finds the same data.

use std::path::Path;

use zeph_memory::{Store, Synchronous};

/// Opens the store of `path` in the database of the tests.
#[cfg(not(feature = "postgres"))]
pub(crate) async fn open(path: &Path) -> Store {
    Store::open(path, Synchronous::Normal).await.unwrap()
}

/// Opens the store of `path` in the database of the tests.
#[cfg(feature = "postgres")]
pub(crate) async fn open(path: &Path) -> Store {
    let Some(server) = server() else {
        return Store::open(path, Synchronous::Normal).await.unwrap();
    };
    let url = database(&server, path).await;
    let server = zeph_memory::Server::new(&url, std::time::Duration::from_secs(10)).unwrap();
    Store::connect(&server, path).await.unwrap()
}

/// The URL of the server, without a database at its end.
#[cfg(feature = "postgres")]
pub(crate) fn server() -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "the lane of the server names it")]
    std::env::var("ZEPH_TEST_POSTGRES").ok()
}

/// The URL of the database for `path`, which is created if it does not exist. Its owner is an ordinary role: a superuser would
/// not be subject to row-level security.
#[cfg(feature = "postgres")]
pub(crate) async fn database(server: &str, path: &Path) -> String {
    use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

    let name = format!(
        "zeph_{}",
        zeph_tools::audit::chain::hex_digest(path.as_os_str().as_encoded_bytes())
            .get(..24)
            .unwrap()
    );
    let mut admin = sqlx::PgConnection::connect(&format!("{server}&dbname=postgres"))
        .await
        .unwrap();
    let created = format!("CREATE ROLE {name} LOGIN");
    // Another process of the same test may be faster.
    let _ = admin.execute(AssertSqlSafe(created)).await;
    let created = format!("CREATE DATABASE {name} OWNER {name}");
    let _ = admin.execute(AssertSqlSafe(created)).await;
    format!("{server}&user={name}&dbname={name}")
}

/// Runs a statement on the database of `path`, next to the store.
pub(crate) async fn execute(path: &Path, sql: &'static str) -> Result<(), sqlx::Error> {
    #[cfg(feature = "postgres")]
    if let Some(server) = server() {
        let mut connection = raw(&server, path).await;
        return sqlx::raw_sql(sql).execute(&mut connection).await.map(drop);
    }
    let mut connection = crate::raw(path).await;
    sqlx::raw_sql(sql).execute(&mut connection).await.map(drop)
}

/// The number that a query on the database of `path` returns.
pub(crate) async fn number(path: &Path, sql: &str) -> i64 {
    let sql = sqlx::AssertSqlSafe(sql);
    #[cfg(feature = "postgres")]
    if let Some(server) = server() {
        let mut connection = raw(&server, path).await;
        return sqlx::query_scalar(sql)
            .fetch_one(&mut connection)
            .await
            .unwrap();
    }
    sqlx::query_scalar(sql)
        .fetch_one(&mut crate::raw(path).await)
        .await
        .unwrap()
}

/// Checks the file of a SQLite database. A server checks its own files.
pub(crate) async fn check_integrity(path: &Path) {
    #[cfg(feature = "postgres")]
    if server().is_some() {
        return;
    }
    let check = sqlx::query_scalar("PRAGMA integrity_check");
    let found: String = check.fetch_one(&mut crate::raw(path).await).await.unwrap();
    assert_eq!(found, "ok");
}

/// A connection without the settings of the store.
#[cfg(feature = "postgres")]
async fn raw(server: &str, path: &Path) -> sqlx::PgConnection {
    use sqlx::Connection as _;
    sqlx::PgConnection::connect(&database(server, path).await)
        .await
        .unwrap()
}
