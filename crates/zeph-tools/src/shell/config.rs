//! Configuration of the shell: `[tools.shell]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use zeph_bash::PolicyError;

use super::sandbox::SandboxConfig;
use super::transaction::ScopeError;

/// Commands of `bash` (`[tools.shell]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShellConfig {
    /// Seconds after which a command is ended, unless the call sets a time. Commands that build, test, install or download have 600 seconds, or this value if it is larger.
    #[schemars(range(min = 1))]
    pub timeout: u64,
    /// Maximum seconds of any command in the foreground, and of a time that a call sets.
    #[schemars(range(min = 1))]
    pub max_timeout: u64,
    /// Directories in which commands may start; empty means the current working directory.
    pub allowed_paths: Vec<PathBuf>,
    /// Prefixes of commands (`terraform destroy`; `*` matches any characters) that never run, besides those that are always blocked.
    pub blocked_commands: Vec<String>,
    /// Patterns of commands (`*` matches any text; without one, the text anywhere) that always require confirmation, unless a rule of `[[tools.permissions.bash]]` allows them.
    pub confirm_patterns: Vec<String>,
    /// Constructs that are refused in commands: `command_substitution`, `backticks`, `process_substitution`, `here_string`, `eval`, or `founding` for all of them. All others are judged by the commands that they run.
    pub blocked_constructs: Vec<String>,
    /// Whether commands that use the network (`curl`, `ssh`, `rsync`, …) may run.
    pub allow_network: bool,
    /// Whether the files are saved before a command that writes.
    pub transactional: bool,
    /// The files that are saved: globs relative to the working directory.
    pub transaction_scope: Vec<String>,
    /// Whether a command that ends with one of `auto_rollback_exit_codes` is rolled back: the files are restored.
    pub auto_rollback: bool,
    /// Exit codes after which a command is rolled back.
    #[schemars(inner(range(min = 1, max = 255)))]
    pub auto_rollback_exit_codes: Vec<i32>,
    /// Whether a command that writes is refused if the files cannot be saved; otherwise it runs with a warning.
    pub snapshot_required: bool,
    /// The maximum number of saved bytes; 0 means no limit.
    #[schemars(range(min = 0))]
    pub max_snapshot_bytes: u64,
    /// The environment variables of commands.
    pub env: ShellEnvConfig,
    /// Operating system limits for commands.
    pub sandbox: SandboxConfig,
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self {
            timeout: 30,
            max_timeout: 600,
            allowed_paths: Vec::new(),
            blocked_commands: Vec::new(),
            confirm_patterns: Vec::new(),
            blocked_constructs: Vec::new(),
            allow_network: true,
            transactional: false,
            transaction_scope: vec!["**".to_owned()],
            auto_rollback: false,
            auto_rollback_exit_codes: vec![1, 2],
            snapshot_required: false,
            max_snapshot_bytes: 0,
            env: ShellEnvConfig::default(),
            sandbox: SandboxConfig::default(),
        }
    }
}

/// An invalid entry of `[tools.shell]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShellConfigError {
    /// An entry of the blocklist is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// An entry of `transaction_scope` is not a glob.
    #[error(transparent)]
    Scope(#[from] ScopeError),
}

/// The environment variables of commands (`[tools.shell.env]`). By default, all except those with names that look like
/// secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShellEnvConfig {
    /// Names (with `*`) that are passed although they look like secrets.
    pub pass: Vec<String>,
    /// Names (with `*`) that are never passed; takes precedence over `pass`.
    pub block: Vec<String>,
    /// Variables that are set for every command.
    pub set: BTreeMap<String, String>,
}
