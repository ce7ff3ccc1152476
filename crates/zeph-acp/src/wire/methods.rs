//! The methods of the protocol.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    AgentAuthCapabilities, AgentCapabilities, AuthenticateRequest, AuthenticateResponse,
    CancelNotification, ClientCapabilities, CloseSessionRequest, CloseSessionResponse,
    ConfigOptionUpdate, DeleteSessionRequest, DeleteSessionResponse, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse,
    LogoutCapabilities, LogoutResponse, McpCapabilities, PromptCapabilities, PromptRequest,
    PromptResponse, SessionAdditionalDirectoriesCapabilities, SessionCapabilities,
    SessionCloseCapabilities, SessionConfigOption, SessionConfigOptionValue,
    SessionDeleteCapabilities, SessionForkCapabilities, SessionInfo, SessionListCapabilities,
    SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse, StopReason,
};
use agent_client_protocol::{Error, ErrorCode, JsonRpcResponse};
use tokio::task::JoinSet;
use zeph_core::{Channel as _, LoopbackEvent, TurnEnd};
use zeph_llm::StopReason as ModelStop;
use zeph_tools::Mode;

use super::backlog::Backlog;
use super::error::{invalid, of_host};
use super::opening::real_directory;
use super::options::{MODE, kind, options};
use super::prompt::prompt;
use super::sessions::{OpenSession, Sessions, Turn, lock};
use super::{ServeOptions, auth};
use crate::{HostError, Prompt, PromptEnd, SessionHost};

/// The maximum time that the end of the connection takes.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Sessions of one page of `session/list`.
const PAGE: usize = 50;

/// The server of one client.
pub(super) struct Server {
    pub(super) host: Arc<dyn SessionHost>,
    pub(super) options: ServeOptions,
    pub(super) client: Mutex<ClientCapabilities>,
    pub(super) sessions: Sessions,
    /// The updates that the client has not read.
    pub(super) backlog: Arc<Backlog>,
    /// Whether the client logged out, and has not authenticated since.
    is_logged_out: AtomicBool,
    /// Whether the connection ended.
    pub(super) has_ended: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
}

impl Server {
    pub(super) fn new(host: Arc<dyn SessionHost>, options: ServeOptions) -> Self {
        Self {
            host,
            options,
            client: Mutex::default(),
            sessions: Sessions::default(),
            backlog: Arc::default(),
            is_logged_out: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            tasks: Mutex::default(),
        }
    }

    /// Ends everything that runs.
    pub(super) async fn shut_down(&self) {
        self.has_ended.store(true, Ordering::Release);
        let end = async {
            self.sessions.close_all().await;
            let mut tasks = std::mem::take(&mut *lock(&self.tasks));
            while tasks.join_next().await.is_some() {}
        };
        if tokio::time::timeout(END_TIMEOUT, end).await.is_err() {
            tracing::warn!("sessions did not end in time");
        }
    }

    /// Runs the work of a request outside of the dispatch loop, and responds.
    pub(super) fn run<R: JsonRpcResponse>(
        &self,
        responder: Responder<R>,
        work: impl Future<Output = Result<R, Error>> + Send + 'static,
    ) {
        self.spawn(async move { answer(responder, work.await) });
    }

    /// Runs work outside of the dispatch loop.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    pub(super) fn initialize(
        &self,
        request: InitializeRequest,
        responder: Responder<InitializeResponse>,
    ) {
        if let Some(info) = &request.client_info {
            tracing::info!(name = %info.name, version = %info.version, "a client connected");
        } else {
            tracing::info!("a client connected");
        }
        let has_terminal = request.client_capabilities.auth.terminal;
        *lock(&self.client) = request.client_capabilities;
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
            .fork(SessionForkCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(
                PromptCapabilities::new()
                    .image(self.host.takes_images())
                    .embedded_context(true),
            )
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions)
            .auth(AgentAuthCapabilities::new().logout(LogoutCapabilities::new()));
        let methods = match self.host.missing_provider() {
            Ok(Some(_)) if has_terminal => vec![auth::in_terminal()],
            Ok(_) => Vec::new(),
            // The client may still show the sessions. A request that needs the configuration fails with the reason.
            Err(error) => {
                self.host.report(&error.to_string(), true);
                Vec::new()
            }
        };
        let response = InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(
                Implementation::new(self.options.name.clone(), self.options.version.clone())
                    .title(self.options.title.clone()),
            )
            .auth_methods(methods);
        answer(responder, Ok(response));
    }

    pub(super) fn authenticate(
        &self,
        request: AuthenticateRequest,
        responder: Responder<AuthenticateResponse>,
    ) {
        let result = match self.host.missing_provider() {
            Ok(None) => {
                self.is_logged_out.store(false, Ordering::Relaxed);
                Ok(AuthenticateResponse::new())
            }
            Ok(Some(_)) if request.method_id != auth::in_terminal().id().clone() => {
                Err(invalid("the authentication method is unknown"))
            }
            Ok(Some(text)) => Err(of_host(HostError::NoProvider(text))),
            Err(error) => Err(of_host(error)),
        };
        answer(responder, result);
    }

    pub(super) fn log_out(&self, responder: Responder<LogoutResponse>) {
        self.is_logged_out.store(true, Ordering::Relaxed);
        answer(responder, Ok(LogoutResponse::new()));
    }

    pub(super) fn check_login(&self) -> Result<(), Error> {
        match self.is_logged_out.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(of_host(HostError::NoProvider(
                "the client logged out; call authenticate to continue".to_owned(),
            ))),
        }
    }

    pub(super) fn list(
        self: &Arc<Self>,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
    ) {
        let server = Arc::clone(self);
        self.run(responder, async move {
            if let Some(cwd) = &request.cwd {
                check_absolute(cwd, "cwd")?;
            }
            let cwd = request.cwd.map(real_directory);
            let all = server.host.list(cwd.as_deref()).await;
            let all = all.map_err(of_host)?;
            let start = match &request.cursor {
                None => 0,
                // The cursor is the last session of the previous page.
                Some(cursor) => match all.iter().position(|it| it.id == *cursor) {
                    Some(at) => at + 1,
                    None => return Err(invalid("the cursor is unknown; list from the start")),
                },
            };
            let page: Vec<_> = all.iter().skip(start).take(PAGE).collect();
            let has_more = start + page.len() < all.len();
            let next = page.last().filter(|_| has_more).map(|last| last.id.clone());
            let sessions = page.into_iter().map(|it| {
                SessionInfo::new(it.id.clone(), &it.cwd)
                    .title(it.title.clone())
                    .updated_at(it.updated_at.clone())
            });
            Ok(ListSessionsResponse::new(sessions.collect()).next_cursor(next))
        });
    }

    pub(super) fn delete(
        self: &Arc<Self>,
        request: DeleteSessionRequest,
        responder: Responder<DeleteSessionResponse>,
    ) {
        let server = Arc::clone(self);
        self.run(responder, async move {
            let id = request.session_id.to_string();
            if server.sessions.holds(&id) {
                server.sessions.close(&id).await?;
            }
            server.host.delete(&id).await.map_err(of_host)?;
            Ok(DeleteSessionResponse::new())
        });
    }

    pub(super) fn close(
        self: &Arc<Self>,
        request: CloseSessionRequest,
        responder: Responder<CloseSessionResponse>,
    ) {
        let server = Arc::clone(self);
        self.run(responder, async move {
            server
                .sessions
                .close(&request.session_id.to_string())
                .await?;
            Ok(CloseSessionResponse::new())
        });
    }

    pub(super) fn prompt(
        self: &Arc<Self>,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
    ) {
        // On the dispatch loop, so that a later cancellation finds the prompt.
        let begun = self.begin_prompt(request);
        self.run(responder, async move {
            let (session, turn, prompt) = begun?;
            let end = session.hosted.prompt(prompt, &turn.cancel).await;
            session.hosted.save_choices().await;
            let stop = end.map_err(of_host).and_then(|end| stop(&session, end));
            // The protocol requires this reason after a cancellation, also for a command or a failure.
            let stop = match turn.cancel.is_cancelled() {
                true => Ok(StopReason::Cancelled),
                false => stop,
            };
            send_changed_options(&session);
            drop(turn);
            Ok(PromptResponse::new(stop?))
        });
    }

    fn begin_prompt(
        &self,
        request: PromptRequest,
    ) -> Result<(Arc<OpenSession>, Turn, Prompt), Error> {
        let session = self.sessions.get(&request.session_id.to_string())?;
        self.check_login()?;
        let prompt = prompt(request.prompt, session.hosted.takes_images())?;
        let turn = session.begin_turn()?;
        Ok((session, turn, prompt))
    }

    pub(super) fn cancel(&self, request: &CancelNotification) {
        match self.sessions.get(&request.session_id.to_string()) {
            Ok(session) => session.cancel(),
            Err(_) => tracing::debug!("a session that is not open was cancelled"),
        }
    }

    pub(super) fn set_mode(
        &self,
        request: &SetSessionModeRequest,
        responder: Responder<SetSessionModeResponse>,
    ) {
        // On the dispatch loop, so that a later prompt has the mode.
        let session = self.sessions.get(&request.session_id.to_string());
        let changed = session.and_then(|session| {
            set_mode(&session, &request.mode_id.0)?;
            send_changed_options(&session);
            Ok(session)
        });
        self.run(responder, async move {
            changed?.hosted.save_choices().await;
            Ok(SetSessionModeResponse::new())
        });
    }

    pub(super) fn set_option(
        self: &Arc<Self>,
        request: SetSessionConfigOptionRequest,
        responder: Responder<SetSessionConfigOptionResponse>,
    ) {
        let server = Arc::clone(self);
        self.run(responder, async move {
            let session = server.sessions.get(&request.session_id.to_string())?;
            let SessionConfigOptionValue::ValueId { value } = &request.value else {
                return Err(invalid(
                    "the value must be the id of one of the option's values",
                ));
            };
            match (&*request.config_id.0, kind(&request.config_id.0)) {
                (MODE, _) => set_mode(&session, &value.0)?,
                (_, Some(kind)) => {
                    let set = session.hosted.set_option(kind, &value.0);
                    set.await.map_err(of_host)?;
                }
                (_, None) => return Err(invalid("the configuration option is unknown")),
            }
            session.hosted.save_choices().await;
            Ok(SetSessionConfigOptionResponse::new(known_options(&session)))
        });
    }
}

/// Sends a response. It fails only after the end of the connection.
pub(super) fn answer<R: JsonRpcResponse>(responder: Responder<R>, result: Result<R, Error>) {
    if responder.respond_with_result(result).is_err() {
        tracing::debug!("a response was not sent: the connection has ended");
    }
}

/// The reason why a prompt ended.
fn stop(session: &OpenSession, end: PromptEnd) -> Result<StopReason, Error> {
    let stop = match end.end {
        TurnEnd::Error => {
            let text = end.message.unwrap_or_else(|| "the turn failed".to_owned());
            return Err(Error::new(ErrorCode::INTERNAL_ERROR, text));
        }
        TurnEnd::Cancelled => StopReason::Cancelled,
        TurnEnd::IterationCap
        | TurnEnd::DoomLoop
        | TurnEnd::ContextBudget
        | TurnEnd::Quota
        | TurnEnd::Budget => StopReason::MaxTurnRequests,
        TurnEnd::Done | TurnEnd::Refused => match end.stop {
            ModelStop::MaxTokens => StopReason::MaxTokens,
            ModelStop::Refusal => StopReason::Refusal,
            ModelStop::EndTurn | ModelStop::ToolUse => StopReason::EndTurn,
        },
    };
    // A client that shows notices has the message already.
    if let Some(text) = end.message
        && !session.channel.has_notices()
    {
        session.channel.emit(LoopbackEvent::Text(text));
    }
    Ok(stop)
}

fn set_mode(session: &OpenSession, name: &str) -> Result<(), Error> {
    let Some(mode) = Mode::from_name(name) else {
        return Err(invalid("the mode is unknown"));
    };
    session.hosted.set_mode(mode).map_err(of_host)?;
    session.channel.emit(LoopbackEvent::Mode(mode));
    Ok(())
}

/// All configuration options, which the client has from now on.
pub(super) fn known_options(session: &OpenSession) -> Vec<SessionConfigOption> {
    let options = options(session.hosted.as_ref());
    lock(&session.known_options).clone_from(&options);
    options
}

/// Sends the configuration options if the client has others.
fn send_changed_options(session: &OpenSession) {
    let options = options(session.hosted.as_ref());
    let mut known = lock(&session.known_options);
    if *known != options {
        known.clone_from(&options);
        let update = ConfigOptionUpdate::new(options);
        session
            .channel
            .send(SessionUpdate::ConfigOptionUpdate(update));
    }
}

pub(super) fn check_absolute(path: &Path, name: &str) -> Result<(), Error> {
    match path.is_absolute() {
        true => Ok(()),
        false => Err(invalid(format!("{name} must be an absolute path"))),
    }
}
