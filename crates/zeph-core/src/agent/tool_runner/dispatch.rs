//! The path of one call: the stack of tools, a confirmation by the user if the stack requires it, and the events of the call.
//!
//! Before each execution, changes of the configuration are applied. A confirmed call and a declined call pass the whole stack
//! again, so that every call has its audit entry.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use zeph_llm::ToolUseRequest;
use zeph_llm::traced::SpanContent;
use zeph_tools::argument_repair::{ArgumentRepairer, RepairOutcome};
use zeph_tools::gate::quota::BatchQuota;
use zeph_tools::layers::grants::Grants;
use zeph_tools::question::QuestionPort;
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::{
    CallContext, ErasedToolExecutor, EventSink, Origin, ToolCall, ToolError, ToolEvent, ToolOutput,
    ToolResult, UserDecision,
};

use super::caller::CallerIdentity;
use super::confirm::{CallPrompts, Confirmer, QuestionOutcome};
use super::sampling::Sampler;
use crate::agent::spans;
use crate::agent::sub_agent::SubAgentHost;
use crate::channel::{Channel, LoopbackEvent, UserAnswer};
use crate::redacted::{RedactedChannel, without_secret_rules};
use crate::reload::{ConfigReload, ConfigUpdate};
use crate::sub_agent_port::SubAgentSlot;

/// Runs calls through the stack, and asks through the channel.
pub struct Dispatcher {
    executor: Arc<dyn ErasedToolExecutor>,
    pub(in crate::agent) channel: Arc<dyn Channel>,
    pub(super) caller: CallerIdentity,
    pub(in crate::agent) reload: Option<Arc<dyn ConfigReload>>,
    accepts_images: bool,
    repairer: Option<Arc<dyn ArgumentRepairer>>,
    confirmer: Confirmer,
    sampler: Option<Sampler>,
    sub_agents: Option<Arc<SubAgentHost>>,
    /// The session of the parent, and its batch, if a sub-agent makes the calls.
    parent: Option<(String, Option<String>)>,
    span_content: SpanContent,
}

impl Dispatcher {
    /// Creates the dispatcher of one conversation.
    #[must_use]
    pub fn new(
        executor: Arc<dyn ErasedToolExecutor>,
        channel: Arc<dyn Channel>,
        caller: CallerIdentity,
    ) -> Self {
        let confirmer = Confirmer::new(Arc::clone(&channel), caller.conversation.clone());
        Self {
            executor,
            channel,
            caller,
            reload: None,
            accepts_images: false,
            repairer: None,
            confirmer,
            sampler: None,
            sub_agents: None,
            parent: None,
            span_content: SpanContent::default(),
        }
    }

    /// Redacts `secrets` in events and questions, and offers no rule that contains one.
    #[must_use]
    pub fn with_redaction(mut self, secrets: Arc<SecurityPatterns>) -> Self {
        self.channel = Arc::new(RedactedChannel::new(self.channel, Arc::clone(&secrets)));
        self.confirmer.channel = Arc::clone(&self.channel);
        self.confirmer.secrets = secrets;
        self
    }

    /// Sets the port that applies changes of the configuration before each call.
    #[must_use]
    pub fn with_config_reload(mut self, reload: Option<Arc<dyn ConfigReload>>) -> Self {
        self.reload = reload;
        self
    }

    /// Sets whether the spans of calls hold arguments and results.
    #[must_use]
    pub fn with_span_content(mut self, content: SpanContent) -> Self {
        self.span_content = content;
        self
    }

    /// Stores approvals for more than one call in `grants`.
    #[must_use]
    pub fn with_grants(mut self, grants: Arc<Grants>) -> Self {
        self.confirmer.grants = grants;
        self
    }

    /// Sets whether the reader of the results accepts images.
    #[must_use]
    pub fn with_image_support(mut self, accepts_images: bool) -> Self {
        self.accepts_images = accepts_images;
        self
    }

    /// Sets whether the model of the next turn accepts images.
    pub(in crate::agent) fn set_image_support(&mut self, accepts_images: bool) {
        self.accepts_images = accepts_images;
    }

    /// Whether the model accepts images.
    pub(super) fn accepts_images(&self) -> bool {
        self.accepts_images
    }

    /// Sets the repairer of invalid arguments in calls of a model.
    #[must_use]
    pub fn with_argument_repair(mut self, repairer: Option<Arc<dyn ArgumentRepairer>>) -> Self {
        self.repairer = repairer;
        self
    }

    /// Sets the starter of the sub-agents of the calls.
    #[must_use]
    pub(in crate::agent) fn with_sub_agents(mut self, host: Option<Arc<SubAgentHost>>) -> Self {
        self.sub_agents = host;
        self
    }

    /// Lets the calls count to the session of the parent, and one undo revert them together with its `batch`.
    #[must_use]
    pub(in crate::agent) fn with_parent(mut self, session: String, batch: Option<String>) -> Self {
        self.parent = Some((session, batch));
        self
    }

    /// The lock that a question of the conversation holds while it is open.
    pub(in crate::agent) fn question_lock(&self) -> Arc<tokio::sync::Mutex<()>> {
        self.confirmer.question_lock()
    }

    /// Whether a call starts a sub-agent that only reads.
    pub(in crate::agent) fn is_read_only_task(&self, tool: &str, params: &Value) -> bool {
        let host = self.sub_agents.as_ref();
        host.is_some_and(|host| host.is_read_only(tool, params))
    }

    /// Lets MCP servers request responses of the model, after a question.
    #[must_use]
    pub(in crate::agent) fn with_sampler(mut self, sampler: Sampler) -> Self {
        self.sampler = Some(sampler);
        self
    }

    /// The port for questions of servers outside of calls; `None` if no user can answer.
    pub(super) fn questions(&self, cancel: &CancellationToken) -> Option<Arc<dyn QuestionPort>> {
        let is_asked = self.channel.can_ask() && self.channel.shows_questions();
        let (confirmer, sampler) = (self.confirmer.clone(), self.sampler.clone());
        is_asked.then(|| Arc::new(CallPrompts::new(confirmer, sampler, cancel.clone())) as _)
    }

    /// Applies changes of the configuration, and reports them.
    pub async fn refresh(&self) {
        let Some(reload) = &self.reload else { return };
        match reload.refresh().await {
            None => {}
            Some(ConfigUpdate::Taken(text)) => self.channel.emit(LoopbackEvent::Notice(text)),
            Some(ConfigUpdate::Refused(text)) => self.channel.emit(LoopbackEvent::Error(text)),
        }
    }

    /// Runs a `!command` that the user typed: no gate judges it, and it may use the terminal of the user.
    pub(super) async fn run_typed_command(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> ToolResult {
        self.emit_started(call);
        let start = Instant::now();
        let cx = self
            .context(cancel, UserDecision::Nobody)
            .with_origin(Origin::Typed)
            .with_terminal(self.channel.user_terminal());
        let result = self.execute_for_user(call, &cx).await;
        self.emit_finished(call, &result, start.elapsed());
        result
    }

    /// Runs a call of the user. It needs no confirmation, but every gate judges it.
    pub async fn run_user_call(&self, call: &ToolCall, cancel: &CancellationToken) -> ToolResult {
        self.refresh().await;
        self.emit_started(call);
        let start = Instant::now();
        let cx = self
            .context(cancel, UserDecision::Nobody)
            .with_origin(Origin::User);
        let result = self.execute_for_user(call, &cx).await;
        self.emit_finished(call, &result, start.elapsed());
        result
    }

    /// Runs a call of the user whose result a command shows: no event reports it.
    pub(in crate::agent) async fn run_silent_user_call(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> ToolResult {
        self.refresh().await;
        let events = Arc::new(zeph_tools::NoEvents);
        let cx = CallContext::new(cancel.clone(), events, UserDecision::Nobody)
            .with_origin(Origin::User);
        self.execute_for_user(call, &cx).await
    }

    /// Runs a call of a model or a script, with a confirmation if the stack requires it.
    pub async fn run_model_call(&self, call: &ToolCall, cancel: &CancellationToken) -> ToolResult {
        let quota = Arc::new(BatchQuota::of(1));
        let run = self.run_batch_call(call, quota, Vec::new(), cancel);
        run.await.0
    }

    /// Runs one call of a batch with this quota. The warnings about the call are `suspects`. Returns
    /// also the duration of the call, without the time that it waited for the user.
    pub(super) async fn run_batch_call(
        &self,
        call: &ToolCall,
        quota: Arc<BatchQuota>,
        suspects: Vec<String>,
        cancel: &CancellationToken,
    ) -> (ToolResult, Duration) {
        self.refresh().await;
        self.emit_started(call);
        let start = Instant::now();
        let decision = match self.channel.can_ask() {
            true => UserDecision::CanAsk,
            false => UserDecision::Nobody,
        };
        let cx = self
            .context(cancel, decision.clone())
            .with_batch_quota(quota)
            .with_argument_repair(self.repairer.clone());
        let prompt = CallPrompts::new(self.confirmer.clone(), self.sampler.clone(), cancel.clone());
        let is_asked = decision == UserDecision::CanAsk && self.channel.shows_questions();
        let prompt = is_asked.then(|| Arc::new(prompt));
        let cx = cx
            .with_access_prompt(prompt.clone().map(|prompt| prompt as _))
            .with_questions(prompt.clone().map(|prompt| prompt as _));
        if let Some(host) = &self.sub_agents {
            cx.extensions()
                .get::<SubAgentSlot>()
                .set(Arc::clone(host) as _);
        }
        for suspect in &suspects {
            self.channel.emit(LoopbackEvent::Warning(suspect.clone()));
        }
        cx.trace().suspects = suspects;
        let span = spans::call(call, self.span_content);
        let executed = self.execute_and_confirm(call, &cx, cancel);
        let (result, waited) = executed.instrument(span.clone()).await;
        let waited = waited + prompt.map_or(Duration::ZERO, |prompt| prompt.waited());
        spans::end_call(&span, &result, waited, self.span_content);
        let took = start.elapsed().saturating_sub(waited);
        self.emit_finished(call, &result, took);
        (result, took)
    }

    /// Refuses a call, with an audit entry.
    pub async fn refuse(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
        reason: String,
    ) -> ToolResult {
        self.emit_started(call);
        let cx = self.context(cancel, UserDecision::Refused(reason));
        let span = spans::call(call, self.span_content);
        let result = self.execute(call, &cx).instrument(span.clone()).await;
        spans::end_call(&span, &result, Duration::ZERO, self.span_content);
        self.emit_finished(call, &result, Duration::ZERO);
        result
    }

    /// The call that a model requests.
    pub(super) fn call(&self, request: &ToolUseRequest, batch: Option<uuid::Uuid>) -> ToolCall {
        ToolCall {
            id: request.id.clone(),
            tool: request.name.clone(),
            params: request.input.clone(),
            caller_id: self.caller.caller_id.clone(),
            phase: self.caller.phase,
            conversation: self.caller.conversation.clone(),
            batch: match &self.parent {
                Some((_, batch)) => batch.clone(),
                None => batch.map(|id| id.to_string()),
            },
            account: self.parent.as_ref().map(|(session, _)| session.clone()),
        }
    }

    /// Executes a call. If the stack requires a confirmation and the channel can ask, asks the user. Returns also the time that
    /// the call waited for the user.
    async fn execute_and_confirm(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        cancel: &CancellationToken,
    ) -> (ToolResult, Duration) {
        let mut waited = Duration::ZERO;
        loop {
            let changes = self.confirmer.grants.changes();
            let result = self.execute(call, cx).await;
            let Err(ToolError::ConfirmationRequired(question)) = &result else {
                return (result, waited);
            };
            if cx.answer != UserDecision::CanAsk {
                return (result, waited);
            }
            let question = &*without_secret_rules(question, &self.confirmer.secrets);
            let asked = Instant::now();
            let repaired = cx.trace().reformatted.clone();
            let params = match &repaired {
                RepairOutcome::To(params) => params,
                RepairOutcome::No | RepairOutcome::InVain => &call.params,
            };
            let confirmer = &self.confirmer;
            let outcome = confirmer.ask(question, call, params, changes, cancel).await;
            waited += asked.elapsed();
            let answer = match outcome {
                QuestionOutcome::Answered(answer) => Some(answer),
                QuestionOutcome::Cancelled => None,
                QuestionOutcome::GrantsChanged => continue,
            };
            self.refresh().await;
            let result = match answer {
                // The stack reports the cancellation, and writes the audit entry.
                None => self.execute(call, cx).await,
                Some(UserAnswer::No(reason)) => {
                    let cx = cx.with_answer(UserDecision::No(reason));
                    self.execute(call, &cx).await
                }
                Some(answer) => {
                    confirmer.record(answer, question).await;
                    let cx = cx
                        .with_approval(question.digest)
                        .with_preview_digest(confirmer.seen_preview(question));
                    self.execute_confirmed(call, &cx).await
                }
            };
            return (result, waited);
        }
    }

    async fn execute(&self, call: &ToolCall, cx: &CallContext) -> ToolResult {
        owned(call, self.executor.execute_tool_call_erased(call, cx).await)
    }

    /// Executes a call of the user, which needs no confirmation.
    async fn execute_for_user(&self, call: &ToolCall, cx: &CallContext) -> ToolResult {
        let span = spans::call(call, self.span_content);
        let executed = self.execute_confirmed(call, cx);
        let result = executed.instrument(span.clone()).await;
        spans::end_call(&span, &result, Duration::ZERO, self.span_content);
        result
    }

    async fn execute_confirmed(&self, call: &ToolCall, cx: &CallContext) -> ToolResult {
        let result = self.executor.execute_tool_call_confirmed_erased(call, cx);
        owned(call, result.await)
    }

    /// Forwards events of tools to the channel.
    pub(super) fn events(&self) -> Arc<dyn EventSink> {
        Arc::new(ChannelEvents(Arc::clone(&self.channel)))
    }

    fn context(&self, cancel: &CancellationToken, decision: UserDecision) -> CallContext {
        CallContext::new(cancel.clone(), self.events(), decision)
            .with_origin(self.caller.origin)
            .with_image_support(self.accepts_images)
    }

    fn emit_started(&self, call: &ToolCall) {
        self.channel.emit(LoopbackEvent::ToolStarted {
            id: call.id.clone(),
            tool: call.tool.clone(),
            params: call.params.clone(),
        });
    }

    fn emit_finished(&self, call: &ToolCall, result: &ToolResult, took: Duration) {
        match result {
            Ok(_) => tracing::info!(tool = %call.tool, call = %call.id, ?took, "a call ended"),
            Err(error) => {
                let (category, causes) = (error.category().label(), with_causes(error));
                tracing::info!(tool = %call.tool, call = %call.id, category, "a call failed: {causes}");
            }
        }
        let display = match result {
            Ok(output) => output.display().to_owned(),
            Err(error) => display_error(error),
        };
        let (locations, changes) = match result {
            Ok(output) => (output.locations.clone(), output.changes.clone()),
            Err(_) => (Vec::new(), Vec::new()),
        };
        let output = match result {
            Ok(output) => Some(output),
            Err(error) => error.output(),
        };
        let filter = output.and_then(|output| output.filter.clone());
        self.channel.emit(LoopbackEvent::ToolFinished {
            id: call.id.clone(),
            tool: call.tool.clone(),
            failure: result.as_ref().err().map(ToolError::category),
            display,
            filter,
            locations,
            changes,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
    }
}

/// The text of a failure for the user: the message, its causes, and the output before the failure.
#[must_use]
pub fn display_error(error: &ToolError) -> String {
    let mut text = with_causes(error);
    if let Some(output) = error.output()
        && !output.display().is_empty()
    {
        text.push('\n');
        text.push_str(output.display());
    }
    text
}

/// The message of a failure and its causes, each once.
fn with_causes(error: &ToolError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

/// Makes an error of `Ok(None)`: no executor of the stack owns the tool.
fn owned(call: &ToolCall, result: Result<Option<ToolOutput>, ToolError>) -> ToolResult {
    result?.ok_or_else(|| ToolError::ToolNotFound {
        id: call.tool.clone(),
        near: Vec::new(),
    })
}

/// Forwards the events of a call to the channel.
struct ChannelEvents(Arc<dyn Channel>);

impl EventSink for ChannelEvents {
    fn emit(&self, event: ToolEvent) {
        self.0.emit(match event {
            ToolEvent::Output {
                call_id,
                stream,
                text,
                skipped_lines,
            } => LoopbackEvent::ToolOutput {
                id: call_id,
                stream,
                text,
                skipped_lines,
            },
            ToolEvent::Notice { text, .. } => LoopbackEvent::Notice(text),
            ToolEvent::Warning { text, .. } => LoopbackEvent::Error(text),
            ToolEvent::Terminal {
                call_id,
                terminal_id,
            } => LoopbackEvent::Terminal {
                id: call_id,
                terminal: terminal_id,
            },
            ToolEvent::Rollback { call_id, changes } => LoopbackEvent::Rollback {
                id: call_id,
                changes,
            },
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Cause(&'static str, #[source] Option<Box<Cause>>);

    /// Proves ERR-4: the user sees the causes too, each once.
    #[test]
    fn display_error_contains_the_chain_of_causes() {
        let cause = Cause("outer", Some(Box::new(Cause("inner", None))));
        let error = ToolError::io("open", Path::new("a"), std::io::Error::other(cause));
        assert_eq!(error.to_string(), "open a: outer");
        assert_eq!(display_error(&error), "open a: outer: inner");
        let noted = error.noted("tried 3 times");
        assert_eq!(
            display_error(&noted),
            "open a: outer (tried 3 times): inner"
        );
    }
}
