//! The calls of one answer: they run, and what came of each is stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use zeph_llm::{Message, MessagePart, Role, ToolUseRequest};
use zeph_tools::{
    OutputMetadata, Phase, ToolError, ToolErrorCategory, ToolOutput, ToolRegistry, ToolResult,
    content_for_llm,
};

use super::Agent;
use super::dispatch::{Batch, Dispatcher};
use super::hallucination::{self, ConversationContext};
use super::strip_reasoning::ONLY_REASONING;
use super::turn::TurnAbort;

/// What is left of a result that was stored.
pub(super) struct ToolResultSummary {
    /// What the model reads of it.
    pub(super) content: String,
    /// How the call failed, if it did.
    pub(super) failure: Option<ToolErrorCategory>,
    /// Whether a gate refused the call.
    pub(super) refused: bool,
    /// Calls used and allowed, when the quota refused it.
    pub(super) over_quota: Option<(u64, u64)>,
}

impl Agent {
    /// Runs the calls of one answer and stores each result, in their order. Those that are `skipped` are
    /// not run, and their results say why.
    pub(super) async fn run_calls(
        &mut self,
        requests: &[ToolUseRequest],
        skipped: &HashSet<String>,
        registry: &ToolRegistry,
        reflecting: bool,
        cancel: &CancellationToken,
    ) -> Result<Vec<ToolResultSummary>, TurnAbort> {
        let runs = requests.iter().filter(|one| !skipped.contains(&one.id));
        let runs: Vec<ToolUseRequest> = runs.cloned().collect();
        let mut batch = Batch::of(&runs, registry, &self.config);
        batch.suspects = self.suspects(&runs, registry);
        // After a reflection, the model verifies its own call. An unattended or a planning caller keeps its phase.
        batch.phase = (reflecting && self.dispatcher.caller.phase == Phase::Executor)
            .then_some(Phase::Verifier);
        let held = self.skills.skills.held(self.history.session());
        self.executor.set_effective_trust_erased(held.trust);
        self.follow_window();
        let dispatcher = Arc::clone(&self.dispatcher);
        let mut together = None;
        if Dispatcher::is_parallelizable(&runs, registry) {
            let start = Instant::now();
            let results = dispatcher.run_parallel(&runs, &batch, cancel).await;
            together = Some((results.into_iter(), start.elapsed()));
        }
        let mut stored = Vec::with_capacity(requests.len());
        let mut at = 0;
        for request in requests {
            let (result, took) = if skipped.contains(&request.id) {
                (Ok(ToolOutput::text(ONLY_REASONING)), Duration::ZERO)
            } else {
                let start = Instant::now();
                at += 1;
                match &mut together {
                    Some((results, took)) => {
                        let Some(result) = results.next() else { break };
                        (result, *took)
                    }
                    None => {
                        let result = dispatcher
                            .run_batch_item(at - 1, request, &batch, cancel)
                            .await;
                        (result, start.elapsed())
                    }
                }
            };
            // A result that cannot be stored ends the batch: no further mutation begins.
            stored.push(self.store_result(request, result, took).await?);
        }
        Ok(stored)
    }

    /// What may be made up in calls, by their ids; nothing where that is not looked for.
    fn suspects(
        &self,
        requests: &[ToolUseRequest],
        registry: &ToolRegistry,
    ) -> HashMap<String, Vec<String>> {
        let config = &self.config;
        let looked_for =
            config.hallucination_detection || (config.reasoning_model_detection && self.reasons);
        let mut suspects = HashMap::new();
        if !looked_for {
            return suspects;
        }
        for (at, request) in requests.iter().enumerate() {
            let Some(def) = registry.get(&request.name) else {
                continue;
            };
            // What an earlier call of the same answer makes is there when this one runs.
            let before: Vec<String> = requests[..at]
                .iter()
                .map(|it| it.input.to_string())
                .collect();
            let known = ConversationContext {
                exists: &|path| self.project.join(path).symlink_metadata().is_ok(),
                mentioned: &|word| {
                    self.system.contains(word)
                        || before.iter().any(|text| text.contains(word))
                        || self.history.is_said(word)
                },
            };
            let found = hallucination::suspects(def, &request.input, &known);
            if !found.is_empty() {
                suspects.insert(request.id.clone(), found);
            }
        }
        suspects
    }

    /// Stores a result.
    pub(super) async fn store_result(
        &mut self,
        request: &ToolUseRequest,
        result: ToolResult,
        took: Duration,
    ) -> Result<ToolResultSummary, TurnAbort> {
        let content = content_for_llm(&result);
        let metadata = OutputMetadata {
            execution_time_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            data_size_bytes: content.len() as u64,
            timestamp: jiff::Timestamp::now().as_millisecond(),
        };
        let failure = result.as_ref().err().map(ToolError::category);
        let refused = result.as_ref().is_err_and(ToolError::is_refusal);
        let over_quota = match &result {
            Err(ToolError::QuotaBlocked { used, max, .. }) => Some((*used, *max)),
            _ => None,
        };
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
        self.history.push(Message { role, parts }, None).await?;
        Ok(ToolResultSummary {
            content,
            failure,
            refused,
            over_quota,
        })
    }
}
