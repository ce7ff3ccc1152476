//! The port to stored embeddings of texts, which are reused across sessions.
//!
//! An embedding is identified by its model and by the content of its text. The embeddings of two models cannot be
//! compared, so each model has its own.

use std::fmt;

use async_trait::async_trait;

/// An error of the store of embeddings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeptVectorsError(pub String);

/// A store of embeddings.
#[async_trait]
pub trait EmbeddingCache: Send + Sync + fmt::Debug {
    /// Returns the embeddings of `texts` by `model`, in order; `None` for a text that is not stored.
    ///
    /// # Errors
    /// [`KeptVectorsError`].
    async fn kept(
        &self,
        model: &str,
        texts: &[&str],
    ) -> Result<Vec<Option<Vec<f32>>>, KeptVectorsError>;

    /// Stores embeddings, one for each text and all of the same length; they replace earlier ones of these texts.
    ///
    /// # Errors
    /// [`KeptVectorsError`]; then none is stored.
    async fn keep(
        &self,
        model: &str,
        texts: &[&str],
        vectors: &[Vec<f32>],
    ) -> Result<(), KeptVectorsError>;
}
