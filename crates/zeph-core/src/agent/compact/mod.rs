//! Compaction of a long conversation.
//!
//! 1. From 80 % of the budget on, old results are evicted if that suffices: the window shows a reference to them
//!    (`evict_results`). This needs no request and loses nothing.
//! 2. From the threshold on, a model summarizes the older messages (`summary`). The summary is appended to the system prompt; the
//!    messages leave the window (`plan`) and remain in the store.
//!
//! The view of the model changes in the store, in one transaction, and is read back as for a resumed session. If a step fails, the
//! window does not change.

mod evict_results;
mod plan;
mod summary;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_llm::LlmProvider;
use zeph_memory::{CompressionStrategy, NewSummary};
use zeph_tools::plural::counted_as;
use zeph_tools::secrets::SecurityPatterns;

use super::history::Row;
use super::limits::context_budget;
use super::outcome::TurnOutcome;
use super::prompt::with_knowledge;
use super::tokens::{message_tokens, text_tokens, tokens};
use super::{Agent, CommandOutput};
use crate::channel::LoopbackEvent;
use crate::compaction_request::PendingCompactions;
use crate::spending::Spending;
use plan::RetainPolicy;

/// Summarizes older messages.
#[derive(Clone, Default)]
pub struct Compressor {
    /// The provider of summaries; `None` for the provider of the conversation.
    pub provider: Option<Arc<dyn LlmProvider>>,
    /// The secrets that are removed from summaries.
    pub secrets: Arc<SecurityPatterns>,
    /// Requests of the tool `compress_context`.
    pub requests: Arc<PendingCompactions>,
}

/// The reason why no messages were summarized. The conversation is unchanged.
enum CompactionFailure {
    /// No message can leave the window.
    Nothing,
    /// The user cancelled the compaction.
    Cancelled,
    /// The compaction failed, for this reason.
    Failed(String),
}

impl CompactionFailure {
    fn failed(error: impl ToString) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A finished compaction.
struct CompactionReport {
    messages: usize,
    tokens_before: usize,
    tokens_after: usize,
    /// The provider and the model of the summary.
    by: String,
}

/// The state of compaction within a turn.
#[derive(Debug, Default)]
pub(super) struct CompactionState {
    /// The sequence number of the turn's prompt.
    pub(super) prompt: Option<i64>,
    /// A summary failed or freed too little: none is made again in this turn.
    given_up: bool,
    /// The provider rejected a request as too long.
    too_long: bool,
}

/// The estimated tokens at which a conversation is compacted.
#[derive(Debug, Clone, Copy)]
struct Marks {
    /// From here on old results are evicted.
    soft: usize,
    /// From here on older messages are summarized.
    hard: usize,
    budget: usize,
}

impl Agent {
    /// The tokens from which on older messages are summarized.
    pub(super) fn compacts_from(&self) -> usize {
        self.marks().hard
    }

    fn marks(&self) -> Marks {
        let budget = context_budget(&self.config, self.model.provider.context_window());
        let hard = self.config.compaction.tokens(budget);
        Marks {
            soft: hard.min(budget / 5 * 4),
            hard,
            budget,
        }
    }

    /// Compacts the conversation before a request, if it is long or the model requested it.
    pub(super) async fn compact_if_needed(
        &mut self,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) {
        if !self.config.compaction.enabled {
            return;
        }
        if self.compressor.requests.take(self.session.id()) {
            let method = CompressionStrategy::Autonomous;
            self.compact_in_turn(method, cancel, outcome).await;
        }
        let marks = self.marks();
        let before = self.session.history.estimated_tokens();
        if before <= marks.soft {
            return;
        }
        // A small gain is used up soon, and each eviction invalidates the provider's cache.
        let most = before.saturating_sub(marks.budget / 10).min(marks.soft);
        self.evict_results(false, Some(most)).await;
        // The references to evicted results take tokens too.
        let after = self.session.history.estimated_tokens();
        if after <= marks.hard || self.session.room.given_up {
            return;
        }
        let method = CompressionStrategy::Triggered;
        self.compact_in_turn(method, cancel, outcome).await;
        if self.session.history.estimated_tokens() > marks.hard {
            self.session.room.given_up = true;
            self.evict_results(true, Some(marks.hard)).await;
        }
    }

    /// Frees as much as possible after the provider rejected a request as too long. Returns whether anything was freed.
    pub(super) async fn shrink(
        &mut self,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> bool {
        if !self.config.compaction.enabled || cancel.is_cancelled() {
            return false;
        }
        self.session.room.too_long = true;
        let method = CompressionStrategy::Triggered;
        let compacted = self.compact_in_turn(method, cancel, outcome).await;
        let evicted = self.evict_results(false, None).await;
        // The last results alone may be too long.
        compacted || evicted || self.evict_results(true, None).await
    }

    /// Summarizes older messages within a turn, and reports the outcome. Returns whether it succeeded.
    async fn compact_in_turn(
        &mut self,
        method: CompressionStrategy,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> bool {
        match self.compact(method, cancel, outcome).await {
            Ok(compacted) => {
                let report = self.report(&compacted);
                self.channel.emit(LoopbackEvent::Notice(report));
                true
            }
            Err(CompactionFailure::Nothing | CompactionFailure::Cancelled) => false,
            Err(CompactionFailure::Failed(why)) => {
                self.session.room.given_up = true;
                self.channel
                    .emit(LoopbackEvent::Notice(not_compacted(&why)));
                false
            }
        }
    }

    /// `/compact`
    pub(super) async fn compact_on_command(&mut self, cancel: &CancellationToken) -> CommandOutput {
        let mut outcome = TurnOutcome::new();
        if let Err(error) = self.session.history.repair_orphaned_calls().await {
            return Err(error.to_string());
        }
        let method = CompressionStrategy::Manual;
        let compacted = self.compact(method, cancel, &mut outcome).await;
        self.tools.follow_window(&self.session);
        match compacted {
            Ok(compacted) => Ok(self.report(&compacted)),
            Err(CompactionFailure::Nothing) => Ok("there is nothing to summarize yet".to_owned()),
            Err(CompactionFailure::Cancelled) => {
                Ok("cancelled; the conversation is unchanged".to_owned())
            }
            Err(CompactionFailure::Failed(why)) => Err(not_compacted(&why)),
        }
    }

    fn report(&self, compacted: &CompactionReport) -> String {
        let CompactionReport {
            messages,
            tokens_before,
            tokens_after,
            by,
        } = compacted;
        format!(
            "compacted: {} summarized by {by}, about {tokens_before} -> {tokens_after} tokens; `zeph \
             sessions show {}` shows the messages",
            counted_as(*messages, "message was", "messages were"),
            self.session.id(),
        )
    }

    /// Replaces older messages by a summary. The request for the summary never starts another compaction.
    async fn compact(
        &mut self,
        method: CompressionStrategy,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<CompactionReport, CompactionFailure> {
        let rows = self.session.history.rows().await;
        let rows = rows.map_err(CompactionFailure::failed)?;
        let cut = plan::cut(&rows, self.retain_policy()).ok_or(CompactionFailure::Nothing)?;
        let leaving: Vec<&Row> = cut.leaving(&rows).collect();
        let taken: usize = leaving.iter().map(|row| message_tokens(&row.message)).sum();
        let before = self.session.history.estimated_tokens();
        let freed = self.session.history.estimate().corrected(taken);
        let triggered = method == CompressionStrategy::Triggered;
        // A summary that frees almost nothing would be requested again and again.
        if triggered && freed < self.marks().budget.min(before) / 20 {
            return Err(CompactionFailure::Nothing);
        }
        let notes = self.notes(&leaving, cancel, outcome).await?;
        // The estimate of the system prompt counts bytes.
        let cost = text_tokens(&notes).max(tokens(notes.len()));
        if triggered && cost >= taken {
            let why = "the summary is as long as the messages";
            return Err(CompactionFailure::failed(why));
        }
        let summary = self.new_summary(method, &leaving, notes, before, taken);
        let messages = leaving.len();
        let by = format!("{} ({})", summary.provider, summary.model);
        let (start, pinned) = (cut.window_start(&rows), cut.pinned_seq(&rows));
        let added = self.session.add_summary(summary, start, pinned).await;
        added.map_err(CompactionFailure::failed)?;
        self.model.selection.allow_new_order();
        Ok(CompactionReport {
            messages,
            tokens_before: before,
            tokens_after: self.session.history.estimated_tokens(),
            by,
        })
    }

    /// The messages that remain: at most the configured number of last messages, in half of the room for messages.
    fn retain_policy(&self) -> RetainPolicy {
        let marks = self.marks();
        let history = &self.session.history;
        let estimate = history.estimate();
        let fixed = estimate.corrected(tokens(history.fixed_bytes()));
        // If the provider's window is smaller than configured, the conversation never reaches the mark.
        let room = marks.hard.min(history.estimated_tokens());
        let room = room.saturating_sub(fixed) / 2;
        let correction = estimate.corrected(1000).max(1);
        RetainPolicy {
            messages: self.config.compaction.keep_recent,
            tokens: room.saturating_mul(1000) / correction,
            turn: self.session.room.prompt,
        }
    }

    /// The provider of summaries.
    fn summary_provider(&self) -> &Arc<dyn LlmProvider> {
        let provider = self.compressor.provider.as_ref();
        provider.unwrap_or(&self.model.provider)
    }

    /// Requests notes on messages.
    async fn notes(
        &mut self,
        leaving: &[&Row],
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<String, CompactionFailure> {
        if let Some(over) = self.session.spending.over_budget(&self.config) {
            return Err(CompactionFailure::Failed(over));
        }
        let provider = Arc::clone(self.summary_provider());
        let known = with_knowledge("", self.session.system.summaries());
        // A conversation that was too long for the provider is too long for this request too.
        let most = match self.session.room.too_long {
            true => self.session.history.estimated_tokens() / 2,
            false => usize::MAX,
        };
        self.channel.emit(LoopbackEvent::SummingUp);
        let requested = summary::sum_up(provider.as_ref(), &known, leaving, most);
        let response = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(CompactionFailure::Cancelled),
            response = requested => response,
        };
        let (notes, usage) = response.map_err(CompactionFailure::failed)?;
        let mut spent = Spending::default();
        spent.add(provider.as_ref(), usage);
        if self.spend(spent, outcome).await.is_err() {
            return Err(CompactionFailure::failed("its cost could not be stored"));
        }
        let notes = notes.ok_or_else(|| {
            CompactionFailure::failed(
                "the model returned no \
            summary",
            )
        })?;
        Ok(self.compressor.secrets.redact(&notes).text.into_owned())
    }

    fn new_summary(
        &self,
        method: CompressionStrategy,
        leaving: &[&Row],
        content: String,
        before: usize,
        taken: usize,
    ) -> NewSummary {
        let provider = self.summary_provider();
        let estimate = self.session.history.estimate();
        let after = before.saturating_sub(estimate.corrected(taken))
            + estimate.corrected(text_tokens(&content));
        NewSummary {
            content,
            method,
            first_seq: leaving.first().map_or(0, |row| row.seq),
            last_seq: leaving.last().map_or(0, |row| row.seq),
            messages: leaving.len() as u64,
            tokens_before: before as u64,
            tokens_after: after as u64,
            provider: provider.name().to_owned(),
            model: provider.model().to_owned(),
        }
    }

    /// Evicts old results, and reports it. Returns whether results were evicted.
    async fn evict_results(&mut self, all: bool, max_tokens: Option<usize>) -> bool {
        let evicted = self.session.evict_results(all, max_tokens).await;
        let is_evicted = matches!(evicted, Ok(Some(_)));
        let notice = evicted.unwrap_or_else(|why| {
            Some(format!(
                "old results were not moved out of the conversation: {why}"
            ))
        });
        if let Some(notice) = notice {
            self.channel.emit(LoopbackEvent::Notice(notice));
        }
        is_evicted
    }
}

fn not_compacted(why: &str) -> String {
    format!("the conversation was not compacted and is unchanged: {why}")
}
