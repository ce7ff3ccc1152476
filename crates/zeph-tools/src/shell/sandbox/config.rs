//! Configuration of the sandbox: `[tools.shell.sandbox]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operating system sandbox for commands (`[tools.shell.sandbox]`): they write only
/// below `allowed_paths`, the temporary directory and `writable`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// Whether commands run in it: `off`, `best-effort` (with a warning where the system lacks it), `required` (refused there).
    pub mode: SandboxMode,
    /// Further files and directories that commands may write, such as caches of build tools (`~/.cargo`, `~/.npm`, `~/.cache`).
    pub writable: Vec<PathBuf>,
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
