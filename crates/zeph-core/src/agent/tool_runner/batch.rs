//! The calls of one response: runs them, and stores each result.
//!
//! If all calls of a batch only read, they run concurrently; otherwise in sequence. Results are stored in the order of the calls.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_llm::{Message, MessagePart, Role, ToolUseRequest};
use zeph_tools::def::CachePolicy;
use zeph_tools::gate::command::only_reads;
use zeph_tools::gate::quota::BatchQuota;
use zeph_tools::{
    OutputMetadata, Phase, ToolError, ToolErrorCategory, ToolOutput, ToolRegistry, ToolResult,
    ToolTarget, content_for_llm,
};

use super::ToolRunner;
use crate::agent::hallucination::{self, ConversationContext};
use crate::agent::history::HistoryError;
use crate::agent::limits::Step;
use crate::agent::replay::ResultView;
use crate::agent::session::Session;
use crate::agent::strip_reasoning::{ONLY_REASONING, ResponseCalls};
use crate::channel::LoopbackEvent;
use crate::config::AgentConfig;
use crate::native::task::TASK;
use crate::native::tasks;

/// The calls of one response. `undo` reverts their changes together.
pub(in crate::agent) struct Batch {
    id: uuid::Uuid,
    calls: ResponseCalls,
    /// Calls after this number are refused.
    max_calls: usize,
    /// Number of read-only calls that run concurrently.
    max_parallel: usize,
    /// Whether every call only reads.
    is_read_only: bool,
    /// Whether the model was asked to reconsider before it made these calls.
    is_reflection: bool,
    quota: Arc<BatchQuota>,
    /// Warnings about arguments that may be invented, by call id.
    suspects: HashMap<String, Vec<String>>,
}

/// The facts about a stored result that the turn needs.
pub(in crate::agent) struct ToolResultSummary {
    /// The text for the model.
    pub(in crate::agent) content: String,
    /// The category of the failure; `None` for success.
    pub(in crate::agent) failure: Option<ToolErrorCategory>,
    /// Whether the call succeeded with a text and no image.
    is_text: bool,
    /// Whether a gate refused the call.
    pub(in crate::agent) refused: bool,
    /// Used and allowed calls, if the quota refused the call.
    pub(in crate::agent) over_quota: Option<(u64, u64)>,
}

impl Batch {
    /// The batch of `calls`. The quota counts valid calls of known tools that are within the limit of a response.
    pub(in crate::agent) fn new(
        calls: ResponseCalls,
        registry: &ToolRegistry,
        config: &AgentConfig,
        is_read_only_task: impl Fn(&str, &Value) -> bool,
    ) -> Self {
        let max_calls = config.max_calls_per_iteration;
        let counted = calls.runnable().take(max_calls);
        let counted = counted.filter(|it| registry.accepts(&it.name, &it.input));
        let quota = Arc::new(BatchQuota::of(counted.count() as u64));
        let is_read_only = calls.runnable().all(|request| {
            let def = registry.get(&request.name);
            def.is_some_and(|def| def.annotations.read_only)
                || is_read_only_task(&request.name, &request.input)
        });
        Self {
            id: uuid::Uuid::new_v4(),
            calls,
            max_calls,
            max_parallel: config.max_parallel_calls,
            is_read_only,
            is_reflection: false,
            quota,
            suspects: HashMap::new(),
        }
    }

    /// Marks the calls as made after a reflection: the model verifies its own call.
    pub(in crate::agent) fn with_reflection(mut self, is_reflection: bool) -> Self {
        self.is_reflection = is_reflection;
        self
    }

    /// Searches the calls for arguments that may be invented. They are reported and noted in the audit entries.
    pub(in crate::agent) fn with_suspects(
        mut self,
        session: &Session,
        registry: &ToolRegistry,
    ) -> Self {
        // An earlier call of the same response may create the path that a later call uses.
        let mut earlier: Vec<String> = Vec::new();
        for request in self.calls.runnable() {
            if let Some(def) = registry.get(&request.name) {
                let known = ConversationContext {
                    exists: &|path| session.project.join(path).symlink_metadata().is_ok(),
                    mentioned: &|word| {
                        session.system.text().contains(word)
                            || earlier.iter().any(|text| text.contains(word))
                            || session.history.has_text(word)
                    },
                };
                let suspects = hallucination::suspects(def, &request.input, &known);
                if !suspects.is_empty() {
                    self.suspects.insert(request.id.clone(), suspects);
                }
            }
            earlier.push(request.input.to_string());
        }
        self
    }

    /// All requests of the response, in order.
    pub(in crate::agent) fn requests(&self) -> &[ToolUseRequest] {
        &self.calls.requests
    }

    /// The calls with their `results`, for the limits of the turn.
    pub(in crate::agent) fn steps<'a>(
        &'a self,
        results: &'a [ToolResultSummary],
        registry: &'a ToolRegistry,
        project: &'a Path,
    ) -> impl Iterator<Item = Step<'a>> {
        let calls = self.requests().iter().zip(results);
        calls.map(move |(request, result)| Step {
            tool: &request.name,
            input: &request.input,
            content: &result.content,
            is_pure_read: result.is_text && is_pure_read(request, registry, project),
        })
    }
}

/// Whether a call changes nothing, and its result depends only on files or pages. A command that sleeps
/// waits for another process.
fn is_pure_read(request: &ToolUseRequest, registry: &ToolRegistry, project: &Path) -> bool {
    let Some(def) = registry.get(&request.name) else {
        return false;
    };
    match def.about {
        ToolTarget::Command { command, .. } => {
            let command = request.input.get(command).and_then(Value::as_str);
            command
                .is_some_and(|command| !command.contains("sleep") && only_reads(command, project))
        }
        _ => def.cache == CachePolicy::CACHED,
    }
}

impl ToolRunner {
    /// Runs the calls of a batch and stores their results in order. A call that held only reasoning is not run; its result says
    /// so.
    pub(in crate::agent) async fn run_batch(
        &mut self,
        session: &mut Session,
        batch: &Batch,
        cancel: &CancellationToken,
    ) -> Result<Vec<ToolResultSummary>, HistoryError> {
        let active = self.skills.skills.held(session.id());
        self.executor.set_effective_trust_erased(active.trust);
        self.follow_window(session);
        let mut concurrent = match batch.is_read_only {
            true => Some(self.run_concurrently(batch, cancel).await.into_iter()),
            false => None,
        };
        let mut stored = Vec::with_capacity(batch.requests().len());
        let mut index = 0;
        for request in batch.requests() {
            let (result, took) = if batch.calls.skipped.contains(&request.id) {
                (Ok(ToolOutput::text(ONLY_REASONING)), Duration::ZERO)
            } else if let Some(results) = &mut concurrent {
                let Some(result) = results.next() else { break };
                result
            } else {
                let result = self.run_item(index, request, batch, cancel).await;
                index += 1;
                result
            };
            // A result that cannot be stored ends the batch: no further call begins.
            stored.push(self.store_result(session, request, result, took).await?);
        }
        Ok(stored)
    }

    /// Refuses calls with an audit entry each, and stores the results.
    pub(in crate::agent) async fn refuse_calls(
        &self,
        session: &mut Session,
        requests: &[ToolUseRequest],
        reason: &str,
        cancel: &CancellationToken,
    ) -> Result<(), HistoryError> {
        let mut results = Vec::with_capacity(requests.len());
        for request in requests {
            let call = self.dispatcher.call(request, None);
            let result = self.dispatcher.refuse(&call, cancel, reason.to_owned());
            results.push(result.await);
        }
        for (request, result) in requests.iter().zip(results) {
            self.store_result(session, request, result, Duration::ZERO)
                .await?;
        }
        Ok(())
    }

    /// Runs all calls of a batch concurrently, at most `max_parallel` at a time. Results are in the
    /// order of the calls, each with the duration of its call.
    ///
    /// All calls are polled until the last one has ended: a call that is not polled may hold a lock that another call needs.
    async fn run_concurrently(
        &self,
        batch: &Batch,
        cancel: &CancellationToken,
    ) -> Vec<(ToolResult, Duration)> {
        let calls: Vec<_> = batch
            .calls
            .runnable()
            .enumerate()
            .map(|(index, request)| self.run_item(index, request, batch, cancel))
            .collect();
        stream::iter(calls)
            .buffered(batch.max_parallel.max(1))
            .collect()
            .await
    }

    /// Runs the call at `index` of its batch, or refuses it if it is over the limit of a response.
    /// Returns also the duration of the call.
    async fn run_item(
        &self,
        index: usize,
        request: &ToolUseRequest,
        batch: &Batch,
        cancel: &CancellationToken,
    ) -> (ToolResult, Duration) {
        let dispatcher = &self.dispatcher;
        let mut call = dispatcher.call(request, Some(batch.id));
        // An unattended or a planning caller keeps its phase.
        if batch.is_reflection && call.phase == Phase::Executor {
            call.phase = Phase::Verifier;
        }
        if index < batch.max_calls {
            let suspects = batch.suspects.get(&call.id).cloned().unwrap_or_default();
            let quota = Arc::clone(&batch.quota);
            dispatcher
                .run_batch_call(&call, quota, suspects, cancel)
                .await
        } else {
            let reason = over_the_limit(batch.max_calls);
            let result = dispatcher.refuse(&call, cancel, reason).await;
            (result, Duration::ZERO)
        }
    }

    async fn store_result(
        &self,
        session: &mut Session,
        request: &ToolUseRequest,
        mut result: ToolResult,
        took: Duration,
    ) -> Result<ToolResultSummary, HistoryError> {
        let content = content_for_llm(&result);
        let metadata = OutputMetadata {
            execution_time_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            data_size_bytes: content.len() as u64,
            timestamp: jiff::Timestamp::now().as_millisecond(),
        };
        if let Ok(output) = &mut result {
            // The time of the stack includes questions during the call.
            output.metadata.execution_time_ms = metadata.execution_time_ms;
        }
        let failure = result.as_ref().err().map(ToolError::category);
        let is_text = result.as_ref().is_ok_and(|output| output.image.is_none());
        let refused = result.as_ref().is_err_and(ToolError::is_refusal);
        let over_quota = match &result {
            Err(ToolError::QuotaBlocked { used, max, .. }) => Some((*used, *max)),
            _ => None,
        };
        let mut view = ResultView::new(&result, session.history.secrets());
        if request.name == TASK {
            view = view.with_sub_session(&result);
        }
        let mut parts = vec![MessagePart::ToolResult {
            tool_use_id: request.id.clone(),
            content: self.result_format.content(&result, metadata),
            is_error: result.is_err(),
        }];
        // An image belongs to the result before it.
        let image = result.ok().and_then(|output| output.image);
        parts.extend(image.map(|image| MessagePart::Image {
            media_type: image.media_type,
            data: image.data,
        }));
        let role = Role::User;
        let seq = session.history.push(Message { role, parts }, None).await?;
        store_view(session, seq, &view).await;
        if tasks::is_task_tool(&request.name) {
            self.report_tasks(session).await;
        }
        Ok(ToolResultSummary {
            content,
            failure,
            is_text,
            refused,
            over_quota,
        })
    }
}

impl ToolRunner {
    /// Sends the task list to the channel. It is a display, so an error is only logged.
    async fn report_tasks(&self, session: &Session) {
        match session.store.tasks(session.id()).await {
            Ok(tasks) => self.dispatcher.channel.emit(LoopbackEvent::Tasks(tasks)),
            Err(error) => tracing::warn!(%error, "the task list was not read"),
        }
    }
}

/// Stores the form of a result that the user saw. It is a display, so an error is only logged.
async fn store_view(session: &Session, seq: i64, view: &ResultView) {
    let Ok(json) = serde_json::to_string(view) else {
        return;
    };
    let stored = session.store.set_result_view(session.id(), seq, &json);
    if let Err(error) = stored.await {
        tracing::warn!(%error, "the view of a result was not stored");
    }
}

fn over_the_limit(max_calls: usize) -> String {
    format!(
        "only the first {max_calls} calls of one response run; repeat this call in the next \
         response"
    )
}
