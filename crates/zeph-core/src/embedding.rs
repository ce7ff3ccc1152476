//! Embeddings by a provider. Those of recurring texts are cached across sessions.

use std::sync::Arc;

use zeph_llm::{EmbeddingModel, Embeddings, LlmError, LlmErrorKind, LlmProvider};
use zeph_tools::embedding_cache::EmbeddingCache;

use crate::spending::AuxiliaryUsage;

/// Computes embeddings with a provider.
#[derive(Debug, Clone)]
pub struct Embedder {
    provider: Arc<dyn LlmProvider>,
    model: EmbeddingModel,
    kept: Arc<dyn EmbeddingCache>,
    usage: Arc<AuxiliaryUsage>,
}

/// The result of [`Embedder::embed`]: embeddings of equal length, in the order of their texts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Embedded {
    /// The embeddings that are not cached.
    pub passing: Vec<Vec<f32>>,
    /// The embeddings that are cached.
    pub lasting: Vec<Vec<f32>>,
}

impl Embedder {
    /// An embedder that uses `provider`, caches embeddings in `kept`, and counts tokens in `usage`. `None` if the
    /// provider has no embeddings.
    #[must_use]
    pub fn new(
        provider: Arc<dyn LlmProvider>,
        kept: Arc<dyn EmbeddingCache>,
        usage: Arc<AuxiliaryUsage>,
    ) -> Option<Self> {
        let model = provider.embedding_model()?.clone();
        Some(Self {
            provider,
            model,
            kept,
            usage,
        })
    }

    /// The provider's name.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.provider.name()
    }

    /// The embedding model.
    #[must_use]
    pub fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    /// Computes the embeddings of texts. Those of `lasting` texts are cached; if the cache fails, all are computed.
    ///
    /// # Errors
    /// As [`LlmProvider::embed`].
    pub async fn embed(&self, passing: &[&str], lasting: &[&str]) -> Result<Embedded, LlmError> {
        self.embed_all(passing, lasting, true).await
    }

    /// Computes the embeddings of texts, and reads the cache but does not write it: the caller stores the result.
    ///
    /// # Errors
    /// As [`LlmProvider::embed`].
    pub async fn embed_apart(
        &self,
        passing: &[&str],
        lasting: &[&str],
    ) -> Result<Embedded, LlmError> {
        self.embed_all(passing, lasting, false).await
    }

    async fn embed_all(
        &self,
        passing: &[&str],
        lasting: &[&str],
        keep: bool,
    ) -> Result<Embedded, LlmError> {
        let mut known = self.known(lasting).await;
        let asked = [passing, &missing(&known, lasting)].concat();
        let mut made = self.ask(&asked).await?;
        let length = made.first().map(Vec::len);
        let differs = |vector: &Vec<f32>| length.is_some_and(|length| length != vector.len());
        if known.iter().flatten().any(differs) {
            // The cached embeddings were computed by another model with the same name.
            known = vec![None; lasting.len()];
            made.truncate(passing.len());
            made.extend(self.ask(lasting).await?);
        }
        let new = made.split_off(passing.len());
        if keep {
            self.keep(&missing(&known, lasting), &new).await;
        }
        let mut new = new.into_iter();
        let lasting = known.into_iter().filter_map(|it| it.or_else(|| new.next()));
        Ok(Embedded {
            lasting: lasting.collect(),
            passing: made,
        })
    }

    async fn known(&self, texts: &[&str]) -> Vec<Option<Vec<f32>>> {
        match self.kept.kept(&self.model.key, texts).await {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(%error, "cached embeddings cannot be read");
                vec![None; texts.len()]
            }
        }
    }

    async fn ask(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, LlmError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let Embeddings { vectors, usage } = self.provider.embed(texts).await?.unwrap_or_default();
        self.usage
            .add_embeddings(self.provider.name(), &self.model, usage);
        if vectors.len() == texts.len() {
            return Ok(vectors);
        }
        let message = format!("{} embeddings for {} texts", vectors.len(), texts.len());
        Err(LlmError::new(
            LlmErrorKind::Protocol,
            self.provider.name(),
            message,
        ))
    }

    async fn keep(&self, texts: &[&str], vectors: &[Vec<f32>]) {
        if texts.is_empty() {
            return;
        }
        if let Err(error) = self.kept.keep(&self.model.key, texts, vectors).await {
            tracing::warn!(%error, "embeddings cannot be cached");
        }
    }
}

/// The texts without an embedding.
fn missing<'a>(known: &[Option<Vec<f32>>], texts: &[&'a str]) -> Vec<&'a str> {
    let texts = texts.iter().zip(known);
    let missing = texts.filter(|(_, vector)| vector.is_none());
    missing.map(|(text, _)| *text).collect()
}
