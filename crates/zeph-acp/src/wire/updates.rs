//! The one mapping from events to updates of the protocol, for live output and for a stored conversation.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, ContentChunk, Cost, CurrentModeUpdate, Diff, MessageId, Notice,
    NoticeSeverity, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionInfoUpdate,
    SessionUpdate, Terminal, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind as WireKind, UsageUpdate,
};
use serde_json::Value;
use uuid::Uuid;
use zeph_core::LoopbackEvent;
use zeph_memory::{Task, TaskStatus};
use zeph_tools::hidden::readable;
use zeph_tools::{FileChange, FileLocation, ToolErrorCategory};

use crate::ToolKind;
use crate::call_display;

/// Bytes of streamed output that an update shows. The end of the output stays.
const MAX_STREAMED_BYTES: usize = 16 * 1024;

/// A call that has not ended.
struct RunningCall {
    /// The id in events, which need not be unique.
    id: String,
    /// The id in updates.
    uuid: String,
    /// The end of its output so far.
    output: String,
}

/// The state of the mapping for one session: the ids of running calls and messages.
pub(super) struct UpdateMapper {
    cwd: PathBuf,
    /// Whether the client shows notices.
    has_notices: bool,
    calls: Vec<RunningCall>,
    text: Option<MessageId>,
    thought: Option<MessageId>,
}

impl UpdateMapper {
    /// A mapping for a session in `cwd`. Without `has_notices`, notices have no update.
    pub(super) fn new(cwd: &Path, has_notices: bool) -> Self {
        Self {
            cwd: cwd.to_owned(),
            has_notices,
            calls: Vec::new(),
            text: None,
            thought: None,
        }
    }

    /// The updates of an event, in order.
    pub(super) fn map(&mut self, event: LoopbackEvent) -> Vec<SessionUpdate> {
        let update = match event {
            LoopbackEvent::Requesting { .. } => {
                self.end_messages();
                None
            }
            LoopbackEvent::Prompt(text) => {
                self.end_messages();
                let id = Some(MessageId::new(new_id()));
                Some(SessionUpdate::UserMessageChunk(chunk(text, id)))
            }
            LoopbackEvent::Text(text) => {
                self.thought = None;
                let id = self.text.get_or_insert_with(|| MessageId::new(new_id()));
                Some(SessionUpdate::AgentMessageChunk(chunk(
                    text,
                    Some(id.clone()),
                )))
            }
            LoopbackEvent::Reasoning(text) => {
                let id = self.thought.get_or_insert_with(|| MessageId::new(new_id()));
                Some(SessionUpdate::AgentThoughtChunk(chunk(
                    text,
                    Some(id.clone()),
                )))
            }
            LoopbackEvent::ToolStarted { id, tool, params } => {
                self.end_messages();
                Some(SessionUpdate::ToolCall(self.start(id, &tool, params)))
            }
            LoopbackEvent::ToolOutput { id, text, .. } => self.output(&id, &text),
            LoopbackEvent::Terminal { id, terminal } => {
                let content = vec![ToolCallContent::Terminal(Terminal::new(terminal))];
                let fields = status(ToolCallStatus::InProgress).content(content);
                self.call_update(&id, fields)
            }
            LoopbackEvent::Permission { id, allowed, .. } => match allowed {
                true => self.call_update(&id, status(ToolCallStatus::InProgress)),
                // The end of the call follows.
                false => None,
            },
            LoopbackEvent::ToolFinished {
                id,
                failure,
                display,
                locations,
                changes,
                ..
            } => self.finish(&id, failure, &display, &locations, changes),
            LoopbackEvent::Notice(text) => self.notice(NoticeSeverity::Info, text),
            LoopbackEvent::Retrying(retry) => self.notice(NoticeSeverity::Info, retry.to_string()),
            LoopbackEvent::Warning(text) => self.notice(NoticeSeverity::Warning, text),
            LoopbackEvent::Error(text) => self.notice(NoticeSeverity::Error, text),
            LoopbackEvent::Rollback { changes, .. } => {
                self.notice(NoticeSeverity::Info, format!("rolled back: {changes}"))
            }
            LoopbackEvent::SummingUp => self.notice(
                NoticeSeverity::Info,
                "summarizing older messages".to_owned(),
            ),
            LoopbackEvent::Context { used, size, cost } => {
                let cost = cost.map(|cost| Cost::new(cost.dollars(), "USD"));
                let usage = UsageUpdate::new(used as u64, size as u64).cost(cost);
                Some(SessionUpdate::UsageUpdate(usage))
            }
            LoopbackEvent::Title(title) => Some(SessionUpdate::SessionInfoUpdate(
                SessionInfoUpdate::new().title(title),
            )),
            LoopbackEvent::Tasks(tasks) => Some(SessionUpdate::Plan(plan(tasks))),
            LoopbackEvent::Mode(mode) => Some(SessionUpdate::CurrentModeUpdate(
                CurrentModeUpdate::new(mode.as_str()),
            )),
            // `Context` reports the same tokens.
            LoopbackEvent::Usage(_) => None,
        };
        update.into_iter().collect()
    }

    /// The id in updates of the running call with the id `id` in events.
    pub(super) fn call_id(&self, id: &str) -> Option<String> {
        self.running(id).map(|call| call.uuid.clone())
    }

    /// The update with the output so far of a running call.
    pub(super) fn output_so_far(&self, id: &str) -> Option<SessionUpdate> {
        let call = self.running(id)?;
        let fields = status(ToolCallStatus::InProgress).content(vec![text_content(&call.output)]);
        self.call_update(id, fields)
    }

    fn end_messages(&mut self) {
        self.text = None;
        self.thought = None;
    }

    fn running(&self, id: &str) -> Option<&RunningCall> {
        self.calls.iter().find(|call| call.id == id)
    }

    fn start(&mut self, id: String, tool: &str, params: Value) -> ToolCall {
        let uuid = new_id();
        let locations = call_display::locations(&params, &self.cwd);
        let call = ToolCall::new(uuid.clone(), call_display::title(tool, &params))
            .name(tool.to_owned())
            .kind(wire_kind(ToolKind::of(tool)))
            .status(ToolCallStatus::InProgress)
            .locations(locations.into_iter().map(ToolCallLocation::new).collect())
            .raw_input(params);
        self.calls.push(RunningCall {
            id,
            uuid,
            output: String::new(),
        });
        call
    }

    fn output(&mut self, id: &str, text: &str) -> Option<SessionUpdate> {
        let call = self.calls.iter_mut().find(|call| call.id == id)?;
        call.output.push_str(text);
        let over = call.output.len().saturating_sub(MAX_STREAMED_BYTES);
        if over > 0 {
            let start = call.output.ceil_char_boundary(over);
            call.output.drain(..start);
        }
        self.output_so_far(id)
    }

    fn finish(
        &mut self,
        id: &str,
        failure: Option<ToolErrorCategory>,
        display: &str,
        locations: &[FileLocation],
        changes: Vec<FileChange>,
    ) -> Option<SessionUpdate> {
        let status = match failure {
            None => ToolCallStatus::Completed,
            Some(_) => ToolCallStatus::Failed,
        };
        let mut content = Vec::new();
        if !display.is_empty() {
            content.push(text_content(display));
        }
        content.extend(changes.into_iter().map(diff));
        let mut fields = ToolCallUpdateFields::new().status(status).content(content);
        if !locations.is_empty() {
            let places = locations.iter();
            let places = places.map(|place| ToolCallLocation::new(&place.path).line(place.line));
            fields = fields.locations(places.collect::<Vec<_>>());
        }
        let update = self.call_update(id, fields);
        let at = self.calls.iter().position(|call| call.id == id);
        at.map(|at| self.calls.remove(at));
        update
    }

    fn call_update(&self, id: &str, fields: ToolCallUpdateFields) -> Option<SessionUpdate> {
        let call = self.running(id)?;
        let update = ToolCallUpdate::new(call.uuid.clone(), fields);
        Some(SessionUpdate::ToolCallUpdate(update))
    }

    fn notice(&self, severity: NoticeSeverity, text: String) -> Option<SessionUpdate> {
        self.has_notices
            .then(|| SessionUpdate::Notice(Notice::new(severity, text)))
    }
}

/// A new id of a call or a message.
pub(super) fn new_id() -> String {
    Uuid::new_v4().to_string()
}

/// A block with text for the user. Text from programs is shown as it is, without control characters.
pub(super) fn text_content(text: &str) -> ToolCallContent {
    let text = readable(text);
    let ticks = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(ticks.max(2) + 1);
    let text = format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'));
    ToolCallContent::Content(Content::new(ContentBlock::from(text)))
}

/// The change of a file.
pub(super) fn diff(change: FileChange) -> ToolCallContent {
    ToolCallContent::Diff(Diff::new(change.path, change.after).old_text(change.before))
}

/// The kind of the protocol.
pub(super) fn wire_kind(kind: ToolKind) -> WireKind {
    match kind {
        ToolKind::Read => WireKind::Read,
        ToolKind::Edit => WireKind::Edit,
        ToolKind::Delete => WireKind::Delete,
        ToolKind::Move => WireKind::Move,
        ToolKind::Search => WireKind::Search,
        ToolKind::Execute => WireKind::Execute,
        ToolKind::Fetch => WireKind::Fetch,
        ToolKind::Other => WireKind::Other,
    }
}

fn status(status: ToolCallStatus) -> ToolCallUpdateFields {
    ToolCallUpdateFields::new().status(status)
}

fn chunk(text: String, id: Option<MessageId>) -> ContentChunk {
    ContentChunk::new(ContentBlock::from(text)).message_id(id)
}

fn plan(tasks: Vec<Task>) -> Plan {
    let entries = tasks.into_iter().map(|task| {
        let status = match task.status {
            TaskStatus::Pending => PlanEntryStatus::Pending,
            TaskStatus::InProgress => PlanEntryStatus::InProgress,
            TaskStatus::Completed => PlanEntryStatus::Completed,
        };
        PlanEntry::new(task.content, PlanEntryPriority::Medium, status)
    });
    Plan::new(entries.collect())
}
