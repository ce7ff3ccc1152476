//! The sessions of `zeph acp`: the implementation of the port of `zeph-acp` over the one assembly.

mod client_pins;
mod commands;
mod options;
mod servers;
mod session;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use zeph_acp::{
    AcpConfig, HostError, HostedSession, ListedSession, OpenRequest, SessionHost, SessionSource,
};
use zeph_llm::ProviderConfig;
use zeph_memory::{Store, StoreError};

use crate::assemble::{
    App, AuditLines, BuildOptions, EditorPorts, choose_provider, chosen_config, fork_session,
    missing_key, open_store, withhold,
};
use crate::config::{Environment, FlagOverrides, Loaded, load};
use crate::output::redact::redacted;
use crate::output::sanitize::clean;
use crate::output::stderr_line_unless;
use crate::session_choices::{ModelChoice, StartChoices, StoredChoices};
use servers::ClientServers;
use session::{AcpSession, ConversationParts, Options};

/// Sessions that a list reads.
const MAX_LISTED: u32 = 10_000;
/// The age from which a session without messages is deleted.
const MAX_EMPTY_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Opens sessions, each with an assembly of its own: the directory and the project's configuration differ.
pub(crate) struct AcpHost {
    /// The environment of the process.
    env: Environment,
    options: BuildOptions,
}

impl AcpHost {
    /// A host with the environment of this process and the flags of its command line.
    pub(crate) fn new(env: Environment, options: BuildOptions) -> Self {
        Self { env, options }
    }

    /// The time after which a client that reads nothing counts as disconnected. An invalid configuration has its default:
    /// requests that need the configuration report it.
    pub(crate) fn unread_timeout(&self) -> Duration {
        let loaded = load(&self.env, &self.options.overrides);
        let config = loaded.map_or_else(|_| AcpConfig::default(), |loaded| loaded.config.acp);
        Duration::from_secs(config.unread_timeout_secs)
    }

    /// The configuration of a session in `cwd`, which may use `additional` directories too.
    fn load(
        &self,
        cwd: &Path,
        additional: &[std::path::PathBuf],
    ) -> Result<(Loaded, Environment, FlagOverrides), HostError> {
        let env = Environment {
            cwd: cwd.to_owned(),
            ..self.env.clone()
        };
        let mut overrides = self.options.overrides.clone();
        let mut loaded = load(&env, &overrides).map_err(|error| failed(&error.into()))?;
        crate::logs::set_format(&loaded.config.log);
        if !additional.is_empty() {
            let tools = &loaded.config.tools;
            let kept = [
                ("tools.file.allowed_paths", &tools.file.allowed_paths),
                ("tools.shell.allowed_paths", &tools.shell.allowed_paths),
            ];
            for (key, paths) in kept {
                let own = match paths.is_empty() {
                    true => std::slice::from_ref(&env.cwd),
                    false => paths.as_slice(),
                };
                let paths = own.iter().chain(additional);
                let paths: Vec<_> = paths.map(|path| path.display().to_string()).collect();
                let value = serde_json::Value::from(paths).to_string();
                overrides.set.push((key.to_owned(), value));
            }
            loaded = load(&env, &overrides).map_err(|error| failed(&error.into()))?;
        }
        withhold(&loaded, &env);
        for warning in &loaded.warnings {
            self.report(&format!("warning: {warning}"), false);
        }
        Ok((loaded, env, overrides))
    }

    /// The store of the process's directory. It is closed by the caller.
    async fn store(&self) -> Result<Store, HostError> {
        let (loaded, ..) = self.load(&self.env.cwd, &[])?;
        open_store(&loaded).await.map_err(of_store)
    }
}

#[async_trait]
impl SessionHost for AcpHost {
    fn missing_provider(&self) -> Result<Option<String>, HostError> {
        let (loaded, env, overrides) = self.load(&self.env.cwd, &[])?;
        let config = chosen(&loaded, &env, overrides.model.as_deref());
        Ok(config.err().map(|error| error.to_string()))
    }

    fn takes_images(&self) -> bool {
        // `missing_provider` reports an invalid configuration.
        let Ok((loaded, env, overrides)) = self.load(&self.env.cwd, &[]) else {
            return false;
        };
        let chosen = choose_provider(&loaded, &env, overrides.model.as_deref(), true);
        chosen.is_ok_and(|provider| provider.supports_images())
    }

    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn HostedSession>, HostError> {
        let OpenRequest {
            id,
            source,
            cwd,
            additional_directories,
            servers,
            channel,
            files,
            terminals,
        } = request;
        let (loaded, env, overrides) = self.load(&cwd, &additional_directories)?;
        let model = overrides.model.as_deref();
        let config = chosen(&loaded, &env, model)?;
        let provider = choose_provider(&loaded, &env, model, self.options.quiet);
        let provider = provider.map_err(|error| failed(&error))?;
        let servers = ClientServers::new(servers, &loaded);
        let options = BuildOptions {
            overrides,
            editor: EditorPorts {
                files,
                terminals,
                pins: Some(servers.0.pins()),
                servers: servers.0.all(),
            },
            ..self.options.clone()
        };
        let start = StartChoices::new(&self.options.overrides, &loaded);
        let models = ModelChoice::new(loaded.clone(), env.clone(), config, Arc::clone(&provider));
        let models = Arc::new(models);
        let app = App::for_conversation(loaded, env, options, AuditLines::Stderr, &provider);
        let mut app = app.await.map_err(|error| failed(&error))?;
        app.use_models(Arc::clone(&models) as _);
        let opened = open_stored(&app, &id, &source).await;
        let lock = match opened {
            Ok(lock) => lock,
            Err(error) => {
                close(app).await;
                return Err(of_store(error));
            }
        };
        let restored = StoredChoices::restore(&app.store, &id, &start, &app.permissions, &models);
        let opened = match restored.await {
            Ok(restored) => {
                let provider = models.provider();
                let agent = app.open_agent(&provider, Arc::clone(&channel), &id, None);
                let agent = agent.await.map_err(|error| failed(&error.into()));
                agent.map(|agent| (restored, provider, agent))
            }
            Err(error) => Err(of_store(error)),
        };
        let ((choices, restored), provider, agent) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                drop(lock);
                close(app).await;
                return Err(error);
            }
        };
        let parts = ConversationParts {
            app,
            agent: agent.without_commands(&commands::WITHOUT),
            lock,
            provider,
        };
        let (servers, mut messages) = servers;
        // The response states the restored values.
        messages.extend(restored.warnings);
        let options = Options { models, choices };
        let session = AcpSession::new(id, channel, options, (servers, messages), parts);
        Ok(Arc::new(session))
    }

    async fn list(&self, cwd: Option<&Path>) -> Result<Vec<ListedSession>, HostError> {
        let store = self.store().await?;
        let listed = store.list_conversations(cwd, MAX_LISTED).await;
        let closed = store.close().await;
        let listed = listed.map_err(of_store)?;
        closed.map_err(of_store)?;
        let listed = listed.into_iter().map(|session| ListedSession {
            id: session.id,
            cwd: session.project,
            title: session.title,
            updated_at: Timestamp::from_millisecond(session.updated_at)
                .unwrap_or_default()
                .to_string(),
        });
        Ok(listed.collect())
    }

    async fn delete(&self, id: &str) -> Result<(), HostError> {
        let store = self.store().await?;
        let deleted = store.delete_session(id).await;
        let closed = store.close().await;
        match deleted {
            Ok(()) | Err(StoreError::UnknownSession { .. }) => closed.map_err(of_store),
            Err(error) => Err(of_store(error)),
        }
    }

    fn report(&self, text: &str, is_problem: bool) {
        stderr_line_unless(self.options.quiet && !is_problem, &clean(text));
    }
}

/// Creates or copies the session, if it does not exist, and locks it.
async fn open_stored(
    app: &App,
    id: &str,
    source: &SessionSource,
) -> Result<zeph_memory::SessionLock, StoreError> {
    let store = &app.store;
    match source {
        SessionSource::New => {
            store.ensure_session(id, &app.env.cwd).await?;
            delete_old_empty(store).await;
        }
        SessionSource::Stored => {}
        SessionSource::ForkOf(other) => return fork_session(store, other, id, &app.env.cwd).await,
    }
    store.lock_session(id).await
}

/// Deletes old sessions without messages, which clients opened and never used.
async fn delete_old_empty(store: &Store) {
    let before = Timestamp::now().saturating_sub(MAX_EMPTY_AGE);
    let before = before.map_or(0, Timestamp::as_millisecond);
    match store.delete_empty_sessions(before).await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "old sessions without messages were deleted"),
        Err(error) => tracing::warn!(%error, "old sessions without messages were not deleted"),
    }
}

async fn close(app: App) {
    if let Err(error) = app.close().await {
        tracing::warn!(error = %text_of(&error), "a session was not closed properly");
    }
}

/// The provider that is asked.
///
/// # Errors
/// [`HostError::NoProvider`] if no provider is configured, or if it lacks its key.
fn chosen(
    loaded: &Loaded,
    env: &Environment,
    model: Option<&str>,
) -> Result<ProviderConfig, HostError> {
    let config = chosen_config(loaded, env, model);
    let config = config.map_err(|error| HostError::NoProvider(text_of(&error)))?;
    match missing_key(&config, loaded, env) {
        Some(missing) => Err(HostError::NoProvider(format!(
            "the provider {:?} cannot be used: {missing}",
            config.name
        ))),
        None => Ok(config.into_owned()),
    }
}

/// The error of a failed operation.
fn failed(error: &anyhow::Error) -> HostError {
    HostError::Failed(text_of(error))
}

/// An error with its causes, without secrets.
fn text_of(error: &anyhow::Error) -> String {
    redacted(&format!("{error:#}")).into_owned()
}

/// The error of a failure of the store.
fn of_store(error: StoreError) -> HostError {
    match error {
        StoreError::UnknownSession { id } => HostError::UnknownSession(id),
        StoreError::SessionInUse { .. } => HostError::Unavailable(error.to_string()),
        StoreError::InvalidSessionId { .. } => HostError::Invalid(error.to_string()),
        error => HostError::Failed(redacted(&error.to_string()).into_owned()),
    }
}
