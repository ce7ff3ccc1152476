//! The one mapping from events to updates of the protocol, for live output and for a stored conversation.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, ContentChunk, Cost, CurrentModeUpdate, Diff, ImageContent, MessageId,
    Notice, NoticeSeverity, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionInfoUpdate,
    SessionUpdate, Terminal, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, UsageUpdate,
};
use serde_json::Value;
use uuid::Uuid;
use zeph_core::{LoopbackEvent, call_display};
use zeph_memory::{Task, TaskStatus};
use zeph_tools::hidden::revealed;
use zeph_tools::{FileChange, FileLocation, ToolErrorCategory};

use super::kind::kind_of;

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
    /// Removes terminal control from the text of programs.
    clean: fn(&str) -> String,
    calls: Vec<RunningCall>,
    text: Option<MessageId>,
    thought: Option<MessageId>,
    /// The last prompt, whose images may follow.
    prompt: Option<MessageId>,
}

impl UpdateMapper {
    /// A mapping for a session in `cwd`.
    pub(super) fn new(cwd: &Path, clean: fn(&str) -> String) -> Self {
        Self {
            cwd: cwd.to_owned(),
            clean,
            calls: Vec::new(),
            text: None,
            thought: None,
            prompt: None,
        }
    }

    /// The update of an event; `None` if the client is shown none. A message for the user is a notice, which the
    /// client must support.
    pub(super) fn map(&mut self, event: LoopbackEvent) -> Option<SessionUpdate> {
        if let Some((severity, text)) = notice_of(&event) {
            let notice = Notice::new(severity, (self.clean)(&text));
            return Some(SessionUpdate::Notice(notice));
        }
        match event {
            LoopbackEvent::Requesting { .. } => {
                self.end_messages();
                None
            }
            LoopbackEvent::Prompt(text) => {
                self.end_messages();
                let id = self.prompt.insert(MessageId::new(new_id())).clone();
                // A prompt of images alone has no text.
                (!text.is_empty()).then(|| SessionUpdate::UserMessageChunk(chunk(text, Some(id))))
            }
            LoopbackEvent::PromptImage(image) => {
                let id = self.prompt.get_or_insert_with(|| MessageId::new(new_id()));
                let image = ImageContent::new(image.data, image.media_type);
                let chunk = ContentChunk::new(ContentBlock::Image(image)).message_id(id.clone());
                Some(SessionUpdate::UserMessageChunk(chunk))
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
            LoopbackEvent::Context { used, size, cost } => {
                let cost = cost.map(|cost| Cost::new(cost.dollars(), "USD"));
                let usage = UsageUpdate::new(used as u64, size as u64).cost(cost);
                Some(SessionUpdate::UsageUpdate(usage))
            }
            LoopbackEvent::Title(title) => Some(SessionUpdate::SessionInfoUpdate(
                SessionInfoUpdate::new().title((self.clean)(&title)),
            )),
            LoopbackEvent::Tasks(tasks) => Some(SessionUpdate::Plan(self.plan(tasks))),
            LoopbackEvent::Mode(mode) => Some(SessionUpdate::CurrentModeUpdate(
                CurrentModeUpdate::new(mode.as_str()),
            )),
            // `Context` reports the same tokens. The others are notices.
            LoopbackEvent::Usage(_)
            | LoopbackEvent::Notice(_)
            | LoopbackEvent::Retrying(_)
            | LoopbackEvent::Warning(_)
            | LoopbackEvent::Error(_)
            | LoopbackEvent::Rollback { .. }
            | LoopbackEvent::SummingUp => None,
        }
    }

    /// The id in updates of the running call with the id `id` in events.
    pub(super) fn call_id(&self, id: &str) -> Option<String> {
        self.running(id).map(|call| call.uuid.clone())
    }

    /// The update with the output so far of a running call.
    pub(super) fn output_so_far(&self, id: &str) -> Option<SessionUpdate> {
        let call = self.running(id)?;
        let fields = status(ToolCallStatus::InProgress)
            .content(vec![text_content(&(self.clean)(&call.output))]);
        self.call_update(id, fields)
    }

    fn end_messages(&mut self) {
        self.text = None;
        self.thought = None;
        self.prompt = None;
    }

    fn running(&self, id: &str) -> Option<&RunningCall> {
        self.calls.iter().find(|call| call.id == id)
    }

    fn start(&mut self, id: String, tool: &str, params: Value) -> ToolCall {
        let uuid = new_id();
        let locations = call_display::locations(&params, &self.cwd);
        let call = ToolCall::new(uuid.clone(), title(tool, &params))
            .name(tool.to_owned())
            .kind(kind_of(tool))
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
            content.push(text_content(&(self.clean)(display)));
        }
        content.extend(changes.into_iter().map(diff));
        let mut fields = ToolCallUpdateFields::new().status(status).content(content);
        if !locations.is_empty() {
            let places = locations.iter();
            let places = places.map(|place| ToolCallLocation::new(&place.path).line(place.line));
            fields = fields.locations(places.collect::<Vec<_>>());
        }
        let at = self.calls.iter().position(|call| call.id == id)?;
        let update = ToolCallUpdate::new(self.calls.remove(at).uuid, fields);
        Some(SessionUpdate::ToolCallUpdate(update))
    }

    fn call_update(&self, id: &str, fields: ToolCallUpdateFields) -> Option<SessionUpdate> {
        let call = self.running(id)?;
        let update = ToolCallUpdate::new(call.uuid.clone(), fields);
        Some(SessionUpdate::ToolCallUpdate(update))
    }

    fn plan(&self, tasks: Vec<Task>) -> Plan {
        let entries = tasks.into_iter().map(|task| {
            let status = match task.status {
                TaskStatus::Pending => PlanEntryStatus::Pending,
                TaskStatus::InProgress => PlanEntryStatus::InProgress,
                TaskStatus::Completed => PlanEntryStatus::Completed,
            };
            let content = (self.clean)(&task.content);
            PlanEntry::new(content, PlanEntryPriority::Medium, status)
        });
        Plan::new(entries.collect())
    }
}

/// The severity and the text of an event that is a message for the user; `None` for other events.
pub(super) fn notice_of(event: &LoopbackEvent) -> Option<(NoticeSeverity, String)> {
    let (severity, text) = match event {
        LoopbackEvent::Notice(text) => (NoticeSeverity::Info, text.clone()),
        LoopbackEvent::Retrying(retry) => (NoticeSeverity::Info, retry.to_string()),
        LoopbackEvent::Warning(text) => (NoticeSeverity::Warning, text.clone()),
        LoopbackEvent::Error(text) => (NoticeSeverity::Error, text.clone()),
        LoopbackEvent::Rollback { changes, .. } => {
            (NoticeSeverity::Info, format!("rolled back: {changes}"))
        }
        LoopbackEvent::SummingUp => (
            NoticeSeverity::Info,
            "summarizing older messages".to_owned(),
        ),
        _ => return None,
    };
    Some((severity, text))
}

/// The title of a call. It is part of questions to the user, so nothing hides in it.
pub(super) fn title(tool: &str, params: &Value) -> String {
    revealed(&call_display::title(tool, params))
}

/// A new id of a call or a message.
pub(super) fn new_id() -> String {
    Uuid::new_v4().to_string()
}

/// A block with text for the user, which is shown as it is.
pub(super) fn text_content(text: &str) -> ToolCallContent {
    let ticks = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(ticks.max(2) + 1);
    let text = format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'));
    ToolCallContent::Content(Content::new(ContentBlock::from(text)))
}

/// The change of a file.
fn diff(change: FileChange) -> ToolCallContent {
    ToolCallContent::Diff(Diff::new(change.path, change.after).old_text(change.before))
}

fn status(status: ToolCallStatus) -> ToolCallUpdateFields {
    ToolCallUpdateFields::new().status(status)
}

fn chunk(text: String, id: Option<MessageId>) -> ContentChunk {
    ContentChunk::new(ContentBlock::from(text)).message_id(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_tools::OutputStream;

    use super::*;

    /// The updates of events as JSON. Ids are replaced by numbers in the order of their first use.
    fn mapped(events: Vec<LoopbackEvent>) -> Vec<Value> {
        let mut mapper = UpdateMapper::new(Path::new("/p"), str::to_owned);
        let mut ids: Vec<String> = Vec::new();
        let updates = events.into_iter().flat_map(|event| mapper.map(event));
        let updates = updates.map(|update| {
            let mut update = serde_json::to_value(update).unwrap();
            for key in ["toolCallId", "messageId"] {
                let Some(id) = update[key].as_str().map(str::to_owned) else {
                    update.as_object_mut().unwrap().remove(key);
                    continue;
                };
                let at = ids.iter().position(|known| *known == id);
                let at = at.unwrap_or_else(|| {
                    ids.push(id);
                    ids.len() - 1
                });
                update[key] = json!(at);
            }
            update
        });
        updates.collect()
    }

    fn started(id: &str, tool: &str, params: Value) -> LoopbackEvent {
        LoopbackEvent::ToolStarted {
            id: id.to_owned(),
            tool: tool.to_owned(),
            params,
        }
    }

    fn output(id: &str, text: &str) -> LoopbackEvent {
        LoopbackEvent::ToolOutput {
            id: id.to_owned(),
            stream: OutputStream::Stdout,
            text: text.to_owned(),
            skipped_lines: 0,
        }
    }

    fn finished(id: &str, failure: Option<ToolErrorCategory>, display: &str) -> LoopbackEvent {
        LoopbackEvent::ToolFinished {
            id: id.to_owned(),
            tool: "bash".to_owned(),
            failure,
            display: display.to_owned(),
            filter: None,
            locations: Vec::new(),
            changes: Vec::new(),
            duration_ms: 0,
        }
    }

    /// Proves ACP-2.
    #[test]
    fn messages_have_ids_that_end_with_their_response() {
        let text = |text: &str| LoopbackEvent::Text(text.to_owned());
        let events = vec![
            LoopbackEvent::Requesting { iteration: 1 },
            LoopbackEvent::Reasoning("hm".to_owned()),
            text("a"),
            text("b"),
            started("1", "read", json!({})),
            text("c"),
            LoopbackEvent::Requesting { iteration: 2 },
            text("d"),
        ];
        let ids: Vec<_> = mapped(events)
            .iter()
            .filter_map(|it| it["messageId"].as_u64())
            .collect();
        assert_eq!(ids, [0, 1, 1, 3, 4]);
    }

    /// Proves ACP-2: two calls with the same id of the model are two calls.
    #[test]
    fn each_call_has_its_own_id_until_its_end() {
        let events = vec![
            started("same", "bash", json!({"command": "a"})),
            output("same", "1\n"),
            output("same", "2\n"),
            finished("same", None, "1\n2"),
            output("same", "late"),
            started("same", "bash", json!({"command": "b"})),
            finished("same", Some(ToolErrorCategory::Timeout), ""),
            finished("unknown", None, "x"),
        ];
        let updates = mapped(events);
        let shown: Vec<_> = updates
            .iter()
            .map(|it| {
                let text = it["content"][0]["content"]["text"].as_str();
                (it["toolCallId"].as_u64(), it["status"].as_str(), text)
            })
            .collect();
        let expect = [
            (Some(0), Some("in_progress"), None),
            (Some(0), Some("in_progress"), Some("```\n1\n```")),
            (Some(0), Some("in_progress"), Some("```\n1\n2\n```")),
            (Some(0), Some("completed"), Some("```\n1\n2\n```")),
            (Some(1), Some("in_progress"), None),
            (Some(1), Some("failed"), None),
        ];
        assert_eq!(shown, expect);
    }

    /// Proves ACP-2: streamed output is bounded, and its end stays.
    #[test]
    fn streamed_output_is_bounded() {
        let line = "äöü a line of output\n";
        let mut events = vec![started("1", "bash", json!({}))];
        events.extend((0..2000).map(|_| output("1", line)));
        let last = mapped(events).pop().unwrap();
        let text = last["content"][0]["content"]["text"].as_str().unwrap();
        assert!(text.len() <= MAX_STREAMED_BYTES + 8, "{}", text.len());
        assert!(text.ends_with("äöü a line of output\n```"));
    }

    /// Proves ACP-2.
    #[test]
    fn messages_for_the_user_have_a_severity() {
        let events = vec![
            LoopbackEvent::Notice("a".to_owned()),
            LoopbackEvent::Warning("b".to_owned()),
            LoopbackEvent::Error("c".to_owned()),
        ];
        let severities: Vec<_> = mapped(events)
            .iter()
            .map(|it| (it["severity"].clone(), it["title"].clone()))
            .collect();
        let expect = [("info", "a"), ("warning", "b"), ("error", "c")];
        let expect = expect.map(|(severity, title)| (json!(severity), json!(title)));
        assert_eq!(severities, expect);
    }

    /// Proves ACP-2: every message for the user has a notice, so that none is lost for a client without notices.
    #[test]
    fn messages_for_the_user_are_notices() {
        let (severity, text) = notice_of(&LoopbackEvent::SummingUp).unwrap();
        assert_eq!(
            (severity, text.as_str()),
            (NoticeSeverity::Info, "summarizing older messages")
        );
        assert!(notice_of(&LoopbackEvent::Text("a".to_owned())).is_none());
    }

    /// Proves ACP-2: titles show hidden characters, and notices contain no terminal control.
    #[test]
    fn titles_and_notices_contain_no_control() {
        let mut mapper = UpdateMapper::new(Path::new("/p"), |text| text.replace('\x1b', ""));
        let command = json!({"command": "ls\x1b[2J \u{202e}x"});
        let title = |update: Option<SessionUpdate>| {
            serde_json::to_value(update.unwrap()).unwrap()["title"].clone()
        };
        let call = mapper.map(started("1", "bash", command));
        assert_eq!(title(call), "ls\\u{1b}[2J \\u{202e}x");
        for event in [LoopbackEvent::Title, LoopbackEvent::Notice] {
            let update = mapper.map(event("a\x1b[2Jb".to_owned()));
            assert_eq!(title(update), "a[2Jb");
        }
    }

    /// Proves ACP-2: text of a program cannot end its block.
    #[test]
    fn text_with_fences_stays_in_its_block() {
        let ToolCallContent::Content(content) = text_content("a\n```\n# b\n") else {
            panic!("not a text");
        };
        let content = serde_json::to_value(content).unwrap();
        assert_eq!(content["content"]["text"], "````\na\n```\n# b\n````");
    }
}
