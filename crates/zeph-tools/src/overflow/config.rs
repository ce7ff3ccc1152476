//! Configuration of the overflow store: `[tools.overflow]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The handling of output that is too long for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverflowConfig {
    /// Characters of output that the model reads; longer output is stored, and head and tail are read.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub threshold: usize,
    /// Days after which stored output is removed, at the next start.
    #[schemars(range(max = 36500))]
    pub retention_days: u32,
    /// The maximum bytes that are stored of one output; 0 means all.
    pub max_overflow_bytes: u64,
    /// Whether a model summarizes output that is too long; the summary appears next to the reference. Each summary is one request.
    pub summarize: bool,
    /// The provider that summarizes; empty means the one of the conversation.
    pub summary_provider: String,
}

impl Default for OverflowConfig {
    fn default() -> Self {
        Self {
            threshold: 50_000,
            retention_days: 7,
            max_overflow_bytes: 10 * 1024 * 1024,
            summarize: false,
            summary_provider: String::new(),
        }
    }
}

impl OverflowConfig {
    /// Returns `max_overflow_bytes` as a limit.
    #[must_use]
    pub fn byte_limit(&self) -> u64 {
        match self.max_overflow_bytes {
            0 => u64::MAX,
            most => most,
        }
    }

    /// Returns the start of the retention period at `now`, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn retention_cutoff(&self, now: i64) -> i64 {
        now.saturating_sub(i64::from(self.retention_days) * 24 * 60 * 60 * 1000)
    }
}
