//! Configuration of the file tools: `[tools.file]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What file tools may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileConfig {
    /// Directories that file tools may touch; empty means the current working directory.
    pub allowed_paths: Vec<PathBuf>,
    /// Globs of files that neither file tools nor commands read, nor what lies in directories that they match: absolute (`*` and `?` stop at `/`, `**` crosses it), or beginning with `~/` or `**/`. They win over `allow_read`.
    pub deny_read: Vec<String>,
    /// Globs of the only files that file tools read, and that commands may name to read them; empty means all.
    pub allow_read: Vec<String>,
    /// Whether `edit`, and `write` over a file that exists, are refused where the content is not what the conversation read or wrote last.
    pub read_before_write: bool,
}

impl Default for FileConfig {
    fn default() -> Self {
        Self {
            allowed_paths: Vec::new(),
            deny_read: Vec::new(),
            allow_read: Vec::new(),
            read_before_write: true,
        }
    }
}
