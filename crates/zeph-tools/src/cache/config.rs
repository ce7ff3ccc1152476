//! Configuration of the result cache: `[tools.result_cache]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Results of calls that are answered again without a call, as long as they hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResultCacheConfig {
    /// Whether results are kept for the session that they belong to.
    pub enabled: bool,
    /// Seconds after which a result is not answered again; 0 means that it does not age.
    pub ttl_secs: u64,
    /// The most bytes that are kept of a session; the least recently used result goes first, and a result over a quarter of it is not kept.
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
