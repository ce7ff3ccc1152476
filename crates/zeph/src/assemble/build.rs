//! The builder of an [`App`]: one step for each part, in the order of their dependencies.

use std::sync::Arc;
use std::time::Duration;

use zeph_core::{AuxiliaryUsage, Compressor, CustomCommands, Embedder, SkillCatalog, SubAgents};
use zeph_llm::LlmProvider;
use zeph_mcp::{McpServerConfig, TrustStore};
use zeph_memory::{SqliteOverflow, Store};
use zeph_tools::argument_repair::ArgumentRepairer;
use zeph_tools::file::{EditorFiles, FilePreviews, FileUndo, ReadRules, Sandbox};
use zeph_tools::gate::llm_judge::AdversarialGate;
use zeph_tools::layers::blocklist::BlocklistLayer;
use zeph_tools::layers::filter_feedback::FilterLayer;
use zeph_tools::layers::grants::{GrantStore, Grants};
use zeph_tools::overflow::summary::OutputSummarizer;
use zeph_tools::permission_mode::SessionMode;
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::shell::{CommandRunner, EditorTerminal, ShellExecutor};
use zeph_tools::stack::{self, StackParts};
use zeph_tools::{AuditTrail, LayeredExecutor, Mode, Permissions};

use super::commands::{CommandModels, CommandReader, usable_commands};
use super::definition_folders::AgentFolders;
use super::executors::{
    Executors, executors, known_refusals, shell_executor, with_servers, with_skills,
};
use super::filters::filters;
use super::grants::PermanentGrants;
use super::hooks::hooks;
use super::instructions::Instructions;
use super::limits::{limits, warn_of_unknown};
use super::mcp::Mcp;
use super::platform::notice as platform_notice;
use super::provider::{compressor, reformatter};
use super::read_rules::{read_rules, snapshots};
use super::reload::Reloader;
use super::secrets::redaction_values;
use super::store::open_store;
use super::sub_agents::{usable_agents, with_sub_agents};
use super::{
    App, AuditLines, audit, embedder, expire_overflow, fitting, judge, path_sandbox,
    refuse_full_mode, result_caches,
};
use crate::config::{Environment, FlagOverrides, Loaded};
use crate::output::sanitize::clean;
use crate::output::stderr_line;
use crate::telemetry;

/// The options of a command line or of an editor that an [`App`] depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct BuildOptions {
    /// The settings that flags override. They apply again when the configuration is reloaded.
    pub(crate) overrides: FlagOverrides,
    /// Whether mode `full` may run without an OS sandbox.
    pub(crate) unsandboxed: bool,
    /// Whether notices are not printed.
    pub(crate) quiet: bool,
    /// The editor of the session, if it has one.
    pub(crate) editor: EditorPorts,
}

/// The ports to an editor. Without a port, the tools use this machine.
#[derive(Clone, Default)]
pub(crate) struct EditorPorts {
    /// Reads and writes texts, which may be unsaved.
    pub(crate) files: EditorFiles,
    /// Runs commands in terminals.
    pub(crate) terminals: Option<Arc<dyn CommandRunner>>,
    /// The approvals of MCP servers. If they are set, the editor may add servers later.
    pub(crate) pins: Option<Arc<dyn TrustStore>>,
    /// The servers that the editor may add. Their secrets are redacted from the start.
    pub(crate) servers: Vec<McpServerConfig>,
}

impl std::fmt::Debug for EditorPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EditorPorts")
            .field("files", &self.files)
            .field("terminals", &self.terminals.is_some())
            .field("pins", &self.pins.is_some())
            .finish()
    }
}

/// Builds an [`App`].
pub(super) struct AppBuilder<'p> {
    loaded: Loaded,
    env: Environment,
    options: BuildOptions,
    lines: AuditLines,
    /// The provider of the conversation, if there is one.
    provider: Option<&'p Arc<dyn LlmProvider>>,
    /// Whether MCP servers are started.
    has_servers: bool,
    /// Costs of requests outside of the conversation.
    side_usage: Arc<AuxiliaryUsage>,
}

/// The uses of models next to the requests of the conversation.
struct Models {
    reformatter: Option<Arc<dyn ArgumentRepairer>>,
    embedder: Option<Embedder>,
    compressor: Compressor,
    judge: Option<AdversarialGate>,
    summarizer: Option<Arc<dyn OutputSummarizer>>,
}

/// The access of the file tools to the disk.
struct Files {
    sandbox: Arc<Sandbox>,
    audit: AuditTrail,
}

impl<'p> AppBuilder<'p> {
    /// A builder without a conversation and without MCP servers.
    pub(super) fn new(
        loaded: Loaded,
        env: Environment,
        options: BuildOptions,
        lines: AuditLines,
    ) -> Self {
        Self {
            loaded,
            env,
            options,
            lines,
            provider: None,
            has_servers: false,
            side_usage: Arc::default(),
        }
    }

    /// Starts the MCP servers.
    pub(super) fn with_servers(mut self) -> Self {
        self.has_servers = true;
        self
    }

    /// Builds for a conversation with `provider`.
    pub(super) fn with_provider(mut self, provider: &'p Arc<dyn LlmProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Builds the application.
    ///
    /// # Errors
    /// The missing or invalid part, and how to fix it.
    pub(super) async fn build(self) -> anyhow::Result<App> {
        refuse_full_mode(&self.loaded, self.options.unsandboxed)?;
        let secrets = self.secrets();
        telemetry::start(&self.loaded, &self.env);
        // The servers start while the other parts are built.
        let mcp = self.start_servers(&secrets)?;
        let store = self.open_store().await?;
        let rules = read_rules(&self.loaded, &self.env)?;
        let models = self.models(&store, &secrets)?;
        let shell = self.shell(&store, &secrets, rules.clone())?;
        let files = self.files(&store, rules.clone())?;
        let grants = PermanentGrants::of_store(&self.loaded, &self.env, &store)?;
        let permissions = self.permissions(grants.store(), &files.sandbox)?;
        let caches = result_caches(&self.loaded, &shell);
        let limits = limits(&self.loaded, &store, self.options.quiet);
        let (loaded, mode) = (&self.loaded, &permissions.mode);
        let hooks = hooks(loaded, &self.env, &files.audit, &secrets, mode)?;
        let sub_agents = self.sub_agents();
        let (mut executors, skills) = self
            .executors(&store, &shell, &files, &models, mcp.as_deref())
            .await?;
        if self.loaded.config.tools.enabled {
            with_sub_agents(&mut executors, &sub_agents);
        }
        let tools = &self.loaded.config.tools;
        let overflow = Arc::new(SqliteOverflow::new(store.clone()));
        let stack = self.stack(StackParts {
            executors,
            audit: files.audit.clone(),
            limits: limits.clone(),
            adversarial: models.judge,
            watchers: vec![Arc::new(FilterLayer::new(Arc::clone(shell.filters())))],
            cache: caches.clone(),
            retry: tools.retry.clone(),
            overflow: Some((overflow, tools.overflow.clone())),
            summarizer: models.summarizer,
            secrets,
            blocklist: Some(Arc::new(BlocklistLayer::new(&shell))),
            policy: self.loaded.policy.clone(),
            permissions: permissions.clone(),
            hooks: hooks.clone().map(|hooks| hooks as _),
            skills: (!skills.skills.is_empty()).then(|| Arc::clone(&skills.skills)),
        })?;
        warn_of_unknown(&limits, &stack.registry(), self.options.quiet);
        grants.check(&stack.registry(), &self.loaded)?;
        let reload = Reloader::new(
            &self.loaded,
            &self.env,
            self.options.overrides.clone(),
            shell.policy(),
            caches.clone(),
        );
        expire_overflow(store.clone(), &tools.overflow);
        let instructions = self.instructions(&rules, mcp.as_deref());
        let commands = self.commands();
        let undo = FileUndo::new(files.sandbox, files.audit);
        Ok(App {
            loaded: self.loaded,
            env: self.env,
            instructions,
            skills,
            commands,
            sub_agents,
            mcp,
            hooks,
            store,
            stack: Arc::new(stack),
            caches,
            limits,
            side_usage: self.side_usage,
            reformatter: models.reformatter,
            compressor: models.compressor,
            embedder: models.embedder,
            permissions,
            reload: Arc::new(reload),
            undo: Arc::new(undo),
            shell,
            quiet: self.options.quiet,
        })
    }

    fn start_servers(&self, secrets: &Arc<SecurityPatterns>) -> anyhow::Result<Option<Arc<Mcp>>> {
        if !self.has_servers || !self.loaded.config.tools.enabled {
            return Ok(None);
        }
        let mcp = match &self.options.editor.pins {
            Some(pins) => {
                let (pins, secrets) = (Arc::clone(pins), Arc::clone(secrets));
                Some(Mcp::start_with(pins, secrets, &self.loaded, &self.env)?)
            }
            None => Mcp::start(&self.loaded, &self.env)?,
        };
        Ok(mcp.map(Arc::new))
    }

    /// The secrets of the configuration, and of the servers that the editor may add.
    fn secrets(&self) -> Arc<SecurityPatterns> {
        let mut loaded = self.loaded.clone();
        let added = self.options.editor.servers.iter().cloned();
        loaded.config.mcp.servers.extend(added);
        redaction_values(&loaded, &self.env)
    }

    async fn open_store(&self) -> anyhow::Result<Store> {
        Ok(open_store(&self.loaded).await?)
    }

    fn models(&self, store: &Store, secrets: &Arc<SecurityPatterns>) -> anyhow::Result<Models> {
        let Self {
            loaded,
            env,
            provider,
            side_usage,
            ..
        } = self;
        let (model, provider) = (self.options.overrides.model.as_deref(), *provider);
        let reformatter = match provider {
            Some(provider) => reformatter(loaded, env, provider, side_usage)?,
            None => None,
        };
        let quiet = self.options.quiet;
        Ok(Models {
            reformatter,
            embedder: embedder::embedder(loaded, env, provider, store, side_usage, quiet)?,
            compressor: compressor(loaded, env, provider, secrets)?,
            judge: judge::gate(loaded, env, model, provider, side_usage),
            summarizer: judge::summarizer(loaded, env, model, provider, side_usage)?,
        })
    }

    fn shell(
        &self,
        store: &Store,
        secrets: &Arc<SecurityPatterns>,
        rules: ReadRules,
    ) -> anyhow::Result<Arc<ShellExecutor>> {
        let tools = &self.loaded.config.tools;
        let shell = shell_executor(&self.loaded, &self.env, rules)?;
        let filters = filters(&self.loaded, &self.env, self.options.quiet);
        let terminals = self.options.editor.terminals.clone();
        let terminal = terminals.map(|runner| EditorTerminal {
            runner,
            timeout: Duration::from_secs(self.loaded.config.acp.terminal_timeout_secs),
        });
        Ok(Arc::new(
            shell
                .with_overflow(tools.overflow.clone())
                .with_redaction(Arc::clone(secrets))
                .with_filters(Arc::new(filters))
                .with_editor_terminal(terminal)
                .with_own_files(store.path().to_owned(), snapshots(&self.loaded)),
        ))
    }

    fn files(&self, store: &Store, rules: ReadRules) -> anyhow::Result<Files> {
        let audit = audit::trail(&self.loaded, store, self.lines);
        let sandbox = path_sandbox(&self.loaded, &self.env, store, rules)?;
        Ok(Files {
            sandbox: Arc::new(sandbox.with_editor(self.options.editor.files.clone())),
            audit,
        })
    }

    fn permissions(
        &self,
        grants: Arc<dyn GrantStore>,
        sandbox: &Arc<Sandbox>,
    ) -> anyhow::Result<Permissions> {
        let loaded = &self.loaded;
        let shell = &loaded.config.tools.shell;
        let support = zeph_tools::shell::sandbox::support(&shell.sandbox);
        if loaded.config.tools.mode == Mode::Auto && !support.is_complete() && !self.options.quiet {
            stderr_line(
                "mode auto: the OS sandbox is off or incomplete, so commands need confirmation; \
                 zeph doctor shows why",
            );
        }
        let is_confined = support.confines_writes && (shell.allow_network || support.cuts_network);
        Ok(Permissions {
            mode: SessionMode::new(loaded.config.tools.mode),
            sandbox: support,
            allows_full: is_confined || self.options.unsandboxed,
            rules: Arc::clone(&loaded.rules),
            places: Arc::clone(&loaded.places),
            file: Some(loaded.paths.user_file.clone()),
            grants: Arc::new(Grants::kept_in(grants)),
            refuses_unattended: !loaded.config.scheduler.skip_questions,
            previews: Some(Arc::new(FilePreviews::new(Arc::clone(sandbox)))),
            refusals: known_refusals(loaded, sandbox)?,
        })
    }

    async fn executors(
        &self,
        store: &Store,
        shell: &Arc<ShellExecutor>,
        files: &Files,
        models: &Models,
        mcp: Option<&Mcp>,
    ) -> anyhow::Result<(Executors, SkillCatalog)> {
        let (mut executors, found) = executors(
            &self.loaded,
            &self.env,
            Arc::clone(&files.sandbox),
            store,
            shell,
            &models.compressor.requests,
            models.embedder.as_ref(),
        )?;
        if let Some(mcp) = mcp {
            // In a conversation, the approved tools are offered before their servers are connected.
            if self.provider.is_none() {
                mcp.servers.wait().await;
            }
            with_servers(&mut executors, mcp);
        }
        let skills = SkillCatalog::from(found);
        if self.loaded.config.tools.enabled {
            with_skills(&mut executors, &skills.skills);
        }
        Ok((executors, skills))
    }

    fn stack(&self, parts: StackParts) -> anyhow::Result<LayeredExecutor> {
        let stack = stack::build(parts)?;
        fitting(&stack, &self.loaded.rules)?;
        Ok(stack)
    }

    /// Reads the instructions of the project, for a conversation only, and prints the notices about them. Without a conversation,
    /// it prints the notices about servers, which the agent reports otherwise.
    fn instructions(&self, rules: &ReadRules, mcp: Option<&Mcp>) -> Instructions {
        let instructions = match self.provider {
            Some(_) => Instructions::read(&self.env, rules),
            None => Instructions::default(),
        };
        if !self.options.quiet {
            let servers = mcp.filter(|_| self.provider.is_none());
            let servers = servers.into_iter().flat_map(|mcp| mcp.servers.notices());
            let platform = self.provider.as_ref();
            let platform = platform.and_then(|_| platform_notice(std::env::consts::OS));
            let others = instructions.notices.iter().cloned().chain(servers);
            for notice in platform.into_iter().chain(others) {
                stderr_line(&clean(&notice));
            }
        }
        instructions
    }

    /// Reads the definitions of sub-agents, and prints the notices about them for a conversation.
    fn sub_agents(&self) -> SubAgents {
        let model = self.options.overrides.model.clone();
        let models = CommandModels::new(self.loaded.clone(), self.env.clone(), model);
        let folders = AgentFolders::of_agents(&self.loaded, &self.env);
        let (agents, notices) = usable_agents(folders, Arc::new(models));
        if self.provider.is_some() && !self.options.quiet {
            for notice in notices {
                stderr_line(&clean(&notice));
            }
        }
        agents
    }

    /// Reads the custom commands, for a conversation only, and prints the notices about them.
    fn commands(&self) -> CustomCommands {
        if self.provider.is_none() {
            return CustomCommands::default();
        }
        let model = self.options.overrides.model.clone();
        let models = CommandModels::new(self.loaded.clone(), self.env.clone(), model);
        let source = CommandReader::new(self.loaded.clone(), self.env.clone());
        let (commands, notices) = usable_commands(source, Arc::new(models));
        if !self.options.quiet {
            for notice in notices {
                stderr_line(&clean(&notice));
            }
        }
        commands
    }
}
