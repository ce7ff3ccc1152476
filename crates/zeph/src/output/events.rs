//! The events of `--output-format stream-json`, one per line.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use zeph_tools::FilterStats;

use super::ResultObject;

/// One line.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Line {
    /// When it happened: milliseconds since the Unix epoch.
    pub(crate) ts: i64,
    /// What happened.
    #[serde(flatten)]
    pub(crate) event: Event,
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoticeLevel {
    /// It is worth knowing.
    Info,
    /// Something may be wrong.
    Warning,
    /// A failure outside the turn.
    Error,
}

/// What happened.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The first line.
    SessionStarted {
        /// The session's id, for `--resume`.
        session: String,
        /// The provider's name in the configuration.
        provider: String,
        /// The model's name.
        model: String,
    },
    /// More of the model's text.
    TextDelta {
        /// The text.
        text: String,
    },
    /// A call begins.
    ToolStarted {
        /// The call's id.
        id: String,
        /// The tool as called.
        tool: String,
        /// The arguments, without the values of secrets.
        params: Value,
    },
    /// A running command prints.
    ToolOutput {
        /// The call's id.
        id: String,
        /// `stdout` or `stderr`.
        stream: String,
        /// The text.
        text: String,
    },
    /// A call ended.
    ToolFinished {
        /// The call's id.
        id: String,
        /// The tool as called.
        tool: String,
        /// Whether it succeeded.
        success: bool,
        /// The category of the failure.
        error_category: Option<String>,
        /// The text for the user.
        display: String,
        /// Statistics of the output filter; null if none ran.
        filter: Option<FilterStats>,
        /// How long it took, waiting for the user excluded.
        duration_ms: u64,
    },
    /// A question was answered.
    Permission {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
        /// `allowed` or `refused`.
        decision: String,
        /// The answer: `once`, `session`, `always` or `no`.
        answer: String,
    },
    /// Something the user should know.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// One sentence.
        text: String,
    },
    /// A command failed, and its changes were undone.
    Rollback {
        /// The call's id.
        id: String,
        /// How many files, links and directories have their old content, mode or place again.
        restored: usize,
        /// How many that the command had created were removed.
        removed: usize,
    },
    /// With `[tools.audit] stdout`: a call left this entry in the audit trail.
    Audit {
        /// The entry; `docs/audit.md` has its fields.
        entry: Value,
    },
    /// The last line: the object of `--output-format json`.
    Finished {
        /// The result.
        #[serde(flatten)]
        result: ResultObject,
    },
}

/// The JSON Schema of a line.
#[cfg(test)]
pub(crate) fn schema() -> String {
    let schema = schemars::schema_for!(Line).to_value();
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    /// Proves CLI-2b.
    #[test]
    fn documented_schema_matches_the_events() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/stream-json.schema.json");
        let stored = std::fs::read_to_string(file).unwrap_or_default();
        let generated = super::schema();
        if stored != generated {
            let fresh = std::env::temp_dir().join("stream-json.schema.json");
            std::fs::write(&fresh, &generated).unwrap();
            panic!(
                "docs/stream-json.schema.json is out of date: copy {}",
                fresh.display()
            );
        }
    }
}
