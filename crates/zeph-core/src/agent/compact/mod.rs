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
use zeph_memory::{Compaction, CompressionStrategy, NewSummary, StoredSummary};
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
use plan::{CompactionPlan, RetainPolicy};

/// Who sums up, what may not be in a summary, and whether the model asked for one.
#[derive(Clone, Default)]
pub struct Compressor {
    /// The provider that sums up; `None` for the one of the conversation.
    pub provider: Option<Arc<dyn LlmProvider>>,
    /// What is taken out of summaries.
    pub secrets: Arc<SecurityPatterns>,
    /// Where the tool `compress_context` leaves its wish.
    pub requests: Arc<PendingCompactions>,
}

/// Why nothing was summed up. The conversation is as it was.
pub(super) enum Uncompacted {
    /// There is nothing that could leave.
    Nothing,
    /// The person cancelled it.
    Cancelled,
    /// It failed: why.
    Failed(String),
}

impl Uncompacted {
    fn failed(error: impl ToString) -> Self {
        Self::Failed(error.to_string())
    }
}

/// What was summed up.
pub(super) struct Compacted {
    messages: usize,
    before: usize,
    after: usize,
    by: String,
}

/// What becomes of room within a turn.
#[derive(Debug, Default)]
pub(super) struct CompactionState {
    /// The number of the turn's prompt.
    pub(super) prompt: Option<i64>,
    /// Summing up failed, or did not help: it is not tried again in this turn.
    given_up: bool,
    /// The provider said that a request was too long.
    too_long: bool,
}

/// The estimated tokens at which something is done.
#[derive(Debug, Clone, Copy)]
struct Marks {
    /// Old results are moved out.
    soft: usize,
    /// Older messages are summed up.
    hard: usize,
    budget: usize,
}

impl Agent {
    /// The tokens from which on older messages are summed up.
    pub(super) fn compacts_from(&self) -> usize {
        self.marks().hard
    }

    fn marks(&self) -> Marks {
        let budget = context_budget(&self.config, self.provider.context_window());
        let hard = self.config.compaction.tokens(budget);
        Marks {
            soft: hard.min(budget / 5 * 4),
            hard,
            budget,
        }
    }

    /// Makes room before a request, where it is needed or the model asked for it.
    pub(super) async fn compact_if_needed(
        &mut self,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) {
        if !self.config.compaction.enabled {
            return;
        }
        if self.compressor.requests.take(self.history.session()) {
            let method = CompressionStrategy::Autonomous;
            self.compact_in_turn(method, cancel, outcome).await;
        }
        let marks = self.marks();
        let before = self.history.estimated_tokens();
        if before <= marks.soft {
            return;
        }
        // Little room would be used up at once, and each time the provider's cache is lost.
        let most = before.saturating_sub(marks.budget / 10).min(marks.soft);
        if self.move_out(false, Some(most)).await || before <= marks.hard || self.room.given_up {
            return;
        }
        let method = CompressionStrategy::Triggered;
        self.compact_in_turn(method, cancel, outcome).await;
        if self.history.estimated_tokens() > marks.hard {
            self.room.given_up = true;
            self.move_out(true, Some(marks.hard)).await;
        }
    }

    /// The provider says that the request is too long: makes room by all means. Whether there is more now.
    pub(super) async fn shrink(
        &mut self,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> bool {
        if !self.config.compaction.enabled || cancel.is_cancelled() {
            return false;
        }
        self.room.too_long = true;
        let method = CompressionStrategy::Triggered;
        let compacted = self.compact_in_turn(method, cancel, outcome).await;
        let moved = self.move_out(false, None).await;
        // The last results may be what is too long.
        compacted || moved || self.move_out(true, None).await
    }

    /// Sums up in the course of a turn, and tells of it. Whether it was done.
    async fn compact_in_turn(
        &mut self,
        method: CompressionStrategy,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> bool {
        match self.compact(method, cancel, outcome).await {
            Ok(compacted) => {
                let told = self.told(&compacted);
                self.channel.emit(LoopbackEvent::Notice(told));
                true
            }
            Err(Uncompacted::Nothing | Uncompacted::Cancelled) => false,
            Err(Uncompacted::Failed(why)) => {
                self.room.given_up = true;
                let told = format!("the conversation was not compacted, and stays as it is: {why}");
                self.channel.emit(LoopbackEvent::Notice(told));
                false
            }
        }
    }

    /// `/compact`
    pub(super) async fn compact_as_told(&mut self, cancel: &CancellationToken) -> CommandOutput {
        let mut outcome = TurnOutcome::new();
        if let Err(error) = self.history.repair_orphaned_calls().await {
            return Err(error.to_string());
        }
        let method = CompressionStrategy::Manual;
        let compacted = self.compact(method, cancel, &mut outcome).await;
        self.follow_window();
        match compacted {
            Ok(compacted) => Ok(self.told(&compacted)),
            Err(Uncompacted::Nothing) => Ok("there is nothing to sum up yet".to_owned()),
            Err(Uncompacted::Cancelled) => {
                Ok("cancelled; the conversation stays as it is".to_owned())
            }
            Err(Uncompacted::Failed(why)) => Err(format!(
                "the conversation was not compacted, and stays as it is: {why}"
            )),
        }
    }

    fn told(&self, compacted: &Compacted) -> String {
        let Compacted {
            messages,
            before,
            after,
            by,
        } = compacted;
        format!(
            "compacted: {} summed up by {by}, about {before} -> {after} tokens; \
             `zeph sessions show {}` shows them",
            counted_as(*messages, "message was", "messages were"),
            self.history.session(),
        )
    }

    /// Has the older messages summed up. The conversation is asked nothing meanwhile, and the request that sums up
    /// cannot lead to another.
    async fn compact(
        &mut self,
        method: CompressionStrategy,
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<Compacted, Uncompacted> {
        let rows = self.history.rows().await.map_err(Uncompacted::failed)?;
        let cut = plan::cut(&rows, self.keep()).ok_or(Uncompacted::Nothing)?;
        let leaving: Vec<&Row> = cut.leaving(&rows).collect();
        let taken: usize = leaving.iter().map(|row| message_tokens(&row.message)).sum();
        let before = self.history.estimated_tokens();
        let freed = self.history.estimate().corrected(taken);
        let triggered = method == CompressionStrategy::Triggered;
        // A request that frees next to nothing would be made again and again.
        if triggered && freed < self.marks().budget.min(before) / 20 {
            return Err(Uncompacted::Nothing);
        }
        let notes = self.notes(&leaving, cancel, outcome).await?;
        // In the system prompt they count by their bytes.
        let cost = text_tokens(&notes).max(tokens(notes.len()));
        if triggered && cost >= taken {
            let why = "the summary is as long as what it sums up";
            return Err(Uncompacted::failed(why));
        }
        let summary = self.new_summary(method, &leaving, notes, before, taken);
        let messages = leaving.len();
        let by = format!("{} ({})", summary.provider, summary.model);
        self.adopt(&rows, cut, summary).await?;
        Ok(Compacted {
            messages,
            before,
            after: self.history.estimated_tokens(),
            by,
        })
    }

    /// What stays: at most the last messages that the configuration says, in half of the room that messages have.
    fn keep(&self) -> RetainPolicy {
        let marks = self.marks();
        let estimate = self.history.estimate();
        let fixed = estimate.corrected(tokens(self.history.fixed_bytes()));
        // Where the provider's window is smaller than it was said to be, the budget says nothing.
        let room = marks.hard.min(self.history.estimated_tokens());
        let room = room.saturating_sub(fixed) / 2;
        let correction = estimate.corrected(1000).max(1);
        RetainPolicy {
            messages: self.config.compaction.keep_recent,
            tokens: room.saturating_mul(1000) / correction,
            turn: self.room.prompt,
        }
    }

    /// Asks for notes on messages.
    async fn notes(
        &mut self,
        leaving: &[&Row],
        cancel: &CancellationToken,
        outcome: &mut TurnOutcome,
    ) -> Result<String, Uncompacted> {
        if let Some(over) = self.spending.over_budget(&self.config) {
            return Err(Uncompacted::Failed(over));
        }
        let provider = self.compressor.provider.as_ref();
        let provider = Arc::clone(provider.unwrap_or(&self.provider));
        let known = with_knowledge("", &self.knowledge);
        // What did not fit does not fit for this request either.
        let most = match self.room.too_long {
            true => self.history.estimated_tokens() / 2,
            false => usize::MAX,
        };
        self.channel.emit(LoopbackEvent::SummingUp);
        let asked = summary::sum_up(provider.as_ref(), &known, leaving, most);
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Uncompacted::Cancelled),
            answer = asked => answer,
        };
        let (notes, usage) = answer.map_err(Uncompacted::failed)?;
        let mut spent = Spending::default();
        spent.add(provider.as_ref(), usage);
        if self.spend(spent, outcome).await.is_err() {
            return Err(Uncompacted::failed("what it cost could not be stored"));
        }
        let notes = notes.ok_or_else(|| Uncompacted::failed("the model gave no summary"))?;
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
        let provider = self.compressor.provider.as_ref().unwrap_or(&self.provider);
        let estimate = self.history.estimate();
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

    /// Takes the messages before the cut out of the window, and the summary into the system prompt.
    async fn adopt(
        &mut self,
        rows: &[Row],
        cut: CompactionPlan,
        summary: NewSummary,
    ) -> Result<(), Uncompacted> {
        let end = rows.last().map_or(1, |row| row.seq + 1);
        let mut knowledge = self.knowledge.clone();
        knowledge.push(stored(&summary));
        let system = with_knowledge(&self.prompt, &knowledge);
        let fixed = self.history.fixed_bytes() + system.len() - self.system.len();
        let compaction = Compaction {
            summary: Some(summary),
            window_start: Some(rows.get(cut.first).map_or(end, |row| row.seq)),
            pinned: cut.pinned.and_then(|at| Some(rows.get(at)?.seq)),
            shown: Vec::new(),
        };
        let compacted = self.history.compact(&compaction, fixed).await;
        compacted.map_err(Uncompacted::failed)?;
        self.knowledge = knowledge;
        self.system = system;
        self.offer.begin_anew();
        Ok(())
    }

    /// The window was started over: nothing is known of what was.
    pub(super) fn forget_knowledge(&mut self) {
        self.knowledge.clear();
        let fixed = self.history.fixed_bytes() + self.prompt.len() - self.system.len();
        self.system.clone_from(&self.prompt);
        self.history.begin_with(fixed);
    }
}

/// A summary as it will be read back.
fn stored(summary: &NewSummary) -> StoredSummary {
    let summary = summary.clone();
    StoredSummary {
        content: summary.content,
        compaction_method: summary.method.as_str().to_owned(),
        first_seq: summary.first_seq,
        last_seq: summary.last_seq,
        messages: summary.messages,
        tokens_before: summary.tokens_before,
        tokens_after: summary.tokens_after,
        provider: summary.provider,
        model: summary.model,
        created_at: 0,
    }
}
