//! The only assembly of the program: configuration → store → stack → agent.
//!
//! Every entry point (interactive, one-shot, `zeph tools`, `zeph acp`, `zeph mcp serve`, the scheduler, the demo) uses it,
//! so the same gates precede every call.

mod agent;
mod audit;
mod build;
mod commands;
mod definition_folders;
mod embedder;
mod executors;
mod filters;
mod grants;
mod hooks;
mod instructions;
mod judge;
mod limits;
mod mcp;
mod model_completion;
mod ollama;
mod platform;
mod policies;
mod provider;
mod read_rules;
mod reload;
mod secrets;
mod server_models;
mod session;
mod shared_grants;
mod skills;
mod status;
mod store;
mod sub_agents;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use zeph_core::{
    AgentConfig, AuxiliaryUsage, Compressor, CustomCommands, Embedder, IterationPolicy,
    SkillCatalog, SubAgents,
};
use zeph_llm::LlmProvider;
use zeph_memory::{SqliteSeenFiles, SqliteUndo, Store};
use zeph_tools::argument_repair::ArgumentRepairer;
use zeph_tools::cache::ResultCaches;
use zeph_tools::file::{ReadRules, Sandbox};
use zeph_tools::gate::{CallLimits, RuleSet};
use zeph_tools::layers::now_ms;
use zeph_tools::overflow::OverflowConfig;
use zeph_tools::shell::sandbox::probe;
use zeph_tools::shell::{SandboxMode, ShellExecutor};
use zeph_tools::{LayeredExecutor, Mode, Permissions, Undo};

use crate::config::{Environment, Loaded, Origin};
use crate::hooks::Hooks;
use crate::keys::KeyStore;
use crate::output::sanitize::clean;
use crate::output::stderr_line;

pub(crate) use agent::ConversationCaller;
pub(crate) use audit::AuditLines;
use build::AppBuilder;
pub(crate) use build::{BuildOptions, EditorPorts};
pub(crate) use definition_folders::{
    AGENTS, AgentFolders, COMMANDS, CommandFolders, DefinitionFolders, FolderPins, FolderTrust,
};
pub(crate) use embedder::embedding_provider;
pub(crate) use executors::{known_refusals, known_sandbox, known_tools};
pub(crate) use filters::{UserRules, filters, keep_gain, read_rules_file};
pub(crate) use grants::lasting_grants;
use instructions::Instructions;
pub(crate) use judge::judge;
pub(crate) use mcp::{Mcp, McpPins, McpTokens, agreed, proposed, server_folders};
pub(crate) use model_completion::ModelCompletion;
pub(crate) use ollama::{is_ollama, lacks as ollama_lacks, with_model as ollama_with_model};
pub(crate) use provider::{
    KeySource, choose_provider, chosen_config, has_no_provider, key_source, meant, missing_key,
    reformatter, substitutes, vendor, with_key, with_substitutes,
};
use read_rules::{read_rules, reads};
pub(crate) use reload::Reloader;
pub(crate) use secrets::{redaction_values, withhold, withhold_environment};
pub(crate) use server_models::{Listing, ServerModels};
pub(crate) use session::{
    OpenSession, SessionChoice, forget_empty, fork_session, open_session, other_directory,
    stored_events,
};
pub(crate) use skills::SkillPins;
pub(crate) use store::{open_other_store, open_store, open_store_for_reading};
pub(crate) use trust::{Pins, ProjectRules, Standing};

/// The parts that every command with tools needs.
pub(crate) struct App {
    /// The configuration.
    pub(crate) loaded: Loaded,
    /// The process's environment.
    pub(crate) env: Environment,
    /// The database.
    pub(crate) store: Store,
    /// The tools with their gates.
    pub(crate) stack: Arc<LayeredExecutor>,
    /// Updates the blocklist when the configuration changes.
    pub(crate) reload: Arc<Reloader>,
    /// The cache of results; `None` if it is off.
    pub(crate) caches: Option<Arc<ResultCaches>>,
    /// The limits of calls.
    pub(crate) limits: CallLimits,
    /// The token usage of models outside the conversation: the judge and the repair of arguments.
    pub(crate) side_usage: Arc<AuxiliaryUsage>,
    /// Repairs arguments that do not match their schema; `None` without a conversation.
    pub(crate) reformatter: Option<Arc<dyn ArgumentRepairer>>,
    /// Summarizes older messages of a conversation.
    pub(crate) compressor: Compressor,
    /// Computes embeddings of texts; `None` if keyword matching is used, and without a conversation.
    pub(crate) embedder: Option<Embedder>,
    /// The decisions whether a call may run.
    pub(crate) permissions: Permissions,
    /// The project's instructions for agents; read for a conversation only.
    pub(crate) instructions: Instructions,
    /// The skills.
    pub(crate) skills: SkillCatalog,
    /// The kinds of sub-agents.
    pub(crate) sub_agents: SubAgents,
    /// The custom commands; none without a conversation.
    pub(crate) commands: CustomCommands,
    /// The MCP servers; `None` if there are none, or if the command calls no tools.
    pub(crate) mcp: Option<Arc<Mcp>>,
    /// The hooks; `None` if there are none.
    pub(crate) hooks: Option<Arc<Hooks>>,
    /// Undoes the changes of the file tools.
    pub(crate) undo: Arc<dyn Undo>,
    /// Owns the processes of commands.
    shell: Arc<ShellExecutor>,
    /// Notices are not shown.
    quiet: bool,
}

impl App {
    /// Opens the database and builds the stack. `lines` is the destination of printed audit entries.
    ///
    /// # Errors
    /// The missing or invalid part, and how to fix it.
    pub(crate) async fn new(
        loaded: Loaded,
        env: Environment,
        options: BuildOptions,
        lines: AuditLines,
    ) -> anyhow::Result<Self> {
        let builder = AppBuilder::new(loaded, env, options, lines);
        builder.build().await
    }

    /// Builds the stack with the tools of MCP servers.
    ///
    /// # Errors
    /// As [`App::new`].
    pub(crate) async fn for_calls(
        loaded: Loaded,
        env: Environment,
        options: BuildOptions,
        lines: AuditLines,
    ) -> anyhow::Result<Self> {
        let builder = AppBuilder::new(loaded, env, options, lines);
        builder.with_servers().build().await
    }

    /// Builds the stack with the tools of MCP servers for a conversation with `provider`, which may also judge calls and
    /// repair arguments.
    ///
    /// # Errors
    /// As [`App::new`].
    pub(crate) async fn for_conversation(
        loaded: Loaded,
        env: Environment,
        options: BuildOptions,
        lines: AuditLines,
        provider: &Arc<dyn LlmProvider>,
    ) -> anyhow::Result<Self> {
        let builder = AppBuilder::new(loaded, env, options, lines);
        builder.with_servers().with_provider(provider).build().await
    }

    /// `[agent]` for a model with this window. A project's file may only lower the budget, even if no other file sets
    /// one.
    pub(crate) fn agent_config(&self, window: usize) -> AgentConfig {
        let mut config = self.loaded.config.agent.clone();
        let origin = self.loaded.provenance.of("agent.context_budget_tokens");
        if matches!(origin, Origin::Project(_)) {
            config.context_budget_tokens = config
                .context_budget_tokens
                .map(|budget| budget.min(window));
        }
        config
    }

    /// The rounds of tool calls of a turn. They depend on the keys that a source sets.
    fn iteration_policy(&self) -> IterationPolicy {
        let provenance = &self.loaded.provenance;
        IterationPolicy::new(&self.loaded.config.agent, |key| {
            *provenance.of(&format!("agent.{key}")) != Origin::Default
        })
    }

    /// Whether files denied by `deny_read` are hidden from commands on this machine.
    pub(crate) async fn hides_denied(&self) -> bool {
        self.shell.enforces_deny_read().await
    }

    /// Ends and reports background jobs, then closes the database.
    ///
    /// # Errors
    /// If the database cannot be closed.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        let jobs = self.shell.running_jobs();
        if !jobs.is_empty() && !self.quiet {
            stderr_line(&clean(&format!(
                "Background jobs end with the process that started them: {}",
                jobs.join(", ")
            )));
        }
        let end_servers = async {
            if let Some(mcp) = &self.mcp {
                mcp.close().await;
            }
        };
        let end_hooks = async {
            if let Some(hooks) = &self.hooks {
                hooks.close().await;
            }
        };
        tokio::join!(self.shell.shutdown(), end_servers, end_hooks);
        let filters = self.shell.filters();
        filters.metrics().log();
        keep_gain(&self.store, filters).await;
        self.store.close().await?;
        Ok(())
    }
}

/// Without an OS sandbox around commands, `full` has to be asked for twice.
fn refuse_full_mode(loaded: &Loaded, unsandboxed: bool) -> anyhow::Result<()> {
    if loaded.config.tools.mode != Mode::Full || unsandboxed {
        return Ok(());
    }
    let lack = if loaded.config.tools.shell.sandbox.mode == SandboxMode::Off {
        Some("`[tools.shell.sandbox] mode` is \"off\"".to_owned())
    } else {
        let found = probe().context("could not detect the available OS sandbox")?;
        found.lacks(loaded.config.tools.shell.allow_network)
    };
    match lack {
        None => Ok(()),
        Some(lack) => bail!(
            "mode `full` runs every command without confirmation, and commands have no OS sandbox: \
             {lack}; add --unsandboxed to accept that, or use --mode auto-edit"
        ),
    }
}

/// Removes expired outputs in the background. If the program ends earlier, the next start removes the rest.
fn expire_overflow(store: Store, config: &OverflowConfig) {
    let since = config.retention_cutoff(now_ms());
    tokio::spawn(async move {
        match store.expire_overflow(since).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "old outputs were removed"),
            Err(error) => tracing::debug!(%error, "old outputs were not all removed"),
        }
    });
}

/// The path sandbox of file tools without rules. It denies the data of this program: the database, the approvals, the
/// logins, the keys and the symbol index.
fn own_data_sandbox(loaded: &Loaded, env: &Environment) -> anyhow::Result<Sandbox> {
    let data_dir = &loaded.paths.data_dir;
    let mut own = vec![
        loaded.paths.database.clone(),
        loaded.paths.policies.clone(),
        executors::code_index(loaded),
        Pins::in_folder(data_dir).folder().to_owned(),
        SkillPins::in_folder(data_dir).folder().to_owned(),
        McpPins::in_folder(data_dir).folder().to_owned(),
        FolderPins::new(COMMANDS, data_dir).folder().to_owned(),
        FolderPins::new(AGENTS, data_dir).folder().to_owned(),
        McpTokens::in_folder(data_dir).folder().to_owned(),
        KeyStore::in_folder(data_dir).folder().to_owned(),
    ];
    // Every call reports a file of audit entries that cannot be used.
    let audit_log = &loaded.paths.audit_log;
    if loaded.config.tools.audit.jsonl && audit_log.parent().is_some_and(Path::is_dir) {
        own.push(audit_log.clone());
    }
    let sandbox = Sandbox::new(&loaded.config.tools.file.allowed_paths, &env.cwd)?;
    let reserved = own
        .iter()
        .try_fold(sandbox, |sandbox, own| sandbox.reserving(own));
    Ok(reserved?)
}

/// The path sandbox of file tools, with the record of read files and the undo journal.
fn path_sandbox(
    loaded: &Loaded,
    env: &Environment,
    store: &Store,
    rules: ReadRules,
) -> anyhow::Result<Sandbox> {
    let tools = &loaded.config.tools;
    let seen = SqliteSeenFiles::new(store.clone());
    let journal = SqliteUndo::new(store.clone(), tools.undo.max_bytes);
    Ok(own_data_sandbox(loaded, env)?
        .with_rules(rules)
        .with_seen(tools.file.read_before_write.then(|| Arc::new(seen) as _))
        .with_journal(Arc::new(journal)))
}

/// The result caches of the sessions of this process. They know the shell's jobs, which change files between calls.
fn result_caches(loaded: &Loaded, shell: &Arc<ShellExecutor>) -> Option<Arc<ResultCaches>> {
    let tools = &loaded.config.tools;
    let jobs = Arc::clone(shell) as _;
    let caches = || Arc::new(ResultCaches::new(&tools.result_cache, Some(jobs)));
    tools.result_cache.enabled.then(caches)
}

/// Whether every rule was compiled for what its tool is about: one that was not would decide nothing.
fn fitting(stack: &LayeredExecutor, rules: &RuleSet) -> anyhow::Result<()> {
    let registry = stack.registry();
    for (tool, rule) in rules.iter() {
        let about = registry.get(tool).map(|def| def.about.pattern_kind());
        if about.is_some_and(|about| about != rule.kind()) {
            bail!(
                "`{}` was parsed for another tool than `{tool}`",
                rule.origin.key
            );
        }
    }
    Ok(())
}

/// The path of the running program, which is its own supervisor. On Linux, the kernel's link finds the right file
/// even if it was replaced on disk.
fn own_program() -> anyhow::Result<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() {
        return Ok(link);
    }
    std::env::current_exe().context("the path of the running program cannot be found")
}
