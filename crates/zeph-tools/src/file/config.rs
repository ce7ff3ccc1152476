//! Configuration of the file tools: `[tools.file]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// File access of the file tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileConfig {
    /// Directories that file tools may use; empty means the current working directory.
    pub allowed_paths: Vec<PathBuf>,
    /// Globs of files that file tools and commands must not read, including all files in matching directories:
    /// absolute (`*` and `?` stop at `/`, `**` crosses it), or with the prefix `~/` or `**/`. They take
    /// precedence over `allow_read`.
    pub deny_read: Vec<String>,
    /// Globs of the only files that file tools read, and that commands may name to read them; empty means all.
    pub allow_read: Vec<String>,
    /// Whether `edit` and `write` refuse to change a file whose content differs from the last one in the
    /// conversation.
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
