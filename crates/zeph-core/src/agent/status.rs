//! What `/status`, `/cost` and `/sessions` say.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use zeph_memory::{CompressionStrategy, StoreError, TaskStatus};
use zeph_tools::plural::{counted_as, pluralize};

use super::history::HistoryError;
use super::{Agent, limits};
use crate::schedule::when::shown;

/// How many sessions `/sessions` lists, and how many it looks at.
const LISTED: usize = 20;
/// See [`LISTED`].
const LOOKED_AT: u32 = 200;

impl Agent {
    fn cache_status(&self) -> String {
        match &self.caches {
            None => "off ([tools.result_cache] enabled)".to_owned(),
            Some(caches) => {
                let status = caches.status(self.history.session());
                format!(
                    "{}, {}; {} in {} kB",
                    pluralize(status.hits, "hit"),
                    counted_as(status.misses, "miss", "misses"),
                    pluralize(status.entries, "result"),
                    status.bytes.div_ceil(1000)
                )
            }
        }
    }

    fn more_status(&self) -> String {
        let lines = self.more_status.iter();
        lines
            .map(|(name, say)| format!("{name:<11} {}\n", say(self.history.session())))
            .collect()
    }

    /// The calls that are used of those the session may make, where they are limited.
    async fn quota_status(&self) -> String {
        let Some(quota) = &self.limits.quota else {
            return String::new();
        };
        match quota.counter.used(self.history.session()).await {
            Ok(used) => format!(
                "quota       {used} of {} of the session used\n",
                pluralize(quota.max, "call")
            ),
            Err(error) => format!("quota       cannot be counted: {error}\n"),
        }
    }

    /// What is kept beside the conversation: facts, steps of the task list, tasks that are due later.
    async fn kept_status(&self) -> Result<String, StoreError> {
        let facts = self.store.count_memories().await?;
        let steps = self.store.tasks(self.history.session()).await?;
        let done = steps
            .iter()
            .filter(|step| step.status == TaskStatus::Completed);
        let (done, steps) = (done.count(), steps.len());
        let scheduled = self.store.scheduled(&self.project).await?;
        let next = scheduled.first().and_then(|task| task.next_at);
        let next = next.and_then(|next| Timestamp::from_millisecond(next).ok());
        let next = next.map(|next| shown(next, &TimeZone::system()));
        let next = next.map_or_else(String::new, |next| format!(", next {next}"));
        let (facts, steps) = (pluralize(facts, "fact"), pluralize(steps, "task"));
        let count = scheduled.len();
        Ok(format!(
            "{facts}, {done} of {steps} done, {count} scheduled{next}"
        ))
    }

    /// The state of the session.
    pub(super) async fn status(&self) -> String {
        let window = self.provider.context_window();
        let budget = limits::context_budget(&self.config, window);
        format!(
            "session     {}\n\
             directory   {}\n\
             model       {} ({})\n\
             context     about {} of {budget} tokens, {}\n\
             compaction  {}\n\
             limits      {} of {} in the last turn, {} a round\n\
             {}cache       {}\n\
             memory      {}\n\
             {}{}database    {}",
            self.history.session(),
            self.project.display(),
            self.provider.model(),
            self.provider.name(),
            self.history.estimated_tokens(),
            pluralize(self.history.messages().len(), "message"),
            self.compaction_status().await,
            self.rounds,
            pluralize(self.config.max_tool_iterations, "round"),
            pluralize(self.config.max_calls_per_iteration, "call"),
            self.quota_status().await,
            self.cache_status(),
            self.kept_status()
                .await
                .unwrap_or_else(|error| error.to_string()),
            self.more_status(),
            self.offer.status(self.provider.as_ref()),
            self.store.path().display(),
        )
    }

    /// What the session spent, and how much of its budget that is.
    pub(super) fn cost(&self) -> String {
        let mut lines = vec![self.spending.report()];
        lines.extend(self.spending.budget(&self.config));
        lines.join("\n")
    }

    /// The sessions of this directory in which something was said, and this one.
    pub(super) async fn session_list(&self) -> Result<String, HistoryError> {
        let looked_at = self.store.list_sessions(Some(&self.project), LOOKED_AT);
        let mut sessions = looked_at.await?;
        sessions.retain(|it| it.messages > 0 || it.id == self.history.session());
        sessions.truncate(LISTED);
        let lines: Vec<_> = sessions
            .iter()
            .map(|session| {
                let here = if session.id == self.history.session() {
                    "*"
                } else {
                    " "
                };
                let title = session.title.as_deref().unwrap_or("(no title)");
                format!(
                    "{here} {}  {:>4} {:<8}  {title}",
                    session.id,
                    session.messages,
                    if session.messages == 1 {
                        "message"
                    } else {
                        "messages"
                    },
                )
            })
            .collect();
        Ok(lines.join("\n"))
    }

    /// A line of `/status`: how often room was made.
    async fn compaction_status(&self) -> String {
        let moved = self.store.moved_out(self.history.session()).await;
        let moved = moved.unwrap_or_default();
        let times = |method: CompressionStrategy| {
            let all = self.knowledge.iter();
            let count = all.filter(|summary| summary.compaction_method == method.as_str());
            (count.count(), method.as_str())
        };
        let by = CompressionStrategy::ALL.map(times);
        let by: Vec<String> = by
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, method)| format!("{count} {method}"))
            .collect();
        let by = match by.as_slice() {
            [] => String::new(),
            by => format!(" ({})", by.join(", ")),
        };
        let messages: u64 = self.knowledge.iter().map(|summary| summary.messages).sum();
        let from = match self.config.compaction.enabled {
            true => format!("from {} tokens on", self.compacts_from()),
            false => "off ([agent.compaction] enabled)".to_owned(),
        };
        format!(
            "{}{by}, {} summed up, {} moved out; {from}",
            pluralize(self.knowledge.len(), "compaction"),
            pluralize(messages, "message"),
            pluralize(moved, "result"),
        )
    }
}
