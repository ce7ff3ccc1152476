//! Configuration of the audit trail: `[tools.audit]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where each call leaves its entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Keep entries in the database, where `zeph audit` finds them.
    pub sqlite: bool,
    /// Append entries to a file, a JSON line each.
    pub jsonl: bool,
    /// Print entries to standard output, a JSON line each; to standard error where standard output belongs to a program or a terminal session.
    pub stdout: bool,
    /// The file of `jsonl`; empty means `audit.jsonl` in the data directory.
    pub path: Option<PathBuf>,
    /// Refuse every call whose entry could not be written.
    pub required: bool,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            sqlite: true,
            jsonl: false,
            stdout: false,
            path: None,
            required: false,
        }
    }
}

impl AuditConfig {
    /// Whether all sinks are disabled.
    #[must_use]
    pub fn is_off(&self) -> bool {
        !(self.sqlite || self.jsonl || self.stdout)
    }
}
