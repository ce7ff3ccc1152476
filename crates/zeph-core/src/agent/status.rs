//! The output of `/status`, `/cost` and `/sessions`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use zeph_memory::{CompressionStrategy, StoreError, TaskStatus};
use zeph_tools::plural::{counted_as, pluralize};

use super::history::HistoryError;
use super::session::Session;
use super::tool_runner::ToolRunner;
use super::{Agent, limits};
use crate::schedule::when::shown;

/// Sessions that `/sessions` lists.
const MAX_LISTED: usize = 20;
/// Sessions that `/sessions` reads. Those without messages are not listed.
const MAX_READ: u32 = 200;

impl Agent {
    /// The state of the session.
    pub(super) async fn status(&self) -> String {
        let Self {
            session,
            model,
            tools,
            ..
        } = self;
        let provider = model.provider.as_ref();
        let budget = limits::context_budget(&self.config, provider.context_window());
        let more = self.more_status.iter();
        let more: String = more
            .map(|(name, text)| format!("{name:<11} {}\n", text(session.id())))
            .collect();
        format!(
            "session     {}\n\
             directory   {}\n\
             model       {} ({})\n\
             context     about {} of {budget} tokens, {}\n\
             compaction  {}\n\
             limits      {} in the last turn, a check-in every {}, {} a round\n\
             {}cache       {}\n\
             memory      {}\n\
             {more}{}database    {}",
            session.id(),
            session.project.display(),
            provider.model(),
            provider.name(),
            session.history.estimated_tokens(),
            pluralize(session.history.messages().len(), "message"),
            self.compaction_status().await,
            pluralize(session.rounds, "round"),
            self.iterations.check_in,
            pluralize(self.config.max_calls_per_iteration, "call"),
            quota_line(tools, session.id()).await,
            cache_status(tools, session.id()),
            memory_status(session)
                .await
                .unwrap_or_else(|error| error.to_string()),
            model.selection.status(provider),
            session.store.path().display(),
        )
    }

    /// The number of compactions, and the threshold of the next one.
    async fn compaction_status(&self) -> String {
        let session = &self.session;
        let summaries = session.system.summaries();
        let evicted = session.store.moved_out(session.id()).await;
        let evicted = evicted.unwrap_or_default();
        let times = |method: CompressionStrategy| {
            let all = summaries.iter();
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
        let messages: u64 = summaries.iter().map(|summary| summary.messages).sum();
        let from = match self.config.compaction.enabled {
            true => format!("from {} tokens on", self.compacts_from()),
            false => "off ([agent.compaction] enabled)".to_owned(),
        };
        format!(
            "{}{by}, {} summed up, {} moved out; {from}",
            pluralize(summaries.len(), "compaction"),
            pluralize(messages, "message"),
            pluralize(evicted, "result"),
        )
    }

    /// The costs of the session, and the used part of its budget.
    pub(super) fn cost(&self) -> String {
        let spending = &self.session.spending;
        let mut lines = vec![spending.report()];
        lines.extend(spending.budget(&self.config));
        lines.join("\n")
    }

    /// The sessions of this directory that have messages, and this session.
    pub(super) async fn session_list(&self) -> Result<String, HistoryError> {
        let here = &self.session;
        let read = here.store.list_sessions(Some(&here.project), MAX_READ);
        let mut sessions = read.await?;
        sessions.retain(|it| it.messages > 0 || it.id == here.id());
        sessions.truncate(MAX_LISTED);
        let lines: Vec<_> = sessions
            .iter()
            .map(|session| {
                let mark = if session.id == here.id() { "*" } else { " " };
                let title = session.title.as_deref().unwrap_or("(no title)");
                let unit = match session.messages {
                    1 => "message",
                    _ => "messages",
                };
                format!(
                    "{mark} {}  {:>4} {unit:<8}  {title}",
                    session.id, session.messages,
                )
            })
            .collect();
        Ok(lines.join("\n"))
    }
}

fn cache_status(tools: &ToolRunner, session: &str) -> String {
    match &tools.caches {
        None => "off ([tools.result_cache] enabled)".to_owned(),
        Some(caches) => {
            let status = caches.status(session);
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

/// The line about the calls of the session, or an empty text if their number is not limited.
async fn quota_line(tools: &ToolRunner, session: &str) -> String {
    let Some(quota) = &tools.limits.quota else {
        return String::new();
    };
    match quota.counter.used(session).await {
        Ok(used) => format!(
            "quota       {used} of {} of the session used\n",
            pluralize(quota.max, "call")
        ),
        Err(error) => format!("quota       cannot be counted: {error}\n"),
    }
}

/// The number of stored facts, tasks and scheduled tasks.
async fn memory_status(session: &Session) -> Result<String, StoreError> {
    let store = &session.store;
    let facts = store.count_memories().await?;
    let tasks = store.tasks(session.id()).await?;
    let done = tasks
        .iter()
        .filter(|task| task.status == TaskStatus::Completed);
    let (done, tasks) = (done.count(), tasks.len());
    let scheduled = store.scheduled(&session.project).await?;
    let next = scheduled.first().and_then(|task| task.next_at);
    let next = next.and_then(|next| Timestamp::from_millisecond(next).ok());
    let next = next.map(|next| shown(next, &TimeZone::system()));
    let next = next.map_or_else(String::new, |next| format!(", next {next}"));
    let (facts, tasks) = (pluralize(facts, "fact"), pluralize(tasks, "task"));
    let count = scheduled.len();
    Ok(format!(
        "{facts}, {done} of {tasks} done, {count} scheduled{next}"
    ))
}
