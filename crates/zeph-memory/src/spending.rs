//! Costs of a session for models: the table `spending`.

use serde::Serialize;

use crate::conversation::{count, integer};
use crate::database::{Row, Statement, query};
use crate::error::StoreError;
use crate::store::Store;

/// The costs of a session for one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredSpending {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name as sent.
    pub model: String,
    /// Requests with a response.
    pub requests: u64,
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// The part of `input_tokens` that came from the provider's cache.
    pub cached_tokens: u64,
    /// The part of `input_tokens` that was written to the provider's cache.
    pub cache_write_tokens: u64,
    /// The cost of requests with a known price, in billionths of a US dollar.
    pub cost_nanos: u64,
    /// The number of requests without a known price.
    pub unpriced: u64,
}

fn spending_of(row: &Row) -> Result<StoredSpending, sqlx::Error> {
    Ok(StoredSpending {
        provider: row.try_get(0)?,
        model: row.try_get(1)?,
        requests: count(row.try_get(2)?),
        input_tokens: count(row.try_get(3)?),
        output_tokens: count(row.try_get(4)?),
        cached_tokens: count(row.try_get(5)?),
        cache_write_tokens: count(row.try_get(6)?),
        cost_nanos: count(row.try_get(7)?),
        unpriced: count(row.try_get(8)?),
    })
}

impl Store {
    /// Adds costs to those of the session for the same model.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database; then nothing is added.
    pub async fn add_spending(
        &self,
        session: &str,
        spent: &StoredSpending,
    ) -> Result<(), StoreError> {
        let insert = query(
            "INSERT INTO spending AS p (session, provider, model, requests, input_tokens, output_tokens,
                                   cached_tokens, cache_write_tokens, cost_nanos, unpriced)
             SELECT number, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM session WHERE id = ?1
             ON CONFLICT (session, provider, model) DO UPDATE SET
                 requests = p.requests + excluded.requests,
                 input_tokens = p.input_tokens + excluded.input_tokens,
                 output_tokens = p.output_tokens + excluded.output_tokens,
                 cached_tokens = p.cached_tokens + excluded.cached_tokens,
                 cache_write_tokens = p.cache_write_tokens + excluded.cache_write_tokens,
                 cost_nanos = p.cost_nanos + excluded.cost_nanos,
                 unpriced = p.unpriced + excluded.unpriced
             RETURNING session",
        );
        let insert = insert
            .bind(session)
            .bind(spent.provider.clone())
            .bind(spent.model.clone())
            .bind(integer(spent.requests))
            .bind(integer(spent.input_tokens))
            .bind(integer(spent.output_tokens))
            .bind(integer(spent.cached_tokens))
            .bind(integer(spent.cache_write_tokens))
            .bind(integer(spent.cost_nanos))
            .bind(integer(spent.unpriced));
        self.write_to_session(session, insert).await
    }

    /// The costs of a session by model, in the order of their first requests.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn spending(&self, session: &str) -> Result<Vec<StoredSpending>, StoreError> {
        let select = Statement::per_dialect(
            "SELECT p.provider, p.model, p.requests, p.input_tokens, p.output_tokens, p.cached_tokens,
                    p.cache_write_tokens, p.cost_nanos, p.unpriced
             FROM session s JOIN spending p ON p.session = s.number WHERE s.id = ?1 ORDER BY p.rowid",
            "SELECT p.provider, p.model, p.requests, p.input_tokens, p.output_tokens, p.cached_tokens,
                    p.cache_write_tokens, p.cost_nanos, p.unpriced
             FROM session s JOIN spending p ON p.session = s.number WHERE s.id = ?1 ORDER BY p.number",
        );
        let rows = self.fetch(select.bind(session)).await?;
        let spent: Result<Vec<_>, sqlx::Error> = rows.iter().map(spending_of).collect();
        spent.map_err(|error| self.sql(error))
    }
}
