//! The calls that a server works on: the receiver of their progress, and the user who answers the server's questions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::ProgressToken;
use rmcp::service::{RequestHandle, RoleClient, ServiceError};
use zeph_tools::question::{
    QuestionPort, SamplingRequest, SamplingResponse, ServerAnswer, ServerQuestion,
};
use zeph_tools::{CallContext, EventSink, ToolEvent};

/// The minimum time between two messages about the progress of a call.
const BETWEEN_MESSAGES: Duration = Duration::from_millis(500);

/// The caller of one request: it shows progress, and answers questions.
pub(crate) struct Caller {
    call: String,
    events: Arc<dyn EventSink>,
    questions: Option<Arc<dyn QuestionPort>>,
    shown: Mutex<Option<Instant>>,
    waits: Mutex<Waits>,
}

/// The time that a call waited for the user.
#[derive(Default)]
struct Waits {
    total: Duration,
    open: usize,
    since: Option<Instant>,
}

impl Caller {
    /// The caller of the call with this id.
    pub(crate) fn of_call(call: &str, cx: &CallContext) -> Self {
        Self {
            call: call.to_owned(),
            events: cx.events(),
            questions: cx.questions().cloned(),
            shown: Mutex::default(),
            waits: Mutex::default(),
        }
    }

    /// The user of a session, outside of calls.
    pub(crate) fn of_session(
        events: Arc<dyn EventSink>,
        questions: Option<Arc<dyn QuestionPort>>,
    ) -> Self {
        Self {
            call: String::new(),
            events,
            questions,
            shown: Mutex::default(),
            waits: Mutex::default(),
        }
    }

    /// Asks the user, or declines if no user can answer.
    pub(super) async fn ask(&self, question: &ServerQuestion) -> ServerAnswer {
        let Some(port) = &self.questions else {
            self.notice(format!(
                "the request of the MCP server {} for input is declined, because no user can \
                 answer",
                question.server
            ));
            return ServerAnswer::Decline;
        };
        let _open = OpenQuestion::new(self);
        port.ask(question).await
    }

    /// Requests a response of the session's model.
    ///
    /// # Errors
    /// The user declines, no user can answer, or the model fails.
    pub(super) async fn sample(
        &self,
        request: &SamplingRequest,
    ) -> Result<SamplingResponse, String> {
        let Some(port) = &self.questions else {
            return Err("no user can answer".to_owned());
        };
        let _open = OpenQuestion::new(self);
        port.sample(request).await
    }

    /// Shows a message about the call.
    pub(super) fn notice(&self, text: String) {
        self.events.emit(ToolEvent::Notice {
            call_id: self.call.clone(),
            text,
        });
    }

    /// Shows the progress of the call, unless a message was just shown.
    pub(super) fn progress(&self, text: String) {
        let mut shown = lock(&self.shown);
        let is_early = |shown: Instant| shown.elapsed() < BETWEEN_MESSAGES;
        if !shown.is_some_and(is_early) {
            *shown = Some(Instant::now());
            drop(shown);
            self.notice(text);
        }
    }

    /// The time that the call waited for the user so far.
    pub(super) fn waited(&self) -> Duration {
        let waits = lock(&self.waits);
        waits.total + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// A question that is open; the time limit of the call does not run.
struct OpenQuestion<'c>(&'c Caller);

impl<'c> OpenQuestion<'c> {
    fn new(caller: &'c Caller) -> Self {
        let mut waits = lock(&caller.waits);
        waits.open += 1;
        waits.since.get_or_insert_with(Instant::now);
        drop(waits);
        Self(caller)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let mut waits = lock(&self.0.waits);
        waits.open -= 1;
        if waits.open == 0
            && let Some(since) = waits.since.take()
        {
            waits.total += since.elapsed();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The callers of the running requests, the latest last.
#[derive(Default)]
pub(super) struct RunningCalls {
    calls: Mutex<Vec<(ProgressToken, Arc<Caller>)>>,
    /// Held while a request is sent, so that its progress does not overtake its entry.
    sending: tokio::sync::Mutex<()>,
}

/// The entry of a running request, removed when dropped.
pub(super) struct Entry {
    calls: Arc<RunningCalls>,
    token: ProgressToken,
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.calls.calls).retain(|(token, _)| *token != self.token);
    }
}

impl RunningCalls {
    /// Sends a request of `caller`.
    pub(super) async fn send(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        send: impl Future<Output = Result<RequestHandle<RoleClient>, ServiceError>>,
    ) -> Result<(RequestHandle<RoleClient>, Entry), ServiceError> {
        let _sending = self.sending.lock().await;
        let handle = send.await?;
        let token = handle.progress_token.clone();
        lock(&self.calls).push((token.clone(), Arc::clone(caller)));
        let calls = Arc::clone(self);
        Ok((handle, Entry { calls, token }))
    }

    /// The caller of the request with this token.
    pub(super) async fn with_token(&self, token: &ProgressToken) -> Option<Arc<Caller>> {
        let _sent = self.sending.lock().await;
        let calls = lock(&self.calls);
        let found = calls.iter().find(|(known, _)| known == token);
        found.map(|(_, caller)| Arc::clone(caller))
    }

    /// The caller of the latest request. Earlier revisions do not say to which request a question belongs.
    pub(super) async fn latest(&self) -> Option<Arc<Caller>> {
        let _sent = self.sending.lock().await;
        lock(&self.calls)
            .last()
            .map(|(_, caller)| Arc::clone(caller))
    }
}
