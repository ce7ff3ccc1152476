//! `[log]`: the form of the log file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[log]`: the log file, `$XDG_STATE_HOME/zeph/zeph.log`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogConfig {
    /// The form of its records: a line of text, or a JSON object on one line.
    pub(crate) format: LogFormat,
}

/// The form of a record in the log file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// A line of text.
    #[default]
    Text,
    /// A JSON object.
    Json,
}
