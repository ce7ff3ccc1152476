//! One turn: ask the model, run the calls, append the results, ask again.
//!
//! 1. What changed in the configuration is taken over; the user's message is stored.
//! 2. Room is made where the conversation has become long (`compact`); the limits are checked; the request is sent; text streams to the channel.
//! 3. The answer is stored, *then* its calls run: history first, then act.
//! 4. Each result is stored before the next call begins, those of a batch of readers when all
//!    have ended; back to 2.
//!
//! The turn ends with an answer without calls, at a limit, by a cancel, or with an error.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use zeph_llm::{
    ChatRequest, ChatResponse, LlmError, LlmErrorKind, Message, StopReason, StreamEvent,
    ToolChoice, ToolUseRequest,
};
use zeph_tools::ToolRegistry;

use super::Agent;
use super::compact::CompactionState;
use super::history::HistoryError;
use super::limits::{Limit, Limits, Step, context_budget};
use super::outcome::{TurnEnd, TurnOutcome};
use super::reflection::Reflections;
use super::said::Said;
use super::strip_reasoning::strip_reasoning;
use crate::channel::LoopbackEvent;
use crate::spending::Spending;

/// Bytes that the history keeps of a response that broke off. More would fill the model's window.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// What stops a turn from within.
pub(super) enum TurnAbort {
    End(TurnEnd, String),
    Cancelled,
}

impl From<HistoryError> for TurnAbort {
    fn from(error: HistoryError) -> Self {
        Self::End(TurnEnd::Error, error.to_string())
    }
}

/// Why a request has no answer.
enum RequestFailure {
    /// It is longer than the model's window; nothing of an answer was shown.
    TooLong(String),
    Stop(TurnAbort),
}

impl From<TurnAbort> for RequestFailure {
    fn from(stop: TurnAbort) -> Self {
        Self::Stop(stop)
    }
}

impl Agent {
    /// Runs one turn for what the user said.
    pub async fn run_turn(&mut self, text: &str, cancel: &CancellationToken) -> TurnOutcome {
        let mut outcome = TurnOutcome::new();
        self.room = CompactionState::default();
        // A skill runs no longer than the turn.
        self.skills.skills.end_turn(self.history.session());
        let end = self.turn(text, cancel, &mut outcome).await;
        self.skills.skills.end_turn(self.history.session());
        self.room = CompactionState::default();
        self.rounds = outcome.iterations;
        let beside = self.side_usage.take();
        let end = end.and(self.spend(beside, &mut outcome).await);
        match end {
            Ok(()) => {}
            Err(TurnAbort::Cancelled) => outcome.end = TurnEnd::Cancelled,
            Err(TurnAbort::End(end, message)) => {
                if end != TurnEnd::Error {
                    self.channel.emit(LoopbackEvent::Notice(message.clone()));
                }
                outcome.end = end;
                outcome.message = Some(message);
            }
        }
        outcome
    }

    async fn turn(
        &mut self,
        text: &str,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<(), TurnAbort> {
        self.dispatcher.refresh().await;
        let registry = self.refresh_tools(text, cancel).await;
        self.history.repair_orphaned_calls().await?;
        let first = self.history.messages().is_empty();
        let prompt = self.history.push(Message::user(text), None).await?;
        self.room.prompt = Some(prompt);
        if first {
            self.describe_session(text).await?;
        }
        let mut limits = Limits::new(&self.config, self.provider.context_window());
        let mut refused = false;
        let mut reflections = Reflections::new(self.config.max_reflections);
        loop {
            self.compact_if_needed(cancel, outcome).await;
            match limits.before_request(self.history.estimated_tokens()) {
                None => {}
                Some(Limit::Context) => {
                    return Err(TurnAbort::End(
                        TurnEnd::ContextBudget,
                        self.over_budget(&limits),
                    ));
                }
                Some(limit) => {
                    return self
                        .final_summary_request(limit, &registry, cancel, outcome)
                        .await;
                }
            }
            let reflection = reflections.take();
            let reflecting = reflection.is_some();
            if let Some(words) = reflection {
                self.history.push(Message::user(words), None).await?;
            }
            self.channel.emit(LoopbackEvent::Requesting {
                iteration: limits.iterations() + 1,
            });
            self.offer_tools(&registry).await;
            let response = self.ask(ToolChoice::Auto, cancel, outcome).await?;
            let (requests, skipped) = self.store_answer(response, &registry, outcome).await?;
            if requests.is_empty() {
                if refused && outcome.text.trim().is_empty() {
                    return Err(TurnAbort::End(
                        TurnEnd::Refused,
                        "the turn ended on a refused call".to_owned(),
                    ));
                }
                return Ok(());
            }
            outcome.tool_calls += requests.len();
            let results = self
                .run_calls(&requests, &skipped, &registry, reflecting, cancel)
                .await?;
            refused = results.iter().all(|result| result.refused);
            for (request, result) in requests.iter().zip(&results) {
                reflections.note(&request.name, result.failure);
            }
            if let Some((used, max)) = results.iter().find_map(|result| result.over_quota) {
                limits.over_quota(used, max);
            }
            let steps = requests.iter().zip(&results).map(|(request, result)| Step {
                tool: &request.name,
                input: &request.input,
                content: &result.content,
            });
            let doomed = limits.after_iteration(steps);
            outcome.iterations = limits.iterations();
            if cancel.is_cancelled() {
                return Err(TurnAbort::Cancelled);
            }
            if doomed.is_some() {
                return Err(TurnAbort::End(
                    TurnEnd::DoomLoop,
                    "stopped: the same calls gave the same results three times in a row. \
                     Say what to do differently."
                        .to_owned(),
                ));
            }
        }
    }

    /// No more calls may be made: one last request, in which no tool may be called.
    async fn final_summary_request(
        &mut self,
        limit: Limit,
        registry: &ToolRegistry,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<(), TurnAbort> {
        let (what, reason, end, told) = match limit {
            Limit::Quota { used, max } => (
                format!("{used} of {max} tool calls of this session are used."),
                "the quota of tool calls of this session is used up",
                TurnEnd::Quota,
                format!(
                    "stopped: {used} of {max} tool calls of this session are used \
                     ([tools] max_tool_calls_per_session), too few are left; /clear starts over"
                ),
            ),
            _ => {
                let cap = self.config.max_tool_iterations;
                (
                    format!("{cap} rounds of tool calls are used up in this turn."),
                    "the limit of tool calls for this turn is reached",
                    TurnEnd::IterationCap,
                    format!(
                        "stopped after {cap} rounds of tool calls ([agent] max_tool_iterations); \
                         say \"go on\" to continue"
                    ),
                )
            }
        };
        let words = format!(
            "[limit] {what} Do not call tools. \
             Sum up what was done, what was found, and what is left."
        );
        self.history.push(Message::user(words), None).await?;
        let response = self.ask(ToolChoice::None, cancel, outcome).await?;
        let (requests, _) = self.store_answer(response, registry, outcome).await?;
        if !requests.is_empty() {
            let results = self.dispatcher.refuse_all(&requests, cancel, reason).await;
            for (request, result) in requests.iter().zip(results) {
                self.store_result(request, result, Duration::ZERO).await?;
            }
        }
        Err(TurnAbort::End(end, told))
    }

    fn over_budget(&self, limits: &Limits) -> String {
        let budget = context_budget(&self.config, self.provider.context_window());
        format!(
            "stopped: the conversation takes about {} tokens, over {} % of its budget (limit {}). \
             /compact sums up what is older, /clear starts over; [agent] context_budget_tokens sets the budget",
            self.history.estimated_tokens(),
            limits.context_limit() * 100 / budget.max(1),
            limits.context_limit(),
        )
    }

    /// Sends the history; where it is too long for the model, once more when room was made.
    async fn ask(
        &mut self,
        tool_choice: ToolChoice,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<ChatResponse, TurnAbort> {
        let mut answer = self.send(tool_choice, cancel, outcome).await;
        if matches!(answer, Err(RequestFailure::TooLong(_))) && self.shrink(cancel, outcome).await {
            answer = self.send(tool_choice, cancel, outcome).await;
        }
        answer.map_err(|unanswered| match unanswered {
            RequestFailure::TooLong(message) => TurnAbort::End(TurnEnd::Error, message),
            RequestFailure::Stop(stop) => stop,
        })
    }

    /// Sends the history. What was shown before a cancel or an error is kept as said.
    async fn send(
        &mut self,
        tool_choice: ToolChoice,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<ChatResponse, RequestFailure> {
        let request = ChatRequest {
            system: &self.system,
            messages: self.history.messages(),
            tools: &self.tools,
            tool_choice,
            cache_key: Some(self.history.session()),
            response_schema: self.response_schema.as_ref(),
            json_object: false,
            max_output_tokens: None,
            history: Some(self.history.id()),
        };
        if let Some(over) = self.spending.over_budget(&self.config) {
            return Err(TurnAbort::End(TurnEnd::Budget, over).into());
        }
        let mut shown = String::new();
        let answer = {
            let reasons = &mut self.reasons;
            let mut said = Said::new(self.channel.as_ref(), self.history.secrets(), &mut shown);
            let mut sink = |event: StreamEvent| match event {
                StreamEvent::TextDelta(text) => said.text(&text),
                StreamEvent::ReasoningDelta(text) => {
                    *reasons = true;
                    said.reasoning(&text);
                }
                StreamEvent::Notice(text) => said.channel.emit(LoopbackEvent::Notice(text)),
                StreamEvent::ToolUseStarted { .. } | StreamEvent::ToolInputDelta(_) => {}
            };
            let answer = tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                answer = self.provider.chat_stream(request, &mut sink) => Some(answer),
            };
            said.finish();
            answer
        };
        match answer {
            Some(Ok(response)) => {
                let usage = self.history.plausible(response.usage());
                self.history.correct(usage);
                let mut spent = self.side_usage.take();
                spent.add(self.provider.as_ref(), usage);
                self.spend(spent, outcome).await?;
                Ok(response)
            }
            Some(Err(error)) => {
                let message = self.explain(&error);
                if error.kind == LlmErrorKind::ContextOverflow && shown.is_empty() {
                    return Err(RequestFailure::TooLong(message));
                }
                self.store_partial_answer(shown, "the answer broke off", outcome)
                    .await?;
                Err(TurnAbort::End(TurnEnd::Error, message).into())
            }
            None => {
                self.store_partial_answer(shown, "interrupted by the user", outcome)
                    .await?;
                Err(TurnAbort::Cancelled.into())
            }
        }
    }

    /// Counts what was spent, to the turn and to the session, whatever becomes of the turn.
    pub(super) async fn spend(
        &mut self,
        spent: Spending,
        outcome: &mut TurnOutcome,
    ) -> Result<(), TurnAbort> {
        let total = spent.total();
        if total.requests == 0 {
            return Ok(());
        }
        outcome.usage.add(total.usage);
        outcome.cost = outcome
            .cost
            .zip(total.known_cost())
            .map(|(before, cost)| before.plus(cost));
        self.channel.emit(LoopbackEvent::Usage(total.usage));
        let rows = spent.to_stored();
        self.spending.merge(spent);
        for row in &rows {
            let stored = self.store.add_spending(self.history.session(), row).await;
            stored.map_err(HistoryError::from)?;
        }
        Ok(())
    }

    async fn store_partial_answer(
        &mut self,
        shown: String,
        why: &str,
        outcome: &mut TurnOutcome,
    ) -> Result<(), TurnAbort> {
        if shown.is_empty() {
            return Ok(());
        }
        let end = shown.floor_char_boundary(MAX_SHOWN_BYTES);
        let kept = match shown.len() - end {
            0 => format!("{shown}\n[{why}]"),
            omitted => format!("{}\n[{omitted} bytes omitted; {why}]", &shown[..end]),
        };
        outcome.text = shown;
        self.history.push(Message::assistant(kept), None).await?;
        Ok(())
    }

    fn explain(&self, error: &LlmError) -> String {
        tracing::warn!(kind = ?error.kind, status = ?error.status, "the request failed");
        error.to_string()
    }

    /// Stores the answer, without what was reasoned in its calls, and returns these, and the ids of
    /// those that held nothing else.
    async fn store_answer(
        &mut self,
        response: ChatResponse,
        registry: &ToolRegistry,
        outcome: &mut TurnOutcome,
    ) -> Result<(Vec<ToolUseRequest>, HashSet<String>), TurnAbort> {
        if let ChatResponse::Text { stop, .. } = &response {
            match stop {
                StopReason::MaxTokens => self.channel.emit(LoopbackEvent::Notice(
                    "the answer was cut off by the model's output limit".to_owned(),
                )),
                StopReason::Refusal => self.channel.emit(LoopbackEvent::Notice(
                    "the provider's content filter stopped the answer".to_owned(),
                )),
                StopReason::EndTurn | StopReason::ToolUse => {}
            }
        }
        let usage = self.history.plausible(response.usage());
        let (message, skipped) = strip_reasoning(response.into_message(), registry);
        let text = message.text();
        outcome.text = self.history.secrets().redact_known(&text).into_owned();
        let requests: Vec<_> = message.tool_uses().cloned().collect();
        if message.parts.is_empty() {
            self.channel.emit(LoopbackEvent::Notice(
                "the model gave an empty answer".to_owned(),
            ));
            return Ok((requests, skipped));
        }
        self.history.push(message, Some(usage)).await?;
        Ok((requests, skipped))
    }

    /// Notes in the store what the session is about and which model answers.
    async fn describe_session(&self, prompt: &str) -> Result<(), TurnAbort> {
        let line = prompt.lines().find(|line| !line.trim().is_empty());
        let line = self
            .history
            .secrets()
            .redact(line.unwrap_or_default().trim());
        let title: String = line.text.chars().take(80).collect();
        let session = self.history.session();
        let model = (self.provider.name(), self.provider.model());
        self.store
            .set_title(session, &title)
            .await
            .map_err(HistoryError::from)?;
        self.store
            .set_model(session, model.0, model.1)
            .await
            .map_err(HistoryError::from)?;
        Ok(())
    }

    /// Asks the executors anew which tools there are; `query` is what the user said.
    async fn refresh_tools(&mut self, query: &str, cancel: &CancellationToken) -> ToolRegistry {
        let registry = ToolRegistry::new(self.executor.tool_definitions_erased());
        if let Some(dependencies) = &self.limits.dependencies {
            dependencies.begin_turn(self.history.session(), query);
        }
        let provider = Arc::clone(&self.provider);
        let turn = self.offer.begin_turn(query, &registry, provider.as_ref());
        let warning = tokio::select! {
            biased;
            warning = turn => warning,
            // The next request is not sent either.
            () = cancel.cancelled() => None,
        };
        if let Some(warning) = warning {
            self.channel.emit(LoopbackEvent::Notice(warning));
        }
        registry
    }

    /// Finds out what the next request offers.
    async fn offer_tools(&mut self, registry: &ToolRegistry) {
        let dependencies = self.limits.dependencies.clone();
        let offered = self.offer.definitions(
            &self.store,
            &self.history,
            registry,
            self.provider.as_ref(),
            dependencies.as_deref(),
        );
        let (tools, warning) = offered.await;
        self.tools = tools;
        if let Some(warning) = warning {
            self.channel.emit(LoopbackEvent::Notice(warning));
        }
    }
}
