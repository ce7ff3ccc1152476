//! Configuration of the audit trail: `[tools.audit]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sinks of the audit trail (`[tools.audit]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Whether entries are stored in the database, which `zeph audit` reads.
    pub sqlite: bool,
    /// Whether entries are appended to a file, one JSON line each.
    pub jsonl: bool,
    /// Whether entries are printed to standard output, one JSON line each; to standard error if standard output is used by a program or a terminal session.
    pub stdout: bool,
    /// The file of `jsonl`; empty means `audit.jsonl` in the data directory.
    pub path: Option<PathBuf>,
    /// Whether a call is refused if its entry cannot be written.
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
