//! The sandbox of one command: the limits of the session, adapted to the confinement of the call.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::caches;
use super::config::{AccessPolicy, SandboxConfig};
use super::executables::executables;
use crate::contract::confinement::{Confinement, SandboxAccess, SandboxProfile};
use crate::error::ToolError;
use crate::shell::command::variable;
use crate::shell::program;
use zeph_exec::Plan;
use zeph_exec::runner::CommandSandbox;
use zeph_exec::sandbox::plan::resolve;

/// Settings of Git for commands that only read: Git starts no program that a repository names.
const GIT_SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("core.askPass", "false"),
    ("core.editor", "false"),
    ("credential.helper", ""),
    ("diff.autoRefreshIndex", "false"),
    ("diff.ignoreSubmodules", "dirty"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("log.showSignature", "false"),
    // A bare repository among the files of a project has a configuration that its author chose.
    ("safe.bareRepository", "explicit"),
    ("status.submoduleSummary", "false"),
];

/// Variables for commands that only read: programs start no other program, and write no lock or index.
const READING: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("CARGO_NET_OFFLINE", "true"),
    ("CARGO_ENCODED_RUSTFLAGS", ""),
    ("RUSTC_WRAPPER", ""),
    ("RUSTC_WORKSPACE_WRAPPER", ""),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// Variables that name programs, directories or configuration files. Commands that only read do not receive them, nor
/// variables that end with `_OPTIONS`.
const REMOVED: &[&str] = &[
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "LESSOPEN",
    "LESSCLOSE",
    "RIPGREP_CONFIG_PATH",
    "FD_CONFIG_PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "XZ_DEFAULTS",
    "ZSTD_CLEVEL",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PERL5OPT",
    "RUBYOPT",
];

/// The sandbox of one command.
#[derive(Debug)]
pub(in crate::shell) struct PreparedSandbox {
    /// The limits; `None` without a sandbox.
    pub(in crate::shell) plan: Option<Plan>,
    /// The environment of the command.
    pub(in crate::shell) env: Vec<(OsString, OsString)>,
    /// Whether the command may only read.
    pub(in crate::shell) is_read_only: bool,
    /// The temporary directory of a command that only reads. It is removed at the end.
    _private: Option<TempDir>,
}

impl PreparedSandbox {
    /// The sandbox for the runner.
    pub(in crate::shell) fn for_runner(&self) -> CommandSandbox {
        match &self.plan {
            Some(plan) => CommandSandbox::Plan(Box::new(plan.clone())),
            None => CommandSandbox::Off,
        }
    }

    /// No sandbox, with the environment `env`.
    pub(in crate::shell) fn without_plan(env: Vec<(OsString, OsString)>) -> Self {
        Self {
            plan: None,
            env,
            is_read_only: false,
            _private: None,
        }
    }
}

/// The environment of a command that only reads, made from the configured one. `temporary` is its private directory.
/// Programs below the writable directories of `session` are not found by their names.
fn reading_environment(
    mut env: Vec<(OsString, OsString)>,
    temporary: &Path,
    session: &Plan,
) -> Vec<(OsString, OsString)> {
    let fixed = READING
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let mut set: Vec<(OsString, OsString)> = fixed.collect();
    set.push(("TMPDIR".into(), temporary.into()));
    if let Some((_, path)) = env.iter_mut().find(|(name, _)| name == "PATH") {
        let fixed =
            |directory: &PathBuf| directory.is_absolute() && !session.allows(&resolve(directory));
        let kept: Vec<PathBuf> = std::env::split_paths(path).filter(fixed).collect();
        // A directory that was split off has no separator.
        *path = std::env::join_paths(kept).unwrap_or_default();
    }
    // An absolute path: `[env]` of a configuration of cargo may set the `PATH` for its programs.
    let rustc = program::find(&["rustc"], variable(&env, "PATH").map(OsString::as_os_str));
    let rustc = rustc.map_or_else(|| OsString::from("/dev/null"), PathBuf::into_os_string);
    set.push(("RUSTC".into(), rustc));
    set.push((
        "GIT_CONFIG_COUNT".into(),
        GIT_SETTINGS.len().to_string().into(),
    ));
    for (at, (key, value)) in GIT_SETTINGS.iter().enumerate() {
        set.push((format!("GIT_CONFIG_KEY_{at}").into(), key.into()));
        set.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
    }
    let is_replaced = |name: &OsString| {
        let text = name.to_str().unwrap_or_default();
        REMOVED.contains(&text)
            || text.ends_with("_OPTIONS")
            || text.starts_with("GIT_CONFIG_")
            || set.iter().any(|(other, _)| other == name)
    };
    env.retain(|(name, _)| !is_replaced(name));
    env.extend(set);
    env
}

/// Prepares the sandbox of a command with the environment `env`. The command names `programs`. `session` has the limits of the
/// session; `None` without a sandbox.
///
/// # Errors
/// If the call may run only in a sandbox, and the session has none.
pub(in crate::shell) fn prepare(
    session: Option<&Plan>,
    config: &SandboxConfig,
    confinement: &Confinement,
    programs: &[&str],
    env: Vec<(OsString, OsString)>,
) -> Result<PreparedSandbox, ToolError> {
    let profile = confinement.profile;
    let Some(session) = session else {
        return match profile {
            SandboxProfile::Configured => Ok(PreparedSandbox::without_plan(env)),
            _ => Err(ToolError::blocked(
                "this command runs without confirmation only in the OS sandbox, which is off \
                 (`[tools.shell.sandbox] mode`)",
            )),
        };
    };
    if profile == SandboxProfile::ReadOnly {
        let private = tempfile::Builder::new().prefix("zeph-read-").tempdir();
        let private = private.map_err(|error| {
            ToolError::io("create a temporary directory", &std::env::temp_dir(), error)
        })?;
        let env = reading_environment(env, private.path(), session);
        let mut plan = session.for_reading(private.path());
        plan.required = true;
        if programs.contains(&"git") {
            let path = variable(&env, "PATH").map(OsString::as_os_str);
            plan = plan.with_executable(executables(programs, path));
        }
        return Ok(PreparedSandbox {
            plan: Some(plan),
            env,
            is_read_only: true,
            _private: Some(private),
        });
    }
    if confinement.access.contains(&SandboxAccess::Everything) {
        return Ok(PreparedSandbox::without_plan(env));
    }
    let mut plan = session.clone();
    if config.caches == AccessPolicy::Allow {
        caches::create(programs, &env);
        for path in caches::existing(&env) {
            plan = plan.with_writable(resolve(&path));
        }
    }
    if profile == SandboxProfile::Unconfirmed {
        plan.required = true;
        if config.network != AccessPolicy::Allow {
            plan = plan.without_network();
        }
    }
    for access in &confinement.access {
        match access {
            SandboxAccess::Write(path) => plan = plan.with_writable(resolve(path)),
            // The configuration may forbid the network to all commands.
            SandboxAccess::Network => plan.sockets = session.sockets,
            SandboxAccess::Everything => {}
        }
    }
    Ok(PreparedSandbox {
        plan: Some(plan),
        env,
        is_read_only: false,
        _private: None,
    })
}
