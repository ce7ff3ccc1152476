//! The audit trail in SQLite: the table `tool_audit`, which only grows.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, query};
use zeph_tools::{AuditEntry, AuditError, AuditSink};

use crate::conversation::{count, integer};
use crate::error::StoreError;
use crate::store::Store;

/// Writes audit entries to the database.
#[derive(Debug, Clone)]
pub struct SqliteAudit {
    store: Store,
}

impl SqliteAudit {
    /// A sink that writes to `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

#[async_trait]
impl AuditSink for SqliteAudit {
    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        let call = entry.call.to_string();
        let repairs = Value::from(entry.repairs.as_slice()).to_string();
        let bytes = call.len() + repairs.len();
        let insert = query(
            "INSERT INTO tool_audit (ts, session, call_id, tool, call, result, result_digest,
                 result_size, trust, approved_by, phase, duration_ms, exit_code, truncated,
                 error_category, attempts, cached, claim_source, repairs, caller_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 ?18, ?19, ?20)",
        )
        .bind(entry.ts)
        .bind(entry.session.as_str())
        .bind(entry.call_id.as_str())
        .bind(entry.tool.as_str())
        .bind(call)
        .bind(entry.result.as_str())
        .bind(entry.result_digest.as_str())
        .bind(integer(entry.result_size))
        .bind(entry.trust.as_str())
        .bind(entry.approved_by.as_str())
        .bind(entry.phase.as_str())
        .bind(integer(entry.duration_ms))
        .bind(entry.exit_code)
        .bind(entry.truncated)
        .bind(entry.error_category)
        .bind(entry.attempts)
        .bind(entry.cached)
        .bind(entry.claim_source.as_deref())
        .bind(repairs)
        .bind(entry.caller_id.as_deref());
        match self.store.write(insert, bytes).await {
            Ok(_) => Ok(()),
            Err(error) => Err(AuditError(error.to_string())),
        }
    }
}

/// An entry as it was appended; [`AuditEntry`] says what the fields mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `AuditEntry`")]
pub struct StoredAudit {
    /// Its place in the trail: 1, 2, 3, …
    pub id: i64,
    pub ts: i64,
    pub session: String,
    pub call_id: String,
    pub tool: String,
    pub call: Value,
    pub result: String,
    pub result_digest: String,
    pub result_size: u64,
    pub trust: String,
    pub approved_by: String,
    pub phase: String,
    pub duration_ms: u64,
    pub exit_code: Option<i32>,
    pub truncated: Option<bool>,
    pub error_category: Option<String>,
    pub attempts: u32,
    pub cached: bool,
    pub claim_source: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<String>,
}

fn entry_of(row: &SqliteRow) -> Result<StoredAudit, sqlx::Error> {
    let json = |column: &str| -> Result<Value, sqlx::Error> {
        serde_json::from_str(row.try_get::<&str, _>(column)?)
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))
    };
    Ok(StoredAudit {
        id: row.try_get("id")?,
        ts: row.try_get("ts")?,
        session: row.try_get("session")?,
        call_id: row.try_get("call_id")?,
        tool: row.try_get("tool")?,
        call: json("call")?,
        result: row.try_get("result")?,
        result_digest: row.try_get("result_digest")?,
        result_size: count(row.try_get("result_size")?),
        trust: row.try_get("trust")?,
        approved_by: row.try_get("approved_by")?,
        phase: row.try_get("phase")?,
        duration_ms: count(row.try_get("duration_ms")?),
        exit_code: row.try_get("exit_code")?,
        truncated: row.try_get("truncated")?,
        error_category: row.try_get("error_category")?,
        attempts: row.try_get("attempts")?,
        cached: row.try_get("cached")?,
        claim_source: row.try_get("claim_source")?,
        repairs: serde_json::from_value(json("repairs")?)
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        caller_id: row.try_get("caller_id")?,
    })
}

impl Store {
    /// The last `limit` entries of the audit trail, of one session or of all, the oldest first.
    /// Entries of deleted sessions are among them.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn audit_entries(
        &self,
        session: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredAudit>, StoreError> {
        let select = match session {
            Some(session) => {
                query("SELECT * FROM tool_audit WHERE session = ?2 ORDER BY id DESC LIMIT ?1")
                    .bind(limit)
                    .bind(session)
            }
            None => query("SELECT * FROM tool_audit ORDER BY id DESC LIMIT ?1").bind(limit),
        };
        let rows = self.fetch(select).await?;
        rows.iter()
            .rev()
            .map(|row| entry_of(row).map_err(|error| self.sql(error)))
            .collect()
    }
}
