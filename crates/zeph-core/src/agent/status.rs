//! The output of `/status`, `/cost` and `/sessions`.

use std::collections::HashSet;
use std::fmt::Write as _;

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
const MAX_LISTED: u32 = 20;
/// The minimum number of characters of an id in a list.
const MIN_ID_CHARS: usize = 8;

/// The width of the names of lines.
const NAME_WIDTH: usize = 15;

/// One line of `/status`.
fn line(name: &str, text: &str) -> String {
    format!("{name:<NAME_WIDTH$}{text}\n")
}

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
        let used = session.history.estimated_tokens();
        let context = format!(
            "about {used} of {budget} tokens ({} %), {}",
            used * 100 / budget.max(1),
            pluralize(session.history.messages().len(), "message"),
        );
        let turn = format!(
            "{}; asks after every {}; at most {} each",
            counted_as(
                session.rounds,
                "round of tool calls",
                "rounds of tool calls"
            ),
            self.iterations.check_in,
            pluralize(self.config.max_calls_per_iteration, "call"),
        );
        let stored = session.store.session(session.id()).await;
        let title = stored.ok().and_then(|stored| stored.title);
        let mut text = line("Session", session.id());
        if let Some(title) = title {
            text.push_str(&line("Title", &title));
        }
        text.push_str(&line("Directory", &session.project.display().to_string()));
        let asked = format!("{} (provider {})", provider.model(), provider.name());
        text.push_str(&line("Model", &asked));
        text.push_str(&line("Context", &context));
        text.push_str(&line("Compaction", &self.compaction_status().await));
        text.push_str(&line("Last turn", &turn));
        text.push_str(&quota_line(tools, session.id()).await);
        text.push_str(&line("Result cache", &cache_status(tools, session.id())));
        let memory = memory_status(session).await;
        text.push_str(&memory.unwrap_or_else(|error| line("Memory", &error.to_string())));
        for (name, status) in &self.more_status {
            text.push_str(&line(name, &status(session.id())));
        }
        text.push_str(&model.selection.status(provider));
        let database = session.store.path().display().to_string();
        text.push_str(line("Database", &database).trim_end());
        text
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
        let messages: u64 = summaries.iter().map(|summary| summary.messages).sum();
        let so_far = match (by.as_slice(), evicted) {
            ([], 0) => "none so far".to_owned(),
            ([], evicted) => format!("{} shortened", pluralize(evicted, "result")),
            (by, evicted) => format!(
                "{} ({}), {} summarized, {} shortened",
                pluralize(summaries.len(), "compaction"),
                by.join(", "),
                pluralize(messages, "message"),
                pluralize(evicted, "result"),
            ),
        };
        match self.config.compaction.enabled {
            true => format!("{so_far}; the next one at {} tokens", self.compacts_from()),
            false => format!("{so_far}; off ([agent.compaction] enabled)"),
        }
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
        let read = here
            .store
            .list_conversations(Some(&here.project), MAX_LISTED);
        let mut sessions = read.await?;
        if sessions.iter().all(|session| session.id != here.id()) {
            sessions.insert(0, here.store.session(here.id()).await?);
        }
        let ids: Vec<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
        let width = unique_prefix(&ids);
        let mut text = String::new();
        for session in &sessions {
            let mark = if session.id == here.id() { "*" } else { " " };
            let title = session.title.as_deref().unwrap_or("(no title)");
            let id: String = session.id.chars().take(width).collect();
            let unit = match session.messages {
                1 => "message",
                _ => "messages",
            };
            let date = minute(session.updated_at);
            let count = session.messages;
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{mark} {id}  {date}  {count:>4} {unit:<8}  {title}");
        }
        text.push_str("/resume ID continues a session, /resume opens a list to select from");
        Ok(text)
    }
}

/// Characters with which all ids differ, at least [`MIN_ID_CHARS`].
fn unique_prefix(ids: &[&str]) -> usize {
    let longest = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0);
    let are_unique = |width: usize| {
        let prefixes = ids
            .iter()
            .map(|id| id.chars().take(width).collect::<String>());
        prefixes.collect::<HashSet<_>>().len() == ids.len()
    };
    let mut widths = MIN_ID_CHARS..longest;
    widths.find(|width| are_unique(*width)).unwrap_or(longest)
}

/// The local date and minute of a time in milliseconds since the Unix epoch.
pub(super) fn minute(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).map(|time| time.to_zoned(TimeZone::system()));
    time.map_or_else(
        |_| String::new(),
        |time| time.strftime("%Y-%m-%d %H:%M").to_string(),
    )
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
        Ok(used) => {
            let max = pluralize(quota.max, "call");
            line(
                "Call limit",
                &format!("{used} of {max} of the session used"),
            )
        }
        Err(error) => line("Call limit", &format!("cannot be counted: {error}")),
    }
}

/// The lines about stored facts, tasks and scheduled tasks.
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
    let facts = format!("{} beyond this session", pluralize(facts, "fact"));
    let mut text = line("Memory", &facts);
    if tasks > 0 {
        text.push_str(&line(
            "Task list",
            &format!("{done} of {} done", pluralize(tasks, "task")),
        ));
    }
    if let Some(next) = next {
        let tasks = pluralize(scheduled.len(), "task");
        text.push_str(&line("Scheduled", &format!("{tasks}, the next at {next}")));
    }
    Ok(text)
}
