//! Access to the database without code of the program.

use std::path::Path;

use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions as _, Row as _};

/// The tested fields of an audit entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Audit {
    pub(crate) session: String,
    pub(crate) call_id: String,
    pub(crate) tool: String,
    pub(crate) call: Value,
    pub(crate) result: String,
    pub(crate) error_category: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) approved_by: String,
    pub(crate) phase: String,
    pub(crate) adversarial_policy_decision: Option<String>,
    pub(crate) claim_source: Option<String>,
    pub(crate) repairs: Value,
    pub(crate) caller_id: Option<String>,
    pub(crate) cached: bool,
    pub(crate) attempts: i64,
    pub(crate) trust: String,
    pub(crate) policy_match: Option<String>,
}

/// The audit trail in order of time.
#[track_caller]
pub(crate) fn audit(database: &Path) -> Vec<Audit> {
    let rows = rows(database, "SELECT * FROM tool_audit ORDER BY id");
    let json = |text: String| serde_json::from_str(&text).unwrap();
    rows.iter()
        .map(|row| Audit {
            session: row.get("session"),
            call_id: row.get("call_id"),
            tool: row.get("tool"),
            call: json(row.get("call")),
            result: row.get("result"),
            error_category: row.get("error_category"),
            exit_code: row.get("exit_code"),
            approved_by: row.get("approved_by"),
            phase: row.get("phase"),
            adversarial_policy_decision: row.get("adversarial_policy_decision"),
            claim_source: row.get("claim_source"),
            repairs: json(row.get("repairs")),
            caller_id: row.get("caller_id"),
            cached: row.get("cached"),
            attempts: row.get("attempts"),
            trust: row.get("trust"),
            policy_match: row.get("policy_match"),
        })
        .collect()
}

/// The ids of all sessions in order of creation.
#[track_caller]
pub(crate) fn session_ids(database: &Path) -> Vec<String> {
    let rows = rows(database, "SELECT id FROM session ORDER BY number");
    rows.iter().map(|row| row.get("id")).collect()
}

/// The number of rows of a table.
#[track_caller]
pub(crate) fn count(database: &Path, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    rows(database, sqlx::AssertSqlSafe(sql))[0].get(0)
}

/// The first value of the first row, a text.
#[track_caller]
pub(crate) fn cell(database: &Path, sql: &'static str) -> String {
    rows(database, sql)[0].get(0)
}

/// The stored embeddings by the digest of their text.
#[track_caller]
pub(crate) fn vectors(database: &Path) -> Vec<(String, Vec<u8>)> {
    let sql = "SELECT text, vector FROM embedding ORDER BY text";
    let rows = rows(database, sql);
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Changes the database directly.
#[track_caller]
pub(crate) fn execute(database: &Path, sql: &'static str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new()
            .filename(database)
            .foreign_keys(true);
        let mut connection = options.connect().await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    });
}

#[track_caller]
fn rows(database: &Path, sql: impl sqlx::SqlSafeStr) -> Vec<SqliteRow> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new()
            .filename(database)
            .read_only(true);
        let mut connection = options.connect().await.unwrap();
        sqlx::query(sql).fetch_all(&mut connection).await.unwrap()
    })
}
