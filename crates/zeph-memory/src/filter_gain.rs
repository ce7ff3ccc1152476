//! Savings of filters by rule, as sums over all sessions.

use serde::Serialize;

use crate::conversation::{count, integer};
use crate::database::{Row, Statement, query};
use crate::error::StoreError;
use crate::store::Store;

/// The statistics of one filter rule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FilterGain {
    /// The name of the rule.
    pub rule: String,
    /// The number of outputs that it recognized completely.
    pub full: u64,
    /// The number of truncated outputs.
    pub partial: u64,
    /// The number of outputs that it did not recognize.
    pub fallback: u64,
    /// The size of the raw outputs in bytes.
    pub bytes_before: u64,
    /// The size of the filtered outputs in bytes.
    pub bytes_after: u64,
    /// The number of repeated runs of the same command within a minute, without another call in between.
    pub reruns: u64,
    /// The number of requests for the raw output.
    pub recalls: u64,
}

/// The statement that adds to the sums of a rule, which `$key` identifies.
macro_rules! add_gain {
    ($key:literal) => {
        concat!(
            "INSERT INTO filter_gain AS g (rule, \"full\", partial, fallback, bytes_before, bytes_after, reruns,
                 recalls)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (",
            $key,
            ") DO UPDATE SET \"full\" = g.\"full\" + excluded.\"full\",
                 partial = g.partial + excluded.partial, fallback = g.fallback + excluded.fallback,
                 bytes_before = g.bytes_before + excluded.bytes_before,
                 bytes_after = g.bytes_after + excluded.bytes_after,
                 reruns = g.reruns + excluded.reruns, recalls = g.recalls + excluded.recalls"
        )
    };
}

impl Store {
    /// Adds to the sums of a rule.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn add_filter_gain(&self, gain: &FilterGain) -> Result<(), StoreError> {
        let insert = Statement::per_dialect(add_gain!("rule"), add_gain!("owner, rule"))
            .bind(gain.rule.as_str())
            .bind(integer(gain.full))
            .bind(integer(gain.partial))
            .bind(integer(gain.fallback))
            .bind(integer(gain.bytes_before))
            .bind(integer(gain.bytes_after))
            .bind(integer(gain.reruns))
            .bind(integer(gain.recalls));
        self.write(insert, gain.rule.len()).await?;
        Ok(())
    }

    /// Returns the sums of all rules, those that saved most first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn filter_gains(&self) -> Result<Vec<FilterGain>, StoreError> {
        let select =
            query("SELECT * FROM filter_gain ORDER BY bytes_before - bytes_after DESC, rule");
        let rows = self.fetch(select).await?;
        let gains = rows
            .iter()
            .map(|row| gain_of(row).map_err(|error| self.sql(error)));
        gains.collect()
    }
}

fn gain_of(row: &Row) -> Result<FilterGain, sqlx::Error> {
    let number = |column: &str| row.try_get(column).map(count);
    Ok(FilterGain {
        rule: row.try_get("rule")?,
        full: number("full")?,
        partial: number("partial")?,
        fallback: number("fallback")?,
        bytes_before: number("bytes_before")?,
        bytes_after: number("bytes_after")?,
        reruns: number("reruns")?,
        recalls: number("recalls")?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::Synchronous;

    /// Proves OUT-10, OUT-12.
    #[tokio::test]
    async fn sums_grow_and_the_largest_saving_is_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("zeph.db");
        let store = Store::open(&path, Synchronous::Normal).await.unwrap();
        let gain = |rule: &str, before, after, reruns| FilterGain {
            rule: rule.to_owned(),
            full: 1,
            bytes_before: before,
            bytes_after: after,
            reruns,
            ..FilterGain::default()
        };
        assert_eq!(store.filter_gains().await.unwrap(), []);
        for gain in [
            gain("make", 100, 90, 0),
            gain("cargo-test", 100, 10, 1),
            gain("cargo-test", 100, 20, 0),
        ] {
            store.add_filter_gain(&gain).await.unwrap();
        }
        let mut sum = gain("cargo-test", 200, 30, 1);
        sum.full = 2;
        let gains = store.filter_gains().await.unwrap();
        assert_eq!(gains, [sum, gain("make", 100, 90, 0)]);
        store.close().await.unwrap();
    }
}
