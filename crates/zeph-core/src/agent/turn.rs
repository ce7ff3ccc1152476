//! One turn: a loop of request, calls and results.
//!
//! 1. Changes of the configuration are applied, and the prompt is stored.
//! 2. Prompts that were submitted meanwhile are stored (`submitted_prompts`). A long conversation is compacted
//!    (`compact`), the limits are checked, and the request is sent. Its text streams to the channel.
//! 3. The response is stored before its calls run.
//! 4. The results are stored before the next request. Back to 2.
//!
//! The turn ends with a response without calls, at a limit, after a cancellation, or with an error.

use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use zeph_llm::{ChatResponse, LlmError, LlmErrorKind, Message, StopReason, ToolChoice};
use zeph_tools::{ImageContent, ToolRegistry};

use super::Agent;
use super::compact::CompactionState;
use super::history::HistoryError;
use super::limits::{Limit, Limits, context_budget};
use super::model_client::PartialResponse;
use super::outcome::{TurnEnd, TurnOutcome};
use super::reflection::Reflections;
use super::spans;
use super::strip_reasoning::{ResponseCalls, strip_reasoning};
use super::submitted_prompts::prompt_message;
use super::tool_runner::Batch;
use crate::channel::LoopbackEvent;
use crate::spending::Spending;

/// The start of the message after a limit, which the agent writes in the name of the user.
pub(super) const LIMIT_MARK: &str = "[limit] ";
/// Bytes of an incomplete response that the history stores. More would fill the window of the model.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// The reason that ends a turn before its last response.
pub(super) enum TurnAbort {
    End(TurnEnd, String),
    Cancelled,
}

impl From<HistoryError> for TurnAbort {
    fn from(error: HistoryError) -> Self {
        Self::End(TurnEnd::Error, error.to_string())
    }
}

/// The reason why a request has no response.
enum RequestFailure {
    /// The request exceeds the window of the model, and no part of a response was shown.
    TooLong(String),
    Stop(TurnAbort),
}

impl From<TurnAbort> for RequestFailure {
    fn from(stop: TurnAbort) -> Self {
        Self::Stop(stop)
    }
}

impl From<HistoryError> for RequestFailure {
    fn from(error: HistoryError) -> Self {
        Self::Stop(error.into())
    }
}

impl Agent {
    /// Runs one turn for a prompt.
    pub async fn run_turn(&mut self, prompt: &str, cancel: &CancellationToken) -> TurnOutcome {
        self.run_turn_with_images(prompt, Vec::new(), cancel).await
    }

    /// Runs one turn for a prompt with images. The model must accept images.
    pub async fn run_turn_with_images(
        &mut self,
        prompt: &str,
        images: Vec<ImageContent>,
        cancel: &CancellationToken,
    ) -> TurnOutcome {
        let name = self.parent.as_ref().map(|parent| parent.name.as_str());
        let span = spans::turn(name, self.session.id());
        let turn = self.whole_turn(prompt, images, cancel);
        let outcome = turn.instrument(span.clone()).await;
        spans::end_turn(&span, &outcome);
        outcome
    }

    async fn whole_turn(
        &mut self,
        prompt: &str,
        images: Vec<ImageContent>,
        cancel: &CancellationToken,
    ) -> TurnOutcome {
        let mut outcome = TurnOutcome::new();
        self.session.room = CompactionState::default();
        // A skill is active for one turn at most.
        self.tools.skills.skills.end_turn(self.session.id());
        let end = match self.hooked_prompt(prompt, cancel).await {
            Ok(prompt) => self.turn(&prompt, images, cancel, &mut outcome).await,
            Err(end) => Err(end),
        };
        self.report_servers();
        self.tools.skills.skills.end_turn(self.session.id());
        self.session.room = CompactionState::default();
        self.session.rounds = outcome.iterations;
        let aside = self.model.side_usage.take();
        let end = end.and(self.spend(aside, &mut outcome).await);
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
        self.run_turn_end_hooks(prompt, &outcome).await;
        outcome
    }

    async fn turn(
        &mut self,
        prompt: &str,
        images: Vec<ImageContent>,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<(), TurnAbort> {
        let mut registry = self.begin_turn(prompt, images, cancel).await?;
        let window = self.model.provider.context_window();
        let mut limits = Limits::new(&self.config, self.iterations, window);
        let mut refused = false;
        let mut reflections = Reflections::new(self.config.max_reflections);
        loop {
            self.add_submitted_prompts(cancel).await?;
            self.report_servers();
            registry = self.tools.with_later_tools(registry);
            let tokens = self.session.history.estimated_tokens();
            let window = self.model.window(tokens, cancel).await;
            limits.set_window(&self.config, window);
            self.compact_if_needed(cancel, outcome).await;
            let tokens = self.session.history.estimated_tokens();
            let is_attended = self.is_attended();
            let limit = match limits.before_request(tokens, is_attended) {
                None if limits.is_check_in_due() => {
                    self.check_in(&mut limits, is_attended, cancel).await?
                }
                limit => limit,
            };
            match limit {
                None => {}
                Some(Limit::Context) => {
                    return Err(TurnAbort::End(
                        TurnEnd::ContextBudget,
                        self.over_context(&limits),
                    ));
                }
                Some(limit) => {
                    return self
                        .final_summary_request(limit, &limits, &registry, cancel, outcome)
                        .await;
                }
            }
            let reflection = reflections.take();
            let is_reflection = reflection.is_some();
            if let Some(text) = reflection {
                self.session.history.push(Message::user(text), None).await?;
            }
            self.channel.emit(LoopbackEvent::Requesting {
                iteration: limits.iterations() + 1,
            });
            self.offer_tools(&registry).await;
            let response = self.request(ToolChoice::Auto, cancel, outcome).await?;
            let calls = self.store_response(response, &registry, outcome).await?;
            if calls.requests.is_empty() {
                if refused && outcome.text.trim().is_empty() {
                    let message = "the turn ended on a refused call".to_owned();
                    return Err(TurnAbort::End(TurnEnd::Refused, message));
                }
                return Ok(());
            }
            outcome.tool_calls += calls.requests.len();
            let mut batch = Batch::new(calls, &registry, &self.config, |tool, params| {
                self.tools.dispatcher.is_read_only_task(tool, params)
            })
            .with_reflection(is_reflection);
            if self.config.hallucination_detection
                || (self.config.reasoning_model_detection && self.model.reasons)
            {
                batch = batch.with_suspects(&self.session, &registry);
            }
            let session = &mut self.session;
            let results = self.tools.run_batch(session, &batch, cancel).await?;
            let requests = batch.requests();
            refused = results.iter().all(|result| result.refused);
            for (request, result) in requests.iter().zip(&results) {
                reflections.note(&request.name, result.failure);
            }
            if let Some((used, max)) = results.iter().find_map(|result| result.over_quota) {
                limits.over_quota(used, max);
            }
            let steps = batch.steps(&results, &registry, &self.session.project);
            let doom_loop = limits.after_iteration(steps);
            outcome.iterations = limits.iterations();
            if cancel.is_cancelled() {
                return Err(TurnAbort::Cancelled);
            }
            if doom_loop.is_some() {
                return Err(TurnAbort::End(
                    TurnEnd::DoomLoop,
                    "stopped: the tool calls gave the same results three times in a row. Write \
                     what the agent should do differently."
                        .to_owned(),
                ));
            }
        }
    }

    /// Applies changes of the configuration, selects the tools and stores the prompt. Returns the tools.
    async fn begin_turn(
        &mut self,
        prompt: &str,
        images: Vec<ImageContent>,
        cancel: &CancellationToken,
    ) -> Result<ToolRegistry, TurnAbort> {
        self.tools.dispatcher.refresh().await;
        self.tools.follow_mode();
        let registry = self.tools.registry();
        if let Some(dependencies) = &self.tools.limits.dependencies {
            dependencies.begin_turn(self.session.id(), prompt);
        }
        let warning = self.model.begin_turn(prompt, &registry, cancel).await;
        self.warn(warning);
        let session = &mut self.session;
        session.history.repair_orphaned_calls().await?;
        let is_first = !session.has_prompt();
        let message = prompt_message(prompt, images);
        session.room.prompt = Some(session.history.push(message, None).await?);
        if is_first {
            let title = session.set_title(prompt).await?;
            self.channel.emit(LoopbackEvent::Title(title));
        }
        session.set_model(self.model.provider.as_ref()).await?;
        Ok(registry)
    }

    async fn offer_tools(&mut self, registry: &ToolRegistry) {
        let dependencies = self.tools.limits.dependencies.as_deref();
        let offered = self
            .model
            .offer_tools(&self.session, registry, dependencies);
        let warning = offered.await;
        self.warn(warning);
    }

    fn warn(&self, warning: Option<String>) {
        if let Some(warning) = warning {
            self.channel.emit(LoopbackEvent::Warning(warning));
        }
    }

    /// Sends a last request without calls, because a limit forbids further calls.
    async fn final_summary_request(
        &mut self,
        limit: Limit,
        limits: &Limits,
        registry: &ToolRegistry,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<(), TurnAbort> {
        let (fact, reason, end, message) = match limit {
            Limit::Quota { used, max } => (
                format!("{used} of {max} tool calls of this session are used."),
                "the quota of tool calls of this session is used up",
                TurnEnd::Quota,
                format!(
                    "stopped: {used} of {max} tool calls of this session are used ([tools] \
                     max_tool_calls_per_session), and too few are left; /clear starts a new conversation"
                ),
            ),
            Limit::Stopped => {
                let rounds = limits.iterations();
                (
                    format!("The user stopped this turn after {rounds} rounds of tool calls."),
                    "the user stopped the turn",
                    TurnEnd::IterationCap,
                    format!(
                        "stopped by you after {rounds} rounds of tool calls; write \"continue\" to \
                         continue"
                    ),
                )
            }
            _ => {
                let (rounds, key) = (limits.iterations(), self.iterations.max_key);
                (
                    format!("{rounds} rounds of tool calls are used up in this turn."),
                    "the limit of tool calls for this turn is reached",
                    TurnEnd::IterationCap,
                    format!(
                        "stopped after {rounds} rounds of tool calls ([agent] {key}); write \
                         \"continue\" to continue"
                    ),
                )
            }
        };
        let text = format!(
            "{LIMIT_MARK}{fact} Do not call tools. \
             Summarize the work so far, the findings, and the remaining work."
        );
        self.session.history.push(Message::user(text), None).await?;
        let response = self.request(ToolChoice::None, cancel, outcome).await?;
        let calls = self.store_response(response, registry, outcome).await?;
        let session = &mut self.session;
        let refused = self
            .tools
            .refuse_calls(session, &calls.requests, reason, cancel);
        refused.await?;
        Err(TurnAbort::End(end, message))
    }

    /// Reports the size and the costs of the conversation.
    pub(super) fn report_context(&self) {
        let window = self.model.provider.context_window();
        self.channel.emit(LoopbackEvent::Context {
            used: self.session.history.estimated_tokens(),
            size: context_budget(&self.config, window),
            cost: self.session.spending.total().known_cost(),
        });
    }

    fn over_context(&self, limits: &Limits) -> String {
        let budget = context_budget(&self.config, self.model.provider.context_window());
        format!(
            "stopped: the conversation takes about {} tokens, over {} % of its budget (limit {}). \
             /compact summarizes older messages, /clear starts a new conversation; [agent] context_budget_tokens sets the budget",
            self.session.history.estimated_tokens(),
            limits.context_limit() * 100 / budget.max(1),
            limits.context_limit(),
        )
    }

    /// Sends the conversation. If it is too long for the model, compacts it and sends it once more.
    async fn request(
        &mut self,
        tool_choice: ToolChoice,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<ChatResponse, TurnAbort> {
        let mut response = self.send(tool_choice, cancel, outcome).await;
        if matches!(response, Err(RequestFailure::TooLong(_))) && self.shrink(cancel, outcome).await
        {
            response = self.send(tool_choice, cancel, outcome).await;
        }
        response.map_err(|failure| match failure {
            RequestFailure::TooLong(message) => TurnAbort::End(TurnEnd::Error, message),
            RequestFailure::Stop(stop) => stop,
        })
    }

    /// Sends the conversation and records the costs. The part of a response that was shown before an error or a cancellation is
    /// stored.
    async fn send(
        &mut self,
        tool_choice: ToolChoice,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<ChatResponse, RequestFailure> {
        if let Some(over) = self.over_budget() {
            return Err(TurnAbort::End(TurnEnd::Budget, over).into());
        }
        let channel = self.channel.as_ref();
        let sent = self
            .model
            .send(&self.session, tool_choice, channel, cancel)
            .await;
        let PartialResponse { shown, error } = match sent {
            Ok(response) => {
                let history = &mut self.session.history;
                let usage = history.plausible(response.usage());
                history.correct(usage);
                self.spend(self.model.spending(usage), outcome).await?;
                self.report_context();
                return Ok(response);
            }
            Err(partial) => partial,
        };
        let Some(error) = error else {
            self.store_partial_response(shown, "interrupted by the user", outcome)
                .await?;
            return Err(TurnAbort::Cancelled.into());
        };
        let message = explain(&error);
        if error.kind == LlmErrorKind::ContextOverflow && shown.is_empty() {
            return Err(RequestFailure::TooLong(message));
        }
        self.store_partial_response(shown, "the response ended early", outcome)
            .await?;
        Err(TurnAbort::End(TurnEnd::Error, message).into())
    }

    /// Adds costs to the turn and to the session. They count also if the turn fails.
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
        if let Some(parent) = &self.parent {
            parent.usage.merge(spent.clone());
        }
        Ok(self.session.add_spending(spent).await?)
    }

    async fn store_partial_response(
        &mut self,
        shown: String,
        why: &str,
        outcome: &mut TurnOutcome,
    ) -> Result<(), HistoryError> {
        if shown.is_empty() {
            return Ok(());
        }
        let end = shown.floor_char_boundary(MAX_SHOWN_BYTES);
        let stored = match shown.len() - end {
            0 => format!("{shown}\n[{why}]"),
            omitted => format!("{}\n[{omitted} bytes omitted; {why}]", &shown[..end]),
        };
        outcome.text = shown;
        let history = &mut self.session.history;
        history.push(Message::assistant(stored), None).await?;
        Ok(())
    }

    /// Stores the response without the reasoning in its calls, and returns the calls. A response
    /// without text and calls is only reported.
    async fn store_response(
        &mut self,
        response: ChatResponse,
        registry: &ToolRegistry,
        outcome: &mut TurnOutcome,
    ) -> Result<ResponseCalls, TurnAbort> {
        outcome.stop = StopReason::EndTurn;
        if let ChatResponse::Text { stop, .. } = &response {
            outcome.stop = *stop;
            match stop {
                StopReason::MaxTokens => self.channel.emit(LoopbackEvent::Notice(
                    "the output limit of the model cut off the response".to_owned(),
                )),
                StopReason::Refusal => self.channel.emit(LoopbackEvent::Notice(
                    "the content filter of the provider stopped the response".to_owned(),
                )),
                StopReason::EndTurn | StopReason::ToolUse => {}
            }
        }
        let history = &mut self.session.history;
        let usage = history.plausible(response.usage());
        let (mut message, calls) = strip_reasoning(response.into_message(), registry);
        // APIs refuse a message of the model that has only reasoning.
        if calls.requests.is_empty() && message.text().trim().is_empty() {
            outcome.text.clear();
            self.channel.emit(LoopbackEvent::Notice(
                "the model returned an empty response".to_owned(),
            ));
            return Ok(calls);
        }
        let stored = history.record(&mut message, Some(usage)).await;
        // The store needs several copies of a long text, so the outcome gets one afterwards.
        outcome.text = history.text_of(&message);
        stored?;
        history.append(message);
        Ok(calls)
    }
}

fn explain(error: &LlmError) -> String {
    tracing::error!(
        kind = error.kind.label(),
        status = error.status,
        "the request failed: {error}"
    );
    error.to_string()
}
