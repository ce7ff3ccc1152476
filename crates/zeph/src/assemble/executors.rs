//! What works behind the gates, and what is known of it without any of it working.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use zeph_core::{CompressContext, CompressRequests, Embedder, native_tools};
use zeph_memory::{SqliteOverflow, Store};
use zeph_tools::file::{Sandbox, file_tools};
use zeph_tools::gate::Grant;
use zeph_tools::layers::grants::GrantStore as _;
use zeph_tools::overflow::ReadOverflow;
use zeph_tools::shell::{ShellExecutor, SupervisorCommand};
use zeph_tools::web::web_tools;
use zeph_tools::{ErasedToolExecutor, ToolDef, ToolRegistry, ToolSet};

use super::policies::Policies;
use super::{own_program, read_rules, reads};
use crate::config::{ConfigError, ConfigErrors, Environment, Loaded};

/// Executors with their names, in the order in which they are asked.
pub(super) type Executors = Vec<(&'static str, Arc<dyn ErasedToolExecutor>)>;

/// All executors.
pub(super) fn executors(
    loaded: &Loaded,
    sandbox: Arc<Sandbox>,
    store: &Store,
    shell: &Arc<ShellExecutor>,
    compress: &Arc<CompressRequests>,
    embedder: Option<&Embedder>,
) -> anyhow::Result<Executors> {
    let tools = &loaded.config.tools;
    let overflow = Arc::new(SqliteOverflow::new(store.clone()));
    let read_overflow = ReadOverflow::new(overflow, &tools.overflow);
    let mut executors: Executors = vec![
        ("shell", Arc::clone(shell) as _),
        ("file", Arc::new(file_tools(sandbox))),
        ("web", Arc::new(web_tools(&tools.scrape)?)),
        (
            "diagnostics",
            Arc::new(ToolSet::new(vec![Arc::new(shell.diagnostics())])),
        ),
        ("native", Arc::new(native_tools(store, embedder.cloned()))),
        (
            "overflow",
            Arc::new(ToolSet::new(vec![Arc::new(read_overflow)])),
        ),
    ];
    if loaded.config.agent.compaction.enabled {
        let compress = CompressContext::new(Arc::clone(compress));
        executors.push(("compress", Arc::new(ToolSet::new(vec![Arc::new(compress)]))));
    }
    Ok(executors)
}

/// The definitions of all tools, and the shell for its blocklist. Nothing runs, no database is opened
/// and nothing is written.
///
/// # Errors
/// What is missing, where, and how to mend it.
pub(crate) fn known_tools(
    loaded: &Loaded,
    env: &Environment,
) -> anyhow::Result<(Vec<ToolDef>, Arc<ShellExecutor>)> {
    let shell = ShellExecutor::new(
        loaded.config.tools.shell.clone(),
        env.cwd.clone(),
        env.vars.clone().into_iter().collect(),
        SupervisorCommand::new(own_program()?),
        reads(loaded, env, read_rules(loaded, env)?),
    );
    let shell = Arc::new(shell.map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow!("[tools.shell]: {}", errors.join("; "))
    })?);
    let sandbox = known_sandbox(loaded, env)?;
    let store = Store::unopened(&loaded.paths.database);
    let executors = executors(
        loaded,
        Arc::new(sandbox),
        &store,
        &shell,
        &Arc::default(),
        None,
    )?;
    let definitions = executors
        .iter()
        .flat_map(|(_, executor)| executor.tool_definitions_erased());
    Ok((definitions.collect(), shell))
}

/// What file tools may touch, to be asked without them. What is not there is not made.
///
/// # Errors
/// A directory that cannot be reached, a rule that is none.
pub(crate) fn known_sandbox(loaded: &Loaded, env: &Environment) -> anyhow::Result<Sandbox> {
    let paths = &loaded.paths;
    let sandbox = Sandbox::new(&loaded.config.tools.file.allowed_paths, &env.cwd)?;
    Ok(sandbox
        .reserving_absent(&paths.database)?
        .reserving_absent(&paths.policies)?
        .with_rules(read_rules(loaded, env)?))
}

/// What was agreed to for good and holds here.
///
/// # Errors
/// A file that cannot be understood.
pub(crate) fn lasting_grants(
    loaded: &Loaded,
    env: &Environment,
    registry: &ToolRegistry,
) -> anyhow::Result<Vec<Grant>> {
    let policies = Policies::new(&loaded.paths, env);
    let policies = policies.context("the project's directory cannot be reached")?;
    let kind = |tool: &str| Some(registry.get(tool)?.about.pattern_kind());
    let grants = policies.check(kind, &loaded.places);
    let grants = grants.and_then(|()| policies.holding());
    Ok(grants.map_err(|error| ConfigErrors::from(ConfigError::general(error.to_string())))?)
}
