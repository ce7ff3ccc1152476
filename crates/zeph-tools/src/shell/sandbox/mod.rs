//! The sandbox of the operating system around commands: its configuration, its use and its messages.
//!
//! [`config`] holds the settings, and `plan` makes the limits of a session of them. `profile` adapts them to one command
//! (`caches` are writable, `executables` limits read-only commands with Git), and `zeph-exec` applies them. After a
//! failure, `session_sandbox` finds the refused accesses, and `access_request` makes a question and a message of them.
//! `denial_detection` is for machines that report no refusals.

pub(super) mod access_request;
mod caches;
pub mod config;
mod denial_detection;
mod executables;
pub(super) mod profile;
pub(super) mod session_sandbox;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use config::{AccessPolicy, SandboxConfig, SandboxMode};
pub use zeph_exec::sandbox::{Enforcement, NOT_HIDDEN, probe};
use zeph_exec::sandbox::{Plan, PlanOptions, plan::resolve};

use super::ShellConfig;
use crate::contract::confinement::SandboxSupport;

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
    let plan = Plan::new(&options, cwd, env, resolve);
    Some(with_caches(plan, &config.sandbox, env))
}

/// The limits of a program that runs next to the commands, such as an MCP server.
#[derive(Debug, Clone, Copy)]
pub struct ProgramAccess<'a> {
    /// The files and directories that it may write, relative to the directory in which it starts.
    pub writable: &'a [PathBuf],
    /// Whether it may use the network.
    pub network: bool,
    /// Files and directories of Zeph itself, which it may not read, except `writable` ones.
    pub private: &'a [PathBuf],
}

/// The plan for such a program. It may also write the temporary directory and, as configured for commands, the caches of
/// package managers.
#[must_use]
pub fn program_plan(
    config: &SandboxConfig,
    access: &ProgramAccess<'_>,
    cwd: &Path,
    env: &[(OsString, OsString)],
) -> Plan {
    let options = PlanOptions {
        required: config.mode == SandboxMode::Required,
        allowed_paths: access.writable,
        writable: &[],
        network: access.network,
    };
    let plan = with_caches(Plan::new(&options, cwd, env, resolve), config, env);
    let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
        let paths = paths.iter().map(|path| resolve(&cwd.join(path)));
        paths.collect()
    };
    plan.without_reading(&real(access.private), &real(access.writable))
}

/// The plan with the caches of package managers writable, if that is configured.
fn with_caches(plan: Plan, config: &SandboxConfig, env: &[(OsString, OsString)]) -> Plan {
    match config.caches {
        AccessPolicy::Allow => caches::existing(env)
            .iter()
            .fold(plan, |plan, cache| plan.with_writable(resolve(cache))),
        AccessPolicy::Ask | AccessPolicy::Deny => plan,
    }
}

/// The parts of the sandbox that this machine enforces on commands, as configured. It probes the system.
#[must_use]
pub fn support(config: &SandboxConfig) -> SandboxSupport {
    if config.mode == SandboxMode::Off {
        return SandboxSupport::default();
    }
    // Without a probe, nothing counts as enforced, and commands require confirmation.
    probe().map_or_else(
        |_| SandboxSupport::default(),
        |found| SandboxSupport {
            confines_writes: found.confines_writes(),
            cuts_network: found.seatbelt || found.seccomp,
        },
    )
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
