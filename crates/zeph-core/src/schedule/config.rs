//! The section `[scheduler]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scheduled tasks (`[scheduler]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulerConfig {
    /// The maximum delay of a task in seconds; after it, the due time is missed.
    #[schemars(range(min = 1, max = 86_400))]
    pub grace_secs: u32,
    /// Whether a task with a missed due time runs once, late; otherwise it is only reported.
    pub run_missed: bool,
    /// Whether calls of scheduled tasks that require a confirmation run without it; otherwise they are refused.
    pub skip_questions: bool,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            grace_secs: 60,
            run_missed: false,
            skip_questions: false,
        }
    }
}
