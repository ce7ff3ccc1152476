//! Configuration of the file tools: `[tools.file]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What file tools may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileConfig {
    /// Directories that file tools may touch; empty means the current working directory.
    pub allowed_paths: Vec<PathBuf>,
}
