//! Copies of the audit trail: each chain keeps its name, its numbers and its hashes.

use super::CopyReport;
use super::tables::AUDIT;
use crate::audit::{own_writer, verify_other_chains};
use crate::database::{Statement, query};
use crate::error::StoreError;
use crate::store::Store;

/// Entries that are copied in one transaction.
const BATCH: i64 = 500;

/// A chain in the store that is copied.
struct Chain {
    /// Its writer in that store; `None` is the chain of a SQLite database.
    writer: Option<String>,
    name: String,
}

impl Store {
    pub(super) async fn copy_audit(
        &self,
        to: &Store,
        report: &mut CopyReport,
    ) -> Result<(), StoreError> {
        let own_there = to.own_chain().await?;
        for chain in self.chains().await? {
            // The chain of the other store itself has all its entries there.
            if own_there.as_deref() == Some(&chain.name) {
                continue;
            }
            report.entries += self.copy_chain(&chain, to).await?;
        }
        if !self.is_shared() {
            let count = "SELECT count(*) FROM tool_audit WHERE seq IS NULL";
            let found: Vec<i64> = self.fetch_as(query(count), |row| row.try_get(0)).await?;
            report.unchained = found.first().map_or(0, |found| found.unsigned_abs());
        }
        for (writer, verdict) in verify_other_chains(to).await? {
            if verdict.wrong.is_some() {
                report.broken_chains.push(writer.chain);
            }
        }
        Ok(())
    }

    /// The name of the chain that this machine writes to the store; `None` without entries.
    async fn own_chain(&self) -> Result<Option<String>, StoreError> {
        let name = match self.is_shared() {
            true => own_writer(self, self.audit_head().read().ok().flatten().as_ref()),
            false => Some(self.audit_name().await?),
        };
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// The user of a server.
    async fn user(&self) -> Result<String, StoreError> {
        let select = query("SELECT CAST(current_user AS TEXT)");
        let found = self.fetch_as(select, |row| row.try_get(0)).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// The chains of the user.
    async fn chains(&self) -> Result<Vec<Chain>, StoreError> {
        let own = self.own_chain().await?;
        let writer = own.clone().filter(|_| self.is_shared());
        let others = self.other_chains(writer.as_deref()).await?;
        let user = match self.is_shared() {
            true => self.user().await?,
            false => String::new(),
        };
        let own = own.map(|name| Chain { writer, name });
        // Other users grant access to theirs.
        let others = others.into_iter().filter(|writer| writer.owner == user);
        let others = others.map(|writer| Chain {
            name: writer.chain.clone(),
            writer: Some(writer.chain),
        });
        Ok(own.into_iter().chain(others).collect())
    }

    /// Copies the entries that the other store lacks, and returns their number.
    async fn copy_chain(&self, chain: &Chain, to: &Store) -> Result<u64, StoreError> {
        let last = query("SELECT coalesce(max(seq), 0) FROM tool_audit WHERE writer = ?1");
        let last: Vec<i64> = to
            .fetch_as(last.bind(&chain.name), |row| row.try_get(0))
            .await?;
        let mut last = last.first().copied().unwrap_or(0);
        let mut copied = 0;
        loop {
            let select = query(AUDIT.page()).bind(chain.writer.as_deref());
            let select = select.bind(last).bind(BATCH);
            let page = self
                .fetch_as(select, |row| {
                    Ok((row.try_get::<i64, _>("seq")?, AUDIT.read(&row)?))
                })
                .await?;
            let Some((end, _)) = page.last() else {
                return Ok(copied);
            };
            last = *end;
            copied += page.len() as u64;
            let mut transaction = to.begin().await?;
            for (_, values) in page {
                let insert = query(AUDIT.insert()).bind(&chain.name);
                transaction
                    .fetch(values.into_iter().fold(insert, Statement::bind))
                    .await?;
            }
            transaction.commit().await?;
        }
    }
}
