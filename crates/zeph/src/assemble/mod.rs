//! The only assembly of the program: configuration → store → stack → agent.
//!
//! Every entry point (interactive, one-shot, `zeph tools`, the demo) uses it, so the same gates precede every call.

mod agent;
mod audit;
mod embedder;
mod executors;
mod filters;
mod instructions;
mod judge;
mod limits;
mod mcp;
mod ollama;
mod policies;
mod provider;
mod read_rules;
mod reload;
mod secrets;
mod session;
mod skills;
mod status;
mod trust;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use zeph_core::{AgentConfig, AuxiliaryUsage, Compressor, Embedder, SkillCatalog};
use zeph_llm::LlmProvider;
use zeph_memory::{SqliteOverflow, SqliteSeenFiles, SqliteUndo, Store};
use zeph_tools::argument_repair::ArgumentRepairer;
use zeph_tools::cache::ResultCaches;
use zeph_tools::file::{FilePreviews, FileUndo, ReadRules, Sandbox};
use zeph_tools::gate::llm_judge::AdversarialGate;
use zeph_tools::gate::{CallLimits, RuleSet};
use zeph_tools::layers::blocklist::BlocklistLayer;
use zeph_tools::layers::filter_feedback::FilterLayer;
use zeph_tools::layers::grants::Grants;
use zeph_tools::layers::now_ms;
use zeph_tools::overflow::OverflowConfig;
use zeph_tools::overflow::summary::OutputSummarizer;
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::shell::os_sandbox::probe;
use zeph_tools::shell::{SandboxMode, ShellExecutor, SupervisorCommand};
use zeph_tools::stack::{self, StackParts};
use zeph_tools::{AuditTrail, LayeredExecutor, Mode, Permissions, Undo};

use crate::cli::args::GlobalArgs;
use crate::config::{ConfigError, ConfigErrors, Environment, Loaded, Origin};
use crate::output::stderr_line;
use crate::terminal::sanitize::clean;

pub(crate) use agent::ConversationCaller;
pub(crate) use audit::AuditLines;
pub(crate) use embedder::embedding_provider;
use executors::{Executors, executors, with_servers, with_skills};
pub(crate) use executors::{known_sandbox, known_tools, lasting_grants};
pub(crate) use filters::{UserRules, filters, keep_gain, read_rules_file};
use instructions::Instructions;
pub(crate) use judge::judge;
use limits::{limits, warn_of_unknown};
pub(crate) use mcp::{Mcp, McpPins, agreed, proposed};
pub(crate) use ollama::lacks as ollama_lacks;
use policies::Policies;
pub(crate) use provider::{
    choose_provider, chosen_config, compressor, meant, missing_key, reformatter, substitutes,
    with_substitutes,
};
use read_rules::{read_rules, reads, snapshots};
pub(crate) use reload::Reloader;
pub(crate) use secrets::{redaction_values, withhold, withhold_environment};
pub(crate) use session::{OpenSession, SessionChoice, open_session};
pub(crate) use skills::SkillPins;
pub(crate) use status::unserved_servers;
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
    /// The MCP servers; `None` if there are none, or if the command calls no tools.
    pub(crate) mcp: Option<Arc<Mcp>>,
    /// Undoes the changes of the file tools.
    pub(crate) undo: Arc<dyn Undo>,
    /// Owns the processes of commands.
    shell: Arc<ShellExecutor>,
    /// Notices are not shown.
    quiet: bool,
}

impl App {
    /// Opens the database and builds the stack. `lines` is the stream of the audit sink `stdout`.
    ///
    /// # Errors
    /// The error states the missing part, its place and the fix.
    pub(crate) async fn new(
        loaded: Loaded,
        env: Environment,
        global: &GlobalArgs,
        lines: AuditLines,
    ) -> anyhow::Result<Self> {
        Self::build(loaded, env, global, lines, None, false).await
    }

    /// Builds the stack like [`App::new`], with the tools of MCP servers.
    ///
    /// # Errors
    /// As [`App::new`].
    pub(crate) async fn calling(
        loaded: Loaded,
        env: Environment,
        global: &GlobalArgs,
        lines: AuditLines,
    ) -> anyhow::Result<Self> {
        Self::build(loaded, env, global, lines, None, true).await
    }

    /// Builds the stack for a conversation with `provider`, which may also judge its calls and repair their
    /// arguments.
    ///
    /// # Errors
    /// As [`App::new`].
    pub(crate) async fn talking(
        loaded: Loaded,
        env: Environment,
        global: &GlobalArgs,
        lines: AuditLines,
        provider: &Arc<dyn LlmProvider>,
    ) -> anyhow::Result<Self> {
        Self::build(loaded, env, global, lines, Some(provider), true).await
    }

    async fn build(
        loaded: Loaded,
        env: Environment,
        global: &GlobalArgs,
        lines: AuditLines,
        provider: Option<&Arc<dyn LlmProvider>>,
        calls: bool,
    ) -> anyhow::Result<Self> {
        refuse_full_mode(&loaded, global)?;
        // The servers start concurrently with the following steps.
        let mcp = match calls && loaded.config.tools.enabled {
            true => Mcp::start(&loaded, &env)?.map(Arc::new),
            false => None,
        };
        let side_usage = Arc::new(AuxiliaryUsage::default());
        let reformatter = match provider {
            Some(provider) => reformatter(&loaded, &env, provider, &side_usage)?,
            None => None,
        };
        let store = Store::open(&loaded.paths.database, loaded.config.memory.synchronous).await?;
        let embedder =
            embedder::embedder(&loaded, &env, provider, &store, &side_usage, global.quiet)?;
        let rules = read_rules(&loaded, &env)?;
        let instruction_rules = rules.clone();
        let secrets = secrets::redaction_values(&loaded, &env);
        let compressor = compressor(&loaded, &env, provider, &secrets)?;
        let shell = ShellExecutor::new(
            loaded.config.tools.shell.clone(),
            env.cwd.clone(),
            env.vars.clone().into_iter().collect(),
            SupervisorCommand::new(own_program()?),
            reads(&loaded, &env, rules.clone()),
        );
        let shell = shell.map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            anyhow!("[tools.shell]: {}", errors.join("; "))
        })?;
        let shell = shell
            .with_overflow(loaded.config.tools.overflow.clone())
            .with_redaction(Arc::clone(&secrets))
            .with_filters(Arc::new(filters(&loaded, &env, global.quiet)))
            .with_own_files(store.path().to_owned(), snapshots(&loaded));
        let shell = Arc::new(shell);
        let sandbox = path_sandbox(&loaded, &env, &store, rules)?;
        let policies = Policies::new(&loaded.paths, &env)
            .context("the project's directory cannot be reached")?;
        let policies = Arc::new(policies);
        let (trail, sandbox) = audit::trail(&loaded, &store, lines, sandbox)?;
        let sandbox = Arc::new(sandbox);
        let undo = FileUndo::new(Arc::clone(&sandbox), trail.clone());
        let caches = result_caches(&loaded, &shell);
        let limits = limits(&loaded, &store, global.quiet);
        let gate = judge::gate(
            &loaded,
            &env,
            global.model.as_deref(),
            provider,
            &side_usage,
        );
        let permissions = Permissions {
            mode: loaded.config.tools.mode,
            rules: Arc::clone(&loaded.rules),
            places: Arc::clone(&loaded.places),
            file: Some(loaded.paths.user_file.clone()),
            grants: Arc::new(Grants::kept_in(Arc::clone(&policies) as _)),
            refuses_unattended: !loaded.config.scheduler.skip_questions,
            previews: Some(Arc::new(FilePreviews::new(Arc::clone(&sandbox)))),
        };
        let requests = &compressor.requests;
        let embeds = embedder.as_ref();
        let summarizer = judge::summarizer(
            &loaded,
            &env,
            global.model.as_deref(),
            provider,
            &side_usage,
        )?;
        let (mut executors, found) =
            executors(&loaded, &env, sandbox, &store, &shell, requests, embeds)?;
        if let Some(mcp) = &mcp {
            mcp.servers.wait().await;
            with_servers(&mut executors, mcp);
        }
        let skills = SkillCatalog::from(found);
        if loaded.config.tools.enabled {
            with_skills(&mut executors, &skills.skills);
        }
        let stack = build_stack(
            &loaded,
            executors,
            &skills,
            &store,
            &shell,
            caches.clone(),
            &limits,
            gate,
            summarizer,
            trail,
            secrets,
            permissions.clone(),
        )?;
        let registry = stack.registry();
        warn_of_unknown(&limits, &registry, global.quiet);
        let kind = |tool: &str| Some(registry.get(tool)?.about.pattern_kind());
        let checked = policies.check(kind, &loaded.places);
        checked.map_err(|error| ConfigErrors::from(ConfigError::general(error.to_string())))?;
        let reload = Reloader::new(
            &loaded,
            &env,
            global.overrides(),
            shell.policy(),
            caches.clone(),
        );
        expire_overflow(store.clone(), &loaded.config.tools.overflow);
        let instructions = match provider {
            Some(_) => Instructions::read(&env, &instruction_rules),
            None => Instructions::default(),
        };
        if !global.quiet {
            let servers = mcp.iter().flat_map(|mcp| mcp.servers.notices());
            for notice in instructions.notices.iter().cloned().chain(servers) {
                stderr_line(&clean(&notice));
            }
        }
        Ok(Self {
            loaded,
            env,
            instructions,
            skills,
            mcp,
            store,
            stack: Arc::new(stack),
            caches,
            limits,
            side_usage,
            reformatter,
            compressor,
            embedder,
            permissions,
            reload: Arc::new(reload),
            undo: Arc::new(undo),
            shell,
            quiet: global.quiet,
        })
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
        match &self.mcp {
            Some(mcp) => {
                tokio::join!(self.shell.shutdown(), mcp.close());
            }
            None => self.shell.shutdown().await,
        }
        let filters = self.shell.filters();
        filters.metrics().log();
        keep_gain(&self.store, filters).await;
        self.store.close().await?;
        Ok(())
    }
}

/// Refuses mode `full` without an OS sandbox around commands, unless `--unsandboxed` is set too.
fn refuse_full_mode(loaded: &Loaded, global: &GlobalArgs) -> anyhow::Result<()> {
    if loaded.config.tools.mode != Mode::Full || global.unsandboxed {
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
            "mode `full` runs every command without a question, and there is no OS sandbox around \
             commands: {lack}; add --unsandboxed to accept that, or use --mode auto-edit"
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
    let mut sandbox = Sandbox::new(&tools.file.allowed_paths, &env.cwd)?.reserving(store.path())?;
    // If this process cannot create the folder, its tools cannot write to it either.
    if let Ok(pins) = Pins::in_folder(&loaded.paths.data_dir).made_folder() {
        sandbox = sandbox.reserving(pins)?;
    }
    if let Ok(pins) = SkillPins::in_folder(&loaded.paths.data_dir).made_folder() {
        sandbox = sandbox.reserving(pins)?;
    }
    Ok(sandbox
        .reserving_absent(McpPins::in_folder(&loaded.paths.data_dir).folder())?
        .reserving_absent(&loaded.paths.policies)?
        .reserving_absent(&executors::code_index(loaded))?
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

/// Builds the executors and the layers around them.
#[allow(
    clippy::too_many_arguments,
    reason = "each is a part of the stack, and named there"
)]
fn build_stack(
    loaded: &Loaded,
    executors: Executors,
    skills: &SkillCatalog,
    store: &Store,
    shell: &Arc<ShellExecutor>,
    cache: Option<Arc<ResultCaches>>,
    limits: &CallLimits,
    adversarial: Option<AdversarialGate>,
    summarizer: Option<Arc<dyn OutputSummarizer>>,
    audit: AuditTrail,
    secrets: Arc<SecurityPatterns>,
    permissions: Permissions,
) -> anyhow::Result<LayeredExecutor> {
    let tools = &loaded.config.tools;
    let overflow = Arc::new(SqliteOverflow::new(store.clone()));
    let stack = stack::build(StackParts {
        executors,
        audit,
        limits: limits.clone(),
        adversarial,
        watchers: vec![Arc::new(FilterLayer::new(Arc::clone(shell.filters())))],
        cache,
        retry: tools.retry.clone(),
        overflow: Some((overflow, tools.overflow.clone())),
        summarizer,
        secrets,
        blocklist: Some(Arc::new(BlocklistLayer::new(&shell))),
        policy: loaded.policy.clone(),
        permissions,
        skills: (!skills.skills.is_empty()).then(|| Arc::clone(&skills.skills)),
    })?;
    fitting(&stack, &loaded.rules)?;
    Ok(stack)
}

/// Checks that every rule was compiled for the kind of target of its tool. Another rule would decide nothing.
fn fitting(stack: &LayeredExecutor, rules: &RuleSet) -> anyhow::Result<()> {
    let registry = stack.registry();
    for (tool, rule) in rules.iter() {
        let about = registry.get(tool).map(|def| def.about.pattern_kind());
        if about.is_some_and(|about| about != rule.kind()) {
            bail!(
                "`{}` was read for another tool than `{tool}`",
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
