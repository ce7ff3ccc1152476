//! Search of facts by meaning, with an embedding for each fact.
//!
//! A search reads a few bits of each fact (`sign_bits`), then the embeddings of the closest facts. Triggers and keys
//! of the database keep bits, embeddings and facts consistent across processes. A damaged fact is not found.

use crate::conversation::integer;
use crate::database::{Row, Statement, Transaction, query, repeated};
use crate::error::StoreError;
use crate::memories::Memory;
use crate::sign_bits::{Nearest, signs, width};
use crate::store::Store;

/// How many facts share a row of bits. The table's triggers know it too.
const BLOCK: i64 = 128;
/// The number of facts with embeddings that a search reads.
const READ: usize = 500;
/// The number of models with stored embeddings: the current one and the one before it.
const MODELS: i64 = 2;
/// The bytes of a number.
const WIDTH: usize = size_of::<f32>();
/// The maximum distance from 1 of an embedding's length; a larger one means damage.
const TOLERANCE: f32 = 0.001;

/// A fact that was found by its meaning.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Near {
    /// The fact.
    pub memory: Memory,
    /// The cosine between its embedding and that of the search.
    pub cosine: f32,
}

/// Facts without an embedding of a model, and their position among the others.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorGap {
    /// The facts: each is newer than those with embeddings up to the last of these, or older down to it.
    pub memories: Vec<Memory>,
    model: Option<Model>,
}

/// The embeddings of a gap.
struct NewVectors {
    /// The lowest and the highest number of a fact.
    first: i64,
    last: i64,
    /// The length of each vector.
    length: i64,
    /// The numbers of the facts as JSON.
    numbers: String,
    /// The vectors in the same order.
    bytes: Vec<u8>,
}

/// A row of `memory_model`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Model {
    id: i64,
    length: i64,
    oldest: i64,
    newest: i64,
}

impl Store {
    /// Up to `most` of the facts without an embedding of `model`: new ones, then older ones, the latest first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn vector_gap(&self, model: &str, most: u64) -> Result<VectorGap, StoreError> {
        let known = self.model(model).await?;
        let (oldest, newest) = known.map_or((i64::MAX, i64::MAX), |it| (it.oldest, it.newest));
        let select = query(
            "SELECT number, content, session, project, saved_at FROM memory
             WHERE number > ?1 ORDER BY number LIMIT ?2",
        );
        let select = select.bind(newest).bind(integer(most));
        let mut rows = self.fetch(select).await?;
        let left = integer(most) - i64::try_from(rows.len()).unwrap_or(i64::MAX);
        if left > 0 {
            let select = query(
                "SELECT number, content, session, project, saved_at FROM memory
                 WHERE number < ?1 ORDER BY number DESC LIMIT ?2",
            );
            rows.extend(self.fetch(select.bind(oldest).bind(left)).await?);
        }
        let memories: Result<_, _> = rows.iter().map(|row| self.memory_of(row)).collect();
        Ok(VectorGap {
            memories: memories?,
            model: known,
        })
    }

    /// Stores the embeddings by `model` of the facts of a gap, in their order and all of one length. Nothing is
    /// stored if the stored embeddings have another length, or if another process has removed them.
    ///
    /// # Errors
    /// A failure of the database; then nothing is stored.
    pub async fn fill_vector_gap(
        &self,
        model: &str,
        gap: &VectorGap,
        vectors: &[Vec<f32>],
    ) -> Result<(), StoreError> {
        let Some(length) = vectors.first().map(Vec::len) else {
            return Ok(());
        };
        if vectors.iter().any(|vector| vector.len() != length) {
            return Ok(());
        }
        let (mut numbers, mut bytes) = (Vec::new(), Vec::new());
        let pairs = gap.memories.iter().zip(vectors);
        for (number, vector) in pairs.filter_map(|(memory, it)| Some((memory.number()?, it))) {
            numbers.push(number);
            let scale = norm(vector).recip();
            bytes.extend(vector.iter().flat_map(|it| (it * scale).to_le_bytes()));
        }
        let (Some(first), Some(last)) = (numbers.iter().min(), numbers.iter().max()) else {
            return Ok(());
        };
        let new = NewVectors {
            first: *first,
            last: *last,
            length: i64::try_from(length).unwrap_or(i64::MAX),
            numbers: json(&numbers),
            bytes,
        };
        repeated(|| self.try_vectors(model, gap, &new)).await
    }

    async fn try_vectors(
        &self,
        model: &str,
        gap: &VectorGap,
        new: &NewVectors,
    ) -> Result<(), StoreError> {
        let (first, last, length) = (new.first, new.last, new.length);
        let mut transaction = self.begin().await?;
        let known = self.find_model(transaction.as_mut(), model).await?;
        let id = match (known, gap.model) {
            (Some(known), Some(then)) if known.id == then.id && known.length == length => known.id,
            (None, None) => {
                let row = Model {
                    id: 0,
                    length,
                    oldest: first,
                    newest: last,
                };
                match self.add_model(transaction.as_mut(), model, row).await? {
                    Some(id) => id,
                    None => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        // CROSS JOIN: SQLite reads the left table once.
        let insert = Statement::per_dialect(
            "INSERT INTO memory_vector (model, fact, vector)
             SELECT ?1, m.number, substr(?3, 1 + j.key * ?4, ?4)
             FROM json_each(?2) j CROSS JOIN memory m ON m.number = j.value WHERE true
             ON CONFLICT (model, fact) DO UPDATE SET vector = excluded.vector",
            "INSERT INTO memory_vector (model, fact, vector)
             SELECT ?1, m.number, substr(?3, CAST(1 + (j.place - 1) * ?4 AS INTEGER), CAST(?4 AS INTEGER))
             FROM jsonb_array_elements_text(CAST(?2 AS jsonb)) WITH ORDINALITY AS j (value, place)
             JOIN memory m ON m.number = CAST(j.value AS BIGINT)
             ON CONFLICT (model, fact) DO UPDATE SET vector = excluded.vector",
        );
        let width = length.saturating_mul(WIDTH as i64);
        let insert = insert.bind(id).bind(&new.numbers);
        let insert = insert.bind(new.bytes.as_slice()).bind(width);
        transaction.fetch(insert).await?;
        let update = query(
            "UPDATE memory_model SET oldest = CASE WHEN oldest < ?2 THEN oldest ELSE ?2 END,
                 newest = CASE WHEN newest > ?3 THEN newest ELSE ?3 END
             WHERE id = ?1",
        );
        transaction
            .fetch(update.bind(id).bind(first).bind(last))
            .await?;
        transaction.commit().await?;
        self.wrote(new.bytes.len());
        Ok(())
    }

    /// Up to `most` facts with the nearest embeddings of `model` to `vector`, the nearest first. All embeddings are
    /// compared.
    ///
    /// `None` if they have another length: the name then means another model, so they are removed.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn near_memories(
        &self,
        model: &str,
        vector: &[f32],
        most: usize,
    ) -> Result<Option<Vec<Near>>, StoreError> {
        let Some(known) = self.model(model).await? else {
            return Ok(Some(Vec::new()));
        };
        if usize::try_from(known.length) != Ok(vector.len()) {
            let delete = query("DELETE FROM memory_model WHERE id = ?1");
            self.write(delete.bind(known.id), 0).await?;
            return Ok(None);
        }
        let mut nearest = Nearest::new(&signs(vector), READ);
        let width = width(vector.len());
        for block in self.look_at_blocks(known.id, width, &mut nearest).await? {
            self.make_block(known, block, &mut nearest).await?;
        }
        let select = Statement::per_dialect(
            "SELECT m.number, m.content, m.session, m.project, m.saved_at, v.vector
             FROM json_each(?2) j CROSS JOIN memory_vector v ON v.model = ?1 AND v.fact = j.value
             CROSS JOIN memory m ON m.number = v.fact",
            "SELECT m.number, m.content, m.session, m.project, m.saved_at, v.vector
             FROM jsonb_array_elements_text(CAST(?2 AS jsonb)) AS j (value)
             JOIN memory_vector v ON v.model = ?1 AND v.fact = CAST(j.value AS BIGINT)
             JOIN memory m ON m.number = v.fact",
        );
        let select = select.bind(known.id).bind(json(&nearest.facts()));
        let query = unit(vector);
        let mut found = Vec::new();
        for row in self.fetch(select).await? {
            let bytes = row.try_get(5).map_err(|error| self.sql(error))?;
            if let Some(cosine) = numbers(bytes).and_then(|it| dot(&query, &it)) {
                let memory = self.memory_of(&row)?;
                found.push(Near { memory, cosine });
            }
        }
        found.sort_by(|a, b| b.cosine.total_cmp(&a.cosine));
        found.truncate(most);
        Ok(Some(found))
    }

    /// Compares all stored bits, and returns the blocks without valid bits.
    async fn look_at_blocks(
        &self,
        model: i64,
        width: usize,
        nearest: &mut Nearest,
    ) -> Result<Vec<i64>, StoreError> {
        let mut missing = Vec::new();
        let select = query("SELECT block, facts, signs FROM memory_signs WHERE model = ?1");
        let mut each = |row: Row| {
            let block: i64 = row.try_get(0)?;
            let facts: Option<&[u8]> = row.try_get(1)?;
            let signs: Option<&[u8]> = row.try_get(2)?;
            match (facts, signs) {
                (Some(facts), Some(signs)) if facts.len() * width == signs.len() => {
                    look(nearest, block, facts, signs);
                }
                _ => missing.push(block),
            }
            Ok(())
        };
        self.database().run(select.bind(model), &mut each).await?;
        Ok(missing)
    }

    /// Computes the bits of a block from its embeddings and compares them. If they cannot be stored, the next search
    /// computes them again.
    async fn make_block(
        &self,
        model: Model,
        block: i64,
        nearest: &mut Nearest,
    ) -> Result<(), StoreError> {
        let (mut facts, mut bits) = (Vec::new(), Vec::new());
        let made = self.make_bits(model, block, &mut facts, &mut bits).await;
        if let Err(error) = made {
            tracing::warn!(%error, "the embeddings of facts cannot be cached for the next search");
        }
        self.wrote(bits.len());
        look(nearest, block, &facts, &bits);
        Ok(())
    }

    async fn make_bits(
        &self,
        model: Model,
        block: i64,
        facts: &mut Vec<u8>,
        bits: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let select = query(
            "SELECT fact, vector FROM memory_vector WHERE model = ?1 AND fact BETWEEN ?2 AND ?3 ORDER BY fact",
        );
        let first = block.saturating_mul(BLOCK);
        let select = select.bind(model.id).bind(first);
        let select = select.bind(first.saturating_add(BLOCK - 1));
        for row in transaction.fetch(select).await? {
            let read = || Ok((row.try_get::<i64, _>(0)?, numbers(row.try_get(1)?)));
            let (fact, vector) = read().map_err(|error| self.sql(error))?;
            let fits = |it: &Vec<f32>| usize::try_from(model.length) == Ok(it.len());
            if let (Some(vector), Ok(at)) = (vector.filter(fits), u8::try_from(fact - first)) {
                facts.push(at);
                bits.extend(signs(&vector));
            }
        }
        let update =
            query("UPDATE memory_signs SET facts = ?3, signs = ?4 WHERE model = ?1 AND block = ?2");
        let update = update.bind(model.id).bind(block);
        let update = update.bind(facts.as_slice()).bind(bits.as_slice());
        transaction.fetch(update).await?;
        transaction.commit().await
    }

    async fn model(&self, model: &str) -> Result<Option<Model>, StoreError> {
        let found = self
            .fetch_as(select_model(model), |row| model_of(&row))
            .await?;
        Ok(found.into_iter().next())
    }

    async fn find_model(
        &self,
        transaction: &mut dyn Transaction,
        model: &str,
    ) -> Result<Option<Model>, StoreError> {
        let rows = transaction.fetch(select_model(model)).await?;
        let found = rows.first().map(model_of).transpose();
        found.map_err(|error| self.sql(error))
    }

    /// Adds a row for a model, and removes the embeddings of older models. Returns the number of the row; `None` if another
    /// process was faster.
    async fn add_model(
        &self,
        transaction: &mut dyn Transaction,
        name: &str,
        model: Model,
    ) -> Result<Option<i64>, StoreError> {
        let insert = query(
            "INSERT INTO memory_model (model, length, oldest, newest) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING RETURNING id",
        );
        let insert = insert.bind(name).bind(model.length);
        let rows = transaction
            .fetch(insert.bind(model.oldest).bind(model.newest))
            .await?;
        let id = rows.first().map(|row| row.try_get(0)).transpose();
        let id: Option<i64> = id.map_err(|error| self.sql(error))?;
        let delete = query(
            "DELETE FROM memory_model WHERE id NOT IN (SELECT id FROM memory_model ORDER BY id DESC LIMIT ?1)",
        );
        transaction.fetch(delete.bind(MODELS)).await?;
        Ok(id)
    }
}

fn select_model(model: &str) -> Statement<'_> {
    query("SELECT id, length, oldest, newest FROM memory_model WHERE model = ?1").bind(model)
}

fn model_of(row: &Row) -> Result<Model, sqlx::Error> {
    Ok(Model {
        id: row.try_get(0)?,
        length: row.try_get(1)?,
        oldest: row.try_get(2)?,
        newest: row.try_get(3)?,
    })
}

fn look(nearest: &mut Nearest, block: i64, facts: &[u8], signs: &[u8]) {
    let width = signs.len().checked_div(facts.len()).unwrap_or(1);
    for (fact, signs) in facts.iter().zip(signs.chunks_exact(width.max(1))) {
        let fact = block.saturating_mul(BLOCK).saturating_add(i64::from(*fact));
        nearest.look(fact, signs);
    }
}

fn json<'a>(numbers: impl IntoIterator<Item = &'a i64>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

fn norm(vector: &[f32]) -> f32 {
    vector.iter().map(|it| it * it).sum::<f32>().sqrt()
}

/// The vector of the same direction and the length 1.
fn unit(vector: &[f32]) -> Vec<f32> {
    let scale = norm(vector).recip();
    vector.iter().map(|it| it * scale).collect()
}

/// An embedding from the table; `None` if it is damaged or has no direction.
fn numbers(bytes: &[u8]) -> Option<Vec<f32>> {
    let (numbers, rest) = bytes.as_chunks::<WIDTH>();
    let numbers: Vec<f32> = numbers.iter().map(|it| f32::from_le_bytes(*it)).collect();
    let whole = rest.is_empty() && (norm(&numbers) - 1.0).abs() < TOLERANCE;
    whole.then_some(numbers)
}

/// The cosine of two vectors of length 1.
fn dot(a: &[f32], b: &[f32]) -> Option<f32> {
    let cosine: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    (a.len() == b.len() && cosine.is_finite()).then_some(cosine)
}
