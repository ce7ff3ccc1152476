//! The conversation at the terminal, which can continue with another model or another session.

use std::fmt::Write as _;
use std::sync::Arc;

use zeph_core::{Agent, Channel, LoopbackEvent, SessionSwitch, replay};
use zeph_llm::{LlmProvider, ProviderConfig};
use zeph_memory::{SessionLock, new_session_id};
use zeph_tools::plural::pluralize;
use zeph_tui::{CompletionLists, Converse, InteractiveOptions, PickerEntry, RecapItem, recap};

use super::args::GlobalArgs;
use super::model_lines::model_lines;
use super::session_selection::stored_sessions;
use crate::assemble::{
    App, AuditLines, ModelCompletion, OpenSession, ServerModels, SessionChoice, choose_provider,
    chosen_config, forget_empty, fork_session, meant, open_session, other_directory, stored_events,
    with_substitutes,
};
use crate::config::{Environment, Loaded};
use crate::export;

/// The maximum number of models of one server that `/model` shows.
const MAX_LISTED_MODELS: usize = 20;
/// The maximum number of sessions that completion offers.
const MAX_SESSIONS: u32 = 200;

/// A conversation of an interactive session.
pub(super) struct Conversation {
    assembly: App,
    channel: Arc<dyn Channel>,
    /// The configuration of the current provider.
    config: ProviderConfig,
    models: Arc<ServerModels>,
    provider: Arc<dyn LlmProvider>,
    agent: Agent,
    session: String,
    /// Excludes other processes from the session.
    lock: SessionLock,
}

impl Conversation {
    /// Builds the stack and opens the session.
    ///
    /// # Errors
    /// The error states the missing part, its place and the fix.
    pub(super) async fn begin(
        loaded: Loaded,
        env: Environment,
        global: &GlobalArgs,
        choice: &SessionChoice,
        channel: Arc<dyn Channel>,
    ) -> anyhow::Result<(Self, InteractiveOptions)> {
        let config = chosen_config(&loaded, &env, global.model.as_deref())?.into_owned();
        let provider = choose_provider(&loaded, &env, global.model.as_deref(), global.quiet)?;
        let options = global.build_options();
        let assembly =
            App::for_conversation(loaded, env, options, AuditLines::Stderr, &provider).await?;
        let OpenSession { id, notice, lock } =
            open_session(&assembly.store, choice, &assembly.env.cwd).await?;
        let agent = assembly.open_agent(&provider, Arc::clone(&channel), &id, None);
        let agent = agent.await?;
        let models = Arc::new(ServerModels::new(&assembly.loaded, &assembly.env, &config));
        let lists = completion_lists(&assembly, &agent).await?;
        let editor = ["VISUAL", "EDITOR"].into_iter();
        let mut editor = editor.filter_map(|name| assembly.env.var(name));
        let options = InteractiveOptions {
            model: provider.model().to_owned(),
            models: Arc::new(ModelCompletion::new(Arc::clone(&models), lists)),
            project: assembly.env.cwd.clone(),
            history_file: assembly.loaded.paths.data_dir.join("history.txt"),
            permissions: assembly.permissions.clone(),
            external_editor: editor.next().map(|it| it.to_string_lossy().into_owned()),
            notice,
            first_input: None,
        };
        let conversation = Self {
            assembly,
            channel,
            config,
            models,
            provider,
            agent,
            session: id,
            lock,
        };
        Ok((conversation, options))
    }

    /// Ends running commands and closes the database. Returns the session if it has messages.
    ///
    /// # Errors
    /// If the database cannot be used.
    pub(super) async fn end(self) -> anyhow::Result<Option<String>> {
        let empty = self.agent.messages().is_empty();
        drop((self.agent, self.lock));
        let messages = self.assembly.store.session(&self.session).await?.messages;
        forget_empty(&self.assembly, &self.session, empty).await?;
        self.assembly.close().await?;
        Ok((messages > 0).then_some(self.session))
    }

    /// Reads the resources of a session that no event reports.
    #[cfg(feature = "tui")]
    pub(super) fn resources(&self) -> zeph_tui::ReadResources {
        self.assembly.resources()
    }

    /// The providers, with the models of their servers.
    async fn models(&self) -> String {
        let mut text = format!(
            "asked       {} ({}{})\n",
            self.provider.model(),
            self.config.name,
            effort_of(&self.config)
        );
        let listed = self.models.list().await;
        let configured = self.assembly.loaded.config.llm.providers.iter();
        let is_configured = configured
            .clone()
            .any(|config| config.name == self.config.name);
        for config in configured.chain((!is_configured).then_some(&self.config)) {
            let _ = writeln!(text, "{:<11} {}", config.name, config.model);
            let mut listings = listed.iter();
            let Some((_, listing)) = listings.find(|(listed, _)| listed.name == config.name) else {
                continue;
            };
            let is_current = config.name == self.config.name;
            let current = is_current.then(|| self.provider.model());
            for line in model_lines(listing, current, MAX_LISTED_MODELS) {
                let _ = writeln!(text, "{line}");
            }
        }
        text.push_str(
            "/model NAME switches to the provider with this name, or to another model of the \
             current provider; Tab completes NAME",
        );
        text
    }

    async fn ask_another(&mut self, name: &str, effort: Option<&str>) -> anyhow::Result<String> {
        let loaded = &self.assembly.loaded;
        let mut config = meant(loaded, &self.config, name);
        if let Some(effort) = effort {
            let effort = config
                .kind
                .parse_effort(effort)
                .map_err(anyhow::Error::msg)?;
            config.effort = Some(effort);
        }
        let provider = with_substitutes(&config, loaded, &self.assembly.env)?;
        let channel = Arc::clone(&self.channel);
        let agent = self
            .assembly
            .open_agent(&provider, channel, &self.session, None);
        self.agent = agent.await?;
        self.provider = provider;
        self.config = config;
        self.models.set_current(&self.config);
        Ok(format!(
            "requests go to {} ({}{}) from now on",
            self.provider.model(),
            self.config.name,
            effort_of(&self.config)
        ))
    }

    async fn resume(&mut self, prefix: &str) -> anyhow::Result<String> {
        let store = &self.assembly.store;
        let found = store.find_session(prefix).await?;
        if found.id == self.session {
            return Ok(format!("this is session {}", self.session));
        }
        let lock = store.lock_session(&found.id).await?;
        let notice = other_directory(&found, &self.assembly.env.cwd);
        self.enter(found.id, lock).await?;
        let title = found.title.as_deref().unwrap_or("(no title)");
        let mut text = format!(
            "session {} continues: {}, {title}",
            self.session,
            pluralize(found.messages, "message")
        );
        if let Some(notice) = notice {
            text.push('\n');
            text.push_str(&notice);
        }
        Ok(text)
    }

    /// Continues in a copy of the session.
    async fn fork(&mut self) -> anyhow::Result<String> {
        if self.agent.messages().is_empty() {
            anyhow::bail!("there is no conversation to copy yet");
        }
        let (copy, original) = (new_session_id(), self.session.clone());
        let (store, project) = (&self.assembly.store, &self.assembly.env.cwd);
        let lock = fork_session(store, &original, &copy, project).await?;
        self.enter(copy, lock).await?;
        Ok(format!(
            "session {} continues as a copy of {original}",
            self.session
        ))
    }

    /// Continues with another session, and removes the current one if it is empty.
    async fn enter(&mut self, session: String, lock: SessionLock) -> anyhow::Result<()> {
        let channel = Arc::clone(&self.channel);
        let agent = self
            .assembly
            .open_agent(&self.provider, channel, &session, None);
        let agent = agent.await?;
        let empty = self.agent.messages().is_empty();
        self.agent = agent;
        self.lock = lock;
        let left = std::mem::replace(&mut self.session, session);
        forget_empty(&self.assembly, &left, empty).await
    }

    async fn export(&self, file: Option<&str>) -> anyhow::Result<String> {
        let App { store, env, .. } = &self.assembly;
        let path = export::to_file(store, &self.session, file, &env.cwd).await?;
        Ok(format!("wrote {}", path.display()))
    }

    /// The last exchanges of the session.
    async fn last_exchanges(&self) -> anyhow::Result<Vec<RecapItem>> {
        let (store, secrets) = (&self.assembly.store, &self.assembly.compressor.secrets);
        let messages = store.known_messages(&self.session).await?;
        let views = store.result_views(&self.session).await?;
        Ok(recap(&replay::events(&messages, &views, secrets)))
    }
}

/// The words of completions: commands, sessions of this directory, tools and MCP servers.
async fn completion_lists(app: &App, agent: &Agent) -> anyhow::Result<CompletionLists> {
    let listed = app.store.list_sessions(Some(&app.env.cwd), MAX_SESSIONS);
    let mut sessions = listed.await?;
    sessions.retain(|session| session.messages > 0);
    let sessions = sessions.into_iter();
    let registry = app.stack.registry();
    let tools = registry.tools().iter();
    let servers = app.loaded.config.mcp.servers.iter();
    Ok(CompletionLists {
        commands: agent.more_commands(),
        sessions: sessions
            .map(|session| (session.id, session.title.unwrap_or_default()))
            .collect(),
        tools: tools
            .map(|def| (def.id.to_string(), def.description.to_string()))
            .collect(),
        servers: servers
            .map(|server| (server.name.clone(), String::new()))
            .collect(),
    })
}

/// The effort for display: `, effort high`.
fn effort_of(config: &ProviderConfig) -> String {
    let effort = config
        .effort
        .map(|effort| format!(", effort {}", effort.as_str()));
    effort.unwrap_or_default()
}

impl Converse for Conversation {
    fn agent(&mut self) -> &mut Agent {
        &mut self.agent
    }

    async fn sessions(&self) -> anyhow::Result<Vec<PickerEntry>> {
        stored_sessions(&self.assembly.store, &self.assembly.env.cwd).await
    }

    async fn recap(&self) -> Vec<RecapItem> {
        self.last_exchanges().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the last exchanges cannot be shown");
            Vec::new()
        })
    }

    async fn switch(&mut self, to: SessionSwitch) -> anyhow::Result<String> {
        match to {
            SessionSwitch::Models => Ok(self.models().await),
            SessionSwitch::Model { name, effort } => {
                self.ask_another(&name, effort.as_deref()).await
            }
            SessionSwitch::Session(prefix) => self.resume(&prefix).await,
            SessionSwitch::ChooseSession => anyhow::bail!("/resume ID takes the id of a session"),
            SessionSwitch::Fork => self.fork().await,
            SessionSwitch::Export(file) => self.export(file.as_deref()).await,
        }
    }

    fn model(&self) -> &str {
        self.provider.model()
    }

    async fn stored_events(&self) -> anyhow::Result<Vec<LoopbackEvent>> {
        let (store, secrets) = (&self.assembly.store, &self.assembly.compressor.secrets);
        Ok(stored_events(store, &self.session, secrets).await?)
    }
}
