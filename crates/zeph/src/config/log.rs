//! `[log]`: the form of the log file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::env::Environment;
use super::layer::{FileLayer, Layer};
use super::overrides::{FlagOverrides, from_environment};
use super::paths::{Paths, read};

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

impl LogFormat {
    /// The format that the command line, the environment or the user's file names. Errors in other settings have no effect, and a
    /// file that can be read only once is not read.
    pub(crate) fn of_sources(env: &Environment, flags: &FlagOverrides) -> Self {
        let mut errors = Vec::new();
        let mut layers = Layer::default();
        if let Ok(paths) = Paths::locate(env, flags.config.as_deref())
            && let Ok(text) = read(&paths.user_file, true)
        {
            layers = Layer::from_toml(&text, &paths.user_file, FileLayer::User, &mut errors);
        }
        layers.merge(from_environment(env, &mut errors, &mut Vec::new()));
        layers.merge(flags.layer(&mut errors));
        let format = layers.get("log.format").cloned();
        format
            .and_then(|value| value.try_into().ok())
            .unwrap_or_default()
    }
}
