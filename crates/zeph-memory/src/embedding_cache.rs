//! Cache of embeddings in the table `embedding`, for `zeph_tools::embedding_cache::EmbeddingCache`.
//!
//! The key is the SHA-256 of a text, not the text. The newest [`MAX_EMBEDDINGS`] are stored.

use std::collections::HashMap;

use async_trait::async_trait;
use zeph_tools::audit::chain::hex_digest;
use zeph_tools::embedding_cache::{EmbeddingCache, KeptVectorsError};

use crate::database::{Row, Statement, query};
use crate::error::StoreError;
use crate::store::Store;

/// The number of stored embeddings; the oldest are removed first.
pub const MAX_EMBEDDINGS: u32 = 4096;

/// The bytes of a number.
const WIDTH: usize = size_of::<f32>();

/// A cache of embeddings, in a [`Store`].
#[derive(Debug, Clone)]
pub struct SqliteVectors {
    store: Store,
}

impl SqliteVectors {
    /// Stores the embeddings in `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

#[async_trait]
impl EmbeddingCache for SqliteVectors {
    async fn kept(
        &self,
        model: &str,
        texts: &[&str],
    ) -> Result<Vec<Option<Vec<f32>>>, KeptVectorsError> {
        let kept = self.store.kept_vectors(model, texts).await;
        kept.map_err(failed)
    }

    async fn keep(
        &self,
        model: &str,
        texts: &[&str],
        vectors: &[Vec<f32>],
    ) -> Result<(), KeptVectorsError> {
        let kept = self.store.keep_vectors(model, texts, vectors).await;
        kept.map_err(failed)
    }
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
fn failed(error: StoreError) -> KeptVectorsError {
    KeptVectorsError(error.to_string())
}

impl Store {
    /// The cached embeddings of `texts` by `model`, in their order; `None` for a text without one.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn kept_vectors(
        &self,
        model: &str,
        texts: &[&str],
    ) -> Result<Vec<Option<Vec<f32>>>, StoreError> {
        let digests = digests(texts);
        let select = Statement::per_dialect(
            "SELECT text, vector FROM embedding
             WHERE model = ?1 AND text IN (SELECT value FROM json_each(?2))",
            "SELECT text, vector FROM embedding
             WHERE model = ?1 AND text IN (SELECT jsonb_array_elements_text(CAST(?2 AS jsonb)))",
        );
        let select = select.bind(model).bind(json(&digests));
        let rows = self.fetch(select).await?;
        let vector = |row| -> Result<(String, Vec<f32>), sqlx::Error> {
            let row: &Row = row;
            Ok((row.try_get(0)?, numbers(row.try_get(1)?)))
        };
        let known: Result<HashMap<String, Vec<f32>>, _> = rows.iter().map(vector).collect();
        let known = known.map_err(|error| self.sql(error))?;
        let texts = digests.iter();
        Ok(texts.map(|digest| known.get(digest).cloned()).collect())
    }

    /// Stores an embedding of each text, all of one length. They replace earlier ones.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn keep_vectors(
        &self,
        model: &str,
        texts: &[&str],
        vectors: &[Vec<f32>],
    ) -> Result<(), StoreError> {
        let Some(length) = vectors.first().map(Vec::len) else {
            return Ok(());
        };
        let all: Vec<u8> = vectors
            .iter()
            .flatten()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        let (bytes, width) = (all.len(), length * WIDTH);
        // `WHERE true`, so that ON is not taken for that of a join.
        let insert = Statement::per_dialect(
            "INSERT INTO embedding (model, text, vector)
             SELECT ?1, value, substr(?3, 1 + key * ?4, ?4) FROM json_each(?2) WHERE true
             ON CONFLICT (model, text) DO UPDATE SET vector = excluded.vector",
            "INSERT INTO embedding (model, text, vector)
             SELECT ?1, d.value, substr(?3, CAST(1 + (d.place - 1) * ?4 AS INTEGER), CAST(?4 AS INTEGER))
             FROM (SELECT j.value, max(j.place) AS place
                   FROM jsonb_array_elements_text(CAST(?2 AS jsonb)) WITH ORDINALITY AS j (value, place)
                   GROUP BY j.value) d ORDER BY d.place
             ON CONFLICT (owner, model, text) DO UPDATE SET vector = excluded.vector",
        );
        let insert = insert.bind(model).bind(json(&digests(texts))).bind(all);
        let insert = insert.bind(i64::try_from(width).unwrap_or(i64::MAX));
        self.write(insert, bytes).await?;
        let delete =
            query("DELETE FROM embedding WHERE number <= (SELECT max(number) FROM embedding) - ?1");
        self.write(delete.bind(MAX_EMBEDDINGS), 0).await.map(drop)
    }
}

/// The SHA-256 of each text in hexadecimal.
fn digests(texts: &[&str]) -> Vec<String> {
    let digest = |text: &&str| hex_digest(text.as_bytes());
    texts.iter().map(digest).collect()
}

/// A JSON array of hexadecimal numbers, in which nothing needs an escape.
fn json(digests: &[String]) -> String {
    match digests.is_empty() {
        true => "[]".to_owned(),
        false => format!("[\"{}\"]", digests.join("\",\"")),
    }
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<WIDTH>();
    numbers
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect()
}
