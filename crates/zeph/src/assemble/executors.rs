//! The executors of tools, and the definitions of their tools, which are available without a running executor.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use zeph_core::native::scheduler::Scheduler;
use zeph_core::native::skills::{FoundSkills, SkillExecutor};
use zeph_core::{
    CompressContext, Embedder, NativeExecutor, PendingCompactions, SkillCatalog, SystemClock,
};
use zeph_mcp::McpExecutor;
use zeph_memory::{SqliteOverflow, Store};
use zeph_tools::diagnostics::{Diagnostics, DiagnosticsExecutor};
use zeph_tools::file::{FileExecutor, ReadRules, Sandbox};
use zeph_tools::gate::KnownRefusals;
use zeph_tools::read_overflow::ReadOverflow;
use zeph_tools::shell::{ShellExecutor, SupervisorCommand};
use zeph_tools::skill::SkillRegistry;
use zeph_tools::web::{UrlRefusals, WebScrapeExecutor};
use zeph_tools::{ErasedToolExecutor, ToolDef, ToolRegistry};

use super::commands::CommandModels;
use super::definition_folders::AgentFolders;
use super::mcp::Mcp;
use super::skills;
use super::sub_agents::{usable_agents, with_sub_agents};
use super::{own_data_sandbox, own_program, read_rules, reads};
use crate::config::{Environment, Loaded};

/// Executors with their names.
pub(super) type Executors = Vec<(&'static str, Arc<dyn ErasedToolExecutor>)>;

/// All executors with their names, in the order of precedence, and the skills. The skill executor is the first, and
/// is missing if no skill exists: no skill can take the name of a tool.
pub(super) fn executors(
    loaded: &Loaded,
    env: &Environment,
    sandbox: Arc<Sandbox>,
    store: &Store,
    shell: &Arc<ShellExecutor>,
    compress: &Arc<PendingCompactions>,
    embedder: Option<&Embedder>,
) -> anyhow::Result<(Executors, FoundSkills)> {
    let tools = &loaded.config.tools;
    if !tools.enabled {
        return Ok((Executors::new(), FoundSkills::default()));
    }
    let overflow = Arc::new(SqliteOverflow::new(store.clone()));
    let diagnostics = Diagnostics::for_shell(shell).with_config(tools.diagnostics.clone());
    let read_overflow = ReadOverflow::new(overflow, &tools.overflow);
    let scheduler = Scheduler::new(
        store.clone(),
        env.cwd.clone(),
        Arc::new(SystemClock),
        loaded.config.scheduler.clone(),
    );
    let mut native = NativeExecutor::new(store, embedder.cloned())
        .with_tool(read_overflow)
        .with_tool(scheduler);
    if loaded.config.agent.compaction.enabled {
        native = native.with_tool(CompressContext::new(Arc::clone(compress)));
    }
    let mut executors: Executors = vec![
        ("shell", Arc::clone(shell) as _),
        ("file", Arc::new(FileExecutor::new(Arc::clone(&sandbox)))),
        ("web", Arc::new(WebScrapeExecutor::new(&tools.scrape)?)),
        (
            "diagnostics",
            Arc::new(DiagnosticsExecutor::new(diagnostics)),
        ),
    ];
    executors.push(("native", Arc::new(native)));
    #[cfg(feature = "syntax")]
    {
        let file = zeph_tools::file::code::file_name(sandbox.cwd());
        let index = zeph_memory::SqliteCodeIndex::new(code_index(loaded).join(file));
        let search = zeph_tools::file::code::SearchCode::new(sandbox, Arc::new(index));
        let tools = zeph_tools::ToolSet::new(vec![Arc::new(search)]);
        executors.push(("code", Arc::new(tools)));
    }
    let definitions = executors.iter();
    let definitions = definitions.flat_map(|(_, executor)| executor.tool_definitions_erased());
    let skills = skills::find(loaded, env, &ToolRegistry::new(definitions.collect()));
    Ok((executors, skills))
}

/// The executor of shell commands, as configured.
///
/// # Errors
/// A setting of `[tools.shell]` is invalid, or the path of this program cannot be found.
pub(super) fn shell_executor(
    loaded: &Loaded,
    env: &Environment,
    rules: ReadRules,
) -> anyhow::Result<ShellExecutor> {
    let shell = ShellExecutor::new(
        loaded.config.tools.shell.clone(),
        env.cwd.clone(),
        env.vars.clone().into_iter().collect(),
        SupervisorCommand::new(own_program()?),
        reads(loaded, env, rules),
    );
    shell.map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow!("[tools.shell]: {}", errors.join("; "))
    })
}

/// Inserts the executor of `skills` before the others.
pub(super) fn with_skills(executors: &mut Executors, skills: &Arc<SkillRegistry>) {
    if !skills.is_empty() {
        let executor = SkillExecutor::new(Arc::clone(skills));
        executors.insert(0, ("skill", Arc::new(executor)));
    }
}

/// Inserts the executor of MCP tools after the one of diagnostics.
pub(super) fn with_servers(executors: &mut Executors, mcp: &Mcp) {
    let before = executors.iter().position(|(name, _)| *name == "native");
    let executor = McpExecutor::new(Arc::clone(&mcp.servers));
    executors.insert(
        before.unwrap_or(executors.len()),
        ("mcp", Arc::new(executor)),
    );
}

/// The folder of the symbol indices, with one file for each project.
pub(super) fn code_index(loaded: &Loaded) -> PathBuf {
    loaded.paths.data_dir.join("code-index")
}

/// The definitions of all tools, the shell for its blocklist, and the skills. Nothing runs, no database is opened,
/// and nothing is written.
///
/// # Errors
/// The error states the missing part, its place and the fix.
pub(crate) fn known_tools(
    loaded: &Loaded,
    env: &Environment,
) -> anyhow::Result<(Vec<ToolDef>, Arc<ShellExecutor>, FoundSkills)> {
    let shell = Arc::new(shell_executor(loaded, env, read_rules(loaded, env)?)?);
    let sandbox = known_sandbox(loaded, env)?;
    let store = Store::unopened(&loaded.paths.database);
    let (mut executors, found) = executors(
        loaded,
        env,
        Arc::new(sandbox),
        &store,
        &shell,
        &Arc::default(),
        None,
    )?;
    with_skills(&mut executors, &SkillCatalog::from(found.clone()).skills);
    if loaded.config.tools.enabled {
        let models = CommandModels::new(loaded.clone(), env.clone(), None);
        let folders = AgentFolders::of_agents(loaded, env);
        let (agents, _) = usable_agents(folders, Arc::new(models));
        with_sub_agents(&mut executors, &agents);
    }
    let definitions = executors
        .iter()
        .flat_map(|(_, executor)| executor.tool_definitions_erased());
    Ok((definitions.collect(), shell, found))
}

/// The path sandbox of file tools, for queries without the tools. Missing folders are not created.
///
/// # Errors
/// A directory cannot be reached, or a rule is invalid.
pub(crate) fn known_sandbox(loaded: &Loaded, env: &Environment) -> anyhow::Result<Sandbox> {
    Ok(own_data_sandbox(loaded, env)?.with_rules(read_rules(loaded, env)?))
}

/// The tools that refuse some calls in any case, before the user is asked.
///
/// # Errors
/// An entry of `allowed_domains` or `denied_domains` is invalid.
pub(crate) fn known_refusals(
    loaded: &Loaded,
    sandbox: &Arc<Sandbox>,
) -> anyhow::Result<Vec<Arc<dyn KnownRefusals>>> {
    let urls = UrlRefusals::new(&loaded.config.tools.scrape)?;
    Ok(vec![Arc::clone(sandbox) as _, Arc::new(urls)])
}
