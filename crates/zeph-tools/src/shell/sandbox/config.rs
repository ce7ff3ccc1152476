//! Configuration of the sandbox: `[tools.shell.sandbox]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operating system sandbox for commands (`[tools.shell.sandbox]`): they write only
/// below `allowed_paths`, the temporary directory, `writable` and the caches of package managers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// Whether commands run in the sandbox: `off`, `best-effort` (with a warning if the system lacks it), `required` (refused if the system lacks it).
    pub mode: SandboxMode,
    /// Further files and directories that commands may write.
    pub writable: Vec<PathBuf>,
    /// Whether commands may write the caches of package managers (cargo, npm, pip, go, …): `allow`, `ask`, `deny`.
    pub caches: AccessPolicy,
    /// Whether commands that run without confirmation in mode `auto` may use the network: `allow`, `ask`, `deny`.
    pub network: AccessPolicy,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            mode: SandboxMode::default(),
            writable: Vec::new(),
            caches: AccessPolicy::Allow,
            network: AccessPolicy::Ask,
        }
    }
}

/// Whether the sandbox permits an access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AccessPolicy {
    /// It permits the access.
    #[default]
    Allow,
    /// It refuses the access, and the user is asked whether the command runs again with it.
    Ask,
    /// It refuses the access.
    Deny,
}

/// Whether commands run in the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Without it.
    Off,
    /// With the supported parts only.
    #[default]
    BestEffort,
    /// Only with it.
    Required,
}
