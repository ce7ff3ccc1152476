//! Runs the calls of one model response.
//!
//! The sequence of one call: take over what changed in the configuration → tell that it begins → the stack → when the stack asks, ask the
//! person → the confirmed path or the refusal, through the stack again → tell that it ended.
//! A batch of read-only calls runs at the same time, bounded; a batch with a mutation in it runs
//! in order. Results come in call order in either case.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use zeph_llm::ToolUseRequest;
use zeph_tools::argument_repair::ArgumentRepairer;
use zeph_tools::gate::quota::BatchQuota;
use zeph_tools::layers::grants::Grants;
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::{
    CallContext, ErasedToolExecutor, EventSink, Origin, Phase, ToolCall, ToolError, ToolEvent,
    ToolOutput, ToolRegistry, ToolResult, UserDecision,
};

use crate::channel::{Channel, LoopbackEvent};
use crate::config::AgentConfig;
use crate::redacted::RedactedChannel;
use crate::reload::{ConfigReload, ConfigUpdate};

/// Who asks for calls, and in which conversation.
#[derive(Debug, Clone)]
pub struct CallerIdentity {
    /// The conversation.
    pub conversation: String,
    /// The channel's own id of the caller; `None` for the command line's user.
    pub caller_id: Option<String>,
    /// The phase of the work.
    pub phase: Phase,
    /// Whose idea its calls are.
    pub origin: Origin,
}

/// Runs calls through the stack, and asks through the channel.
pub struct Dispatcher {
    pub(super) executor: Arc<dyn ErasedToolExecutor>,
    pub(super) channel: Arc<dyn Channel>,
    pub(super) caller: CallerIdentity,
    reload: Option<Arc<dyn ConfigReload>>,
    pub(super) grants: Arc<Grants>,
    pub(super) secrets: Arc<SecurityPatterns>,
    takes_images: bool,
    pub(super) reformat: Option<Arc<dyn ArgumentRepairer>>,
    /// One question at a time.
    pub(super) asking: Mutex<()>,
}

/// The calls of one answer: what they change is undone together.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its id.
    pub id: uuid::Uuid,
    /// The calls after so many are refused.
    pub max_calls: usize,
    /// So many read-only calls run at the same time.
    pub max_parallel: usize,
    /// What they share before the quota.
    pub seats: Arc<BatchQuota>,
    /// The phase of these calls; `None`: the phase of the caller.
    pub phase: Option<Phase>,
    /// What may be made up in them, by the ids of calls: it is told, and noted in their audit entries.
    pub suspects: HashMap<String, Vec<String>>,
}

impl Batch {
    /// A batch of `requests`. The quota counts those that are calls of tools that there are, as far
    /// as they run at all.
    #[must_use]
    pub fn of(requests: &[ToolUseRequest], registry: &ToolRegistry, config: &AgentConfig) -> Self {
        let max_calls = config.max_calls_per_iteration;
        let running = requests.iter().take(max_calls);
        let calls = running.filter(|request| registry.accepts(&request.name, &request.input));
        Self {
            id: uuid::Uuid::new_v4(),
            max_calls,
            max_parallel: config.max_parallel_calls,
            seats: Arc::new(BatchQuota::of(calls.count() as u64)),
            phase: None,
            suspects: HashMap::new(),
        }
    }
}

impl Dispatcher {
    /// A dispatcher for one conversation.
    #[must_use]
    pub fn new(
        executor: Arc<dyn ErasedToolExecutor>,
        channel: Arc<dyn Channel>,
        caller: CallerIdentity,
    ) -> Self {
        Self {
            executor,
            channel,
            caller,
            reload: None,
            grants: Arc::default(),
            secrets: Arc::default(),
            takes_images: false,
            reformat: None,
            asking: Mutex::new(()),
        }
    }

    /// The same, with a channel that gets no secret, and without rules that would keep one.
    #[must_use]
    pub fn redacting(mut self, secrets: Arc<SecurityPatterns>) -> Self {
        self.channel = Arc::new(RedactedChannel::new(self.channel, Arc::clone(&secrets)));
        self.secrets = secrets;
        self
    }

    /// The same, keeping the tools in step with the configuration.
    #[must_use]
    pub fn with_config_reload(mut self, reload: Option<Arc<dyn ConfigReload>>) -> Self {
        self.reload = reload;
        self
    }

    /// The same, keeping what is agreed to for more than one call in `grants`.
    #[must_use]
    pub fn with_grants(mut self, grants: Arc<Grants>) -> Self {
        self.grants = grants;
        self
    }

    /// The same, for results that go to a reader who takes images or does not.
    #[must_use]
    pub fn taking_images(mut self, takes_images: bool) -> Self {
        self.takes_images = takes_images;
        self
    }

    /// The same, where arguments of a model's call that do not fit are put right.
    #[must_use]
    pub fn reformatting(mut self, reformat: Option<Arc<dyn ArgumentRepairer>>) -> Self {
        self.reformat = reformat;
        self
    }

    /// Takes over what changed in the configuration, and tells of it.
    pub async fn refresh(&self) {
        let Some(reload) = &self.reload else { return };
        match reload.refresh().await {
            None => {}
            Some(ConfigUpdate::Taken(text)) => self.channel.emit(LoopbackEvent::Notice(text)),
            Some(ConfigUpdate::Refused(text)) => self.channel.emit(LoopbackEvent::Error(text)),
        }
    }

    /// Whether every call of a batch only reads, so that they may run at the same time.
    #[must_use]
    pub fn is_parallelizable(requests: &[ToolUseRequest], registry: &ToolRegistry) -> bool {
        requests.iter().all(|request| {
            registry
                .get(&request.name)
                .is_some_and(|def| def.annotations.read_only)
        })
    }

    /// Runs a batch at the same time, bounded. Results are in call order.
    ///
    /// All calls are driven until the last one has ended: a call that is not polled may hold what
    /// whoever waits for its result needs.
    pub async fn run_parallel(
        &self,
        requests: &[ToolUseRequest],
        batch: &Batch,
        cancel: &CancellationToken,
    ) -> Vec<ToolResult> {
        let calls: Vec<_> = requests
            .iter()
            .enumerate()
            .map(|(at, request)| self.run_batch_item(at, request, batch, cancel))
            .collect();
        stream::iter(calls)
            .buffered(batch.max_parallel.max(1))
            .collect()
            .await
    }

    /// Runs `request`, the call at `at` of its batch, or refuses it when it is beyond the limit.
    pub async fn run_batch_item(
        &self,
        at: usize,
        request: &ToolUseRequest,
        batch: &Batch,
        cancel: &CancellationToken,
    ) -> ToolResult {
        let mut call = self.call(request, Some(batch.id));
        call.phase = batch.phase.unwrap_or(call.phase);
        if at < batch.max_calls {
            let suspects = batch.suspects.get(&call.id).cloned().unwrap_or_default();
            self.run_with_confirmation(&call, Arc::clone(&batch.seats), suspects, cancel)
                .await
        } else {
            self.refuse(&call, cancel, over_the_limit(batch.max_calls))
                .await
        }
    }

    /// Refuses every call of a batch, audited, for one reason.
    pub async fn refuse_all(
        &self,
        requests: &[ToolUseRequest],
        cancel: &CancellationToken,
        reason: &str,
    ) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(requests.len());
        for request in requests {
            let call = self.call(request, None);
            results.push(self.refuse(&call, cancel, reason.to_owned()).await);
        }
        results
    }

    /// Runs a call that the person typed: nothing is asked, every gate stands.
    pub async fn run_user_call(&self, call: &ToolCall, cancel: &CancellationToken) -> ToolResult {
        self.refresh().await;
        self.emit_started(call);
        let start = Instant::now();
        let cx = self
            .context(cancel, UserDecision::Nobody)
            .with_origin(Origin::User);
        let answer = self
            .executor
            .execute_tool_call_confirmed_erased(call, &cx)
            .await;
        let result = owned(call, answer);
        self.emit_finished(call, &result, start.elapsed());
        result
    }

    /// Runs a call that the model (or a script) asks for; the stack may ask.
    pub async fn run_model_call(&self, call: &ToolCall, cancel: &CancellationToken) -> ToolResult {
        let seats = Arc::new(BatchQuota::of(1));
        self.run_with_confirmation(call, seats, Vec::new(), cancel)
            .await
    }

    async fn refuse(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
        reason: String,
    ) -> ToolResult {
        self.emit_started(call);
        let cx = self.context(cancel, UserDecision::Refused(reason));
        let result = owned(
            call,
            self.executor.execute_tool_call_erased(call, &cx).await,
        );
        self.emit_finished(call, &result, Duration::ZERO);
        result
    }

    fn call(&self, request: &ToolUseRequest, batch: Option<uuid::Uuid>) -> ToolCall {
        ToolCall {
            id: request.id.clone(),
            tool: request.name.clone(),
            params: request.input.clone(),
            caller_id: self.caller.caller_id.clone(),
            phase: self.caller.phase,
            conversation: self.caller.conversation.clone(),
            batch: batch.map(|id| id.to_string()),
        }
    }

    pub(super) fn context(&self, cancel: &CancellationToken, answer: UserDecision) -> CallContext {
        let events = Arc::new(ToChannel(Arc::clone(&self.channel)));
        CallContext::new(cancel.clone(), events, answer)
            .with_origin(self.caller.origin)
            .with_image_support(self.takes_images)
    }

    pub(super) fn emit_started(&self, call: &ToolCall) {
        self.channel.emit(LoopbackEvent::ToolStarted {
            id: call.id.clone(),
            tool: call.tool.clone(),
            params: call.params.clone(),
        });
    }

    pub(super) fn emit_finished(&self, call: &ToolCall, result: &ToolResult, took: Duration) {
        if let Err(error) = result {
            let (category, causes) = (error.category().label(), with_causes(error));
            tracing::info!(tool = %call.tool, call = %call.id, category, "a call failed: {causes}");
        }
        let (display, locations) = match result {
            Ok(output) => (output.display().to_owned(), output.locations.clone()),
            Err(error) => (display_error(error), Vec::new()),
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
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
    }
}

/// What a person reads of a failure: the text, its causes, and what had been printed.
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

/// The text of a failure and its causes, each once.
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

fn over_the_limit(max_calls: usize) -> String {
    format!(
        "only the first {max_calls} calls of one answer run; ask for this one again in the next answer"
    )
}

/// `Ok(None)` of a whole stack means that nobody owns the tool.
pub(super) fn owned(call: &ToolCall, answer: Result<Option<ToolOutput>, ToolError>) -> ToolResult {
    answer?.ok_or_else(|| ToolError::ToolNotFound {
        id: call.tool.clone(),
        near: Vec::new(),
    })
}

/// Hands the events of a call to the channel.
struct ToChannel(Arc<dyn Channel>);

impl EventSink for ToChannel {
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

    /// Proves ERR-4: a person reads the causes too, each once.
    #[test]
    fn a_person_reads_the_chain_of_causes() {
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
