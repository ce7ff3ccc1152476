//! Queries of the audit trail.

use sha2::{Digest as _, Sha256};
use zeph_tools::audit::chain::{Fields, Link, hex};

use crate::database::{Row, Statement, query};
use crate::error::StoreError;
use crate::store::Store;

/// How many rows are read at a time.
const PAGE: u32 = 1000;

/// A stored audit entry; `AuditEntry` documents the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `AuditEntry`")]
#[non_exhaustive]
pub struct StoredAudit {
    /// Its place in the table: 1, 2, 3, …
    pub id: i64,
    /// Its place in the chain and its hash; `None` for an entry from before the chain.
    pub link: Option<Link>,
    /// The hash of the entry before.
    pub prev: Option<String>,
    pub ts: i64,
    pub session: String,
    pub call_id: String,
    pub tool: String,
    /// JSON.
    pub call: String,
    pub result: String,
    pub result_digest: String,
    pub result_size: i64,
    pub trust: String,
    pub approved_by: String,
    pub phase: String,
    pub duration_ms: i64,
    pub exit_code: Option<i64>,
    pub truncated: Option<bool>,
    pub error_category: Option<String>,
    pub attempts: i64,
    pub cached: bool,
    pub adversarial_policy_decision: Option<String>,
    pub claim_source: Option<String>,
    /// A JSON array.
    pub repairs: String,
    pub caller_id: Option<String>,
    pub policy_match: Option<String>,
}

impl StoredAudit {
    /// Returns the fields in canonical order.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        Fields {
            ts: self.ts,
            session: &self.session,
            call_id: &self.call_id,
            tool: &self.tool,
            call: &self.call,
            result: &self.result,
            result_digest: &self.result_digest,
            result_size: self.result_size,
            trust: &self.trust,
            approved_by: &self.approved_by,
            phase: &self.phase,
            duration_ms: self.duration_ms,
            exit_code: self.exit_code,
            truncated: self.truncated,
            error_category: self.error_category.as_deref(),
            attempts: self.attempts,
            cached: self.cached,
            adversarial_policy_decision: self.adversarial_policy_decision.as_deref(),
            claim_source: self.claim_source.as_deref(),
            repairs: &self.repairs,
            caller_id: self.caller_id.as_deref(),
            policy_match: self.policy_match.as_deref(),
        }
    }

    /// Returns the line of JSON that is hashed, with that hash.
    #[must_use]
    pub fn line(&self) -> String {
        let before = self
            .link
            .as_ref()
            .zip(self.prev.as_ref())
            .map(|(link, prev)| Link {
                seq: link.seq.saturating_sub(1),
                hash: prev.clone(),
            });
        let mut line = self.fields().body(before.as_ref());
        match &self.link {
            Some(link) => {
                line.push_str(",\"hash\":\"");
                line.push_str(&link.hash);
                line.push_str("\"}");
            }
            None => line.push_str(",\"hash\":null}"),
        }
        line
    }
}

/// A filter of audit entries.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Of this tool.
    pub tool: Option<String>,
    /// Of conversations with this prefix of their id.
    pub session: Option<String>,
    /// That ended so.
    pub result: Option<String>,
    /// Of calls that ended at this time or later: milliseconds since the Unix epoch.
    pub since: Option<i64>,
    /// Behind the entry with this `id`.
    pub after: i64,
}

/// The writer of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The name of its chain: the hash that precedes the first entry.
    pub chain: String,
    /// The role of the writer on a server; empty in a SQLite database.
    pub owner: String,
    /// The machine of the first entry; empty in a SQLite database.
    pub host: String,
}

/// The last row of a chain.
#[derive(Debug)]
pub(super) struct LastRow {
    pub(super) link: Option<Link>,
}

/// The entries from before the chain.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unchained {
    pub(super) entries: u64,
    pub(super) digest: String,
}

/// Hashes the entries from before the chain, in order.
#[derive(Default)]
pub(super) struct UnchainedHash {
    entries: u64,
    hash: Sha256,
}

impl UnchainedHash {
    pub(super) fn take(&mut self, entry: &StoredAudit) {
        self.entries += 1;
        self.hash.update(entry.fields().body(None).as_bytes());
        self.hash.update(b"\n");
    }

    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    pub(super) fn finish(self) -> Unchained {
        Unchained {
            entries: self.entries,
            digest: hex(&self.hash.finalize()),
        }
    }
}

impl Store {
    /// The last `limit` entries of the audit trail that pass `filter`, the oldest first. Entries of
    /// deleted sessions are among them.
    ///
    /// # Errors
    /// A failure of the database; an entry that is damaged.
    pub async fn audit_entries(
        &self,
        filter: &AuditFilter,
        limit: u32,
    ) -> Result<Vec<StoredAudit>, StoreError> {
        let select = query(
            "SELECT * FROM tool_audit
             WHERE id > ?1 AND (?2 IS NULL OR substr(session, 1, length(?2)) = ?2) AND (?3 IS NULL OR tool = ?3)
                 AND (?4 IS NULL OR result = ?4) AND (?5 IS NULL OR ts >= ?5)
             ORDER BY id DESC LIMIT ?6",
        )
        .bind(filter.after)
        .bind(filter.session.as_deref())
        .bind(filter.tool.as_deref())
        .bind(filter.result.as_deref())
        .bind(filter.since)
        .bind(limit);
        let mut entries = self.audit_rows(select).await?;
        entries.reverse();
        Ok(entries)
    }

    /// The first entries of a chain after the one with this `id`, at most one page. The chain of a SQLite database has no
    /// `writer`.
    pub(super) async fn audit_page(
        &self,
        writer: Option<&str>,
        after: i64,
    ) -> Result<Vec<StoredAudit>, StoreError> {
        let select = query(
            "SELECT * FROM tool_audit WHERE id > ?1 AND writer IS NOT DISTINCT FROM ?3 ORDER BY id LIMIT ?2",
        );
        self.audit_rows(select.bind(after).bind(PAGE).bind(writer))
            .await
    }

    /// The chains of other writers, in the order of their first entries.
    pub(crate) async fn other_chains(&self, own: Option<&str>) -> Result<Vec<Writer>, StoreError> {
        let select = Statement::per_dialect(
            "SELECT writer, '', '' FROM tool_audit WHERE writer IS NOT NULL AND writer IS DISTINCT FROM ?1
             GROUP BY writer ORDER BY min(id)",
            "SELECT writer, owner, min(host) FROM tool_audit WHERE writer IS DISTINCT FROM ?1
             GROUP BY writer, owner ORDER BY min(id)",
        );
        let read = |row: Row| {
            Ok(Writer {
                chain: row.try_get(0)?,
                owner: row.try_get(1)?,
                host: row.try_get(2)?,
            })
        };
        self.fetch_as(select.bind(own), read).await
    }

    async fn audit_rows(&self, select: Statement<'_>) -> Result<Vec<StoredAudit>, StoreError> {
        let rows = self.fetch(select).await?;
        rows.iter()
            .map(|row| entry_of(row).map_err(|error| self.sql(error)))
            .collect()
    }

    /// The last row of a chain; `None` in an empty one.
    pub(super) async fn last_audit(
        &self,
        writer: Option<&str>,
    ) -> Result<Option<LastRow>, StoreError> {
        let select = query(
            "SELECT seq, hash FROM tool_audit WHERE writer IS NOT DISTINCT FROM ?1 ORDER BY id DESC LIMIT 1",
        );
        let rows = self.fetch(select.bind(writer)).await?;
        let last = rows.first().map(|row| Ok(LastRow { link: link(row)? }));
        last.transpose().map_err(|error| self.sql(error))
    }

    /// Whether there is an entry with this number and this hash.
    pub(super) async fn has_audit(
        &self,
        writer: Option<&str>,
        link: &Link,
    ) -> Result<bool, StoreError> {
        // The search starts at the end, where the entry usually is.
        let select = query(
            "SELECT hash FROM tool_audit WHERE seq = ?1 AND writer IS NOT DISTINCT FROM ?2
             ORDER BY id DESC LIMIT 1",
        );
        let select = select.bind(i64::try_from(link.seq).unwrap_or(i64::MAX));
        let select = select.bind(writer);
        let rows = self.fetch(select).await?;
        let hash: Option<String> = match rows.first() {
            Some(row) => row.try_get(0).map_err(|error| self.sql(error))?,
            None => None,
        };
        Ok(hash.as_ref() == Some(&link.hash))
    }

    /// The name of the chain of a SQLite database, which is the predecessor of its first entry.
    pub(crate) async fn audit_name(&self) -> Result<String, StoreError> {
        let select = query(
            "SELECT prev FROM tool_audit WHERE seq IS NOT NULL AND writer IS NULL ORDER BY id LIMIT 1",
        );
        let rows = self.fetch(select).await?;
        let name: Option<String> = match rows.first() {
            Some(row) => row.try_get(0).map_err(|error| self.sql(error))?,
            None => None,
        };
        Ok(name.unwrap_or_default())
    }

    /// All entries from before the chain.
    pub(super) async fn unchained_audit(&self) -> Result<Unchained, StoreError> {
        let mut all = UnchainedHash::default();
        let mut after = i64::MIN;
        loop {
            let page = self.audit_page(None, after).await?;
            let Some(last) = page.last() else {
                return Ok(all.finish());
            };
            after = last.id;
            for entry in page.iter().take_while(|entry| entry.link.is_none()) {
                all.take(entry);
            }
        }
    }

    /// The number of calls that were allowed to run and have no entry yet.
    pub(super) async fn audit_intents(&self) -> Result<i64, StoreError> {
        let rows = self
            .fetch(query("SELECT count(*) FROM tool_audit_intent"))
            .await?;
        match rows.first() {
            Some(row) => row.try_get(0).map_err(|error| self.sql(error)),
            None => Ok(0),
        }
    }

    /// The number of missing triggers that protect the trail from changes.
    pub(super) async fn missing_audit_triggers(&self) -> Result<i64, StoreError> {
        let select = Statement::per_dialect(
            "SELECT 3 - count(*) FROM sqlite_schema WHERE type = 'trigger' AND name IN
                 ('tool_audit_is_not_edited', 'tool_audit_is_not_deleted', 'tool_audit_is_chained')",
            "SELECT 3 - count(*) FROM pg_trigger WHERE tgrelid = 'tool_audit'::regclass AND tgenabled = 'O'
                 AND tgname IN ('tool_audit_is_not_edited', 'tool_audit_is_not_deleted', 'tool_audit_is_chained')",
        );
        let rows = self.fetch(select).await?;
        match rows.first() {
            Some(row) => row.try_get(0).map_err(|error| self.sql(error)),
            None => Ok(0),
        }
    }
}

fn link(row: &Row) -> Result<Option<Link>, sqlx::Error> {
    let seq: Option<i64> = row.try_get("seq")?;
    let hash: Option<String> = row.try_get("hash")?;
    Ok(seq.zip(hash).map(|(seq, hash)| Link {
        seq: u64::try_from(seq).unwrap_or(0),
        hash,
    }))
}

fn entry_of(row: &Row) -> Result<StoredAudit, sqlx::Error> {
    Ok(StoredAudit {
        id: row.try_get("id")?,
        link: link(row)?,
        prev: row.try_get("prev")?,
        ts: row.try_get("ts")?,
        session: row.try_get("session")?,
        call_id: row.try_get("call_id")?,
        tool: row.try_get("tool")?,
        call: row.try_get("call")?,
        result: row.try_get("result")?,
        result_digest: row.try_get("result_digest")?,
        result_size: row.try_get("result_size")?,
        trust: row.try_get("trust")?,
        approved_by: row.try_get("approved_by")?,
        phase: row.try_get("phase")?,
        duration_ms: row.try_get("duration_ms")?,
        exit_code: row.try_get("exit_code")?,
        truncated: row.try_get_bool("truncated")?,
        error_category: row.try_get("error_category")?,
        attempts: row.try_get("attempts")?,
        cached: row.try_get_bool("cached")?.unwrap_or(false),
        adversarial_policy_decision: row.try_get("adversarial_policy_decision")?,
        claim_source: row.try_get("claim_source")?,
        repairs: row.try_get("repairs")?,
        caller_id: row.try_get("caller_id")?,
        policy_match: row.try_get("policy_match")?,
    })
}
