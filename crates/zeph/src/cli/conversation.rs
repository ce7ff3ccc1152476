//! The conversation at the terminal, which can continue with another model or another session.

use std::fmt::Write as _;
use std::sync::Arc;

use zeph_core::{Agent, Channel, LoopbackEvent, SessionSwitch, replay};
use zeph_memory::{SessionLock, new_session_id};
use zeph_tools::plural::pluralize;
use zeph_tui::{CompletionLists, Converse, InteractiveOptions, PickerEntry, RecapItem, recap};

use super::args::GlobalArgs;
use super::model_lines::model_lines;
use super::session_selection::stored_sessions;
use crate::assemble::{
    App, AuditLines, ModelCompletion, OpenSession, ServerModels, SessionChoice, choose_provider,
    chosen_config, forget_empty, fork_session, open_session, other_directory, stored_events,
};
use crate::config::{Environment, Loaded};
use crate::export;
use crate::session_choices::{ModelChoice, StartChoices, StoredChoices};

/// The maximum number of models of one server that `/model` shows.
const MAX_LISTED_MODELS: usize = 20;
/// The maximum number of sessions that completion offers.
const MAX_SESSIONS: u32 = 200;

/// A conversation of an interactive session.
pub(super) struct Conversation {
    assembly: App,
    channel: Arc<dyn Channel>,
    /// The chosen model.
    model: Arc<ModelChoice>,
    /// Its name, as requests have it.
    model_name: String,
    models: Arc<ServerModels>,
    agent: Agent,
    /// The mode and the model of the flags and the configuration.
    start: StartChoices,
    /// The choices that are stored with the session.
    choices: StoredChoices,
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
        let start = StartChoices::new(&options.overrides, &loaded);
        let model = ModelChoice::new(loaded.clone(), env.clone(), config, Arc::clone(&provider));
        let model = Arc::new(model);
        let mut assembly =
            App::for_conversation(loaded, env, options, AuditLines::Stderr, &provider).await?;
        assembly.use_models(Arc::clone(&model) as _);
        let OpenSession { id, notice, lock } =
            open_session(&assembly.store, choice, &assembly.env.cwd).await?;
        let (store, permissions) = (&assembly.store, &assembly.permissions);
        let restored = StoredChoices::restore(store, &id, &start, permissions, &model);
        let (choices, restored) = restored.await?;
        let chosen = model.provider();
        let agent = assembly.open_agent(&chosen, Arc::clone(&channel), &id, None);
        let agent = agent.await?;
        let config = model.config();
        let models = Arc::new(ServerModels::new(&assembly.loaded, &assembly.env, &config));
        let lists = completion_lists(&assembly, &agent).await?;
        let editor = ["VISUAL", "EDITOR"].into_iter();
        let mut editor = editor.filter_map(|name| assembly.env.var(name));
        let model_name = chosen.model().to_owned();
        let options = InteractiveOptions {
            model: model_name.clone(),
            models: Arc::new(ModelCompletion::new(Arc::clone(&models), lists)),
            project: assembly.env.cwd.clone(),
            history_file: assembly.loaded.paths.data_dir.join("history.txt"),
            permissions: assembly.permissions.clone(),
            external_editor: editor.next().map(|it| it.to_string_lossy().into_owned()),
            notices: notice.into_iter().chain(restored.messages()).collect(),
            first_input: None,
        };
        let conversation = Self {
            assembly,
            channel,
            model,
            model_name,
            models,
            agent,
            start,
            choices,
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
        if let Err(error) = self.store_choices().await {
            tracing::warn!(error = %format!("{error:#}"), "the mode and the model are not stored");
        }
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
        let mut text = format!("asked       {}\n", self.model.description());
        let chosen = self.model.config();
        let listed = self.models.list().await;
        let configured = self.assembly.loaded.config.llm.providers.iter();
        let is_configured = configured.clone().any(|config| config.name == chosen.name);
        for config in configured.chain((!is_configured).then_some(&chosen)) {
            let _ = writeln!(text, "{:<11} {}", config.name, config.model);
            let mut listings = listed.iter();
            let Some((_, listing)) = listings.find(|(listed, _)| listed.name == config.name) else {
                continue;
            };
            let is_current = config.name == chosen.name;
            let current = is_current.then_some(self.model_name.as_str());
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
        let before = self.model.current();
        self.model.choose(name, effort)?;
        let agent = self.open_agent(&self.session).await;
        let agent = agent.inspect_err(|_| self.model.set_current(before))?;
        self.agent = agent.with_hook_context_of(&mut self.agent);
        self.follow_model();
        self.store_choices().await?;
        Ok(format!(
            "requests go to {} from now on",
            self.model.description()
        ))
    }

    /// An agent for a session, which asks the chosen model.
    async fn open_agent(&self, session: &str) -> anyhow::Result<Agent> {
        let (provider, channel) = (self.model.provider(), Arc::clone(&self.channel));
        let agent = self.assembly.open_agent(&provider, channel, session, None);
        Ok(agent.await?)
    }

    /// Takes over the name of the chosen model.
    fn follow_model(&mut self) {
        let provider = self.model.provider();
        provider.model().clone_into(&mut self.model_name);
        self.models.set_current(&self.model.config());
    }

    /// Stores the mode and the model with the session if they changed.
    async fn store_choices(&self) -> anyhow::Result<()> {
        let mode = self.assembly.permissions.mode.get();
        self.choices.save(mode, self.model.chosen_model()).await
    }

    async fn resume(&mut self, prefix: &str) -> anyhow::Result<String> {
        let (store, permissions) = (&self.assembly.store, &self.assembly.permissions);
        let found = store.find_session(prefix).await?;
        if found.id == self.session {
            return Ok(format!("this is session {}", self.session));
        }
        let lock = store.lock_session(&found.id).await?;
        self.store_choices().await?;
        let before = (permissions.mode.get(), self.model.current());
        let restored =
            StoredChoices::restore(store, &found.id, &self.start, permissions, &self.model);
        let (choices, restored) = restored.await?;
        let agent = self.open_agent(&found.id).await.inspect_err(|_| {
            permissions.mode.set(before.0);
            self.model.set_current(before.1);
        })?;
        let notice = other_directory(&found, &self.assembly.env.cwd);
        self.enter(found.id, agent, choices, lock).await?;
        let title = found.title.as_deref().unwrap_or("(no title)");
        let mut text = format!(
            "session {} continues: {}, {title}",
            self.session,
            pluralize(found.messages, "message")
        );
        for line in notice.into_iter().chain(restored.messages()) {
            text.push('\n');
            text.push_str(&line);
        }
        Ok(text)
    }

    /// Continues in a copy of the session.
    async fn fork(&mut self) -> anyhow::Result<String> {
        if self.agent.messages().is_empty() {
            anyhow::bail!("there is no conversation to copy yet");
        }
        self.store_choices().await?;
        let (copy, original) = (new_session_id(), self.session.clone());
        let (store, project) = (&self.assembly.store, &self.assembly.env.cwd);
        let lock = fork_session(store, &original, &copy, project).await?;
        let permissions = &self.assembly.permissions;
        let choices = self.choices.of_copy(&copy, permissions, &self.model);
        let choices = choices.await?;
        let agent = self.open_agent(&copy).await?;
        let agent = agent.with_hook_context_of(&mut self.agent);
        self.enter(copy, agent, choices, lock).await?;
        Ok(format!(
            "session {} continues as a copy of {original}",
            self.session
        ))
    }

    /// Continues with another session, and removes the current one if it is empty.
    async fn enter(
        &mut self,
        session: String,
        agent: Agent,
        choices: StoredChoices,
        lock: SessionLock,
    ) -> anyhow::Result<()> {
        let empty = self.agent.messages().is_empty();
        self.agent = agent;
        self.choices = choices;
        self.lock = lock;
        self.follow_model();
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
    let listed = app
        .store
        .list_conversations(Some(&app.env.cwd), MAX_SESSIONS);
    let sessions = listed.await?.into_iter();
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
        &self.model_name
    }

    async fn save_choices(&self) -> anyhow::Result<()> {
        self.store_choices().await
    }

    async fn stored_events(&self) -> anyhow::Result<Vec<LoopbackEvent>> {
        let (store, secrets) = (&self.assembly.store, &self.assembly.compressor.secrets);
        Ok(stored_events(store, &self.session, secrets).await?)
    }
}
