//! Transactions on a server that fail because of other ones.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use zeph_memory::{SqliteUndo, Store};

use super::shared::shared;
use crate::message;
use crate::undo::{deletion, record};

/// Lets the next `times` inserts into `table` fail with the SQLSTATE `code`: each insert itself, or the end of its
/// transaction.
async fn fail(url: &str, table: &str, code: &str, times: u32, at_commit: bool) {
    let (when, kind) = match at_commit {
        true => ("AFTER", "CONSTRAINT TRIGGER"),
        false => ("BEFORE", "TRIGGER"),
    };
    let deferred = match at_commit {
        true => "DEFERRABLE INITIALLY DEFERRED",
        false => "",
    };
    // The values of a sequence remain after a rollback.
    let sql = format!(
        "DROP TRIGGER IF EXISTS conflict ON {table};
         DROP SEQUENCE IF EXISTS conflicts;
         CREATE SEQUENCE conflicts;
         CREATE OR REPLACE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF nextval('conflicts') <= {times} THEN
                 RAISE EXCEPTION 'a conflict' USING ERRCODE = '{code}';
             END IF;
             RETURN NEW;
         END $$;
         CREATE {kind} conflict {when} INSERT ON {table} {deferred} FOR EACH ROW EXECUTE FUNCTION conflict();"
    );
    let mut raw = sqlx::PgConnection::connect(url).await.unwrap();
    raw.execute(AssertSqlSafe(sql)).await.unwrap();
}

async fn count(url: &str, table: &str) -> i64 {
    let mut raw = sqlx::PgConnection::connect(url).await.unwrap();
    let select = format!("SELECT count(*) FROM {table}");
    let found = sqlx::query_scalar(AssertSqlSafe(select)).fetch_one(&mut raw);
    found.await.unwrap()
}

/// Proves OPS-3: a deadlock or a failed serialization costs nothing: the transaction runs again, and has its effect once.
#[tokio::test]
async fn transaction_runs_again_after_a_conflict() {
    let (_folder, store, url) = shared().await;
    for (number, (code, at_commit)) in [("40001", false), ("40001", true), ("40P01", false)]
        .into_iter()
        .enumerate()
    {
        fail(&url, "tool_overflow_block", code, 3, at_commit).await;
        let entry = crate::overflow::entry("s", "a line\n");
        store.put_overflow(&entry).await.unwrap();
        let expect = i64::try_from(number + 1).unwrap();
        assert_eq!(count(&url, "tool_overflow").await, expect, "{code}");
        assert_eq!(count(&url, "tool_overflow_block").await, expect, "{code}");
    }
}

/// Proves OPS-3: the attempts are bounded, and a transaction that fails has no effect.
#[tokio::test]
async fn conflict_that_remains_is_an_error() {
    let (_folder, store, url) = shared().await;
    fail(&url, "tool_overflow_block", "40001", 1000, false).await;
    let entry = crate::overflow::entry("s", "a line\n");
    let error = store.put_overflow(&entry).await.unwrap_err();
    assert!(error.to_string().contains("a conflict"), "{error}");
    assert_eq!(count(&url, "tool_overflow").await, 0);
    let attempts = "(SELECT last_value FROM conflicts) t, generate_series(1, last_value)";
    let attempts = count(&url, attempts).await;
    assert!((2..=10).contains(&attempts), "{attempts}");
}

/// Proves OPS-3: another error of a transaction is final at the first attempt.
#[tokio::test]
async fn other_error_is_not_repeated() {
    let (_folder, store, url) = shared().await;
    fail(&url, "tool_overflow_block", "23514", 1, false).await;
    let entry = crate::overflow::entry("s", "a line\n");
    store.put_overflow(&entry).await.unwrap_err();
    store.put_overflow(&entry).await.unwrap();
    assert_eq!(count(&url, "tool_overflow").await, 1);
}

/// Proves OPS-3: the other transactions of the store run again too.
#[tokio::test]
async fn every_kind_of_transaction_runs_again() {
    let (_folder, store, url) = shared().await;
    let append = async |store: &Store| {
        store
            .append_message("s", message("user", "text"))
            .await
            .unwrap();
    };
    append(&store).await;
    fail(&url, "message", "40001", 2, false).await;
    store
        .copy_session("s", "t", std::path::Path::new("/p"))
        .await
        .unwrap();
    assert_eq!(store.all_messages("t").await.unwrap().len(), 1);

    // The second change needs the room of the first one.
    let journal = SqliteUndo::new(store.clone(), 150_000);
    let change = deletion("f", (0..=255).cycle().take(100_000).collect());
    record(&journal, "a", Ok(&change)).await;
    fail(&url, "undo_change", "40P01", 2, true).await;
    record(&journal, "b", Ok(&change)).await;
    let changes = store.undo_changes("s", 9).await.unwrap();
    let lost: Vec<bool> = changes.iter().map(|it| it.lost.is_some()).collect();
    assert_eq!(lost, [false, true]);
}
