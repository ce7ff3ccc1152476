//! Configuration of the result cache: `[tools.result_cache]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result cache: a repeated call returns the earlier result while that is valid (`[tools.result_cache]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResultCacheConfig {
    /// Whether results are cached for their session.
    pub enabled: bool,
    /// Seconds after which a cached result is not used; 0 means no limit.
    pub ttl_secs: u64,
    /// The maximum bytes of cached results of a session; the least recently used result is removed first, and a result
    /// over a quarter of the limit is not cached.
    pub max_bytes: u64,
}

impl Default for ResultCacheConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            ttl_secs: 300,
            max_bytes: 8 << 20,
        }
    }
}

impl ResultCacheConfig {
    /// Returns `ttl_secs` as a duration; `None` for results that do not expire.
    #[must_use]
    pub fn ttl(&self) -> Option<Duration> {
        (self.ttl_secs > 0).then(|| Duration::from_secs(self.ttl_secs))
    }
}
