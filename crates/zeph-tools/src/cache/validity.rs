//! What a result rests on, as its tool says it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

/// Knows what the files were that a result was made of, and looks whether they still are.
#[async_trait]
pub trait FreshnessCheck: Send + Sync {
    /// Whether the call would yield the same if it were made now, and would be let through.
    async fn holds(&self) -> bool;

    /// The bytes that it takes.
    fn bytes(&self) -> usize;
}

/// What has to stay as it is for a result to hold.
#[derive(Clone)]
pub enum CacheValidity {
    /// Nothing on this machine: it holds until it is too old.
    Remote,
    /// Files: it holds while the witness says so and nothing here changed files.
    Files(Arc<dyn FreshnessCheck>),
}

impl CacheValidity {
    /// Whether a change of files puts an end to it.
    #[must_use]
    pub fn is_files(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// The bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Remote => 0,
            Self::Files(witness) => witness.bytes(),
        }
    }
}

impl PartialEq for CacheValidity {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Remote, Self::Remote) => true,
            (Self::Files(a), Self::Files(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for CacheValidity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Remote => "Remote",
            Self::Files(_) => "Files(…)",
        })
    }
}

/// The port to what runs beside the calls and may change files at any time.
pub trait BackgroundActivity: Send + Sync {
    /// Whether anything does.
    fn is_running(&self) -> bool;
}
