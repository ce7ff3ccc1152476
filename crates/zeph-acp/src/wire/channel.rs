//! The channel of a session: events become updates, questions become requests to the client.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ElicitationCapabilities, NoticeSeverity, RequestPermissionRequest,
    SessionId, SessionNotification, SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use async_trait::async_trait;
use serde_json::Value;
use tokio::runtime::Handle;
use zeph_core::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};
use zeph_tools::Confirmation;
use zeph_tools::hidden::revealed;
use zeph_tools::plural::pluralize;
use zeph_tools::question::{ServerAnswer, ServerQuestion};

use super::ServeOptions;
use super::backlog::Backlog;
use super::kind::kind_of;
use super::permission::{Offer, check_in_offer, offer, server_offer, server_text, text};
use super::server_question;
use super::updates::{UpdateMapper, new_id, notice_of, text_content, title};
use crate::{ClientServer, SessionHost};

/// The shortest time between two updates with the output of a call: each repeats the output so far.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(100);

/// The channel of one session. It holds no reference to the session.
pub(super) struct AcpChannel {
    connection: ConnectionTo<Client>,
    session: SessionId,
    host: Arc<dyn SessionHost>,
    /// The updates that the client has not read.
    backlog: Arc<Backlog>,
    /// Whether the client shows notices.
    has_notices: bool,
    /// The elicitations that the client shows.
    elicitation: Option<ElicitationCapabilities>,
    /// Whether calls and the MCP servers of the client are approved without a question.
    assume_yes: bool,
    /// Removes terminal control from texts.
    clean: fn(&str) -> String,
    state: Arc<Mutex<State>>,
    runtime: Handle,
}

struct State {
    mapper: UpdateMapper,
    /// The last update with output of each running call, and whether a later one is planned.
    outputs: HashMap<String, OutputUpdate>,
}

struct OutputUpdate {
    sent: Instant,
    is_planned: bool,
}

impl AcpChannel {
    /// The channel of the session `session` in `cwd`.
    pub(super) fn new(
        connection: ConnectionTo<Client>,
        session: &str,
        cwd: &Path,
        host: Arc<dyn SessionHost>,
        backlog: Arc<Backlog>,
        client: &ClientCapabilities,
        options: &ServeOptions,
    ) -> Self {
        let session_capabilities = client.session.as_ref();
        let has_notices = session_capabilities.is_some_and(|it| it.notices.is_some());
        Self {
            connection,
            session: SessionId::new(session),
            host,
            backlog,
            has_notices,
            elicitation: client.elicitation.clone(),
            assume_yes: options.assume_yes,
            clean: options.clean,
            state: Arc::new(Mutex::new(State {
                mapper: UpdateMapper::new(cwd, options.clean),
                outputs: HashMap::new(),
            })),
            runtime: Handle::current(),
        }
    }

    /// Sends an update.
    pub(super) fn send(&self, update: SessionUpdate) {
        send(&self.connection, &self.backlog, &self.session, update);
    }

    /// Whether the client shows notices.
    pub(super) fn has_notices(&self) -> bool {
        self.has_notices
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the output of a call, now or after the interval.
    fn emit_output(&self, id: &str, event: LoopbackEvent) {
        let mut state = self.state();
        let update = state.mapper.map(event);
        let now = Instant::now();
        let last = state.outputs.get_mut(id);
        match last {
            Some(last) if last.is_planned => {}
            Some(last) if now.duration_since(last.sent) < OUTPUT_INTERVAL => {
                last.is_planned = true;
                self.send_output_later(
                    id.to_owned(),
                    OUTPUT_INTERVAL - now.duration_since(last.sent),
                );
            }
            _ => {
                let sent = OutputUpdate {
                    sent: now,
                    is_planned: false,
                };
                state.outputs.insert(id.to_owned(), sent);
                if let Some(update) = update {
                    self.send(update);
                }
            }
        }
    }

    fn send_output_later(&self, id: String, wait: Duration) {
        let (state, connection) = (Arc::clone(&self.state), self.connection.clone());
        let (session, backlog) = (self.session.clone(), Arc::clone(&self.backlog));
        self.runtime.spawn(async move {
            tokio::time::sleep(wait).await;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            // The call has ended, and its last update has the complete output.
            let Some(output) = state.outputs.get_mut(&id) else {
                return;
            };
            output.sent = Instant::now();
            output.is_planned = false;
            if let Some(update) = state.mapper.output_so_far(&id) {
                send(&connection, &backlog, &session, update);
            }
        });
    }

    /// Asks the client. Every response except an offered option is `None`.
    async fn ask<D: Clone>(&self, call: ToolCallUpdate, offer: Offer<D>) -> Option<D> {
        let request = RequestPermissionRequest::new(self.session.clone(), call, offer.options());
        match self.connection.send_request(request).block_task().await {
            Ok(response) => offer.decision(&response),
            Err(error) => {
                let code = i32::from(error.code);
                tracing::warn!(code, "the client did not respond to a question");
                None
            }
        }
    }
}

fn send(
    connection: &ConnectionTo<Client>,
    backlog: &Backlog,
    session: &SessionId,
    update: SessionUpdate,
) {
    let notification = SessionNotification::new(session.clone(), update);
    backlog.grow();
    // It fails only after the end of the connection.
    if connection.send_notification(notification).is_err() {
        tracing::debug!("an update was not sent: the connection has ended");
    }
}

#[async_trait]
impl Channel for AcpChannel {
    fn emit(&self, event: LoopbackEvent) {
        if !self.has_notices
            && let Some((severity, text)) = notice_of(&event)
        {
            let is_problem = severity != NoticeSeverity::Info;
            self.host.report(&(self.clean)(&text), is_problem);
            return;
        }
        if let LoopbackEvent::ToolOutput { id, .. } = &event {
            return self.emit_output(&id.clone(), event);
        }
        let mut state = self.state();
        if let LoopbackEvent::ToolFinished { id, .. } = &event {
            state.outputs.remove(id);
        }
        // Sent under the lock, so that updates keep their order.
        if let Some(update) = state.mapper.map(event) {
            self.send(update);
        }
    }

    fn can_ask(&self) -> bool {
        true
    }

    fn shows_questions(&self) -> bool {
        !self.assume_yes
    }

    async fn confirm(&self, call: &str, question: &Confirmation, params: &Value) -> UserAnswer {
        if self.assume_yes {
            return UserAnswer::Once;
        }
        let id = self.state().mapper.call_id(call).unwrap_or_else(new_id);
        let mut content = vec![text_content(&text(question))];
        if let Some(preview) = &question.preview {
            content.push(text_content(&revealed(&preview.diff)));
        }
        let fields = ToolCallUpdateFields::new()
            .title(title(&question.tool, params))
            .kind(kind_of(&question.tool))
            .status(ToolCallStatus::Pending)
            .raw_input(params.clone())
            .content(content);
        let answer = self
            .ask(ToolCallUpdate::new(id, fields), offer(question))
            .await;
        answer.unwrap_or(UserAnswer::No(None))
    }

    async fn check_in(&self, question: &CheckIn) -> CheckInAnswer {
        let rounds = pluralize(question.iterations, "round");
        let title = format!("Continue after {rounds} of tool calls?");
        let answer = self.ask_about(title, None, check_in_offer(question)).await;
        answer.unwrap_or(CheckInAnswer::Stop)
    }

    async fn ask_for_server(&self, question: &ServerQuestion) -> ServerAnswer {
        if self.assume_yes {
            return ServerAnswer::Decline;
        }
        match server_question::request(question, self.elicitation.as_ref(), &self.session) {
            server_question::Request::NotSupported => {
                self.emit(LoopbackEvent::Notice(format!(
                    "the request of the MCP server {} for input is declined, because the editor \
                     shows no forms",
                    question.server
                )));
                ServerAnswer::Decline
            }
            server_question::Request::Elicitation(request) => {
                match self.connection.send_request(*request).block_task().await {
                    Ok(response) => server_question::answer(question, response),
                    Err(error) => {
                        let code = i32::from(error.code);
                        tracing::warn!(code, "the client did not respond to an elicitation");
                        ServerAnswer::Cancel
                    }
                }
            }
            server_question::Request::Permission(text) => {
                let title = server_question::title(question);
                let offer = server_question::decision_offer();
                let answer = self.ask_about(title, Some(text), offer).await;
                answer.unwrap_or(ServerAnswer::Cancel)
            }
        }
    }
}

impl AcpChannel {
    /// Asks whether an MCP server of the client is used.
    pub(super) async fn ask_about_server(&self, server: &ClientServer) -> bool {
        if self.assume_yes {
            return true;
        }
        let title = format!(
            "Use the MCP server {} of the editor?",
            revealed(&server.name)
        );
        let text = Some(server_text(server));
        let answer = self.ask_about(title, text, server_offer()).await;
        answer.unwrap_or(false)
    }

    /// Whether calls and the MCP servers of the client are approved without a question.
    pub(super) fn assumes_yes(&self) -> bool {
        self.assume_yes
    }

    /// Asks a question that is not about a call. The protocol shows questions as calls, so one is announced and ended.
    async fn ask_about<D: Clone>(
        &self,
        title: String,
        text: Option<String>,
        offer: Offer<D>,
    ) -> Option<D> {
        let id = new_id();
        let content: Vec<_> = text.iter().map(|text| text_content(text)).collect();
        self.send(SessionUpdate::ToolCall(
            ToolCall::new(id.clone(), title.clone())
                .status(ToolCallStatus::Pending)
                .content(content.clone()),
        ));
        let mut shown = ShownQuestion {
            channel: self,
            id: id.clone(),
            status: ToolCallStatus::Failed,
        };
        let fields = ToolCallUpdateFields::new()
            .title(title)
            .content(content)
            .status(ToolCallStatus::Pending);
        let answer = self.ask(ToolCallUpdate::new(id, fields), offer).await;
        if answer.is_some() {
            shown.status = ToolCallStatus::Completed;
        }
        answer
    }
}

/// A question that is shown as a call. Its end is sent when this is dropped, also if the prompt was cancelled.
struct ShownQuestion<'c> {
    channel: &'c AcpChannel,
    id: String,
    status: ToolCallStatus,
}

impl Drop for ShownQuestion<'_> {
    fn drop(&mut self) {
        let fields = ToolCallUpdateFields::new().status(self.status);
        let update = ToolCallUpdate::new(self.id.clone(), fields);
        self.channel.send(SessionUpdate::ToolCallUpdate(update));
    }
}
