//! The resources that no event reports.

/// A snapshot of the resources of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// The hits and misses of the result cache; `None` without a cache.
    pub cache: Option<(u64, u64)>,
    /// The running background jobs.
    pub jobs: Vec<String>,
}
