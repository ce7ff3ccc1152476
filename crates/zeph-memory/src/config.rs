//! Configuration of the store: `[memory]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::server_url::ServerUrl;

/// The durability of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Synchronous {
    /// Written data survives the death of the process at any point.
    #[default]
    Normal,
    /// It survives a power cut too; every write waits for the disk.
    Full,
}

/// The store of sessions, messages and the audit trail (`[memory]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// The database file; empty means `zeph.db` in the data directory.
    pub path: Option<PathBuf>,
    /// `normal` survives a killed process, `full` a power cut too.
    pub synchronous: Synchronous,
    /// The PostgreSQL server of a shared store, used in place of the file (feature `postgres`).
    pub url: Option<ServerUrl>,
    /// Seconds that a call waits for the server before it is refused.
    pub wait_secs: u64,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            path: None,
            synchronous: Synchronous::default(),
            url: None,
            wait_secs: 10,
        }
    }
}
