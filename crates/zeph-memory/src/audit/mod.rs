//! The audit trail: the append-only table `tool_audit`, and files of JSON lines. Each sink has a separate hash chain
//! ([`zeph_tools::audit::chain`]).
//!
//! [`head`] stores the last entry of a chain, [`entries`] reads it back, [`verify`] checks it.

pub mod entries;
pub mod head;
pub mod jsonl;
pub mod verify;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use zeph_tools::audit::chain::{self, Fields};
use zeph_tools::audit::{Intent, Link, Sealed};
use zeph_tools::layers::now_ms;
use zeph_tools::{AuditEntry, AuditError, AuditSink};

use crate::database::query;
use crate::error::StoreError;
use crate::store::Store;
use head::{Head, HeadFile, OpenHead, attach};

pub use entries::{AuditFilter, StoredAudit, Writer};
pub use jsonl::JsonlAudit;
pub(crate) use verify::own_writer;
pub use verify::{Verdict, verify_database, verify_file, verify_other_chains};

/// Lost connections after which an entry is given up.
const MAX_LOSSES: usize = 3;

/// Writes audit entries to the database.
#[derive(Debug)]
pub struct SqliteAudit {
    store: Store,
    head: HeadFile,
    /// The chain as this process left it.
    chain: Mutex<Option<Chain>>,
}

/// The end of a chain.
#[derive(Debug, Clone)]
struct Chain {
    name: String,
    /// The hash of the last row there is; `None` for none, or for one from before the chain.
    row: Option<String>,
    /// The link to which the next entry attaches.
    end: Link,
}

impl SqliteAudit {
    /// A sink that writes to `store`, and stores the chain's head next to it.
    #[must_use]
    pub fn new(store: Store) -> Self {
        let head = store.audit_head();
        Self {
            store,
            head,
            chain: Mutex::new(None),
        }
    }

    /// Appends after all existing entries, including concurrent ones of other processes. The statement inserts only
    /// if the last row is still the one that the entry attaches to.
    async fn chained(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        let mut known = self.chain.lock().await;
        let opened = self.head.open();
        let noted = opened.as_ref().ok().and_then(OpenHead::read);
        let call = entry.call.to_string();
        let repairs = Value::from(entry.repairs.as_slice()).to_string();
        let fields = Fields::of(entry, &call, &repairs);
        let mut losses = 0;
        loop {
            // The head is read before the rows: it may be older than them, and never newer.
            let chain = match known.take() {
                Some(chain) if is_at(noted.as_ref(), &chain.end) => chain,
                _ => self.end_of_chain().await?,
            };
            let sealed = chain::seal(&fields, &chain.end);
            match self.insert(&fields, &sealed, &chain).await {
                Ok(true) => {}
                Ok(false) => continue,
                // The last row shows whether the entry arrived.
                Err(StoreError::ConnectionLost { .. }) if losses < MAX_LOSSES => {
                    losses += 1;
                    let writer = self.writer(&chain.name);
                    let last = self.store.last_audit(writer).await.map_err(failed)?;
                    if last.and_then(|last| last.link).as_ref() != Some(&sealed.link) {
                        continue;
                    }
                }
                Err(error) => return Err(failed(error)),
            }
            let chain = Chain {
                row: Some(sealed.link.hash.clone()),
                end: sealed.link,
                name: chain.name,
            };
            let noted = opened.and_then(|head| head.note(&chain.head()));
            *known = Some(chain);
            return noted.map_err(|error| self.head_failed(&error));
        }
    }

    /// Finds the end of the chain. Rows from before the chain are counted and hashed into its
    /// first entry, so that none can be added, changed or removed later.
    async fn end_of_chain(&self) -> Result<Chain, AuditError> {
        loop {
            let mut noted = self.head.read().ok().flatten();
            if noted.is_none() && self.store.is_shared() {
                // The table does not tell which chain is that of this machine, so its name is written first.
                let begun = self.head.open().and_then(|head| head.begin());
                noted = Some(begun.map_err(|error| self.head_failed(&error))?);
            }
            let writer = own_writer(&self.store, noted.as_ref());
            let writer = writer.as_deref();
            let last = self.store.last_audit(writer).await.map_err(failed)?;
            let end = last.as_ref().and_then(|last| last.link.clone());
            let on_chain = match (&noted, &end) {
                (Some(head), Some(end)) if head.last.seq == end.seq => head.last == *end,
                // The head of a chain that begins has no entry: its name is the writer of all entries.
                (Some(head), Some(_)) if head.last.seq == 0 => self.store.is_shared(),
                (Some(head), Some(_)) => self
                    .store
                    .has_audit(writer, &head.last)
                    .await
                    .map_err(failed)?,
                _ => false,
            };
            let begins = end.is_none();
            let link = attach(noted.as_ref(), end, on_chain);
            let name = match (&noted, begins) {
                (Some(head), _) => head.chain.clone(),
                (None, true) => link.hash.clone(),
                (None, false) => self.store.audit_name().await.map_err(failed)?,
            };
            let chain = Chain {
                name,
                row: last
                    .as_ref()
                    .and_then(|last| Some(last.link.as_ref()?.hash.clone())),
                end: link,
            };
            if last.is_some() && begins && noted.is_none() {
                let unchained = self.store.unchained_audit().await.map_err(failed)?;
                let what = json!({ "unchained": { "entries": unchained.entries, "sha256": unchained.digest } });
                let note = AuditEntry::of_the_trail(now_ms(), what);
                let call = note.call.to_string();
                let fields = Fields::of(&note, &call, "[]");
                let sealed = chain::seal(&fields, &chain.end);
                let inserted = self.insert(&fields, &sealed, &chain).await;
                if !inserted.map_err(failed)? {
                    continue;
                }
                return Ok(Chain {
                    row: Some(sealed.link.hash.clone()),
                    end: sealed.link,
                    ..chain
                });
            }
            return Ok(chain);
        }
    }

    /// The writer of a chain in the table: its name on a server, none in a SQLite database.
    fn writer<'c>(&self, chain: &'c str) -> Option<&'c str> {
        self.store.is_shared().then_some(chain)
    }

    /// Inserts the entry if the last row is still the one that the chain knows; whether it did.
    async fn insert(
        &self,
        fields: &Fields<'_>,
        sealed: &Sealed,
        chain: &Chain,
    ) -> Result<bool, StoreError> {
        let insert = query(
            "INSERT INTO tool_audit (ts, session, call_id, tool, call, result, result_digest,
                 result_size, trust, approved_by, phase, duration_ms, exit_code, truncated,
                 error_category, attempts, cached, adversarial_policy_decision, claim_source,
                 repairs, caller_id, policy_match, seq, prev, hash, writer)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?27
             WHERE (SELECT hash FROM tool_audit WHERE writer IS NOT DISTINCT FROM ?27
                    ORDER BY id DESC LIMIT 1) IS NOT DISTINCT FROM ?26
             ON CONFLICT DO NOTHING
             RETURNING id",
        )
        .bind(fields.ts)
        .bind(fields.session)
        .bind(fields.call_id)
        .bind(fields.tool)
        .bind(fields.call)
        .bind(fields.result)
        .bind(fields.result_digest)
        .bind(fields.result_size)
        .bind(fields.trust)
        .bind(fields.approved_by)
        .bind(fields.phase)
        .bind(fields.duration_ms)
        .bind(fields.exit_code)
        .bind(fields.truncated)
        .bind(fields.error_category)
        .bind(fields.attempts)
        .bind(fields.cached)
        .bind(fields.adversarial_policy_decision)
        .bind(fields.claim_source)
        .bind(fields.repairs)
        .bind(fields.caller_id)
        .bind(fields.policy_match)
        .bind(i64::try_from(sealed.link.seq).unwrap_or(i64::MAX))
        .bind(sealed.prev.as_str())
        .bind(sealed.link.hash.as_str())
        .bind(chain.row.as_deref())
        .bind(self.writer(&chain.name));
        let rows = self.store.write(insert, sealed.line.len()).await;
        rows.map(|rows| !rows.is_empty())
    }

    fn head_failed(&self, error: &std::io::Error) -> AuditError {
        AuditError(format!(
            "the head of the audit chain, {}, cannot be written: {error}; \
             make its folder writable",
            self.head.path().display()
        ))
    }
}

impl Chain {
    fn head(&self) -> Head {
        Head {
            chain: self.name.clone(),
            last: self.end.clone(),
            bytes: 0,
        }
    }
}

/// Whether the chain with the last entry `end` is at the position of `head`, as far as that can be seen.
fn is_at(head: Option<&Head>, end: &Link) -> bool {
    head.is_some_and(|head| head.last == *end)
}

fn failed(error: StoreError) -> AuditError {
    AuditError(error.to_string())
}

#[async_trait]
impl AuditSink for SqliteAudit {
    async fn reserve(&self, intent: Intent<'_>) -> Result<(), AuditError> {
        let insert = query(
            "INSERT INTO tool_audit_intent (session, call_id, tool, ts)
             VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (session, call_id) DO UPDATE SET tool = excluded.tool, ts = excluded.ts",
        )
        .repeatable()
        .bind(intent.session)
        .bind(intent.call_id)
        .bind(intent.tool)
        .bind(now_ms());
        self.store.write(insert, 0).await.map_err(failed)?;
        let opened = self.head.open();
        opened.map(drop).map_err(|error| self.head_failed(&error))
    }

    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        self.chained(entry).await
    }
}
