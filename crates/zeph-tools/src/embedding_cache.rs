//! The port to vectors that were made of texts once, and are kept over sessions.
//!
//! A vector is known by the model that made it and by its text's content. A key of another model is another
//! vector: those of two models cannot be compared.

use std::fmt;

use async_trait::async_trait;

/// Vectors cannot be read or kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeptVectorsError(pub String);

/// Keeps vectors.
#[async_trait]
pub trait EmbeddingCache: Send + Sync + fmt::Debug {
    /// The vectors that `model` made of `texts`, in their order; `None` for what is not kept.
    ///
    /// # Errors
    /// [`KeptVectorsError`].
    async fn kept(
        &self,
        model: &str,
        texts: &[&str],
    ) -> Result<Vec<Option<Vec<f32>>>, KeptVectorsError>;

    /// Keeps vectors, one of each text and all of one length; they replace what was kept of these texts.
    ///
    /// # Errors
    /// [`KeptVectorsError`]; then none is kept.
    async fn keep(
        &self,
        model: &str,
        texts: &[&str],
        vectors: &[Vec<f32>],
    ) -> Result<(), KeptVectorsError>;
}
