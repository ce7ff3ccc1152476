//! Copies of a whole store into another one: SQLite to PostgreSQL, and back.
//!
//! Each session is copied in one transaction, and then compared by a hash of all its rows. A copy that is repeated continues: it
//! skips sessions that are the same in the other store, and updates those that grew here. Only rows of the user are copied, not those
//! of users who granted access. Embeddings are not copied; they are computed again when they are needed.

mod audit;
mod tables;
mod update;

use crate::conversation::now;
use crate::database::{Row, Statement, Transaction, Value, query, repeated};
use crate::error::StoreError;
use crate::store::Store;
use tables::{BLOCK, CHILDREN, Fingerprint, MESSAGE, OVERFLOW, SESSION, Table};

/// The result of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Sessions that were copied and are the same in both stores.
    pub copied: u64,
    /// Sessions that the other store had with fewer messages, and that are now the same in both stores.
    pub updated: u64,
    /// Sessions that the other store already had.
    pub present: u64,
    /// Ids of sessions that differ: the other store has another session of the same id, its copy changed there, or this one changed
    /// during the copy.
    pub different: Vec<String>,
    /// Entries of the audit trail that were copied.
    pub entries: u64,
    /// Entries from before the chain, which a shared store does not take.
    pub unchained: u64,
    /// Chains of the audit trail whose copy differs.
    pub broken_chains: Vec<String>,
    /// Facts that were copied.
    pub facts: u64,
    /// Scheduled tasks that were copied.
    pub tasks: u64,
}

impl CopyReport {
    /// Whether the target contains all data of the source.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.different.is_empty() && self.broken_chains.is_empty()
    }
}

/// A session to copy.
struct Source {
    id: String,
    number: i64,
    /// The id of the session that started it.
    parent: Option<String>,
}

impl Store {
    /// Copies everything into `to`, except embeddings. An error leaves complete sessions there; a repeated copy continues.
    ///
    /// # Errors
    /// A failure of either database.
    pub async fn copy_into(&self, to: &Store) -> Result<CopyReport, StoreError> {
        let mut report = CopyReport::default();
        for source in self.sources().await? {
            let expect = self.fingerprint(source.number).await?;
            let changed = match to.number_of(&source.id).await? {
                Some(number) if to.fingerprint(number).await? == expect => {
                    report.present += 1;
                    continue;
                }
                Some(_) => self
                    .update_copy(&source, to)
                    .await?
                    .then_some(&mut report.updated),
                None => {
                    repeated(|| self.copy_one(&source, to)).await?;
                    Some(&mut report.copied)
                }
            };
            let number = to.number_of(&source.id).await?.unwrap_or(0);
            match changed {
                Some(count) if to.fingerprint(number).await? == expect => *count += 1,
                _ => report.different.push(source.id),
            }
        }
        self.copy_facts(to, &mut report).await?;
        self.copy_schedule(to, &mut report).await?;
        self.copy_audit(to, &mut report).await?;
        Ok(report)
    }

    async fn sources(&self) -> Result<Vec<Source>, StoreError> {
        let select = Statement::per_dialect(
            "SELECT s.id, s.number, p.id FROM session s LEFT JOIN session p ON p.number = s.parent ORDER BY s.number",
            "SELECT s.id, s.number, p.id FROM session s LEFT JOIN session p ON p.number = s.parent
             WHERE s.owner = current_user ORDER BY s.number",
        );
        let read = |row: Row| {
            Ok(Source {
                id: row.try_get(0)?,
                number: row.try_get(1)?,
                parent: row.try_get(2)?,
            })
        };
        self.fetch_as(select, read).await
    }

    async fn number_of(&self, id: &str) -> Result<Option<i64>, StoreError> {
        let select = query("SELECT number FROM session WHERE id = ?1").bind(id);
        let found = self.fetch_as(select, |row| row.try_get(0)).await?;
        Ok(found.into_iter().next())
    }

    /// The number of a session of the user.
    async fn own_number_of(&self, id: &str) -> Result<Option<i64>, StoreError> {
        let select = Statement::per_dialect(
            "SELECT number FROM session WHERE id = ?1",
            "SELECT number FROM session WHERE id = ?1 AND owner = current_user",
        );
        let found = self.fetch_as(select.bind(id), |row| row.try_get(0)).await?;
        Ok(found.into_iter().next())
    }

    /// The rows of a table below `parent`.
    async fn rows_of(
        &self,
        table: &Table,
        parent: i64,
    ) -> Result<Vec<Vec<Value<'static>>>, StoreError> {
        let select = query(table.select()).bind(parent);
        self.fetch_as(select, |row| table.read(&row)).await
    }

    /// The hash of all rows of a session.
    async fn fingerprint(&self, session: i64) -> Result<[u8; 32], StoreError> {
        let mut all = Fingerprint::default();
        for table in [&SESSION, &MESSAGE].into_iter().chain(CHILDREN) {
            for values in self.rows_of(table, session).await? {
                all.add(table, &values);
            }
        }
        for entry in self.overflow_numbers(session).await? {
            for values in self.rows_of(&BLOCK, entry).await? {
                all.add(&BLOCK, &values);
            }
        }
        for values in self.rows_of(&OVERFLOW, session).await? {
            all.add(&OVERFLOW, &values);
        }
        Ok(all.finish())
    }

    async fn overflow_numbers(&self, session: i64) -> Result<Vec<i64>, StoreError> {
        let select = query("SELECT number FROM tool_overflow WHERE session = ?1 ORDER BY number");
        self.fetch_as(select.bind(session), |row| row.try_get(0))
            .await
    }

    /// Copies one session in one transaction.
    async fn copy_one(&self, source: &Source, to: &Store) -> Result<(), StoreError> {
        let parent = match &source.parent {
            Some(parent) => to.number_of(parent).await?,
            None => None,
        };
        let rows = self.rows_of(&SESSION, source.number).await?;
        let Some(values) = rows.into_iter().next() else {
            return Ok(());
        };
        let mut transaction = to.begin().await?;
        let insert = Statement::per_dialect(
            "INSERT INTO session (id, project, title, provider, model, created_at, updated_at, window_start, pinned,
                                  known_from, offered_tools, is_renamed, chosen_mode, chosen_provider, chosen_model,
                                  chosen_effort, parent, activity, audit_floor)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     (SELECT coalesce(max(activity), 0) + 1 FROM session),
                     (SELECT coalesce(max(id), 0) FROM tool_audit))
             RETURNING number",
            "INSERT INTO session (id, project, title, provider, model, created_at, updated_at, window_start, pinned,
                                  known_from, offered_tools, is_renamed, chosen_mode, chosen_provider, chosen_model,
                                  chosen_effort, parent, audit_floor)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     (SELECT coalesce(max(id), 0) FROM tool_audit))
             RETURNING number",
        );
        let updated_at = values.get(6).cloned();
        let insert = values.into_iter().fold(insert, Statement::bind);
        let number = to
            .returned(transaction.as_mut(), insert.bind(parent))
            .await?;
        for table in std::iter::once(&MESSAGE).chain(CHILDREN) {
            let rows = self.rows_of(table, source.number).await?;
            table.add(transaction.as_mut(), number, rows).await?;
        }
        to.index_long(transaction.as_mut(), number).await?;
        self.add_overflow(source.number, to, transaction.as_mut(), number, |_| true)
            .await?;
        // Appended messages changed it.
        if let Some(updated_at) = updated_at {
            let update = query("UPDATE session SET updated_at = ?2 WHERE number = ?1");
            transaction
                .fetch(update.bind(number).bind(updated_at))
                .await?;
        }
        transaction.commit().await
    }

    /// Adds the stored outputs of the session `from` that `is_new` accepts to the session `number` of `to`.
    async fn add_overflow(
        &self,
        from: i64,
        to: &Store,
        transaction: &mut dyn Transaction,
        number: i64,
        is_new: impl Fn(&Vec<Value<'static>>) -> bool + Send,
    ) -> Result<(), StoreError> {
        let entries = self.rows_of(&OVERFLOW, from).await?;
        let numbers = self.overflow_numbers(from).await?;
        for (values, entry) in entries.into_iter().zip(numbers) {
            if !is_new(&values) {
                continue;
            }
            let insert = query(format!("{} RETURNING number", OVERFLOW.insert())).bind(number);
            let insert = values.into_iter().fold(insert, Statement::bind);
            let copy = to.returned(transaction, insert).await?;
            let blocks = self.rows_of(&BLOCK, entry).await?;
            BLOCK.add(transaction, copy, blocks).await?;
        }
        Ok(())
    }

    /// The number that an inserted row has.
    async fn returned(
        &self,
        transaction: &mut dyn Transaction,
        insert: Statement<'_>,
    ) -> Result<i64, StoreError> {
        let rows = transaction.fetch(insert).await?;
        let number = rows.first().map(|row| row.try_get(0)).transpose();
        Ok(number.map_err(|error| self.sql(error))?.unwrap_or(0))
    }

    async fn copy_facts(&self, to: &Store, report: &mut CopyReport) -> Result<(), StoreError> {
        let select = Statement::per_dialect(
            "SELECT content, session, project, saved_at FROM memory ORDER BY number",
            "SELECT content, session, project, saved_at FROM memory
             WHERE owner = current_user ORDER BY number",
        );
        for row in self.fetch(select).await? {
            let insert = query(
                "INSERT INTO memory (content, session, project, saved_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING RETURNING number",
            );
            let values = || -> Result<_, sqlx::Error> {
                let insert = insert.bind(row.try_get::<String, _>(0)?);
                let insert = insert.bind(row.try_get::<String, _>(1)?);
                let insert = insert.bind(row.try_get::<String, _>(2)?);
                Ok(insert.bind(row.try_get::<i64, _>(3)?))
            };
            let insert = values().map_err(|error| self.sql(error))?;
            report.facts += to.write(insert, 0).await?.len() as u64;
        }
        Ok(())
    }

    /// Copies the tasks that are not over. Their runs belong to the machine that ran them.
    async fn copy_schedule(&self, to: &Store, report: &mut CopyReport) -> Result<(), StoreError> {
        let select = Statement::per_dialect(
            "SELECT project, prompt, said, cron, zone, next_at, created_at FROM schedule
             WHERE next_at IS NOT NULL AND next_at > ?1 ORDER BY id",
            "SELECT project, prompt, said, cron, zone, next_at, created_at FROM schedule
             WHERE next_at IS NOT NULL AND next_at > ?1 AND owner = current_user ORDER BY id",
        );
        for row in self.fetch(select.bind(now())).await? {
            let insert = query(
                "INSERT INTO schedule (project, prompt, said, cron, zone, next_at, created_at)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
                 WHERE NOT EXISTS (SELECT 1 FROM schedule WHERE project = ?1 AND prompt = ?2 AND created_at = ?7)
                 RETURNING id",
            );
            let values = || -> Result<_, sqlx::Error> {
                let insert = insert.bind(row.try_get::<String, _>(0)?);
                let insert = insert.bind(row.try_get::<String, _>(1)?);
                let insert = insert.bind(row.try_get::<String, _>(2)?);
                let insert = insert.bind(row.try_get::<Option<String>, _>(3)?);
                let insert = insert.bind(row.try_get::<String, _>(4)?);
                let insert = insert.bind(row.try_get::<Option<i64>, _>(5)?);
                Ok(insert.bind(row.try_get::<i64, _>(6)?))
            };
            let insert = values().map_err(|error| self.sql(error))?;
            report.tasks += to.write(insert, 0).await?.len() as u64;
        }
        Ok(())
    }
}
