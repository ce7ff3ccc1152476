//! The section `[scheduler]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheduler]`: tasks that are due later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulerConfig {
    /// How late a task may begin, in seconds; after that its time is missed.
    #[schemars(range(min = 1, max = 86_400))]
    pub grace_secs: u32,
    /// Whether a task whose time was missed is run late, once; otherwise it is reported alone.
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
