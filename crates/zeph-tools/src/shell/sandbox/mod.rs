//! The sandbox of the operating system around commands: its configuration and its messages.
//!
//! [`config`] holds the settings, and `plan` makes the limits of them that `zeph-exec` applies. `denial_detection` recognizes
//! denials in the output of a failed command, and `notices` describes them.

pub mod config;
mod denial_detection;
pub(super) mod notices;

use std::ffi::OsString;
use std::path::Path;

pub use config::{SandboxConfig, SandboxMode};
pub use zeph_exec::sandbox::{Enforcement, NOT_HIDDEN, probe};
use zeph_exec::sandbox::{Plan, PlanOptions, plan::resolve};

use super::ShellConfig;

/// The limits of the commands that start in `cwd` with the environment `env`; `None` if the sandbox is off.
pub(super) fn plan(config: &ShellConfig, cwd: &Path, env: &[(OsString, OsString)]) -> Option<Plan> {
    let required = match config.sandbox.mode {
        SandboxMode::Off => return None,
        SandboxMode::BestEffort => false,
        SandboxMode::Required => true,
    };
    let options = PlanOptions {
        required,
        allowed_paths: &config.allowed_paths,
        writable: &config.sandbox.writable,
        network: config.allow_network,
    };
    Some(Plan::new(&options, cwd, env, resolve))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-20.
    #[test]
    fn mode_decides_whether_the_sandbox_is_required() {
        let check = |mode, expect: Option<bool>| {
            let config = ShellConfig {
                sandbox: SandboxConfig {
                    mode,
                    ..SandboxConfig::default()
                },
                ..ShellConfig::default()
            };
            let plan = plan(&config, Path::new("/repo"), &[]);
            assert_eq!(plan.map(|plan| plan.required), expect, "{mode:?}");
        };
        check(SandboxMode::Off, None);
        check(SandboxMode::BestEffort, Some(false));
        check(SandboxMode::Required, Some(true));
    }
}
