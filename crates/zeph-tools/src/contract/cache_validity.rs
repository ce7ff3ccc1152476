//! The condition for the validity of a result, which its tool declares.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

/// A check whether the files that a result was created from are unchanged.
#[async_trait]
pub trait FreshnessCheck: Send + Sync {
    /// Whether the same call would be allowed now and return the same result.
    async fn holds(&self) -> bool;

    /// Returns the size in bytes.
    fn bytes(&self) -> usize;
}

/// The condition for the validity of a result.
#[derive(Clone)]
#[non_exhaustive]
pub enum CacheValidity {
    /// Independent of this machine: valid until it expires.
    Remote,
    /// Dependent on files: valid while the check succeeds and no call changed files.
    Files(Arc<dyn FreshnessCheck>),
}

impl CacheValidity {
    /// Whether a change of files invalidates the result.
    #[must_use]
    pub fn is_files(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// Returns the size in bytes.
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
