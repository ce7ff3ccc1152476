//! Messages that announce a tool call and report its progress and end, for the client's display.
//!
//! The shapes are those of `session/update` in the Agent Client Protocol, version 1. `tool_call` creates a call under
//! an id. `tool_call_update` changes the named fields and keeps the others. `content` and `locations` of an update
//! replace the earlier collection as a whole.

use serde::Serialize;
use serde_json::{Value, json};

use crate::ToolKind;

/// Identifies one tool call within its session: a UUID in hyphenated form, made by the agent.
///
/// It is not the id that the model gave its request: that one need not be unique.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolCallId(String);

impl ToolCallId {
    /// Wraps an id.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStatus {
    /// Not started: its input still streams, or it waits for permission.
    Pending,
    /// Running.
    InProgress,
    /// Ended well.
    Completed,
    /// Ended with an error, refused or cancelled.
    Failed,
}

/// A file that a call works on, so that an editor can follow along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolCallLocation {
    /// Absolute path.
    pub path: String,
    /// Line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A block of content. Zeph sends text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text, already filtered and redacted.
    Text {
        /// The text.
        text: String,
    },
}

/// The content that a call produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum ToolCallContent {
    /// A block of content.
    Content {
        /// The block.
        content: ContentBlock,
    },
    /// A change to a file.
    Diff {
        /// Absolute path of the file.
        path: String,
        /// The text before; `None` for a new file.
        #[serde(skip_serializing_if = "Option::is_none")]
        old_text: Option<String>,
        /// The text after.
        new_text: String,
    },
}

impl ToolCallContent {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Content {
            content: ContentBlock::Text { text: text.into() },
        }
    }
}

/// Announces a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The id under which updates follow.
    pub tool_call_id: ToolCallId,
    /// The action of the call, in one line for the user.
    pub title: String,
    /// The kind of work.
    pub kind: ToolKind,
    /// The status of the call.
    pub status: ToolCallStatus,
    /// The content that the call has produced so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolCallContent>,
    /// The files it works on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<ToolCallLocation>,
    /// The parameters as the tool gets them.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub raw_input: Value,
}

impl ToolCall {
    /// A call that starts now; its kind follows from `tool_id`.
    pub fn started(
        tool_call_id: ToolCallId,
        tool_id: &str,
        title: impl Into<String>,
        raw_input: Value,
    ) -> Self {
        Self {
            tool_call_id,
            title: title.into(),
            kind: ToolKind::of(tool_id),
            status: ToolCallStatus::InProgress,
            content: Vec::new(),
            locations: Vec::new(),
            raw_input,
        }
    }
}

/// Changes fields of a call; a field that is `None` stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallUpdate {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// Its new status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolCallStatus>,
    /// All of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<ToolCallContent>>,
    /// All of its locations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<ToolCallLocation>>,
}

impl ToolCallUpdate {
    /// An update that reports the output so far of a running call.
    #[must_use]
    pub fn output(tool_call_id: ToolCallId, content: Vec<ToolCallContent>) -> Self {
        Self {
            tool_call_id,
            status: None,
            content: Some(content),
            locations: None,
        }
    }

    /// The end of a call: completed if `success`, otherwise failed.
    #[must_use]
    pub fn ended(tool_call_id: ToolCallId, success: bool, content: Vec<ToolCallContent>) -> Self {
        Self {
            status: Some(if success {
                ToolCallStatus::Completed
            } else {
                ToolCallStatus::Failed
            }),
            ..Self::output(tool_call_id, content)
        }
    }
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub enum SessionUpdate {
    /// A new call.
    ToolCall(ToolCall),
    /// News of a call.
    ToolCallUpdate(ToolCallUpdate),
}

impl From<ToolCall> for SessionUpdate {
    fn from(call: ToolCall) -> Self {
        Self::ToolCall(call)
    }
}

impl From<ToolCallUpdate> for SessionUpdate {
    fn from(update: ToolCallUpdate) -> Self {
        Self::ToolCallUpdate(update)
    }
}

/// The parameters of a `session/update` notification.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNotification {
    /// The session that reports.
    pub session_id: String,
    /// The event.
    pub update: SessionUpdate,
}

impl SessionNotification {
    /// A report of the session with this id.
    pub fn new(session_id: impl Into<String>, update: impl Into<SessionUpdate>) -> Self {
        Self {
            session_id: session_id.into(),
            update: update.into(),
        }
    }

    /// The notification as a JSON-RPC 2.0 message: without an `id`, since it expects no response.
    #[must_use]
    pub fn to_json_rpc(&self) -> Value {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": self})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "8d7f6c1e-7f3b-4b52-9a55-0f3c3f0b7a10";

    fn check(update: impl Into<SessionUpdate>, expect: &Value) {
        let line = SessionNotification::new("s1", update).to_json_rpc();
        let expect = json!({
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": {"sessionId": "s1", "update": expect},
        });
        assert_eq!(line, expect);
    }

    #[test]
    fn a_call_that_starts() {
        let mut call = ToolCall::started(
            ToolCallId::new(ID),
            "edit",
            "Edit src/lib.rs",
            json!({"path": "src/lib.rs", "old_string": "a", "new_string": "b"}),
        );
        call.locations.push(ToolCallLocation {
            path: "/project/src/lib.rs".into(),
            line: Some(3),
        });
        let expect = json!({
            "sessionUpdate": "tool_call",
            "toolCallId": ID,
            "title": "Edit src/lib.rs",
            "kind": "edit",
            "status": "in_progress",
            "locations": [{"path": "/project/src/lib.rs", "line": 3}],
            "rawInput": {"path": "src/lib.rs", "old_string": "a", "new_string": "b"},
        });
        check(call, &expect);
    }

    #[test]
    fn a_call_that_waits_says_nothing_of_what_it_lacks() {
        let call = ToolCall {
            status: ToolCallStatus::Pending,
            ..ToolCall::started(ToolCallId::new(ID), "unheard_of", "Unheard of", Value::Null)
        };
        let expect = json!({
            "sessionUpdate": "tool_call",
            "toolCallId": ID,
            "title": "Unheard of",
            "kind": "other",
            "status": "pending",
        });
        check(call, &expect);
    }

    #[test]
    fn output_of_a_running_call_leaves_its_status() {
        let content = vec![ToolCallContent::text("line 1\n")];
        let expect = json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": ID,
            "content": [{"type": "content", "content": {"type": "text", "text": "line 1\n"}}],
        });
        check(
            ToolCallUpdate::output(ToolCallId::new(ID), content),
            &expect,
        );
    }

    #[test]
    fn an_end_with_text_and_diffs() {
        let content = vec![
            ToolCallContent::text("1 replacement"),
            ToolCallContent::Diff {
                path: "/project/a".into(),
                old_text: Some("a".into()),
                new_text: "b".into(),
            },
            ToolCallContent::Diff {
                path: "/project/new".into(),
                old_text: None,
                new_text: String::new(),
            },
        ];
        let mut update = ToolCallUpdate::ended(ToolCallId::new(ID), true, content);
        update.locations = Some(vec![ToolCallLocation {
            path: "/project/a".into(),
            line: None,
        }]);
        let expect = json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": ID,
            "status": "completed",
            "content": [
                {"type": "content", "content": {"type": "text", "text": "1 replacement"}},
                {"type": "diff", "path": "/project/a", "oldText": "a", "newText": "b"},
                {"type": "diff", "path": "/project/new", "newText": ""},
            ],
            "locations": [{"path": "/project/a"}],
        });
        check(update, &expect);
    }

    #[test]
    fn a_failure_is_failed() {
        let update = ToolCallUpdate::ended(ToolCallId::new(ID), false, Vec::new());
        let expect = json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": ID,
            "status": "failed",
            "content": [],
        });
        check(update, &expect);
    }
}
