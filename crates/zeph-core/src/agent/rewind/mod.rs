//! `/rewind`: return to an earlier message of the user.
//!
//! Files are restored first, so an interrupted rewind can be repeated. Then the messages leave the conversation; the
//! store keeps them. `points` lists the messages of the user, and `effects` finds the changes of files without a record.

mod effects;
mod points;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use zeph_llm::Message;
use zeph_memory::StoredMessage;
use zeph_tools::RewindReport;
use zeph_tools::plural::pluralize;

use super::history::HistoryError;
use super::{Agent, CommandOutput};
use effects::{Effect, SubAgentEffects, effects, sub_sessions};
use points::{RewindPoint, list, points};

/// The start of the message to the model about files that a rewind did not restore.
pub(super) const REWIND_MARK: &str = "[the user went back to this point of the conversation";

/// The changes of files that a rewind undoes, and those that it does not.
struct FilePlan {
    restored: Vec<String>,
    not_restored: Vec<String>,
}

impl FilePlan {
    fn is_empty(&self) -> bool {
        self.restored.is_empty() && self.not_restored.is_empty()
    }

    /// One line for each file.
    fn lines(&self) -> String {
        let restored = self.restored.iter().map(|line| format!("  {line}\n"));
        let not_restored = self.not_restored.iter();
        let not_restored = not_restored.map(|line| format!("  not restored: {line}\n"));
        restored.chain(not_restored).collect()
    }
}

impl Agent {
    /// `/rewind`: the messages of the user.
    pub(super) async fn rewind_list(&self) -> Result<String, HistoryError> {
        let session = &self.session;
        let messages = session.store.known_messages(session.id()).await?;
        Ok(list(&points(&messages)))
    }

    /// `/rewind NUMBER`: goes back to before this message of the user. If files are affected, it only reports the plan,
    /// unless it is confirmed.
    pub(super) async fn rewind(
        &mut self,
        number: usize,
        is_confirmed: bool,
    ) -> Result<CommandOutput, HistoryError> {
        let id = self.session.id().to_owned();
        let store = self.session.store.clone();
        let messages = store.known_messages(&id).await?;
        let points = points(&messages);
        let Some(point) = number.checked_sub(1).and_then(|at| points.get(at)) else {
            return Ok(Err(format!(
                "there is no message {number}; /rewind lists your messages"
            )));
        };
        let seq = point.seq;
        let views = store.result_views(&id).await?;
        // The store returns them in the order of `seq`.
        let start = messages.partition_point(|it| it.seq < seq);
        let (retained, rewound) = messages.split_at(start);
        let sub_agents = self.sub_agent_effects(rewound, &views).await;
        let found = effects(
            rewound,
            &views,
            &self.tools.registry(),
            &self.session.project,
            &sub_agents,
        );
        let mark = store.last_change_before(&id, seq).await?;
        if !is_confirmed {
            let plan = match self.tools.undo.plan_rewind(&id, mark).await {
                Ok(report) => file_plan(report, &found),
                Err(error) => return Ok(Err(error.to_string())),
            };
            if !plan.is_empty() {
                return Ok(Ok(proposal(point, rewound.len(), &plan)));
            }
        }
        let undone = {
            let _changing = self.tools.caches.as_ref().map(|caches| caches.changing());
            self.tools.undo.rewind(&id, mark).await
        };
        let plan = match undone {
            Ok(report) => file_plan(report, &found),
            Err(error) => return Ok(Err(format!("{error}; the conversation is unchanged"))),
        };
        self.session.rewind(seq).await?;
        self.tools.rewound(&self.session, retained);
        if !plan.not_restored.is_empty() {
            let note = note(&plan.not_restored);
            self.session.history.push(Message::user(note), None).await?;
        }
        self.report_context();
        Ok(Ok(format!(
            "The conversation is in its state before message {number} ({}). {} left it, and the \
             store keeps them.\n{}",
            point.title,
            pluralize(rewound.len(), "message"),
            plan.lines()
        )))
    }

    /// The effects of the calls of the sub-agents that `messages` started. A session that cannot be
    /// read completely is omitted.
    async fn sub_agent_effects(
        &self,
        messages: &[StoredMessage],
        views: &HashMap<i64, String>,
    ) -> SubAgentEffects {
        let store = &self.session.store;
        let mut sub_agents = SubAgentEffects::new();
        for id in sub_sessions(messages, views) {
            let messages = store.known_messages(&id).await;
            let views = store.result_views(&id).await;
            let (Ok(messages), Ok(views)) = (messages, views) else {
                continue;
            };
            let found = effects(
                &messages,
                &views,
                &self.tools.registry(),
                &self.session.project,
                &SubAgentEffects::new(),
            );
            let is_damaged = found
                .iter()
                .any(|effect| matches!(effect, Effect::Damaged(_)));
            if !is_damaged {
                sub_agents.insert(id, found);
            }
        }
        sub_agents
    }
}

/// Adds the changes without a record to the report of the undo journal.
fn file_plan(report: RewindReport, found: &[Effect]) -> FilePlan {
    let mut not_restored = report.not_restored;
    for effect in found {
        let line = match effect {
            Effect::Command(command) => {
                format!("changes by the command {command}: commands have no undo record")
            }
            Effect::Call(title) => format!("changes by the call {title}: it has no undo record"),
            Effect::Damaged(seq) => {
                format!("changes by message {seq}: it is damaged and cannot be read")
            }
            Effect::File { path, before } => {
                let is_recorded = report.recorded.contains(&resolved(path));
                if is_recorded
                    || before
                        .as_ref()
                        .is_some_and(|before| has_content(path, before.as_deref()))
                {
                    continue;
                }
                format!("{}: no undo record", path.display())
            }
        };
        if !not_restored.contains(&line) {
            not_restored.push(line);
        }
    }
    FilePlan {
        restored: report.restored,
        not_restored,
    }
}

/// The path with a resolved directory, as records have it.
#[allow(
    clippy::disallowed_methods,
    reason = "the path is compared for a message, and never opened"
)]
fn resolved(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// Whether a file has this content; `None` means that it does not exist.
fn has_content(path: &Path, expected: Option<&str>) -> bool {
    match expected {
        Some(text) => {
            let size = std::fs::metadata(path).map(|file| file.len());
            size.is_ok_and(|size| size == text.len() as u64)
                && std::fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
        }
        None => std::fs::symlink_metadata(path).is_err(),
    }
}

/// The plan of a rewind that is not confirmed.
fn proposal(point: &RewindPoint, messages: usize, plan: &FilePlan) -> String {
    format!(
        "Going back before message {} ({}) removes {} from the conversation. Files:\n{}\
         /rewind {} yes does this.",
        point.number,
        point.title,
        pluralize(messages, "message"),
        plan.lines(),
        point.number,
    )
}

/// The message to the model about files that have another state than at this point of the conversation.
fn note(not_restored: &[String]) -> String {
    format!(
        "{REWIND_MARK}; files may differ from their state at this point: read a file again before you change it. Not \
         restored:]\n{}",
        not_restored.join("\n")
    )
}
