//! The hooks of the configuration, below a supervisor of their own.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::Context as _;
use zeph_tools::AuditTrail;
use zeph_tools::permission_mode::SessionMode;
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::shell::{ServedPrograms, SupervisorCommand, env as shell_env};

use super::own_program;
use crate::config::{Environment, Loaded};
use crate::hooks::{HookPrograms, Hooks};

/// The variable by which processes are known as a call's.
const CALL_TAG: &str = "ZEPH_CALL_ID";

/// The hooks; `None` if there are none.
///
/// # Errors
/// A glob is invalid, or the running program is not found.
pub(super) fn hooks(
    loaded: &Loaded,
    env: &Environment,
    audit: &AuditTrail,
    secrets: &Arc<SecurityPatterns>,
    mode: &SessionMode,
) -> anyhow::Result<Option<Arc<Hooks>>> {
    let configs = &loaded.config.hooks;
    if configs.is_empty() {
        return Ok(None);
    }
    let base: Vec<(OsString, OsString)> = env.vars.clone().into_iter().collect();
    let tag = env.var(CALL_TAG).map(OsString::from);
    let programs = HookPrograms {
        programs: ServedPrograms::new(SupervisorCommand::new(own_program()?), tag),
        env: shell_env::select(&base, &loaded.config.tools.shell.env, None),
        cwd: env.cwd.clone(),
    };
    let (audit, secrets) = (audit.clone(), Arc::clone(secrets));
    let hooks = Hooks::new(configs, programs, audit, secrets, mode.clone());
    Ok(Some(Arc::new(hooks.context("[[hooks]] `tools`")?)))
}
